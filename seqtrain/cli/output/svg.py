"""Pictures in SVG, readable on light and dark."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape

from seqtrain.text import printable


def svg_picture(width: int, height: int, elements: Iterable[str]) -> str:
    """Return a picture; where an element says nothing else, strokes have the colour of texts."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" font-family="sans-serif">',
            "<style>text { fill: #333 } path { stroke: #333 } @media (prefers-color-scheme: dark) "
            "{ text { fill: #ddd } path { stroke: #ddd } }</style>",
            *elements,
            "</svg>\n",
        ]
    )


def svg_text(x: float, y: float, text: str, *, size: int = 12, anchor: str = "start") -> str:
    """Return a text of a picture."""
    return (
        f'<text x="{x:.1f}" y="{y}" font-size="{size}" text-anchor="{anchor}">'
        f"{escape(printable(text))}</text>"
    )
