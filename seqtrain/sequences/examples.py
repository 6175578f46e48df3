"""Examples as readers yield them, and the collection of problems with rows."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Listed
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from seqtrain.errors import DataError
from seqtrain.text import counted

Features: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Steps:
    """Time steps of several columns, as read: T steps of K token columns and F number columns.

    Attributes:
        tokens: The K token columns, each with T cells.
        numbers: The number columns, (T, F), NaN for missing numbers.
    """

    tokens: tuple[Listed[str], ...]
    numbers: Features

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self) * len(self.tokens) + self.numbers.size

    def cells(self) -> list[list[str]]:
        """Return one list per step: the texts of its cells, tokens before numbers.

        Numbers have up to 6 digits. A missing number is "nan".
        """
        tokens = zip(*self.tokens, strict=True) if self.tokens else [()] * len(self)
        steps = zip(tokens, self.numbers.tolist(), strict=True)
        return [[*cells, *(f"{number:g}" for number in numbers)] for cells, numbers in steps]


Sequence: TypeAlias = str | list[str] | Features | Steps
"""A sequence as read: text, a list of symbols, feature vectors of shape (T, C), or steps."""
Numbered: TypeAlias = Iterator[tuple[int, Any]]
"""Pairs of a line number and the content of the row there, or a BadRow if it can't be read."""

BLANK_LABEL = "the label is blank"
SHOWN_ROWS = 5
"""Largest number of bad rows of an input that messages name."""


class Example(NamedTuple):
    """One sequence, its labels, and the place where it was read.

    Attributes:
        sequence: Text, list of symbols, feature vectors of shape (T, C) with NaN for missing
            values, or steps. An empty list of vectors in JSON has shape (0, 0).
        labels: Labels as written, or None if the input has no labels. In a multi-label task they
            are sorted.
        line: Line of the file on which the row begins, from 1. For binary formats, the number of
            the row.
        file: File inside the folder that was read, or None if the input is one file.
        group: Name of the group (conversation, session) to which the sequence belongs, or None.
        kept: Cells that prediction copies to its output, by column. None if no cells are copied.
        problem: Reason why the row can't be used, or None if it can.
        static: Row features as one step, or None.
        id: If rows are time steps, the id that all rows of the sequence have. None if a row is a
            sequence.
    """

    sequence: Sequence
    labels: tuple[str, ...] | None
    line: int
    file: str | None = None
    group: str | None = None
    kept: dict[str, Any] | None = None
    problem: str | None = None
    static: Steps | None = None
    id: str | None = None


class BadRow(ValueError):
    """Error: a row can't be used. The text of the exception is the reason."""


class RowProblems:
    """Collector of the problems with the rows of one input, to raise them as one error.

    All rows are counted, but only the first rows and problems are remembered.

    Args:
        name: Name of the input in messages.

    Attributes:
        file: Name of the file that is being read, for `fail`. At first it is `name`.
        count: Number of rows with a problem.
    """

    def __init__(self, name: str) -> None:
        self.name = self.file = name
        self.count = 0
        self._places: dict[str, list[tuple[str, int]]] = {}  # first places of each problem

    @property
    def shown(self) -> list[str]:
        """One line per problem, of the form ``FILE:LINE: problem (also lines …)``.

        Lines are sorted by file name and line number. At most SHOWN_ROWS problems are shown, and at
        most SHOWN_ROWS places of each.
        """
        first = sorted((places[0], problem) for problem, places in self._places.items())
        return [f"{file}:{line}: {problem}{self._also(problem)}" for (file, line), problem in first]

    def add(self, line: int, problem: str, file: str | None = None) -> None:
        """Add the problem of a row.

        Args:
            line: Line on which the row begins.
            problem: Reason why the row can't be used.
            file: File inside the folder that is read, or None if the input is one file.
        """
        self.count += 1
        places = self._places.setdefault(problem, [])
        places.append((file or self.name, line))
        places.sort()
        del places[SHOWN_ROWS:]
        if len(self._places) > SHOWN_ROWS:
            del self._places[max(self._places, key=lambda each: self._places[each][0])]

    def _also(self, problem: str) -> str:
        """Return a text with the places of a problem after its first one, or an empty text."""
        (file, _), *others = self._places[problem]
        places = [str(line) if name == file else f"{name}:{line}" for name, line in others]
        noun = "line" if len(places) == 1 else "lines"
        return f" (also {noun} {', '.join(places)})" if places else ""

    def fail(self, line: int, *problems: str) -> NoReturn:
        """Raise DataError because the rest of `file` can't be read.

        The message begins with `problems`. The problems that were added earlier follow.
        """
        raise DataError(*(f"{self.file}:{line}: {x}" for x in problems), *self._messages())

    def raise_if_any(self) -> None:
        """Raise DataError with the lines of `shown` and the total count, if a row has a problem."""
        if self.count:
            raise DataError(*self._messages())

    def _messages(self) -> list[str]:
        more = self.count - sum(len(places) for places in self._places.values())
        total = f"{self.name}: {counted(self.count, 'example')} can't be used ({more} not shown)"
        return [*self.shown, *([total] if more else [])]
