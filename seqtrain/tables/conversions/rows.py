"""Conversions of rows of a table, such as csv, tsv, a sheet of a workbook, or objects of JSON.

Each function gets a `CellTable`, and returns the one that is written.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from pathlib import Path

from seqtrain.errors import ConfigError, DataError
from seqtrain.files.reading import path_problems
from seqtrain.tables.blocks import LABEL, TEXT
from seqtrain.tables.conversions.cells import stem_of
from seqtrain.tables.conversions.table import CellTable, Row, cell_text
from seqtrain.text import quote

SERIES = "series"
"""Name of the new column of numbers."""
DIGITS_ALONE = re.compile("[0-9]+")
NUMBER_PATTERN = r"[0-9]+(?:[{point}][0-9]+)?(?:[eE][-+]?[0-9]+)?"
"""A number with decimal points, or also with commas. A minus after another number is no sign."""


def channels(table: CellTable, *, pattern: str) -> CellTable:
    """Return a table with a column for each channel, whose numbers are joined in time.

    The columns of a channel have equal names without the time step. Channels have equally many
    columns. Columns with fewer of the same name are kept.

    Args:
        table: The table.
        pattern: Regular expression of the time step in names.
    """
    step = _compiled(pattern)
    channel_of = [step.sub("", name, count=1) for name in table.names]
    counts = Counter(channel_of)
    most = max(counts.values(), default=0)
    places = dict[str, list[int]]()
    for place, (name, channel) in enumerate(zip(table.names, channel_of, strict=True)):
        key = channel if counts[channel] == most else name
        places.setdefault(key, []).append(place)
    for own in places.values():
        own.sort(key=lambda place: list(map(int, DIGITS_ALONE.findall(table.names[place]))))

    def rows() -> Iterator[Row]:
        for row in table.rows:
            yield [_joined_numbers([row[place] for place in own]) for own in places.values()]

    return CellTable(list(places), rows())


def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a regular expression.

    Raises:
        ConfigError: If it isn't one.
    """
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigError(
            f"--pattern: {quote(pattern)} is no regular expression: {error}"
        ) from None


def _joined_numbers(cells: Row) -> str:
    """Return numbers in one cell. A single cell is kept as it is."""
    if len(cells) == 1:
        return cell_text(cells[0])
    return " ".join(cell_text(cell) or "nan" for cell in cells)


def chosen(table: CellTable, *, column: Sequence[str]) -> CellTable:
    """Return a table of some columns, in this order, without their names.

    Args:
        table: The table.
        column: The columns. A blank one is a column of blank cells.
    """
    places = [table.place(each) if each else None for each in column]

    def rows() -> Iterator[Row]:
        for row in table.rows:
            yield ["" if place is None else row[place] for place in places]

    return CellTable(column, rows(), is_named=False)


def contents(table: CellTable, *, column: Sequence[str], folder: str) -> CellTable:
    """Return a table with the texts of files in place of their names.

    Rows whose file isn't there are left out.

    Args:
        table: The table.
        column: Column of the names, with or without folders and endings.
        folder: Folder of the texts, which are files .txt.

    Raises:
        DataError: If the folder or a file can't be read.
    """
    place = table.only_place(column)
    with path_problems(folder, DataError):
        names = os.listdir(folder)
    files = {stem_of(name): os.path.join(folder, name) for name in names if name.endswith(".txt")}

    def rows() -> Iterator[Row]:
        for row in table.rows:
            file = files.get(stem_of(cell_text(row.pop(place))))
            if file is None:
                continue
            with path_problems(file, DataError):
                text = Path(file).read_text("utf-8", "replace")
            yield [*row, text]

    others = [*table.names[:place], *table.names[place + 1 :]]
    return CellTable([*others, TEXT], rows(), table.is_named)


def filled(table: CellTable, *, column: Sequence[str], text: str | None = None) -> CellTable:
    """Return a table whose blank cells of some columns have the cell above, or a text."""
    places = table.places(column)

    def rows() -> Iterator[Row]:
        above = dict.fromkeys(places, "")
        for row in table.rows:
            for place in places:
                if not cell_text(row[place]):
                    row[place] = above[place] if text is None else text
                above[place] = row[place]
            yield row

    return CellTable(table.names, rows(), table.is_named)


def with_joined(table: CellTable, *, column: Sequence[str], name: str) -> CellTable:
    """Return a table with a new first column: the cells of some columns with slashes between."""
    places = table.places(column)
    rows = (["/".join(cell_text(row[place]) for place in places), *row] for row in table.rows)
    return CellTable([name, *table.names], rows, table.is_named)


def kept(
    table: CellTable,
    *,
    column: Sequence[str] = (),
    value: Sequence[str] = (),
    without: Sequence[str] = (),
    skip: int = 0,
) -> CellTable:
    """Return a table without some of its rows. Blank rows are always left out.

    Args:
        table: The table.
        column: Column whose cells decide which rows are kept.
        value: If it isn't empty, rows with other cells are left out.
        without: Rows with these cells are left out.
        skip: Number of rows below the names that are left out.
    """
    rows = (row for row in islice(table.rows, skip, None) if any(map(cell_text, row)))
    if value or without:
        place = table.only_place(column)
        rows = (row for row in rows if cell_text(row[place]) not in without)
        if value:
            rows = (row for row in rows if cell_text(row[place]) in value)
    return CellTable(table.names, rows, table.is_named)


