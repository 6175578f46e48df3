"""Inspection of data files: format, encoding, header, and all columns."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from seqtrain.errors import DataError
from seqtrain.files.reading import path_problem
from seqtrain.proposal.header import has_header
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.reading_progress import ReadingProgress
from seqtrain.proposal.roles import FEWEST_WIDE
from seqtrain.proposal.table import (
    MANY_COLUMNS,
    Table,
    TableBuilder,
    first_row,
    without_repeated_headers,
)
from seqtrain.sequences.sources import table_named
from seqtrain.tables.blocks import (
    FILE,
    FOLDER,
    LABEL,
    REST,
    TEXT,
    Block,
    Dialect,
    Selection,
    as_list,
)
from seqtrain.tables.formats import (
    ENDINGS,
    FORMATS,
    IN_MEMORY,
    MEMORY,
    advice,
    check_encoding,
    columns_of_format,
    resolve_format,
)
from seqtrain.tables.join import joined_source
from seqtrain.tables.json_lines import BY_COLUMNS
from seqtrain.tables.opening import guess_encoding, open_input, utf_16
from seqtrain.tables.sources import holds_whole_files, open_source
from seqtrain.text import display_name, quote

FIRST_ROWS = 4096
"""Number of first lines that tell the form of a text file without columns."""
NOT_UTF_8, BINARY = "is not UTF-8", "is NUL"
"""Parts of the reason of a row that can't be decoded."""
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
RAGGED = 0.05
"""Share of rows with another number of fields from which on the tail of a row is a list."""
ROWS = 1024
"""Number of rows of a block."""


@dataclass
class Data:
    """A table, and how its files are written.

    Attributes:
        path: The first file, or the folder.
        table: All columns.
        dialect: Form of the files.
        by_name: True if the name of a file determines its format.
        header: True if the first row of csv or tsv names the columns, None for other formats.
        delimiter: Name of the delimiter that the user gave, or auto.
        warnings: Doubts about how the files are read.
        leaves_out: True if files that aren't UTF-8 are left out.
        pattern: Value of data.path, or None.
        joins: Value of data.join, or [].
    """

    path: str
    table: Table
    dialect: Dialect
    by_name: bool = True
    header: bool | None = None
    delimiter: str = "auto"
    warnings: list[str] = field(default_factory=list)
    leaves_out: bool = False
    pattern: str | None = None
    joins: Sequence[dict[str, Any]] = ()

    @property
    def name(self) -> str:
        """Name of the file or folder for messages."""
        return display_name(self.path)

    @property
    def has_columns(self) -> bool:
        """True if the columns have names or indices that a config can name."""
        return columns_of_format(self.dialect.format) != "none"


def data_format(path: str, given: str) -> str:
    """Return the format of a data file.

    Args:
        path: The file.
        given: Format that the user names, or "auto" to choose it by the file's name.

    Raises:
        DataError: If the format is "auto", and the file's name tells no format.
    """
    format = resolve_format(path, given)
    if format is None:
        try:
            os.lstat(path)
        except (OSError, ValueError) as error:
            raise path_problem(path, error, DataError) from None
        unknown = f"its ending names no format; known are {', '.join(ENDINGS)}; or give --format"
        raise DataError(f"{display_name(path)}: {advice(path) or unknown}")
    return format


def read_data(
    files: Sequence[str],
    options: InitOptions,
    progress: ReadingProgress,
    *,
    pattern: str | None = None,
    joins: Sequence[dict[str, Any]] = (),
    is_train: bool = True,
) -> Data:
    """Read all columns of data files. The first file tells the form of all of them.

    Args:
        files: The files, which have equal columns; or a folder.
        options: Options of the user about the files.
        progress: Reports the number of rows.
        pattern: Value of data.path, or None.
        joins: Value of data.join.
        is_train: False for files of validation or test, which may lack rows or labels.

    Raises:
        ConfigError: If the user names an unknown encoding.
        DataError: If the files can't be read, or it isn't clear if they have a header.
    """
    path = files[0]
    format = data_format(path, options.get("format", "auto"))
    check_encoding(options.get("encoding"))
    progress.step(f"reading {display_name(path)}")
    dialect = Dialect(format, options.get("encoding") or _utf_16_of(path, format) or "utf-8")
    delimiter = options.get("delimiter", "auto")
    dialect = replace(dialect, delimiter=_mark_of(delimiter))
    data = Data(path, Table([], _no_lines()), dialect, "format" not in options.given)
    data.delimiter, data.pattern, data.joins = delimiter, pattern, joins
    if format == "txt" and os.path.isfile(path):
        _look_at_lines(data, options)
    reading = _read(data, files, progress, is_train=is_train)
    problems = [*data.table.problems, *_problems_of(reading.first, data.name)]
    undecodable = [x for x in problems if NOT_UTF_8 in x or BINARY in x]
    if undecodable and "encoding" not in options.given:
        _guess(data, undecodable)
        if not data.leaves_out:
            reading = _read(data, files, progress, is_train=is_train)
    if is_train:
        _check_shape(data, reading)
    if reading.first is not None:
        _name_columns(data, reading, options)
        if is_train and not data.header:
            _read_ragged(data, files)
    return data


