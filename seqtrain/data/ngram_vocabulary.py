"""N-grams of encoded sequences: their keys, and the choice of a vocabulary on train.

A boundary before the first step and after the last step counts as a step for n-grams of two ids and
more. The key of an n-gram has 64 bits, is computed id by id, and is the same on every machine.

N steps of all sequences, B sequences, K n-grams of ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seqtrain.data.store import Ints, run_starts
from seqtrain.data.vocabulary import BUCKETS, PAD, UNK, WordGrams
from seqtrain.errors import DataError

BOUNDARY = PAD
"""Id of the boundary before the first and after the last step. No step has it."""
NO_KEY = 0
"""Key of an n-gram of no ids, with which `folded` starts."""
MULTIPLIER = -7046029254386353131
"""2^64 divided by the golden ratio, odd, as a signed number (Knuth, volume 3, section 6.4)."""
LOW_HALF = 0xFFFF_FFFF
SPELLING_SHARE = 1 / 3
"""Share of n-grams of characters in the squared norm of a sequence's values."""
CHUNK_STEPS = 2**21
"""Steps whose n-grams are counted at a time."""
MOST_DISTINCT = 2**24
"""Largest number of distinct n-grams counted at a time. The rarest so far are dropped above it."""
ONLY = -1
"""Number of the column if a step is a single id."""
COLUMN = 2**32
"""Distance between the ids of two columns."""


class GramColumn(NamedTuple):
    """N-grams of one column of tokens.

    Attributes:
        column: Number of the column, or `ONLY` if a step is a single id.
        shortest: Number of ids of the shortest n-gram.
        longest: Number of ids of the longest n-gram.
        tokens: First id that counts as <unk>, because the vocabulary got it later (`--init-from`);
            or None.
    """

    column: int
    shortest: int
    longest: int
    tokens: int | None = None


@dataclass(frozen=True, eq=False)
class NgramVocabulary:
    """The n-grams that a model knows.

    Attributes:
        columns: Token columns whose n-grams count, at least one.
        keys: Keys in ascending order, (K,) int64.
        idf: Inverse document frequency of each n-gram, (K,) float32:
            ln((1 + sequences) / (1 + sequences with it)) + 1. With n-grams of characters their
            buckets follow, (K + BUCKETS,); a bucket that train lacks has 0.

    Raises:
        ValueError: If the arrays can't be those of a vocabulary.
    """

    columns: tuple[GramColumn, ...]
    keys: Ints
    idf: npt.NDArray[np.float32]

    def __post_init__(self) -> None:
        for _, shortest, longest, _ in self.columns:
            if not 1 <= shortest <= longest:
                raise ValueError(f"n-grams of {shortest} to {longest} ids")
        if self.keys.dtype != np.int64 or self.idf.dtype != np.float32:
            raise ValueError(f"n-grams: found {self.keys.dtype} and {self.idf.dtype}")
        sizes = [(self.keys.size,), (self.keys.size + BUCKETS,)]
        if self.keys.ndim != 1 or not self.keys.size or self.idf.shape not in sizes:
            raise ValueError(f"n-grams: found {self.keys.shape} keys and {self.idf.shape} weights")
        if not (self.keys[1:] > self.keys[:-1]).all():
            raise ValueError("n-grams: the keys don't ascend")
        unseen = np.arange(len(self.idf)) >= len(self.keys)
        if not (np.isfinite(self.idf) & ((self.idf >= 1) | unseen & (self.idf == 0))).all():
            raise ValueError("n-grams: an idf isn't a finite number from 1")

    def __len__(self) -> int:
        return len(self.idf)

    @property
    def sizes(self) -> tuple[int, int]:
        """Ids of the shortest and of the longest n-gram."""
        return min(x.shortest for x in self.columns), max(x.longest for x in self.columns)

    @property
    def has_spelling(self) -> bool:
        """True if it also holds n-grams of characters within words."""
        return len(self.idf) > len(self.keys)

    def __eq__(self, other: object) -> bool:
        names = ("columns", "keys", "idf")
        return isinstance(other, NgramVocabulary) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in names
        )

    __hash__ = None  # type: ignore[assignment] # as of all that hold arrays

    def description(self) -> dict[str, Any]:
        """Return the vocabulary without its arrays as JSON values, for `described`."""
        shortest, longest = self.sizes
        found = {"shortest": shortest, "longest": longest, "number": len(self.keys)}
        column, *_, tokens = self.columns[0]
        if column != ONLY:
            return found | {"columns": self.columns}
        return found if tokens is None else found | {"tokens": tokens}

    @classmethod
    def described(cls, values: Mapping[str, Any], keys: Ints, idf: Any) -> NgramVocabulary:
        """Build a vocabulary from the values of `description` and its arrays."""
        one = ONLY, values["shortest"], values["longest"], values.get("tokens")
        columns = tuple(GramColumn(*column) for column in values.get("columns", [one]))
        return cls(columns, keys, idf)


