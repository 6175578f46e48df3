"""Examples as they are read: sequences with their labels and places, and the problems with rows.

B sequences, N steps of all sequences, K token columns, F number columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from seqtrain.errors import DataError
from seqtrain.sequences.columns.scaling import Features
from seqtrain.sequences.store import Ints
from seqtrain.tables.blocks import Coded
from seqtrain.text import counted

BLANK_LABEL = "the label is blank"
SHOWN_ROWS = 5
"""Largest number of bad rows of an input that messages name."""


@dataclass(frozen=True)
class Steps:
    """Time steps of several columns, as read.

    Attributes:
        tokens: The K token columns, each with N cells.
        numbers: The number columns, (N, F), NaN for missing numbers.
    """

    tokens: tuple[Coded, ...]
    numbers: Features

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: slice | Ints) -> Steps:
        """Return some of the steps."""
        tokens = (Coded(each.codes[rows], each.values) for each in self.tokens)
        return Steps(tuple(tokens), self.numbers[rows])

    def token_texts(self) -> list[list[str]]:
        """Return the cells of each token column as texts."""
        return [column.cells() for column in self.tokens]

    def cells(self) -> list[list[str]]:
        """Return one list per step: the texts of its cells, tokens before numbers.

        Numbers have up to 6 digits. A missing number is "nan".
        """
        numbers = [[f"{number:g}" for number in own] for own in self.numbers.T.tolist()]
        columns = [*self.token_texts(), *numbers]
        return [list(row) for row in zip(*columns, strict=True)]


class Example(NamedTuple):
    """One sequence, its labels, and the place where it was read.

    Attributes:
        sequence: Text, list of symbols, feature vectors of shape (T, C) with NaN for missing
            values, or steps.
        labels: Labels as written, or None if the input has no labels. In a multi-label task they
            are sorted.
        line: Line of the file on which the row begins, from 1. For binary formats, the number of
            the row. If the example can't be used, it is the line of the problem.
        file: File inside the folder that was read, or None if the input is one file.
        group: Name of the group (conversation, session) to which the sequence belongs, or None.
        kept: Cells that prediction copies to its output, by column. None if no cells are copied.
        problem: Reason why the row can't be used, or None if it can.
        static: Row features as one step, or None.
        id: If rows are time steps, the id that all rows of the sequence have. None if a row is a
            sequence.
        last_line: Line of the last row of a window, or None.
    """

    sequence: Any
    labels: tuple[str, ...] | None
    line: int
    file: str | None = None
    group: str | None = None
    kept: dict[str, Any] | None = None
    problem: str | None = None
    static: Steps | None = None
    id: str | None = None
    last_line: int | None = None

    @property
    def first_line(self) -> int:
        """Line of the first row, under the name that rows of predictions have for it."""
        return self.line


@dataclass
class Sequences:
    """Sequences of an input, as columns with an entry for each sequence.

    Attributes:
        content: Texts, lists of symbols, or series (T, C). Or the steps of all sequences, which
            `offsets` divides.
        lines: Line of each sequence, or of its problem, (B,).
        offsets: Index of the first step of each sequence, then N, (B + 1,). None if `content` has
            an entry for each sequence.
        labels: Labels of each sequence, as codes of tuples. The code of a sequence without labels
            is -1.
        problems: Maps the index of each sequence that can't be used to the reason.
        groups: Name of the group of each sequence, or "" without one. None without a column.
        ids: Id of each sequence, or None if a row is a sequence.
        static: Row features: a step for each sequence. None without any.
        weights: Weight of each sequence, (B,), or None.
        kept: Cells to copy: a list for each column, or None.
        files: File of each sequence inside a folder, or None if the input is one file.
        last_lines: Last line of each window, (B,), or None.
    """

    content: Any
    lines: Ints
    labels: Coded
    offsets: Ints | None = None
    problems: dict[int, str] = field(default_factory=dict)
    groups: list[str] | None = None
    ids: list[str] | None = None
    static: Steps | None = None
    weights: npt.NDArray[np.float32] | None = None
    kept: dict[str, Sequence[Any]] | None = None
    files: list[str] | None = None
    last_lines: Ints | None = None

    def __len__(self) -> int:
        return len(self.lines)

    def sequence(self, index: int) -> Any:
        """Return the content of a sequence."""
        if self.offsets is None:
            return self.content[index]
        return self.content[int(self.offsets[index]) : int(self.offsets[index + 1])]

    def label(self, index: int) -> tuple[str, ...] | None:
        """Return the labels of a sequence, or None if it has none."""
        code = int(self.labels.codes[index])
        return None if code < 0 else self.labels.values[code]

    def example(self, index: int) -> Example:
        """Return a sequence with its place. If it can't be used, it has no content."""
        problem = self.problems.get(index)
        return Example(
            sequence="" if problem is not None else self.sequence(index),
            labels=self.label(index),
            line=int(self.lines[index]),
            file=None if self.files is None else self.files[index],
            group=(self.groups[index] or None) if self.groups is not None else None,
            kept=self._kept(index),
            problem=problem,
            static=None if self.static is None else self.static[index : index + 1],
            id=None if self.ids is None else self.ids[index] or None,
            last_line=None if self.last_lines is None else int(self.last_lines[index]),
        )

    def examples(self) -> list[Example]:
        """Return all sequences with their places."""
        return [self.example(index) for index in range(len(self))]

    def place(self, index: int, name: str) -> str:
        """Return the text "FILE:LINE" for a sequence of the input `name`."""
        file = name if self.files is None else self.files[index]
        return f"{file}:{self.lines[index]}"

    def at(self, rows: Ints) -> Sequences:
        """Return some of the sequences, by their indices."""
        listed = rows.tolist()
        new = {row: index for index, row in enumerate(listed)}
        offsets, content = None, self.content
        if self.offsets is None:
            content = [content[row] for row in listed]
        else:
            lengths = np.diff(self.offsets)[rows]
            offsets = np.concatenate(([0], np.cumsum(lengths)))
            shift = np.repeat(self.offsets[:-1][rows] - offsets[:-1], lengths)
            content = content[np.arange(offsets[-1]) + shift]
        kept: dict[str, Sequence[Any]] | None = None
        if self.kept is not None:
            kept = {name: [cells[row] for row in listed] for name, cells in self.kept.items()}
        return Sequences(
            content=content,
            lines=self.lines[rows],
            labels=self.labels.at(rows),
            offsets=offsets,
            problems={new[row]: x for row, x in self.problems.items() if row in new},
            groups=None if self.groups is None else [self.groups[row] for row in listed],
            ids=None if self.ids is None else [self.ids[row] for row in listed],
            static=None if self.static is None else self.static[rows],
            weights=None if self.weights is None else self.weights[rows],
            kept=kept,
            files=None if self.files is None else [self.files[row] for row in listed],
            last_lines=None if self.last_lines is None else self.last_lines[rows],
        )

    def kept_cells(self, name: str) -> Sequence[Any]:
        """Return the cells of a column to copy. They are None if this part lacks the column."""
        return (self.kept or {}).get(name) or [None] * len(self)

    def _kept(self, index: int) -> dict[str, Any] | None:
        if self.kept is None:
            return None
        return {name: cells[index] for name, cells in self.kept.items()}


