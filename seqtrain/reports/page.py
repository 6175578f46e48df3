"""HTML page of a report: templates that are filled with the results of runs.

Every text is escaped when it is inserted. A `Chart` holds the coordinates of a picture, and
`templates/charts.html` draws it as SVG.
"""

import base64
import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeAlias

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from seqtrain.files.reading import number_at
from seqtrain.reports.contents import OF_LABEL_SET, RunReport
from seqtrain.text import printable, shorten

SHOWN_MATRIX_CLASSES = 20
"""Largest number of classes whose confusions are a matrix. Otherwise they are a table of pairs."""
SHOWN_ENTRIES, SHOWN_TEXT = 50, 400
"""Largest number of confused pairs and of errors to show, and of characters of a sequence."""
COLOURS = 6
"""Number of colours of lines in `templates/style.css`, s0 to s5."""
TRAINING_CURVES = {
    "loss": (("train", "loss"), ("validation", "loss")),
    "accuracy": (("train", "accuracy"), ("validation", "accuracy")),
    "learning rate": (("lr",),),
    "time steps per second": (("tokens_per_second",),),
}
"""Maps the title of each chart of training to its lines.

A line is the path of keys of its values in an "epoch" line of metrics.jsonl.
"""
LEFT_EDGE, RIGHT_EDGE, TOP_EDGE, BOTTOM_EDGE = 52, 400, 14, 183
"""Edges of the plotted area, on a picture of 420 × 220."""
SMALLEST_RANGE = 1e-300
"""Smallest range of an axis, because floats can't divide a smaller one."""

Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """A line of a chart.

    Attributes:
        name: Name in the legend.
        points: Points of the line, as pairs (x, y): values, or coordinates in a `Chart`.
        style: CSS classes, such as "s0 dashed".
    """

    name: str
    points: Sequence[Point]
    style: str = "s0"


@dataclass(frozen=True)
class Chart:
    """Content of a picture of 420 × 220. Coordinates are counted from the upper left corner.

    Attributes:
        title: Title.
        x_name: Name of the horizontal axis.
        x_ticks: Coordinate and text of each tick of the horizontal axis.
        y_ticks: Coordinate and text of each tick of the vertical axis.
        lines: Lines. Their points are coordinates. A line of one point is drawn as a dot.
    """

    title: str
    x_name: str
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    lines: list[Line]


def line_chart(title: str, lines: Sequence[Line], x_name: str, *, percent: bool = False) -> Chart:
    """Return a chart of lines with common axes.

    Args:
        title: Title.
        lines: Lines whose points are values. Points that aren't finite are left out. At least one
            point of all lines must be finite.
        x_name: Name of the horizontal axis.
        percent: True if the vertical values are shares in [0, 1], which the axis shows in percent.
    """
    finite = [[p for p in line.points if all(map(math.isfinite, p))] for line in lines]
    xs, ys = zip(*(point for points in finite for point in points), strict=True)
    across = _round_values(min(xs), max(xs), whole=True)
    up = _round_values(min(ys), max(ys))
    if percent:  # a share is at most 1
        up = [value for value in up if value <= 1 + 1e-9]
    x, y = (
        _scale(across[0], across[-1], LEFT_EDGE, RIGHT_EDGE),
        _scale(up[0], up[-1], BOTTOM_EDGE, TOP_EDGE),
    )
    placed = [
        Line(line.name, [(x(a), y(b)) for a, b in points], line.style)
        for line, points in zip(lines, finite, strict=True)
    ]
    return Chart(title, x_name, _ticks(across, x), _ticks(up, y, percent=percent), placed)


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Return the linear function that maps `low` to `start` and `high` to `end`.

    Its results are rounded to two decimals. If `low` equals `high`, it maps both to `start`.
    """
    return lambda value: round(start + (value - low) / ((high - low) or 1) * (end - start), 2)


def _ticks(
    values: Sequence[float], place: Callable[[float], float], *, percent: bool = False
) -> list[tuple[float, str]]:
    """Return the coordinate of each value, which `place` computes, and the value as text.

    If `percent` is True, the values are shares in [0, 1], and the text is in percent.
    """
    if percent:
        return [(place(value), f"{100 * value:.3g} %") for value in values]
    return [(place(v), f"{v:,.0f}" if abs(v) >= 1000 else f"{v:.3g}") for v in values]


def _round_values(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Return about five evenly spaced round numbers that enclose the range from low to high.

    If `whole` is True, they are whole numbers.
    """
    if high - low < SMALLEST_RANGE:
        margin = 1 if whole else abs(low) / 10 + 1e-9
        low = low - margin
        high = high + margin
    raw = (high - low) / 4
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(m * size for m in (1, 2, 2.5, 5, 10) if m * size >= raw * 0.999)
    step = max(1.0, float(round(step))) if whole else step
    return [step * number for number in range(math.floor(low / step), math.ceil(high / step) + 1)]


