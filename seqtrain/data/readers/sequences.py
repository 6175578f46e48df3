"""From a cell of a row, or a value of Python, to a sequence: text, symbols or feature vectors."""

import re
from collections.abc import Mapping
from collections.abc import Sequence as Listed
from contextlib import suppress
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.data.examples import BadRow, Column, Features, Sequence
from seqtrain.files.reading import NotJSONError, parse_json
from seqtrain.text import quote

FLOAT32_MAX = float(np.finfo(np.float32).max)
NUMBER_TYPES = {int, float, type(None)}
INTEGERS = re.compile(r"\s*\[\s*(?:-?[0-9]+(?:\s*,\s*-?[0-9]+)*)?\s*\]\s*")
"""A list of integers in JSON, or an empty one."""
SEPARATOR = re.compile(r"\s*[,;]\s*|\s+")
"""What stands between the numbers of a series."""
MISSING = ("", "?", "-", "na", "n/a", "nan", "null", "none")
"""What a cell without a number holds, in any case."""
_DECIMAL = r"(?:[-+]?[0-9]+(?:,[0-9]+)?(?:[eE][-+]?[0-9]+)?|\?|[nN][aA][nN])"
DECIMAL_COMMAS = re.compile(rf"{_DECIMAL}(?:\s+{_DECIMAL})+")
"""Numbers with blanks between, where one has a comma inside."""
MANY_FIELDS = 4
"""Fields of a row from which on `0,5` in each is a number rather than two."""
MANY = re.compile(r"[\s,;[]")
"""What a cell of several numbers holds."""
TURN = " ¶ "
"""Stands between the sentences of a list, or the turns of a chat."""
ROLES, CONTENTS = ("role", "from", "speaker"), ("content", "value", "text")
"""Fields of a chat's turns."""


def json_type(value: object) -> str:
    """Name a value's JSON type for a message; of other values Python's."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    names |= {type(None): "null", int: "a number", float: "a number"}
    return names.get(type(value), f"a {type(value).__name__}")


def sequence_from_text(text: str, kind: str) -> Sequence:
    """Read a cell: text as it is, tokens split at blanks or a JSON list, features as numbers.

    Features are JSON, what numpy prints, or numbers with blanks or commas between: a line is one
    channel, several lines are a time step each. What isn't of the kind is a BadRow.
    """
    if kind == "text":
        return text
    if kind == "tokens":
        is_json = text.startswith('["') or INTEGERS.fullmatch(text)
        return sequence_from_json(parse_json(text), kind) if is_json else text.split()
    text = text.strip()
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


def sequence_from_json(value: object, kind: str) -> Sequence:
    """Read a JSON value: a string, list of symbols, or list of vectors or numbers; else BadRow.

    A missing one is empty, as a blank cell of a file.
    """
    value = "" if value is None else value
    if isinstance(value, str):
        return sequence_from_text(value, kind)
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


def sequence_from_cells(cells: Listed[Any], kind: str, columns: Listed[Column]) -> Any:
    """Read the cells of a row: texts or symbols are joined, numbers are steps, series channels."""
    if kind == "features" and len(cells) > 1:
        return features_from_fields(cells)
    if kind == "text" and {*map(type, cells)} == {str}:
        return " ".join(cells)
    parts = list[Any]()
    for column, cell in zip(columns, cells, strict=True):
        try:
            parts.append(sequence_from_json(cell, kind))
        except (BadRow, NotJSONError) as bad:
            name = column if isinstance(column, str) else f"column {column}"
            raise BadRow(f"{name}: {bad}") from None
    if len(parts) == 1:
        return parts[0]
    return " ".join(parts) if kind == "text" else [*chain.from_iterable(parts)]


def _joined_turns(value: object) -> str:
    """Join a list of sentences, or the turns of a chat, each behind its role."""
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
    """Read a line as one channel; where nested, each as the channels of a time step."""
    for line in lines:
        if "," in line and ";" in line:
            raise BadRow("found both , and ; between numbers; write decimals with a point")
        if "," in line and DECIMAL_COMMAS.fullmatch(line.strip()):
            raise BadRow("found decimal commas; write decimals with a point")
    rows = [SEPARATOR.split(line.strip()) for line in lines]
    return _matrix(rows if nested or not rows else rows[0])


def _matrix(rows: list[Any]) -> Features:
    """Read rows of cells of one number each, a row per time step; or one channel of such cells."""
    if rows and not isinstance(rows[0], list):
        return float32(_parse_numbers(rows)[:, None])
    for step, row in enumerate(rows, start=1):
        if not isinstance(row, list):
            raise BadRow(f"step {step}: expected a vector, found {json_type(row)}")
        if len(row) != len(rows[0]):
            raise BadRow(f"step {step}: {len(row)} values, but step 1 has {len(rows[0])}")
    if rows and not rows[0]:
        raise BadRow("the vectors hold no values")
    numbers = _parse_numbers([*chain.from_iterable(rows)])
    return float32(numbers.reshape(len(rows), len(rows[0]) if rows else 0))


def features_from_fields(fields: Listed[object]) -> Features:
    """Read single numbers as the time steps of one channel, else a channel from each field.

    Missing values at the end of a row of numbers are no time steps.
    """
    if any(isinstance(x, list) or MANY.search(str(x).strip()) for x in fields):
        text = " ".join(map(str, fields))
        if len(fields) >= MANY_FIELDS and DECIMAL_COMMAS.fullmatch(text):
            raise BadRow("found decimal commas; write decimals with a point")
        return joined_channels([sequence_from_json(x, "features") for x in fields])
    values = _parse_numbers(fields)
    known = np.flatnonzero(~np.isnan(values))
    return float32(values[: known[-1] + 1 if len(known) else 0, None])


def joined_channels(parts: list[Any]) -> Features:
    """Put channels side by side, each of shape (T, C); all need the same T."""
    for number, part in enumerate(parts, start=1):
        if len(part) != len(parts[0]):
            raise BadRow(
                f"channel {number} has {len(part)} values, but channel 1 has {len(parts[0])}"
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
    """Read channels of numbers parted by commas, as (T, C); `?` and NaN are missing values."""
    channels = [_parse_numbers(text.split(",") if text.strip() else []) for text in texts]
    return joined_channels([float32(channel[:, None]) for channel in channels])


def features_from_array(values: npt.NDArray[np.generic]) -> Features:
    """Convert numbers of any type; values beyond float32 are a BadRow."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float32(values.astype(np.float64))


