"""JSON in a row of data: what isn't strict JSON is a bad row."""

from __future__ import annotations

from seqtrain.data.examples import BadRow
from seqtrain.files import strict_json


def parse_json(text: str) -> object:
    """Parse one JSON value.

    Raises:
        BadRow: it isn't one, as `strict_json.parse_json` says.
    """
    try:
        return strict_json.parse_json(text)
    except strict_json.NotJSONError as error:
        raise BadRow(str(error)) from None


def json_type(value: object) -> str:
    """Name a value's JSON type for a message."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    return "null" if value is None else names.get(type(value), "a number")
