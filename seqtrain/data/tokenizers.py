"""From text to tokens: the five tokenizers, each a function from a string to its tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from seqtrain.errors import ConfigError

Tokenize = Callable[[str], Sequence[str]]

WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
"""A run of letters, digits and underscores (with inner apostrophes), or one other mark."""


def make_tokenizer(name: str, *, lowercase: bool, bpe_model: str | None = None) -> Tokenize:
    """Return the function that splits a text into tokens.

    Args:
        name: word, whitespace, char, byte or bpe.
        lowercase: lower-case the text first.
        bpe_model: JSON of the trained model, for bpe.

    Returns:
        A function; a text of nothing but blanks gives no tokens (char and byte keep blanks).
    """
    splitters: dict[str, Tokenize] = {
        "word": WORD.findall,
        "whitespace": str.split,
        "char": str,
        "byte": _bytes,
    }
    split = splitters[name] if bpe_model is None else _bpe_tokenizer(bpe_model)
    if not lowercase:
        return split
    return lambda text: split(text.lower())


def _bytes(text: str) -> str:
    """UTF-8 bytes of the text, each as the character of that number."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def _bpe_tokenizer(model: str) -> Tokenize:
    tokenizer = _import_tokenizers().Tokenizer.from_str(model)

    def split(text: str) -> Sequence[str]:
        tokens: list[str] = tokenizer.encode(text.strip()).tokens
        return tokens

    return split


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
        initial_alphabet=sorted(package.pre_tokenizers.ByteLevel.alphabet()),
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
