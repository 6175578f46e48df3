"""Columns of cells in tables whose rows are time steps: ids, tokens and numbers."""

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain, pairwise
from operator import ne
from typing import Any, TypeAlias

import numpy as np

from seqtrain.data.examples import BadRow
from seqtrain.data.readers.sequences import (
    FLOAT32_MAX,
    is_number,
    number_of,
    plain_numbers,
    with_points,
)
from seqtrain.data.readers.times import DURATION, SECOND, read_time

MISSING_TOKEN = "<unk>"
"""Token in place of a blank cell."""
Cells: TypeAlias = Any
"""Cells of a column: a list or tuple, or an array of numbers."""
Rows: TypeAlias = list[Cells]
"""Rows that are time steps, column by column: lines, problems, labels, groups, kept columns, ids;
then, as in `Schema.sequence_columns`, order, tokens and numbers; then the row features.

The problem is the reason why a row can't be used, or None. All other cells but the line and the id
of such a row are None.
"""
LINE, PROBLEM, LABEL, GROUP, KEPT, ID = range(6)
"""Places of the first columns of `Rows`."""
KNOWN_CELLS = 4096
"""Number of cells whose tokens are remembered."""
LARGEST_EXACT = 2**53
"""From here on not every whole number is a float64."""
PLAIN_TYPES = {str, int, float, bool, type(None)}
"""Types of cells for which equal cells are the same token."""


def with_shared_texts(cells: Cells, known: dict[str, str]) -> Cells:
    """Return a column in which equal texts are one object, to save memory."""
    if isinstance(cells, np.ndarray):
        return cells
    return [known.setdefault(x, x) if type(x) is str else x for x in cells]


def joined(columns: Sequence[Cells]) -> Cells:
    """Return the cells of several blocks of a column as one block."""
    if len(columns) == 1:
        return columns[0]
    if all(isinstance(column, np.ndarray) for column in columns):
        return np.concatenate(columns)
    return [*chain.from_iterable(map(as_list, columns))]


def as_list(cells: Cells) -> Cells:
    """Return cells as values of Python: an array as a list."""
    return cells.tolist() if isinstance(cells, np.ndarray) else cells


def taken(rows: Rows, order: Any) -> Rows:
    """Return the rows at some indices, in the order of the indices."""
    at = order.tolist()
    return [x[order] if isinstance(x, np.ndarray) else [*map(x.__getitem__, at)] for x in rows]


def id_cells(cells: Cells) -> Cells:
    """Return the cells of the id column as texts, without surrounding blanks."""
    try:
        return [*map(str.strip, cells)]
    except TypeError:
        return ["" if _is_missing(cell) else _text(cell).strip() for cell in cells]


def runs_of(ids: Cells) -> list[tuple[int, int]]:
    """Return the begin and the end of each run of equal ids."""
    starts = np.flatnonzero([*map(ne, ids[1:], ids)]) + 1
    return [*pairwise([0, *starts.tolist(), len(ids)])]


def token_cells(cells: Cells) -> Cells:
    """Return the cells of a token column as texts."""
    # Other cells may be lists, or equal and yet written differently, as Decimals are.
    is_plain = {*map(type, cells)} <= PLAIN_TYPES
    return [*map(_token if is_plain else _token.__wrapped__, cells)]


def exact_cells(cells: Cells) -> Cells:
    """Return cells that are all whole numbers as int64; times may be beyond 2**53."""
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
    """Return cells that are all numbers of float32's range, or missing, as an array."""
    found = plain_numbers(cells)
    return cells if found is None or (np.abs(found) > FLOAT32_MAX).any() else found


def _is_missing(cell: object) -> bool:
    return cell is None or cell != cell or (isinstance(cell, str) and not cell.strip())


def _text(cell: object) -> str:
    """Return a cell as text. A whole number has no fraction, as in text files."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


@lru_cache(KNOWN_CELLS, typed=True)
def _token(cell: Any) -> str:
    """Return a cell as a token, the same for text files, JSON and tables from Python.

    pandas writes True where JSON has true, and 2.0 for 2 if another row of the column is blank.
    """
    if _is_missing(cell):
        return MISSING_TOKEN
    text = _text(cell)
    if text.endswith(".0") and text[:-2].lstrip("-").isdecimal():
        return text[:-2]
    return text.lower() if text.lower() in ("true", "false") else text


def with_point(cell: Any) -> Any:
    """Return a cell of a table with decimal commas with a point, or its problem as a BadRow."""
    try:
        return with_points(cell)
    except BadRow as bad:
        return bad if is_number(cell) else cell


def number_in(cell: Any) -> float:
    """Return the number in a cell. Times and durations are seconds."""
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
