"""Stores of sequences: flat arrays of steps, offsets and labels, without padding.

Small arrays grow in memory, large ones in a temporary file.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seqtrain.errors import RunError
from seqtrain.sequences.vocabulary import WordGrams

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
FileLines: TypeAlias = tuple[tuple[str, int], ...]

ARRAYS = ("values", "offsets", "labels", "lines", "groups", "spellings", "keys", "static")
"""Attributes of a SequenceStore that are arrays."""
BYTES_PER_ROW = 64
"""Approximate memory in bytes that a row takes while `selection` copies it."""
IN_MEMORY = 2**26
"""Size of an array in bytes from which on it is kept in a file."""
BLOCK = 2**24
"""Size in bytes of the parts in which large arrays are processed."""
DISK = Path("/var/tmp")
"""Folder of temporary files if $TMPDIR isn't set. On many systems /tmp is memory."""
COMPARED, PASSES = 2**20, 16
"""Approximate number of keys that `equal_keys` sorts at once, and its largest number of passes."""


class GrowingArray:
    """An array that grows by appended rows. From IN_MEMORY bytes on it is kept in a file.

    Args:
        dtype: Type of the entries.
        shape: Shape of one row.
    """

    def __init__(self, dtype: npt.DTypeLike, shape: tuple[int, ...] = ()) -> None:
        self._dtype, self._shape = np.dtype(dtype), shape
        self._content = bytearray()
        self._file: IO[bytes] | None = None

    def append_rows(self, rows: Array) -> None:
        """Append rows, whose shape is (number of rows, *shape).

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
    """Yield consecutive parts of about BLOCK bytes of an array. An empty array is one part."""
    size = max(1, BLOCK * len(array) // max(1, array.nbytes))
    for start in range(0, max(1, len(array)), size):
        yield np.asarray(array[start : start + size])


def concatenate(parts: Iterable[Array]) -> Array:
    """Concatenate arrays along the first axis. The result is memory-mapped if it is large.

    Args:
        parts: At least one array. All have the same type.
    """
    whole: GrowingArray | None = None
    for part in parts:
        whole = whole or GrowingArray(part.dtype, part.shape[1:])
        whole.append_rows(part)
    assert whole is not None
    return whole.build()


def counts_of(ids: Array, size: int) -> Ints:
    """Return how often each id from 0 to `size` - 1 occurs, (size,)."""
    counts = np.zeros(size, dtype=np.int64)
    for block in blocks(ids):
        counts += np.bincount(block, minlength=size)
    return counts


def row_numbers(count: int) -> Ints:
    """Return the numbers from 0 to `count` - 1, as int32 if they fit, else as int64."""
    numbers: Ints = np.arange(count, dtype=np.int32 if count < 2**31 - 1 else np.int64)
    return numbers


def true_rows(chosen: npt.NDArray[np.bool_]) -> Ints:
    """Return the indices at which the mask `chosen` is True, ascending."""
    found, start = [row_numbers(0)], 0
    for block in blocks(chosen):
        found.append((np.flatnonzero(block) + start).astype(row_numbers(0).dtype))
        start += len(block)
    return np.concatenate(found)


def equal_keys(keys: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Group the rows by their keys, in parts that take bounded memory.

    All rows of a key are in the same part.

    Args:
        keys: Key of each row, (B,).

    Yields:
        The row numbers of a part, sorted by key. Then the index in these numbers at which each
        distinct key begins.
    """
    parts = min(PASSES, 1 + len(keys) // COMPARED)
    for part in range(parts):
        rows = true_rows(concatenate(block % parts == part for block in blocks(keys)))
        order = np.argsort(keys[rows], kind="stable")
        ordered = keys[rows][order]
        yield rows[order], run_starts(ordered)


def run_starts(ordered: Ints) -> Ints:
    """Return the index at which each distinct value of a sorted array begins."""
    return np.flatnonzero(np.append(ordered[:1] == ordered[:1], np.diff(ordered)))


class StoredSequence(tuple[Array, "int | Array"]):
    """One sequence of a store: the pair (steps, encoded labels).

    Attributes:
        source: The store and the row number. `store_of_items` copies the other arrays from there.
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

    Shape:
        values: (N,) int32, or (N, F) float32. offsets: (B + 1,). labels: (B,), or (B, C) int8.
        lines, groups, keys: (B,). spellings: (N,) int32. static: (B, K) float32. B sequences, N
        steps of all sequences, F numbers of a step, C classes, K numbers of row features.
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
        """Number of steps of each sequence, (B,). Memory-mapped if the array is large."""
        ends, size = self.offsets, BLOCK // 8
        return concatenate(np.diff(ends[i : i + size + 1]) for i in range(0, len(ends), size))

    @cached_property
    def combinations(self) -> Ints:
        """A number for each sequence, (B,). It is equal for sequences with the same labels."""
        if self.labels.ndim == 1:
            return self.labels
        drawn = np.random.default_rng(0).integers(1, 2**62, self.labels.shape[1])
        return concatenate(block.astype(np.int64) @ drawn for block in blocks(self.labels))

    def place(self, row: int) -> str:
        """Return the text "FILE:LINE" for a row, or its line if the store names no files."""
        line = int(self.lines[row])
        before = [(name, start) for name, start in self.files if start < line]
        return f"{before[-1][0]}:{line - before[-1][1]}" if before else f"{line}"

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
        start, stop = self.offsets[number], self.offsets[number + 1]
        label = self.labels[number]
        found = StoredSequence((self.values[start:stop], label if label.ndim else int(label)))
        found.source = self, number
        return found

    def __getitems__(self, rows: Ints) -> SequenceStore:
        """Return the rows with these numbers, in this order, as a new store in memory."""
        rows = np.asarray(rows)
        starts = self.offsets[rows]
        return self.windows(rows, starts, self.offsets[rows + 1] - starts)

    def windows(self, rows: Ints, starts: Ints, lengths: Ints) -> SequenceStore:
        """Cut windows of consecutive steps out of sequences, and return them as a new store.

        Args:
            rows: Row number of the sequence of each window, (P,).
            starts: Index in `values` of the first step of each window, (P,).
            lengths: Number of steps of each window, (P,).
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
        """Return the rows with these numbers as a new store, in bounded memory.

        Unlike the result of `__getitems__`, its arrays are memory-mapped if they are large.
        """

        def parts() -> Iterator[SequenceStore]:
            size = BLOCK // BYTES_PER_ROW
            for start in range(0, max(1, len(rows)), size):
                some = rows[start : start + size]
                ends = np.cumsum(self.lengths[some]) * self.values[:1].nbytes
                for part in np.split(some, np.flatnonzero(np.diff(ends // BLOCK)) + 1):
                    yield self.__getitems__(part)

        return stacked(parts(), self.files, self.words)

    def arrays(self) -> dict[str, Array]:
        """Return a dict of arrays for `from_arrays`: the store's own ones and the two of `words`.

        Attributes that are None are left out.
        """
        found = {name: getattr(self, name) for name in ARRAYS}
        if self.words is not None:
            found |= {"word_buckets": self.words.buckets, "word_offsets": self.words.offsets}
        return {name: array for name, array in found.items() if array is not None}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], files: FileLines) -> SequenceStore:
        """Build a store.

        Args:
            arrays: Result of `arrays`.
            files: Attribute `files` of the store.
        """
        known: dict[str, Any] = {name: x for name, x in arrays.items() if name in ARRAYS}
        words = None
        if "spellings" in arrays:
            words = WordGrams(arrays["word_buckets"], arrays["word_offsets"])
        return cls(**known, words=words, files=files)


def stacked(
    stores: Iterable[SequenceStore], files: FileLines = (), words: WordGrams | None = None
) -> SequenceStore:
    """Return the rows of several stores as one store, in bounded memory.

    Args:
        stores: At least one store. All have arrays of the same names and types. Numbers of groups,
            lines and spellings are used as they are.
        files: Attribute `files` of the result.
        words: Attribute `words` of the result.
    """
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
            shifted = (np.where(part < 0, part, part + before) for part in blocks(spellings))
            tables, spellings = [*tables, store.words], concatenate(shifted)
        files += [(name, start + end) for name, start in store.files]
        lines = concatenate(part + end for part in blocks(store.lines))
        end += int(store.lines.max(initial=0))
        parts.append(replace(store, lines=lines, keys=None, groups=None, spellings=spellings))
    return stacked(parts, tuple(files), WordGrams.concatenate(tables) if tables else None)


def store_of_items(items: Sequence[StoredSequence]) -> SequenceStore:
    """Return sequences as one store.

    Args:
        items: Items of one or more stores, as a torch ConcatDataset returns them.
    """
    parts = [store.__getitems__(np.array([row])) for store, row in (x.source for x in items)]
    return joined_stores(parts)
