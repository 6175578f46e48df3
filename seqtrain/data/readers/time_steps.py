"""From rows that are time steps to sequences: the rows of one id, in their order."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timezone
from itertools import chain
from typing import Any

import numpy as np

from seqtrain.data.examples import (
    BadRow,
    Columns,
    Example,
    ReadOptions,
    Steps,
    column_names,
    token_columns,
)
from seqtrain.data.readers.sequences import float32, number_of
from seqtrain.text import quote

MISSING_TOKEN = "<unk>"
"""What a blank cell of a column of tokens is read as."""
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class _BadCell(BadRow):
    """A row of a sequence, counted from 0, can't be used."""

    def __init__(self, row: int, text: str) -> None:
        super().__init__(text)
        self.row = row


class Runs:
    """How often each id comes back in a file; the rows of an id that never does are one run."""

    def __init__(self, rows: Iterable[Any]) -> None:
        hashes, last = array("q"), None
        for row in rows:
            if row.problem is None and row.sequence[0] != last:
                last = row.sequence[0]
                hashes.append(hash(last))
        found, counts = np.unique(np.array(hashes, dtype=np.int64), return_counts=True)
        again = counts > 1
        self._left = dict(zip(found[again].tolist(), counts[again].tolist(), strict=True))

    def ends(self, cell: object) -> bool:
        """Count a run of an id as read; tell whether it was the last one."""
        key = hash(cell)
        left = self._left.get(key, 1) - 1
        if left:
            self._left[key] = left
        return not left


def sequences_of_rows(
    rows: Iterable[Any], options: ReadOptions, runs: Runs | None
) -> Iterator[Example]:
    """Yield the sequence of each id, in the order in which ids first appear, and bad rows.

    A row's sequence is its cells of `ReadOptions.sequence_columns`, the id first. With `runs` of
    the same rows, ids may come back; with None (standard input) that is a bad row.
    """
    waiting: dict[Any, list[Any]] = {}
    complete = set[Any]()
    ended = dict[int, int]()
    current: Any = None
    for row in chain(rows, [Example("", None, 0)]):  # the last one ends all runs
        if row.problem is not None:
            yield row
            continue
        found = row.sequence[0] if row.sequence else None
        if found == current:
            if found is not None:
                waiting[found].append(row)
            continue
        if current is not None and (runs is None or runs.ends(current)):
            complete.add(current)
        while waiting and (first := next(iter(waiting))) in complete:
            complete.remove(first)
            known = waiting.pop(first)
            if runs is None:
                ended[hash(first)] = known[0].line
            yield _sequence(known, options)
        current = None
        if _is_missing(found) and row.line:
            yield _bad(row, f"{options.id}: the id is blank")
        elif hash(found) in ended:
            text = f"id {quote(str(found))} comes back, after line {ended[hash(found)]}"
            text += f"; sort the rows by {options.id}, or give a file"
            yield _bad(row, text)
        elif row.line:
            current = found
            waiting.setdefault(found, []).append(row)


def with_static(rows: Iterable[Example], columns: Columns) -> Iterator[Example]:
    """Read the cells beside each sequence, in the order of `column_names`."""
    for row in rows:
        cells: Any = row.static
        if row.problem is not None:
            yield row
            continue
        try:
            yield row._replace(static=_steps(columns, [[cell] for cell in cells], None))
        except BadRow as bad:
            yield _bad(row, str(bad))


def _bad(row: Example, problem: str) -> Example:
    return row._replace(sequence="", static=None, problem=problem)


def _sequence(rows: list[Any], options: ReadOptions) -> Example:
    """Return the example of an id's rows; a bad one names the line that is at fault."""
    times: list[float] | None = None
    first: Example = rows[0]
    name = _text(rows[0].sequence[0])
    try:
        if len({row.label for row in rows}) > 1:
            at = next(i for i, row in enumerate(rows) if row.label != first.label)
            found = f"id {quote(name)} has label {quote(str(rows[at].label))} here, but "
            raise _BadCell(at, f"{found}{quote(str(first.label))} on line {first.line}")
        if any(row.static != first.static for row in rows):
            at = next(i for i, row in enumerate(rows) if row.static != first.static)
            found = f"id {quote(name)} has other values here than on line {first.line}"
            raise _BadCell(at, f"{found} in the columns of data.static; expected one of each")
        if options.order is not None:
            times = _times([row.sequence[1] for row in rows], str(options.order), rows)
            order = sorted(range(len(rows)), key=times.__getitem__)
            rows, times = [rows[i] for i in order], [times[i] for i in order]
        cells = [*zip(*(row.sequence for row in rows), strict=True)]
        read = _steps(options.steps or {}, cells[1 + (times is not None) :], times)
        facts: Any = first.static
        static = facts and _steps(options.static or {}, [[x] for x in facts], None)
    except BadRow as bad:
        at = bad.row if isinstance(bad, _BadCell) else 0
        return _bad(first._replace(line=rows[at].line, id=name), str(bad))
    return first._replace(sequence=read, static=static, id=name)


def _steps(columns: Columns, cells: Sequence[Sequence[Any]], times: list[float] | None) -> Steps:
    """Read cells, column by column as `column_names` has them, but those that are the order's."""
    count = len(token_columns(columns))
    numbers, given = list[Any](), iter(cells[count:])
    for name in column_names(columns)[count:]:
        if columns[name] == "order" and times is not None:
            numbers.append(np.diff(times, prepend=times[0]))
        else:
            numbers.append(_numbers(next(given), name))
    length = len(cells[0]) if cells else len(times or ())
    table = np.array(numbers, dtype=np.float64).reshape(len(numbers), length).T
    return Steps(tuple(map(_tokens, cells[:count])), float32(table))


def _tokens(cells: Sequence[Any]) -> Sequence[str]:
    if {*map(type, cells)} == {str} and "" not in cells and not any(map(str.isspace, cells)):
        return cells
    return [MISSING_TOKEN if _is_missing(cell) else _text(cell) for cell in cells]


def _is_missing(cell: object) -> bool:
    return cell is None or cell != cell or (isinstance(cell, str) and not cell.strip())


def _text(cell: object) -> str:
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def _numbers(cells: Sequence[Any], name: str) -> list[float]:
    try:
        found, text = [*map(float, cells)], "".join(cells)
        if text.isascii() and "_" not in text:
            return found
    except (TypeError, ValueError):
        pass
    found = []
    for row, cell in enumerate(cells):
        try:
            found.append(number_of(cell))
        except BadRow as bad:
            raise _BadCell(row, f"{name}: {bad}") from None
    return found


def _times(cells: list[Any], name: str, rows: list[Any]) -> list[float]:
    """Read the cells of the order: all numbers, or all dates."""
    found, is_date = list[float](), False
    for row, cell in enumerate(cells):
        try:
            time = number_of(cell)
            a_date = False
        except BadRow:
            time, a_date = seconds_of(cell), True
        is_date = is_date or (row == 0 and a_date)
        if time != time or a_date != is_date:
            than = f" as on line {rows[0].line}" if row else ""
            wanted = ("a date" if is_date else "a number") if row else "a number or an ISO date"
            raise _BadCell(row, f"{name}: found {quote(str(cell))}; expected {wanted}{than}")
        found.append(time)
    return found


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
