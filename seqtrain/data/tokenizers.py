"""From text to tokens: the five tokenizers, in two steps.

A text is first parted into pieces, where no token crosses a border: at blanks and marks (word), at
blanks (whitespace), between characters (char, byte), or not at all (bpe). Then each piece is split
into its tokens. So what a piece was split into can be remembered: a natural text repeats its words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from seqtrain.data.byte_pairs import ALPHABET, BytePairs
from seqtrain.data.readers.cells import parse_json
from seqtrain.errors import ConfigError
from seqtrain.text import shorten

WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
"""A run of letters, digits and underscores (with inner apostrophes), or one other mark."""
SET_OFF = '.,"()?!-/<>:;'
"""Common marks, each a token wherever it stands; parted from the words, these repeat more often."""


@dataclass(frozen=True)
class Tokenizer:
    """Splits a text, or a list of symbols.

    Attributes:
        part: returns the pieces of a text that was made ready.
        split: returns the tokens of a piece.
        ready: makes a text ready, or several that NUL parts; None: it is.
    """

    part: Callable[[Any], Iterable[str]]
    split: Callable[[str], Iterable[str]]
    ready: Callable[[str], str] | None = None

    def __call__(self, text: Any) -> list[str]:
        """Return the tokens of a text: those of all its pieces."""
        (pieces,) = self.pieces([text])
        return list(chain.from_iterable(map(self.split, pieces)))

    def pieces(self, texts: Sequence[Any]) -> Iterable[Iterable[str]]:
        """Return the pieces of each text."""
        if self.ready is None:
            return map(self.part, texts)
        whole = "\0".join(texts)
        if whole.count("\0") == len(texts) - 1:
            return map(self.part, self.ready(whole).split("\0"))
        return map(self.part, map(self.ready, texts))


def _set_off(text: str) -> str:
    for mark in SET_OFF:
        text = text.replace(mark, f" {mark} ")
    return text


def _whole(piece: str) -> tuple[str]:
    return (piece,)


def _bytes(character: str) -> str:
    """UTF-8 bytes of a character, each as the character of that number."""
    return character.encode("utf-8", "surrogatepass").decode("latin-1")


SYMBOLS = Tokenizer(iter, _whole)
"""For lists of symbols, which are tokens already."""
TOKENIZERS = {
    "word": Tokenizer(str.split, WORD.findall, _set_off),
    "whitespace": Tokenizer(str.split, _whole),
    "char": Tokenizer(iter, _whole),
    "byte": Tokenizer(iter, _bytes),
}


def make_tokenizer(name: str, *, lowercase: bool, bpe_model: str | None = None) -> Tokenizer:
    """Return a tokenizer by its name.

    Args:
        name: word, whitespace, char, byte or bpe.
        lowercase: lower-case the text first.
        bpe_model: JSON of the trained model, for bpe.

    Returns:
        One that gives no tokens for nothing but blanks (char and byte keep blanks).

    Raises:
        ValueError: as `read_merges`.
    """
    tokenizer = TOKENIZERS[name] if bpe_model is None else _bpe_tokenizer(bpe_model)
    if not lowercase:
        return tokenizer
    # The text as a whole: how a letter is lowered can depend on its neighbours (final sigma).
    ready = tokenizer.ready
    lowered = str.lower if ready is None else lambda text: ready(text.lower())
    return replace(tokenizer, ready=lowered)


def _bpe_tokenizer(model: str) -> Tokenizer:
    """Rebuild the tokenizer that `train_bpe` made, from its merges alone.

    Without the package tokenizers it splits the same, in many times the time.
    """
    merges = read_merges(model)
    try:
        package = _import_tokenizers()
    except ConfigError:
        return Tokenizer(lambda text: (text.strip(),), BytePairs(merges))
    vocabulary = {token: place for place, token in enumerate(_vocabulary(merges))}
    rebuilt = package.Tokenizer(package.models.BPE(vocab=vocabulary, merges=merges))
    rebuilt.pre_tokenizer = package.pre_tokenizers.ByteLevel(add_prefix_space=False)

    def split(text: str) -> list[str]:
        tokens: list[str] = rebuilt.encode(text).tokens
        return tokens

    return Tokenizer(lambda text: (text.strip(),), split)


def read_merges(model: str) -> list[tuple[str, str]]:
    """Read the merges of a trained model, which anybody may have written.

    The rest of the file isn't used: it could replace, pad, cut or part texts in ways that take all
    memory, or that answer differently from call to call.

    Args:
        model: JSON, as `train_bpe` returns it.

    Returns:
        The pairs of tokens that are joined, in the order in which they were learned.

    Raises:
        ValueError: it isn't JSON, a pair joins what was no token before, or the vocabulary isn't
            the 256 bytes and the joined pairs.
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


def _vocabulary(merges: list[tuple[str, str]]) -> dict[str, None]:
    """Return all tokens, each once: the bytes, and what the merges join."""
    return dict.fromkeys(chain(sorted(ALPHABET.values()), map("".join, merges)))


def bpe_version() -> str:
    """Return the version of the package that learns and applies merges.

    Raises:
        ConfigError: it isn't installed.
    """
    return str(_import_tokenizers().__version__)


def train_bpe(texts: Iterable[str], *, vocab_size: int, lowercase: bool) -> str:
    """Learn byte-pair merges from texts.

    Args:
        texts: the training texts, read once.
        vocab_size: tokens at most, <pad> and <unk> included.
        lowercase: lower-case the texts first, as the tokenizer will.

    Returns:
        The trained model as JSON, for `make_tokenizer`.

    Raises:
        ConfigError: the `tokenizers` package isn't installed.

    Reference:
        Sennrich, Haddow, Birch 2016, arXiv:1508.07909; on bytes, so that no text is unknown.
    """
    package = _import_tokenizers()
    tokenizer = package.Tokenizer(package.models.BPE())
    tokenizer.pre_tokenizer = package.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = package.trainers.BpeTrainer(
        vocab_size=vocab_size - 2,
        initial_alphabet=sorted(ALPHABET.values()),
        show_progress=False,
    )
    stripped = (text.strip().lower() if lowercase else text.strip() for text in texts)
    tokenizer.train_from_iterator(stripped, trainer=trainer)
    model: str = tokenizer.to_str()
    return model


def _import_tokenizers() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise ConfigError(
            "data.tokenizer: bpe needs the package tokenizers; "
            "install it with: pip install 'seqtrain[bpe]'"
        ) from None
    return tokenizers