def chunked(sequences: Sequences, size: int) -> Iterator[Sequences]:
    """Yield the sequences in parts of at most `size`."""
    if len(sequences) <= size:
        yield sequences
        return
    for start in range(0, len(sequences), size):
        yield sequences.at(np.arange(start, min(start + size, len(sequences))))


def joined(parts: Sequence[Sequences]) -> Sequences:
    """Return the sequences of several parts of one input, at least one, as one part."""
    first = parts[0]
    if len(parts) == 1:
        return first
    problems, end = dict[int, str](), 0
    offsets, steps = [np.zeros(1, np.int64)], 0
    for part in parts:
        problems.update({end + row: reason for row, reason in part.problems.items()})
        end += len(part)
        if part.offsets is not None:
            offsets.append(part.offsets[1:] + steps)
            steps += len(part.content)
    kept: dict[str, Sequence[Any]] | None = None
    if first.kept is not None:
        names = dict.fromkeys(name for part in parts for name in part.kept or {})
        kept = {name: [cell for part in parts for cell in part.kept_cells(name)] for name in names}

    def listed(name: str) -> Any:
        if getattr(first, name) is None:
            return None
        return [each for part in parts for each in getattr(part, name)]

    def stacked(name: str) -> Any:
        if getattr(first, name) is None:
            return None
        return np.concatenate([getattr(part, name) for part in parts])

    is_steps = first.offsets is not None
    return Sequences(
        content=_joined_steps([x.content for x in parts]) if is_steps else listed("content"),
        lines=stacked("lines"),
        labels=_joined_codes([part.labels for part in parts]),
        offsets=np.concatenate(offsets) if is_steps else None,
        problems=problems,
        groups=listed("groups"),
        ids=listed("ids"),
        static=None if first.static is None else _joined_steps([x.static for x in parts]),
        weights=stacked("weights"),
        kept=kept,
        files=listed("files"),
        last_lines=stacked("last_lines"),
    )


def _joined_codes(columns: Sequence[Coded]) -> Coded:
    """Return several parts of one column. All have codes of the same values."""
    return Coded(np.concatenate([each.codes for each in columns]), columns[-1].values)


def _joined_steps(parts: Sequence[Any]) -> Steps:
    columns = zip(*(part.tokens for part in parts), strict=True)
    tokens = tuple(_joined_codes(column) for column in columns)
    return Steps(tokens, np.concatenate([part.numbers for part in parts]))


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
