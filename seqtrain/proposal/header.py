"""Detection of a header: a first row that holds the names of the columns."""

from collections.abc import Sequence
from itertools import pairwise

from seqtrain.errors import DataError
from seqtrain.proposal.names import KNOWN_NAMES
from seqtrain.proposal.options import COLUMN_OPTIONS, InitOptions
from seqtrain.proposal.profile import LIST_KINDS, LONGEST_LABEL, ColumnProfile
from seqtrain.tables.cells import is_number
from seqtrain.text import quote

MOST_REPEATED = 0.01
"""Largest share of the cells below a usual column name that may equal this name."""


def has_header(
    file: str, first: Sequence[str], columns: Sequence[ColumnProfile], options: InitOptions
) -> bool:
    """Return True if the first row holds the names of the columns, and False if it is data.

    The first rule that fits decides:

    1. With the option `header`, its value decides.
    2. A row with a column name that the user gave in another option is a header.
    3. A row with a blank cell between others is data, except above a column of blank cells. So is a
       row with a cell of more than `LONGEST_LABEL` characters.
    4. A row with three or more numbers that count up by one, and with names, is a header.
    5. A row with any other numbers, or with equal cells, is data.
    6. A row with a usual name, such as "label", is a header. The name must be rare in its column
       (`MOST_REPEATED`), or only one cell of the row may occur again in its column.
    7. A row of which a cell occurs again in its column is data.
    8. A row is a header if a column holds numbers, lists of numbers, dates, or few distinct labels.
    9. A row with a single word above a column of free text is a header.

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
    if {name for name in by_name if not name.isdigit()} & {*first}:
        return True
    pairs = list(zip(first, columns, strict=True))
    is_gap = [not name.strip() and column.kind != "blank" for name, column in pairs]
    cells = [name.strip() for name, column in pairs if name.strip() or column.kind != "blank"]
    names = [name.lower() for name in cells]
    if any(is_gap[1:]) or any(len(name) > LONGEST_LABEL for name in names):
        return False
    numbers = [float(name) for name in names if is_number(name)]
    if numbers:
        is_counting = len(numbers) > 2 and {b - a for a, b in pairwise(numbers)} == {1.0}
        return is_counting and len(numbers) < len(names)
    below = [_rows_with(column, name) for name, column in pairs]
    repeated = sum(count > 0 for name, count in zip(first, below, strict=True) if name.strip())
    is_usual = False
    for (name, column), count in zip(pairs, below, strict=True):
        if name.strip().lower() in KNOWN_NAMES and count <= max(1, MOST_REPEATED * column.rows):
            is_usual = True
    if len({*names}) < len(names) or (repeated > 1 and not is_usual):
        return False
    # The first value of a column of labels that never occurs again is a name.
    repeats = any(c.can_be_label and c.distinct <= c.rows / 10 for c in columns)
    has_others = any(column.kind in ("number", "amount", "time", *LIST_KINDS) for column in columns)
    if (has_others or repeats) and not repeated:
        return True
    if not KNOWN_NAMES.isdisjoint(names):
        return True
    if repeated:
        return False
    if any(column.is_free_text and len(name.split()) == 1 for name, column in pairs):
        return True
    raise DataError(
        f"{file}: it isn't clear whether {quote(', '.join(first[:4]))} are the names of the "
        "columns; give --header or --no-header"
    )


def _rows_with(column: ColumnProfile, cell: str) -> int:
    """Return the number of rows of a column with a cell."""
    cell = cell.strip()
    if not cell or cell not in column.values:
        return 0
    return int(column.counts[column.values.index(cell)])
