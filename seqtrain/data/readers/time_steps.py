"""From rows that are time steps to sequences: the rows of one id, in their order."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timezone
from itertools import chain, pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from seqtrain.data.examples import (
    BLANK_LABEL,
    SET,
    BadRow,
    Columns,
    Example,
    Features,
    ReadOptions,
    Steps,
    column_names,
    token_columns,
)
from seqtrain.data.readers.sequences import FLOAT32_MAX, number_of
from seqtrain.text import quote

MISSING_TOKEN = "<unk>"
"""What a blank cell of a column of tokens is read as."""
Column: TypeAlias = Any
"""The cells of a column: a list or tuple, or an array of numbers."""
MOST_PARTS = 3
"""Runs of an id, which waits for more, that aren't put together yet."""
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class _BadCell(BadRow):
    """A row of a sequence, counted from 0, can't be used."""

    def __init__(self, row: int, text: str) -> None:
        super().__init__(text)
        self.row = row


class Rows(NamedTuple):
    """Rows that are time steps, column by column; numbers are arrays where all could be read.

    Attributes:
        cells: columns of `ReadOptions.sequence_columns`, the id first.
        static: columns of data.static, as read.
        first: the first row without these, but with its label, group and kept columns; and its id
            where the cells were read already.
    """

    lines: Sequence[int]
    cells: Sequence[Column]
    labels: Sequence[str | None]
    static: Sequence[Column]
    first: Example

    @classmethod
    def of(cls, row: Example) -> Rows:
        """Return one row."""
        cells: Any = row.sequence
        static: Any = row.static or ()
        return cls([row.line], [[x] for x in cells], [row.label], [[x] for x in static], row)


class Layout:
    """What the cells of a row are."""

    def __init__(self, options: ReadOptions, labelled: bool) -> None:
        self.static, self.order, self.labelled = options.static or {}, options.order, labelled
        self.first = 1 if options.order is None else 2
        self.numbers = self.first + len(token_columns(options.steps))
        named = column_names(options.steps)[self.numbers - self.first :]
        self.number_kinds = [(name, (options.steps or {})[name]) for name in named]

    def read(self, cells: Sequence[Column]) -> list[Column]:
        """Read whole columns at once, as far as they hold what they should."""
        found = [_ids(cells[0]), *cells[1 : self.first]]
        found += map(_tokens, cells[self.first : self.numbers])
        found += map(_floats, cells[self.numbers :])
        return [*found[:1], *map(_floats, found[1 : self.first]), *found[self.first :]]


class Runs:
    """How often each id comes back in a file; the rows of an id that never does are one run."""

    def __init__(self, rows: Iterable[Example | Rows]) -> None:
        hashes, last = array("q"), None
        for row in rows:
            if isinstance(row, Rows) or row.problem is None:
                ids = _ids(row.cells[0] if isinstance(row, Rows) else Rows.of(row).cells[0])
                hashes.extend(hash(b) for a, b in pairwise(chain([last], ids)) if a != b)
                last = ids[-1]
        found, counts = np.unique(np.array(hashes, dtype=np.int64), return_counts=True)
        again = counts > 1
        self._left = dict(zip(found[again].tolist(), counts[again].tolist(), strict=True))

    @property
    def come_back(self) -> bool:
        """Whether an id comes back."""
        return bool(self._left)

    def ends(self, cell: object) -> bool:
        """Count a run of an id as read; tell whether it was the last one."""
        key = hash(cell)
        left = self._left.get(key, 1) - 1
        if left:
            self._left[key] = left
        return not left


def sequences_of_rows(
    rows: Iterable[Example | Rows], options: ReadOptions, runs: Runs | None, *, labelled: bool
) -> Iterator[Example]:
    """Yield the sequence of each id, in the order in which ids first appear, and bad rows.

    A row's sequence is its cells of `ReadOptions.sequence_columns`, the id first. With `runs` of
    the same rows, ids may come back; with None (standard input) that is a bad row.
    """
    layout = Layout(options, labelled)
    waiting: dict[Any, list[Rows]] = {}
    complete = set[Any]()
    ended = dict[int, int]()
    current: Any = None
    for name, run in _runs_of(rows, layout, scattered=bool(runs and runs.come_back)):
        if isinstance(run, Example) and run.problem is not None:
            yield run
            continue
        if name != current and current is not None:
            if runs is None or runs.ends(current):
                complete.add(current)
            while waiting and (first := next(iter(waiting))) in complete:
                complete.remove(first)
                known = waiting.pop(first)
                if runs is None:
                    ended[hash(first)] = known[0].lines[0]
                yield _sequence(known, layout)
        current = None
        if not isinstance(run, Rows):
            continue
        if _is_missing(name):
            yield _bad(run.first, f"{options.id}: the id is blank")
        elif hash(name) in ended:
            text = f"id {quote(str(name))} comes back, after line {ended[hash(name)]}"
            yield _bad(run.first, f"{text}; sort the rows by {options.id}, or give a file")
        else:
            current = name
            known = waiting.setdefault(name, [])
            known.append(run)
            if len(known) > MOST_PARTS:
                waiting[name] = [_merged(known)]
    for known in waiting.values():  # where a bad row was taken for the end of a run
        yield _sequence(known, layout)


