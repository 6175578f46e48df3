"""The sections of a report: each a heading and what belongs under it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from seqtrain.files.strict_json import number_at
from seqtrain.report.charts import Series, bar_chart, line_chart, reliability_chart
from seqtrain.report.facts import AnsweredExample, RunFacts
from seqtrain.report.markup import Content, Markup, element

MATRIX_CLASSES = 20
"""Classes up to which the confusions are a matrix; above, a table of pairs."""
PAIRS, ERRORS = 50, 50
"""Confused pairs and errors shown at most."""
BINS = 10


def card(run: RunFacts) -> Markup:
    """Return the model card: what was trained on what, and how well."""
    figures = [
        _figure("accuracy", f"{run.scores['accuracy']:.2%}"),
        _figure("macro F1", f"{run.scores['macro_f1']:.2%}"),
        _figure("loss", f"{run.scores['loss']:.4f}"),
        _figure("examples", f"{run.scores['num_examples']:,}"),
        _figure("classes", f"{len(run.scores['labels']):,}"),
    ]
    rows = [(name, value) for name, value in run.card.items()]
    return _section(
        f"{run.name}: {run.split}", element("div", figures, class_="figures"), _facts(rows)
    )


def comparison(runs: Sequence[RunFacts]) -> Markup:
    """Return the main figures of several runs side by side."""
    names = ("accuracy", "macro_f1", "weighted_f1", "loss")
    head = ["run", "split", "examples", *(name.replace("_", " ") for name in names)]
    rows: list[list[Content]] = [
        [
            run.name,
            run.split,
            f"{run.scores['num_examples']:,}",
            *(_score(name, run.scores.get(name)) for name in names),
        ]
        for run in runs
    ]
    return _section("Runs side by side", table(head, rows))


def curves(runs: Sequence[RunFacts]) -> Markup | None:
    """Return loss, accuracy, learning rate and speed over the epochs, one colour per run."""
    charts = [
        _curve(runs, "loss", ("train", "loss"), ("validation", "loss")),
        _curve(runs, "accuracy", ("train", "accuracy"), ("validation", "accuracy")),
        _curve(runs, "learning rate", ("lr",)),
        _curve(runs, "time steps per second", ("tokens_per_second",)),
    ]
    drawn = [chart for chart in charts if chart is not None]
    return _section("Training", element("div", drawn, class_="charts")) if drawn else None


def _curve(runs: Sequence[RunFacts], title: str, *paths: tuple[str, ...]) -> Markup | None:
    series = []
    for number, run in enumerate(runs):
        for path in paths:
            found = [(e["epoch"], number_at(e, *path)) for e in run.epochs]
            points = [(epoch, value) for epoch, value in found if value is not None]
            words = [*([run.name] if len(runs) > 1 else []), *path[:-1]]
            if points:
                dashed = path[0] == "train"
                series.append(Series(" ".join(words) or title, points, dashed, number))
    if not series:
        return None
    return line_chart(title, series, x="epoch", percent=title == "accuracy")


def confusions(run: RunFacts) -> Markup:
    """Return the confusion matrix, or of many classes the pairs confused most."""
    pairs = Counter((a.label, a.answer) for a in run.answers)
    labels = list(run.scores["labels"])
    if len(labels) > MATRIX_CLASSES:
        wrong = [(pair, count) for pair, count in pairs.most_common() if pair[0] != pair[1]]
        rows: list[list[Content]] = [
            [true, answer, count] for (true, answer), count in wrong[:PAIRS]
        ]
        return _section(
            "Confusions", _shown_of(len(wrong), PAIRS, "pairs"),
            table(["label", "answer", "examples"], rows, sortable=True, words=(1,)),
        )  # fmt: skip
    supports = Counter(a.label for a in run.answers)
    head = element("tr", element("th", "label ↓ answer →"), [element("th", n) for n in labels])
    body = [
        element(
            "tr",
            element("th", true, scope="row"),
            [_cell(pairs[true, answer], supports[true], right=true == answer) for answer in labels],
        )
        for true in labels
    ]
    matrix = element("table", element("thead", head), element("tbody", body), class_="matrix")
    return _section("Confusions", element("div", matrix, class_="wide"))


def _cell(count: int, support: int, *, right: bool) -> Markup:
    shade = min(9, int(10 * count / support)) if support else 0
    style = f"{'right' if right else 'wrong'}{shade}" if count else None
    return element("td", f"{count:,}" if count else "·", class_=style)


def per_class(run: RunFacts) -> Markup:
    """Return precision, recall, F1 and support of each class; a click on a heading sorts."""
    rows: list[list[Content]] = [
        [name, *(f"{values[key]:.2%}" for key in ("precision", "recall", "f1")), values["support"]]
        for name, values in run.scores["per_class"].items()
    ]
    head = ["class", "precision", "recall", "F1", "examples"]
    return _section("Classes", table(head, rows, sortable=True))


def reliability(run: RunFacts) -> Markup | None:
    """Return how often an answer of a given probability is right."""
    if not run.answers:
        return None
    bins: list[list[AnsweredExample]] = [[] for _ in range(BINS)]
    for answer in run.answers:
        bins[min(BINS - 1, int(answer.probability * BINS))].append(answer)
    points = [
        (
            sum(a.probability for a in each) / len(each),
            sum(a.is_correct for a in each) / len(each),
            len(each),
        )
        for each in bins
        if each
    ]
    words = (
        "Each dot holds the examples whose answer has about this probability; a large dot holds "
        "many. On the diagonal probabilities are true. Expected calibration error: "
        f"{run.scores['ece']:.2%}."
    )
    chart = reliability_chart("accuracy by probability", points)
    return _section("How far to trust a probability", element("p", words), chart)


def by_length(run: RunFacts) -> Markup | None:
    """Return accuracy by length, and by the share of each sequence that was read."""
    lengths = [
        (f"{b['min']}–{b['max']}" if b["min"] != b["max"] else f"{b['min']}", b["accuracy"])
        for b in run.scores.get("by_length", [])
    ]
    charts = [bar_chart("accuracy by length in time steps", lengths)] if lengths else []
    if run.prefixes:
        points = [(100 * p["share"], p["accuracy"]) for p in run.prefixes]
        series = [Series("accuracy", points)]
        charts.append(
            line_chart("accuracy by share read", series, x="% of each sequence", percent=True)
        )
    if not charts:
        return None
    return _section("By length", element("div", charts, class_="charts"))


def errors(run: RunFacts) -> Markup:
    """Return the most confident mistakes, with line and text."""
    wrong = sorted((a for a in run.answers if not a.is_correct), key=lambda a: -a.probability)
    rows: list[list[Content]] = [
        [a.line, f"{a.probability:.1%}", a.label, a.answer, a.text] for a in wrong[:ERRORS]
    ]
    head = ["line", "probability", "label", "answer", "sequence"]
    shown = _shown_of(len(wrong), ERRORS, "errors, the most confident first")
    return _section("Errors", shown, table(head, rows, words=(2, 3, 4)))


def details(run: RunFacts) -> Markup:
    """Return config and environment, folded."""
    flat = [(name, str(value)) for name, value in run.environment.items() if name != "data"]
    digests = [(f"SHA-256 of {n}", str(v)) for n, v in run.environment.get("data", {}).items()]
    return _section(
        "How it was made",
        element("details", element("summary", "Config"), element("pre", run.config)),
        element("details", element("summary", "Environment"), _facts([*flat, *digests])),
    )


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[Content]],
    *,
    sortable: bool = False,
    words: Sequence[int] = (),
) -> Markup:
    """Return a table that scrolls by itself where the page is narrow.

    Args:
        head: names of the columns.
        rows: their cells.
        sortable: a click on a heading sorts.
        words: columns of words beside the first; the others hold numbers.
    """

    def row(kind: str, cells: Sequence[Content]) -> Markup:
        styles = ["words" if at in words else None for at in range(len(cells))]
        return element(
            "tr",
            [element(kind, cell, class_=s) for cell, s in zip(cells, styles, strict=True)],
        )

    top = row("th", head)
    body = [row("td", cells) for cells in rows]
    inner = element(
        "table", element("thead", top), element("tbody", body),
        class_="sortable" if sortable else None,
    )  # fmt: skip
    return element("div", inner, class_="wide")


def _section(title: str, *children: Content) -> Markup:
    return element("section", element("h2", title), children)


def _figure(name: str, value: str) -> Markup:
    return element("div", element("b", value), element("span", name))


def _facts(rows: Sequence[tuple[str, str]]) -> Markup:
    return element("dl", [[element("dt", name), element("dd", value)] for name, value in rows])


def _score(name: str, value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4f}" if name == "loss" else f"{value:.2%}"


def _shown_of(count: int, shown: int, what: str) -> Markup:
    number = f"{count:,}" if count <= shown else f"{shown} of {count:,}"
    return element("p", f"{number} {what}")
