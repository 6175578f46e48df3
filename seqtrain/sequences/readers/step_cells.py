"""Columns of cells in tables whose rows are time steps: ids, tokens and numbers."""

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain, pairwise
from operator import ne
from typing import Any, TypeAlias

import numpy as np

from seqtrain.sequences.examples import BadRow
from seqtrain.sequences.readers.numbers import (
    FLOAT32_MAX,
    is_number,
    number_of,
    plain_numbers,
    with_decimal_points,
)
from seqtrain.sequences.readers.times import DURATION, SECOND, read_time

MISSING_TOKEN = "<unk>"
"""Token in place of a blank cell."""
Cells: TypeAlias = Any
"""Cells of a column: a list or tuple, or an array of numbers."""
Rows: TypeAlias = list[Cells]
"""A block of rows that are time steps, as a list of columns.

The columns are: line numbers, problems, labels, groups, kept cells and ids; then the order column
if there is one, token columns and number columns; then the row features.

A problem is the reason why a row can't be used, or None. A row with a problem has None in every
other column except its line number and its id.
"""
LINE, PROBLEM, LABEL, GROUP, KEPT, ID = range(6)
"""Indices of the first columns of `Rows`."""
KNOWN_CELLS = 4096
"""Number of cells whose tokens are cached."""
LARGEST_EXACT = 2**53
"""Largest size up to which every whole number is a float64."""
PLAIN_TYPES = {str, int, float, bool, type(None)}
"""Types of cells whose tokens can be cached: equal cells of one type have the same token."""


def with_shared_texts(cells: Cells, known: dict[str, str]) -> Cells:
    """Return the cells of a column with equal texts replaced by one object, to save memory.

    Args:
        cells: Cells of a column.
        known: Maps each text to the object that replaces it. New texts are added.
    """
    if isinstance(cells, np.ndarray):
        return cells
    return [known.setdefault(x, x) if type(x) is str else x for x in cells]


def joined(columns: Sequence[Cells]) -> Cells:
    """Concatenate the cells of one column from consecutive blocks of rows.

    The result is an array if all blocks are arrays, or else a list.
    """
    if len(columns) == 1:
        return columns[0]
    if all(isinstance(column, np.ndarray) for column in columns):
        return np.concatenate(columns)
    return [*chain.from_iterable(map(as_list, columns))]


def as_list(cells: Cells) -> Cells:
    """Convert an array of cells to a list of Python values; return a list or tuple unchanged."""
    return cells.tolist() if isinstance(cells, np.ndarray) else cells


def rows_at(rows: Rows, order: Any) -> Rows:
    """Return a block of the rows with the indices `order`, in this order.

    Args:
        rows: Block of rows.
        order: Array of indices.
    """
    at = order.tolist()
    return [x[order] if isinstance(x, np.ndarray) else [*map(x.__getitem__, at)] for x in rows]


def id_cells(cells: Cells) -> Cells:
    """Return the cells of the id column as texts without surrounding blanks.

    A missing cell becomes "", and a float such as 2.0 becomes "2".
    """
    try:
        return [*map(str.strip, cells)]
    except TypeError:
        return ["" if _is_missing(cell) else _text(cell).strip() for cell in cells]


def runs_of(ids: Cells) -> list[tuple[int, int]]:
    """Return the start and the end (exclusive) of each run of equal consecutive ids."""
    starts = np.flatnonzero([*map(ne, ids[1:], ids)]) + 1
    return [*pairwise([0, *starts.tolist(), len(ids)])]


def token_cells(cells: Cells) -> Cells:
    """Return the cells of a token column as tokens, with `MISSING_TOKEN` for blank cells."""
    # Other cells may be lists, or equal and yet written differently, as Decimals are.
    is_plain = {*map(type, cells)} <= PLAIN_TYPES
    return [*map(_token if is_plain else _token.__wrapped__, cells)]


def exact_cells(cells: Cells) -> Cells:
    """Convert the cells of the order column to an array of numbers, if no number is rounded.

    The array is int64 if all cells are integers, or float64 if all are finite numbers. Cells that
    can't be converted exactly are returned unchanged.
    """
    found: Cells = plain_numbers(cells)
    if found is None or not np.isfinite(found).all():
        return cells
    if {*map(type, cells)} <= {int, str}:
        with suppress(ValueError, OverflowError):
            return np.array([*map(int, cells)], np.int64)
        if (np.abs(found) >= LARGEST_EXACT).any():
            return cells  # read one by one, as exact integers
    return found


def float_cells(cells: Cells) -> Cells:
    """Return the cells of a number column as a float64 array, with NaN for None.

    If a cell isn't a number, or is too large for float32, all cells are returned unchanged.
    """
    found = plain_numbers(cells)
    return cells if found is None or (np.abs(found) > FLOAT32_MAX).any() else found


def _is_missing(cell: object) -> bool:
    return cell is None or cell != cell or (isinstance(cell, str) and not cell.strip())


def _text(cell: object) -> str:
    """Convert a cell to text; a float such as 2.0 becomes "2"."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


@lru_cache(KNOWN_CELLS, typed=True)
def _token(cell: Any) -> str:
    """Convert a cell to a token. Equal values from text files, JSON and pandas give one token.

    True becomes "true", 2.0 becomes "2", and a missing cell becomes `MISSING_TOKEN`.
    """
    if _is_missing(cell):
        return MISSING_TOKEN
    text = _text(cell)
    if text.endswith(".0") and text[:-2].lstrip("-").isdecimal():
        return text[:-2]
    return text.lower() if text.lower() in ("true", "false") else text


def with_point_or_error(cell: Any) -> Any:
    """Replace a decimal comma in a cell of text by a point; return other cells unchanged.

    For a number that has a point already, a BadRow is returned, not raised. `number_in` raises it
    when the row of the cell is known.
    """
    try:
        return with_decimal_points(cell)
    except BadRow as bad:
        return bad if is_number(cell) else cell


def number_in(cell: Any) -> float:
    """Return the number in a cell, or NaN if it is missing. Times and durations become seconds.

    Raises:
        BadRow: If the cell is a BadRow, isn't a number, or is infinite or too large for float32.
    """
    if isinstance(cell, BadRow):
        raise cell
    try:
        number = number_of(cell)
    except BadRow as bad:
        try:
            number = (read_time(cell, DURATION)[0] or 0) / SECOND
        except BadRow:
            raise bad from None
    if abs(number) > FLOAT32_MAX:
        raise BadRow(f"{cell} is infinite or too large for float32")
    return number
