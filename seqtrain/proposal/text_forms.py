"""Forms of text files: headers, titles, names in two rows, ragged rows, and better readings."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import dropwhile

import numpy as np

from seqtrain.errors import DataError
from seqtrain.proposal.conversions import table_conversion_lines
from seqtrain.proposal.divisions import refuse_blanks, refuse_labels_before_blanks, refuse_marks
from seqtrain.proposal.first_lines import FIRST_LINES, first_blocks, first_lines, holds_numbers
from seqtrain.proposal.header import has_header, tells_labels
from seqtrain.proposal.profile import ColumnProfile
from seqtrain.proposal.ragged import (
    RAGGED,
    has_label_last,
    labels_at,
    list_start,
    names_ragged_rows,
)
from seqtrain.proposal.shell import converting
from seqtrain.proposal.table import Table, TableBuilder
from seqtrain.proposal.unquoted import refuse_unquoted
from seqtrain.tables.blocks import REST, Block, Dialect, Selection, as_list
from seqtrain.tables.cells import is_number
from seqtrain.tables.conversions.forms import conversion
from seqtrain.tables.delimited import (
    BLANK_FIELDS,
    DELIMITERS,
    REPEATED_HEADER,
    Form,
    form_of,
    index_of_names,
)
from seqtrain.tables.json_lines import BY_COLUMNS
from seqtrain.tables.opening import guess_encoding
from seqtrain.tables.sources import open_source
from seqtrain.tables.xlsx import FIRST_ROWS
from seqtrain.text import display_name, one_of, quote

HEAD_ROWS, HEAD_CELLS = 16, 100_000
"""Rows of csv and tsv that are read at once to find a header, and about how many cells suffice."""
NOT_UTF_8, BINARY = "is not UTF-8", "is NUL"
"""Parts of the reason of a row that can't be decoded."""
MANY_COLUMNS = 8
"""Number of columns of a single row from which on a JSON object may hold a table by columns."""
FEWEST_BELOW_NAMES = 4
"""Fewest rows that show if the one below the names is like others."""
SURVEY_ID = '{"ImportId"'
"""Beginning of a cell in the third row of a survey."""


def format_of_lines(table: Table) -> str:
    """Return the format of a .txt file by its lines: fastText, tsv, csv, or txt."""
    lines = [line for line in first_lines(table.path, table.dialect) if line.strip(BLANK_FIELDS)]
    if lines and lines[0].startswith("__label__"):
        return "fasttext"
    form = form_of_file(table.path, replace(table.dialect, blank_lines=True))
    if form.is_below_others:
        return "tsv" if form.delimiter == "\t" else "csv"
    rows = list(dropwhile(lambda line: line.startswith("#") and "\t" not in line, lines))
    counts = {line.count("\t") for line in rows}
    if len(rows) < len(lines) and len(counts) == 1 and counts != {0}:
        return "tsv"  # comments above a table
    fields = [line.split("\t") for line in lines]
    if lines and all(len(line) == 2 for line in fields):
        first, last = (set(column) for column in zip(*fields, strict=True))
        if len(last) < len(first) or _has_names(table):
            return "tsv"
        return "txt"
    if any("\t" in line for line in lines):
        if table.options.get("header") or has_label_last(fields) or _are_columns(table, fields):
            return "tsv"
        return "txt"
    for mark in ";,|":
        above, *below = [line.count(mark) for line in lines]
        is_even = len({*below}) == 1 and below[0] - above in (0, 1)  # R names no column of rows
        if is_even and below[0] > 0 and holds_numbers(table.path):
            return "csv"
        counts = {line.count(mark) for line in lines}
        is_table = len(counts) == 1 and counts != {0} and len(lines) > 1
        for side in (0, 2):  # the label is first or last
            if is_table and len({_ends(line, mark)[side] for line in lines}) <= len(lines) / 2:
                return "csv"
    return "txt"


def _are_columns(table: Table, fields: Sequence[Sequence[str]]) -> bool:
    """Return True if the fields between tabs of a .txt file are columns, and no label and a text.

    All lines have equally many. Others than the first are numbers, or no label is first, or the
    first line names them.
    """
    if len({*map(len, fields)}) > 1:
        return False
    has_numbers = any(map(is_number, fields[-1][1:]))
    return has_numbers or not labels_at(fields, 0) or _has_names(table)


