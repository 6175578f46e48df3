"""Examples as they are read: sequences with their labels and places, and the problems with rows.

B sequences, N steps of all sequences, K token columns, F number columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from seqtrain.errors import DataError
from seqtrain.sequences.vocabulary import runs
from seqtrain.tables.blocks import Coded, Float32s, Ints, Reasons, cells_at, problems_at
from seqtrain.tables.formats import resolve_format
from seqtrain.text import counted

CHUNK_ROWS = 4096
"""Largest number of sequences that are encoded or predicted together."""
MOST_DROPPED = 0.05
"""Largest share of rows that may be left out: with more, the reading is wrong."""
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
    numbers: Float32s

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: slice | Ints) -> Steps:
        """Return some of the steps."""
        return Steps(tuple(column[rows] for column in self.tokens), self.numbers[rows])

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
    kept: dict[str, Any] | None = None
    problem: str | None = None
    static: Steps | None = None
    id: str | None = None
    last_line: int | None = None

    @property
    def first_line(self) -> int:
        """Line of the first row, under the name that rows of predictions have for it."""
        return self.line

    def place_columns(self, copied: Collection[str], *, whole_files: bool) -> list[str]:
        """Return the attributes that say where this and the other rows of predictions come from.

        They are "file" and "line" in a folder, and "first_line" and "last_line" for windows. Rows
        of one file have none.

        Args:
            copied: Columns that are copied from the input. "file" is one of them if the files of a
                folder are recordings, of which it is the id.
            whole_files: True if each file of a folder is one sequence.
        """
        places = []
        if self.file is not None and "file" not in copied:
            is_sequence = whole_files and resolve_format(self.file, "auto") != "fasta"
            places = ["file"] if is_sequence else ["file", "line"]
        if self.last_line is not None:
            places = [*places[:1], "first_line", "last_line"]
        return places


@dataclass
class Sequences:
    """Sequences of an input, as columns with an entry for each sequence.

    The parts of an input share the distinct values of their coded columns.

    Attributes:
        content: Texts, lists of symbols, or series (T, C). Or the steps of all sequences, which
            `offsets` divides.
        lines: Line of each sequence, or of its problem, (B,).
        labels: Labels of each sequence, as codes of tuples. The code of a sequence without labels
            is -1. None if labels aren't read.
        offsets: Index of the first step of each sequence, then N, (B + 1,). None if `content` has
            an entry for each sequence.
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
    labels: Coded | None = None
    offsets: Ints | None = None
    problems: Reasons = field(default_factory=dict)
    groups: Coded | None = None
    ids: Coded | None = None
    static: Steps | None = None
    weights: Float32s | None = None
    kept: dict[str, Sequence[Any]] | None = None
    files: Coded | None = None
    last_lines: Ints | None = None

    def __len__(self) -> int:
        return len(self.lines)

    def example(self, index: int) -> Example:
        """Return a sequence with its place. If it can't be used, it has no content."""
        problem = self.problems.get(index)
        content = self.content
        if problem is not None:
            sequence: Any = ""
        elif self.offsets is None:
            sequence = content[index]
        else:
            sequence = content[int(self.offsets[index]) : int(self.offsets[index + 1])]
        kept = self.kept
        if kept is not None:
            kept = {name: cells[index] for name, cells in kept.items()}
        static = self.static
        if static is not None:
            static = static[index : index + 1]
        return Example(
            sequence,
            labels=_value(self.labels, index),
            line=int(self.lines[index]),
            file=_value(self.files, index),
            kept=kept,
            problem=problem,
            static=static,
            id=_value(self.ids, index) or None,
            last_line=_value(self.last_lines, index),
        )

    def place(self, index: int, name: str) -> str:
        """Return the text "FILE:LINE" for a sequence of the input `name`."""
        return f"{_value(self.files, index) or name}:{self.lines[index]}"

    def at(self, rows: Ints) -> Sequences:
        """Return some of the sequences, by their indices."""
        found = {name: entries(getattr(self, name), rows) for name in ROW_FIELDS}
        found["problems"] = problems_at(self.problems, rows)
        if self.offsets is None:
            return Sequences(cells_at(self.content, rows), **found)
        steps, offsets = runs(self.offsets[:-1][rows], np.diff(self.offsets)[rows])
        return Sequences(self.content[steps], offsets=offsets, **found)


ROW_FIELDS = [x.name for x in fields(Sequences) if x.name not in ("content", "offsets", "problems")]
"""Attributes of `Sequences` with an entry for each sequence."""


def _value(column: Coded | Ints | None, index: int) -> Any:
    """Return the entry of a sequence in a column, or None without the column."""
    if column is None:
        return None
    if isinstance(column, Coded):
        return column.value(index)
    return int(column[index])


def entries(values: Any, rows: Ints) -> Any:
    """Return the entries of some rows of a column, or of a dict of columns. None stays None."""
    if values is None:
        return None
    if isinstance(values, dict):
        return {name: cells_at(cells, rows) for name, cells in values.items()}
    return cells_at(values, rows)


