"""Tables of `seqtrain init`: all columns of data files, and how these are written."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.proposal.options import FileLayout, InitOptions
from seqtrain.proposal.profile import LONGEST_LABEL, ColumnProfile
from seqtrain.tables.blocks import (
    FILE,
    FOLDER,
    BadCellError,
    Block,
    Cells,
    Coded,
    Codes,
    Dialect,
    Name,
    as_list,
    cells_at,
    with_codes,
)
from seqtrain.tables.cells import text_of
from seqtrain.tables.formats import columns_of_format
from seqtrain.tables.sources import holds_whole_files, matching_files
from seqtrain.text import display_name

KEPT, KEPT_EVERY, PIECE = 200_000, 16, 200
"""Of more long texts than the first number, one in so many is kept whole. The others are cut."""


@dataclass
class Table:
    """All columns of data files, and how the files are written.

    Attributes:
        path: The first file, or the folder.
        unread: Number of sequences of each label in files that weren't read, as there are many.
        layout: Place of the labels, and options of the user.
        dialect: Form of the files.
        columns: The columns.
        lines: Line of each row that can be read, (rows,).
        problems: Place and reason of rows that can't be read, a text each.
        bad_cells: Maps each column to its cells in these rows.
        header: True if the first row of csv or tsv names the columns, None for other formats.
        warnings: Doubts about how the files are read.
        notices: Lines about the rows that were read.
        leaves_out: True if files that aren't UTF-8 are left out.
        sheets: Names of the sheets of a workbook, if the user named none.
        step_columns: Names of the columns of arrays whose rows are time steps, a sequence per file.
    """

    path: str
    layout: FileLayout
    dialect: Dialect
    columns: list[ColumnProfile] = field(default_factory=list)
    lines: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    problems: list[str] = field(default_factory=list)
    bad_cells: dict[Name, list[Any]] = field(default_factory=dict)
    header: bool | None = None
    warnings: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    leaves_out: bool = False
    sheets: list[str] = field(default_factory=list)
    step_columns: list[str] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)

    @property
    def name(self) -> str:
        """Name of the file or folder for messages."""
        return display_name(self.path)

    @property
    def options(self) -> InitOptions:
        """Options of the user, with the values that follow from the layout."""
        return self.layout.options

    @property
    def format(self) -> str:
        """Format of the files."""
        return self.dialect.format

    @property
    def is_delimited(self) -> bool:
        """True for csv and tsv."""
        return self.format in ("csv", "tsv")

    @property
    def has_whole_files(self) -> bool:
        """True if each file is a text. A folder for each class says so without an option."""
        is_given = self.format == "txt" and self.options.named("id") == [FILE]
        return is_given or holds_whole_files(self.path)

    @property
    def has_named_columns(self) -> bool:
        """True for csv and tsv whose first row names the columns, without joined columns."""
        return self.is_delimited and bool(self.header) and not self.layout.joins

    @property
    def files(self) -> list[str]:
        """The files, or the folder, if a pattern names them."""
        return matching_files(self.path)

    @property
    def file(self) -> str:
        """The first file, or the folder."""
        return self.files[0]

    @property
    def only_file(self) -> str | None:
        """The file that a command can rewrite: None for several files, a folder, and memory."""
        files = self.files
        is_part = "train" in self.layout.splits and len(self.layout.train) > 1
        is_one = len(files) == 1 and os.path.isfile(files[0])
        return files[0] if is_one and not is_part else None

    @property
    def rows(self) -> int:
        """Number of rows that can be read."""
        return len(self.lines)

    @property
    def has_columns(self) -> bool:
        """True if the columns have names or indices that a config can name."""
        return columns_of_format(self.format) != "none" or bool(self.step_columns)

    def column(self, name: Name | None) -> ColumnProfile | None:
        """Return the column with a name, or None."""
        return next((column for column in self.columns if column.name == name), None)


class TableBuilder:
    """The columns of a table, which grow block by block. Bad rows are left out, and noted.

    Args:
        table: The table.
        is_nested: True if cells may be objects, whose fields are columns.
    """

    def __init__(self, table: Table, *, is_nested: bool = False) -> None:
        self.table, self.is_nested, self.rows = table, is_nested, 0
        self._columns = dict[Name, _GrowingColumn]()
        self._lines = list[npt.NDArray[np.int64]]()
        table.problems, table.bad_cells = [], {}

    def add(self, block: Block) -> None:
        """Append the rows of a block."""
        if block.problems:
            place = block.file or self.table.name
            for row, reason in block.problems.items():
                self.table.problems.append(f"{place}:{block.lines[row]}: {reason}")
            bad = np.array(list(block.problems))
            for name, cells in block.columns.items():
                self.table.bad_cells.setdefault(name, []).extend(as_list(cells_at(cells, bad)))
            block = block.at(np.delete(np.arange(len(block)), [*block.problems]))
        columns = _flattened(block.columns) if self.is_nested else block.columns.items()
        for name, cells in columns:
            column = self._columns.setdefault(name, _GrowingColumn())
            column.fill(self.rows)
            column.add(cells)
        self._lines.append(block.lines)
        self.rows += len(block)

    def finalize(self) -> None:
        """Set the columns of the table, without those of paths that have one value.

        A user may name such a column as the id: the rows of one file are cut into windows.
        """
        columns, given = [], self.table.options.named("id")
        for name, column in self._columns.items():
            column.fill(self.rows)
            if name not in (FILE, FOLDER) or len(column.distinct) > 1 or name in given:
                columns.append(ColumnProfile(name, column.distinct, column.codes()).by_value())
        self.table.columns = columns
        self.table.lines = np.concatenate([np.zeros(0, np.int64), *self._lines])


class _GrowingColumn(dict[Any, int]):
    """Codes of the cells of a column, which grows block by block.

    As a dict, it maps each cell to the code of its value, in the order of first appearance.

    Attributes:
        distinct: The value of each code.
        rows: Number of cells so far.
    """

    def __init__(self) -> None:
        self.distinct, self.rows = list[Any](), 0
        self._parts = list[Codes]()

    def fill(self, rows: int) -> None:
        """Append missing cells until the column has so many rows."""
        if rows > self.rows:
            self._append_codes(np.full(rows - self.rows, self[""], dtype=np.int32))

    def add(self, cells: Cells) -> None:
        """Append cells."""
        cells = with_codes(cells)
        if isinstance(cells, Coded):
            table = np.zeros(len(cells.values) + 1, np.int32)
            for code in np.unique(cells.codes).tolist():  # a category may have no rows
                table[code] = self[""] if code < 0 else self.code(cells.values[code])
            self._append_codes(table[cells.codes])
            return
        try:
            if not self:
                self.learn(cells)
            codes = np.fromiter(map(self.__getitem__, cells), np.int32, len(cells))
        except TypeError:  # lists aren't hashable
            codes = np.array([self.code(cell) for cell in cells], dtype=np.int32)
        self._append_codes(codes)

    def codes(self) -> Codes:
        """Return the codes so far."""
        return np.concatenate([np.zeros(0, np.int32), *self._parts])

    def _append_codes(self, codes: Codes) -> None:
        self._parts.append(codes)
        self.rows += len(codes)

    def __missing__(self, cell: Any) -> int:
        if type(cell) is not str:
            value = _value_of(cell)
            if isinstance(value, str):
                return self[value]
            return self._append(value)
        value = cell.strip()
        if len(value) > LONGEST_LABEL:
            return self._code_of_long(value)
        if value != cell:
            code = self[cell] = self[value]
            return code
        code = self[cell] = self._append(cell)
        return code

    def learn(self, cells: Any) -> None:
        """Give codes to the first cells of a column, all at once, if all are plain.

        Plain cells are short texts without blanks. Tables of many columns and few rows need this.
        """
        values = list(dict.fromkeys(cells))
        if set(map(type, values)) != {str}:
            return
        text = "".join(values)
        if text.split() == [text] and max(map(len, values)) <= LONGEST_LABEL:
            self.distinct = values
            self.update(zip(values, range(len(values)), strict=True))

    def code(self, cell: Any) -> int:
        """Return the code of a cell, which may be a list."""
        if isinstance(cell, str):
            return self[cell]
        return self.__missing__(cell)

    def _code_of_long(self, text: str) -> int:
        """Return the code of a long text. Its hash stands for it, for a text needs much memory."""
        key, new = (LONGEST_LABEL, hash(text)), len(self.distinct)
        code = self.get(key)
        if code is None:
            is_cut = new >= KEPT and new % KEPT_EVERY > 0
            code = self[key] = self._append(text[:PIECE] if is_cut else text)
        return code

    def _append(self, value: Any) -> int:
        self.distinct.append(value)
        return len(self.distinct) - 1


def _value_of(cell: Any) -> Any:
    """Return a cell that isn't a text as a value of `Column.values`."""
    if isinstance(cell, list | tuple | np.ndarray):
        if len(cell):
            return cell
        return "[]"
    try:
        return text_of(cell)
    except BadCellError:
        return str(cell)


def _flattened(columns: Mapping[Any, Any]) -> Iterator[tuple[Name, Any]]:
    """Yield each field of JSON objects with its cells. An inner field is named ``outer.inner``.

    A field that only holds objects is left out itself.
    """
    for name, cells in columns.items():
        if not isinstance(cells, list) or dict not in set(map(type, cells)):
            yield name, cells
            continue
        rows = [cell if isinstance(cell, dict) else {} for cell in cells]
        inner = dict.fromkeys(field for each in rows for field in each)
        yield from _flattened({f"{name}.{x}": [row.get(x) for row in rows] for x in inner})
        others = [None if isinstance(cell, dict) else cell for cell in cells]
        if any(cell is not None for cell in others):
            yield name, others
