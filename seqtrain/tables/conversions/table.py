"""Tables of files for conversions: reading and writing of rows of csv, tsv, xlsx and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, BinaryIO, TypeAlias

from seqtrain.errors import ConfigError
from seqtrain.tables.blocks import Dialect, UnreadableError, missing_name
from seqtrain.tables.cells import text_of
from seqtrain.tables.delimited import COMMENTS, Form, Record, is_blank, open_records, plain_names
from seqtrain.tables.json_lines import open_objects
from seqtrain.tables.xlsx import sheet_rows

Row: TypeAlias = list[Any]
"""Cells of a row. They are texts, except the values of JSON."""
Place: TypeAlias = tuple[str, ...]
"""Names of the objects around a field of JSON, and its own name."""


class _Absent:
    """Cell of an object that lacks a field."""


NO_CELL = _Absent()


@dataclass(frozen=True)
class CellTable:
    """Rows of cells.

    Attributes:
        names: Name of each column, or its index from 0 as a text.
        rows: The rows below the names, which can be read once.
        is_named: True if the columns have names, which are written above the rows.
    """

    names: Sequence[str]
    rows: Iterable[Row]
    is_named: bool = True

    def place(self, column: str) -> int:
        """Return the index of a column from its name, or from its index as a text.

        Raises:
            ConfigError: If there is no such column.
        """
        if column in self.names:
            return self.names.index(column)
        if column.isdecimal() and int(column) < len(self.names):
            return int(column)
        raise ConfigError(f"--column: {missing_name('column', column, self.names)}")

    def places(self, columns: Iterable[str]) -> list[int]:
        """Return the index of each column."""
        return [self.place(column) for column in columns]

    def only_place(self, columns: Sequence[str]) -> int:
        """Return the index of the only column that the user names.

        Raises:
            ConfigError: If there is none, or there are several.
        """
        if len(columns) != 1:
            raise ConfigError(f"--column: expected one column, found {len(columns)}")
        return self.place(columns[0])

    def with_cells(self, places: Iterable[int], rewrite: Callable[[str], Any]) -> CellTable:
        """Return a table whose cells of some columns are rewritten, if they are texts.

        Args:
            places: Indices of the columns.
            rewrite: Returns the new cell for the text of an old one.
        """
        places = list(places)

        def rows() -> Iterator[Row]:
            for row in self.rows:
                for place in places:
                    if isinstance(row[place], str):
                        row[place] = rewrite(row[place])
                yield row

        return CellTable(self.names, rows(), self.is_named)


TableFunction: TypeAlias = Callable[[CellTable], CellTable]


def cell_text(cell: Any) -> str:
    """Return a cell as a text without blanks around it. That of a missing cell is blank."""
    if cell is NO_CELL:
        return ""
    if isinstance(cell, list | dict):
        return json.dumps(cell, ensure_ascii=False)
    return text_of(cell).strip()


def converted_rows(
    stream: BinaryIO, dialect: Dialect, convert: TableFunction, *, as_csv: bool = False
) -> Iterator[str]:
    """Yield the lines of a converted table, with line ends.

    Objects of JSON remain objects. Other rows are written with the delimiter of the file.

    Args:
        stream: The file.
        dialect: Form of the file. The format is csv, tsv, xlsx or jsonl.
        convert: The conversion.
        as_csv: True to write csv with commas whatever the file is.
    """
    if dialect.format == "jsonl":
        table, places = _table_of_objects(stream, dialect)
        converted = convert(table)
        if as_csv:
            yield from _written(converted, Form())
        else:
            yield from _written_objects(converted, places)
        return
    if dialect.format == "xlsx":
        form, rows = Form(), sheet_rows(stream, dialect)
    else:
        form, records = open_records(stream, dialect)
        rows = _fields(records, form, dialect)
    first = next(rows, [])
    if dialect.header:
        table = CellTable(plain_names(first) if first else [], rows)
    else:
        table = CellTable(list(map(str, range(len(first)))), chain([first], rows), is_named=False)
    yield from _written(convert(table), Form() if as_csv else form)


def _fields(records: Iterator[Record], form: Form, dialect: Dialect) -> Iterator[Row]:
    """Yield the fields of the names and of each row that isn't a blank line or a comment.

    Short rows are filled up with blank cells. Longer ones keep their fields.
    """
    width = 0
    for line, fields, problem in records:
        if problem is not None:
            raise UnreadableError(line, problem)
        if is_blank((line, fields, problem), header=dialect.header and not width):
            continue
        if not width:
            if dialect.header and form.row_names:
                fields = ["", *fields]
            width = len(fields)
        elif form.has_comments and len(fields) != width and fields[0].startswith(COMMENTS):
            continue
        elif form.blank_field and len(fields) == width + 1 and not fields[-1]:
            fields = fields[:-1]
        yield fields + [""] * (width - len(fields))


def _written(table: CellTable, form: Form) -> Iterator[str]:
    """Yield the lines of a table of csv or tsv.

    If the file has no quotes, none are written: those in its cells are plain characters.
    """
    rows: Iterable[Sequence[Any]] = table.rows
    if table.is_named:
        rows = chain([table.names], rows)
    text = io.StringIO()
    writer = csv.writer(text, delimiter=form.delimiter, lineterminator="\n")
    for row in rows:
        cells = [cell if isinstance(cell, str) else cell_text(cell) for cell in row]
        if not form.quotes:
            yield f"{form.delimiter.join(cells)}\n"
            continue
        writer.writerow(cells)
        yield text.getvalue()
        text.seek(0)
        text.truncate()


def _table_of_objects(stream: BinaryIO, dialect: Dialect) -> tuple[CellTable, list[Place]]:
    """Return the rows of a file of JSON, and the place of each column in their objects.

    The field b of the object a is the column a.b. A field that an object lacks is `NO_CELL`.
    """
    objects = list[dict[Place, Any]]()
    for line, value, problem in open_objects(stream, dialect):
        if problem is None and not isinstance(value, dict):
            problem = "expected a JSON object"
        if problem is not None:
            raise UnreadableError(line, problem)
        objects.append(dict(_flat(value)))
    places = list(dict.fromkeys(chain.from_iterable(objects)))
    rows = ([fields.get(place, NO_CELL) for place in places] for fields in objects)
    return CellTable([".".join(place) for place in places], rows), places


def _flat(fields: dict[str, Any], outer: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield the place and the value of each field of an object, and of the objects in it."""
    for name, value in fields.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, (*outer, name))
        else:
            yield (*outer, name), value


def _written_objects(table: CellTable, places: Sequence[Place]) -> Iterator[str]:
    """Yield a line with the object of each row."""
    known = {".".join(place): place for place in places}
    own = [known.get(name, (name,)) for name in table.names]
    for row in table.rows:
        fields: dict[str, Any] = {}
        for (*outer, name), cell in zip(own, row, strict=True):
            if cell is NO_CELL:
                continue
            inner = fields
            for each in outer:
                inner = inner.setdefault(each, {})
            inner[name] = cell
        yield f"{json.dumps(fields, ensure_ascii=False)}\n"