def _runs_of(
    rows: Iterable[Example | Rows], layout: Layout, *, scattered: bool
) -> Iterator[tuple[Any, Rows | Example]]:
    """Yield rows that follow one another and are of one id, with it; a bad row without; the end."""
    last: Any = None
    share = dict[Any, Any]().setdefault if scattered else None
    for row in rows:
        if isinstance(row, Example):
            if row.problem is None:
                one = Rows.of(row)
                last = _ids(one.cells[0])[0]
                yield last, one
            else:
                yield last, row
            continue
        cells = layout.read(row.cells)
        ids = cells[0]
        if share is not None:  # rows wait for others of their id: one object of each token
            cells = [x if isinstance(x, np.ndarray) else [*map(share, x, x)] for x in cells]
            row = row._replace(labels=[*map(share, row.labels, row.labels)])
        starts = [i for i, (a, b) in enumerate(pairwise(ids), 1) if a != b]
        for start, stop in pairwise([0, *starts, len(ids)]):
            own = slice(start, stop)
            parts = ([column[own] for column in columns] for columns in (cells, row.static))
            kept = row.first.kept and {name: x[start] for name, x in row.first.kept.items()}
            group = row.first.group and row.first.group[start]
            line, label = row.lines[start], row.labels[start]
            last = ids[start]
            first = Example("", label, line, group=group or None, kept=kept, id=_text(last))
            yield last, Rows(row.lines[own], next(parts), row.labels[own], next(parts), first)
    yield None, Example("", None, 0)


def with_static(rows: Iterable[Example], columns: Columns) -> Iterator[Example]:
    """Read the cells beside each sequence, in the order of `column_names`."""
    for row in rows:
        cells: Any = row.static
        if row.problem is not None:
            yield row
            continue
        try:
            yield row._replace(static=_facts(columns, cells))
        except BadRow as bad:
            yield _bad(row, str(bad))


def _bad(row: Example, problem: str) -> Example:
    return row._replace(sequence="", static=None, problem=problem)


def _sequence(parts: list[Rows], layout: Layout) -> Example:
    """Return the example of an id's rows; a bad one names the line that is at fault."""
    lines, cells, labels, static, first = _merged(parts)
    cells = cells if first.id is not None else layout.read(cells)
    name, times = _text(cells[0][0]), None
    try:
        named = zip(column_names(layout.static), static, strict=True)
        label = next((x for x in labels if x not in (None, SET)), labels[0])
        if label is None and layout.labelled:
            raise BadRow(BLANK_LABEL)
        labels = [label if x in (None, SET) else x for x in labels]
        for what, column in (("label ", labels), *((f"{x}: ", each) for x, each in named)):
            if column.count(column[0]) < len(column):
                at = next(i for i, cell in enumerate(column) if cell != column[0])
                found = f"id {quote(name)} has {what}{quote(str(column[at]))} here, but "
                raise _BadCell(at, f"{found}{quote(str(column[0]))} on line {lines[0]}")
        if layout.order is not None:
            times = _times(cells[1], str(layout.order), lines[0])
            if (times[1:] < times[:-1]).any():
                order = np.argsort(times, kind="stable").tolist()
                lines = [lines[i] for i in order]
                cells = [[column[i] for i in order] for column in cells]
                times = times[order]
        numbers = _numbers(layout.number_kinds, cells[layout.numbers :], times, len(lines))
        read = Steps(tuple(cells[layout.first : layout.numbers]), numbers)
        beside = _facts(layout.static, [column[0] for column in static]) if static else None
    except BadRow as bad:
        at = bad.row if isinstance(bad, _BadCell) else 0
        return _bad(first._replace(line=lines[at], id=name), str(bad))
    return first._replace(sequence=read, static=beside, id=name, label=label)


