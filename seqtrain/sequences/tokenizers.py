"""Tokenizers: splitting of texts into tokens, in two steps.

A text is divided into pieces (at whitespace and punctuation, or between characters). Then each
piece is split into tokens. Pieces repeat often, so that their tokens can be cached.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, pairwise
from typing import Any

from seqtrain.errors import missing_package
from seqtrain.files.reading import parse_json
from seqtrain.text import shorten

WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
"""A token of "word": letters, digits and underscores with inner apostrophes, or one other mark."""
SET_OFF = '.,"()?!-/<>:;'
"""Punctuation marks that are surrounded by spaces first, so that pieces repeat more often."""
_SHOWN = [*range(33, 127), *range(161, 173), *range(174, 256)]
_HIDDEN = [byte for byte in range(256) if byte not in _SHOWN]
ALPHABET = {b: chr(b) for b in _SHOWN} | {b: chr(256 + i) for i, b in enumerate(_HIDDEN)}
"""Maps each byte to the character that represents it in byte-pair encoding."""
BPE_PIECE = re.compile(
    r"'(?:[stmd]|re|ve|ll)| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+", re.ASCII
)
"""A piece of "bpe", which merges don't cross. It is matched after `_ascii_like`."""
STAND_INS = {"L": "a", "N": "0", "Z": "\t"}
BLANKS = "\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


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
    for mark in SET_OFF:
        text = text.replace(mark, f" {mark} ")
    return text


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
    "word": Tokenizer(str.split, WORD.findall, _set_off),
    "whitespace": Tokenizer(str.split, _whole),
    "char": Tokenizer(_characters, _whole),
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
    else:  # byte-level merges (Radford et al. 2019)
        ranks = {pair: rank for rank, pair in enumerate(read_merges(bpe_model))}
        tokenizer = Tokenizer(_bpe_pieces, lambda piece: _merged(piece, ranks))
    if not lowercase:
        return tokenizer
    # The text as a whole: how a letter is lowered can depend on its neighbours (final sigma).
    ready = tokenizer.ready
    lowered = str.lower if ready is None else lambda text: ready(text.lower())
    return replace(tokenizer, ready=lowered)


def read_merges(model: str) -> list[tuple[str, str]]:
    """Return the pairs of tokens that a trained byte-pair model joins, in the order of learning.

    Args:
        model: The model as JSON, as `train_bpe` returns it.

    Raises:
        ValueError: If the JSON has no merges, or if half of a pair isn't a token.
    """
    try:
        description: Any = parse_json(model)
        listed, named = description["model"]["merges"], description["model"]["vocab"]
        pairs = [tuple(pair.split(" ") if isinstance(pair, str) else pair) for pair in listed]
    except (LookupError, TypeError) as error:
        raise ValueError(f"expected a model with vocab and merges ({error})") from None
    known = {*ALPHABET.values()}
    for pair in pairs:
        if len(pair) != 2 or not all(isinstance(part, str) and part in known for part in pair):
            raise ValueError(f"merges: {shorten(str(pair), 40)} joins what is no token before it")
        known.add("".join(pair))
    if len(set(pairs)) < len(pairs) or not isinstance(named, dict) or known != named.keys():
        raise ValueError("vocab: expected the 256 bytes and what the merges join, each once")
    return pairs


def _bpe_pieces(text: str) -> list[str]:
    text = text.strip()
    plain = text if text.isascii() else "".join(map(_ascii_like, text))
    return [text[found.start() : found.end()] for found in BPE_PIECE.finditer(plain)]


def _merged(piece: str, ranks: dict[tuple[str, str], int]) -> list[str]:
    """Return the tokens of a piece. Its bytes are joined pair by pair in the order of learning.

    Args:
        piece: A piece of a text.
        ranks: Maps each pair of tokens that is joined to its place in the order of learning.
    """
    tokens = [ALPHABET[byte] for byte in piece.encode()]
    while len(tokens) > 1:
        best = min(pairwise(tokens), key=lambda pair: ranks.get(pair, len(ranks)))
        if best not in ranks:
            break
        joined: list[str] = []
        for token in tokens:
            if joined and (joined[-1], token) == best:
                joined[-1] += token
            else:
                joined.append(token)
        tokens = joined
    return tokens


@cache
def _ascii_like(character: str) -> str:
    """Return an ASCII character of the same kind: a letter, a digit, a blank or a mark.

    ASCII characters are returned unchanged.
    """
    if character.isascii():
        return character
    kind = "Z" if character in BLANKS else unicodedata.category(character)[0]
    return STAND_INS.get(kind, ".")


def bpe_version() -> str:
    """Return the version of the package tokenizers, which learns byte-pair merges."""
    return str(_import_tokenizers().__version__)


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
    trainer = package.trainers.BpeTrainer(
        vocab_size=vocab_size - 2, initial_alphabet=sorted(ALPHABET.values()), show_progress=False
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
