"""Conversion of cells and Python values to sequences: text, symbols or feature vectors."""

import re
from collections.abc import Mapping
from collections.abc import Sequence as Listed
from contextlib import suppress
from datetime import timedelta
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.files.reading import NotJSONError, parse_json
from seqtrain.sequences.examples import BadRow, Features, Sequence
from seqtrain.sequences.read_options import Column
from seqtrain.sequences.readers.numbers import (
    DECIMAL_COMMAS,
    float32,
    is_number,
    parse_numbers,
    with_decimal_points,
)

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Number of each unit of time in a second, by the unit's name in numpy and Arrow."""
TIME_OF_DAY = re.compile(r"(.*[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?(.*)")
"""A time of day with decimals of the second and a time zone, perhaps after a date."""
INTEGERS = re.compile(r"\s*\[\s*(?:-?[0-9]+(?:\s*,\s*-?[0-9]+)*)?\s*\]\s*")
"""A list of integers in JSON, or an empty one."""
SEPARATOR = re.compile(r"\s*[,;]\s*|\s+")
"""Separator of the numbers of a series."""
MANY_FIELDS = 4
"""Number of fields from which on `0,5` is taken for one number with a decimal comma, not two."""
MANY = re.compile(r"[\s,;[]")
"""A character that a cell of several numbers contains, and a cell of one number doesn't."""
DECIMAL_ADVICE = 'write decimals with a point, or set data.decimal: ","'
TURN = " ¶ "
"""Separator between the sentences of a list, or between the turns of a chat."""
ROLES, CONTENTS = ("role", "from", "speaker"), ("content", "value", "text")
"""Accepted names of the two fields of a turn in a chat: the speaker's role and the text."""


