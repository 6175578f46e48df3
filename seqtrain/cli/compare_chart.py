"""A comparison as a bar chart in SVG, by hand: two bars a way, readable on light and dark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from seqtrain.cli.compare_sections import sections
from seqtrain.errors import ConfigError
from seqtrain.text import printable

if TYPE_CHECKING:
    from seqtrain.workflows.compare import Comparison
    from seqtrain.workflows.recommendation import Row

WIDTH, NAMES, FIGURES = 720, 150, 150
"""Pixels: of the picture, of the names on the left, of the figures right of the bars."""
BAR, ROW, HEADING, TOP = 12, 38, 24, 64
"""Pixels: height of a bar, of a candidate, of a section's heading, and where the first begins."""
COLOURS = {"training": "#2f81c7", "prediction": "#d08a1d"}


def check_chart(path: str | None, *, force: bool) -> None:
    """Refuse a chart that can't be written, before anything is measured.

    Raises:
        ConfigError: the file exists, isn't named .svg, or has no folder.
    """
    if path is None:
        return
    if Path(path).suffix.lower() != ".svg":
        raise ConfigError(f"--chart: found {path}; expected a name that ends in .svg")
    if not Path(path).parent.is_dir():
        raise ConfigError(f"--chart: no folder {Path(path).parent.absolute()}")
    if Path(path).exists() and (Path(path).is_dir() or not force):
        raise ConfigError(f"--chart: {path} exists; give another name, or --force for a file")


def draw_chart(comparison: Comparison, title: str) -> str:
    """Return an SVG picture of tokens a second in training and prediction, and of accuracies.

    Args:
        comparison: what was measured; candidates without figures are left out.
        title: of the picture, such as the config's name.
    """
    rows = [row for row in comparison.candidates if row.training or row.prediction]
    speeds = [s.tokens_per_second for row in rows for s in (row.training, row.prediction) if s]
    scale = (WIDTH - NAMES - FIGURES) / max(speeds, default=1.0)
    lines = [_text(16, 26, f"{title}: thousand tokens/s, padding not counted", size=15)]
    for place, (mode, colour) in enumerate(COLOURS.items()):
        x = NAMES + 110 * place
        lines += [_bar(x, 38, BAR, colour), _text(x + 18, 48, mode)]
    if any(row.accuracy is not None for row in rows):
        lines.append(_text(WIDTH - 16, 48, "accuracy", anchor="end"))
    top = TOP
    for heading, members in sections(comparison):
        lines.append(_text(16, top + BAR, heading))
        top += HEADING
        for row in (row for row in members if row in rows):
            lines += _candidate(row, top, scale)
            top += ROW
    height = top + 8
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" font-family="sans-serif">',
            "<style>text { fill: #333 } "
            "@media (prefers-color-scheme: dark) { text { fill: #ddd } }</style>",
            *lines,
            "</svg>\n",
        ]
    )


def _candidate(row: Row, top: int, scale: float) -> list[str]:
    """Return the names, bars and figures of one way."""
    lines = [_text(NAMES - 10, top + BAR + 5, row.name, anchor="end")]
    if row.kind == "wrong":
        lines.append(_text(NAMES - 10, top + 2 * BAR + 6, "wrong", anchor="end"))
    if row.accuracy is not None:
        lines.append(_text(WIDTH - 16, top + BAR + 5, f"{row.accuracy:.1%}", anchor="end"))
    for place, (mode, colour) in enumerate(COLOURS.items()):
        speed = getattr(row, mode)
        if speed:
            y, length = top + place * (BAR + 2), speed.tokens_per_second * scale
            lines.append(_bar(NAMES, y, length, colour))
            lines.append(_text(NAMES + length + 6, y + 10, f"{speed.tokens_per_second / 1e3:,.1f}"))
    return lines


def _bar(x: float, y: float, length: float, colour: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y}" width="{max(length, 1):.1f}" height="{BAR}" fill="{colour}"/>'
    )


def _text(x: float, y: float, text: str, *, size: int = 12, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y}" font-size="{size}" text-anchor="{anchor}">'
        f"{escape(printable(text))}</text>"
    )
