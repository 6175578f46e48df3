"""A comparison as a bar chart in SVG: two bars per variant, readable on light and dark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seqtrain.cli.output.svg import svg_picture, svg_text
from seqtrain.errors import ConfigError
from seqtrain.runs.destination import check_destination
from seqtrain.text import shorten

if TYPE_CHECKING:
    from seqtrain.comparison.results import Comparison, VariantResult

WIDTH, NAMES, FIGURES = 720, 150, 150
"""Pixels: of the picture, of the names on the left, of the figures right of the bars."""
BAR, ROW, HEADING, TOP = 12, 38, 24, 64
"""Pixels: height of a bar, of a variant, of a section's heading, and where the first begins."""
COLOURS = {"training": "#2f81c7", "prediction": "#d08a1d"}
TITLE = 40
"""Characters of a config's name that are shown at most."""


def check_chart(path: str | None, *, force: bool) -> None:
    """Refuse a chart that can't be written, before anything is measured.

    Raises:
        ConfigError: it isn't named .svg, or as `check_destination` says.
    """
    if path is not None and Path(path).suffix.lower() != ".svg":
        raise ConfigError(f"--chart: found {path}; expected a name that ends in .svg")
    if path is not None:
        check_destination(path, "file", "--chart", force=force)


def draw_chart(comparison: Comparison, title: str) -> str:
    """Return an SVG picture of tokens per second in training and prediction, and of accuracies.

    Args:
        comparison: what was measured; variants without figures are left out.
        title: of the picture, such as the config's name; any text.
    """
    from seqtrain.cli.output.compare_table import sections

    rows = [row for row in comparison.candidates if row.training or row.prediction]
    fastest = [speed.fastest for row in rows for speed in (row.training, row.prediction) if speed]
    scale = (WIDTH - NAMES - FIGURES) / max(fastest, default=1.0)
    lines = [
        svg_text(
            16, 26, f"{shorten(title, TITLE)}: thousand tokens/s, padding not counted", size=15
        )
    ]
    for place, (mode, colour) in enumerate(COLOURS.items()):
        x = NAMES + 110 * place
        lines += [_bar(x, 38, BAR, colour), svg_text(x + 18, 48, mode)]
    lines += [
        _line(NAMES + 224, NAMES + 236, 44),
        svg_text(NAMES + 242, 48, "slowest, fastest turn"),
    ]
    if any(row.accuracy is not None for row in rows):
        lines.append(svg_text(WIDTH - 16, 48, "accuracy", anchor="end"))
    top = TOP
    for heading, members in sections(comparison):
        lines.append(svg_text(16, top + BAR, heading))
        top += HEADING
        for row in (row for row in members if row in rows):
            lines += _variant(row, top, scale)
            top += ROW
    return svg_picture(WIDTH, top + 8, lines)


def _variant(row: VariantResult, top: int, scale: float) -> list[str]:
    """Return the names, bars and figures of one variant."""
    from seqtrain.comparison.results import thousands

    lines = [svg_text(NAMES - 10, top + BAR + 5, row.name, anchor="end")]
    if row.kind == "wrong":
        lines.append(svg_text(NAMES - 10, top + 2 * BAR + 6, "wrong", anchor="end"))
    if row.accuracy is not None:
        lines.append(svg_text(WIDTH - 16, top + BAR + 5, f"{row.accuracy:.1%}", anchor="end"))
    for place, (mode, colour) in enumerate(COLOURS.items()):
        speed = getattr(row, mode)
        if speed:
            y, end = top + place * (BAR + 2), NAMES + speed.fastest * scale
            lines.append(_bar(NAMES, y, speed.tokens_per_second * scale, colour))
            lines.append(_line(NAMES + speed.slowest * scale, end, y + BAR // 2))
            lines.append(svg_text(end + 6, y + 10, thousands(speed.tokens_per_second)))
    return lines


def _bar(x: float, y: float, length: float, colour: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y}" width="{max(length, 1):.1f}" height="{BAR}" fill="{colour}"/>'
    )


def _line(left: float, right: float, y: float) -> str:
    """Return a spread: a line with a short stroke at each end."""
    ends = f"M{left:.1f} {y - 3}v6M{right:.1f} {y - 3}v6"
    return f'<path d="M{left:.1f} {y}H{right:.1f}{ends}" fill="none"/>'
