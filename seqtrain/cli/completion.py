"""What a shell completes after --set: keys of the config, and values of those that list them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin


def complete_override(incomplete: str) -> list[str]:
    """Return the words that `--set` may go on with.

    Args:
        incomplete: what was typed of `section.key=value`.
    """
    from seqtrain.config.schema import SECTIONS

    fields = {
        f"{section}.{name}": field.annotation
        for section, kind in SECTIONS.items()
        for name, field in kind.model_fields.items()
    }
    key, equals, value = incomplete.partition("=")
    if not equals:
        return [f"{name}=" for name in fields if name.startswith(key)]
    words = _values(fields.get(key))
    return [f"{key}={word}" for word in dict.fromkeys(words) if word.startswith(value)]


def _values(annotation: Any) -> Iterator[str]:
    """Yield the values that a type lists: of literals, truth values, and null."""
    if get_origin(annotation) is Literal:
        yield from map(str, get_args(annotation))
    elif annotation is bool:
        yield from ("true", "false")
    elif annotation is type(None):
        yield "null"
    else:
        for inner in get_args(annotation):
            yield from _values(inner)
