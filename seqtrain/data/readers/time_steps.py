"""From rows that are time steps to sequences: the rows of one id, in their order."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from functools import lru_cache
from heapq import merge
from itertools import chain, pairwise
from operator import ne
from typing import Any, TypeAlias

import numpy as np

from seqtrain.data.examples import (
    BLANK_LABEL,
    BadRow,
    Columns,
    Example,
    Features,
    Steps,
    column_names,
    token_columns,
)
from seqtrain.data.labels import Labels
from seqtrain.data.readers.opening import RowSource, name_of
from seqtrain.data.readers.sequences import FLOAT32_MAX, number_of, plain_numbers
from seqtrain.text import quote

MISSING_TOKEN = "<unk>"
"""What a blank cell of a column of tokens is read as."""
Column: TypeAlias = Any
"""The cells of a column: a list or tuple, or an array of numbers."""
Rows: TypeAlias = list[Column]
"""Rows that are time steps, column by column: lines, cells of label and group, kept columns, ids;
then as `ReadOptions.sequence_columns` has them order, tokens and numbers; then static columns."""
LINE, LABEL, GROUP, KEPT, ID = range(5)
AT_ONCE = 256
"""Rows that are put together."""
KNOWN_CELLS = 4096
"""Cells whose tokens are remembered."""
PLAIN_TYPES = {str, int, float, bool, type(None)}
"""Types of cells of which equal ones are the same token."""


class _BadCell(BadRow):
    """A row of a sequence, counted from 0, can't be used."""

    def __init__(self, row: int, text: str) -> None:
        super().__init__(text)
        self.row = row


def ids_come_back(given: Iterable[Example | Rows]) -> bool:
    """Whether rows of other ids stand between the rows of an id."""
    hashes, last = array("q"), None
    for rows in given:
        if isinstance(rows, list):
            ids = _ids(rows[ID])
            hashes.extend(hash(ids[start]) for start, _ in _runs(ids)[ids[0] == last :])
            last = ids[-1]
    return len(np.unique(np.array(hashes, dtype=np.int64))) < len(hashes)