def render(runs: Sequence[RunReport], *, title: str) -> str:
    """Return the HTML document of a report about one run or several runs.

    The document contains all that it needs. Its content security policy forbids to load anything.

    Args:
        runs: Facts about each run.
        title: Title of the document.
    """
    return _environment().get_template("page.html").render(title=title, runs=runs)


@cache
def _environment() -> Environment:
    """Return the jinja2 environment with the functions and constants that the templates use.

    It is made once, and each call returns the same object.
    """
    environment = Environment(
        loader=PackageLoader("seqtrain.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    assert environment.loader is not None
    sources = (environment.loader.get_source(environment, x)[0] for x in ("style.css", "sort.js"))
    style, script = map(Markup, sources)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment.filters["percent"] = lambda value: f"{value:.2%}"
    environment.filters["shortened"] = partial(shorten, limit=SHOWN_TEXT)
    environment.globals.update(
        {each.__name__: each for each in (curves, reliability, precision_recall, by_length)},
        matrix_classes=SHOWN_MATRIX_CLASSES,
        shown=SHOWN_ENTRIES,
        style=style,
        script=script,
        digest=digest,
    )
    return environment


def _visible(value: Any) -> Any:
    """Return a text with control characters and marks of direction escaped, except line breaks.

    Markup and values that aren't texts are returned unchanged.
    """
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return "\n".join(map(printable, value.split("\n")))


def curves(runs: Sequence[RunReport]) -> list[Chart]:
    """Return charts of loss, accuracy, learning rate and speed by epoch.

    The lines of up to `COLOURS` runs have different colours. More runs use the same colours again.
    Values of train are dashed. A chart without values is left out.
    """
    charts = []
    for title, keys in TRAINING_CURVES.items():
        lines = []
        for number, run in enumerate(runs):
            for path in keys:
                found = ((epoch["epoch"], number_at(epoch, *path)) for epoch in run.epochs)
                points = [(epoch, value) for epoch, value in found if value is not None]
                name = " ".join([*([run.name] if len(runs) > 1 else []), *path[:-1]]) or title
                style = f"s{number % COLOURS}"
                if path[0] == "train":
                    style += " dashed"
                if points:
                    lines.append(Line(name, points, style))
        if lines:
            charts.append(line_chart(title, lines, "epoch", percent=title == "accuracy"))
    return charts


def reliability(run: RunReport) -> Chart | None:
    """Return a chart of accuracy by predicted probability, or None if there are no predictions.

    A dashed line shows perfect calibration.
    """
    points = [(100 * sure, right) for sure, right in run.shown.reliability]
    if not points:
        return None
    if run.shown.scores.multi_label:
        of_what = OF_LABEL_SET
    else:
        of_what = "of the predicted label"
    ideal = Line("perfect calibration", [(0, 0), (100, 1)], "s5 dashed")
    title = "accuracy by probability"
    x_name = f"% probability {of_what}"
    return line_chart(title, [Line("predictions", points), ideal], x_name, percent=True)


def precision_recall(run: RunReport) -> list[Chart]:
    """Return a list with a chart of precision by recall, which has a line per large class.

    The list is empty if no class has points.
    """
    lines = [
        Line(label, [(100 * recall, precision) for recall, precision in points], f"s{number}")
        for number, (label, points) in enumerate(run.shown.precision_recall.items())
        if points
    ]
    title = "precision of the largest classes"
    x_name = "% of the class's examples found (recall)"
    if lines:
        return [line_chart(title, lines, x_name, percent=True)]
    return []


def by_length(run: RunReport) -> list[Chart]:
    """Return charts of accuracy by length, and by the share of each sequence that is read.

    A chart without values is left out, such as the second if `run.prefixes` is empty.
    """
    charts = []
    of_length = [(row["max"], row["accuracy"]) for row in run.shown.scores.by_length]
    if of_length:
        title = "accuracy by length"
        x_name = "time steps, up to"
        charts.append(line_chart(title, [Line("accuracy", of_length)], x_name, percent=True))
    if run.prefixes:
        line = Line("accuracy", [(100 * row["share"], row["accuracy"]) for row in run.prefixes])
        x_name = "% of each sequence"
        charts.append(line_chart("accuracy by share read", [line], x_name, percent=True))
    return charts
