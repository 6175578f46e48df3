"""Charts as inline SVG: lines, bars and a reliability diagram; colours come from the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from seqtrain.report.markup import Markup, element

WIDTH, HEIGHT = 420, 220
LEFT, RIGHT, TOP, BOTTOM = 52, 20, 14, 37
"""Margins around the plotted area."""
SMALLEST = 1e-300
"""Least width of an axis: below, its parts can't be told from 0."""
COLOURS = 6
"""Classes .s0 … .s5 of the page, one colour each."""


@dataclass(frozen=True)
class Series:
    """One line of a chart.

    Attributes:
        name: in the legend.
        points: (x, y), in order of x; those that aren't finite are left out.
        dashed: to tell validation from train.
        colour: index of its colour.
    """

    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False
    colour: int = 0


def line_chart(title: str, series: Sequence[Series], *, x: str, percent: bool = False) -> Markup:
    """Draw lines over common axes.

    Args:
        title: above the chart.
        series: at least one with a point.
        x: what the horizontal axis counts.
        percent: y values are fractions, written in percent.
    """
    points = [p for each in series for p in each.points if all(map(math.isfinite, p))]
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    x_ticks = _ticks(min(xs), max(xs), whole=True)
    y_ticks = _ticks(min(ys), max(ys))
    frame = _Frame((x_ticks[0], x_ticks[-1]), (y_ticks[0], y_ticks[-1]))
    lines = [_line(each, frame) for each in series]
    axes = frame.axes(x_ticks, y_ticks, x, percent=percent)
    legend = [(s.name, s.colour, s.dashed) for s in series] if len(series) > 1 else []
    return _figure(title, [*axes, *lines], legend)


def reliability_chart(title: str, bins: Sequence[tuple[float, float, int]]) -> Markup:
    """Draw accuracy over confidence; the closer to the diagonal, the truer the probabilities.

    Args:
        title: above the chart.
        bins: mean probability, accuracy and number of examples of each bin that has any.
    """
    ticks = [0.0, 0.25, 0.5, 0.75, 1.0]
    frame = _Frame((0.0, 1.0), (0.0, 1.0))
    most = max((count for _, _, count in bins), default=1)
    diagonal = element(
        "line",
        x1=frame.x(0), y1=frame.y(0), x2=frame.x(1), y2=frame.y(1), class_="diagonal",
    )  # fmt: skip
    dots = [
        element("circle", cx=frame.x(p), cy=frame.y(a), r=3 + 7 * math.sqrt(n / most), class_="s0")
        for p, a, n in bins
    ]
    axes = frame.axes(ticks, ticks, "probability of the answer", percent=True, percent_x=True)
    return _figure(title, [*axes, diagonal, *dots], [])


def bar_chart(title: str, bars: Sequence[tuple[str, float]]) -> Markup:
    """Draw fractions as bars, with a name below and the value above each."""
    frame = _Frame((0.0, float(len(bars))), (0.0, 1.0))
    axes = frame.axes([], [0.0, 0.25, 0.5, 0.75, 1.0], "", percent=True)
    drawn = []
    for index, (name, value) in enumerate(bars):
        middle = frame.x(index + 0.5)
        drawn += [
            element(
                "rect",
                x=frame.x(index + 0.15), y=frame.y(value), class_="s0",
                width=frame.x(0.7) - frame.x(0), height=frame.y(0) - frame.y(value),
            ),
            element("text", f"{value:.0%}", x=middle, y=frame.y(value) - 3, class_="middle"),
            element("text", name, x=middle, y=HEIGHT - BOTTOM + 17, class_="middle"),
        ]  # fmt: skip
    return _figure(title, [*axes, *drawn], [])


@dataclass(frozen=True)
class _Frame:
    """Where values stand on the picture."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]

    def x(self, value: float) -> float:
        low, high = self.x_range
        return LEFT + (value - low) / ((high - low) or 1) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        low, high = self.y_range
        return HEIGHT - BOTTOM - (value - low) / ((high - low) or 1) * (HEIGHT - TOP - BOTTOM)

    def axes(
        self,
        x_ticks: Sequence[float],
        y_ticks: Sequence[float],
        x: str,
        *,
        percent: bool,
        percent_x: bool = False,
    ) -> list[Markup]:
        """Draw grid lines, their values, and the name of the horizontal axis."""
        drawn = []
        for tick in y_ticks:
            y = self.y(tick)
            drawn += [
                element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid"),
                element("text", _shown(tick, percent), x=LEFT - 5, y=y + 3, class_="end"),
            ]
        drawn += [
            element(
                "text", _shown(tick, percent_x),
                x=self.x(tick), y=HEIGHT - BOTTOM + 17, class_="middle",
            )
            for tick in x_ticks
        ]  # fmt: skip
        middle = (LEFT + WIDTH - RIGHT) / 2
        return [*drawn, element("text", x, x=middle, y=HEIGHT - 5, class_="middle")]


def _line(series: Series, frame: _Frame) -> Markup:
    style = f"s{series.colour % COLOURS}{' dashed' if series.dashed else ''}"
    points = [p for p in series.points if all(map(math.isfinite, p))]
    if len(points) == 1:
        return element(
            "circle", cx=frame.x(points[0][0]), cy=frame.y(points[0][1]), r=3, class_=style
        )
    joined = " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in points)
    return element("polyline", points=joined, class_=f"line {style}")


def _figure(title: str, drawn: Sequence[Markup], legend: Sequence[tuple[str, int, bool]]) -> Markup:
    picture = element(
        "svg", drawn,
        viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=title,
    )  # fmt: skip
    names = [
        element("span", name, class_=f"key s{colour % COLOURS}{' dashed' if dashed else ''}")
        for name, colour, dashed in legend
    ]
    return element("figure", element("figcaption", title), picture, element("div", names))


def _ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Return about five round values that reach from below low to above high."""
    if high - low < SMALLEST:
        low, high = (
            (low - 1, high + 1)
            if whole
            else (low - abs(low) / 10 - 1e-9, low + abs(low) / 10 + 1e-9)
        )
    raw = (high - low) / 4
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(m * size for m in (1, 2, 2.5, 5, 10) if m * size >= raw * 0.999)
    step = max(1.0, float(round(step))) if whole else step
    first, last = math.floor(low / step), math.ceil(high / step)
    return [step * number for number in range(first, last + 1)]


def _shown(value: float, percent: bool) -> str:
    if percent:
        return f"{100 * value:.3g} %"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
