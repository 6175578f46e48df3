"""From a cell of a row to a sequence of the kind asked for: text, symbols or feature vectors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain

import numpy as np
import numpy.typing as npt

from seqtrain.data.examples import BadRow, Features, Sequence
from seqtrain.files import strict_json
from seqtrain.text import quote

FLOAT32_MAX = float(np.finfo(np.float32).max)
NUMBER_TYPES = {int, float, type(None)}
INTEGERS = re.compile(r"\s*\[\s*(?:-?[0-9]+(?:\s*,\s*-?[0-9]+)*)?\s*\]\s*")
"""A list of integers in JSON, or an empty one."""


def parse_json(text: str) -> object:
    """Parse one JSON value; what isn't strict JSON is a BadRow."""
    try:
        return strict_json.parse_json(text)
    except strict_json.NotJSONError as error:
        raise BadRow(str(error)) from None


def json_type(value: object) -> str:
    """Name a value's JSON type for a message."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    return "null" if value is None else names.get(type(value), "a number")


def sequence_from_text(text: str, kind: str) -> Sequence:
    """Read a cell: text as it is, tokens split at blanks or a JSON list, features as JSON.

    Tokens are JSON where they begin with `["`, or are integers. What isn't of the kind is a BadRow.
    """
    if kind == "text":
        return text
    if kind == "tokens":
        is_json = text.startswith('["') or INTEGERS.fullmatch(text)
        return sequence_from_json(parse_json(text), kind) if is_json else text.split()
    if text.strip()[:1] not in ("[", ""):
        raise BadRow(f"expected a JSON list of vectors or numbers, found {quote(text, 40)}")
    return _features_from_json(parse_json(text) if text.strip() else [])


def sequence_from_json(value: object, kind: str) -> Sequence:
    """Read a JSON value: a string (text, tokens), a list of strings or integers (tokens), or a list
    of vectors or of numbers (features). What isn't of the kind is a BadRow.
    """
    if kind == "features":
        return _features_from_json(value)
    if isinstance(value, str):
        return sequence_from_text(value, kind)
    if kind == "text":
        raise BadRow(f"expected a string, found {json_type(value)} (data.kind is text)")
    if not isinstance(value, list):
        raise BadRow(f"expected a list of strings or a string, found {json_type(value)}")
    for item in value:
        if type(item) not in (str, int):
            found = "a number with a fraction" if type(item) is float else json_type(item)
            raise BadRow(f"expected strings or integers in the list, found {found}")
    return [str(item) for item in value]


def _features_from_json(value: object) -> Features:
    """Read a list of vectors, or of numbers as one channel, as (T, C); null is a missing value."""
    if not isinstance(value, list):
        raise BadRow(f"expected a list of vectors or numbers, found {json_type(value)}")
    if not value:
        return np.empty((0, 0), dtype=np.float32)
    if not isinstance(value[0], list):
        return _float32(_floats(value)[:, None])
    width = len(value[0])
    for step, vector in enumerate(value, start=1):
        if not isinstance(vector, list):
            raise BadRow(f"step {step}: expected a vector, found {json_type(vector)}")
        if len(vector) != width:
            raise BadRow(f"step {step}: {len(vector)} values, but step 1 has {width}")
    if not width:
        raise BadRow("the vectors hold no values")
    return _float32(_floats(chain.from_iterable(value)).reshape(len(value), width))


def features_from_columns(texts: list[str]) -> Features:
    """Read channels of numbers parted by commas, as (T, C); `?` and NaN are missing values."""
    channels = [_parse_numbers(text) for text in texts]
    for number, channel in enumerate(channels, start=1):
        if len(channel) != len(channels[0]):
            raise BadRow(
                f"channel {number} has {len(channel)} values, but channel 1 has {len(channels[0])}"
            )
    return _float32(np.stack(channels, axis=1))


def features_from_array(values: npt.NDArray[np.generic]) -> Features:
    """Convert numbers of any type; values beyond float32 are a BadRow."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _float32(values.astype(np.float64))


def _floats(values: Iterable[object]) -> npt.NDArray[np.float64]:
    """Convert JSON numbers, null to NaN."""
    items = list(values)
    if not set(map(type, items)) <= NUMBER_TYPES:
        odd = next(item for item in items if type(item) not in NUMBER_TYPES)
        raise BadRow(f"expected a number or null, found {json_type(odd)}")
    try:
        return np.array(items, dtype=np.float64)
    except OverflowError:
        raise BadRow("a number is too large for float32") from None


def _parse_numbers(text: str) -> npt.NDArray[np.float64]:
    """Parse numbers parted by commas, in ASCII alone (float() takes `٣` and `1_0` too)."""
    if not text.strip():
        return np.empty(0, dtype=np.float64)
    if text.isascii() and "_" not in text:
        try:
            return np.array([float(cell) for cell in text.replace("?", "nan").split(",")])
        except ValueError:
            pass
    odd = next(cell for cell in text.split(",") if not _is_number(cell))
    raise BadRow(f"expected a number, found {quote(odd)}")


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace("?", "nan"))
    except ValueError:
        return False
    return cell.isascii() and "_" not in cell


def _float32(values: npt.NDArray[np.float64]) -> Features:
    """Narrow steps (T, …) to float32; NaN stays, infinity is refused."""
    beyond = np.abs(values) > FLOAT32_MAX
    if beyond.any():
        step = int(np.argwhere(beyond)[0][0]) + 1
        raise BadRow(f"step {step}: {values[beyond][0]:g} is infinite or too large for float32")
    return values.astype(np.float32)
