"""Choice of the label column by scored rules."""

import shlex
from collections.abc import Callable, Sequence

from seqtrain.config.document import flow
from seqtrain.errors import DataError, either, marked, parameter
from seqtrain.proposal.column_names import GROUP_NAMES, LABEL_NAMES, TEXT_NAMES
from seqtrain.proposal.columns import FEWEST_MEASURED, ColumnProfile, columns_named
from seqtrain.proposal.options import INIT_COMMAND, InitOptions
from seqtrain.sequences.examples import BadRow
from seqtrain.sequences.readers.named_cells import MARKS, is_mark
from seqtrain.text import counted

FEW_VALUES = 50
"""Distinct values up to which a column is likely to hold labels."""
FEW_NUMBERS = 12
"""Distinct values up to which a column of numbers is likely to hold labels."""
MOST_LISTED = 20
"""Number of columns that a message lists."""


def _has_few_values(column: ColumnProfile) -> bool:
    return len(column.values) <= (FEW_NUMBERS if column.kind == "number" else FEW_VALUES)


RULES: tuple[tuple[int, Callable[[ColumnProfile], bool]], ...] = (
    (4, lambda column: column.name == "label"),
    (4, lambda column: column.name in LABEL_NAMES),
    (-4, lambda column: column.name in (*TEXT_NAMES, *GROUP_NAMES)),
    (1, _has_few_values),
    (-1, lambda column: column.is_code or column.is_time),
)
"""Pairs of points and a condition. A column gets the points of each condition that it meets."""


def label_score(column: ColumnProfile) -> int:
    """Return the points of a column from `RULES`. More points mean a likelier label."""
    return sum(points for points, applies in RULES if applies(column))


def choose_label(columns: Sequence[ColumnProfile]) -> ColumnProfile:
    """Return the column of the label: the column with most points that can be a label.

    A table of more than `FEWEST_MEASURED` columns may hold a series, in which several columns have
    most points. Text is preferred among them, and then the first or last column of the table.

    If no column can be a label, a column of lists of strings is the label of a multi-label task. It
    must be the only such column, and the table must have a column of text.

    Raises:
        DataError: If no column can be the label, or several columns are equally likely.
    """
    candidates = [column for column in columns if column.can_be_label and column.column != ""]
    scores = {column: label_score(column) for column in candidates}
    best = [column for column in candidates if scores[column] == max(scores.values())]
    if len(best) > 1 and len(columns) > FEWEST_MEASURED:  # the time steps of a series, perhaps
        at_end = [column for column in best if column in (columns[0], columns[-1])]
        best = [column for column in best if column.kind == "text"] or at_end or best
    lists = [column for column in columns if column.kind == "symbols"]
    if not candidates and len(lists) == 1 and any(c.kind == "text" for c in columns):
        best = lists  # multi-label
    if len(best) == 1:
        return best[0]
    if candidates:
        raise DataError(
            f"{parameter('label')}: several columns may hold the label; choose one:",
            *commands("label", best),
            *_command_for_marks(best),
        )
    advice = marked("give --label COLUMN")
    if any(column.kind == "number" and not column.can_be_label for column in columns):
        advice = f"group numbers into classes, or {advice}"
    raise DataError(
        f"{parameter('label')}: no column repeats values as labels do; {advice}; found:",
        *described(columns),
    )


def _command_for_marks(columns: Sequence[ColumnProfile]) -> list[str]:
    """Return a list of one line that advises to read several columns of marks as labels.

    The line is an `init` command with ``--set data.label=[…]``. The list is empty if a value isn't
    a mark such as 0 or 1.
    """
    if not all(MARKS.keys() >= {value.lower() for value in each.values} for each in columns):
        return []
    setting = f"data.label={flow([each.column for each in columns])}"
    chosen = either(f"{INIT_COMMAND} --set {shlex.quote(setting)}", f"settings=[{setting!r}]")
    return [f"  {chosen}  # a row can have several labels"]


def commands(option: str, columns: Sequence[ColumnProfile]) -> list[str]:
    """Return a line per column for an error message, with a command that names the column.

    Only the first `MOST_LISTED` columns have a line. A last line counts the others, if any.

    Args:
        option: Option that names the column, such as "label".
        columns: Columns that the user can choose from, at least one.
    """
    listed = columns[:MOST_LISTED]
    shell = [f"{INIT_COMMAND} --{option} {shlex.quote(str(each.column))}" for each in listed]
    python = [f"{option}={each.column!r}" for each in listed]
    widths = max(map(len, shell)), max(map(len, python))
    lines = [
        f"  {either(one.ljust(widths[0]), other.ljust(widths[1]))}"
        f"  # {counted(len(column.values), 'value')}"
        for one, other, column in zip(shell, python, listed, strict=True)
    ]
    more = len(columns) - len(lines)
    return [*lines, f"  and {more:,} more"] if more else lines


def described(columns: Sequence[ColumnProfile]) -> list[str]:
    """Return one line per column for an error message.

    Only the first `MOST_LISTED` columns have a line. A last line counts the others, if any.
    """
    lines = [f"  {column.describe()}" for column in columns[:MOST_LISTED]]
    more = len(columns) - len(lines)
    return [*lines, f"  and {more:,} more"] if more else lines


def with_one_label(
    columns: Sequence[ColumnProfile], options: InitOptions
) -> tuple[Sequence[ColumnProfile], InitOptions]:
    """Return columns and options in which one column replaces several one-hot label columns.

    The new column is the last one. Its cells hold the names of the columns that have a mark in the
    row, joined by |. A cell is blank if the row has no mark.

    If the options name fewer than two label columns, the arguments are returned unchanged.

    Args:
        columns: Profiles of all columns.
        options: Options of the user, which may name several label columns.

    Raises:
        DataError: If a cell of a label column isn't a mark such as 0, 1, true or false.
    """
    labels = columns_named(columns, options, "label")
    if len(labels) < 2:
        return columns, options
    names = [str(column.column) for column in labels]
    cells = []
    for number, row in enumerate(zip(*(column.cells for column in labels), strict=True), 1):
        try:
            marked = [name for name, cell in zip(names, row, strict=True) if is_mark(name, cell)]
        except BadRow as bad:
            raise DataError(f"{parameter('label')}: row {number:,}: {bad}") from None
        cells.append("|".join(marked))
    joined = ColumnProfile(str(names), one_hot=[column.column for column in labels])
    joined.add(cells)
    others = [column for column in columns if column not in labels]
    return [*others, joined], InitOptions(**{**options.given, "label": joined.column})
