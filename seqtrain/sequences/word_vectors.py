"""Pretrained word vectors in the text formats of fastText, word2vec and GloVe.

A file is read as a stream. Only the numbers of words that are kept are parsed, so that a large file
takes little memory.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, takewhile

import numpy as np

from seqtrain.config.schema import Config
from seqtrain.config.value_types import LARGEST_WIDTH
from seqtrain.errors import ConfigError, DataError
from seqtrain.sequences.vector_folder import VectorFolder
from seqtrain.sequences.vocabulary import PAD, SPECIAL, Vocabulary
from seqtrain.tables.blocks import Float32s, Ints, UnreadableError, located
from seqtrain.tables.cells import FLOAT32_MAX, is_number
from seqtrain.tables.opening import TextLines, open_input
from seqtrain.text import counted, display_name, quote

BLANKS = re.compile("[ \t]+")
FEW = 0.5
"""Share of train's steps with a vector below which there is a warning."""


@dataclass(frozen=True)
class Coverage:
    """Figures about a file of word vectors, and how much of train it covers.

    `read_vectors` leaves `tokens`, `found` and `share` at 0, because they need the encoded train.

    Attributes:
        file: Path of the file.
        words: Number of words in the file.
        size: Number of dimensions of a vector.
        tokens: Number of tokens that the vocabulary took from train.
        found: Number of these tokens that have a vector.
        share: Share of train's steps whose token has a vector, in [0, 1].
        more: Number of words of the file that were added to the vocabulary.
    """

    file: str
    words: int
    size: int
    tokens: int = 0
    found: int = 0
    share: float = 0.0
    more: int = 0

    def line(self) -> str:
        """Return a line for people with the counts of tokens with a vector and of added words."""
        return (
            f"vectors: {display_name(self.file)} has {self.found:,} of {self.tokens:,} tokens "
            f"({self.share:.1%} of train's text); {self.more:,} of its other words are kept"
        )

    def doubts(self) -> list[str]:
        """Return a warning if few tokens of train have a vector."""
        if self.share >= FEW:
            return []
        return [
            f"model.vectors: {1 - self.share:.0%} of train's text has no vector in "
            f"{display_name(self.file)}; words are compared as data.tokenizer and data.lowercase "
            "leave them: are those of the file written so, and in this language?"
        ]


@dataclass(frozen=True)
class WordVectors:
    """Vectors of tokens of a vocabulary, from a file.

    Attributes:
        rows: Id of each token that has a vector, (K,).
        values: Vector of each of these tokens, (K, E).
        coverage: Figures about the file.
    """

    rows: Ints
    values: Float32s
    coverage: Coverage


def with_width(config: Config) -> Config:
    """Return a config whose model.embedding_dim is the size of the vectors in model.vectors.

    Without model.vectors the config is returned unchanged.

    Raises:
        ConfigError: If model.embedding_dim has another value.
        DataError: If the first line of the file isn't valid.
    """
    path = config.model.vectors
    asked = config.model.embedding_dim
    if path is None:
        return config
    if os.path.isdir(path):
        size = VectorFolder(path).size
    else:
        with _opened(path) as (_, size):
            pass
    if asked not in (None, size):
        raise ConfigError(
            f"model.embedding_dim: found {asked}, but the vectors of {display_name(path)} have "
            f"{size} numbers; expected {size} or null"
        )
    return config.with_keys(model={"embedding_dim": size})


def read_vectors(
    path: str, vocabulary: Vocabulary, *, keep: int, is_token: Callable[[str], bool]
) -> tuple[WordVectors, list[str]]:
    """Read the vectors of a vocabulary's tokens, and of words that can be added to it.

    Args:
        path: Path of the file, or of a folder as `VectorFolder` reads it.
        vocabulary: The vocabulary.
        keep: Largest number of words to add. The first ones of the file are taken.
        is_token: Function that returns True if a word can be a token.

    Returns:
        The vectors, and the added words. The ids of the added words follow the vocabulary.

    Raises:
        DataError: If a line isn't a word followed by numbers. If the file has no word of the
            vocabulary.
    """
    if os.path.isdir(path):
        return _read_folder(path, vocabulary, keep, is_token)
    rows = {token: i for i, token in enumerate(vocabulary.tokens) if i != PAD}
    values = {}
    more: list[str] = []
    words = 0
    with _opened(path) as (lines, size):
        for number, text in lines:
            word, numbers = _split(number, text, size)
            if not text.strip(" \t"):
                continue
            words += 1
            row = rows.get(word)
            if row is None:
                if len(more) == keep or word in SPECIAL or not is_token(word):
                    continue
                row = rows[word] = len(vocabulary) + len(more)
                more.append(word)
            if row not in values:  # of equal words the first one counts
                values[row] = _parse(number, word, numbers.split(" "))
        if not words:
            raise UnreadableError(1, "no words in it; expected lines of a word and its numbers")
    if len(values) == len(more):
        raise DataError(
            f"{display_name(path)}: none of its {counted(words, 'word')} is a token of train; "
            "they are compared as data.tokenizer and data.lowercase leave train's"
        )
    coverage = Coverage(path, words, size, more=len(more))
    kept = np.stack(list(values.values()))
    return WordVectors(np.array(list(values), dtype=np.int64), kept, coverage), more


