"""HTML and SVG elements. Text is escaped here and nowhere else, so that nothing can forget to."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TypeAlias

from seqtrain.text import printable

EMPTY = frozenset({"meta", "circle", "line", "path", "rect", "polyline"})
"""Elements without content."""


class Markup(str):
    """Finished markup; any other text is escaped where it is put in."""

    __slots__ = ()


Content: TypeAlias = "Markup | str | int | Iterable[Content] | None"


def element(
    name: str, /, *children: Content, **attributes: str | int | float | bool | None
) -> Markup:
    """Return an element.

    Args:
        name: as `td`.
        children: markup, text, or lists of these.
        attributes: a trailing underscore is dropped (`class_`), others become hyphens; None and
            False are left out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(printable(_number(value)))}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in EMPTY:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{joined(children)}</{name}>")


def joined(children: Content) -> Markup:
    """Return children one after the other, text escaped."""
    if children is None:
        return Markup("")
    if isinstance(children, Markup):
        return children
    if isinstance(children, str | int):
        lines = str(children).split("\n")
        return Markup("\n".join(html.escape(printable(line)) for line in lines))
    return Markup("".join(joined(child) for child in children))


def _number(value: str | int | float | bool) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
