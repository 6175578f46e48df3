"""Sequences side by side: an array of steps, one of offsets, one of labels; nothing is padded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.data import growing
from seqtrain.data.growing import GrowingArray, joined
from seqtrain.data.sources import FileLines
from seqtrain.data.spelling import WordGrams

Ints = npt.NDArray[np.int64]
ARRAYS = ("values", "offsets", "labels", "lines", "groups", "spellings")
"""Attributes that are arrays; groups and spellings aren't always there."""
BYTES_PER_ROW = 64
"""Taken by what is known of a row, while some rows of many are chosen."""
UNKNOWN_LABEL = -1
"""Class index of a label that train doesn't have, or of a row without a label."""


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

    Shape:
        values: (N,) int32, or (N, C) float32. offsets: (B + 1,). labels, lines, groups: (B,).
        spellings: (N,) int32.

    Raises:
        ValueError: offsets don't rise from 0 to N, or a sequence has no steps.
    """

    values: npt.NDArray[Any]
    offsets: Ints
    labels: Ints
    lines: Ints
    groups: Ints | None = None
    spellings: npt.NDArray[np.int32] | None = None
    words: WordGrams | None = None
    files: FileLines | None = None

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
        return joined(np.diff(ends[i : i + size + 1]) for i in range(0, len(ends), size))

    def place(self, row: int) -> str:
        """Return FILE:LINE of a row; without files its line alone."""
        line = int(self.lines[row])
        return f"{line}" if self.files is None else self.files.place(line)

    def __getitem__(self, row: int) -> tuple[npt.NDArray[Any], int]:
        """Return one sequence, (T,) or (T, C), and its class index."""
        start, stop = self.offsets[row], self.offsets[row + 1]
        return self.values[start:stop], int(self.labels[row])

    def __getitems__(self, rows: Ints) -> SequenceStore:
        """Return the sequences of these rows, in this order, as a store of their own."""
        rows = np.asarray(rows)
        return self.prefixes(rows, self.offsets[rows + 1] - self.offsets[rows])

    def parts(self) -> Iterator[tuple[npt.NDArray[Any], Ints]]:
        """Yield the rows in their order, many at a time: values, and where each row begins there.

        Shape:
            values: (N, …). offsets: (P + 1,), from 0 to N.
        """
        start, steps = 0, growing.BLOCK // max(1, self.values[:1].nbytes)
        while start < len(self):
            first = self.offsets[start]
            stop = max(start + 1, np.searchsorted(self.offsets, first + steps, side="right") - 1)
            offsets = np.asarray(self.offsets[start : stop + 1])
            yield np.asarray(self.values[first : offsets[-1]]), offsets - first
            start = int(stop)

    def selection(self, rows: Ints) -> SequenceStore:
        """Return what `__getitems__` does, of any number of rows in bounded memory."""
        whole = {
            name: GrowingArray(array.dtype, array.shape[1:])
            for name in ARRAYS
            if (array := getattr(self, name)) is not None
        }
        end = 0
        for part in self._portions(rows):
            chosen = self.__getitems__(part)
            for name, array in whole.items():
                added = getattr(chosen, name)
                array.append(added if name != "offsets" else added[end > 0 :] + end)
            end += len(chosen.values)
        built = {name: array.build() for name, array in whole.items()}
        return SequenceStore(**built, words=self.words, files=self.files)

    def _portions(self, rows: Ints) -> Iterator[Ints]:
        """Yield rows in parts of bounded memory; at least one."""
        step, size = self.values[:1].nbytes, growing.BLOCK // BYTES_PER_ROW
        for start in range(0, max(1, len(rows)), size):
            some = rows[start : start + size]
            ends = np.cumsum(self.lengths[some])
            cuts = np.flatnonzero(np.diff(ends * step // growing.BLOCK)) + 1
            yield from np.split(some, cuts)

    def prefixes(self, rows: Ints, lengths: Ints) -> SequenceStore:
        """Return the first steps of these rows, as many as lengths says, as a store of their own.

        Shape:
            rows, lengths: (P,); a row may come again with another length.
        """
        offsets, steps = self._places(rows, lengths)
        spellings = None if self.spellings is None else self.spellings[steps]
        return self._of_rows(rows, self.values[steps], offsets, spellings)

    def _places(self, rows: Ints, lengths: Ints) -> tuple[Ints, Ints]:
        """Return where the first steps of these rows begin side by side, and where each stands."""
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        starts = self.offsets[rows] - offsets[:-1]
        return offsets, np.arange(offsets[-1]) + np.repeat(starts, lengths)

    def _of_rows(
        self,
        rows: Ints,
        values: npt.NDArray[Any],
        offsets: Ints,
        spellings: npt.NDArray[np.int32] | None,
    ) -> SequenceStore:
        """Return a store of these steps, with what is known of their rows."""
        return SequenceStore(
            values,
            offsets,
            self.labels[rows],
            self.lines[rows],
            None if self.groups is None else self.groups[rows],
            spellings,
            self.words,
            self.files,
        )

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all that it holds by name, for `from_arrays`."""
        found = {name: getattr(self, name) for name in ARRAYS}
        if self.words is not None:
            found |= {"word_buckets": self.words.buckets, "word_offsets": self.words.offsets}
        return {name: array for name, array in found.items() if array is not None}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> SequenceStore:
        """Build from what `arrays` returned.

        Raises:
            ValueError, LookupError, TypeError: it isn't that.
        """
        known: dict[str, Any] = {name: x for name, x in arrays.items() if name in ARRAYS}
        words = None
        if "spellings" in arrays:
            words = WordGrams(arrays["word_buckets"], arrays["word_offsets"])
        return cls(**known, words=words)
