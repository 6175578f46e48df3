"""Checks of values in saved files, which may come from anyone.

Each function takes the name of a key and the JSON value found there. It returns the value if it is
valid, and raises a ValueError with the key otherwise.
"""

import re
from collections.abc import Sequence
from math import isfinite
from typing import Any, TypeVar

from seqtrain.text import quote

Choice = TypeVar("Choice", bound=str)
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def saved_texts(
    key: str, value: Any, *, least: int = 0, lone_surrogates: bool = False
) -> tuple[str, ...]:
    """Return a list of strings as a tuple. It must have `least` strings or more, all different.

    Strings with lone surrogates are refused unless `lone_surrogates` is True.
    """
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"{key}: expected a list of strings")
    if not lone_surrogates and not all(map(_is_text, value)):
        raise ValueError(f"{key}: expected a list of strings")
    if len(value) < least or len({*value}) < len(value):
        raise ValueError(f"{key}: expected at least {least} strings, each once")
    return tuple(value)


def saved_text(key: str, value: Any) -> str | None:
    """Return the value if it is None or a string that isn't empty."""
    if value is not None and not (_is_text(value) and value):
        raise ValueError(f"{key}: expected a text or null, found {_shown(value)}")
    text: str | None = value
    return text


def saved_flag(key: str, value: Any) -> bool:
    """Return the value if it is True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{key}: expected true or false, found {_shown(value)}")
    return value


def saved_choice(key: str, value: Any, choices: Sequence[Choice]) -> Choice:
    """Return the value if it is one of `choices`."""
    if value not in choices:
        expected = ", ".join(choices)
        raise ValueError(f"{key}: found {_shown(value)}; expected one of {expected}")
    return choices[choices.index(value)]


def saved_integer(key: str, value: Any, least: int, most: int | None = None) -> int:
    """Return the value if it is a whole number from `least` to `most` (None for no limit)."""
    if type(value) is not int or value < least or (most is not None and value > most):
        raise ValueError(f"{key}: found {_shown(value)}; expected a whole number from {least}")
    return value


def saved_numbers(key: str, value: Any, *, positive: bool = False) -> tuple[float, ...]:
    """Return a list of finite numbers as a tuple. If `positive`, all must be greater than 0."""
    if not isinstance(value, list) or not all(type(x) in (int, float) for x in value):
        raise ValueError(f"{key}: expected a list of numbers")
    if not all(isfinite(x) and (x > 0 or not positive) for x in value):
        raise ValueError(f"{key}: expected finite{' positive' if positive else ''} numbers")
    return tuple(map(float, value))


def _is_text(value: Any) -> bool:
    """Return True for a string without lone surrogates, which UTF-8 can't encode."""
    return isinstance(value, str) and LONE_SURROGATE.search(value) is None


def _shown(value: Any) -> str:
    return quote(str(value))
