"""Ids that are written in the first of their rows only, and blank rows, as in sheets."""

import numpy as np

from seqtrain.errors import DataError
from seqtrain.proposal.conversions import advised, can_be_converted, table_conversion_lines
from seqtrain.proposal.names import is_code_or_owner
from seqtrain.proposal.profile import ColumnProfile, Columns
from seqtrain.proposal.table import Table
from seqtrain.text import counted, quote

FEWEST_IDS = 3
"""Fewest ids from which on blank cells below them may mean the same id."""


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
            lines = list[str]()
            if not table.layout.joins:
                lines = table_conversion_lines(table, "filled", column=[column.name_text])
            found = (
                f"{table.name}: {column.shown} is only written in the first of its rows, such as "
                f"{quote(str(column.values[column.codes[0]]), 40)}; write it in every row"
            )
            raise DataError(*advised(found, lines))


def refuse_blank_rows(table: Table, id: ColumnProfile | None) -> None:
    """Raise a DataError if rows of a step table have blank cells alone, as sheets have at the end.

    Raises:
        DataError: The error has the command that removes these rows.
    """
    if id is None or not table.is_delimited or not can_be_converted(table):
        return
    are_blank = np.all([column.is_blank for column in table.columns], axis=0)
    if are_blank.any():
        raise DataError(
            f"{table.name}:{table.lines[int(are_blank.argmax())]}: "
            f"{counted(int(are_blank.sum()), 'row')} of blank cells alone; to remove such rows:",
            *table_conversion_lines(table, "rows"),
        )


def _is_written_once(column: ColumnProfile) -> bool:
    known = np.flatnonzero(~column.is_blank)
    if len(known) < FEWEST_IDS or known[0] != 0 or 2 * len(known) >= column.rows:
        return False
    return len(np.unique(column.codes[known])) == len(known)
