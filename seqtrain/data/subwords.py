"""The character n-grams of words, as numbers of buckets: so that words unseen in train say much."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from zlib import crc32

import numpy as np
import numpy.typing as npt

BUCKETS = 2**15
"""Rows of the table that n-grams share."""
MOST_GRAMS = 1024
"""n-grams of a word that are read: those at its beginning."""


@dataclass(frozen=True, eq=False)
class WordGrams:
    """The buckets of the n-grams of some words, side by side.

    Attributes:
        buckets: of all words, each from 0 to BUCKETS - 1.
        offsets: where each word's begin; the last entry is their number.

    Shape:
        buckets: (G,) int32. offsets: (V + 1,) int64.
    """

    buckets: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WordGrams):
            return NotImplemented
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(
            self.buckets, other.buckets
        )

    __hash__ = None  # type: ignore[assignment] # as of all that hold arrays

    @classmethod
    def joined(cls, tables: Sequence[WordGrams]) -> WordGrams:
        """Return the words of all tables, at least one, in one."""
        buckets = np.concatenate([table.buckets for table in tables])
        counts = np.concatenate([np.diff(table.offsets) for table in tables])
        return cls(buckets, np.append(0, counts.cumsum()))


def word_grams(words: Iterable[str], shortest: int, longest: int) -> WordGrams:
    """Return the buckets of words.

    Args:
        words: without marks of their ends; an empty one has no n-grams.
        shortest: characters of an n-gram at least.
        longest: characters of an n-gram at most.
    """
    grams = [buckets_of(word, shortest, longest) for word in words]
    buckets = np.fromiter(chain.from_iterable(grams), dtype=np.int32)
    offsets = np.zeros(len(grams) + 1, dtype=np.int64)
    np.cumsum([len(each) for each in grams], out=offsets[1:])
    return WordGrams(buckets, offsets)


def buckets_of(word: str, shortest: int, longest: int) -> list[int]:
    """Return the buckets of the n-grams of "<word>": CRC-32 of their UTF-8, modulo BUCKETS.

    Reference:
        Bojanowski et al. 2017, arXiv:1607.04606, section 3.2, with another hash.
    """
    if not word:
        return []
    marked = f"<{word}>"
    places = (
        (start, start + size)
        for size in range(shortest, longest + 1)
        for start in range(len(marked) - size + 1)
    )
    grams = [marked[start:end] for (start, end), _ in zip(places, range(MOST_GRAMS), strict=False)]
    return [crc32(gram.encode("utf-8", "surrogatepass")) % BUCKETS for gram in grams]