def _merged(parts: list[Rows]) -> Rows:
    """Return rows of one id as one."""
    if len(parts) == 1:
        return parts[0]
    lines, labels = ([*chain(*(x[i] for x in parts))] for i in (0, 2))
    cells, static = (
        [_joined(columns) for columns in zip(*(x[i] for x in parts), strict=True)] for i in (1, 3)
    )
    raw = next((x.first for x in parts if x.first.id is None), parts[0].first)
    return Rows(lines, cells, labels, static, parts[0].first._replace(id=raw.id))


def _joined(columns: Sequence[Any]) -> Column:
    if all(isinstance(column, np.ndarray) for column in columns):
        return np.concatenate(columns)
    return [*chain.from_iterable(columns)]


def _facts(columns: Columns, cells: Sequence[Any]) -> Steps:
    """Read what stands beside a sequence, as one step, in the order of `column_names`."""
    count = len(token_columns(columns))
    named = [(name, "number") for name in column_names(columns)[count:]]
    numbers = _numbers(named, [_floats([cell]) for cell in cells[count:]], None, 1)
    return Steps(tuple(_tokens([cell]) for cell in cells[:count]), numbers)


def _numbers(
    kinds: Sequence[tuple[str, str]], cells: Sequence[Column], times: Any, length: int
) -> Features:
    """Read columns of numbers, and of growth of the order, which has no cells: (T, F)."""
    found, given = list[Any](), iter(cells)
    for name, kind in kinds:
        if kind == "order":
            found.append(np.diff(times, prepend=times[0]))
        else:
            column = next(given)
            found.append(column if isinstance(column, np.ndarray) else _one_by_one(column, name))
    table: Features = np.array(found, dtype=np.float32).reshape(len(kinds), length).T
    return table


def _ids(cells: Column) -> Column:
    """Return the cells of an id's column, without blanks around them."""
    return [cell.strip() if type(cell) is str else cell for cell in cells]


def _tokens(cells: Column) -> Column:
    if {*map(type, cells)} == {str} and "" not in cells and not any(map(str.isspace, cells)):
        return cells
    return [MISSING_TOKEN if _is_missing(cell) else _text(cell) for cell in cells]


def _floats(cells: Column) -> Column:
    """Return cells that all are numbers of float32's range, or missing, as an array."""
    try:
        text = "".join(cells)
        found = np.array([*map(float, cells)])
        if text.isascii() and "_" not in text and not (np.abs(found) > FLOAT32_MAX).any():
            return found
    except (TypeError, ValueError):
        pass
    return cells


def _is_missing(cell: object) -> bool:
    return cell is None or cell != cell or (isinstance(cell, str) and not cell.strip())


def _text(cell: object) -> str:
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def _one_by_one(cells: Column, name: str) -> list[float]:
    found = []
    for row, cell in enumerate(cells):
        try:
            found.append(number_of(cell))
        except BadRow as bad:
            raise _BadCell(row, f"{name}: {bad}") from None
        if abs(found[-1]) > FLOAT32_MAX:
            raise _BadCell(row, f"{name}: {cell} is infinite or too large for float32")
    return found


def _times(cells: Column, name: str, line: int) -> Any:
    """Read the cells of the order: all numbers, or all dates."""
    if isinstance(cells, np.ndarray) and not np.isnan(cells).any():
        return cells
    found, is_date = list[float](), False
    for row, cell in enumerate(cells):
        try:
            time, a_date = number_of(cell), False
        except BadRow:
            time, a_date = seconds_of(cell), True
        is_date = is_date or (row == 0 and a_date)
        if time != time or a_date != is_date:
            than = f" as on line {line}" if row else ""
            wanted = ("a date" if is_date else "a number") if row else "a number or an ISO date"
            raise _BadCell(row, f"{name}: found {quote(str(cell))}; expected {wanted}{than}")
        found.append(time)
    return np.array(found)


def seconds_of(cell: object) -> float:
    """Return the seconds of an ISO date since 1970, taken as UTC where it names no zone; or NaN."""
    try:
        if isinstance(cell, date) and not isinstance(cell, datetime):
            cell = cell.isoformat()
        if not isinstance(cell, datetime):
            cell = datetime.fromisoformat(str(cell).strip().replace("Z", "+00:00"))
    except ValueError:
        return float("nan")
    moment = cell if cell.tzinfo is not None else cell.replace(tzinfo=timezone.utc)
    return (moment - EPOCH).total_seconds()
