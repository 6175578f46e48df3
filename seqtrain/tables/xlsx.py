"""Format xlsx: a sheet of a workbook, as Excel and LibreOffice write it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from seqtrain.errors import ConfigError, SeqtrainError, missing_package
from seqtrain.tables.blocks import (
    ROWS,
    Block,
    CellsByName,
    Dialect,
    Name,
    Selection,
    UnreadableError,
    batched,
)
from seqtrain.tables.cells import text_of
from seqtrain.tables.delimited import index_of_names, names_in
from seqtrain.tables.opening import refuse_bomb
from seqtrain.tables.python_values import python_value
from seqtrain.text import listed, quote, reason_of

FIRST_ROWS = 20
"""Number of rows among which the header is searched."""
SheetRow: TypeAlias = tuple[int, list[Any]]
"""Number of a row in the sheet, from 1, and its cells up to the last one with a value."""


def read_xlsx(
    stream: BinaryIO, dialect: Dialect, selection: Selection, rows: int = ROWS
) -> Iterator[Block]:
    """Yield the rows of a sheet. The line of a row is its number in the sheet.

    The header is found by `index_of_names`, so that a title above the table is no header. Blank
    rows and columns without a name are skipped.

    Raises:
        ConfigError: If openpyxl isn't installed.
        UnreadableError: If the file isn't a sound workbook, there is no such sheet, or two columns
            have the same name.
    """
    try:
        yield from _blocks(stream, dialect, selection, rows)
    except (SeqtrainError, UnreadableError):
        raise
    except Exception as error:  # openpyxl raises errors of many classes for a damaged file
        raise UnreadableError(None, f"not a sound xlsx file ({reason_of(error)})") from None


def _blocks(stream: BinaryIO, dialect: Dialect, selection: Selection, rows: int) -> Iterator[Block]:
    book = _workbook(stream)
    sheet = _sheet(book, dialect.sheet)
    filled = _filled_rows(sheet)
    first = list(islice(filled, FIRST_ROWS))
    start = 0
    if dialect.header and first:
        start = index_of_names([row for _, row in first]) + 1
    if len(first) <= start:
        others = [each for each in book.worksheets if each.title != sheet.title]
        if any(len(list(islice(_filled_rows(each), 2))) > 1 for each in others):
            raise UnreadableError(None, f"no rows{_advice(book, sheet.title)}")
    if not first:
        return
    line, header = first[start - 1]
    places: dict[Name, int] = {index: index for index in range(max(len(row) for _, row in first))}
    if dialect.header:
        titles = (None if title == "" else python_value(title) for title in header)
        places = names_in(line, ["" if title is None else str(title) for title in titles])
    try:
        names = selection.among(places)
    except UnreadableError as error:
        advice = _advice(book, sheet.title)
        raise UnreadableError(line, *(problem + advice for problem in error.problems)) from None
    for part in batched(chain(first[start:], filled), rows):
        columns: CellsByName = {}
        for name in names:
            index = places[name]
            columns[name] = [
                python_value(row[index]) if index < len(row) else None for _, row in part
            ]
        yield Block(columns, np.array([number for number, _ in part], np.int64))


def sheet_rows(stream: BinaryIO, dialect: Dialect) -> Iterator[list[str]]:
    """Yield the texts of the cells of each row of a sheet that has a value.

    All rows have equally many cells. If the columns have names, their row is the first one.
    """
    rows = [row for _, row in _filled_rows(_sheet(_workbook(stream), dialect.sheet))]
    width = max(map(len, rows), default=0)
    if rows and dialect.header:
        rows = rows[index_of_names(rows[:FIRST_ROWS]) :]
    for row in rows:
        texts = [text_of(python_value(cell)) for cell in row]
        yield texts + [""] * (width - len(row))


def sheet_names(path: str) -> list[str]:
    """Return the names of the sheets of a workbook, or [] if it isn't a sound one."""
    try:
        with open(path, "rb") as stream:
            return [sheet.title for sheet in _workbook(stream).worksheets]
    except Exception:  # as in `read_xlsx`, which says what is wrong
        return []


def _workbook(stream: BinaryIO) -> Any:
    try:
        import openpyxl
    except ImportError:
        (problem,) = missing_package("format xlsx", "openpyxl", "excel").problems
        raise ConfigError(f"{problem}; or save the sheet as csv") from None
    content = stream.read()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    refuse_bomb("the sheets", size, len(content))
    return openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)


def _sheet(book: Any, name: str | None) -> Any:
    """Return the sheet of a name, or the only one, whatever its name is."""
    for sheet in book.worksheets:
        if name in (None, sheet.title) or len(book.worksheets) == 1:
            return sheet
    found = listed([quote(sheet.title) for sheet in book.worksheets])
    raise UnreadableError(
        None,
        f"no sheet {quote(str(name))}; found {found}; name the sheet so, or save it as csv (to "
        "train, set data.sheet)",
    )


def _filled_rows(sheet: Any) -> Iterator[SheetRow]:
    """Yield the rows of a sheet that have a cell with a value."""
    for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
        row = list(cells)
        while row and row[-1] in (None, ""):
            row.pop()
        if row:
            yield number, row


def _advice(book: Any, title: str) -> str:
    """Return words about the sheet that was read, and about others that may be meant."""
    others = [quote(sheet.title) for sheet in book.worksheets if sheet.title != title]
    advice = f" (sheet {quote(title)})"
    if others:
        advice += (
            f"; other sheets are {listed(others)}: to train, --set data.sheet=NAME; to predict, "
            "save it as csv"
        )
    return advice
