"""Tables with a column of texts for each class, or a column of numbers for each sequence."""

import re
import shlex
from collections import Counter

import numpy as np

from seqtrain.errors import DataError
from seqtrain.proposal.conversions import advised, table_conversion_lines
from seqtrain.proposal.names import KNOWN_NAMES
from seqtrain.proposal.profile import ColumnProfile, Columns
from seqtrain.proposal.roles import FEWEST_WIDE
from seqtrain.proposal.table import Table
from seqtrain.proposal.wide import largest_groups
from seqtrain.text import listed

FEWEST_WORDS, DISTINCT_SHARE = 2, 0.9
"""Fewest words of a text, on average, and smallest share of texts that differ."""
CLASS_COLUMN = re.compile(r"[^\W\d_]+(?:[ _-][^\W\d_]+)?")
"""Name of a column that may be a class: one or two words."""
LAST_NUMBER = re.compile("[._ -]*[0-9]+$")
"""Number of a sequence at the end of a name that begins with a label."""
FEWEST_OF_CLASS = 3
"""Fewest columns of each label in names of columns."""


def refuse_columns_of_classes(table: Table, columns: Columns) -> None:
    """Raise a DataError with a command if all columns, but a number of rows, hold texts.

    The texts differ, and no column has a usual name, such as question and answer.
    """
    if not table.has_named_columns:
        return
    texts = [column for column in columns if not _numbers_rows(column)]
    if len(texts) < 2 or not all(map(_may_be_class, texts)):
        return
    names = [column.name_text for column in texts]
    found = (
        f"{table.name}: no column has values that repeat as labels do; if the names of columns are "
        f"the labels ({listed(names)}), write a row for each text"
    )
    raise DataError(
        *advised(found, table_conversion_lines(table, "texts", column=names)),
        "else add a column of labels, and give --label COLUMN",
    )


def refuse_columns_of_sequences(table: Table, columns: Columns) -> None:
    """Raise a DataError with a command if each column but the first one may be a sequence.

    All columns hold numbers, none of which may be labels. The names of the others differ in numbers
    only, or are a few labels with numbers: good_01, bad_02. The first one sorts the rows, as time
    or a wave length does.
    """
    first = columns[0]
    if not table.has_named_columns or table.only_file is None or len(columns) <= FEWEST_WIDE:
        return
    names = Counter(LAST_NUMBER.sub("", x.name_text) for x in columns[1:])
    have_labels = len(names) > 1 and min(names.values()) >= FEWEST_OF_CLASS
    if not have_labels and list(map(len, largest_groups(columns[1:]))) != [len(columns) - 1]:
        return
    if any(x.kind not in ("number", "time") or x.can_be_label for x in columns):
        return
    steps = np.diff(first.numbers)
    if len(steps) and ((steps > 0).all() or (steps < 0).all()):
        found = (
            f"{table.name}: no column holds labels, and {first.shown} sorts the rows; if each "
            "other column is a sequence"
        )
        if have_labels:
            labels = listed([*names])
            raise DataError(
                f"{found} whose name begins with its label ({labels}), write it as a row:",
                *table_conversion_lines(table, "turned", pattern=LAST_NUMBER.pattern),
                "else add a column of labels, and give --label COLUMN",
            )
        raise DataError(
            f"{found}, write it as a row:",
            *table_conversion_lines(table, "turned", name="name", other=[first.name_text]),
            "and add a column of labels, or give a file with the label of each name, too",
        )


def refuse_names_of_sequences(table: Table, other: Table) -> None:
    """Raise a DataError with a command if names of columns are the values of another table.

    Each of these columns is a sequence then.
    """
    if not table.has_named_columns or table.only_file is None:
        return
    names = {column.name_text for column in table.columns}
    for key in other.columns:
        known = names & {str(value) for value in key.values}
        if isinstance(key.name, str) and 2 * len(known) > len(names) > FEWEST_WIDE:
            others = [x.name_text for x in table.columns if x.name_text not in known]
            raise DataError(
                f"{table.name}: {key.shown} of {other.name} has names of its columns; to write "
                "each of these as a row, with its numbers in a cell:",
                *table_conversion_lines(
                    table, "turned", shlex.quote(other.path), name=key.name, other=others
                ),
            )


def _numbers_rows(column: ColumnProfile) -> bool:
    """Return True for whole numbers that all differ."""
    return column.kind == "number" and column.distinct == column.rows and not column.has_decimals


def _may_be_class(column: ColumnProfile) -> bool:
    """Return True if a column holds texts that differ, below a name that may be a label."""
    filled = ~column.is_blank
    texts = [str(value) for value in column.values if value != ""]
    words = sum(len(text.split()) for text in texts)
    return (
        column.kind == "text"
        and column.word not in KNOWN_NAMES
        and CLASS_COLUMN.fullmatch(column.name_text) is not None
        and words >= FEWEST_WORDS * len(texts)
        and len(texts) >= DISTINCT_SHARE * filled.sum() > 0
    )
