"""Sequences from tables whose rows are time steps: the rows of one id, in their order."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from seqtrain.sequences.examples import BLANK_LABEL, BadRow, Example, Features, Steps
from seqtrain.sequences.labels import Labels
from seqtrain.sequences.read_options import ColumnKinds, column_names, token_columns
from seqtrain.sequences.readers.numbers import FLOAT32_MAX
from seqtrain.sequences.readers.row_source import RowSource, name_of
from seqtrain.sequences.readers.step_cells import (
    GROUP,
    ID,
    KEPT,
    LABEL,
    LINE,
    PROBLEM,
    Cells,
    Rows,
    as_list,
    exact_cells,
    float_cells,
    joined,
    number_in,
    rows_at,
    runs_of,
    token_cells,
    with_point_or_error,
    with_shared_texts,
)
from seqtrain.sequences.readers.times import (
    DATE,
    NUMBER,
    ORDER_TYPES,
    SECOND,
    possible_types,
    read_time,
)
from seqtrain.text import quote

AT_ONCE = 256
"""Number of rows of a file or table that are parsed as one block."""


class _BadCell(BadRow):
    """Error: a row of a sequence can't be used.

    Args:
        row: Index of the row within the sequence.
        text: The problem.
    """

    def __init__(self, row: int, text: str) -> None:
        super().__init__(text)
        self.row = row


def ids_are_scattered(blocks: Iterable[Rows]) -> bool:
    """Return True if the rows of at least one id aren't consecutive.

    Args:
        blocks: All rows of a table. Only their ids are used.
    """
    hashes, last = array("q"), None
    for rows in _with_ids(blocks):
        ids = rows[ID]
        hashes.extend(hash(ids[start]) for start, _ in runs_of(ids)[ids[0] == last :])
        last = ids[-1]
    return len(np.unique(np.array(hashes, dtype=np.int64))) < len(hashes)


class SequenceBuilder:
    """Build one sequence from the rows of each id.

    Args:
        source: Input that the rows come from.
        scattered: One of

            - False if the rows of each id are consecutive.
            - True if they aren't. All rows are then held in memory at once.
            - None if this isn't known, as for a stream. An id that occurs again after another id
              then makes an unusable sequence.
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

    def build(self, blocks: Iterable[Rows]) -> Iterator[Example]:
        """Yield the sequence of each id, in the order in which ids first occur.

        A sequence with an unusable row is unusable. If an unusable row has no id, it belongs to the
        sequence of the row before it. At the start, it belongs to the next sequence.
        """
        read = map(self._read, _with_ids(blocks))
        yield from map(self._example, _by_id(_grouped(read) if self.scattered else read))

    def _read(self, rows: Rows) -> Rows:
        """Convert the cells of a block to tokens and numbers, column by column, and return them.

        A column of numbers, or the order column, stays unchanged if a cell isn't a plain number.
        Its cells are read later, one by one, so that the message names the row with the problem.
        """
        if self.source.format.decimal == ",":
            numbers = range(self.numbers, self.row_features)
            for at in (*numbers, *([] if self.order is None else [ID + 1])):
                rows[at] = [*map(with_point_or_error, rows[at])]
        if self.order is not None and self.order_type in (None, NUMBER):
            rows[ID + 1] = exact_cells(rows[ID + 1])
        for at in range(self.tokens, self.row_features):
            rows[at] = (token_cells if at < self.numbers else float_cells)(rows[at])
        return rows

    def _example(self, rows: Rows) -> Example:
        """Return the example of an id.

        An unusable example has the line number of the bad row.

        Args:
            rows: All rows of the id.
        """
        name, lines, labels = rows[ID][0] or "", rows[LINE], None
        good = [row for row, problem in enumerate(rows[PROBLEM]) if problem is None]
        bad = next((row for row, problem in enumerate(rows[PROBLEM]) if problem is not None), None)
        fields: dict[str, Any] = {"kept": rows[KEPT][good[0]] if good else None, "id": name or None}
        try:
            if good:
                fields["group"] = name_of(rows[GROUP][good[0]], "the group")
                fields["id"] = name
                if not name:
                    raise _BadCell(good[0], f"{self.id}: the id is blank")
            if bad is not None:
                raise _BadCell(bad, rows[PROBLEM][bad])
            first_line = self.first_lines.setdefault(hash(name), lines[0])
            if self.scattered is None and first_line != lines[0]:
                before = f"id {quote(name)} comes back, after line {first_line}"
                raise BadRow(f"{before}; sort the rows by {self.id}, or give a file")
            labels = self._labels(rows[LABEL], name, lines)
            times, order = self._times(rows)
            if order is not None:
                rows = rows_at(rows, order)
                fields["kept"] = rows[KEPT][0]
            numbers = self._numbers(rows[self.numbers : self.row_features], times, len(lines))
            read = Steps(tuple(rows[self.tokens : self.numbers]), numbers)
            static = self._row_features(rows[self.row_features :], name, rows[LINE])
        except BadRow as problem:
            line = rows[LINE][problem.row if isinstance(problem, _BadCell) else 0]
            return Example("", labels, line, **fields, problem=str(problem))
        return Example(read, labels, lines[0], **fields, static=static)

    def _labels(self, cells: Cells, name: str, lines: Sequence[int]) -> Labels | None:
        """Return the labels of an id.

        In a labelled input, at least one row has a label. All rows have this label or a blank one.
        In an unlabelled input, the first row with a label decides.

        Args:
            cells: Label cells of the id's rows.
            name: The id, for messages.
            lines: Line numbers of the rows.

        Raises:
            BadRow: If the input is labelled, and the labels differ, are all blank, or can't be
                read.
        """
        is_equal = cells.count(cells[0]) == len(cells)
        found = _read_each(self.source.labels, cells[:1] if is_equal else cells)
        labels: Labels | None = next((own for own in found if own), found[0])
        if labels is None and self.source.labelled:
            raise BadRow(BLANK_LABEL)
        if self.source.labelled:
            _check_equal([own or labels for own in found], "label ", name, lines)
        return labels

    def _row_features(
        self, columns: Sequence[Cells], name: str, lines: Sequence[int]
    ) -> Steps | None:
        """Return the row features of an id, or None if the schema names none.

        All rows of the id must have the same cells.

        Args:
            columns: Cells of the row features: one column for each of them.
            name: The id, for messages.
            lines: Line numbers of the rows.

        Raises:
            BadRow: If cells differ or can't be read.
        """
        for column, cells in zip(column_names(self.static), columns, strict=True):
            _check_equal(cells, f"{column}: ", name, lines)
        first = [cells[0] for cells in columns]
        return read_row_features(self.static, first, self.source.format.decimal) if first else None

    def _times(self, rows: Rows) -> tuple[Any, Any]:
        """Return the times of an id's rows in ascending order, and the indices that sort the rows.

        The indices are None if the rows are sorted already. Without an order column, both values
        are None. Integers are exact, also beyond int64.

        Raises:
            BadRow: If a cell of the order column can't be read.
            DataError: If some dates of the file name their time zone and others don't.
        """
        if self.order is None:
            return None, None
        cells, lines = rows[ID + 1], rows[LINE]
        can_be_numbers = isinstance(cells, np.ndarray) and self.order_type in (None, NUMBER)
        if can_be_numbers and not np.isnan(cells).any():
            self.order_type, times = NUMBER, cells
        else:
            found = [self._time(x, row, lines[row]) for row, x in enumerate(as_list(cells))]
            times = np.array(found, dtype=object)
        if not (times[1:] < times[:-1]).any():
            return times, None
        order = np.argsort(times, kind="stable")
        return times[order], order

    def _time(self, cell: Any, row: int, line: int) -> Any:
        """Return the number by which a row is sorted: see `read_time`.

        Args:
            cell: Cell of the order column.
            row: Index of the row in the sequence.
            line: Line number of the row.

        Raises:
            BadRow: If the cell can't be read.
            DataError: If some dates of the file name their time zone and others don't.
        """
        if isinstance(cell, BadRow):
            raise _BadCell(row, f"{self.order}: {cell}")
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
        """Return the numbers of each step, (T, F), in the order of data.steps' number columns.

        Args:
            cells: Cells of each number column, without columns of kind "order".
            times: Sorted times of the steps, or None without an order column.
            length: Number T of steps.

        Raises:
            BadRow: If a cell isn't a number.
        """
        found, columns = list[Any](), iter(cells)
        for name, kind in self.kinds:
            column = self._growth(times, name) if kind == "order" else next(columns)
            is_read = isinstance(column, np.ndarray)
            found.append(column if is_read else _read_each(number_in, column, f"{name}: "))
        table: Features = np.array(found, dtype=np.float32).reshape(len(found), length).T
        return table

    def _growth(self, times: Any, name: str) -> Any:
        """Return the increase of the time from step to step, (T,), which is 0 for the first step.

        It is in seconds if the order is by dates or durations.

        Args:
            times: Sorted times of the steps.
            name: Name of the column, for messages.
        """
        grown = np.diff(times, prepend=times[:1])
        if (grown < 0).any():  # the difference of sorted times is beyond int64
            grown = np.diff(times.astype(object), prepend=int(times[0]))
        growth = np.asarray(grown if self.order_type == NUMBER else grown / SECOND, np.float64)
        if (growth > FLOAT32_MAX).any():
            row = int(np.argmax(growth > FLOAT32_MAX))
            raise _BadCell(row, f"{name}: {growth[row]:g} is too large for float32")
        return growth


