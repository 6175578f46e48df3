"""Stores of sequences: flat arrays of steps, offsets and labels, without padding.

Small arrays grow in memory, large ones in a temporary file.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seqtrain.data.vocabulary import WordGrams
from seqtrain.errors import RunError

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
FileLines: TypeAlias = tuple[tuple[str, int], ...]

ARRAYS = ("values", "offsets", "labels", "lines", "groups", "spellings", "keys", "static")
"""Attributes that are arrays. The last four can be None."""
BYTES_PER_ROW = 64
"""Memory that a row takes while rows are selected."""
IN_MEMORY = 2**26
"""Bytes above which an array is kept in a file."""
BLOCK = 2**24
"""Bytes that are worked on at a time."""
DISK = Path("/var/tmp")
"""Folder of temporary files without $TMPDIR: on many systems /tmp is memory."""
COMPARED, PASSES = 2**20, 16
"""Keys compared at once, and the largest number of passes over all keys."""


class GrowingArray:
    """An array that grows by appended rows in bounded memory."""

    def __init__(self, dtype: npt.DTypeLike, shape: tuple[int, ...] = ()) -> None:
        self._dtype, self._shape = np.dtype(dtype), shape
        self._content = bytearray()
        self._file: IO[bytes] | None = None

    def append_rows(self, rows: Array) -> None:
        """Append rows.

        Raises:
            RunError: If there is no room for the temporary file.
        """
        self._content += np.ascontiguousarray(rows, dtype=self._dtype).data
        if len(self._content) >= IN_MEMORY:
            self._move_to_file()

    def build(self) -> Array:
        """Return the appended rows, memory-mapped if large. Nothing can be appended afterwards."""
        if self._file is None:
            return np.frombuffer(self._content, dtype=self._dtype).reshape(-1, *self._shape)
        self._move_to_file()
        with self._file as file:
            return np.memmap(file, dtype=self._dtype, mode="r+").reshape(-1, *self._shape)

    def _move_to_file(self) -> None:
        try:
            if self._file is None:
                folder = DISK if "TMPDIR" not in os.environ and DISK.is_dir() else None
                self._file = TemporaryFile(dir=folder)  # noqa: SIM115 # closed once it is mapped
            self._file.write(self._content)
            self._file.flush()
        except OSError as error:
            raise RunError(
                f"a temporary file for encoded data: {error.strerror}; "
                "set TMPDIR to a folder with more room"
            ) from None
        self._content.clear()


def blocks(array: Array) -> Iterator[Array]:
    """Yield an array in at least one part of about BLOCK bytes."""
    size = max(1, BLOCK * len(array) // max(1, array.nbytes))
    for start in range(0, max(1, len(array)), size):
        yield np.asarray(array[start : start + size])


def concatenate(parts: Iterable[Array]) -> Array:
    """Return at least one array of the same type as one array, memory-mapped if large."""
    whole: GrowingArray | None = None
    for part in parts:
        whole = whole or GrowingArray(part.dtype, part.shape[1:])
        whole.append_rows(part)
    assert whole is not None
    return whole.build()


def counts_of(ids: Array, size: int) -> Ints:
    """Return how often each id from 0 to size - 1 occurs."""
    counts = np.zeros(size, dtype=np.int64)
    for block in blocks(ids):
        counts += np.bincount(block, minlength=size)
    return counts


def row_numbers(count: int) -> Ints:
    """Return 0, 1, 2, … up to `count`, in 32 bits each if these suffice."""
    numbers: Ints = np.arange(count, dtype=np.int32 if count < 2**31 - 1 else np.int64)
    return numbers


def true_rows(chosen: npt.NDArray[np.bool_]) -> Ints:
    """Return the indices of True in a mask, ascending."""
    found, start = [row_numbers(0)], 0
    for block in blocks(chosen):
        found.append((np.flatnonzero(block) + start).astype(row_numbers(0).dtype))
        start += len(block)
    return np.concatenate(found)


def equal_keys(keys: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield parts of the rows, sorted by key, with the start of each key. A key is in one part."""
    parts = min(PASSES, 1 + len(keys) // COMPARED)
    for part in range(parts):
        rows = true_rows(concatenate(block % parts == part for block in blocks(keys)))
        order = np.argsort(keys[rows], kind="stable")
        ordered = keys[rows][order]
        yield rows[order], run_starts(ordered)


def run_starts(ordered: Ints) -> Ints:
    """Return where each distinct value of an ordered array begins."""
    return np.flatnonzero(np.append(ordered[:1] == ordered[:1], np.diff(ordered)))


class StoredSequence(tuple[Array, "int | Array"]):
    """One sequence of a store: a pair of its steps and its encoded labels.

    Attributes:
        source: The store and the row. `store_of_items` takes all other arrays from there.
    """

    source: tuple[SequenceStore, int]


@dataclass(frozen=True)
class SequenceStore:
    """Sequences of unequal length. A map-style torch Dataset.

    Attributes:
        values: Steps of all sequences: ids, or vectors of numbers.
        offsets: Start of each sequence in `values`. The last entry is the number of steps.
        labels: Class index of each sequence; in a multi-label task a 0 or 1 for each class.
        lines: Line of each sequence in its file, from 1, counted on through several files. For a
            folder, the number of the row through its files.
        groups: Number of the group (conversation, session) of each sequence, or -1. The rows of a
            group are in order. None if there are no groups.
        spellings: Index in `words` of each step that is <unk>, else -1. None without subwords.
        words: Character n-grams of the words that the vocabulary lacks, or None.
        files: Name of each file, with the number of lines of the files before it.
        keys: Key of each sequence, as `row_keys` returns them, or None.
        static: Row features of each sequence, as `ColumnTable` encodes them, or None.

    Shape:
        values: (N,) int32, or (N, C) float32. offsets: (B + 1,). labels: (B,), or (B, C) int8.
        lines, groups, keys: (B,). spellings: (N,) int32. static: (B, K) float32.
    """

    values: Array
    offsets: Ints
    labels: Array
    lines: Ints
    groups: Ints | None = None
    spellings: npt.NDArray[np.int32] | None = None
    words: WordGrams | None = None
    files: FileLines = ()
    keys: Ints | None = None
    static: npt.NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def lengths(self) -> Ints:
        """Steps of each sequence, (B,); memory-mapped where they are many."""
        ends, size = self.offsets, BLOCK // 8
        return concatenate(np.diff(ends[i : i + size + 1]) for i in range(0, len(ends), size))

    @cached_property
    def combinations(self) -> Ints:
        """A number for each sequence, equal where all of its labels are, (B,)."""
        if self.labels.ndim == 1:
            return self.labels
        drawn = np.random.default_rng(0).integers(1, 2**62, self.labels.shape[1])
        return concatenate(block.astype(np.int64) @ drawn for block in blocks(self.labels))

    def place(self, row: int) -> str:
        """Return FILE:LINE of a row, or its line if the store has no files."""
        line = int(self.lines[row])
        before = [(name, start) for name, start in self.files if start < line]
        return f"{before[-1][0]}:{line - before[-1][1]}" if before else f"{line}"

    def __getitem__(self, row: int) -> StoredSequence:
        """Return one sequence, (T,) or (T, C), and its encoded labels. Negative rows count back.

        Raises:
            IndexError: If there is no such row.
        """
        number = operator.index(row)
        if not -len(self) <= number < len(self):
            raise IndexError(f"row {number}: expected {-len(self)} to {len(self) - 1}")
        number %= len(self)
        start, stop = self.offsets[number], self.offsets[number + 1]
        label = self.labels[number]
        found = StoredSequence((self.values[start:stop], label if label.ndim else int(label)))
        found.source = self, number
        return found

    def __getitems__(self, rows: Ints) -> SequenceStore:
        """Return some rows as a new store."""
        rows = np.asarray(rows)
        starts = self.offsets[rows]
        return self.windows(rows, starts, self.offsets[rows + 1] - starts)

    def windows(self, rows: Ints, starts: Ints, lengths: Ints) -> SequenceStore:
        """Return a window of consecutive steps of each row as a new store.

        Args:
            rows: Row numbers, (P,).
            starts: Index in `values` of the first step of each window, (P,).
            lengths: Steps of each window, (P,).
        """
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        steps = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        arrays = {name: getattr(self, name) for name in ARRAYS}
        taken = {
            name: x[steps if name in ("values", "spellings") else rows]
            for name, x in arrays.items()
            if x is not None and name != "offsets"
        }
        return replace(self, **taken, offsets=offsets)

    def selection(self, rows: Ints) -> SequenceStore:
        """Return what `__getitems__` does, of any number of rows in bounded memory."""

        def parts() -> Iterator[SequenceStore]:
            size = BLOCK // BYTES_PER_ROW
            for start in range(0, max(1, len(rows)), size):
                some = rows[start : start + size]
                ends = np.cumsum(self.lengths[some]) * self.values[:1].nbytes
                for part in np.split(some, np.flatnonzero(np.diff(ends // BLOCK)) + 1):
                    yield self.__getitems__(part)

        return stacked(parts(), self.files, self.words)

    def arrays(self) -> dict[str, Array]:
        """Return all that it holds by name, for `from_arrays`."""
        found = {name: getattr(self, name) for name in ARRAYS}
        if self.words is not None:
            found |= {"word_buckets": self.words.buckets, "word_offsets": self.words.offsets}
        return {name: array for name, array in found.items() if array is not None}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], files: FileLines) -> SequenceStore:
        """Build from what `arrays` returned."""
        known: dict[str, Any] = {name: x for name, x in arrays.items() if name in ARRAYS}
        words = None
        if "spellings" in arrays:
            words = WordGrams(arrays["word_buckets"], arrays["word_offsets"])
        return cls(**known, words=words, files=files)


def stacked(
    stores: Iterable[SequenceStore], files: FileLines = (), words: WordGrams | None = None
) -> SequenceStore:
    """Return the rows of stores, at least one, as one store in bounded memory."""
    whole: dict[str, GrowingArray] = {}
    steps = 0
    for store in stores:
        arrays = {name: getattr(store, name) for name in ARRAYS}
        arrays["offsets"] = store.offsets[1 if whole else 0 :] + steps
        if store.groups is None:
            arrays["groups"] = np.full(len(store), -1)
        for name, array in arrays.items():
            for block in () if array is None else blocks(array):
                if name not in whole:
                    whole[name] = GrowingArray(block.dtype, block.shape[1:])
                whole[name].append_rows(block)
        steps += len(store.values)
    found = {name: array.build() for name, array in whole.items()}
    if found["groups"].max(initial=-1) < 0:
        del found["groups"]
    return SequenceStore(**found, files=files, words=words)


def joined_stores(stores: Sequence[SequenceStore]) -> SequenceStore:
    """Return the sequences of all stores, at least one, as one store without groups or keys."""
    parts, tables, files, end = list[SequenceStore](), list[WordGrams](), list[tuple[str, int]](), 0
    for store in stores:
        spellings = store.spellings
        if store.words is not None and spellings is not None:
            before = np.int32(sum(map(len, tables)))
            shifted = (np.where(part < 0, part, part + before) for part in blocks(spellings))
            tables, spellings = [*tables, store.words], concatenate(shifted)
        files += [(name, start + end) for name, start in store.files]
        lines = concatenate(part + end for part in blocks(store.lines))
        end += int(store.lines.max(initial=0))
        parts.append(replace(store, lines=lines, keys=None, groups=None, spellings=spellings))
    return stacked(parts, tuple(files), WordGrams.concatenate(tables) if tables else None)


def store_of_items(items: Sequence[StoredSequence]) -> SequenceStore:
    """Return items of one or more stores as one store. A torch ConcatDataset has such items."""
    parts = [store.__getitems__(np.array([row])) for store, row in (x.source for x in items)]
    return joined_stores(parts)
