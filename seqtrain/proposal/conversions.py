"""Commands of `seqtrain convert` for the files of a table, as messages print them."""

import os
from collections.abc import Sequence
from typing import Any

from seqtrain.proposal.profile import ColumnProfile, Columns
from seqtrain.proposal.shell import converting
from seqtrain.proposal.table import Table
from seqtrain.tables.blocks import LABEL
from seqtrain.tables.conversions.convert import TABLE_FORMATS
from seqtrain.tables.delimited import DELIMITERS


def can_be_converted(table: Table) -> bool:
    """Return True if the rows of a table are those of files that `seqtrain convert` reads."""
    is_text = table.format == "txt" and os.path.isfile(table.file)
    return os.path.exists(table.file) and (is_text or table.format in TABLE_FORMATS)


def names_in_files(table: Table, columns: Columns) -> list[str]:
    """Return the names of columns for `--column`, or their indices where they have no names."""
    if table.format == "txt":
        return [_index_in_text(column) for column in columns]
    return [column.name_text for column in columns]


def _index_in_text(column: ColumnProfile) -> str:
    """Return the index of a column in lines of label<TAB>text."""
    if column.name == LABEL:
        return "0"
    return "1"


def advised(text: str, lines: Sequence[str]) -> list[str]:
    """Return a line of a message, and commands below it, after a colon if there are any."""
    if lines:
        text += ":"
    return [text, *lines]


def table_conversion_lines(
    table: Table, form: str, *init_options: str, **options: Any
) -> list[str]:
    """Return two lines of a message: a command that converts the files of a table, and `init`.

    There are none if the rows of the table aren't those of files.

    Args:
        table: The table. If it is that of train, the files of the other splits are converted, too.
        form: Name of the form.
        init_options: Options of `seqtrain init` for the new files, as a shell reads them.
        options: Options of the form.
    """
    if not can_be_converted(table):
        return []
    options = {**options, **reading_options(table)}
    return converting(form, table.layout, table.file, *init_options, **options)


def reading_options(table: Table) -> dict[str, Any]:
    """Return the options of a conversion that reads the files as `init` does."""
    given = table.options.given
    found: dict[str, Any] = {"no_header": table.header is False or table.format == "txt"}
    marks = {mark: name for name, mark in DELIMITERS.items()}
    found["delimiter"] = "delimiter" in given and marks.get(table.dialect.delimiter or "")
    found["sheet"] = table.dialect.sheet
    encoding = given.get("encoding")
    found["encoding"] = encoding != "utf-8" and encoding  # utf-8 is read without the option
    return found