def json_type(value: object) -> str:
    """Return the JSON name of a value's type for messages, such as "an object"."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    names |= {type(None): "null", int: "a number", float: "a number"}
    return names.get(type(value), f"a {type(value).__name__}")


def sequence_from_text(text: str, kind: str, decimal: str = ".") -> Sequence:
    """Return the sequence in a cell of text.

    - Kind text: the whole text.
    - Kind tokens: tokens separated by blanks, or the elements of a JSON list.
    - Kind features: a JSON list, an array as numpy prints it, or numbers separated by blanks,
      commas or semicolons. Numbers in one line are the time steps of one channel. If there are
      several lines, each line is a time step, and its numbers are the channels.

    Args:
        text: The cell.
        kind: ``"text"``, ``"tokens"`` or ``"features"``.
        decimal: Decimal mark of numbers. With ``","``, commas don't separate numbers.

    Raises:
        BadRow: If the cell isn't a sequence of this kind.
        NotJSONError: If a list of tokens isn't valid JSON.
    """
    if kind == "text":
        return text
    if kind == "tokens":
        is_json = text.startswith('["') or INTEGERS.fullmatch(text)
        return sequence_from_json(parse_json(text), kind) if is_json else text.split()
    text = text.strip()
    if decimal == ",":
        text = with_decimal_points(text)
    if text[:1] != "[":
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) > 1 and not any(map(is_number, SEPARATOR.split(lines[0].strip()))):
            del lines[0]
        return _features_from_lines(lines, nested="\n" in text)
    try:
        return _features_from_json(parse_json(text))
    except NotJSONError as error:
        if "..." in text:
            raise BadRow("numpy left numbers out (...); write array.tolist()") from None
        if text[-1] != "]" or text.count("[") != text.count("]") or '"' in text:
            raise BadRow(str(error)) from None
    nested = text.startswith("[[")
    rows = re.split(r"\]\s*,?\s*\[", text) if nested else [text]
    return _features_from_lines([row.strip("[] \n") for row in rows], nested=nested)


def sequence_from_json(value: object, kind: str, decimal: str = ".") -> Sequence:
    """Return the sequence in a JSON value.

    A string is read by `sequence_from_text`. None is an empty sequence. The entries of a list
    depend on the kind:

    - Kind text: sentences, or turns of a chat.
    - Kind tokens: symbols.
    - Kind features: numbers or vectors.

    Args:
        value: A string, a list, or None.
        kind: ``"text"``, ``"tokens"`` or ``"features"``.
        decimal: Decimal mark of numbers in a string.

    Raises:
        BadRow: If the value isn't a sequence of this kind.
        NotJSONError: If a string with a list of tokens isn't valid JSON.
    """
    value = "" if value is None else value
    if isinstance(value, str):
        return sequence_from_text(value, kind, decimal)
    if kind == "features":
        return _features_from_json(value)
    if kind == "text":
        return _joined_turns(value)
    if not isinstance(value, list):
        raise BadRow(f"expected a list of strings or a string, found {json_type(value)}")
    for item in value:
        if type(item) not in (str, int):
            found = "a number with a fraction" if type(item) is float else json_type(item)
            raise BadRow(f"expected strings or integers in the list, found {found}")
    try:
        return [str(item) for item in value]
    except ValueError:
        raise BadRow("found an integer of thousands of digits as a symbol") from None


def sequence_from_cells(
    cells: Listed[Any], kind: str, columns: Listed[Column], decimal: str = "."
) -> Any:
    """Return the sequence in the cells of the sequence columns of a row.

    - Kind text: the texts are joined with blanks.
    - Kind tokens: the symbols of all cells are joined into one list.
    - Kind features: cells of one number each are the time steps of one channel. If any cell holds
      several numbers, each cell is a channel.

    Args:
        cells: The cells.
        kind: ``"text"``, ``"tokens"`` or ``"features"``.
        columns: Column of each cell, for messages.
        decimal: Decimal mark of numbers in cells of text.

    Raises:
        BadRow: If a cell isn't a sequence of this kind.
        NotJSONError: If a cell of a row of features isn't valid JSON.
    """
    if kind == "features" and len(cells) > 1:
        return features_from_fields([*map(with_decimal_points, cells)] if decimal == "," else cells)
    if kind == "text" and {*map(type, cells)} == {str}:
        return " ".join(cells)
    parts = list[Any]()
    for column, cell in zip(columns, cells, strict=True):
        try:
            parts.append(sequence_from_json(cell, kind, decimal))
        except (BadRow, NotJSONError) as bad:
            name = column if isinstance(column, str) else f"column {column}"
            raise BadRow(f"{name}: {bad}") from None
    if len(parts) == 1:
        return parts[0]
    return " ".join(parts) if kind == "text" else [*chain.from_iterable(parts)]


def _joined_turns(value: object) -> str:
    """Join the sentences of a list, or the turns of a chat, with `TURN`.

    A turn becomes ``role : text``.

    Raises:
        BadRow: If the value isn't a list of strings and turns.
    """
    if not isinstance(value, list):
        raise BadRow(f"expected a string, found {json_type(value)} (data.kind is text)")
    return TURN.join(map(_turn, value))


def _turn(value: object) -> str:
    if isinstance(value, str):
        return value
    turn = value if isinstance(value, dict) else {}
    role, content = (next(filter(None, map(turn.get, names)), "") for names in (ROLES, CONTENTS))
    if not turn or not isinstance(role, str) or not isinstance(content, str):
        expected = 'expected strings, or turns {"role": …, "content": …}, in the list'
        raise BadRow(f"{expected}, found {json_type(value)} (data.kind is text)")
    return f"{role} : {content}" if role else content


def _features_from_lines(lines: list[str], *, nested: bool) -> Features:
    """Return the numbers in lines of text as features, (T, C).

    Args:
        lines: Lines of numbers. If `nested` is False, at most one line.
        nested: True if each line is a time step, with a number per channel. False if the numbers
            of the line are the time steps of one channel.

    Raises:
        BadRow: If a line isn't a line of numbers, or lines have different counts of numbers.
    """
    for line in lines:
        if "," in line and ";" in line:
            raise BadRow(f"found both , and ; between numbers; {DECIMAL_ADVICE}")
        if "," in line and DECIMAL_COMMAS.fullmatch(line.strip()):
            raise BadRow(f"found decimal commas; {DECIMAL_ADVICE}")
    rows = [SEPARATOR.split(line.strip()) for line in lines]
    return _matrix(rows if nested or not rows else rows[0])


def _matrix(rows: list[Any]) -> Features:
    """Return features (T, C) from a list of T rows of C cells.

    A list of T cells gives (T, 1).

    Raises:
        BadRow: If a cell isn't a number, or rows have different lengths.
    """
    if rows and not isinstance(rows[0], list):
        return float32(parse_numbers(rows)[:, None])
    for step, row in enumerate(rows, start=1):
        if not isinstance(row, list):
            raise BadRow(f"step {step}: expected a vector, found {json_type(row)}")
        if len(row) != len(rows[0]):
            raise BadRow(f"step {step}: {len(row)} values, but step 1 has {len(rows[0])}")
    if rows and not rows[0]:
        raise BadRow("the vectors hold no values")
    numbers = parse_numbers([*chain.from_iterable(rows)])
    return float32(numbers.reshape(len(rows), len(rows[0]) if rows else 0))


def features_from_fields(fields: Listed[object]) -> Features:
    """Return the features in the fields of a row, (T, C).

    Fields of one number each are the time steps of one channel. Missing values at the end are left
    out. If any field contains several numbers, each field is a channel.

    Raises:
        BadRow: If a field isn't a number or a series, or the channels have different lengths.
    """
    if any(isinstance(x, list) or MANY.search(str(x).strip()) for x in fields):
        text = " ".join(map(str, fields))
        if len(fields) >= MANY_FIELDS and DECIMAL_COMMAS.fullmatch(text):
            raise BadRow(f"found decimal commas; {DECIMAL_ADVICE}")
        return joined_channels([sequence_from_json(x, "features") for x in fields])
    values = parse_numbers(fields)
    known = np.flatnonzero(~np.isnan(values))
    return float32(values[: known[-1] + 1 if len(known) else 0, None])


def joined_channels(parts: list[Any]) -> Features:
    """Join several features (T, C) along the channels.

    Args:
        parts: The features, at least one.

    Raises:
        BadRow: If their numbers of time steps T differ.
    """
    for number, part in enumerate(parts, start=1):
        if len(part) != len(parts[0]):
            raise BadRow(
                f"channel {number} has length {len(part)}, but channel 1 has length "
                f"{len(parts[0])}; expected channels of equal length"
            )
    return np.concatenate(parts, axis=1, dtype=np.float32)


def _features_from_json(value: Any) -> Features:
    if hasattr(value, "dtype"):
        array = array_of(value)
        if array is not None:
            return features_from_array(array if array.ndim == 2 else array[:, None])
        value = plain(value)
    if not isinstance(value, list):
        raise BadRow(f"expected a list of vectors or numbers, found {json_type(value)}")
    return _matrix(value)


def features_from_columns(texts: list[str]) -> Features:
    """Return features (T, C) from one text of comma-separated numbers per channel.

    `?` and NaN are missing values.

    Raises:
        BadRow: If a value isn't a number, or the channels have different lengths.
    """
    channels = [parse_numbers(text.split(",") if text.strip() else []) for text in texts]
    return joined_channels([float32(channel[:, None]) for channel in channels])


def features_from_array(values: npt.NDArray[np.generic]) -> Features:
    """Convert an array of numbers of any type to float32, with the same shape.

    Raises:
        BadRow: If a value is infinite or too large for float32.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return float32(values.astype(np.float64))


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
    """Return a date or time in the form of Python's `isoformat`.

    The seconds have six decimals, or nine for nanoseconds. Decimals that are all zero are left out.
    A time zone is written as ``+00:00``.

    Args:
        text: The date or time, as numpy or Arrow writes it.
    """
    found = TIME_OF_DAY.fullmatch(text)
    if found is None:  # a date
        return text
    whole, decimals, zone = found.groups("")
    decimals = decimals.ljust(9, "0").removesuffix("000")
    shown = f".{decimals}" if decimals.strip("0") else ""
    zone = "+00:00" if zone == "Z" else zone
    zone = f"{zone[:3]}:{zone[3:]}" if zone[1:].isdigit() else zone
    return whole.replace(" ", "T") + shown + zone


