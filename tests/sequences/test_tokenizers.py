import json
import random
import re
import sys
import unicodedata

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.sequences.tokenizers import make_tokenizer, train_bpe
from tests.helpers.examples import examples


def split(name: str, text: str, *, lowercase: bool = False) -> list[str]:
    return list(make_tokenizer(name, lowercase=lowercase)(text))


@pytest.mark.parametrize(
    ("name", "text", "tokens"),
    [
        ("word", "Don't stop, R2-D2!", ["Don't", "stop", ",", "R2", "-", "D2", "!"]),
        ("word", "l’été\u2028à 3.5€", ["l’été", "à", "3", ".", "5", "€"]),
        ("word", "'quoted' a''b", ["'", "quoted", "'", "a", "'", "'", "b"]),
        ("word", "बासी मेच टपो।", ["बासी", "मेच", "टपो", "।"]),
        ("word", "ste\u0301 ma\u0301m", ["st\xe9", "m\xe1m"]),
        ("word", "می\u200cخواهم שָׁלוֹם", ["می\u200cخواهم", "שָׁלוֹם"]),
        ("word", "a\u200bb", ["a", "\u200b", "b"]),
        ("word", " \t\u3000", []),
        ("whitespace", "e\u0301t a", ["\xe9t", "a"]),
        ("char", "e\u0301\u0301", ["\xe9", "\u0301"]),
        ("whitespace", " Don't\tstop,\u3000R2-D2! ", ["Don't", "stop,", "R2-D2!"]),
        ("char", "a é😀", ["a", " ", "é", "😀"]),
        ("byte", "aé", ["a", "\xc3", "\xa9"]),
        ("byte", "\ud800", ["\xed", "\xa0", "\x80"]),
    ],
)
def test_texts_are_split_as_the_tokenizer_says(name, text, tokens):
    assert split(name, text) == tokens


EVERY_CHARACTER = "".join(map(chr, range(sys.maxunicode + 1)))
MARKS = "".join(
    c
    for c in EVERY_CHARACTER
    if unicodedata.category(c) in ("Mn", "Mc", "Me", "Cf") and c != "\u200b"
)
BLANKS = [c for c in EVERY_CHARACTER if c.isspace()]
TRICKY = st.text(
    st.sampled_from("aΣ_'’.")
    | st.sampled_from([*BLANKS, *'Béßİσ9,"()?!-/<>:;€\u0307\u0301\u200d\u093e😀\0'])
    | st.characters()
)


def tokens_of_the_whole_text(name: str, text: str) -> list[str]:
    """Return the tokens of a text as each tokenizer promises them, without pieces."""
    if name == "byte":
        return list(text.encode("utf-8", "surrogatepass").decode("latin-1"))
    text = unicodedata.normalize("NFC", text)
    if name == "word":
        letters = f"\\w[\\w{MARKS}]*"
        return re.findall(f"{letters}(?:['’]{letters})*|[^\\w\\s]", text)
    return text.split() if name == "whitespace" else list(text)


@given(
    TRICKY | st.text("aΣ_'’. "),
    st.sampled_from(["word", "whitespace", "char", "byte"]),
    st.booleans(),
)
@examples(500)
def test_parting_a_text_changes_no_token(text, name, lowercase):
    expected = tokens_of_the_whole_text(name, text.lower() if lowercase else text)
    assert split(name, text, lowercase=lowercase) == expected


TEXTS = ["low lower lowest", "new newer newest", "wide wider widest"] * 20


def test_bpe_learns_frequent_pieces_from_its_texts():
    model = train_bpe(iter(TEXTS), vocab_size=300, lowercase=False)
    tokenize = make_tokenizer("bpe", lowercase=False, bpe_model=model)
    assert len(tokenize("lower newest")) < len("lower newest") / 2
    assert list(tokenize(" \t ")) == []
    assert len(json.loads(model)["model"]["vocab"]) <= 298
    assert model == train_bpe(iter(TEXTS), vocab_size=300, lowercase=False)


ALPHABET = (
    "aabbcde EST'  '''ll've \t\n\r\x0b\x1c\x85\xa0\u2003\u200b\u3000_0129½Ⅻ²-.,!?’"
    "éßİΣςñ東京ا\u0301\u0e33\U0001f600"
)


@pytest.mark.parametrize("lowercase", [True, False])
def test_tokens_are_those_of_the_package(lowercase):
    draw = random.Random(5)
    texts = ["".join(draw.choices(ALPHABET, k=draw.randrange(40))) for _ in range(300)]
    texts += ["it's I've we'll", "  two  blanks ", "", "ΟΔΥΣΣΕΥΣ"]
    bpe = train_bpe(texts, vocab_size=400, lowercase=lowercase)
    package = tokenizers.Tokenizer.from_str(bpe)
    ours = make_tokenizer("bpe", lowercase=lowercase, bpe_model=bpe)
    for text in texts:
        expected = package.encode((text.lower() if lowercase else text).strip()).tokens
        assert ours(text) == expected, ascii(text)
