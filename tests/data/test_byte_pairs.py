"""Merges applied in Python alone give the tokens of the package tokenizers."""

from __future__ import annotations

import random
import sys

import pytest

from seqtrain.data.tokenizers import make_tokenizer, train_bpe

ALPHABET = (
    "aabbcde EST'  '''ll've \t\n\r\x0b\x1c\x85\xa0\u2003\u200b\u3000_0129½Ⅻ²-.,!?’"
    "éßİΣςñ東京ا\u0301\u0e33\U0001f600"
)


@pytest.mark.parametrize("lowercase", [True, False])
def test_tokens_are_those_of_the_package(lowercase: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(5)
    texts = ["".join(draw.choices(ALPHABET, k=draw.randrange(40))) for _ in range(300)]
    texts += ["it's I've we'll", "  two  blanks ", "", "ΟΔΥΣΣΕΥΣ"]
    bpe = train_bpe(texts, vocab_size=400, lowercase=lowercase)
    theirs = make_tokenizer("bpe", lowercase=lowercase, bpe_model=bpe)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    ours = make_tokenizer("bpe", lowercase=lowercase, bpe_model=bpe)
    for text in texts:
        assert ours(text) == theirs(text), ascii(text)
