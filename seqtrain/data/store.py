"""Sequences side by side: an array of steps, one of offsets, one of labels; nothing is padded."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.data import growing
from seqtrain.data.growing import Array, GrowingArray, blocks, concatenate
from seqtrain.data.growing import Ints as Ints
from seqtrain.data.spelling import WordGrams

ARRAYS = ("values", "offsets", "labels", "lines", "groups", "spellings", "keys")
"""Attributes that are arrays; the last three aren't always there."""
BYTES_PER_ROW = 64
"""Taken by what is known of a row, while some rows of many are chosen."""
UNKNOWN_LABEL = -1
"""Class index of a label that train doesn't have, or of a row without a label."""


@dataclass(frozen=True)
class FileLines:
    """Lines of several files, counted through all of them.

    Attributes:
        names: of the files, for messages.
        starts: how many lines stand before each file's first.
    """

    names: tuple[str, ...]
    starts: tuple[int, ...]

    def locate(self, line: int) -> tuple[str, int]:
        """Return the file that a line, from 1, stands in, and the line counted in that file."""
        number = bisect_left(self.starts, line) - 1
        return self.names[number], line - self.starts[number]


@dataclass(frozen=True)
class SequenceStore:
    """Sequences of unequal length, side by side. A map-style torch Dataset.

    Attributes:
        values: steps of all sequences: ids, or feature vectors.
        offsets: where each sequence begins in values; the last entry is the number of steps.
        labels: class index of each sequence, -1 where unknown.
        lines: line of its file on which each sequence was read, from 1, counted on through several
            files; for a folder the number of the row through its files, in the order of names.
        groups: number of the group (conversation, session) that each sequence belongs to, whose
            rows stand in order; -1: alone. None: all are alone.
        spellings: of each step that is <unk>, which of `words` it was; -1 elsewhere. None where
            spelling doesn't count (model.subwords).
        words: the character n-grams of the words that the vocabulary lacks; None as spellings.
        files: which lines are of which file; None: nobody asks.
        keys: equal for sequences that are written alike, but for case and outer blanks; 0 for
            blank ones. None: nobody asks.

    Shape:
        values: (N,) int32, or (N, C) float32. offsets: (B + 1,). labels, lines, groups, keys: (B,).
        spellings: (N,) int32.

    Raises:
        ValueError: offsets don't rise from 0 to N, or a sequence has no steps.
    """

    values: Array
    offsets: Ints
    labels: Ints
    lines: Ints
    groups: Ints | None = None
    spellings: npt.NDArray[np.int32] | None = None
    words: WordGrams | None = None
    files: FileLines | None = None
    keys: Ints | None = None

    def __post_init__(self) -> None:
        offsets, rows = self.offsets, len(self.labels)
        if offsets.shape != (rows + 1,) or len(self.lines) != rows:
            raise ValueError(f"{rows} labels need {rows + 1} offsets, found {offsets.shape}")
        if offsets[0] != 0 or offsets[-1] != len(self.values):
            raise ValueError(
                f"offsets go from {offsets[0]} to {offsets[-1]}, expected 0 to {len(self.values)}"
            )
        if self.lengths.min(initial=1) < 1:
            row = int(np.argmax(self.lengths < 1))
            raise ValueError(f"row {row} has length {self.lengths[row]}, expected at least 1")

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def lengths(self) -> Ints:
        """Steps of each sequence, (B,); memory-mapped where they are many."""
        ends, size = self.offsets, growing.BLOCK // 8
        if len(ends) <= size:
            return np.diff(ends)
        return concatenate(np.diff(ends[i : i + size + 1]) for i in range(0, len(ends), size))

    def place(self, row: int) -> str:
        """Return FILE:LINE of a row; without files its line alone."""
        line = int(self.lines[row])
        return f"{line}" if self.files is None else "{}:{}".format(*self.files.locate(line))

    def __getitem__(self, row: int) -> tuple[Array, int]:
        """Return one sequence, (T,) or (T, C), and its class index."""
        start, stop = self.offsets[row], self.offsets[row + 1]
        return self.values[start:stop], int(self.labels[row])

    def __getitems__(self, rows: Ints) -> SequenceStore:
        """Return the sequences of these rows, in this order, as a store of their own."""
        rows = np.asarray(rows)
        return self.prefixes(rows, self.offsets[rows + 1] - self.offsets[rows])

    def prefixes(self, rows: Ints, lengths: Ints) -> SequenceStore:
        """Return the first steps of these rows, as many as lengths says, as a store of their own.

        Shape:
            rows, lengths: (P,); a row may come again with another length.
        """
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        steps = np.arange(offsets[-1]) + np.repeat(self.offsets[rows] - offsets[:-1], lengths)
        return SequenceStore(
            self.values[steps],
            offsets,
            self.labels[rows],
            self.lines[rows],
            None if self.groups is None else self.groups[rows],
            None if self.spellings is None else self.spellings[steps],
            self.words,
            self.files,
            None if self.keys is None else self.keys[rows],
        )

    def selection(self, rows: Ints) -> SequenceStore:
        """Return what `__getitems__` does, of any number of rows in bounded memory."""
        whole, step, size = StoreBuilder(), self.values[:1].nbytes, growing.BLOCK // BYTES_PER_ROW
        for start in range(0, max(1, len(rows)), size):
            some = rows[start : start + size]
            ends = np.cumsum(self.lengths[some])
            cuts = np.flatnonzero(np.diff(ends * step // growing.BLOCK)) + 1
            for part in np.split(some, cuts):
                whole.add(self.__getitems__(part))
        return whole.build(self.files, self.words)

    def arrays(self) -> dict[str, Array]:
        """Return all that it holds by name, for `from_arrays`."""
        found = {name: getattr(self, name) for name in ARRAYS}
        if self.words is not None:
            found |= {"word_buckets": self.words.buckets, "word_offsets": self.words.offsets}
        return {name: array for name, array in found.items() if array is not None}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, Array], files: FileLines | None = None
    ) -> SequenceStore:
        """Build from what `arrays` returned; raises as the constructor, or where one is missing."""
        known: dict[str, Any] = {name: x for name, x in arrays.items() if name in ARRAYS}
        words = None
        if "spellings" in arrays:
            words = WordGrams(arrays["word_buckets"], arrays["word_offsets"])
        return cls(**known, words=words, files=files)


