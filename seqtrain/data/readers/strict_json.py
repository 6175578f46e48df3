"""JSON as its standard has it: what Python's reader lets through besides is a bad row."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import NoReturn

from seqtrain.data.examples import BadRow
from seqtrain.text import quote

DEPTH_LIMIT = 100
"""Levels of lists and objects inside one another that a value may have."""
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_PAIR = re.compile(rb"\[\]|\{\}")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def parse_json(text: str) -> object:
    """Parse one JSON value.

    Raises:
        BadRow: for malformed or too deeply nested JSON, repeated keys, NaN and Infinity, lone
            surrogates, and integers too long to convert.
    """
    if text.count("[") + text.count("{") > DEPTH_LIMIT and _depth(text) > DEPTH_LIMIT:
        raise BadRow(f"JSON nested more than {DEPTH_LIMIT} levels deep")
    try:
        value: object = _DECODER.decode(text)
        if "\\" in text and ("\\ud" in text or "\\uD" in text):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise BadRow(f"not JSON at column {error.colno}: {error.msg}") from None
    except UnicodeEncodeError:
        raise BadRow("JSON with a lone surrogate escape (\\ud800 to \\udfff)") from None
    except BadRow:
        raise
    except ValueError:
        raise BadRow("JSON with an integer of thousands of digits") from None
    return value


def _depth(text: str) -> int:
    """Return how deep lists and objects are nested, the open ones of malformed JSON included.

    Python's reader goes as deep as its stack happens to allow, and then fails in several ways.
    """
    outside = _STRING.sub("", text) if '"' in text else text
    brackets = outside.encode("utf-8", "replace").translate(None, _NO_BRACKETS)
    depth, closed = 0, 1
    while closed and depth <= DEPTH_LIMIT:  # each turn takes the innermost level away
        brackets, closed = _PAIR.subn(b"", brackets)
        depth += closed > 0
    return depth + brackets.count(b"[") + brackets.count(b"{")


def json_type(value: object) -> str:
    """Name a value's JSON type for a message."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    return "null" if value is None else names.get(type(value), "a number")


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Build an object whose keys are all different."""
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise BadRow(f"JSON with the key {quote(twice)} twice")
    return value


def _refuse_constant(name: str) -> NoReturn:
    """Refuse NaN, Infinity and -Infinity."""
    raise BadRow(f"{name} is not JSON; write null for a missing value")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
