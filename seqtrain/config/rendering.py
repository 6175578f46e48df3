"""Config as YAML and as a dict of dotted keys, its JSON Schema, and the table of all keys."""

import re
from collections.abc import Iterator
from typing import Any

from seqtrain.config.document import flow
from seqtrain.config.messages import expected
from seqtrain.config.schema import SECTIONS, Config
from seqtrain.config.value_types import Section

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_NOT_PLAIN = re.compile(r"<\w+>|\{[^}]*\}")
"""Parts of a text that Markdown wouldn't show as they are: `<pad>`, `{label: weight}`."""


def render_config(config: Config, *, defaulted: bool = False) -> str:
    """Return a config with all its keys as YAML, which `parse_config` reads back.

    The keys have the order of the schema.

    Args:
        config: The config.
        defaulted: True to add the comment `# default` to each key that wasn't set.
    """
    rows = list(_rows(config, ""))
    width = max((len(text) for text, is_default in rows if is_default), default=0)
    lines = [
        f"{text:<{width}}  # default" if defaulted and is_default else text
        for text, is_default in rows
    ]
    return "\n".join(lines) + "\n"


def _rows(section: Section, indent: str) -> Iterator[tuple[str, bool]]:
    """Yield the line of YAML for each key of a section, and True if the key wasn't set.

    Args:
        section: The section.
        indent: Blanks at the beginning of each line.
    """
    for name, value in section:
        if isinstance(value, Section):
            yield f"{name}:", False
            yield from _rows(value, indent + "  ")
        else:
            yield f"{indent}{name}: {flow(value)}", name not in section.model_fields_set


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a config file, for editors."""
    return {"$schema": DRAFT, **Config.model_json_schema(), "title": "seqtrain configuration"}


def key_reference() -> str:
    """Return a table in Markdown with one row per section and key: key, default, values, meaning.

    The meaning is the docstring of the key in the schema.
    """
    lines = ["| key | default | values | meaning |", "|---|---|---|---|", *_reference(Config, "")]
    return "\n".join(lines) + "\n"


def _reference(section: type[Section], above: str) -> Iterator[str]:
    """Yield the rows of the table for a section whose keys begin with `above`."""
    for name, field in section.model_fields.items():
        key = above + name
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            yield f"| **{key}** | | | {_cell(kind.__doc__)} |"
            yield from _reference(kind, f"{key}.")
        else:
            if field.is_required():
                default = "required"
            else:
                default = f"`{flow(field.default)}`"
            values = _cell(expected(tuple(key.split(".")), Config))
            yield f"| `{key}` | {default} | {values} | {_cell(field.description)} |"


def _cell(text: str | None) -> str:
    """Return a text as the cell of a table in Markdown, on one line. None is an empty cell.

    Parts in angle brackets or braces become code. A vertical bar is escaped.
    """
    one_line = " ".join((text or "").split())
    return _NOT_PLAIN.sub(lambda part: f"`{part[0]}`", one_line).replace("|", "\\|")


def values_by_key(config: Config) -> dict[str, Any]:
    """Return a dict that maps each key of a config, such as "training.lr", to its value."""
    dotted = {f"{name}.{key}": value for name in SECTIONS for key, value in getattr(config, name)}
    return {"seed": config.seed, **dotted}
