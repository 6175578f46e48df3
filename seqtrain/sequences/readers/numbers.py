"""Numbers in cells of text and in Python values: reading, missing numbers, and decimal commas."""

import re
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.sequences.examples import BadRow, Features
from seqtrain.text import quote

FLOAT32_MAX = float(np.finfo(np.float32).max)
NUMBER_TYPES = {int, float, type(None)}
MISSING = ("", "?", "-", "na", "n/a", "nan", "null", "none")
"""Cells of a missing number, in lower case."""
_DECIMAL = r"(?:[-+]?[0-9]+(?:,[0-9]+)?(?:[eE][-+]?[0-9]+)?|\?|[nN][aA][nN])"
DECIMAL_COMMAS = re.compile(rf"{_DECIMAL}(?:\s+{_DECIMAL})+")
"""Numbers separated by blanks, some of which may have a comma."""
NUMBER_WITH_POINT = re.compile(r"(?<![.0-9])[0-9]*\.[0-9]+(?![.0-9])")
"""A number with one decimal point; dates such as 31.12.2024 have more points."""


def is_number(cell: str) -> bool:
    """Return True if a text is a number that float() accepts, in ASCII and without underscores."""
    try:
        float(cell)
    except ValueError:
        return False
    return cell.isascii() and "_" not in cell


def number_of(cell: object) -> float:
    """Return the number in a cell, or NaN if the cell is None or one of `MISSING`.

    Raises:
        BadRow: If the cell isn't a number.
    """
    if isinstance(cell, str):
        text = cell.strip()
        if text.lower() in MISSING:
            return float("nan")
        if is_number(text):
            return float(text)
    elif cell is None or isinstance(cell, int | float | Decimal):
        try:
            return float("nan") if cell is None else float(cell)
        except OverflowError:
            return float("inf")
    raise BadRow(f"expected a number, found {quote(str(cell))}")


def plain_numbers(cells: Sequence[Any]) -> npt.NDArray[np.float64] | None:
    """Return the numbers in cells, (N,), or None if a cell isn't plain.

    Cells are plain in two cases:

    - All are numbers or None. None becomes NaN.
    - All are texts that `is_number` accepts. A blank text isn't plain.
    """
    try:
        text = "".join(cells)
        return np.array([*map(float, cells)]) if text.isascii() and "_" not in text else None
    except TypeError:
        with suppress(OverflowError):
            return np.array(cells, np.float64) if {*map(type, cells)} <= NUMBER_TYPES else None
    except ValueError:
        pass
    return None


def parse_numbers(cells: Sequence[Any]) -> npt.NDArray[np.float64]:
    """Return the number in each cell, (N,), with NaN for each missing number: see `number_of`.

    Raises:
        BadRow: If a cell isn't a number and isn't one of `MISSING`.
    """
    if any(isinstance(cell, bool) for cell in cells):
        raise BadRow("expected a number or null, found true or false")
    found = plain_numbers(cells)
    return np.array([*map(number_of, cells)]) if found is None else found


def with_decimal_points(cell: Any) -> Any:
    """Replace decimal commas in a cell of text by points.

    Cells of other types and JSON lists are returned unchanged.

    Raises:
        BadRow: If the cell contains both points and commas, or a number with a point.
    """
    if not isinstance(cell, str) or cell.lstrip()[:1] == "[":
        return cell
    if ("." in cell and "," in cell) or NUMBER_WITH_POINT.search(cell):
        raise BadRow(f"found a point in {quote(cell)}; data.decimal is ','")
    return cell.replace(",", ".")


def float32(values: npt.NDArray[np.float64]) -> Features:
    """Return values (T, …) as float32. NaN stays NaN.

    Raises:
        BadRow: If a value is infinite or too large for float32.
    """
    beyond = np.abs(values) > FLOAT32_MAX
    if beyond.any():
        step = int(np.argwhere(beyond)[0][0]) + 1
        raise BadRow(f"step {step}: {values[beyond][0]:g} is infinite or too large for float32")
    return values.astype(np.float32)