def plain(value: Any) -> Any:
    """Convert a Python value to a JSON value, or None if it is missing (NaN, NaT, NA).

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
    for name in ("as_py", "tolist", "to_list", "isoformat"):  # of pyarrow, numpy, polars, dates
        if type(value) is not str and hasattr(value, name):
            value = getattr(value, name)()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    return value


def _is_missing(value: Any) -> bool:
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    is_null = type(value).__name__ in ("NoneType", "NAType", "NaTType")
    return is_null or (isinstance(value, float | np.floating) and bool(np.isnan(value)))


def sequence_from_python(value: Any, kind: str) -> Sequence:
    """Return the sequence in a Python value: text, a list, an array (T, C) or (T,), or a tensor.

    A missing value (None, NaN, NA) is an empty sequence.

    Args:
        value: The value.
        kind: ``"text"``, ``"tokens"`` or ``"features"``.

    Raises:
        BadRow: If the value isn't a sequence of this kind.
        NotJSONError: If a text with a list of tokens isn't valid JSON.
    """
    array = array_of(value) if kind == "features" else None
    return sequence_from_json(plain(value) if array is None else array, kind)


def array_of(value: Any) -> npt.NDArray[Any] | None:
    """Return a value as an array of real numbers, (T,) or (T, C), or None if it isn't one.

    Masked values become NaN.

    Raises:
        BadRow: If the value is an array of complex numbers, dates or durations.
    """
    if hasattr(value, "detach"):  # a tensor; torch isn't imported here
        dense = value.detach().to_dense().cpu()
        value = dense.double() if dense.is_floating_point() else dense
    if isinstance(value, np.ma.MaskedArray):
        value = np.ma.filled(value.astype(np.float64), np.nan)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    if array.dtype.kind in "cmM":
        raise BadRow(f"found values of type {array.dtype}; expected numbers")
    return array if array.dtype.kind in "biuf" and array.ndim in (1, 2) else None
