"""Tokenizers: splitting of texts into tokens, in two steps.

A text is divided into pieces (at whitespace and punctuation, or between characters). Then each
piece is split into tokens. Pieces repeat often, so that their tokens can be cached.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import Any

from seqtrain.errors import missing_package
from seqtrain.files.reading import parse_json

ASCII_WORD = re.compile(r"\w+(?:'\w+)*|[^\w\s]")
"""A token of "word" in ASCII, as `_word_pattern` says."""
JOINING = ("Mn", "Mc", "Me", "Cf")
"""Unicode's categories of combining marks, such as accents and vowel signs, and of joiners."""
ZERO_WIDTH_SPACE = "\u200b"
"""It is in the category of joiners, but divides words."""
SET_OFF = '.,"()?!-/<>:;'
"""Punctuation marks that are surrounded by spaces first, so that pieces repeat more often."""


@dataclass(frozen=True)
class Tokenizer:
    """A tokenizer: normalization of texts, division into pieces, and splitting of pieces.

    Calling it with a text returns the text's tokens.

    Attributes:
        divide: Function that divides a normalized text into pieces.
        split: Function that splits a piece into tokens.
        ready: Function that normalizes a text, or None. For speed it is called with many texts
            joined by NUL characters, which it must keep.
    """

    divide: Callable[[Any], Iterable[str]]
    split: Callable[[str], Iterable[str]]
    ready: Callable[[str], str] | None = None

    def __call__(self, text: Any) -> list[str]:
        (pieces,) = self.pieces([text])
        return list(chain.from_iterable(map(self.split, pieces)))

    def pieces(self, texts: Sequence[Any]) -> Iterable[Iterable[str]]:
        """Return the pieces of each text. `SYMBOLS` takes lists of symbols in place of texts."""
        if self.ready is None:
            return map(self.divide, texts)
        whole = "\0".join(texts)
        if whole.count("\0") == len(texts) - 1:
            return map(self.divide, self.ready(whole).split("\0"))
        return map(self.divide, map(self.ready, texts))


def _set_off(text: str) -> str:
    text = _composed(text)
    for mark in SET_OFF:
        text = text.replace(mark, f" {mark} ")
    return text


def _composed(text: str) -> str:
    """Return a text in which a letter and its accent are one character where Unicode has one."""
    return unicodedata.normalize("NFC", text)


@cache
def _word_pattern() -> re.Pattern[str]:
    """Return the pattern of a token of "word".

    It is letters, digits and underscores with inner apostrophes, or one other character. Combining
    marks and joiners belong to the letter before them, so that vowel signs divide no word.

    Reference:
        Unicode Standard Annex 29, rule WB4.
    """
    codes = chain(range(0x80, 0x20000), range(0xE0000, 0xE0200))  # the others have no marks
    marks = "".join(chr(code) for code in codes if unicodedata.category(chr(code)) in JOINING)
    letters = rf"\w[\w{marks.replace(ZERO_WIDTH_SPACE, '')}]*"
    return re.compile(rf"{letters}(?:['’]{letters})*|[^\w\s]")


def _words(piece: str) -> list[str]:
    pattern = ASCII_WORD if piece.isascii() else _word_pattern()
    found: list[str] = pattern.findall(piece)
    return found


def _characters(text: Any) -> Any:
    return text  # a text is a sequence of its characters, a list of symbols one of these


def _whole(piece: str) -> tuple[str]:
    return (piece,)


def _bytes(character: str) -> str:
    """Return the UTF-8 bytes of a character as a text: byte b is the character chr(b)."""
    return character.encode("utf-8", "surrogatepass").decode("latin-1")


SYMBOLS = Tokenizer(_characters, _whole)
"""Tokenizer of lists of symbols, which are tokens already."""
TOKENIZERS = {
    "word": Tokenizer(str.split, _words, _set_off),
    "whitespace": Tokenizer(str.split, _whole, _composed),
    "char": Tokenizer(_characters, _whole, _composed),
    "byte": Tokenizer(_characters, _bytes),
}


