"""How words that the vocabulary lacks are spelled: buckets of their character n-grams.

V words, G n-grams of all of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

BUCKETS = 2**15
"""Buckets of n-grams; the table that they share has a row for each, or for several."""
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

    def table_rows(self) -> int:
        """Return how many rows suit these n-grams: a power of two, at least two for each."""
        distinct = len(np.unique(self.buckets))
        return min(BUCKETS, 1 << (2 * distinct).bit_length())

    @classmethod
    def concatenate(cls, tables: Sequence[WordGrams]) -> WordGrams:
        """Return the words of all tables, at least one, in one."""
        buckets = np.concatenate([table.buckets for table in tables])
        counts = np.concatenate([np.diff(table.offsets) for table in tables])
        return cls(buckets, np.append(0, counts.cumsum()))


def word_grams(words: Iterable[str], shortest: int, longest: int) -> WordGrams:
    """Return the n-grams of each "<word>", of so many characters at least and at most, by size.

    Their buckets are the CRC-32 of their UTF-8, modulo BUCKETS; an empty word has none.

    Reference:
        Bojanowski et al. 2017, arXiv:1607.04606, section 3.2, with another hash.
    """
    sums, ends, sizes = array("I"), [0], range(shortest, longest + 1)
    for word in words:
        marked = f"<{word}>"[: MOST_GRAMS + longest] if word else ""
        data = marked.encode("utf-8", "surrogatepass")
        at: Sequence[int] = range(len(data) + 1)  # where each character begins
        if not marked.isascii():
            at = [i for i in at if i == len(data) or data[i] & 0xC0 != 0x80]
        grams = [data[i:j] for size in sizes for i, j in zip(at, at[size:], strict=False)]
        sums.extend(map(crc32, grams[:MOST_GRAMS]))
        ends.append(len(sums))
    buckets = np.frombuffer(sums, dtype=np.uint32) % BUCKETS
    return WordGrams(buckets.astype(np.int32), np.array(ends))
