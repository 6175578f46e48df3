"""Series of numbers in cells: lists, arrays, tensors, and their texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seqtrain.tables.blocks import Array, BadCellError, Float64s
from seqtrain.tables.cells import (
    FLOAT32_MAX,
    MINUS,
    is_number,
    items_of,
    name_of,
    number_of,
    plain_numbers,
    text_of,
    with_point,
)
from seqtrain.tables.json_lines import json_type
from seqtrain.tables.python_values import array_of, python_value
from seqtrain.text import counted

Series: TypeAlias = npt.NDArray[np.float32]
"""Features of T time steps, (T, C)."""
SEPARATOR = re.compile(r"\s*[,;]\s*|\s+")
"""Separator of the numbers of a series."""
MANY = re.compile(r"[\s,;[]")
"""A character that a cell of several numbers contains, and a cell of one number doesn't."""
LIST_BRACKETS = ("[", "(")
"""Beginnings of a list as JSON or Python writes it."""
MANY_FIELDS = 4
"""Number of fields from which on `0,5` is taken for one number with a decimal comma, not two."""
DECIMAL = r"(?:[-+]?[0-9]+(?:,[0-9]+)?(?:[eE][-+]?[0-9]+)?|\?|[nN][aA][nN])"
DECIMAL_COMMAS = re.compile(rf"{DECIMAL}(?:\s+{DECIMAL})+")
"""Numbers separated by blanks, some of which may have a comma."""
WORD = re.compile(r"[^\s;]+")
"""A number among others, if commas are decimal marks."""
WORDS = {".": re.compile(r"[^\s,;]+"), ",": WORD}
"""Maps the decimal mark to the pattern of a number, or of a word in its place."""
DECIMAL_ADVICE = 'write decimals with a point, or set data.decimal: ","'


def series_of(cell: Any, decimal: str = ".") -> Series:
    """Return the series in a cell, (T, C). A missing cell is a series without time steps.

    A text is a JSON list, or numbers separated by blanks, commas or semicolons. Numbers in one line
    are the time steps of one channel. If there are several lines, each line is a time step, and its
    numbers are the channels. A list holds a number or a list of channels for each time step.

    Args:
        cell: A text, a list, an array or a tensor.
        decimal: Decimal mark of numbers in texts. With ",", commas don't separate numbers.

    Raises:
        BadCellError: If the cell isn't a series.
    """
    if cell is None:
        return np.zeros((0, 1), np.float32)
    if isinstance(cell, str):
        return _series_in_text(cell, decimal)
    if hasattr(cell, "dtype"):
        array = array_of(cell)
        if array is not None and array.dtype.kind in "cmM":
            raise BadCellError(f"found values of type {array.dtype}; expected numbers")
        if array is not None and array.dtype.kind in "biuf" and array.ndim in (1, 2):
            return float32(array if array.ndim == 2 else array[:, None])
    return _series_in_list(python_value(cell))


def channels_of(cells: Sequence[Any], decimal: str = ".") -> Series:
    """Return the series in several cells of a row, (T, C).

    Cells of one number each are the time steps of one channel. Missing values at the end are left
    out. If any cell holds several numbers, each cell is a channel.

    Raises:
        BadCellError: If a cell isn't a number or a series, or the channels have different lengths.
    """
    if decimal == ",":
        cells = [with_points(cell) for cell in cells]
    has_many = any(isinstance(x, list) or hasattr(x, "__array__") for x in cells)
    if has_many or any(isinstance(x, str) and MANY.search(x.strip()) for x in cells):
        text = " ".join(map(str, cells))
        if len(cells) >= MANY_FIELDS and DECIMAL_COMMAS.fullmatch(text):
            raise BadCellError(f"found decimal commas; {DECIMAL_ADVICE}")
        return joined_channels([series_of(cell) for cell in cells])
    values = numbers_in(cells)
    known = np.flatnonzero(~np.isnan(values))
    return float32(values[: known[-1] + 1 if len(known) else 0, None])


def series_of_channels(texts: Sequence[str]) -> Series:
    """Return the series of one text of comma-separated numbers per channel, (T, C).

    Raises:
        BadCellError: If a value isn't a number, or the channels have different lengths.
    """
    channels = []
    for text in texts:
        values = numbers_in(text.split(",") if text.strip() else [])
        channels.append(float32(values[:, None]))
    return joined_channels(channels)


def joined_channels(parts: Sequence[Series]) -> Series:
    """Join several series (T, C) along the channels.

    Args:
        parts: The series, at least one.

    Raises:
        BadCellError: If their numbers of time steps T differ.
    """
    for number, part in enumerate(parts, start=1):
        if len(part) != len(parts[0]):
            raise BadCellError(
                f"channel {number} has length {len(part)}, but channel 1 has length "
                f"{len(parts[0])}; expected channels of equal length"
            )
    return np.concatenate(parts, axis=1, dtype=np.float32)


