"""Sequences from tables whose rows are time steps: the rows of one id, in their order."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from heapq import merge
from itertools import chain, pairwise
from operator import ne
from typing import Any, TypeAlias

import numpy as np

from seqtrain.data.examples import BLANK_LABEL, BadRow, Example, Features, Steps
from seqtrain.data.labels import Labels
from seqtrain.data.read_options import ColumnKinds, column_names, token_columns
from seqtrain.data.readers.row_source import RowSource, name_of
from seqtrain.data.readers.sequences import FLOAT32_MAX, number_of, plain_numbers, with_points
from seqtrain.data.readers.times import (
    DATE,
    DURATION,
    NUMBER,
    ORDER_TYPES,
    SECOND,
    possible_types,
    read_time,
)
from seqtrain.text import quote

MISSING_TOKEN = "<unk>"
"""Token in place of a blank cell."""
Cells: TypeAlias = Any
"""Cells of a column: a list or tuple, or an array of numbers."""
Rows: TypeAlias = list[Cells]
"""Rows that are time steps, column by column: lines, labels, groups, kept columns, ids; then, as
in `Schema.sequence_columns`, order, tokens and numbers; then the row features."""
LINE, LABEL, GROUP, KEPT, ID = range(5)
AT_ONCE = 256
"""Rows of a file that are read together."""
KNOWN_CELLS = 4096
"""Number of cells whose tokens are remembered."""
LARGEST_EXACT = 2**53
"""From here on not every whole number is a float64."""
PLAIN_TYPES = {str, int, float, bool, type(None)}
"""Types of cells for which equal cells are the same token."""


class _BadCell(BadRow):
    """A row of a sequence can't be used.

    Args:
        row: Index of the row within the sequence.
        text: The problem.
    """

    def __init__(self, row: int, text: str) -> None:
        super().__init__(text)
        self.row = row


class _Sequence:
    """The rows of one id while they are collected, with the first row that can't be used."""

    def __init__(self, name: str | None, bad: Example | None = None) -> None:
        self.name, self.parts, self.bad = name, list[Rows](), bad


def ids_are_scattered(parts: Iterable[Example | Rows]) -> bool:
    """Return True if rows of other ids occur between the rows of an id."""
    hashes, last = array("q"), None
    for rows in parts:
        if isinstance(rows, list):
            ids = _ids(rows[ID])
            hashes.extend(hash(ids[start]) for start, _ in _runs(ids)[ids[0] == last :])
            last = ids[-1]
    return len(np.unique(np.array(hashes, dtype=np.int64))) < len(hashes)