def _mark_of(delimiter: str) -> str | None:
    return next((mark for mark, name in DELIMITERS.items() if name == delimiter), None)


def _no_lines() -> Any:
    return TableBuilder().table().lines


def _utf_16_of(path: str, format: str) -> str | None:
    """Return the encoding of a file in UTF-16, or None."""
    if format == IN_MEMORY or FORMATS[format].binary:
        return None
    for file in source_files(path, format):
        with open_input(file) as stream:
            found = utf_16(stream.read(4))
        if found is not None:
            return "utf-16"
    return None


def source_files(path: str, format: str) -> list[str]:
    """Return the files of a path, which may be a folder."""
    return open_source(path, Dialect(format)).files()


def _source(
    files: Sequence[str],
    dialect: Dialect,
    pattern: str | None = None,
    joins: Sequence[dict[str, Any]] = (),
) -> Any:
    """Return the source of files, of a folder, or of a table in memory."""
    if files[0].startswith(MEMORY):
        return table_named(files[0]).table
    source = open_source(files[0] if len(files) == 1 else files, dialect, pattern=pattern)
    return joined_source(source, joins)


def _look_at_lines(data: Data, options: InitOptions) -> None:
    """Change the format of a .txt file to that of its lines: fastText, tsv, or csv."""
    source = _source([data.path], replace(data.dialect, format="lines"))
    lines = list[str]()
    for block in source.blocks(Selection(), ROWS):
        lines += block.columns["text"]
        if len(lines) >= FIRST_ROWS:
            break
    fields = [line.split("\t") for line in lines]
    if any(line.startswith("__label__") for line in lines[:1]):
        data.dialect, data.by_name = replace(data.dialect, format="fasttext"), False
    elif lines and all(len(line) == 2 for line in fields):
        if len({last for _, last in fields}) < len({first for first, _ in fields}):
            data.dialect, data.by_name = replace(data.dialect, format="tsv"), False
    elif not any("\t" in line for line in lines):
        for mark in ";,|":
            counts = {line.count(mark) for line in lines}
            is_table = len(counts) == 1 and counts != {0} and len(lines) > 1
            if is_table and len({line.rpartition(mark)[2] for line in lines}) <= len(lines) / 2:
                data.dialect, data.by_name = replace(data.dialect, format="csv"), False
                return


@dataclass
class _Reading:
    """Rows of files that were read.

    Attributes:
        rows: The rows. Of csv and tsv, all but the first row.
        first: The first row of csv and tsv, which may be a header, or None.
        cells: Its cells, or [].
    """

    rows: TableBuilder
    first: Block | None = None
    cells: list[str] = field(default_factory=list)


def _read(
    data: Data, files: Sequence[str], progress: ReadingProgress, *, is_train: bool
) -> _Reading:
    """Read the columns of files into a table."""
    is_delimited = columns_of_format(data.dialect.format) == "delimited"
    dialect = data.dialect
    if dialect.format in ("csv", "tsv") and not data.joins:
        dialect = replace(dialect, header=False)
    source = _source(files, dialect, data.pattern, data.joins)
    optional = () if data.pattern is None else (FILE, FOLDER)
    selection = Selection(optional=optional)
    if is_train and columns_of_format(dialect.format) == "none" and not data.joins:
        selection = Selection((TEXT, LABEL), optional)
    blocks = source.blocks(selection, ROWS)
    if not dialect.header:
        blocks = without_repeated_headers(blocks)
    found = _Reading(TableBuilder(is_nested=not is_delimited))
    for block in progress.blocks(blocks):
        if not dialect.header and found.first is None and len(block):
            found.first = block.at(np.arange(1))
            found.cells = [str(cell) for cell in first_row(block)]
            block = block.at(np.arange(1, len(block)))
            if len(found.cells) > MANY_COLUMNS:
                progress.step(f"reading {data.name}, which has {len(found.cells):,} columns")
        found.rows.add(block, data.name)
    _set_table(data, found.rows)
    return found


