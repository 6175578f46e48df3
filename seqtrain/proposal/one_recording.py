"""One long recording: a row per time step, but no id. Commands that number its parts as ids."""

import shlex
from typing import Any

import numpy as np

from seqtrain.proposal.class_files import FEWEST_PIECES
from seqtrain.proposal.conversions import table_conversion_lines
from seqtrain.proposal.names import is_counting
from seqtrain.proposal.profile import REPEATS, ColumnProfile, Columns, without
from seqtrain.proposal.shell import set_option
from seqtrain.proposal.step_ids import SHORTEST_RUN
from seqtrain.proposal.table import Table
from seqtrain.text import counted

PARTS, SHORTEST_PART = 2 * FEWEST_PIECES, 16
"""Number of parts into which a recording is cut, and fewest rows of a part."""
WINDOW = "data.window={steps: 16, stride: 8, label: last}"


def commands_for_parts(table: Table, columns: Columns, label: ColumnProfile) -> list[str]:
    """Return lines with commands that number the parts of a recording, or an empty list.

    A part begins where a column that counts begins again. If there is none, parts are equally long.
    The rows are one recording if a column sorts them, or if the label stays for some rows and comes
    back.

    Args:
        table: The table.
        columns: Its columns.
        label: Column of the label.
    """
    others = without(columns, [label])
    is_measured = any(column.is_measured for column in others)
    if not is_measured or not is_one_file(table):
        return []
    runs = np.count_nonzero(np.diff(label.codes)) + 1
    stays = table.rows >= SHORTEST_RUN * runs
    counters = {column: parts for column in others if (parts := _parts(column))}
    again = next((column for column, parts in counters.items() if parts > 1), None)
    if not (counters or (stays and runs >= 2 * label.distinct)):
        return []
    names = [column.name_text for column in table.columns]
    name = next(x for x in ("part", "part_id", "part_of_recording") if x not in names)
    size = -(-table.rows // PARTS)
    if again is not None:
        rule: dict[str, Any] = {"column": [again.name_text]}
        sequences = counted(counters[again], "sequence")
        found = f"{again.shown} begins again, which makes {sequences}; number them in a column"
        comment = "a sequence ends where it begins again"
    elif size >= SHORTEST_PART:
        rule = {"every": size}
        found = f"the rows are one recording; divide it into parts of {size} to hold some out"
        comment = "no window crosses parts; for another recording, scores may be lower"
    else:
        return []
    options = shlex.join(["--id", name, "--label", label.name_text])
    if not stays:
        options += f" {set_option(WINDOW)}"
    options += f"  # {comment}"
    lines = table_conversion_lines(table, "parts", options, name=name, **rule)
    return [f"if a row is a time step: {found}:", *lines]


def is_one_file(table: Table) -> bool:
    """Return True for a file of named columns that a command can convert."""
    layout = table.layout
    if layout.joins or layout.pattern or table.only_file is None:
        return False
    return table.format in ("jsonl", "xlsx") or table.has_named_columns


def _parts(column: ColumnProfile) -> int:
    """Return the number of parts in which a column sorts the rows, or counts them; 0 for none.

    Each part begins with the same number.
    """
    if column.kind not in ("number", "time") or column.is_constant:
        return 0
    numbers = column.numbers
    steps = np.diff(numbers)
    falls = np.flatnonzero(steps < 0)
    rises = steps[steps >= 0]
    counts = not column.has_decimals and len(rises) > 0 and rises.min() == rises.max() > 0
    if not np.isfinite(numbers).all() or not (
        column.kind == "time" or is_counting(column) or counts
    ):
        return 0
    if not len(falls) or column.kind == "time":
        return int(not len(falls) and rises.any())
    begins = numbers[np.append(0, falls + 1)]
    if REPEATS * len(begins) > column.rows or begins.min() < begins.max():
        return 0
    return len(begins)