def _read_folder(
    path: str, vocabulary: Vocabulary, keep: int, is_token: Callable[[str], bool]
) -> tuple[WordVectors, list[str]]:
    """Read vectors as `read_vectors` does, from the input embeddings of a Hugging Face folder."""
    folder = VectorFolder(path)
    known = set(vocabulary.tokens)
    words = folder.words()
    new = [word for word in words if word not in known and is_token(word)]
    more = list(dict.fromkeys(new))[:keep]
    tokens = [*vocabulary.tokens, *more]
    vectors = folder.vectors_of(tokens)
    has_vector = ~np.isnan(vectors[:, 0])
    has_vector[: len(SPECIAL)] = False
    rows = np.flatnonzero(has_vector)
    coverage = Coverage(path, len(words), folder.size, more=len(more))
    return WordVectors(rows, vectors[rows], coverage), more


@contextmanager
def _opened(path: str) -> Iterator[tuple[Iterator[tuple[int, str]], int]]:
    """Open a file of vectors, and read its first line, which may state both counts.

    Yields:
        The numbered lines that have words. The size of the vectors.

    Raises:
        DataError: If a line isn't valid, for an UnreadableError in the `with` statement, too.
    """
    try:
        with open_input(path) as stream:
            lines = _decodable(TextLines(stream))
            number, first = next(lines, (0, ""))
            if not number:
                raise UnreadableError(
                    1, "the file is empty; expected lines of a word and its numbers"
                )
            fields = BLANKS.split(first.strip(" \t"))
            if len(fields) == 2 and all(field.isdecimal() for field in fields):
                size = int(fields[1])
            else:
                lines = chain([(number, first)], lines)
                size = sum(1 for _ in takewhile(is_number, reversed(fields[1:])))
            if not 1 <= size <= LARGEST_WIDTH:
                raise UnreadableError(
                    number,
                    f"found vectors of {size} numbers; expected a word and 1 to {LARGEST_WIDTH} "
                    "numbers, with blanks between",
                )
            yield lines, size
    except UnreadableError as error:
        raise located(display_name(path), error) from None


def _decodable(lines: TextLines) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a file. Raise UnreadableError for one that can't be decoded."""
    for number, text in lines.numbered():
        problem = lines.problem(number, number)
        if problem is not None:
            raise UnreadableError(number, problem)
        yield number, text


def _split(number: int, text: str, size: int) -> tuple[str, str]:
    """Split a line into its word and its numbers, which are separated by single blanks.

    Args:
        number: Number of the line, for the message.
        text: The line.
        size: Size of the vectors.

    Raises:
        UnreadableError: If the line has too few or too many numbers.
    """
    word, _, numbers = text.rstrip(" \t").partition(" ")
    if numbers.count(" ") == size - 1 and numbers and "  " not in text:
        return word, numbers
    fields = BLANKS.split(text.strip(" \t"))  # with tabs, more blanks, or a word with blanks in it
    extra = len(fields) - 1 - size
    if fields != [""] and (extra < 0 or (extra and all(map(is_number, fields[1 : 1 + extra])))):
        raise UnreadableError(
            number,
            f"found {counted(len(fields) - 1, 'number')} for {quote(fields[0])}; expected {size}, "
            "as in the first line",
        )
    return " ".join(fields[: 1 + extra]), " ".join(fields[1 + extra :])


def _parse(number: int, word: str, fields: list[str]) -> Float32s:
    """Return the vector of a word, (E,).

    Args:
        number: Number of the line, for messages.
        word: The word, for messages.
        fields: Texts of its numbers.

    Raises:
        UnreadableError: If a field isn't a finite number that float32 can hold.
    """
    try:
        values = np.array(fields, dtype=np.float64)
    except ValueError:
        values = np.array([np.nan])
    if not (np.abs(values) <= FLOAT32_MAX).all():  # nan isn't
        bad = next(x for x in fields if not is_number(x) or not abs(float(x)) <= FLOAT32_MAX)
        raise UnreadableError(
            number,
            f"found {quote(bad)} among the numbers of {quote(word)}; expected finite numbers, "
            "such as 0.5",
        )
    return values.astype(np.float32)
