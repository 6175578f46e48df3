"""The resolved configuration as YAML text, and the schema for editors."""

from __future__ import annotations

import re
from typing import Any

from seqtrain.config.scalars import AmbiguousScalar, resolve_scalar
from seqtrain.config.schema import Config, Section

DRAFT = "https://json-schema.org/draft/2020-12/schema"
LONGEST_IMPLICIT_KEY = 1000

_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./-]*")


def render_config(config: Config, *, defaulted: bool = False) -> str:
    """Write a whole configuration as YAML, one key per line, in the order of the schema.

    Args:
        config: what to write.
        defaulted: end the line of each key that was not given with the comment `# default`.

    Returns:
        YAML text that `parse_config` reads back to an equal configuration.
    """
    rows = list(_rows(config, ""))
    width = max((len(text) for text, is_default in rows if is_default), default=0)
    lines = [
        f"{text:<{width}}  # default" if defaulted and is_default else text
        for text, is_default in rows
    ]
    return "\n".join(lines) + "\n"


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a configuration, for editors."""
    schema = {"$schema": DRAFT, **Config.model_json_schema()}
    return {**schema, "title": "seqtrain configuration"}


def _rows(section: Section, indent: str) -> list[tuple[str, bool]]:
    """Write each key of a section, and whether its value was left to the default."""
    rows: list[tuple[str, bool]] = []
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, Section):
            rows += [(f"{name}:", False), *_rows(value, indent + "  ")]
        else:
            is_default = name not in section.model_fields_set
            rows.append((f"{indent}{name}: {flow(value)}", is_default))
    return rows


def flow(value: object) -> str:
    """Write a value on one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return f"[{', '.join(flow(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_key(key)}: {flow(item)}' for key, item in value.items())}}}"
    return repr(value)


def _key(text: str) -> str:
    """Write a key; YAML wants a mark before a very long one."""
    key = _text(text)
    return f"? {key}" if len(key) > LONGEST_IMPLICIT_KEY else key


def _text(text: str) -> str:
    """Write text plain where it reads back as itself, else in double quotes."""
    if _PLAIN.fullmatch(text):
        try:
            if resolve_scalar(text) == text:
                return text
        except AmbiguousScalar:
            pass
    return f'"{"".join(_escape(character) for character in text)}"'


def _escape(character: str) -> str:
    """Write one character for double quotes; ASCII letters and all else that prints stay."""
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    code = ord(character)
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )
