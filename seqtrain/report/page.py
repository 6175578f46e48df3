"""The page: templates filled with the facts of runs. Every text is escaped where it is put in."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from seqtrain.files.reading import number_at
from seqtrain.report.charts import Chart, Line, bar_chart, line_chart, reliability_chart
from seqtrain.report.facts import RunFacts, most_confident_errors
from seqtrain.text import printable

MATRIX_CLASSES = 20
"""Classes up to which the confusions are a matrix; above, a table of pairs."""
SHOWN = 50
"""Confused pairs and errors shown at most."""
BINS, COLOURS = 10, 6
CURVES = {
    "loss": (("train", "loss"), ("validation", "loss")),
    "accuracy": (("train", "accuracy"), ("validation", "accuracy")),
    "learning rate": (("lr",),),
    "time steps per second": (("tokens_per_second",),),
}
"""Charts of training: the keys of an epoch's figures, for each line of a chart."""


def render(runs: Sequence[RunFacts], *, title: str) -> str:
    """Return the page for one run, or for several side by side: one HTML document.

    It loads nothing from elsewhere; its policy forbids it to.
    """
    return _environment().get_template("page.html").render(title=title, runs=runs)


def templates(package: str) -> Environment:
    """Return the templates in a package's folder `templates`; every text is escaped."""
    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _environment() -> Environment:
    environment = templates("seqtrain.report")
    assert environment.loader is not None
    sources = (environment.loader.get_source(environment, x)[0] for x in ("style.css", "sort.js"))
    style, script = map(Markup, sources)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment.filters["percent"] = lambda value: f"{value:.2%}"
    environment.globals.update(
        {
            each.__name__: each
            for each in (curves, reliability, precision_recall, by_length, most_confident_errors)
        },
        matrix_classes=MATRIX_CLASSES,
        shown=SHOWN,
        style=style,
        script=script,
        digest=digest,
    )
    return environment


def _visible(value: Any) -> Any:
    """Escape control characters and marks of direction in a text; its lines stay."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return "\n".join(map(printable, value.split("\n")))


def curves(runs: Sequence[RunFacts]) -> list[Chart]:
    """Return loss, accuracy, learning rate and speed over the epochs, one colour per run."""
    charts = []
    for title, keys in CURVES.items():
        lines = []
        for number, run in enumerate(runs):
            for path in keys:
                found = ((epoch["epoch"], number_at(epoch, *path)) for epoch in run.epochs)
                points = [(epoch, value) for epoch, value in found if value is not None]
                name = " ".join([*([run.name] if len(runs) > 1 else []), *path[:-1]]) or title
                style = f"s{number % COLOURS}{' dashed' if path[0] == 'train' else ''}"
                lines += [Line(name, points, style)] if points else []
        if lines:
            charts.append(line_chart(title, lines, "epoch", percent=title == "accuracy"))
    return charts


def reliability(run: RunFacts) -> Chart | None:
    """Return how often predictions of a given probability are right; None without examples."""
    bins: dict[int, list[tuple[float, bool]]] = {}
    for row in run.predictions:
        number = min(BINS - 1, int(row.probability * BINS))
        bins.setdefault(number, []).append((row.probability, row.is_correct))
    columns = (zip(*rows, strict=True) for _, rows in sorted(bins.items()))
    points = [(sum(p) / len(p), sum(right) / len(p), len(p)) for p, right in columns]
    return reliability_chart("accuracy by probability", points) if points else None


def precision_recall(run: RunFacts) -> list[Chart]:
    """Return how precise predictions of the largest classes are, by how much is found of them."""
    lines = [
        Line(label, [(100 * recall, precision) for recall, precision in points], f"s{number}")
        for number, (label, points) in enumerate(run.precision_recall.items())
        if points
    ]
    title, x_name = "precision of the largest classes", "% of the class's examples found (recall)"
    return [line_chart(title, lines, x_name, percent=True)] if lines else []


def by_length(run: RunFacts) -> list[Chart]:
    """Return accuracy by length, and by the share of each sequence that was read."""
    bars = [
        (f"{row['min']}" + (f"–{row['max']}" if row["max"] > row["min"] else ""), row["accuracy"])
        for row in run.scores.get("by_length", [])
    ]
    charts = [bar_chart("accuracy by length in time steps", bars)] if bars else []
    if run.prefixes:
        line = Line("accuracy", [(100 * row["share"], row["accuracy"]) for row in run.prefixes])
        x_name = "% of each sequence"
        charts.append(line_chart("accuracy by share read", [line], x_name, percent=True))
    return charts