def streams(
    values: npt.NDArray[Any], columns: Iterable[GramColumn]
) -> Iterator[tuple[Ints, int, int]]:
    """Yield the ids of each column, and the sizes of its shortest and longest n-gram.

    The ids of different columns are disjoint, so that their n-grams differ.

    Shape:
        values: (N,) ids, or (N, K) with columns. Yields (N,) int64 each.
    """
    for column, shortest, longest, limit in columns:
        ids = (values if column == ONLY else values[:, column]).astype(np.int64)
        if limit is not None:
            ids = ids - (ids - UNK) * (ids >= limit)
        yield ids + max(0, column) * COLUMN, shortest, longest


def folded(keys: Ints, ids: Ints) -> Ints:
    """Return the keys of n-grams that are one id longer, int64.

    Args:
        keys: Keys of the n-grams.
        ids: Id that follows each n-gram.
    """
    mixed: Ints = (keys + ids + 1) * MULTIPLIER  # wraps around
    return mixed ^ ((mixed >> 32) & LOW_HALF)


def fit_ngrams(
    values: npt.NDArray[Any], offsets: Ints, *columns: GramColumn, most: int
) -> NgramVocabulary:
    """Choose the most frequent n-grams. Equally frequent ones are chosen by ascending key.

    Shape:
        values: (N,), or with columns (N, K). offsets: (B + 1,).

    Raises:
        DataError: If all sequences are too short for an n-gram.
    """
    found: list[tuple[Ints, Ints, Ints]] = []
    for part_values, part_offsets in _parts(values, offsets):
        for rows, keys in row_keys(part_values, part_offsets, columns):
            found.append(_counted(rows, keys))
            if sum(len(each[0]) for each in found) > 2 * MOST_DISTINCT:
                found = [_total(found)]
    keys, counts, holders = _total(found)
    if not len(keys):
        shortest = min(column.shortest for column in columns)
        raise DataError(
            f"model.ngrams: no sequence of train has {shortest - 2} tokens, as an n-gram of "
            f"{shortest} needs (both ends count); lower it"
        )
    if len(keys) > most:
        kept = np.sort(np.lexsort((keys, -counts))[:most])
        keys, holders = keys[kept], holders[kept]
    return NgramVocabulary(columns, keys, _idf(holders, offsets))


def _idf(holders: Ints, offsets: Ints) -> npt.NDArray[np.float32]:
    idf = np.log(len(offsets) / (1 + holders)) + 1
    return idf.astype(np.float32)


def with_spelling(
    vocabulary: NgramVocabulary, words: npt.NDArray[np.int64], offsets: Ints, grams: WordGrams
) -> NgramVocabulary:
    """Return a vocabulary that also holds the n-grams of characters within words.

    Shape:
        words: word at each step, (N,). offsets: (B + 1,).
    """
    holders = np.zeros(BUCKETS, dtype=np.int64)
    for some, starts in _parts(words, offsets):
        row = np.arange(len(starts) - 1).repeat(np.diff(starts))
        row, word = np.divmod(np.unique(row * len(grams) + some), len(grams))
        buckets, counts = grams.gather(word)
        pairs = np.unique(row.repeat(counts) * BUCKETS + buckets)
        holders += np.bincount(pairs % BUCKETS, minlength=BUCKETS)
    idf = np.where(holders, _idf(holders, offsets), np.float32(0))
    return replace(vocabulary, idf=np.append(vocabulary.idf, idf))


def row_keys(
    values: npt.NDArray[Any], offsets: Ints, columns: Iterable[GramColumn]
) -> Iterator[tuple[Ints, Ints]]:
    """Yield the row and the key of every n-gram, for each size of n-grams, in order."""
    lengths = np.diff(offsets)
    row = np.arange(len(lengths)).repeat(lengths + 2)
    steps = np.arange(len(values)) + 2 * np.arange(len(lengths)).repeat(lengths) + 1
    for ids, shortest, longest in streams(values, columns):
        stream = np.full(len(row), BOUNDARY, dtype=np.int64)
        stream[steps] = ids
        keys = folded(np.full(len(row), NO_KEY), stream)
        if shortest == 1:
            yield row[steps], keys[steps]
        for size in range(2, longest + 1):
            keys = folded(keys[:-1], stream[size - 1 :])
            within = row[: len(keys)] == row[size - 1 :]
            if size >= shortest:
                yield row[: len(keys)][within], keys[within]


