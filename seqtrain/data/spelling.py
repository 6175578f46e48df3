"""How words that the vocabulary lacks are spelled: buckets of their character n-grams.

V words, G n-grams of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

BUCKETS = 2**15
"""Rows of the table that n-grams share."""
MOST_GRAMS = 1024
"""n-grams of a word that are read: those at its beginning."""


@dataclass(frozen=True, eq=False)
class WordGrams:
    """Buckets of the n-grams of some words, (G,) int32, and where each word's begin, (V + 1,)."""

    buckets: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def gather(
        self, words: npt.NDArray[np.integer[Any]]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the buckets of some words one after another, and how many each has."""
        starts = self.offsets[words]
        counts = self.offsets[words + 1] - starts
        ends = counts.cumsum()
        index = np.arange(ends[-1] if len(ends) else 0) + (starts - ends + counts).repeat(counts)
        return self.buckets[index].astype(np.int64), counts

    @classmethod
    def concatenate(cls, tables: Sequence[WordGrams]) -> WordGrams:
        """Return the words of all tables, at least one, in one."""
        buckets = np.concatenate([table.buckets for table in tables])
        counts = np.concatenate([np.diff(table.offsets) for table in tables])
        return cls(buckets, np.append(0, counts.cumsum()))


def word_grams(words: Iterable[str], shortest: int, longest: int) -> WordGrams:
    """Return the n-grams of words, of so many characters at least and at most."""
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
    marked = f"<{word}>" if word else ""
    grams = (
        marked[start : start + size]
        for size in range(shortest, longest + 1)
        for start in range(len(marked) - size + 1)
    )
    read = islice(grams, MOST_GRAMS)
    return [crc32(gram.encode("utf-8", "surrogatepass")) % BUCKETS for gram in read]
