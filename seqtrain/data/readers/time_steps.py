"""Sequences from tables whose rows are time steps: the rows of one id, in their order."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from typing import Any

import numpy as np

from seqtrain.data.examples import BLANK_LABEL, BadRow, Example, Features, Steps
from seqtrain.data.labels import Labels
from seqtrain.data.read_options import ColumnKinds, column_names, token_columns
from seqtrain.data.readers.row_source import RowSource, name_of
from seqtrain.data.readers.sequences import FLOAT32_MAX, with_points
from seqtrain.data.readers.step_cells import (
    Cells,
    Rows,
    exact_array,
    exact_cells,
    float_cells,
    id_cells,
    is_array,
    joined,
    number_in,
    runs_of,
    taken,
    token_cells,
    with_shared_texts,
)
from seqtrain.data.readers.times import (
    DATE,
    NUMBER,
    ORDER_TYPES,
    SECOND,
    possible_types,
    read_time,
)
from seqtrain.text import quote

LINE, LABEL, GROUP, KEPT, ID = range(5)
AT_ONCE = 256
"""Rows of a file that are read together."""


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
    for part in _with_ids(map(_read_ids, parts)):
        ids = [part.id] if isinstance(part, Example) else part[ID]
        hashes.extend(hash(ids[start]) for start, _ in runs_of(ids)[ids[0] == last :])
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
        named = _with_ids(map(self._read, parts))
        sequences = self._grouped(named) if self.scattered else _consecutive(named)
        yield from map(self._example, sequences)

    def _grouped(self, parts: Iterable[Example | Rows]) -> Iterator[_Sequence]:
        """Yield the rows of each id, wherever they occur in the file."""
        known, ranks, bad = dict[str, str](), dict[str | None, int](), dict[str | None, Example]()
        good, ranks_of_rows = list[Rows](), list[int]()
        for part in parts:
            if isinstance(part, Example):
                ranks.setdefault(part.id, len(ranks))
                bad.setdefault(part.id, part)
            else:
                ranks_of_rows += [ranks.setdefault(name, len(ranks)) for name in part[ID]]
                good.append([*part[:ID], *(with_shared_texts(cells, known) for cells in part[ID:])])
        ordered = list[Rows]()
        if good:
            whole = [*map(joined, zip(*good, strict=True))]
            del good
            ordered = [taken(whole, np.argsort(ranks_of_rows, kind="stable"))]
        with_rows = {*ordered[0][ID]} if ordered and bad else set[str]()
        others = (_Sequence(name, x) for name, x in bad.items() if name not in with_rows)
        for sequence in merge(others, _consecutive(ordered), key=lambda x: ranks[x.name]):
            sequence.bad = bad.get(sequence.name)
            yield sequence

    def _read(self, rows: Example | Rows) -> Example | Rows:
        """Read whole columns at once, if all of their cells are as expected."""
        rows = _read_ids(rows)
        if isinstance(rows, Example):
            return rows
        if self.source.format.decimal == ",":
            numbers = range(self.numbers, self.row_features)
            for at in (*numbers, *([] if self.order is None else [ID + 1])):
                rows[at] = [*map(with_points, rows[at])]
        if self.order is not None and self.order_type in (None, NUMBER):
            rows[ID + 1] = exact_cells(rows[ID + 1])
        for at in range(self.tokens, self.row_features):
            rows[at] = (token_cells if at < self.numbers else float_cells)(rows[at])
        return rows

    def _example(self, sequence: _Sequence) -> Example:
        """Return the example of an id. If it can't be used, its line is that of the bad row."""
        name, bad = sequence.name or "", sequence.bad
        if not sequence.parts:
            assert bad is not None
            return bad._replace(id=name or None)
        rows = [*map(joined, zip(*sequence.parts, strict=True))]
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
                rows = taken(rows, order)
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
        can_be_numbers = is_array(cells) and self.order_type in (None, NUMBER)
        if can_be_numbers and not np.isnan(cells).any():
            self.order_type, times = NUMBER, cells
        else:
            times = exact_array(
                [self._time(cell, row, lines[row]) for row, cell in enumerate(cells)]
            )
        if not (times[1:] < times[:-1]).any():
            return times, None
        order = np.argsort(times, kind="stable")
        return times[order], order

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
            column = self._growth(times, name) if kind == "order" else next(columns)
            found.append(column if is_array(column) else _each(number_in, column, f"{name}: "))
        table: Features = np.array(found, dtype=np.float32).reshape(len(found), length).T
        return table

    def _growth(self, times: Any, name: str) -> Any:
        """Return the difference of each time to the one before, in seconds for dates, (T,)."""
        grown = np.diff(times, prepend=times[:1])
        if (grown < 0).any():  # the difference of sorted times is beyond int64
            grown = np.diff(times.astype(object), prepend=int(times[0]))
        growth = np.asarray(grown if self.order_type == NUMBER else grown / SECOND, np.float64)
        if (growth > FLOAT32_MAX).any():
            row = int(np.argmax(growth > FLOAT32_MAX))
            raise _BadCell(row, f"{name}: {growth[row]:g} is too large for float32")
        return growth


