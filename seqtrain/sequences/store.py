"""Stores of sequences: flat arrays of steps, offsets and labels, without padding."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seqtrain.sequences.vocabulary import WordGrams, runs
from seqtrain.tables.blocks import Array, Codes, Float32s, Ints, Mask

FileLines: TypeAlias = tuple[tuple[str, int], ...]

ARRAYS = (
    "values",
    "offsets",
    "labels",
    "lines",
    "groups",
    "spellings",
    "keys",
    "static",
    "vectors",
    "texts",
    "weights",
    "last_lines",
    "left_out",
)
"""Attributes of a SequenceStore that are arrays."""
DEFAULTS = {
    "groups": np.int64(-1),
    "weights": np.float32(1),
    "last_lines": np.int64(0),
    "left_out": np.int64(0),
}
"""Value of each array that a store may lack while others have it."""
BLOCK = 2**24
"""Size in bytes of the parts in which large arrays are processed."""


def blocks(array: Array) -> Iterator[Array]:
    """Yield consecutive parts of about BLOCK bytes of an array. An empty array is one part."""
    size = max(1, BLOCK * len(array) // max(1, array.nbytes))
    for start in range(0, max(1, len(array)), size):
        yield array[start : start + size]


def counts_of(ids: Array, size: int) -> Ints:
    """Return how often each id from 0 to `size` - 1 occurs, (size,)."""
    return np.bincount(ids, minlength=size)


def row_numbers(count: int) -> Ints:
    """Return the numbers from 0 to `count` - 1, as int32 if they fit, else as int64."""
    return np.arange(count, dtype=np.int32 if count < 2**31 - 1 else np.int64)


def true_rows(chosen: Mask) -> Ints:
    """Return the indices at which the mask `chosen` is True, ascending."""
    return np.flatnonzero(chosen).astype(row_numbers(0).dtype)


def run_starts(ordered: Ints) -> Ints:
    """Return the index at which each distinct value of a sorted array begins."""
    return np.flatnonzero(np.append(ordered[:1] == ordered[:1], np.diff(ordered)))


class StoredSequence(tuple[Array, "int | Array"]):
    """One sequence of a store: the pair (steps, encoded labels).

    Attributes:
        source: The store and the row number. `collate` copies the other arrays from there.
    """

    source: tuple[SequenceStore, int]


if TYPE_CHECKING or "torch.utils.data" in sys.modules:
    from torch.utils.data import Dataset

    _Dataset = Dataset["StoredSequence"]
else:  # torch isn't loaded to look at data, and a DataLoader needs no base class
    _Dataset = object


@dataclass(frozen=True)
class SequenceStore(_Dataset):
    """Sequences of different lengths. It is a map-style torch Dataset.

    Attributes:
        values: Steps of all sequences: ids, or vectors of numbers.
        offsets: Start of each sequence in `values`. The last entry is the number of steps.
        labels: Class index of each sequence. In a multi-label task, one number for each class, as
            `LabelSet.encode` returns them.
        lines: Line of each sequence, from 1. If there are several files, their lines are counted
            together. In a folder, rows are counted instead of lines.
        groups: Number of the group (conversation, session) of each sequence, or -1 without one. The
            rows of a group are in their order in time. None if no sequence has a group.
        spellings: Index in `words` of the unknown word at each step, or -1 at other steps. None
            without subwords.
        words: Character n-grams of the words that the vocabulary lacks, or None without subwords.
        files: Pairs of the name of a file and the number of lines of the files before it.
        keys: Key of each sequence, as `row_keys` returns them: equal for equal sequences. Or None.
        static: Row features of each sequence, as `ColumnTable` encodes them, or None.
        vectors: Vector of each text by model.pretrained, or None without it.
        texts: Text of each sequence until its vector is computed, else None.
        weights: Weight of each sequence in the loss and in every solver, or None if all are 1.
        last_lines: Last line of each window of an id, or None if an id is one sequence.
        left_out: Number of steps of each sequence that data.max_length leaves out, or None if none
            is cut.

    Shape:
        values: (N,) int32, or (N, F) float32. offsets: (B + 1,). labels: (B,), or (B, C) int8.
        lines, groups, keys, last_lines, left_out: (B,). weights: (B,) float32. spellings: (N,)
        int32. static: (B, K) float32. vectors: (B, E) float32. texts: (B,). B sequences, N steps of
        all sequences, F numbers of a step, C classes, K numbers of row features, E of a vector.
    """

    values: Array
    offsets: Ints
    labels: Array
    lines: Ints
    groups: Ints | None = None
    spellings: Codes | None = None
    words: WordGrams | None = None
    files: FileLines = ()
    keys: Ints | None = None
    static: Float32s | None = None
    vectors: Float32s | None = None
    texts: npt.NDArray[np.object_] | None = None
    weights: Float32s | None = None
    last_lines: Ints | None = None
    left_out: Ints | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def lengths(self) -> Ints:
        """Number of steps of each sequence, (B,)."""
        return np.diff(self.offsets)

    @cached_property
    def combinations(self) -> Ints:
        """A number for each sequence, (B,). It is equal for sequences with the same labels."""
        if self.labels.ndim == 1:
            return self.labels
        drawn = np.random.default_rng(0).integers(1, 2**62, self.labels.shape[1])
        return self.labels.astype(np.int64) @ drawn

    def place(self, row: int) -> str:
        """Return the text "FILE:LINE" for a row, or its line if the store names no files."""
        line = int(self.lines[row])
        before = [(name, start) for name, start in self.files if start < line]
        if before:
            return f"{before[-1][0]}:{line - before[-1][1]}"
        return f"{line}"

    def __getitem__(self, row: int) -> StoredSequence:
        """Return the steps of a row, (T,) or (T, F), and its encoded labels.

        A negative number counts from the end.

        Raises:
            IndexError: If there is no such row.
        """
        number = operator.index(row)
        if not -len(self) <= number < len(self):
            raise IndexError(f"row {number}: expected {-len(self)} to {len(self) - 1}")
        number %= len(self)
        start = self.offsets[number]
        stop = self.offsets[number + 1]
        label = self.labels[number]
        found = StoredSequence((self.values[start:stop], label if label.ndim else int(label)))
        found.source = self, number
        return found

    def selection(self, rows: Ints) -> SequenceStore:
        """Return the rows with these numbers, in this order, as a new store in memory."""
        rows = np.asarray(rows)
        starts = self.offsets[rows]
        return self.windows(rows, starts, self.offsets[rows + 1] - starts)

    __getitems__ = selection  # the name by which a torch DataLoader asks for a batch

    def windows(self, rows: Ints, starts: Ints, lengths: Ints) -> SequenceStore:
        """Cut windows of consecutive steps out of sequences, and return them as a new store.

        Args:
            rows: Row number of the sequence of each window, (P,).
            starts: Index in `values` of the first step of each window, (P,).
            lengths: Number of steps of each window, (P,).
        """
        steps, offsets = runs(starts, lengths)
        taken: dict[str, Any] = {}
        for name, array in self.arrays().items():
            taken[name] = array[steps if name in ("values", "spellings") else rows]
        return replace(self, **taken | {"offsets": offsets})

    def arrays(self) -> dict[str, Array]:
        """Return a dict of the attributes that are arrays, without those that are None."""
        found = {name: getattr(self, name) for name in ARRAYS}
        return {name: array for name, array in found.items() if array is not None}


def stacked(
    stores: Iterable[SequenceStore], files: FileLines = (), words: WordGrams | None = None
) -> SequenceStore:
    """Return the rows of several stores as one store.

    Args:
        stores: At least one store. All have arrays of the same names and types. Numbers of groups,
            lines and spellings are used as they are.
        files: Attribute `files` of the result.
        words: Attribute `words` of the result.
    """
    parts = list(stores)
    filled = [part for part in parts if len(part)] or parts[:1]
    found = {}
    for name in ARRAYS:
        arrays = {index: getattr(part, name) for index, part in enumerate(filled)}
        absent = [index for index, array in arrays.items() if array is None]
        if name == "offsets" or len(absent) == len(filled):
            continue
        for index in absent:
            arrays[index] = np.full(len(filled[index]), DEFAULTS[name])
        found[name] = np.concatenate(list(arrays.values()))
    lengths = np.concatenate([part.lengths for part in filled])
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    return SequenceStore(**found, offsets=offsets, files=files, words=words)


def joined_stores(stores: Sequence[SequenceStore]) -> SequenceStore:
    """Return the rows of several stores as one store without groups and keys.

    Unlike `stacked`, it renumbers lines and spellings, so that they fit the joined files and words.

    Args:
        stores: At least one store.
    """
    parts, tables, files, end = list[SequenceStore](), list[WordGrams](), list[tuple[str, int]](), 0
    for store in stores:
        spellings = store.spellings
        if store.words is not None and spellings is not None:
            before = np.int32(sum(map(len, tables)))
            shifted = np.where(spellings < 0, spellings, spellings + before)
            tables = [*tables, store.words]
            spellings = shifted.astype(np.int32)
        files += [(name, start + end) for name, start in store.files]
        lines = store.lines + end
        end += int(store.lines.max(initial=0))
        parts.append(replace(store, lines=lines, keys=None, groups=None, spellings=spellings))
    return stacked(parts, tuple(files), WordGrams.concatenate(tables) if tables else None)


def split_sequences(store: SequenceStore, steps: int | None) -> SequenceStore:
    """Return a store in which long sequences are split into shorter ones of about equal length.

    Each piece has the label and the line number of its sequence. The time steps aren't copied.

    Args:
        store: The sequences.
        steps: Largest number of time steps of a sequence, or None to return `store` itself.
    """
    if steps is None:
        return store
    pieces = -(-store.lengths // steps)
    row = np.arange(len(store)).repeat(pieces)
    number = np.arange(len(row)) - (pieces.cumsum() - pieces)[row]
    starts = store.offsets[row] + number * store.lengths[row] // pieces[row]
    offsets = np.append(starts, store.offsets[-1])
    return SequenceStore(
        store.values,
        offsets,
        store.labels[row],
        store.lines[row],
        files=store.files,
        spellings=store.spellings,
        words=store.words,
    )