class SequenceBuilder:
    """Build one sequence from the rows of each id.

    Args:
        source: Input that the rows come from.
        scattered: True if rows of other ids occur between the rows of an id, so that all rows
            must be held in memory. None if this isn't known, as for a stream: an id that occurs
            again is then a bad row.
    """

    def __init__(self, source: RowSource, scattered: bool | None) -> None:
        self.source, self.scattered, schema = source, scattered, source.schema
        self.id, self.order, self.order_type = schema.id, schema.order, schema.order_type
        self.static, steps = schema.static or {}, schema.steps or {}
        self.tokens = ID + (1 if self.order is None else 2)
        self.numbers = self.tokens + len(token_columns(steps))
        names = column_names(steps)[self.numbers - self.tokens :]
        self.kinds = [(name, steps[name]) for name in names]
        self.row_features = self.numbers + sum(kind != "order" for _, kind in self.kinds)
        self.first_lines = dict[int, int]()
        self.zones = dict[bool, tuple[int, str]]()

    def build(self, parts: Iterable[Example | Rows]) -> Iterator[Example]:
        """Yield the sequence of each id, in the order in which ids first occur.

        A row that can't be used makes its whole sequence one that can't be used. If such a row has
        no id, it belongs to the sequence of the row before it, or else of the row after it.
        """
        sequences = self._consecutive(map(self._read, parts))
        if not self.scattered:
            yield from map(self._example, sequences)
            return
        yield from map(self._example, self._grouped(map(self._read, parts)))

    def _grouped(self, parts: Iterable[Example | Rows]) -> Iterator[_Sequence]:
        """Yield the rows of each id, wherever they occur in the file."""
        known, ranks, bad = dict[str, str](), dict[str | None, int](), dict[str | None, Example]()
        good, last, orphan = list[Rows](), None, None
        for part in parts:
            if not isinstance(part, Example):
                good.append([*part[:ID], *(_shared(cells, known) for cells in part[ID:])])
                ids = part[ID]
            elif part.id is None and last is None:
                orphan = orphan or part  # it belongs to the first id that follows
                continue
            else:
                ids = [part.id or last]
                bad.setdefault(ids[0], part)
            if orphan is not None:
                bad.setdefault(ids[0], orphan)
                orphan = None
            for name in ids:
                ranks.setdefault(name, len(ranks))
            last = ids[-1]
        if orphan is not None:
            yield _Sequence(None, orphan)
        ordered = list[Rows]()
        if good:
            whole = [*map(_joined, zip(*good, strict=True))]
            del good
            order = np.argsort([ranks[name] for name in whole[ID]], kind="stable")
            ordered = [_taken(whole, order)]
        with_rows = {*ordered[0][ID]} if ordered and bad else set[str]()
        others = (_Sequence(name, x) for name, x in bad.items() if name not in with_rows)
        found = merge(others, self._consecutive(ordered), key=lambda x: ranks[x.name])
        for sequence in found:
            sequence.bad = bad.get(sequence.name)
            yield sequence

    def _consecutive(self, parts: Iterable[Example | Rows]) -> Iterator[_Sequence]:
        """Yield rows of the same id that follow one another."""
        current: _Sequence | None = None
        for part in parts:
            if isinstance(part, Example):
                name = part.id or (current.name if current else None)
                runs: list[tuple[str | None, Any]] = [(name, part)]
            else:
                ids = part[ID]
                runs = [(ids[a], [column[a:b] for column in part]) for a, b in _runs(ids)]
            for name, rows in runs:
                if current is not None and current.name is None:
                    current.name = name  # rows without an id at the start of the file
                if current is None or current.name != name:
                    if current is not None:
                        yield current
                    current = _Sequence(name)
                if isinstance(rows, Example):
                    current.bad = current.bad or rows
                else:
                    current.parts.append(rows)
        if current is not None:
            yield current

    def _read(self, rows: Example | Rows) -> Example | Rows:
        """Read whole columns at once, if all of their cells are as expected."""
        if isinstance(rows, Example):
            return rows
        rows[ID] = _ids(rows[ID])
        if self.source.format.decimal == ",":
            numbers = range(self.numbers, self.row_features)
            for at in (*numbers, *([] if self.order is None else [ID + 1])):
                rows[at] = [*map(with_points, rows[at])]
        if self.order is not None and self.order_type in (None, NUMBER):
            rows[ID + 1] = _whole_numbers(rows[ID + 1])
        for at in range(self.tokens, self.row_features):
            rows[at] = (_tokens if at < self.numbers else _floats)(rows[at])
        return rows

    def _example(self, sequence: _Sequence) -> Example:
        """Return the example of an id. If it can't be used, its line is that of the bad row."""
        name, bad = sequence.name or "", sequence.bad
        if not sequence.parts:
            assert bad is not None
            return bad._replace(id=name or None)
        rows = [*map(_joined, zip(*sequence.parts, strict=True))]
        lines, labels = rows[LINE], None
        fields = {"kept": rows[KEPT][0], "id": name}
        try:
            fields["group"] = name_of(rows[GROUP][0], "the group")
            if not name:
                raise BadRow(f"{self.id}: the id is blank")
            if bad is not None:
                return Example("", None, bad.line, **fields, problem=bad.problem)
            self._check_first(name, lines[0])
            labels = self._labels(rows[LABEL], name, lines)
            times, order = self._times(rows)
            if order is not None:
                rows = _taken(rows, order)
                fields["kept"] = rows[KEPT][0]
            numbers = self._numbers(rows[self.numbers : self.row_features], times, len(lines))
            read = Steps(tuple(rows[self.tokens : self.numbers]), numbers)
            static = self._row_features(rows[self.row_features :], name, lines)
        except BadRow as problem:
            line = rows[LINE][problem.row if isinstance(problem, _BadCell) else 0]
            return Example("", labels, line, **fields, problem=str(problem))
        return Example(read, labels, lines[0], **fields, static=static)

    def _check_first(self, name: str, line: int) -> None:
        """Raise BadRow if an id of a stream has occurred before."""
        if self.scattered is None and self.first_lines.setdefault(hash(name), line) != line:
            before = f"id {quote(name)} comes back, after line {self.first_lines[hash(name)]}"
            raise BadRow(f"{before}; sort the rows by {self.id}, or give a file")

    def _labels(self, cells: Cells, name: str, lines: Sequence[int]) -> Labels | None:
        """Return the labels of an id, which all of its rows that aren't blank have."""
        is_equal = cells.count(cells[0]) == len(cells)
        found = _each(self.source.labels, cells[:1] if is_equal else cells)
        labels: Labels | None = next((own for own in found if own), found[0])
        if labels is None and self.source.labelled:
            raise BadRow(BLANK_LABEL)
        _check_equal([own or labels for own in found], "label ", name, lines)
        return labels

    def _row_features(
        self, columns: Sequence[Cells], name: str, lines: Sequence[int]
    ) -> Steps | None:
        """Return the row features of an id, which all of its rows have."""
        for column, cells in zip(column_names(self.static), columns, strict=True):
            _check_equal(cells, f"{column}: ", name, lines)
        first = [cells[0] for cells in columns]
        return read_row_features(self.static, first, self.source.format.decimal) if first else None

    def _times(self, rows: Rows) -> tuple[Any, Any]:
        """Return the sorted times of the rows, and the indices that sort them.

        The indices are None if the rows are sorted. Times are exact integers, also beyond int64.
        """
        if self.order is None:
            return None, None
        cells, lines = rows[ID + 1], rows[LINE]
        if _is_array(cells) and not np.isnan(cells).any() and self._expects(NUMBER):
            times = cells
        else:
            times = _exact([self._time(cell, row, lines[row]) for row, cell in enumerate(cells)])
        if times.dtype.kind == "i" and len(times):
            spread = int(times.max()) - int(times.min())
            times = times if spread < 2**63 else times.astype(object)
        if not (times[1:] < times[:-1]).any():
            return times, None
        order = np.argsort(times, kind="stable")
        return times[order], order

    def _expects(self, order_type: str) -> bool:
        self.order_type = self.order_type or order_type
        return self.order_type == order_type

    def _time(self, cell: Any, row: int, line: int) -> Any:
        """Return the number by which a row is sorted.

        Raises:
            DataError: If some dates of the file name their time zone and others don't.
        """
        cell = cell.item() if isinstance(cell, np.generic) else cell
        if self.order_type is None:
            self.order_type = next(iter(sorted(possible_types(cell), reverse=True)), None)
        order_type = self.order_type or NUMBER
        try:
            time, has_zone = read_time(cell, order_type)
        except BadRow:
            time, has_zone = None, None
        if time is None:
            expected = ORDER_TYPES[order_type]
            if self.order_type is None:
                expected = f"a number or {ORDER_TYPES[DATE]}"
            elif self.source.schema.order_type is not None:
                expected += ", as in train's first row"
            raise _BadCell(row, f"{self.order}: found {quote(str(cell))}; expected {expected}")
        if has_zone is not None:
            self.zones.setdefault(has_zone, (line, str(cell)))
            if len(self.zones) > 1:
                other, example = self.zones[not has_zone]
                without, zoned = (line, other) if not has_zone else (other, line)
                self.source.problems.fail(
                    line,
                    f"{self.order}: {quote(str(cell))} and {quote(example)} on line {other}: only "
                    f"line {zoned} names a time zone, line {without} doesn't; write all with one",
                )
        return time

    def _numbers(self, cells: Sequence[Cells], times: Any, length: int) -> Features:
        """Return the numbers of each step, (T, F): columns of numbers, and growth of the order."""
        found, columns = list[Any](), iter(cells)
        for name, kind in self.kinds:
            if kind == "order":
                grown = np.diff(times, prepend=times[:1])
                is_number = self.order_type == NUMBER
                column = _each(_number, grown if is_number else grown / SECOND, f"{name}: ")
            else:
                column = next(columns)
            found.append(column if _is_array(column) else _each(_number, column, f"{name}: "))
        table: Features = np.array(found, dtype=np.float32).reshape(len(found), length).T
        return table