def _set_table(data: Data, rows: TableBuilder) -> None:
    """Set the table, without columns of paths that have one value."""
    table = rows.table()
    is_path = [x.name in (FILE, FOLDER) and x.distinct < 2 for x in table.columns]
    table.columns = [x for x, path in zip(table.columns, is_path, strict=True) if not path]
    data.table = table


def _problems_of(block: Block | None, name: str) -> list[str]:
    """Return the problems of a block of one row."""
    return [] if block is None else [f"{name}:1: {each}" for each in block.problems.values()]


def _check_shape(data: Data, reading: _Reading) -> None:
    """Raise a DataError if the table has no rows, or only one column."""
    table, name, first = data.table, data.name, reading.cells
    if data.dialect.format == "txt" and table.problems and not table.rows:
        raise DataError(
            f"{name}: no labels: no line has a tab; expected label<TAB>text, csv or jsonl with a "
            "column of labels, or a folder of texts for each class; if columns are separated by "
            "commas, semicolons or |, give --format csv"
        )
    if not table.rows:
        if table.problems:
            raise DataError(*table.problems[:10])
        found = "one row" if any(first) else "no rows"
        raise DataError(f"{name}: {found}; expected one labelled sequence per row")
    if not first and table.rows == 1 and len(table.columns) > FEWEST_WIDE:
        raise DataError(f"{name}: {BY_COLUMNS}")
    if len(first) == 1:
        raise DataError(
            f"{name}: one column, {quote(first[0])}; expected a label and a sequence per row, "
            "separated by a comma, semicolon, tab or |; or give --delimiter"
        )


def _name_columns(data: Data, reading: _Reading, options: InitOptions) -> None:
    """Name the columns by the first row if it is a header. Otherwise, add it to the rows."""
    assert reading.first is not None
    own = [column for column in data.table.columns if isinstance(column.name, int)]
    of_paths = [column for column in data.table.columns if isinstance(column.name, str)]
    data.header = has_header(data.name, reading.cells, own, options)
    data.dialect = replace(data.dialect, header=data.header)
    if not data.header:
        reading.rows.add(reading.first, data.name)
        _set_table(data, reading.rows)
        return
    columns = []
    for name, column in zip(reading.cells, own, strict=True):
        if name.strip() or column.kind != "blank":
            column.name = name
            columns.append(column)
    data.table.columns = [*columns, *of_paths]


def _read_ragged(data: Data, files: Sequence[str]) -> None:
    """Read rows of different lengths as a label and a list: the fields after the first one.

    Nothing changes if nearly all rows have equally many fields.
    """
    table = data.table
    if len(table.problems) <= RAGGED * (table.rows + len(table.problems)):
        return
    builder = TableBuilder()
    for block in _source(files, data.dialect).blocks(Selection((0,), rest=True), ROWS):
        lists = [_numbers_or_texts(fields) for fields in as_list(block.columns[REST])]
        builder.add(replace(block, columns={0: block.columns[0], REST: lists}), data.name)
    ragged = builder.table()
    label = ragged.named(0)
    if label is not None and label.can_be_label and not ragged.problems:
        data.table = ragged


def _numbers_or_texts(fields: Sequence[str]) -> Any:
    """Return fields as numbers if they are numbers, whole ones as integers."""
    try:
        numbers = [float(field) for field in fields]
    except ValueError:
        return list(fields)
    return [int(x) for x in numbers] if all(x.is_integer() for x in numbers) else numbers


def _guess(data: Data, undecodable: Sequence[str]) -> None:
    """Set the likeliest encoding of files that aren't UTF-8.

    In a folder with a file per sequence, a few such files are left out instead.

    Args:
        data: The files.
        undecodable: Places and reasons of rows that aren't UTF-8.

    Raises:
        DataError: If there is no likely encoding.
    """
    if holds_whole_files(data.path) and len(undecodable) < data.table.rows:
        more = f" and {len(undecodable) - 1:,} more" if len(undecodable) > 1 else ""
        place = undecodable[0].partition(":")[0]
        data.warnings.append(
            f"{place}{more}: not UTF-8, as other files of the folder are; left out"
        )
        data.leaves_out = True
        return
    if not any(NOT_UTF_8 in each for each in undecodable):
        return
    encoding = guess_encoding(source_files(data.path, data.dialect.format)[0])
    if encoding is None:
        raise DataError(
            f"{data.name}: not UTF-8; give its --encoding, such as cp1251, gbk or shift_jis"
        )
    data.dialect = replace(data.dialect, encoding=encoding)
    data.warnings.append(
        f"{data.name} isn't UTF-8; it is read as {encoding}; if letters come out wrong, give "
        "--encoding, such as cp1251 or gbk"
    )