def _with_ids(blocks: Iterable[Rows]) -> Iterator[Rows]:
    """Yield the blocks with an id in every row.

    A bad row without an id gets the id of the row before it. At the start, it gets the id of the
    next row that has one.
    """
    last: str | None = None
    waiting = list[Rows]()
    for rows in blocks:
        if rows[ID][0] is None:
            rows[ID] = [last]
        if rows[ID][0] is None:
            waiting.append(rows)
            continue
        for bad in waiting:
            bad[ID] = [rows[ID][0]]
            yield bad
        waiting, last = [], rows[ID][-1]
        yield rows
    yield from waiting


def _grouped(blocks: Iterable[Rows]) -> list[Rows]:
    """Join all blocks to one, in which the rows of each id are consecutive.

    Ids are in the order of their first occurrence.

    Returns:
        A list with this block, or an empty list if there are no rows.
    """
    known, ranks = dict[str, str](), dict[str | None, int]()
    parts, ranks_of_rows = list[Rows](), list[int]()
    for rows in blocks:
        ranks_of_rows += [ranks.setdefault(name, len(ranks)) for name in rows[ID]]
        parts.append([*rows[:ID], *(with_shared_texts(cells, known) for cells in rows[ID:])])
    whole = [*map(joined, zip(*parts, strict=True))]
    del parts
    return [rows_at(whole, np.argsort(ranks_of_rows, kind="stable"))] if whole else []


