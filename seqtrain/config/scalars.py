"""What an unquoted YAML scalar means; spellings that YAML tools disagree on are refused."""

from __future__ import annotations

import re
from typing import TypeAlias

from seqtrain.text import shorten

Scalar: TypeAlias = str | int | float | bool | None

DIGIT_LIMIT = 400
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS: dict[str, Scalar] = {"": None, "~": None, "null": None, "true": True, "false": False}
_AMBIGUOUS = (
    (re.compile(r"(?i:true|false|yes|no|on|off|y|n)"), "write true or false"),
    (re.compile(r"(?i:null)"), "write null"),
    (re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"), "write a plain number"),
    (re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?"), ""),
    (
        re.compile(r"[-+]?(0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+)"),
        "write a decimal number",
    ),
    (
        re.compile(r"[-+]?(\.?[0-9][0-9_]*|[0-9][0-9_]*\.[0-9_]*)([eE][-+]?[0-9_]+)?"),
        "write a number without leading zeros or underscores",
    ),
)


class AmbiguousScalar(ValueError):
    """A plain scalar that YAML tools read in different ways; its text says what to write."""


def resolve_scalar(text: str) -> Scalar:
    """Read a plain scalar: null, true, false, a decimal number, or else text.

    Args:
        text: the scalar as written, without quotes.

    Returns:
        Its value; text stays as it is.

    Raises:
        AmbiguousScalar: if YAML tools would not agree on the value (`no`, `012`, `1:30`).
    """
    if text in _WORDS:
        return _WORDS[text]
    if _NOT_FINITE.fullmatch(text):
        return float(text.replace(".", ""))
    if _FLOAT.fullmatch(text):
        if len(text) > DIGIT_LIMIT:
            raise AmbiguousScalar(f"found a number of {len(text)} characters; write it shorter")
        return int(text) if _INTEGER.fullmatch(text) else float(text)
    for pattern, advice in _AMBIGUOUS:
        if pattern.fullmatch(text):
            shown = shorten(text, 40)
            advice += ", or " if advice else ""
            raise AmbiguousScalar(f'found {shown}; {advice}quote it ("{shown}") if text is meant')
    return text
