"""How words that the vocabulary lacks are spelled: buckets of their character n-grams.

V words, G n-grams of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

BUCKETS = 2**15
"""Rows of the table that n-grams share."""
AT_ONCE = 2**14
"""Words that are cut together."""
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
    """Return the n-grams of each "<word>", of so many characters at least and at most, by size.

    Their buckets are the CRC-32 of their UTF-8, modulo BUCKETS.

    Reference:
        Bojanowski et al. 2017, arXiv:1607.04606, section 3.2, with another hash.
    """
    most, found = MOST_GRAMS + longest, [WordGrams(np.zeros(0, np.int32), np.zeros(1, np.int64))]
    marked = (f"<{word}>"[:most] if word else "" for word in words)
    while some := list(islice(marked, AT_ONCE)):
        found.append(_grams(some, shortest, longest))
    return WordGrams.concatenate(found)


def _grams(marked: list[str], shortest: int, longest: int) -> WordGrams:
    content = "".join(marked).encode("utf-8", "surrogatepass")
    data = np.frombuffer(content + b"\0\0\0", np.uint8)  # a character has four at most
    begins = np.flatnonzero((data[: len(content)] & 0xC0) != 0x80)
    width = np.diff(begins, append=len(content))
    word = np.arange(len(marked)).repeat([len(each) for each in marked])
    # The checksum of the n-gram at each character, which grows by one character after another.
    checksum, found = np.full(len(word), ALL_ONES), list[tuple[npt.NDArray[Any], ...]]()
    for size in range(1, longest + 1):
        checksum, last = checksum[: len(word) - size + 1], slice(size - 1, None)
        for byte in range(4):
            longer = CRC[(checksum ^ data[begins[last] + byte]) & 0xFF] ^ (checksum >> 8)
            checksum = np.where(byte < width[last], longer, checksum)
        within = word[: len(checksum)] == word[last]
        if size >= shortest:
            found.append((word[: len(checksum)][within], checksum[within] ^ ALL_ONES))
    words, checksums = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.argsort(words, kind="stable")
    counts = np.bincount(words, minlength=len(marked))
    rank = np.arange(len(order)) - (counts.cumsum() - counts).repeat(counts)
    buckets = checksums[order][rank < MOST_GRAMS] % BUCKETS
    offsets = np.append(0, np.minimum(counts, MOST_GRAMS).cumsum())
    return WordGrams(buckets.astype(np.int32), offsets)


def _crc_table() -> npt.NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1)
    return table


ALL_ONES = np.uint32(0xFFFFFFFF)
CRC = _crc_table()
"""What a byte adds to a checksum (ISO 3309, as zlib has it)."""
