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
    Cells,
    Dialect,
    Name,
    Selection,
    UnreadableError,
    batched,
)
from seqtrain.tables.opening import refuse_bomb
from seqtrain.tables.python_values import python_value
from seqtrain.text import listed, quote

FIRST_ROWS = 20
"""Number of rows among which the header is searched."""
SheetRow: TypeAlias = tuple[int, tuple[Any, ...]]
"""Number of a row in the sheet, from 1, and its cells."""


def read_xlsx(
    stream: BinaryIO, dialect: Dialect, selection: Selection, rows: int = ROWS
) -> Iterator[Block]:
    """Yield the rows of a sheet. The line of a row is its number in the sheet.

    The header is the first row with cells in more than half of the columns, so that a title above
    the table is no header. Blank rows and columns without a name are skipped.

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
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnreadableError(None, f"not a sound xlsx file ({reason})") from None


def _blocks(stream: BinaryIO, dialect: Dialect, selection: Selection, rows: int) -> Iterator[Block]:
    book = _workbook(stream)
    sheet = _sheet(book, dialect.sheet)
    cells = enumerate(sheet.iter_rows(values_only=True), start=1)
    filled = ((number, row) for number, row in cells if _width(row))
    first = list(islice(filled, FIRST_ROWS))
    header = _header_index(first) if dialect.header and first else -1
    if len(first) <= header + 1:
        _refuse_other_sheets(book, sheet)
    if not first:
        return
    places: dict[Name, int] = {}
    if dialect.header:
        places = _places(*first[header])
    else:
        places = {index: index for index in range(max(_width(row) for _, row in first))}
    try:
        names = selection.among(places)
    except UnreadableError as error:
        advice = _advice(book, sheet.title)
        raise UnreadableError(
            first[header][0], *(f"{problem}{advice}" for problem in error.problems)
        ) from None
    for part in batched(chain(first[header + 1 :], filled), rows):
        columns: dict[Name, Cells] = {}
        for name in names:
            index = places[name]
            columns[name] = [
                python_value(row[index]) if index < len(row) else None for _, row in part
            ]
        yield Block(columns, np.array([number for number, _ in part], np.int64))


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
    if name is None:
        return book.worksheets[0]
    for sheet in book.worksheets:
        if sheet.title == name:
            return sheet
    found = listed([quote(sheet.title) for sheet in book.worksheets])
    raise UnreadableError(None, f"no sheet {quote(name)}; found {found} (data.sheet)")


def _refuse_other_sheets(book: Any, empty: Any) -> None:
    """Refuse a sheet without rows if others have some.

    Raises:
        UnreadableError: If another sheet has two rows or more.
    """
    others = [sheet for sheet in book.worksheets if sheet.title != empty.title]
    if any(len(list(islice(filter(_width, x.iter_rows(values_only=True)), 2))) > 1 for x in others):
        raise UnreadableError(None, f"no rows{_advice(book, empty.title)}")


def _advice(book: Any, title: str) -> str:
    """Return words about the sheet that was read, and about others that may be meant."""
    others = [quote(sheet.title) for sheet in book.worksheets if sheet.title != title]
    advice = f" (sheet {quote(title)})"
    if others:
        advice += f"; other sheets are {listed(others)}: --set data.sheet=NAME"
    return advice


def _header_index(first: list[SheetRow]) -> int:
    most = max(_width(row, gaps=False) for _, row in first)
    for index, (_, row) in enumerate(first):
        if _width(row, gaps=False) > most / 2:
            return index
    return 0


def _places(number: int, header: tuple[Any, ...]) -> dict[Name, int]:
    """Return the index of each named column."""
    places: dict[Name, int] = {}
    for index, title in enumerate(header):
        if not _has_value(title):
            continue
        name = str(python_value(title))
        if name in places:
            raise UnreadableError(number, f"column {quote(name)} occurs twice in the header")
        places[name] = index
    return places


def _width(row: tuple[Any, ...], *, gaps: bool = True) -> int:
    """Return the number of cells up to the last one with a value, or of those with a value."""
    filled = [index for index, cell in enumerate(row) if _has_value(cell)]
    if not gaps:
        return len(filled)
    return filled[-1] + 1 if filled else 0


def _has_value(cell: Any) -> bool:
    return cell is not None and cell != ""
