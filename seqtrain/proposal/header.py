"""Detection of a header: a first row that holds the names of the columns."""

from collections.abc import Sequence
from itertools import pairwise

from seqtrain.errors import DataError
from seqtrain.proposal.column_names import KNOWN_NAMES
from seqtrain.proposal.columns import LONGEST_LABEL, ColumnProfile
from seqtrain.proposal.options import COLUMN_OPTIONS, InitOptions
from seqtrain.sequences.readers.numbers import is_number
from seqtrain.text import quote

MOST_NAMES = 0.01
"""Largest share of the cells below a usual column name that may equal this name."""


def has_header(
    file: str, first: Sequence[str], columns: Sequence[ColumnProfile], options: InitOptions
) -> bool:
    """Return True if the first row holds the names of the columns, and False if it is data.

    The first rule that fits decides:

    1. With the option `header`, its value decides.
    2. A row with a column name that the user gave in another option is a header.
    3. A row with a blank cell after the first cell is data. So is a row with a cell of more than
       `LONGEST_LABEL` characters.
    4. A row with three or more numbers that count up by one, and with names, is a header.
    5. A row with any other numbers, or with equal cells, is data.
    6. A row with a usual name, such as "label", is a header. The name must be rare in its column
       (`MOST_NAMES`), or only one cell of the row may occur again in its column.
    7. A row of which a cell occurs again in its column is data.
    8. A row is a header if a column holds numbers, lists of numbers, dates, or few distinct labels.

    Args:
        file: Name of the file, for messages.
        first: Cells of the first row.
        columns: Profiles of the columns without the first row.
        options: Options of the user.

    Raises:
        DataError: If no rule decides.
    """
    if "header" in options.given:
        return bool(options.get("header"))
    names = [name.strip().lower() for name in first]
    by_name = {x for option in COLUMN_OPTIONS for x in options.named(option) if isinstance(x, str)}
    if {name for name in by_name if not name.isdigit()} & {*first}:
        return True
    if not all(names[1:]) or any(len(name) > LONGEST_LABEL for name in names):
        return False
    numbers = [float(name) for name in names if is_number(name)]
    is_counting = len(numbers) > 2 and {b - a for a, b in pairwise(numbers)} == {1.0}
    if numbers:
        return is_counting and len(numbers) < len(names)
    repeated = sum(
        column.values[name] > 0 for column, name in zip(columns, first, strict=True) if name
    )
    is_usual = any(
        name in KNOWN_NAMES and column.values[cell] <= max(1, MOST_NAMES * column.rows)
        for column, name, cell in zip(columns, names, first, strict=True)
    )
    if len({*names}) < len(names) or (repeated > 1 and not is_usual):
        return False
    # The first value of a column of labels that never occurs again is a name.
    repeats = [c for c in columns if c.can_be_label and len(c.values) <= c.rows / 10]
    has_labels = bool(repeats) and not repeated
    has_others = any(column.kind in ("number", "series", "date") for column in columns)
    if (has_others and not repeated) or has_labels or not KNOWN_NAMES.isdisjoint(names):
        return True
    if repeated:
        return False
    raise DataError(
        f"{file}: it isn't clear whether {quote(', '.join(first[:4]))} are the names of the "
        "columns; give --header or --no-header"
    )