def _by_id(blocks: Iterable[Rows]) -> Iterator[Rows]:
    """Yield one block for each run of consecutive rows with the same id."""
    parts = list[Rows]()
    for rows in blocks:
        for start, stop in runs_of(rows[ID]):
            if parts and parts[0][ID][0] != rows[ID][start]:
                yield [*map(joined, zip(*parts, strict=True))]
                parts = []
            parts.append([cells[start:stop] for cells in rows])
    if parts:
        yield [*map(joined, zip(*parts, strict=True))]


def read_row_features(columns: ColumnKinds, cells: Sequence[Any], decimal: str = ".") -> Steps:
    """Return row features as one step.

    Args:
        columns: Kinds of the columns, as in data.static.
        cells: Cell of each column, in the order of `column_names`.
        decimal: Decimal mark of numbers in text.

    Raises:
        BadRow: If the cell of a number column isn't a number.
    """
    count = len(token_columns(columns))
    numbers = []
    for name, cell in zip(column_names(columns)[count:], cells[count:], strict=True):
        value = with_point_or_error(cell) if decimal == "," else cell
        numbers += _read_each(number_in, [value], f"{name}: ")
    table = np.array(numbers, dtype=np.float32).reshape(1, len(numbers))
    return Steps(tuple([token] for token in token_cells(cells[:count])), table)


def _check_equal(cells: Cells, what: str, name: str, lines: Sequence[int]) -> None:
    """Raise BadRow for the first row whose cell differs from the cell of the first row.

    Args:
        cells: Cells of a column in the rows of an id.
        what: Name of the column with a separator, for the message.
        name: The id.
        lines: Line numbers of the rows.
    """
    if cells.count(cells[0]) == len(cells):
        return
    for row, cell in enumerate(cells):
        if cell != cells[0]:
            found = f"id {quote(name)} has {what}{_shown(cell)} here, but {_shown(cells[0])}"
            raise _BadCell(row, f"{found} on line {lines[0]}")


def _shown(cell: object) -> str:
    return quote(", ".join(cell) if isinstance(cell, tuple) else str(cell))


def _read_each(read: Callable[[Any], Any], cells: Cells, where: str = "") -> list[Any]:
    """Return the result of `read` for each cell.

    Args:
        read: Function of a cell, which may raise BadRow.
        cells: Cells of a column in the rows of an id.
        where: Text before the message, such as the name of the column.

    Raises:
        _BadCell: If `read` raises BadRow. It has the index of the row.
    """
    found = []
    for row, cell in enumerate(cells):
        try:
            found.append(read(cell))
        except BadRow as bad:
            raise _BadCell(row, f"{where}{bad}") from None
    return found
