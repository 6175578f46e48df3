"""Tables with a column of texts for each class, whose names are the labels."""

import json
import re

from seqtrain.errors import DataError
from seqtrain.proposal.names import KNOWN_NAMES
from seqtrain.proposal.profile import ColumnProfile, Columns
from seqtrain.proposal.shell import rewritten_files
from seqtrain.proposal.table import Table
from seqtrain.proposal.text_forms import delimiter_of
from seqtrain.text import listed

FEWEST_WORDS, DISTINCT_SHARE = 2, 0.9
"""Fewest words of a text, on average, and smallest share of texts that differ."""
CLASS_COLUMN = re.compile(r"[^\W\d_]+(?:[ _-][^\W\d_]+)?")
"""Name of a column that may be a class: one or two words."""
MELTING = (
    'import csv, sys; m = %s; r = csv.DictReader(sys.stdin, delimiter=m, restval=""); '
    'w = csv.writer(sys.stdout); w.writerow(["label", "text"]); '
    "w.writerows([k, x[k]] for x in r for k in sys.argv[1:] if x[k].strip())"
)
"""Program that writes a row for each text, with the name of its column as the label."""


def refuse_columns_of_classes(table: Table, columns: Columns) -> None:
    """Raise a DataError with a command if all columns, but a number of rows, hold texts.

    The texts differ, and no column has a usual name, such as question and answer.
    """
    if not table.has_named_columns:
        return
    texts = [column for column in columns if not _numbers_rows(column)]
    if len(texts) < 2 or not all(map(_may_be_class, texts)):
        return
    code = MELTING % json.dumps(delimiter_of(table))
    names = [column.name_text for column in texts]
    command = ["python3", "-c", code, *names]
    raise DataError(
        f"{table.name}: no column has values that repeat as labels do; if the names of columns are "
        f"the labels ({listed(names)}), write a row for each text:",
        *rewritten_files(command, table.layout.files, "texts", ending=".csv"),
        "else add a column of labels, and give --label COLUMN",
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
