"""Tables of `init`: all columns of data files as codes, with the places of rows and bad rows."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.proposal.profile import (
    Codes,
    Column,
    KnownValues,
    NumberColumn,
    are_numbers,
    flattened,
)
from seqtrain.tables.blocks import Block, Cells, Coded, Name, as_list, cells_at
from seqtrain.text import counted, listed

MANY_COLUMNS = 3000
"""Number of columns from which on looking at a table takes long."""
MOST_SHOWN = 3
"""Number of bad rows or cells that a message shows."""


@dataclass
class Table:
    """All columns of data files.

    Attributes:
        columns: The columns.
        lines: Line of each row, (rows,).
        problems: Place and reason of rows that can't be read, a text each.
    """

    columns: list[Column]
    lines: npt.NDArray[np.int64]
    problems: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Number of rows that can be read."""
        return len(self.lines)

    def named(self, name: Name) -> Column | None:
        """Return the column with a name, or None."""
        return next((column for column in self.columns if column.name == name), None)


class TableBuilder:
    """A table that grows block by block. Rows that can't be read are left out, and noted.

    Args:
        is_nested: True if cells may be objects, whose fields are columns.
    """

    def __init__(self, *, is_nested: bool = False) -> None:
        self.is_nested, self.is_wide = is_nested, False
        self.lines = list[npt.NDArray[np.int64]]()
        self.problems = list[str]()
        self.rows = 0
        self._columns = dict[Name, ColumnBuilder]()

    def add(self, block: Block, name: str) -> None:
        """Append the rows of a block.

        Args:
            block: The block.
            name: Name of the file, for messages, if the block has none.
        """
        if block.problems:
            for row, reason in block.problems.items():
                self.problems.append(f"{block.file or name}:{block.lines[row]}: {reason}")
            is_good = np.ones(len(block), dtype=bool)
            is_good[[*block.problems]] = False
            block = block.at(np.flatnonzero(is_good))
        columns: Mapping[Any, Any] = block.columns
        self.is_wide = self.is_wide or len(columns) > MANY_COLUMNS
        if self.is_nested:
            columns = dict(flattened(columns))
        for column, cells in columns.items():
            if column not in self._columns:
                self._columns[column] = ColumnBuilder(is_wide=self.is_wide)
            builder = self._columns[column]
            builder.fill(self.rows)
            builder.add(cells)
        self.lines.append(block.lines)
        self.rows += len(block)

    def table(self) -> Table:
        """Return the table so far."""
        columns = []
        for name, builder in self._columns.items():
            builder.fill(self.rows)
            columns.append(builder.column(name))
        lines = np.concatenate(self.lines or [np.zeros(0, np.int64)])
        return Table(columns, lines, self.problems)


class ColumnBuilder:
    """A column that grows block by block.

    Args:
        is_wide: True if the table has so many columns that plain numbers aren't coded.
    """

    def __init__(self, *, is_wide: bool = False) -> None:
        self.known = KnownValues()
        self.rows = 0
        self._numbers: list[str] | None = [] if is_wide else None
        self._parts = list[Codes]()

    def fill(self, rows: int) -> None:
        """Append missing cells until the column has so many rows."""
        if rows > self.rows:
            self._append(np.full(rows - self.rows, self.known[""], dtype=np.int32))

    def add(self, cells: Cells) -> None:
        """Append cells."""
        if self._numbers is not None:
            if isinstance(cells, list | tuple) and are_numbers(cells):
                self._numbers += cells
                self.rows += len(cells)
                return
            numbers, self._numbers, self.rows = self._numbers, None, 0
            self.add(numbers)
        known = self.known
        if isinstance(cells, Coded):
            codes = np.array([*map(known.code, cells.values), known[""]], dtype=np.int32)
            self._append(codes[cells.codes])
            return
        if isinstance(cells, np.ndarray) and cells.ndim == 1 and cells.dtype.kind in "iufb":
            values, places = np.unique(cells, return_inverse=True)
            codes = np.array([known.code(value) for value in values.tolist()], dtype=np.int32)
            self._append(codes[places])
            return
        try:
            self._append(np.fromiter(map(known.__getitem__, cells), np.int32, len(cells)))
        except TypeError:  # lists aren't hashable
            self._append(np.array([known.code(cell) for cell in cells], dtype=np.int32))

    def column(self, name: Name) -> Column:
        """Return the column so far."""
        if self._numbers:
            is_plain = are_numbers(self._numbers)
            return NumberColumn(name, self._numbers) if is_plain else Column.of(name, self._numbers)
        codes = np.concatenate(self._parts or [np.zeros(0, np.int32)])
        return Column(name, self.known.distinct, codes)

    def _append(self, codes: Codes) -> None:
        self._parts.append(codes)
        self.rows += len(codes)


def without_repeated_headers(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the rows of csv or tsv files without the first row of each file after the first one."""
    file, head = None, None
    for number, block in enumerate(blocks):
        cells = first_row(block)
        if number == 0:
            head = cells
        elif block.file != file and cells == head:
            block = block.at(np.arange(1, len(block)))
        file = block.file
        yield block


def first_row(block: Block) -> list[Any]:
    """Return the cells of the first row of a block, without columns that only paths have."""
    own = [name for name in block.columns if isinstance(name, int)]
    own = own or list(block.columns)  # type: ignore[arg-type]
    first = np.zeros(1, dtype=np.int64)
    return [as_list(cells_at(block.columns[name], first))[0] for name in own]


def odd_cells(column: Column, table: Table) -> str:
    """Return the cells of a column that aren't of its kind, with their lines, for a message."""
    rows = np.flatnonzero(column.is_odd)
    shown = []
    for row in rows[:MOST_SHOWN].tolist():
        shown.append(f"{column.values[column.codes[row]]!r} (line {table.lines[row]})")
    more = len(rows) - len(shown)
    names = listed(shown) + (f" and {more:,} more" if more > 0 else "")
    return f"{counted(len(rows), 'cell')} of {column.shown}: {names}"
