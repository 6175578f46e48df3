"""Detection of a header: a first row that holds the names of the columns."""

from collections.abc import Sequence
from itertools import pairwise

from seqtrain.errors import DataError, either
from seqtrain.proposal.names import KNOWN_NAMES
from seqtrain.proposal.options import COLUMN_OPTIONS, INIT_COMMAND, InitOptions
from seqtrain.proposal.profile import LIST_KINDS, LONGEST_LABEL, ColumnProfile, Columns
from seqtrain.tables.cells import is_number, items_of
from seqtrain.text import quote

MOST_REPEATED = 0.01
"""Largest share of the cells below a usual column name that may equal this name."""
FEWEST_GRID = 8
"""Fewest numbers with equal steps that are names, such as wave lengths, also if they fall."""
KINDS_OF_VALUES = ("number", "time", "amount")
"""Kinds of columns whose names are no cells of theirs."""
MOSTLY_BLANK = 0.9
"""Share of blank cells from which on a column may have no name: a few texts ran over into it."""


def has_header(file: str, first: Sequence[str], columns: Columns, options: InitOptions) -> bool:
    """Return True if the first row holds the names of the columns, and False if it is data.

    The first rule that fits decides:

    1. With the option `header`, its value decides.
    2. A row with a column name that the user gave in another option is a header.
    3. A row with a blank cell between others is data, except above a column of which most cells
       are blank (`MOSTLY_BLANK`), or if no other cell comes again and one is above few distinct
       labels, or is a single word above free text. A row with a cell of more than
       `LONGEST_LABEL` characters is data.
    4. A row of three or more numbers that count up by one is a header if they count from 0, as
       pandas names columns, or are among names. So is one of a usual name, such as "label", and
       increasing numbers, such as wave lengths, or one of many numbers with equal steps.
    5. A row with any other numbers is data. One with equal cells is data, too, except above a
       column of numbers, dates or few distinct labels: then a name occurs twice.
    6. A row with a usual name, such as "label", is a header, if the name is rare in its column
       (`MOST_REPEATED`), or no cell of the row occurs again in its column.
    7. A row of which a cell occurs again in its column is data.
    8. A row with a list above other lists is data.
    9. A row is a header if a column holds numbers, lists of numbers, dates, or few distinct labels.
    10. A row with a single word above a column of free text is a header.

    Args:
        file: Name of the file, for messages.
        first: Cells of the first row.
        columns: The columns without the first row.
        options: Options of the user.

    Raises:
        DataError: If no rule decides.
    """
    if "header" in options.given:
        return bool(options.get("header"))
    by_name = {x for option in COLUMN_OPTIONS for x in options.named(option) if isinstance(x, str)}
    if {name for name in by_name if not name.isdigit()} & set(first):
        return True
    below = [_rows_with(column, name) for name, column in zip(first, columns, strict=True)]
    repeated, is_usual, names = sum(map(bool, below)), False, list[str]()
    for cell, column, count in zip(first, columns, below, strict=True):
        name = cell.strip().lower()
        if name or column.is_blank.mean() < MOSTLY_BLANK:
            names.append(name)
        is_usual |= name in KNOWN_NAMES and count <= max(1, MOST_REPEATED * column.rows)
    if any(len(name) > LONGEST_LABEL for name in names):
        return False
    with_points = [name.replace(",", ".", 1) for name in names]
    numbers = [float(name) for name in with_points if is_number(name)]
    if "" in names[1:]:
        if numbers or repeated or len(names) < len(columns):
            return False
        pairs = zip(names, columns, strict=True)
        return any(name and _may_be_below(name, column) for name, column in pairs)
    if numbers:
        is_grid = len(numbers) >= FEWEST_GRID and not repeated
        others = len(names) - len(numbers)
        return _are_names(numbers, others, is_usual=is_usual, is_grid=is_grid)
    if len(set(names)) < len(names):
        return not repeated and any(map(_tells_header, columns))
    if repeated:
        return is_usual
    if not KNOWN_NAMES.isdisjoint(names):
        return True
    for cell, column in zip(first, columns, strict=True):
        if column.kind in LIST_KINDS:
            return items_of(cell) is None
        if column.kind in KINDS_OF_VALUES or _may_be_below(cell, column):
            return True
    raise DataError(
        f"{file}: it isn't clear whether {quote(', '.join(first[:4]))} are the names of the "
        "columns; choose one:",
        f"  {either(f'{INIT_COMMAND} --header', 'header=True')}  # they are names",
        f"  {either(f'{INIT_COMMAND} --no-header', 'header=False')}  # they are values",
    )


def _are_names(numbers: Sequence[float], others: int, *, is_usual: bool, is_grid: bool) -> bool:
    """Return True if the numbers of a first row are names, as the fourth rule says.

    Args:
        numbers: The numbers of the row.
        others: Number of its other cells.
        is_usual: True if one of these is a usual name.
        is_grid: True if the numbers are names if their steps are equal.
    """
    steps = {b - a for a, b in pairwise(numbers)}
    if len(numbers) < 3:
        return False
    if is_grid and len(steps) == 1 and steps != {0.0}:
        return True
    if is_usual and min(steps) > 0 and others == 1:
        return True
    return steps == {1.0} and (numbers[0] == 0 or others > 0)


def _tells_header(column: ColumnProfile) -> bool:
    """Return True for a column of numbers, times or labels, in which the first cell isn't again.

    The first value of a column of labels that never occurs again is a name.
    """
    return tells_labels(column) or column.kind in ("number", "time")


def _may_be_below(name: str, column: ColumnProfile) -> bool:
    """Return True if a name without blanks is above few distinct labels, or above free text."""
    return tells_labels(column) or (column.is_free_text and len(name.split()) == 1)


def tells_labels(column: ColumnProfile) -> bool:
    """Return True for a column of few distinct labels."""
    return column.can_be_label and column.distinct <= column.rows / 10


def _rows_with(column: ColumnProfile, cell: str) -> int:
    """Return the number of rows of a column with a cell."""
    cell = cell.strip()
    if not cell or cell not in column.values:
        return 0
    return int(column.counts[column.values.index(cell)])