def _counted(rows: Ints, keys: Ints) -> tuple[Ints, Ints, Ints]:
    """Return distinct keys, how often each occurs, and in how many rows; rows ascend."""
    order = np.argsort(keys, kind="stable")
    keys, rows = keys[order], rows[order]
    is_new = np.ones(len(keys), dtype=np.int64)
    is_new[1:] = (keys[1:] != keys[:-1]) | (rows[1:] != rows[:-1])
    starts = run_starts(keys)
    holders = np.add.reduceat(is_new, starts)
    return keys[starts], np.diff(np.append(starts, len(keys))), holders


def _total(parts: list[tuple[Ints, Ints, Ints]]) -> tuple[Ints, Ints, Ints]:
    arrays = zip(*parts, strict=True)
    keys, counts, holders = (np.concatenate([np.zeros(0, np.int64), *each]) for each in arrays)
    order = np.argsort(keys)
    starts = run_starts(keys[order])
    distinct = keys[order][starts]
    total, rows = (np.add.reduceat(each[order], starts) for each in (counts, holders))
    if len(distinct) > MOST_DISTINCT:
        kept = np.sort(np.lexsort((distinct, -total))[:MOST_DISTINCT])
        distinct, total, rows = distinct[kept], total[kept], rows[kept]
    return distinct, total, rows


def _parts(values: npt.NDArray[Any], offsets: Ints) -> Iterator[tuple[npt.NDArray[Any], Ints]]:
    """Yield sequences in parts of about CHUNK_STEPS. A longer sequence is a part."""
    chunk: Ints = offsets[1:] // CHUNK_STEPS
    cuts = [0, *(np.flatnonzero(np.diff(chunk)) + 1).tolist(), len(chunk)]
    for first, stop in pairwise(cuts):
        if first < stop:
            start, end = offsets[first], offsets[stop]
            yield np.asarray(values[start:end]), offsets[first : stop + 1] - start


@dataclass(frozen=True, eq=False)
class NgramValues:
    """Known n-grams of sequences, ordered by row and n-gram id.

    Attributes:
        rows: sequence of each n-gram, (P,) int64.
        ngrams: n-gram ids, (P,) int64.
        values: (1 + ln(occurrences)) * idf, scaled so that the values of a sequence are a vector of
            length 1, (P,) float32. With spelling, character n-grams have a fixed share of its
            square.
    """

    rows: Ints
    ngrams: Ints
    values: npt.NDArray[np.float32]


def ngram_values(
    ids: npt.NDArray[Any],
    offsets: Ints,
    vocabulary: NgramVocabulary,
    words: WordGrams | None = None,
    spellings: npt.NDArray[Any] | None = None,
    unknown: WordGrams | None = None,
) -> NgramValues:
    """Return the known n-grams of sequences, and their values.

    Args:
        ids: ids of all sequences, one sequence after another.
        offsets: beginning of each sequence, and the end of the last.
        vocabulary: the known n-grams.
        words: character n-grams of the words of the vocabulary, or None without subwords.
        spellings: number of the unknown word at each step, -1 for other steps, or None.
        unknown: character n-grams of the unknown words, or None.

    Shape:
        ids: (N,), or (N, K) with K columns. offsets: (B + 1,). spellings: (N,).
    """
    count, known = len(offsets) - 1, len(vocabulary.keys)
    found = zip(*row_keys(ids, offsets, vocabulary.columns), strict=True)
    row, keys = (np.concatenate(arrays) for arrays in found)
    distinct, place = np.unique(keys, return_inverse=True)  # sorted keys are found faster
    index = np.searchsorted(vocabulary.keys, distinct).clip(max=known - 1)
    index = np.where(vocabulary.keys[index] == distinct, index, -1)[place]
    row, index, share = row[index >= 0], index[index >= 0], 0.0
    if vocabulary.has_spelling and words is not None:
        share = SPELLING_SHARE
        spelled = ids.astype(np.int64)
        if spellings is not None and unknown is not None:
            spelled = np.where(spellings < 0, spelled, len(words) + spellings)
            words = words.concatenate([words, unknown])
        buckets, counts = words.gather(spelled)
        row = np.append(row, np.arange(count).repeat(np.diff(offsets)).repeat(counts))
        index = np.append(index, known + buckets)
    pairs, times = np.unique(row * len(vocabulary) + index, return_counts=True)
    row, index = np.divmod(pairs, len(vocabulary))
    values = (1 + np.log(times)) * vocabulary.idf[index]
    vector = 2 * row + (index >= known)  # n-grams of tokens, or of characters
    squares = np.bincount(vector, values**2, minlength=2 * count).reshape(-1, 2)
    scales = np.sqrt([1 - share, share] / np.where(squares > 0, squares, 1)).ravel()
    return NgramValues(row, index, (values * scales[vector]).astype(np.float32))
