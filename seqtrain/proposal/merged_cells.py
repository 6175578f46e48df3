"""Ids that are written in the first of their rows only, and blank rows, as in sheets."""

import numpy as np

from seqtrain.errors import DataError
from seqtrain.proposal.names import is_code_or_owner
from seqtrain.proposal.profile import ColumnProfile, Columns
from seqtrain.proposal.shell import rewritten
from seqtrain.proposal.table import Table
from seqtrain.proposal.text_forms import delimiter_of
from seqtrain.text import counted, quote

BLANK_ROW = r"""^[[:space:],;|"]*$"""
"""Pattern of grep for a row of blank cells."""
FEWEST_IDS = 3
"""Fewest ids from which on blank cells below them may mean the same id."""
FILLING = (
    "import csv, sys; at = int(sys.argv[1]); "
    "rows = [x for x in csv.reader(sys.stdin, delimiter='{mark}') if len(x) > at]; "
    "[x.__setitem__(at, x[at] or above[at]) for above, x in zip(rows, rows[1:])]; "
    "csv.writer(sys.stdout, delimiter='{mark}', lineterminator='\\n').writerows(rows)"
)
"""Code that fills the blank cells of a column of csv with the cell above."""
FILLING_SHEET = (
    "import csv, io, sys, openpyxl; at, name = int(sys.argv[1]), sys.argv[2]; "
    "book = openpyxl.load_workbook(io.BytesIO(sys.stdin.buffer.read()), data_only=True); "
    "sheet = book[name] if name else book.worksheets[0]; "
    "rows = [x for x in map(list, sheet.iter_rows(values_only=True)) if set(x) != {None}]; "
    "[x.__setitem__(at, x[at] or above[at]) for above, x in zip(rows, rows[1:])]; "
    "csv.writer(sys.stdout, lineterminator='\\n').writerows(rows)"
)
"""Code that does this with a sheet, and writes csv."""


def refuse_ids_written_once(table: Table, columns: Columns) -> None:
    """Raise a DataError if an id is only written in the first of its rows.

    It is in the first column, or in one named like ids. Its first cell isn't blank, more than half
    of the others are, and no value comes again.

    Raises:
        DataError: The error has the command that writes the id in all rows.
    """
    for column in columns:
        if column.blank < 0 or not (column is table.columns[0] or is_code_or_owner(column)):
            continue
        if _is_written_once(column):
            lines = _commands(table, column)
            advice = "write it in every row"
            if lines:
                advice += ", such as by:"
            raise DataError(
                f"{table.name}: {column.shown} is only written in the first of its rows, such as "
                f"{quote(str(column.values[column.codes[0]]), 40)}; {advice}",
                *lines,
            )


def refuse_blank_rows(table: Table, id: ColumnProfile | None) -> None:
    """Raise a DataError if rows of a step table have blank cells alone, as sheets have at the end.

    Raises:
        DataError: The error has the command that removes these rows.
    """
    file = table.only_file
    if id is None or file is None or not table.is_delimited:
        return
    are_blank = np.all([column.is_blank for column in table.columns], axis=0)
    if are_blank.any():
        raise DataError(
            f"{table.name}:{table.lines[int(are_blank.argmax())]}: "
            f"{counted(int(are_blank.sum()), 'row')} of blank cells alone; to remove such rows:",
            *rewritten(["grep", "-vE", BLANK_ROW], file, "rows"),
        )


def _is_written_once(column: ColumnProfile) -> bool:
    known = np.flatnonzero(~column.is_blank)
    if len(known) < FEWEST_IDS or known[0] != 0 or 2 * len(known) >= column.rows:
        return False
    return len(np.unique(column.codes[known])) == len(known)


def _commands(table: Table, column: ColumnProfile) -> list[str]:
    """Return lines with the command that fills the blank cells of a column, or none."""
    file, format = table.only_file, table.format
    if file is None or table.layout.joins:
        return []
    place = str(table.columns.index(column))
    if format in ("csv", "tsv"):
        code = FILLING.format(mark=delimiter_of(table)).replace("'", '"')
        command = ["python3", "-c", code, place]
    elif format == "xlsx":
        command = ["python3", "-c", FILLING_SHEET, place, table.dialect.sheet or ""]
    else:
        return []
    ending = ".csv" if format == "xlsx" else None
    return rewritten(command, file, "filled", ending=ending)