def in_chunks(
    parts: Iterator[Sequences], is_urgent: Callable[[], bool] = lambda: False
) -> Iterator[Sequences]:
    """Yield the sequences of an input in parts of about `CHUNK_ROWS`.

    If reading fails, the sequences before the failure are yielded first.

    Args:
        parts: Parts of the input, as they are read.
        is_urgent: Function that returns True if a part that was read should wait for no other.
    """
    waiting, count, problem = [], 0, None
    while True:
        try:
            part = next(parts, None)
        except Exception as error:
            part = None
            problem = error
        if part is not None:
            waiting.append(part)
            count += len(part)
            if count < CHUNK_ROWS and not is_urgent():
                continue
        if waiting:
            yield from chunked(joined(waiting), CHUNK_ROWS)
            waiting = []
            count = 0
        if problem is not None:
            raise problem
        if part is None:
            return


def chunked(sequences: Sequences, size: int) -> Iterator[Sequences]:
    """Yield the sequences in parts of at most `size`."""
    if len(sequences) <= size:
        yield sequences
        return
    for start in range(0, len(sequences), size):
        yield sequences.at(np.arange(start, min(start + size, len(sequences))))


def numbered(parts: Iterable[Sequences], start: int) -> Iterator[tuple[Ints, Sequences]]:
    """Yield the parts of an input, each after the line number of its sequences in a store.

    Lines of several files are counted together. In a folder, usable rows are counted instead.

    Args:
        parts: The parts.
        start: Number of lines of the files before this one.
    """
    number = start
    for part in parts:
        lines = part.lines + start
        if part.files is not None:
            usable = np.ones(len(part), np.int64)
            usable[list(part.problems)] = 0
            lines = number + np.cumsum(usable)
            number = int(lines[-1])
        yield lines, part


def joined(parts: Sequence[Sequences]) -> Sequences:
    """Return the sequences of several parts of one input, at least one, as one part."""
    if len(parts) == 1:
        return parts[0]
    names = dict.fromkeys(name for part in parts for name in part.kept or ())
    problems = {}
    end = 0
    for part in parts:
        problems.update({end + row: reason for row, reason in part.problems.items()})
        end += len(part)
        if part.kept is not None:  # files of a folder may have different columns
            absent = [None] * len(part)
            part.kept = {name: part.kept.get(name, absent) for name in names}
    found = {name: _joined([getattr(part, name) for part in parts]) for name in ROW_FIELDS}
    offsets = None
    if parts[0].offsets is not None:
        lengths = [np.diff(part.offsets) for part in parts if part.offsets is not None]
        offsets = np.concatenate(([0], np.cumsum(np.concatenate(lengths))))
    content = _joined([part.content for part in parts])
    return Sequences(content, offsets=offsets, problems=problems, **found)


def _joined(parts: Sequence[Any]) -> Any:
    """Return one column, or one dict of columns, of several parts of an input."""
    first = parts[0]
    if isinstance(first, dict):
        return {name: _joined([part[name] for part in parts]) for name in first}
    if isinstance(first, Coded):
        return Coded(np.concatenate([each.codes for each in parts]), parts[-1].values)
    if isinstance(first, Steps):
        columns = zip(*(part.tokens for part in parts), strict=True)
        numbers = np.concatenate([part.numbers for part in parts])
        return Steps(tuple(_joined(column) for column in columns), numbers)
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    if first is None:
        return None
    return [each for part in parts for each in part]


class RowProblems:
    """Collector of the problems with the rows of one input, to raise them as one error.

    All rows are counted, but only the first rows and problems are remembered.

    Args:
        name: Name of the input in messages.

    Attributes:
        count: Number of rows with a problem.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self._places: dict[str, list[tuple[str, int]]] = {}  # first places of each problem

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

    @property
    def shown(self) -> list[str]:
        """One line per problem, of the form ``FILE:LINE: problem (also lines …)``.

        Lines are sorted by file name and line number. At most SHOWN_ROWS problems are shown, and at
        most SHOWN_ROWS places of each.
        """
        lines = []
        for (first, *others), problem in sorted((own, x) for x, own in self._places.items()):
            file, line = first
            text = f"{file}:{line}: {problem}"
            if others:
                noun = "line" if len(others) == 1 else "lines"
                also = [f"{at}" if name == file else f"{name}:{at}" for name, at in others]
                text += f" (also {noun} {', '.join(also)})"
            lines.append(text)
        return lines

    def raise_if_any(self, advice: Sequence[str] = ()) -> None:
        """Raise DataError with the lines of `shown` and the total count, if a row has a problem.

        Args:
            advice: Further lines.
        """
        if not self.count:
            return
        more = self.count - sum(map(len, self._places.values()))
        total = f"{self.name}: {counted(self.count, 'example')} can't be used ({more} not shown)"
        raise DataError(*self.shown, *([total] if more else []), *advice)