BPE = "bpe"
"""Name of the tokenizer that is trained: byte-pair encoding."""


def make_tokenizer(name: str, *, lowercase: bool, bpe_model: str | None = None) -> Tokenizer:
    """Return a tokenizer. Only "char" and "byte" keep whitespace.

    Args:
        name: Name of the tokenizer, a value of data.tokenizer.
        lowercase: True to convert texts to lower case first.
        bpe_model: Trained model of "bpe" as JSON, else None.

    Raises:
        ValueError: If the merges aren't valid.
    """
    if bpe_model is None:
        tokenizer = TOKENIZERS[name]
    else:
        tokenizer = _byte_pairs(bpe_model)
    if not lowercase:
        return tokenizer
    # The text as a whole: how a letter is lowered can depend on its neighbours (final sigma).
    ready = tokenizer.ready
    lowered = str.lower if ready is None else lambda text: ready(text.lower())
    return replace(tokenizer, ready=lowered)


def _byte_pairs(model: str) -> Tokenizer:
    """Return the tokenizer of a trained byte-pair model: merges of bytes (Radford et al. 2019).

    Args:
        model: The model as JSON, as `train_bpe` returns it. Only its merges and ids are used. The
            ids must be those of all bytes and of what the merges form, each from earlier parts.

    Raises:
        ConfigError: If the package tokenizers isn't installed.
        ValueError: If the model isn't valid.
    """
    package = _import_tokenizers()
    try:
        trained: Any = parse_json(model)
        own = trained["model"]
        pairs = [tuple(x.split(" ")) if isinstance(x, str) else tuple(x) for x in own["merges"]]
        merges = package.models.BPE(own["vocab"], pairs)
        formed = set(package.pre_tokenizers.ByteLevel.alphabet())
        for first, second in pairs:
            if not {first, second} <= formed:
                raise ValueError("a merge of parts that no merge before it forms")
            formed.add(first + second)
        if formed != set(own["vocab"]) or len(set(pairs)) < len(pairs):
            raise ValueError("ids or merges that no training gives")
    except Exception as error:  # tokenizers raises Exception itself
        raise ValueError(f"expected a model with vocab and merges ({error})") from None
    bytes_of = package.pre_tokenizers.ByteLevel(add_prefix_space=False)

    def pieces(text: str) -> list[str]:
        sound = text.strip().encode(errors="replace").decode()
        return [piece for piece, _ in bytes_of.pre_tokenize_str(sound)]

    def tokens(piece: str) -> list[str]:
        return [token.value for token in merges.tokenize(piece)]

    return Tokenizer(pieces, tokens)


def train_bpe(texts: Iterable[str], *, vocab_size: int, lowercase: bool) -> str:
    """Learn byte-pair merges from texts, and return the model as JSON for `make_tokenizer`.

    Args:
        texts: The texts.
        vocab_size: Largest size of the vocabulary, including <pad> and <unk>.
        lowercase: True to convert texts to lower case first.

    Raises:
        ConfigError: If the package tokenizers isn't installed.

    Reference:
        Sennrich, Haddow, Birch 2016, arXiv:1508.07909. The merges are of bytes, so that no text is
        unknown.
    """
    package = _import_tokenizers()
    tokenizer = package.Tokenizer(package.models.BPE())
    tokenizer.pre_tokenizer = package.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(package.pre_tokenizers.ByteLevel.alphabet())
    trainer = package.trainers.BpeTrainer(
        vocab_size=vocab_size - 2, initial_alphabet=alphabet, show_progress=False
    )
    stripped = (text.strip().lower() if lowercase else text.strip() for text in texts)
    tokenizer.train_from_iterator(stripped, trainer=trainer)
    model: str = tokenizer.to_str()
    return model


def _import_tokenizers() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise missing_package("data.tokenizer: bpe", "tokenizers", "bpe") from None
    return tokenizers
