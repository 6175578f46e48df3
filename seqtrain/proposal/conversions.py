"""Commands of `seqtrain convert` for the files of a table, as messages print them."""

import os
from collections.abc import Sequence
from typing import Any

from seqtrain.proposal.profile import ColumnProfile, Columns
from seqtrain.proposal.table import Table
from seqtrain.tables.blocks import LABEL
from seqtrain.tables.conversions.forms import conversion
from seqtrain.tables.delimited import DELIMITERS
from seqtrain.tables.formats import names_of

MOST_CONVERTED = 8
"""Largest number of files that a command names."""
TABLE_FORMATS = ("csv", "tsv", "jsonl", "xlsx")


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


def table_conversion(table: Table, form: str, **options: Any) -> tuple[str, str]:
    """Return a command that converts the files of a table, and their new names for `seqtrain init`.

    If the table is that of train, the files of the other splits are converted, too.

    Args:
        table: The table.
        form: Name of the form.
        options: Options of the form. `output` is the only new file.
    """
    options = {**options, **_reading_options(table)}
    own, test = _paths(table, is_one="output" in options)
    command, targets = conversion(form, [*own, *test], **options)
    if test:
        _, targets = conversion(form, own)
        for path in test:
            targets += f" --test {conversion(form, path)[1]}"
    return command, targets


def table_conversion_lines(
    table: Table, form: str, *init_options: str, **options: Any
) -> list[str]:
    """Return two lines of a message: a command that converts the files of a table, and `init`.

    Args:
        table: The table.
        form: Name of the form.
        init_options: Options of `seqtrain init` for the new files, as a shell reads them.
        options: Options of the form.
    """
    command, targets = table_conversion(table, form, **options)
    return [f"  {command}", " ".join(["  seqtrain init", targets, *init_options])]


def _paths(table: Table, *, is_one: bool) -> tuple[list[str], Sequence[str]]:
    """Return the files of a table with those of other splits, and then the files of test.

    Args:
        table: The table.
        is_one: True for the first file alone.
    """
    splits = table.layout.splits
    if is_one or "train" not in splits or table.file not in table.layout.train:
        return [table.file], []
    test = [path for path in names_of(splits.get("test")) if os.path.exists(path)]
    own = [*table.layout.train]
    own += [path for path in table.layout.files if os.path.exists(path) and path not in own]
    if len(own) > MOST_CONVERTED:
        return [table.file], []
    return [path for path in own if path not in test], test


def _reading_options(table: Table) -> dict[str, Any]:
    """Return the options of a conversion that reads the files as `init` does."""
    given = table.options.given
    found = {"no_header": table.header is False or table.format == "txt"}
    marks = {mark: name for name, mark in DELIMITERS.items()}
    found["delimiter"] = "delimiter" in given and marks.get(table.dialect.delimiter or "")
    found["sheet"] = table.dialect.sheet
    found["encoding"] = given.get("encoding")
    return found
