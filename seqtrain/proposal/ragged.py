"""Rows of csv or tsv of different lengths: a few first columns, then the fields of a list."""

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from seqtrain.proposal.profile import REPEATS
from seqtrain.tables.cells import is_number

MOST_FIRST = 4
"""Largest number of columns before the list, if no header names them."""
RAGGED = 0.05
"""Share of rows with another number of fields from which on the tail of a row is a list."""
Rows: TypeAlias = Sequence[Sequence[str]]
"""Fields of each row."""


def names_ragged_rows(first: Sequence[str], rows: Rows) -> bool:
    """Return True if the first row names columns: several texts that don't come again."""
    cells = {cell for row in rows for cell in row}
    are_texts = all(name.strip() and not is_number(name) for name in first)
    return are_texts and 1 < len(first) == len(set(first)) and cells.isdisjoint(first)


def list_start(rows: Rows, names: Sequence[str] | None) -> int | None:
    """Return the number of columns before the list, or None if the other fields are no list.

    The fields of a list are numbers, or symbols that repeat. Parts of texts don't.

    Args:
        rows: Fields of each row, at least one row.
        names: Names in the header, the last one that of the list, or None. A header with as many
            names as the longest row has fields tells nothing.
    """
    if names is not None and len(names) < max(map(len, rows)):
        start = max(1, len(names) - 1)
    else:
        start = _first_columns(rows)
    items = Counter(cell for row in rows for cell in row[start:] if cell.strip())
    if all(map(is_number, items)) or items.total() >= REPEATS * len(items):
        return start
    return None


def labels_at(rows: Rows, place: int) -> set[str]:
    """Return the distinct fields at a place of all rows if they repeat as labels do, or else {}."""
    cells = [row[place].strip() for row in rows if -len(row) <= place < len(row)]
    found = set(cells)
    if len(cells) < (1 - RAGGED) * len(rows) or not 2 <= len(found) <= len(rows) / REPEATS:
        return set()
    return found


def has_label_last(rows: Rows) -> bool:
    """Return True if the last fields repeat, and none of them is at another place."""
    others = {cell.strip() for row in rows for cell in row[:-1]}
    found = labels_at(rows, -1)
    return bool(found) and found.isdisjoint(others)


def _first_columns(rows: Rows) -> int:
    """Return the number of first places whose fields vary, and are at no later place.

    Numbers with decimals are those of a series.
    """
    for place in range(MOST_FIRST):
        cells = {row[place] for row in rows if len(row) > place}
        later = {cell for row in rows for cell in row[place + 1 :]}
        if len(cells) < 2 or not cells.isdisjoint(later) or not later:
            return place
        if all(map(is_number, cells)) and any("." in cell for cell in cells):
            return place
    return MOST_FIRST
