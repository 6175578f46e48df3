"""JSON as its standard has it: what Python's reader lets through besides is refused."""

import json
from collections import Counter
from typing import Any, NoReturn

from seqtrain.text import quote

LARGEST = 1e18
"""Most that a number of a foreign file is believed to be: counts and sums stay finite."""


class NotJSONError(ValueError):
    """A text isn't one JSON value; says why, and where that is known."""


def parse_json(text: str) -> object:
    """Parse one JSON value.

    Raises:
        NotJSONError: for malformed JSON, repeated keys, NaN and Infinity, lone surrogates, lists in
            lists without end, and integers too long to convert.
    """
    try:
        value: object = _DECODER.decode(text)
        if "\\" in text and ("\\ud" in text or "\\uD" in text):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise NotJSONError(f"not JSON at column {error.colno}: {error.msg}") from None
    except UnicodeEncodeError:
        raise NotJSONError("JSON with a lone surrogate escape (\\ud800 to \\udfff)") from None
    except RecursionError:
        raise NotJSONError("JSON nested too deeply") from None
    except NotJSONError:
        raise
    except ValueError:
        raise NotJSONError("JSON with an integer of thousands of digits") from None
    return value


def number_at(value: Any, *path: str) -> float | None:
    """Return the number under keys of objects; None where none that can be computed with stands."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and -LARGEST <= value <= LARGEST else None


def to_json(value: Any) -> bytes:
    """Return a JSON value as indented UTF-8 text with a final newline; NaN is refused."""
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise NotJSONError(f"JSON with the key {quote(twice)} twice")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise NotJSONError(f"{name} is not JSON; write null for a missing value")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