def _has_names(table: Table) -> bool:
    """Return True if the first line of label<TAB>text names the columns, as in tsv.

    A label that comes again is none of the names.
    """
    tsv = Table(table.path, table.layout, replace(table.dialect, format="tsv"))
    options, (head, first) = table.options, _head_of(tsv)
    comes_again = head.rows > 0 and first[0].strip() in head.columns[0].values
    if "header" in options.given or not head.rows or comes_again:
        return bool(options.get("header"))
    with suppress(DataError):  # it isn't clear
        return has_header(table.name, first, head.columns, options)
    return False


def delimiter_of(table: Table) -> str:
    """Return the delimiter of the first file of csv or tsv of a table."""
    return form_of_file(table.file, table.dialect).delimiter


def form_of_file(path: str, dialect: Dialect) -> Form:
    """Return the form of a file of csv or tsv."""
    return form_of([f"{line}\n" for line in first_lines(path, dialect)], dialect)


def _ends(line: str, mark: str) -> tuple[str, str, str]:
    """Return the first field of a line, the others but the last one, and the last field."""
    first, _, rest = line.partition(mark)
    middle, _, last = rest.rpartition(mark)
    return first, middle, last


def undecodable_rows(table: Table) -> list[str]:
    """Return the places and reasons of rows that can't be decoded, if no encoding is given."""
    if "encoding" in table.options.given:
        return []
    return [x for x in table.problems if NOT_UTF_8 in x or BINARY in x]


def find_header(table: Table, *, is_train: bool) -> list[str]:
    """Decide if the first row of csv or tsv names the columns, and return its cells.

    Raises:
        DataError: If it isn't clear. Of train, also if there are no rows, or only one column.
    """
    try:
        head, first = _head_of(table)
    except DataError:
        if is_train:
            refuse_blanks(table.path, table.dialect, table.layout)
        raise
    if any(NOT_UTF_8 in problem for problem in undecodable_rows(head)):
        set_likely_encoding(table, [table.path])
        head, first = _head_of(table)
    if is_train and is_ragged(head):
        refuse_blanks(table.path, table.dialect, table.layout)
        is_list, table.header = _is_list(table, head)
        table.dialect = replace(table.dialect, header=bool(table.header))
        if is_list:
            return first
    if is_train:
        check_shape(head, first)
        _refuse_second_names(head, first)
    filled = [cell for cell in first if cell.strip()]
    has_title = len(filled) == 1 and len(first) > 2
    if is_train and has_title and table.options.get("header") is not False:
        _refuse_title(table, first)
    if first:
        table.header = has_header(table.name, first, head.columns, table.options)
        if table.header and is_train and os.path.isfile(table.file):
            _refuse_unnamed(table, first, head.columns)
        table.dialect = replace(table.dialect, header=table.header)
    return first


def _is_list(table: Table, head: Table) -> tuple[bool, bool]:
    """Return if the first rows of csv or tsv are ragged lists, and if a header is above them.

    Args:
        table: The table.
        head: Its first rows, of which some can't be read as a table.

    Raises:
        DataError: If the rows have different lengths as texts hold the delimiter.
    """
    file = open_source(table.path, Dialect(table.format)).files()[0]
    blocks = open_source(file, replace(table.dialect, header=False)).blocks(
        Selection((), rest=True), FIRST_LINES
    )
    rows = as_list(next(blocks).columns[REST])
    header = bool(table.options.get("header", names_ragged_rows(rows[0], rows[1:])))
    own = rows[1:] if header else rows
    names = rows[0] if header else None
    is_list = bool(own) and list_start(own, names) is not None
    if own and os.path.isfile(table.path):
        form = form_of_file(file, table.dialect)
        refuse_unquoted(head, form, own, names and len(names), is_list=is_list)
    return is_list, header


def _refuse_title(table: Table, first: Sequence[str]) -> None:
    """Raise a DataError with the command that removes a title above a table of csv or tsv.

    Args:
        table: The table.
        first: Cells of its first row, of which one has a text.
    """
    dialect = replace(table.dialect, header=False)
    file = open_source(table.path, dialect).files()[0]
    block = next(first_blocks(file, dialect, FIRST_ROWS))
    rows = list(_rows_of(block))
    line = int(block.lines[index_of_names(rows)])
    if line == 1:
        return
    title = quote("".join(first).strip(), 40)
    found = f"one cell of {len(first)} has a text, {title}, as a title has"
    raise DataError(
        f"{table.name}:1: {found}; the names of the columns seem to be on line {line}; to remove "
        "what is above:",
        *converting("table", table.layout, table.file, line=line),
    )


