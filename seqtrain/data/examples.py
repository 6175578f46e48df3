"""What a reader yields, and how it complains. Room `data`: imports errors and config only."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from seqtrain.errors import DataError
from seqtrain.text import located

Features: TypeAlias = npt.NDArray[np.float32]
Sequence: TypeAlias = str | list[str] | Features
"""A sequence as read: text, symbols already split, or feature vectors of shape (T, C)."""

SHOWN_ROWS = 5
"""Bad rows of an input that are told with their lines; the rest is counted."""


class Example(NamedTuple):
    """One labelled (or, for prediction, unlabelled) sequence and where it was read.

    Attributes:
        sequence: text, list of symbols, or feature vectors of shape (T, C), NaN where missing
            (an empty sequence of features read from JSON has shape (0, 0)).
        label: the label as written, or None where the input has none.
        line: line of the file on which the row begins, from 1 (npz: row, from 1).
        file: the file inside the folder that was read, or None where the input is one file.
        group: name of the group that the row belongs to, or None where it stands alone.
        kept: the columns to copy to its answer, by name, as `ReadOptions.keep` asks for them.
        problem: why it can't be used, where it keeps its place all the same (prediction).
    """

    sequence: Sequence
    label: str | None
    line: int
    file: str | None = None
    group: str | None = None
    kept: dict[str, Any] | None = None
    problem: str | None = None


class BadRow(ValueError):
    """One row can't be used; caught where rows are read and given to `RowProblems`."""


class RowProblems:
    """Gathers the complaints about one input's rows; raises them together, or the first at once.

    Args:
        name: name of the input, as the user gave it.
        stop_at_first: raise at the first complaint (prediction: rows before it were used).
        keeps_places: bad rows are handed on by `taken`, so that each of them can be answered.

    Attributes:
        file: the file that lines are counted in: the input, or the one of its folder now read.
        waiting: bad rows that `taken` hands on.
    """

    def __init__(
        self, name: str, *, stop_at_first: bool = False, keeps_places: bool = False
    ) -> None:
        self.name = name
        self.file = name
        self.stop_at_first = stop_at_first
        self.keeps_places = keeps_places
        self.waiting: list[Example] = []
        self.count = 0
        self.shown: list[str] = []

    def add(self, line: int, problem: str) -> None:
        """Note that the row that begins on `line` can't be used."""
        if self.stop_at_first:
            self.fail(line, problem)
        self.count += 1
        if self.keeps_places:
            file = None if self.file == self.name else self.file
            self.waiting.append(Example("", None, line, file, problem=problem))
        if len(self.shown) < SHOWN_ROWS:
            self.shown.append(located(f"{self.file}:{line}", problem))

    def taken(self) -> list[Example]:
        """Return the bad rows noted since, where they keep their places."""
        taken, self.waiting = self.waiting, []
        return taken

    def fail(self, line: int, problem: str) -> NoReturn:
        """Raise this complaint, after which the file can't be read on, and then all others."""
        self.count += 1
        first = located(f"{self.file}:{line}", problem)
        raise DataError(first, *self.shown, *self._total(shown_now=1))

    def raise_if_any(self) -> None:
        """Raise what was gathered as one DataError: the first five and the total."""
        if self.count:
            raise DataError(*self.shown, *self._total())

    def _total(self, shown_now: int = 0) -> list[str]:
        """Return the line that counts the rows not shown, if any."""
        more = self.count - len(self.shown) - shown_now
        return [f"{self.name}: {self.count} rows can't be used ({more} not shown)"] if more else []