def plain_numbers(cells: Listed[Any]) -> npt.NDArray[np.float64] | None:
    """Return cells that all are numbers, or all texts of one, quickly; None where one isn't."""
    try:
        text = "".join(cells)
        return np.array([*map(float, cells)]) if text.isascii() and "_" not in text else None
    except TypeError:
        with suppress(OverflowError):
            return np.array(cells, np.float64) if {*map(type, cells)} <= NUMBER_TYPES else None
    except ValueError:
        pass
    return None


def _parse_numbers(cells: Listed[Any]) -> npt.NDArray[np.float64]:
    """Parse cells of one number each."""
    if any(isinstance(cell, bool) for cell in cells):
        raise BadRow("expected a number or null, found true or false")
    found = plain_numbers(cells)
    return np.array([*map(number_of, cells)]) if found is None else found


def number_of(cell: object) -> float:
    """Read a cell of one number, NaN where it is missing: null, or what `MISSING` has."""
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


def is_number(cell: str) -> bool:
    """Whether a text is a number, in ASCII (float() takes `٣` and `1_0` too)."""
    try:
        float(cell)
    except ValueError:
        return False
    return cell.isascii() and "_" not in cell


def float32(values: npt.NDArray[np.float64]) -> Features:
    """Narrow steps (T, …) to float32; NaN stays, infinity is refused."""
    beyond = np.abs(values) > FLOAT32_MAX
    if beyond.any():
        step = int(np.argwhere(beyond)[0][0]) + 1
        raise BadRow(f"step {step}: {values[beyond][0]:g} is infinite or too large for float32")
    return values.astype(np.float32)


def plain(value: Any) -> Any:
    """Return a value of Python as JSON has it, as far as it can be; None where it is missing."""
    if _is_missing(value):
        return None
    for name in ("as_py", "tolist", "to_list", "isoformat"):  # of pyarrow, numpy, polars, dates
        if type(value) is not str and hasattr(value, name):
            value = getattr(value, name)()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    return value


def _is_missing(value: Any) -> bool:
    named = type(value).__name__ in ("NoneType", "NAType", "NaTType")
    return named or (isinstance(value, float | np.floating) and bool(np.isnan(value)))


def given_sequence(value: Any, kind: str) -> Sequence:
    """Return a value of Python as a reader has a cell of JSON: numbers as an array, if they can be.

    A missing one is empty, and an array or a tensor has the dimensions (T, C), or (T,).
    """
    array = array_of(value) if kind == "features" else None
    return sequence_from_json(plain(value) if array is None else array, kind)


def array_of(value: Any) -> npt.NDArray[Any] | None:
    """Return numbers of one or two dimensions as an array; None: they are none as they are."""
    if hasattr(value, "detach"):  # a tensor of torch, which isn't needed elsewhere here
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