def _refuse_unnamed(table: Table, first: Sequence[str], columns: Sequence[ColumnProfile]) -> None:
    """Raise a DataError with the command that names the only column of labels, or of texts.

    Args:
        table: The table.
        first: Names of its columns, of which some may be blank.
        columns: Its columns.
    """
    named = [column for cell, column in zip(first, columns, strict=True) if cell.strip()]
    for at, column in enumerate(columns):
        if first[at].strip():
            continue
        name = ""
        if tells_labels(column) and not any(map(tells_labels, named)):
            name = "label"
        elif column.is_free_text and not any(x.differs and x.words > 1.5 for x in named):
            name = "text"
        if not name or name in first:
            continue
        raise DataError(
            f"{table.name}:1: column {at}, counted from 0, has no name, but seems to hold the "
            f"{name}s; to name it:",
            *table_conversion_lines(table, "named", column=[at], name=name),
        )


def _refuse_second_names(head: Table, first: Sequence[str]) -> None:
    """Raise a DataError with a command if rows below the names hold further names, and no data.

    Qualtrics writes questions and ids of the columns there. Other surveys write answers below the
    names of questions, and blank cells below others.

    Args:
        head: The first rows without that of the names.
        first: The names. Those of columns of a group may be blank.
    """
    if head.rows < FEWEST_BELOW_NAMES or not os.path.isfile(head.file):
        return
    rows = [[str(x.values[x.codes[place]]).strip() for x in head.columns] for place in (0, 1)]
    names = [name.strip() for name in first]
    gaps = [
        bool(name) and _is_blank_at_first(x) for name, x in zip(names, head.columns, strict=True)
    ]
    are_texts = not any(map(is_number, [*names, *rows[0]]))
    has_groups = "" in names and all(map(any, zip(names, rows[0], strict=True)))
    if any(cell.startswith(SURVEY_ID) for cell in rows[1]):
        found = "the two rows below the names hold questions and ids of the columns"
        lines = converting("rows", head.layout, head.file, skip=2)
    elif has_groups and are_texts and any(gaps):
        found = "the row below the names holds further names"
        lines = converting("named", head.layout, head.file, rows=2)
    else:
        return
    raise DataError(f"{head.name}: {found}; to write one row of names:", *lines)


def _is_blank_at_first(column: ColumnProfile) -> bool:
    """Return True if the first cell of a column is blank, and no other one is."""
    return bool(column.is_blank[0]) and column.is_blank.sum() == 1


def _head_of(table: Table) -> tuple[Table, list[str]]:
    """Return the first rows of csv or tsv without the first one, and the cells of the first one.

    Rows that equal the first one are left out, too: headers of files that were joined.
    """
    head = Table(table.path, table.layout, replace(table.dialect, header=False))
    builder, first = TableBuilder(head), list[str]()
    file = open_source(table.path, head.dialect).files()[0]
    for block in first_blocks(file, head.dialect, HEAD_ROWS):
        if not first:
            filled = (at for at, row in enumerate(_rows_of(block)) if any(map(str.strip, row)))
            start = min([*block.problems, next(filled, 0)])  # a row that can't be decoded is blank
            row, block = block.at(slice(start, start + 1)), block.at(slice(start + 1, None))
            first = [str(as_list(cells)[0]) for cells in row.columns.values()]
            if row.problems:
                builder.add(row)
        if len(first) > 1:
            is_other = [list(row) != first for row in _rows_of(block)]
            block = block.at(np.flatnonzero(is_other))
        builder.add(block)
        if builder.rows * len(first) >= HEAD_CELLS:
            break
    builder.finalize()
    return head, first


def _rows_of(block: Block) -> Iterator[tuple[str, ...]]:
    """Return the cells of each row of a block."""
    return zip(*map(as_list, block.columns.values()), strict=True)


