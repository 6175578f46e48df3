"""Results as JSON, one line each, that a terminal can be sent."""

from __future__ import annotations

import json
from typing import Any


def json_line(value: Any) -> str:
    """Return a value as one line of JSON, without its end; nothing is lost.

    Letters stay as they are; control characters and marks of direction are escaped, so that a
    label from a file can't steer the terminal that it is shown on.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
