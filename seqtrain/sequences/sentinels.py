"""Numbers such as -999 that may stand for missing ones, and doubts about them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from seqtrain.config.document import set_options
from seqtrain.sequences.schema import EVERY
from seqtrain.tables.blocks import Array
from seqtrain.tables.cells import is_number
from seqtrain.text import counted, listed, quote

NINES = re.compile(r"-?9{2,}(?:\.[09]+)?")
"""A number that people write for a missing one."""
LONG_NINES = [sign * (10**digits - 1) for digits in range(8, 19) for sign in (1, -1)]
LIMITS = (-32768, 32767, 65535, 2147483647, -2147483648, *LONG_NINES)
"""Whole numbers that programs write for a missing one. As float32, some aren't the exact ones."""
FEWEST_OTHERS, FEWEST_ON_A_SCALE = 8, 3
"""Fewest distinct other numbers for one to be far from all of them, and for nines to be so."""
ENDS = 3
"""Number of distinct numbers that are looked at, from the smallest and from the largest on."""
MOST_COLUMNS = 3
"""Largest number of columns that doubts name one by one."""


def sentinel_doubts(
    columns: Mapping[str, Array], known: Mapping[str, Sequence[Any]] | None
) -> Iterator[str]:
    """Yield doubts about numbers of columns that may stand for missing ones.

    Args:
        columns: Maps the name of each column to its numbers, NaN for missing ones, in any shape.
            The name `EVERY` stands for all columns, and "" for lists of numbers in cells.
        known: Value of data.na_values.
    """
    known = known or {}
    found = {}
    for name, numbers in columns.items():
        cells = [*known.get(name, ()), *known.get(EVERY, ())]
        named = {float(cell) for cell in cells if is_number(str(cell))}
        own = [number for number in sentinels_of(numbers) if number not in named]
        if own:
            found[name] = own
    if len(found) <= MOST_COLUMNS:
        for name, own in found.items():
            yield _doubt({name: own}, columns, _shown(name))
        return
    yield _doubt(found, columns, f"{quote(next(iter(found)))} and {len(found) - 1} more columns")


def sentinels_of(numbers: Array) -> list[int | float]:
    """Return the numbers such as -999 or 9999 that repeat far outside of all others.

    -1 is one of them among positive numbers, and among decimals from 0 on.

    Args:
        numbers: The numbers, NaN for missing ones.
    """
    numbers = numbers[np.isfinite(numbers)]
    if numbers.dtype != np.float32:
        numbers = numbers.astype(np.float64)
    limits = {float(numbers.dtype.type(limit)): limit for limit in LIMITS}
    if not len(numbers):
        return []
    if not any(_may_be_missing(number, limits) for number in (numbers.min(), numbers.max())):
        return []
    values, counts = np.unique(numbers, return_counts=True)
    ends = {*range(min(ENDS, len(values))), *range(max(0, len(values) - ENDS), len(values))}
    candidates = [at for at in sorted(ends) if _may_be_missing(values[at], limits)]
    others = np.delete(values, candidates)
    if len(others) < FEWEST_ON_A_SCALE:
        return []
    low = float(others[0])
    high = float(others[-1])
    has_decimals = bool((others != np.rint(others)).any())
    found = []
    for at in candidates:
        number = float(values[at])
        is_far = max(low - number, number - high) > high - low
        if number == -1:
            is_far = low > 0 or (low == 0 and has_decimals)
        if len(others) < FEWEST_OTHERS and number == -1:
            continue
        if is_far and counts[at] > 1:
            found.append(limits.get(number, _exact(values[at])))
    return found


def _may_be_missing(number: Any, limits: Mapping[float, int]) -> bool:
    """Return True for numbers that people or programs write for a missing one.

    Args:
        number: The number, float32 or float64.
        limits: Maps those that programs write, in this precision, to the exact ones.
    """
    text = np.format_float_positional(number, trim="-")
    return number == -1 or float(number) in limits or NINES.fullmatch(text) is not None


def _exact(number: Any) -> int | float:
    """Return a number as people write it: a whole one as an integer, and -999.9 of float32."""
    if float(number).is_integer():
        return int(number)
    return float(np.format_float_positional(number, trim="-"))


def _shown(name: str) -> str:
    if name == EVERY:
        return "the columns of numbers"
    return quote(name) if name else "the sequences"


def _doubt(
    found: Mapping[str, Sequence[int | float]], columns: Mapping[str, Array], shown: str
) -> str:
    """Return the doubt about some numbers of columns, with the keys that make them missing.

    Args:
        found: Maps the name of each column in data.na_values, or "" for lists in cells, to the
            doubtful numbers.
        columns: Maps names to all numbers.
        shown: Name of the columns for the message.
    """
    every = {number: None for own in found.values() for number in own}
    cells = 0
    others = []
    for name, own in found.items():
        numbers = columns[name].reshape(-1)
        is_found = np.isin(numbers.astype(np.float32), np.array(own, np.float32))
        cells += int(is_found.sum())
        others.append(numbers[~is_found])
    rest = np.concatenate(others)
    if "" in found:
        advice = ", write null or NaN there, and add --set data.missing=mask"
    else:
        advice = f": {set_options({'na_values': dict(found), 'missing': 'mask'})}"
    return (
        f"{listed(list(map(str, every)))} in {counted(cells, 'cell')} of {shown}, where the others "
        f"are {np.nanmin(rest):g} to {np.nanmax(rest):g}; if it stands for a missing number{advice}"
    )