def named(
    table: CellTable, *, column: Sequence[str] = (), name: str = LABEL, rows: int = 1
) -> CellTable:
    """Return a table whose columns have a name of their own each.

    Equal names get a number from the second one on. Columns of a table without names are called
    column_0, column_1 and so on.

    Args:
        table: The table.
        column: Column that gets a new name.
        name: Its new name.
        rows: Number of rows with names. In the first of two, a name is that of a group of columns,
            whose other cells are blank.
    """
    names = list(table.names)
    if not table.is_named:
        names = [f"column_{place}" for place in names]
    below = iter(table.rows)
    for second in islice(below, rows - 1):
        groups = list(accumulate(names, _name_or_before))
        counts = Counter(groups)
        names = [
            f"{group}: {own}" if own and counts[group] > 1 else group
            for group, own in zip(groups, second, strict=False)
        ]
    if column:
        names[table.only_place(column)] = name
    seen = Counter[str]()
    for place, own in enumerate(list(names)):
        if own and seen[own]:
            names[place] = f"{own}.{seen[own]}"
        seen[own] += 1
    return CellTable(names, below)


def _name_or_before(before: str, name: str) -> str:
    """Return a name, or the name before it if it is blank."""
    return name or before


def split_numbers(
    table: CellTable, *, column: Sequence[str], points: bool = False, flags: bool = False
) -> CellTable:
    """Return a table with each number of some columns in a column of its own.

    Args:
        table: The table.
        column: The columns, whose cells may hold several numbers, units and flags.
        points: True if commas separate numbers, and aren't decimal marks.
        flags: True to write what isn't a number, such as a flag, in a further column.
    """
    places = table.places(column)
    number = NUMBER_PATTERN.format(point="." if points else ".,")
    pattern = re.compile(rf"(?:^|(?<=[,;([ ])) *[-+]?{number}|{number}")
    rows = list(table.rows)
    sizes = dict[int, int]()
    for place in places:
        sizes[place] = max((len(pattern.findall(cell_text(row[place]))) for row in rows), default=0)

    def names() -> Iterator[str]:
        for place, name in enumerate(table.names):
            if place not in sizes or sizes[place] == 1:
                yield name
            else:
                yield from (f"{name}_{at}" for at in range(1, sizes[place] + 1))
            if place in sizes and flags:
                yield f"{name}_mark"

    def divided(row: Row) -> Iterator[str]:
        for place, cell in enumerate(row):
            if place not in sizes:
                yield cell
                continue
            text = cell_text(cell)
            found = pattern.findall(text)
            yield from found
            yield from [""] * (sizes[place] - len(found))
            if flags:
                yield pattern.sub("", text).strip()

    return CellTable(list(names()), (list(divided(row)) for row in rows), table.is_named)


def parts(
    table: CellTable, *, name: str = "part", column: Sequence[str] = (), every: int = 0
) -> CellTable:
    """Return a table with a new last column: the number of the part that a row is of, from 0.

    Args:
        table: The table.
        name: Name of the new column.
        column: Column of numbers. A part ends where a number is smaller than that before.
        every: Number of rows of each part.

    Raises:
        ConfigError: Unless either a column or a number of rows is given.
    """
    if bool(column) == bool(every):
        raise ConfigError("--to parts: give either --column or --every")

    def numbered() -> Iterator[Row]:
        for at, row in enumerate(table.rows):
            yield [*row, str(at // every)]

    def counted() -> Iterator[Row]:
        part, last, place = 0, -float("inf"), table.only_place(column)
        for row in table.rows:
            number = _number_in(row[place])
            part += number < last
            last = number
            yield [*row, str(part)]

    rows = counted() if column else numbered()
    return CellTable([*table.names, name], rows, table.is_named)


def _number_in(cell: object) -> float:
    """Return the number in a cell.

    Raises:
        ConfigError: If it holds none.
    """
    text = cell_text(cell)
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise ConfigError(f"--column: expected a column of numbers, found {text!r}") from None


def texts(table: CellTable, *, column: Sequence[str]) -> CellTable:
    """Return a table with a row for each text of some columns, whose names are the labels."""
    places = table.places(column)

    def rows() -> Iterator[Row]:
        for row in table.rows:
            for name, place in zip(column, places, strict=True):
                text = cell_text(row[place])
                if text:
                    yield [name, text]

    return CellTable([LABEL, TEXT], rows())


def turned(
    table: CellTable, *, name: str = LABEL, other: Sequence[str] = (), pattern: str = ""
) -> CellTable:
    """Return a table with a row for each column: its name, and its cells as a series of numbers.

    Args:
        table: A table with named columns.
        name: Name of the new column that has the old names.
        other: Columns that are left out.
        pattern: Regular expression of a part of names that is left out. Columns without it in
            their names are left out, too.
    """
    part = _compiled(pattern)
    rows = list(table.rows)

    def series() -> Iterator[Row]:
        for place, own in enumerate(table.names):
            if own not in other and part.search(own):
                numbers = (cell_text(row[place]) or "nan" for row in rows)
                yield [part.sub("", own), " ".join(numbers)]

    return CellTable([name, SERIES], series())