def read_row_features(columns: ColumnKinds, cells: Sequence[Any], decimal: str = ".") -> Steps:
    """Return the row features of a sequence as one step, in the order of `column_names`."""
    count = len(token_columns(columns))
    numbers = []
    for name, cell in zip(column_names(columns)[count:], cells[count:], strict=True):
        value = with_points(cell) if decimal == "," else cell
        numbers += _each(_number, [value], f"{name}: ")
    table = np.array(numbers, dtype=np.float32).reshape(1, len(numbers))
    return Steps(tuple([token] for token in _tokens(cells[:count])), table)


def _check_equal(cells: Cells, what: str, name: str, lines: Sequence[int]) -> None:
    """Raise BadRow at the first row whose cell differs from that of the first row."""
    for row, cell in enumerate(cells):
        if cell != cells[0]:
            found = f"id {quote(name)} has {what}{_shown(cell)} here, but {_shown(cells[0])}"
            raise _BadCell(row, f"{found} on line {lines[0]}")


def _shown(cell: object) -> str:
    return quote(", ".join(cell) if isinstance(cell, tuple) else str(cell))


def _each(read: Callable[[Any], Any], cells: Cells, where: str = "") -> list[Any]:
    """Return what `read` returns for each cell; a BadRow names the row."""
    found = []
    for row, cell in enumerate(cells):
        try:
            found.append(read(cell))
        except BadRow as bad:
            raise _BadCell(row, f"{where}{bad}") from None
    return found