def _read_ids(part: Example | Rows) -> Example | Rows:
    """Return rows with their ids as texts."""
    if not isinstance(part, Example):
        part[ID] = id_cells(part[ID])
    return part


def _with_ids(parts: Iterable[Example | Rows]) -> Iterator[Example | Rows]:
    """Yield rows; a bad row without an id gets that of the row before, or else of the row after."""
    last: str | None = None
    waiting = list[Example]()
    for part in parts:
        if isinstance(part, Example):
            if part.id is None and last is None:
                waiting.append(part)
                continue
            part = part._replace(id=part.id or last)
        first, last = (part.id,) * 2 if isinstance(part, Example) else (part[ID][0], part[ID][-1])
        yield from (bad._replace(id=first) for bad in waiting)
        waiting.clear()
        yield part
    yield from waiting


def _consecutive(parts: Iterable[Example | Rows]) -> Iterator[_Sequence]:
    """Yield the rows of each id that follow one another."""
    current: _Sequence | None = None
    for part in parts:
        if isinstance(part, Example):
            runs: list[tuple[str | None, Any]] = [(part.id, part)]
        else:
            ids = part[ID]
            runs = [(ids[a], [column[a:b] for column in part]) for a, b in runs_of(ids)]
        for name, rows in runs:
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


def read_row_features(columns: ColumnKinds, cells: Sequence[Any], decimal: str = ".") -> Steps:
    """Return the row features of a sequence as one step, in the order of `column_names`."""
    count = len(token_columns(columns))
    numbers = []
    for name, cell in zip(column_names(columns)[count:], cells[count:], strict=True):
        value = with_points(cell) if decimal == "," else cell
        numbers += _each(number_in, [value], f"{name}: ")
    table = np.array(numbers, dtype=np.float32).reshape(1, len(numbers))
    return Steps(tuple([token] for token in token_cells(cells[:count])), table)


def _check_equal(cells: Cells, what: str, name: str, lines: Sequence[int]) -> None:
    """Raise BadRow at the first row whose cell differs from that of the first row."""
    if cells.count(cells[0]) == len(cells):
        return
    for row, cell in enumerate(cells):
        if cell != cells[0]:
            found = f"id {quote(name)} has {what}{_shown(cell)} here, but {_shown(cells[0])}"
            raise _BadCell(row, f"{found} on line {lines[0]}")


def _shown(cell: object) -> str:
    return quote(", ".join(cell) if isinstance(cell, tuple) else str(cell))


def _each(read: Callable[[Any], Any], cells: Cells, where: str = "") -> list[Any]:
    """Return the result of `read` for each cell. A BadRow names the row."""
    found = []
    for row, cell in enumerate(cells):
        try:
            found.append(read(cell))
        except BadRow as bad:
            raise _BadCell(row, f"{where}{bad}") from None
    return found