class SequencesOfRows:
    """Puts the rows of each id together.

    Args:
        source: what they are read from.
        come_back: whether ids come back, so that all rows are held; None: nobody knows, and an id
            that does is a bad row.
    """

    def __init__(self, source: RowSource, come_back: bool | None) -> None:
        self.source, self.come_back, options = source, come_back, source.options
        self.id, self.order, self.dated = options.id, options.order, options.dated
        self.static, steps = options.static or {}, options.steps or {}
        self.tokens = ID + (1 if self.order is None else 2)
        self.numbers = self.tokens + len(token_columns(steps))
        named = column_names(steps)[self.numbers - self.tokens :]
        self.kinds = [(name, steps[name]) for name in named]
        self.beside = self.numbers + sum(kind != "order" for _, kind in self.kinds)

    def of(self, given: Iterable[Example | Rows]) -> Iterator[Example]:
        """Yield the sequence of each id, in the order in which ids first appear, and bad rows."""
        if not self.come_back:
            yield from self._in_order(map(self._read, given))
            return
        known, bad, good = dict[str, str](), list[Example](), list[Rows]()
        for rows in map(self._read, given):
            if isinstance(rows, Example):
                bad.append(rows)
            else:
                good.append([*rows[:ID], *(_shared(x, known) for x in rows[ID:])])
        whole = [*map(_joined, zip(*good, strict=True))]
        numbers = dict[Any, int]()
        first = [numbers.setdefault(name, len(numbers)) for name in (whole[ID] if whole else ())]
        ordered = [_taken(whole, np.argsort(first, kind="stable"))] if whole else []
        yield from merge(bad, self._in_order(ordered), key=lambda x: x.line)

    def _read(self, rows: Example | Rows) -> Example | Rows:
        """Read whole columns at once, as far as they hold what they should."""
        if isinstance(rows, Example):
            return rows
        rows[ID] = _ids(rows[ID])
        if self.order is not None:
            rows[ID + 1] = _whole(rows[ID + 1])
        for at in range(self.tokens, self.beside):
            rows[at] = (_tokens if at < self.numbers else _floats)(rows[at])
        return rows

    def _in_order(self, given: Iterable[Example | Rows]) -> Iterator[Example]:
        ended, parts = dict[int, int](), list[Rows]()  # the rows of the id under way
        for rows in given:
            if isinstance(rows, Example):
                yield rows
                continue
            for start, stop in _runs(rows[ID]):
                if parts and parts[0][ID][0] != rows[ID][start]:
                    yield self._sequence(parts, ended)
                    parts = []
                parts.append([column[start:stop] for column in rows])
        if parts:
            yield self._sequence(parts, ended)

    def _sequence(self, parts: list[Rows], ended: dict[int, int]) -> Example:
        """Return the example of an id's rows; a bad one names the line that is at fault."""
        rows = [*map(_joined, zip(*parts, strict=True))] if len(parts) > 1 else parts[0]
        lines, name, times, label = rows[LINE], rows[ID][0], None, None
        given, static = {"kept": rows[KEPT][0]}, rows[self.beside :]
        try:
            given["group"] = name_of(rows[GROUP][0], "the group")
            if not name:
                raise BadRow(f"{self.id}: the id is blank")
            if self.come_back is None and ended.setdefault(hash(name), lines[0]) != lines[0]:
                before = f"id {quote(name)} comes back, after line {ended[hash(name)]}"
                raise BadRow(f"{before}; sort the rows by {self.id}, or give a file")
            labels = self._labels(rows[LABEL])
            label = labels[0]
            if label is None and self.source.labelled:
                raise BadRow(BLANK_LABEL)
            named = zip(column_names(self.static), static, strict=True)
            for what, column in (("label ", labels), *((f"{x}: ", each) for x, each in named)):
                if column.count(column[0]) < len(column):
                    at = next(i for i, cell in enumerate(column) if cell != column[0])
                    found = f"id {quote(name)} has {what}{_shown(column[at])} here, but "
                    raise _BadCell(at, f"{found}{_shown(column[0])} on line {lines[0]}")
            if self.order is not None:
                times = self._times(rows[ID + 1])
                if (times[1:] < times[:-1]).any():
                    order = np.argsort(times, kind="stable")
                    rows, times = _taken(rows, order), times[order]
                    given["kept"] = rows[KEPT][0]
            numbers = self._numbers(rows[self.numbers : self.beside], times, len(lines))
            read = Steps(tuple(rows[self.tokens : self.numbers]), numbers)
            facts = facts_of(self.static, [column[0] for column in static]) if static else None
        except BadRow as bad:
            line = rows[LINE][bad.row if isinstance(bad, _BadCell) else 0]
            return Example("", label, line, **given, id=name, problem=str(bad))
        return Example(read, label, lines[0], **given, static=facts, id=name)

    def _labels(self, cells: Column) -> list[Labels | None]:
        """Read the labels of an id's rows; blank cells take the labels of the other rows."""
        given = cells[:1] if cells.count(cells[0]) == len(cells) else cells
        found = _each(self.source.labels, given)
        labels = next((own for own in found if own), found[0])
        return [own or labels for own in found]

    def _times(self, cells: Column) -> Any:
        """Read the cells of the order: all numbers, or all dates, as train's first row has it."""
        if _is_array(cells) and not self.dated and not np.isnan(cells).any():
            return cells
        return np.array(_each(self._time, cells, f"{self.order}: "))

    def _time(self, cell: object) -> float:
        time, is_date = time_of(cell)
        if self.dated is None and time == time:
            self.dated = is_date
        if time != time or is_date != self.dated:
            kinds = {None: "a number or an ISO date", True: "a date", False: "a number"}
            expected = kinds[self.dated] + " as in train's first row" * (self.dated is not None)
            raise BadRow(f"found {quote(str(cell))}; expected {expected}")
        return time

    def _numbers(self, cells: Sequence[Column], times: Any, length: int) -> Features:
        """Return columns of numbers, and of growth of the order, which has no cells: (T, F)."""
        found, given = list[Any](), iter(cells)
        for name, kind in self.kinds:
            column = np.diff(times, prepend=times[0]) if kind == "order" else next(given)
            found.append(column if _is_array(column) else _each(_number, column, f"{name}: "))
        table: Features = np.array(found, dtype=np.float32).reshape(len(found), length).T
        return table


def _shown(cell: object) -> str:
    return quote(", ".join(cell) if isinstance(cell, tuple) else str(cell))