def numbers_in(cells: Sequence[Any]) -> Float64s:
    """Return the number in each cell, (N,), with NaN for each missing number.

    Raises:
        BadCellError: If a cell isn't a number.
    """
    if any(isinstance(cell, bool) for cell in cells):
        raise BadCellError("expected a number or null, found true or false")
    found = plain_numbers(list(cells))
    if found is None:
        found = np.array([number_of(cell) for cell in cells], np.float64)
    return found


def float32(values: Array) -> Series:
    """Return values (T, C) as float32. NaN stays NaN.

    Raises:
        BadCellError: If a value is infinite or too large for float32.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        values = values.astype(np.float64)
        beyond = np.abs(values) > FLOAT32_MAX
        if beyond.any():
            step = int(np.argwhere(beyond)[0][0]) + 1
            raise BadCellError(
                f"step {step}: {values[beyond][0]:g} is infinite or too large for float32"
            )
        return values.astype(np.float32)


def without_items(cell: Any, missing: frozenset[str], decimal: str = ".") -> Any:
    """Return a list of numbers, or the text of one, in which items with some names are missing.

    Args:
        cell: The cell. It is returned unchanged if it isn't a list or a text.
        missing: Names of the items, as `name_of` returns them.
        decimal: Decimal mark of numbers in texts.
    """
    if isinstance(cell, str):
        items = items_of(cell, bare=True) if cell.lstrip().startswith(LIST_BRACKETS) else None
        if items is None:
            return WORDS[decimal].sub(
                lambda word: "NaN" if name_of(word[0]) in missing else word[0], cell
            )
        cell = items
    if not isinstance(cell, list):
        return cell
    found = list[Any]()
    for item in cell:
        is_value = isinstance(item, str | int | float)
        if is_value and name_of(text_of(item)) in missing:
            found.append(None)
        else:
            found.append(item if is_value else without_items(item, missing))
    return found


def _series_in_text(text: str, decimal: str) -> Series:
    text = text.strip().replace(MINUS, "-")
    if decimal == ",":
        text = with_points(text)
    if text.startswith(LIST_BRACKETS):
        items = items_of(text)
        if items is None and "..." in text:
            raise BadCellError("numpy left numbers out (...); write array.tolist()")
        if items is None:
            raise BadCellError("expected a list of numbers as JSON writes it, such as [0.5, 1]")
        return _series_in_list(items)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and not any(is_number(word) for word in SEPARATOR.split(lines[0])):
        del lines[0]  # the names of the channels
    rows = [_words_of(line) for line in lines]
    if "\n" not in text:
        return _series_in_list(rows[0] if rows else [])
    return _series_in_list(rows)


def _words_of(line: str) -> list[str]:
    """Return the numbers of a line as texts.

    Raises:
        BadCellError: If commas may be decimal marks.
    """
    if "," in line and ";" in line:
        raise BadCellError(f"found both , and ; between numbers; {DECIMAL_ADVICE}")
    if "," in line and DECIMAL_COMMAS.fullmatch(line):
        raise BadCellError(f"found decimal commas; {DECIMAL_ADVICE}")
    return SEPARATOR.split(line)


def _series_in_list(value: Any) -> Series:
    """Return the series of a list with a number or a list of channels for each time step."""
    if not isinstance(value, list):
        found = json_type(value)
        raise BadCellError(f"expected a list of vectors or numbers, found {found}")
    if value and not isinstance(value[0], list):
        return float32(numbers_in(value)[:, None])
    for step, row in enumerate(value, start=1):
        if not isinstance(row, list):
            raise BadCellError(f"step {step}: expected a vector, found {json_type(row)}")
        if len(row) != len(value[0]):
            raise BadCellError(
                f"step {step}: {counted(len(row), 'value')}, but step 1 has {len(value[0])}"
            )
    if value and not value[0]:
        raise BadCellError("the vectors hold no values")
    if not value:
        return np.zeros((0, 1), np.float32)
    numbers = numbers_in(list(chain.from_iterable(value)))
    return float32(numbers.reshape(len(value), len(value[0])))


def with_points(cell: Any) -> Any:
    """Replace decimal commas in a cell of text by points. Other cells and lists don't change.

    Raises:
        BadCellError: If it has a number with a decimal point.
    """
    if not isinstance(cell, str) or cell.lstrip().startswith(LIST_BRACKETS):
        return cell
    return WORD.sub(lambda word: with_point(word[0]), cell)