def check_shape(table: Table, first: Sequence[str]) -> None:
    """Raise a DataError if the table has no rows, or only one column.

    Args:
        table: The table without its first row.
        first: Cells of the first row of csv or tsv, or [].
    """
    name = table.name
    if table.is_delimited and (len(first) == 1 or not table.rows):
        refuse_blanks(table.path, table.dialect, table.layout)
    if table.format == "txt" and table.problems and not table.rows:
        refuse_marks(table.path, table.dialect, table.layout)
        refuse_labels_before_blanks(table.path, table.dialect, table.layout)
        raise DataError(
            f"{name}: {NO_LABELS}; if commas, semicolons or | separate columns, give --format csv"
        )
    if not table.rows:
        if table.problems:
            raise DataError(*table.problems[:10])
        found = "one row" if any(first) else "no rows"
        raise DataError(f"{name}: {found}; expected one labelled sequence per row")
    is_object = table.format == "jsonl" and not table.layout.joins
    if not first and table.rows == 1 and (is_object or len(table.columns) > MANY_COLUMNS):
        raise DataError(f"{name}: {BY_COLUMNS}", *_commands_for_lists(table))
    if len(first) == 1 and table.layout.pattern is None:  # else the path has the label
        refuse_marks(table.path, table.dialect, table.layout)
        refuse_labels_before_blanks(table.path, table.dialect, table.layout)
        marks = [mark for mark, text in DELIMITERS.items() if text in first[0]] or [*DELIMITERS]
        raise DataError(
            f"{name}: one column, {quote(first[0])}; expected a label and a sequence per row, "
            f"separated by a comma, semicolon, tab or |; or give --delimiter {one_of(marks)}"
        )


def _commands_for_lists(table: Table) -> list[str]:
    """Return lines with a command that writes the lists of objects in the only row of a table."""
    if not any(column.kind in ("turns", "events") for column in table.columns):
        return []
    command, _ = conversion("tables", table.file)
    return ["or, if each of its lists is a table, to write a file for each:", f"  {command}"]


NO_LABELS = (
    "no labels: no line has a tab; expected label<TAB>text, csv, jsonl, or a folder for each class"
)
"""Message about a text file without labels."""


def is_ragged(table: Table) -> bool:
    """Return True if many rows of a table have another number of fields than the first one."""
    uneven = [problem for problem in table.problems if REPEATED_HEADER not in problem]
    return len(uneven) > RAGGED * (table.rows + len(table.problems))


def set_likely_encoding(table: Table, files: Sequence[str]) -> None:
    """Set the likeliest encoding of the first of some files that isn't UTF-8.

    Raises:
        DataError: If there is no likely encoding.
    """
    paths = files if len(files) > 1 else files[0]
    found = open_source(paths, Dialect(table.format)).files()
    for file in found:
        encoding = guess_encoding(file)
        if encoding is not None:
            table.dialect = replace(table.dialect, encoding=encoding)
            table.warnings.append(
                f"{display_name(file)} isn't UTF-8; it is read as {encoding}; if letters come out "
                "wrong, give --encoding, such as cp1251 or gbk"
            )
            return
    raise DataError(
        f"{table.name}: not UTF-8; give its --encoding, such as cp1251, gbk or shift_jis"
    )


def better_reading(table: Table) -> str:
    """Return advice on a table many of whose rows can't be read: a reading that fits better."""
    total = table.rows + len(table.problems)
    advice = f"{len(table.problems):,} of {total:,} rows can't be read in this form"
    if not table.is_delimited:
        return f"{advice}; correct them, or give another --format"
    for delimiter, mark in DELIMITERS.items():
        for quotes in (None, False):
            dialect = replace(table.dialect, format="csv", delimiter=mark, quotes=quotes)
            if _can_be_read(table.path, dialect):
                options = f"--format csv --delimiter {delimiter}"
                options += " --set data.quoting=none" if quotes is False else ""
                return f"{advice}; nearly all can with {options}"
    return f"{advice}; if all after the first fields is one text, quote it, or write it as .tsv"


def _can_be_read(path: str, dialect: Dialect) -> bool:
    """Return True if nearly all of the first rows of a csv file have equally many fields."""
    rows = bad = width = 0
    try:
        for block in first_blocks(path, dialect):
            rows, bad, width = rows + len(block), bad + len(block.problems), len(block.columns)
    except DataError:
        return False
    return width > 1 and bad <= RAGGED * rows