def facts_of(columns: Columns, cells: Sequence[Any]) -> Steps:
    """Read what stands beside a sequence, as one step, in the order of `column_names`."""
    count = len(token_columns(columns))
    named = zip(column_names(columns)[count:], cells[count:], strict=True)
    numbers = [_each(_number, [cell], f"{name}: ") for name, cell in named]
    table = np.array(numbers, dtype=np.float32).reshape(1, len(numbers))
    return Steps(tuple([token] for token in _tokens(cells[:count])), table)


def _each(read: Callable[[Any], Any], cells: Column, where: str = "") -> list[Any]:
    """Return what is read of each cell; a bad one is named by its row."""
    found = []
    for row, cell in enumerate(cells):
        try:
            found.append(read(cell))
        except BadRow as bad:
            raise _BadCell(row, f"{where}{bad}") from None
    return found


def _is_array(column: Column) -> bool:
    return isinstance(column, np.ndarray)


def _shared(column: Column, known: dict[str, str]) -> Column:
    """Return a column that holds one object of each text."""
    if _is_array(column):
        return column
    return [known.setdefault(x, x) if type(x) is str else x for x in column]


def _joined(columns: Sequence[Column]) -> Column:
    if all(map(_is_array, columns)):
        return np.concatenate(columns)
    return [*chain.from_iterable(x.tolist() if _is_array(x) else x for x in columns)]


def _taken(rows: Rows, order: Any) -> Rows:
    at = order.tolist()
    return [x[order] if _is_array(x) else [*map(x.__getitem__, at)] for x in rows]


def _ids(cells: Column) -> Column:
    """Return the cells of an id's column as texts, without blanks around them."""
    try:
        return [*map(str.strip, cells)]
    except TypeError:
        return ["" if _is_missing(cell) else _text(cell).strip() for cell in cells]


def _runs(ids: Column) -> list[tuple[int, int]]:
    """Return where each run of equal ids begins and ends."""
    starts = np.flatnonzero([*map(ne, ids[1:], ids)]) + 1
    return [*pairwise([0, *starts.tolist(), len(ids)])]


def _tokens(cells: Column) -> Column:
    # Other values may be lists, or equal and yet written differently, as Decimals are.
    is_plain = {*map(type, cells)} <= PLAIN_TYPES
    return [*map(_token if is_plain else _token.__wrapped__, cells)]


def _whole(cells: Column) -> Column:
    """Return cells that all are whole numbers as an array, exactly: times may be beyond 2^53."""
    found: Column = _floats(cells)
    if _is_array(found) and {*map(type, cells)} <= {int, str}:
        with suppress(ValueError, OverflowError):
            return np.array([*map(int, cells)], np.int64)
    return found


def _floats(cells: Column) -> Column:
    """Return cells that all are numbers of float32's range, or missing, as an array."""
    found = plain_numbers(cells)
    return cells if found is None or (np.abs(found) > FLOAT32_MAX).any() else found


def _is_missing(cell: object) -> bool:
    return cell is None or cell != cell or (isinstance(cell, str) and not cell.strip())


def _text(cell: object) -> str:
    """Return a cell as text: a whole number without a fraction, as files of text have it."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


@lru_cache(KNOWN_CELLS, typed=True)
def _token(cell: Any) -> str:
    """Return a cell as a token, the same in files of text, JSON and tables of Python.

    pandas writes True, JSON has true; and 2 is written 2.0 where other rows have no number.
    """
    if _is_missing(cell):
        return MISSING_TOKEN
    text = _text(cell)
    if text.endswith(".0") and text[:-2].lstrip("-").isdecimal():
        return text[:-2]
    return text.lower() if text.lower() in ("true", "false") else text


def _number(cell: object) -> float:
    number = number_of(cell)
    if abs(number) > FLOAT32_MAX:
        raise BadRow(f"{cell} is infinite or too large for float32")
    return number


def time_of(cell: object) -> tuple[float, bool]:
    """Return the number of a cell of the order, or the seconds of a date, and which it is."""
    try:
        return number_of(cell), False
    except BadRow:
        return seconds_of(cell), True


def seconds_of(cell: object) -> float:
    """Return the seconds of an ISO date since 1970, taken as UTC where it names no zone; or NaN."""
    try:
        moment = datetime.fromisoformat(str(cell).strip().replace("Z", "+00:00"))
    except ValueError:
        return float("nan")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return moment.timestamp()
