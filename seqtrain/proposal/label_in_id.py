"""Ids of which the label is a part, such as a writer, a letter, and the number of a repetition."""

import shlex
from itertools import combinations

from seqtrain.errors import DataError, either
from seqtrain.proposal.conversions import can_be_converted, table_conversion_lines
from seqtrain.proposal.names import is_code_or_owner, is_part_of_id
from seqtrain.proposal.options import INIT_COMMAND, InitOptions
from seqtrain.proposal.profile import ColumnProfile, Columns, JoinedColumn, joined_column
from seqtrain.proposal.roles import Roles, columns_named, set_command
from seqtrain.proposal.table import Table
from seqtrain.text import listed

MOST_ID_COLUMNS = 2
"""Largest number of columns that are an id together with the label."""
SEQUENCE_ID = "sequence_id"
"""Name of the column that the printed command writes."""


def refuse_given_ids_with_label(table: Table, columns: Columns, options: InitOptions) -> None:
    """Raise a DataError if the user names the label as a part of the id."""
    parts = columns_named(columns, options, "id")
    for label in columns_named(columns, options, "label"):
        if label in parts:
            raise DataError(*_lines(table, parts, label))


def refuse_label_in_id(table: Table, roles: Roles, options: InitOptions) -> None:
    """Raise a DataError if windows are proposed, but the label is a part of the id.

    The rows with equal cells in one or two columns, which are named like ids, owners or trials, and
    in the label stand together. Without the label they don't.
    """
    if roles.window is None or options.get("window") is not None:
        return
    label = roles.label
    named = [
        x for x in roles.columns if x is not label and (is_part_of_id(x) or is_code_or_owner(x))
    ]
    for size in range(1, MOST_ID_COLUMNS + 1):
        for parts in combinations(named, size):
            id = JoinedColumn(*sorted([*parts, label], key=roles.columns.index))
            are_several = 2 * id.distinct <= id.rows
            if are_several and id.is_contiguous and not joined_column(parts).is_contiguous:
                window = set_command("data.window={steps: 16, stride: 8, label: constant}")
                lines = ["or, to cut rows with one label into windows:", f"  {window}"]
                raise DataError(*_lines(table, id.parts, label), *lines)


def _lines(table: Table, parts: Columns, label: ColumnProfile) -> list[str]:
    """Return lines about a label in an id, with the command that writes a column of the id."""
    shown = listed([part.shown for part in parts])
    lines = [
        f"--id: the rows of one {shown} stand together, and {label.shown} is the label, which an "
        "input to predict lacks; "
    ]
    if table.has_named_columns and can_be_converted(table):
        names = [part.name_text for part in parts]
        options = shlex.join(["--id", SEQUENCE_ID, "--label", label.name_text])
        lines[0] += "if they are a sequence, write a column that names it:"
        lines += table_conversion_lines(table, "joined", options, column=names, name=SEQUENCE_ID)
    else:
        advice = either(f"{INIT_COMMAND} --id {SEQUENCE_ID}", f"id={SEQUENCE_ID!r}")
        lines[0] += f"if they are a sequence, add a column that names it, and give {advice}"
    return lines
