"""The key reference: every key of a configuration as a Markdown table, read off the schema."""

from __future__ import annotations

import re
from typing import Any

from seqtrain.config.expectation import expected
from seqtrain.config.problems import Keys
from seqtrain.config.render import flow
from seqtrain.config.schema import Config, Section

_NOT_PLAIN = re.compile(r"<\w+>|\{[^}]*\}")
"""Parts of a text that Markdown would read as its own: `<pad>`, `{label: weight}`."""


def key_reference() -> str:
    """Write one table row per key, section after section: key, default, values, meaning."""
    lines = ["| key | default | values | meaning |", "|---|---|---|---|", *_rows(Config, ())]
    return "\n".join(lines) + "\n"


def _rows(section: type[Section], above: Keys) -> list[str]:
    rows = []
    for name, field in section.model_fields.items():
        keys = (*above, name)
        dotted = ".".join(map(str, keys))
        kind: Any = field.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            rows += [f"| **{dotted}** | | | {_cell(kind.__doc__)} |", *_rows(kind, keys)]
        else:
            default = "required" if field.is_required() else f"`{flow(field.default)}`"
            cells = (f"`{dotted}`", default, _cell(expected(keys)), _cell(field.description))
            rows.append(f"| {' | '.join(cells)} |")
    return rows


def _cell(text: str | None) -> str:
    """Write a text for a cell of a table."""
    one_line = " ".join((text or "").split())
    marked = _NOT_PLAIN.sub(lambda part: f"`{part[0]}`", one_line)
    return marked.replace("|", "\\|")
