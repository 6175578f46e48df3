"""Values of Python and its libraries as cells: numbers, texts, lists, dates as ISO text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

import numpy as np

from seqtrain.tables.blocks import Cells, Coded

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Number of each unit of time in a second, by the unit's name in numpy and Arrow."""
PRINTED_TIME = re.compile(r"(.*[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?(.*)")
"""A time of day with decimals of the second and a time zone, perhaps after a date."""
MIDNIGHT = "T00:00:00"
PLAIN_TYPES = {str, int, bool, float, type(None)}
"""Types of values that are cells already."""


def python_value(value: Any) -> Any:
    """Convert a Python value to a cell, or None if it is missing (NaN, NaT, NA, masked).

    - Arrays, tuples and Arrow lists become lists.
    - Dates and times become ISO text, and durations text such as ``PT1.5S``.
    - Bytes become text if they are UTF-8.
    - A value that can't be converted is returned unchanged.
    """
    if _is_missing(value):
        return None
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            return value.decode()
    if isinstance(value, np.datetime64):  # tolist() would lose nanoseconds
        return time_text(str(value))
    if isinstance(value, timedelta):
        value = getattr(value, "asm8", np.timedelta64(value))  # that of pandas has nanoseconds
    if isinstance(value, np.timedelta64):
        found = np.datetime_data(value.dtype)[0]
        unit = found if found in PER_SECOND else "s"
        count = int(value.astype(f"timedelta64[{unit}]").astype(np.int64))
        return duration_text(count, PER_SECOND[unit])
    if hasattr(value, "isoformat"):
        return time_text(value.isoformat())
    if type(value) is not str:
        for name in ("as_py", "tolist", "to_list"):  # of pyarrow, numpy, polars
            if hasattr(value, name):
                value = getattr(value, name)()
    if isinstance(value, list | tuple | set | frozenset):
        return [python_value(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): python_value(item) for name, item in value.items()}
    return value


def cells_of_values(values: Any) -> Cells:
    """Return the values of a column as cells.

    Args:
        values: A list, an array, or a column of pandas or polars. Values that are arrays or tensors
            stay as they are.
    """
    dtype: Any = getattr(values, "dtype", None)
    is_polars = hasattr(values, "to_physical")
    if hasattr(values, "cat") and hasattr(dtype, "categories") and not is_polars:
        categories = np.asarray(values.cat.codes, np.int32)
        return Coded(categories, [python_value(each) for each in values.cat.categories])
    if is_polars:
        if dtype.is_temporal():
            values = values.to_numpy()
        else:
            values = values.to_list()
    elif hasattr(values, "isna"):  # a column of pandas
        values = _pandas_array(values)
    elif hasattr(values, "detach"):  # a tensor
        values = values.detach().cpu().numpy()
    if isinstance(values, np.ma.MaskedArray):
        if values.ndim == 1 and values.dtype.kind in "iuf":
            return np.ma.filled(values.astype(np.float64), np.nan)
        return [python_value(each) if values.ndim == 1 else each for each in values]
    if isinstance(values, np.ndarray) and values.ndim == 1:
        kind = values.dtype.kind
    else:
        kind = ""
    if kind in ("i", "u", "f"):
        return np.asarray(values)
    if kind == "b":
        return Coded(values.astype(np.int32), [False, True])
    if kind in ("m", "M"):
        distinct, codes = np.unique(values, return_inverse=True)
        return Coded(codes.astype(np.int32), [python_value(each) for each in distinct])
    cells = values.tolist() if kind else list(values)
    if set(map(type, cells)) <= PLAIN_TYPES:
        return [None if each != each else each for each in cells]
    return [each if getattr(each, "ndim", 0) else python_value(each) for each in cells]


def duration_text(count: int, per_second: int) -> str:
    """Return a duration as text of the form ``PT1.5S``.

    Args:
        count: Duration as a number of units of time.
        per_second: Number of these units in a second.
    """
    seconds, rest = divmod(abs(count), per_second)
    decimals = f".{rest * 10**9 // per_second:09d}" if rest else ""
    return f"{'-' if count < 0 else ''}PT{seconds}{decimals}S"


def time_text(text: str) -> str:
    """Return a date or time in the form of Python's `isoformat`, without a time at midnight.

    The seconds have six decimals, or nine for nanoseconds. Decimals that are all zero are left out.
    A time zone is written as ``+00:00``. Programs write dates as times at midnight, and csv files
    hold the date alone.

    Args:
        text: The date or time, as numpy or Arrow writes it.
    """
    found = PRINTED_TIME.fullmatch(text)
    if found is None:  # a date
        return text
    whole, decimals, zone = found.groups("")
    decimals = decimals.ljust(9, "0").removesuffix("000")
    shown = f".{decimals}" if decimals.strip("0") else ""
    zone = "+00:00" if zone == "Z" else zone
    zone = f"{zone[:3]}:{zone[3:]}" if zone[1:].isdigit() else zone
    time = whole.replace(" ", "T") + shown + zone
    if len(time) > len(MIDNIGHT):
        return time.removesuffix(MIDNIGHT)
    return time


def array_of(value: Any) -> np.ndarray[Any, Any] | None:
    """Return a value as an array, or None if it isn't an array, a tensor, or lists of equal sizes.

    Masked values become NaN.
    """
    if hasattr(value, "detach"):  # a tensor; torch isn't imported here
        dense = value.detach().to_dense().cpu()
        value = dense.double() if dense.is_floating_point() else dense
    if isinstance(value, np.ma.MaskedArray):
        return np.ma.filled(value.astype(np.float64), np.nan)
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError):
        return None


def _pandas_array(values: Any) -> Any:
    """Return a column of pandas as an array. Missing values of nullable types are None."""
    if isinstance(values.dtype, np.dtype):
        return values.to_numpy()
    missing = np.asarray(values.isna())  # that of an index is an array already
    if getattr(values.dtype, "kind", "O") in "iuf" and not missing.any():
        return values.to_numpy(dtype=getattr(values.dtype, "numpy_dtype", None))  # sparse: none
    array = values.to_numpy(dtype=object, na_value=None)
    return [None if gone else each for gone, each in zip(missing, array, strict=True)]


def _is_missing(value: Any) -> bool:
    if value is np.ma.masked:
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    is_null = type(value).__name__ in ("NoneType", "NAType", "NaTType")
    return is_null or (isinstance(value, float | np.floating) and bool(np.isnan(value)))