class StoreBuilder:
    """Puts stores side by side in bounded memory: large arrays leave it."""

    def __init__(self) -> None:
        self._arrays: dict[str, GrowingArray] = {}
        self._rows = self._end = 0

    def add(self, store: SequenceStore) -> None:
        """Append the rows of a store."""
        arrays = {name: getattr(store, name) for name in ARRAYS}
        arrays["offsets"] = store.offsets[1:] + self._end
        if not self._arrays:
            arrays["offsets"] = np.append(0, arrays["offsets"])
        if arrays["groups"] is None and "groups" in self._arrays:
            arrays["groups"] = np.full(len(store), -1)
        elif arrays["groups"] is not None and self._arrays and "groups" not in self._arrays:
            self._append("groups", np.full(self._rows, -1))
        for name, array in arrays.items():
            if array is not None:
                self._append(name, array)
        self._rows += len(store)
        self._end += len(store.values)

    def _append(self, name: str, array: Array) -> None:
        if name not in self._arrays:
            self._arrays[name] = GrowingArray(array.dtype, array.shape[1:])
        for block in blocks(array):
            self._arrays[name].append(block)

    def build(
        self, files: FileLines | None = None, words: WordGrams | None = None
    ) -> SequenceStore:
        """Return all, at least one; append no more afterwards."""
        arrays = {name: array.build() for name, array in self._arrays.items()}
        return SequenceStore(**arrays, files=files, words=words)


def joined_stores(stores: Iterable[SequenceStore]) -> SequenceStore:
    """Return the sequences of all stores, at least one, as one store without groups or keys."""
    whole, tables, end = StoreBuilder(), list[WordGrams](), 0
    names, starts = list[str](), list[int]()
    for store in stores:
        spellings = store.spellings
        if store.words is not None and spellings is not None:
            if store.words not in tables:
                tables.append(store.words)
            before = sum(map(len, tables[: tables.index(store.words)]))
            parts = (np.where(part < 0, part, part + before) for part in blocks(spellings))
            spellings = concatenate(part.astype(np.int32) for part in parts)
        if store.files is not None:
            names += store.files.names
            starts += [start + end for start in store.files.starts]
        lines = concatenate(part + end for part in blocks(store.lines))
        end += int(store.lines.max(initial=0))
        whole.add(replace(store, lines=lines, keys=None, groups=None, spellings=spellings))
    files = FileLines(tuple(names), tuple(starts)) if names else None
    return whole.build(files, WordGrams.concatenate(tables) if tables else None)