def _is_array(cells: Cells) -> bool:
    return isinstance(cells, np.ndarray)


def _exact(numbers: list[Any]) -> Any:
    """Return numbers as an array that loses nothing; whole numbers may be beyond int64."""
    whole = [number for number in numbers if type(number) is int]
    are_large = any(abs(number) >= LARGEST_EXACT for number in whole)
    if len(whole) < len(numbers):
        return np.array(numbers, dtype=object if are_large else np.float64)
    try:
        return np.array(numbers, dtype=np.int64)
    except OverflowError:
        return np.array(numbers, dtype=object)


def _shared(cells: Cells, known: dict[str, str]) -> Cells:
    """Return a column in which equal texts are one object, to save memory."""
    if _is_array(cells):
        return cells
    return [known.setdefault(x, x) if type(x) is str else x for x in cells]


def _joined(columns: Sequence[Cells]) -> Cells:
    if len(columns) == 1:
        return columns[0]
    if all(map(_is_array, columns)):
        return np.concatenate(columns)
    return [*chain.from_iterable(x.tolist() if _is_array(x) else x for x in columns)]


def _taken(rows: Rows, order: Any) -> Rows:
    at = order.tolist()
    return [x[order] if _is_array(x) else [*map(x.__getitem__, at)] for x in rows]


def _ids(cells: Cells) -> Cells:
    """Return the cells of the id column as texts, without surrounding blanks."""
    try:
        return [*map(str.strip, cells)]
    except TypeError:
        return ["" if _is_missing(cell) else _text(cell).strip() for cell in cells]


def id_of(cell: object) -> str | None:
    """Return an id as text, or None if the cell is blank."""
    return _ids([cell])[0] or None


def _runs(ids: Cells) -> list[tuple[int, int]]:
    """Return the begin and the end of each run of equal ids."""
    starts = np.flatnonzero([*map(ne, ids[1:], ids)]) + 1
    return [*pairwise([0, *starts.tolist(), len(ids)])]


def _tokens(cells: Cells) -> Cells:
    # Other cells may be lists, or equal and yet written differently, as Decimals are.
    is_plain = {*map(type, cells)} <= PLAIN_TYPES
    return [*map(_token if is_plain else _token.__wrapped__, cells)]


def _whole_numbers(cells: Cells) -> Cells:
    """Return cells that are all whole numbers as int64; times may be beyond 2**53."""
    found: Cells = plain_numbers(cells)
    if found is None or not np.isfinite(found).all():
        return cells
    if {*map(type, cells)} <= {int, str}:
        with suppress(ValueError, OverflowError):
            return np.array([*map(int, cells)], np.int64)
        if (np.abs(found) >= LARGEST_EXACT).any():
            return cells  # read one by one, as exact integers
    return found


def _floats(cells: Cells) -> Cells:
    """Return cells that are all numbers of float32's range, or missing, as an array."""
    found = plain_numbers(cells)
    return cells if found is None or (np.abs(found) > FLOAT32_MAX).any() else found


def _is_missing(cell: object) -> bool:
    return cell is None or cell != cell or (isinstance(cell, str) and not cell.strip())


def _text(cell: object) -> str:
    """Return a cell as text; a whole number has no fraction, as in text files."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


@lru_cache(KNOWN_CELLS, typed=True)
def _token(cell: Any) -> str:
    """Return a cell as a token, the same for text files, JSON and tables from Python.

    pandas writes True where JSON has true, and 2.0 for 2 if another row of the column is blank.
    """
    if _is_missing(cell):
        return MISSING_TOKEN
    text = _text(cell)
    if text.endswith(".0") and text[:-2].lstrip("-").isdecimal():
        return text[:-2]
    return text.lower() if text.lower() in ("true", "false") else text


def _number(cell: Any) -> float:
    try:
        number = number_of(cell.item() if isinstance(cell, np.generic) else cell)
    except BadRow:
        seconds = _seconds(cell)
        if seconds is None:
            raise
        number = seconds
    if abs(number) > FLOAT32_MAX:
        raise BadRow(f"{cell} is infinite or too large for float32")
    return number


def _seconds(cell: object) -> float | None:
    """Return the seconds of a time such as 12:30, or None if a cell is no time."""
    with suppress(BadRow):
        nanoseconds = read_time(cell, DURATION)[0]
        return None if nanoseconds is None else nanoseconds / SECOND
    return None
