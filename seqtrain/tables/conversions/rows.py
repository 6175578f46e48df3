"""Conversions of rows of a table, such as csv, tsv, or a sheet of a workbook.

Each function gets a `Table`, and returns the one that is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from seqtrain.errors import ConfigError
from seqtrain.tables.blocks import missing_name

Row = list[str]


@dataclass(frozen=True)
class Table:
    """Rows of cells.

    Attributes:
        names: Names of the columns, or None if the first row doesn't name them.
        rows: The rows below the names, which can be read once.
    """

    names: Sequence[str] | None
    rows: Iterable[Row]

    def place(self, column: str) -> int:
        """Return the index of a column from its name, or from its index without names.

        Raises:
            ConfigError: If there is no such column.
        """
        if self.names is None and column.isdecimal():
            return int(column)
        if self.names is not None and column in self.names:
            return self.names.index(column)
        found = self.names or ()
        raise ConfigError(f"--column: {missing_name('column', column, found)}")

    def with_names(self) -> Iterator[Sequence[str]]:
        """Yield the names of the columns, if there are any, and the rows."""
        if self.names is not None:
            yield self.names
        yield from self.rows

    def places(self, columns: Iterable[str]) -> list[int]:
        """Return the index of each column."""
        return [self.place(column) for column in columns]


def filled(table: Table, *, column: Sequence[str]) -> Table:
    """Return a table whose blank cells of some columns have the cell above."""
    places = table.places(column)

    def rows() -> Iterator[Row]:
        above = dict.fromkeys(places, "")
        for row in table.rows:
            for place in places:
                above[place] = row[place] or above[place]
                row[place] = above[place]
            yield row

    return Table(table.names, rows())


def turned(table: Table, *, name: str, other: Sequence[str] = ()) -> Table:
    """Return a table with a row for each column: its name, and its cells as a series of numbers.

    Args:
        table: A table with named columns.
        name: Name of the new column that has the old names.
        other: Columns that are left out.
    """
    names = table.names or ()
    columns = zip(names, zip(*table.rows, strict=True), strict=True)
    rows = (
        [own.strip(), " ".join(cell or "nan" for cell in cells)]
        for own, cells in columns
        if own.strip() not in other
    )
    return Table([name, "series"], rows)
