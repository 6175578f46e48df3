"""The picture of `compare --chart`: SVG, readable on light and dark."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from seqtrain.cli.output.compare_screen import in_sections
from seqtrain.comparison.results import Comparison, VariantResult, thousands
from seqtrain.text import printable, shorten

COLOURS = {"training": "#2f81c7", "prediction": "#d08a1d"}
TITLE = 40
"""Characters of a config's name that are shown at most."""


def draw_speeds(comparison: Comparison, title: str) -> str:
    """Return a picture of tokens per second in training and prediction, and of accuracies.

    Args:
        comparison: what was measured; variants without figures are left out.
        title: of the picture, such as the config's name; any text.
    """
    measured = [row for row in comparison.candidates if row.training or row.prediction]
    speeds = [speed for row in measured for speed in (row.training, row.prediction) if speed]
    scale = 420 / max((speed.fastest for speed in speeds), default=1.0)
    headings, rows, top = [], [], 64
    for heading, members in in_sections(comparison):
        headings.append((top + 12, heading))
        top += 24
        for row in (row for row in members if row in measured):
            rows.append((top, row, _bars(row, top, scale)))
            top += 38
    environment = Environment(
        loader=PackageLoader("seqtrain.cli.output"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: printable(value) if isinstance(value, str) else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("speed.svg").render(
        title=shorten(title, TITLE),
        colours=COLOURS,
        headings=headings,
        rows=rows,
        height=top + 8,
    )


def _bars(
    row: VariantResult, top: int, scale: float
) -> list[tuple[float, float, float, float, str, str]]:
    """Return top, length, slowest, fastest, colour and figure of each bar of a variant."""
    bars = []
    for number, (mode, colour) in enumerate(COLOURS.items()):
        speed = getattr(row, mode)
        if speed:
            length = round(max(speed.tokens_per_second * scale, 1), 1)
            ends = [round(150 + each * scale, 1) for each in (speed.slowest, speed.fastest)]
            figure = thousands(speed.tokens_per_second)
            bars.append((top + 14 * number, length, *ends, colour, figure))
    return bars
