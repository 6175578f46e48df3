"""Scores as tables: the figures, the classes, the confusions, accuracy by length."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping

from rich.console import Console

from seqtrain.cli.output.columns import Column, print_columns, total_width
from seqtrain.cli.output.console import stdout_console
from seqtrain.evaluation.metrics import Scores
from seqtrain.text import printable

SHOWN_CONFUSIONS = 10
LARGEST_MATRIX = 12
WORST = 10
"""Classes shown where there are too many to show all."""
NUMBER = re.compile(r"[+-]?[0-9]{1,300}(\.[0-9]+)?")
LONGEST_HEADING = 4
"""Characters of a label that can head a column of the confusion matrix."""


def show_scores(
    scores: Scores,
    name: str,
    by_share: list[dict[str, float]] | None = None,
    parts: Mapping[str, Scores] | None = None,
) -> None:
    """Print the tables on stdout.

    Args:
        scores: of the answers.
        name: of the split or file.
        by_share: of answers before the end, if any.
        parts: of the model's parts alone, by name, if there are several.
    """
    console = stdout_console()
    if parts:
        print_columns(console, _parts(scores, parts))
    print_scores(console, scores, name)
    print_columns(console, _probabilities(scores))
    print_columns(console, _most_confident(scores))
    if by_share is not None:
        print_columns(console, _shares(by_share))


def print_scores(console: Console, scores: Scores, name: str, most: int | None = None) -> None:
    """Print the tables of one split's scores.

    Args:
        console: where to.
        scores: of the answers.
        name: of the split or file.
        most: classes that are all shown; of more the worst `WORST`, and their mean; None: all.
    """
    print_columns(console, _figures(scores, name))
    print_columns(console, _classes(scores, most), sections=1)
    matrix = scores.confusion_matrix
    if matrix is not None and _fits(_matrix(scores.labels, matrix), console.width):
        print_columns(console, _matrix(scores.labels, matrix))
    elif scores.confusions:
        print_columns(console, _confusions(scores))
    print_columns(console, _lengths(scores))


def _figures(scores: Scores, name: str) -> list[Column]:
    return [
        Column("scored on", [name], "words"),
        Column("examples", [f"{scores.num_examples:,}"]),
        Column("accuracy", [f"{scores.accuracy:.2%}"]),
        Column("macro F1", [f"{scores.macro_f1:.2%}"]),
        Column("weighted F1", [f"{scores.weighted_f1:.2%}"], rank=2),
        Column("loss", [f"{scores.loss:.4f}"], rank=1),
    ]


def _parts(scores: Scores, parts: Mapping[str, Scores]) -> list[Column]:
    """What each part answers alone, beside both together."""
    every = [scores, *parts.values()]
    return [
        Column("part", ["together", *parts], "words"),
        Column("accuracy", [f"{own.accuracy:.2%}" for own in every]),
        Column("macro F1", [f"{own.macro_f1:.2%}" for own in every]),
        Column("loss", [f"{own.loss:.4f}" for own in every]),
    ]


def _classes(scores: Scores, most: int | None) -> list[Column]:
    """The figures of each class; of many the worst, and at the end the means of all."""
    order, heading = display_order(scores.labels), "class"
    if most is not None and len(order) > most:
        rows = {i: scores.per_class[scores.labels[i]] for i in order}
        order = sorted(order, key=lambda i: (rows[i]["f1"], -rows[i]["support"]))[:WORST]
        heading = f"worst {WORST} classes"
    labels = [scores.labels[i] for i in order]
    count = len(scores.labels)

    def column(heading: str, name: str, mean: float, rank: int) -> Column:
        values = [*(scores.per_class[label][name] for label in labels), mean]
        return Column(heading, [f"{value:.2%}" for value in values], rank=rank)

    support = [scores.per_class[label]["support"] for label in labels]
    return [
        Column(heading, [*labels, f"all {count:,}, mean"], "words"),
        column("precision", "precision", scores.macro_precision, 2),
        column("recall", "recall", scores.macro_recall, 1),
        column("F1", "f1", scores.macro_f1, 0),
        Column("examples", [f"{n:,}" for n in [*support, scores.num_examples]]),
    ]


def display_order(labels: list[str]) -> list[int]:
    """Return class indices in the order people expect: numbers, also in names, by their value."""
    order = range(len(labels))
    if all(NUMBER.fullmatch(label) for label in labels):
        return sorted(order, key=lambda i: float(labels[i]))
    # re.split puts the numbers at odd places, so that texts are compared with texts.
    parts = [re.split("([0-9]{1,300})", label) for label in labels]
    return sorted(order, key=lambda i: [int(p) if n % 2 else p for n, p in enumerate(parts[i])])


def _matrix(labels: list[str], matrix: list[list[int]]) -> list[Column]:
    """Count answers. Short labels head their columns; longer ones have letters there."""
    order = display_order(labels)
    shown = [printable(labels[i]) for i in order]
    keys = shown
    if max(map(len, shown)) > LONGEST_HEADING and len(shown) <= len(string.ascii_uppercase):
        keys = list(string.ascii_uppercase[: len(shown)])
        shown = [f"{key} {label}" for key, label in zip(keys, shown, strict=True)]
    cells = [[f"{matrix[i][j]:,}" if matrix[i][j] else "·" for i in order] for j in order]
    return [
        Column("true \\ predicted", shown, "words"),
        *(Column(key, column) for key, column in zip(keys, cells, strict=True)),
    ]


def _fits(matrix: list[Column], width: int) -> bool:
    """Whether a matrix can be read: not too many columns, and room for all of them."""
    return len(matrix) <= LARGEST_MATRIX + 1 and total_width(matrix) <= width


def _confusions(scores: Scores) -> list[Column]:
    """The most frequent mistakes, where the matrix is too wide to read."""
    rows = scores.confusions[:SHOWN_CONFUSIONS]
    return [
        Column("most frequent mistakes: true", [str(row["true"]) for row in rows], "words"),
        Column("predicted", [str(row["predicted"]) for row in rows], "words"),
        Column("examples", [f"{row['count']:,}" for row in rows]),
    ]


def _lengths(scores: Scores) -> list[Column]:
    groups = scores.by_length
    return [
        Column("length", [_span(int(row["min"]), int(row["max"])) for row in groups]),
        Column("examples", [f"{row['num_examples']:,}" for row in groups]),
        Column("accuracy", [f"{row['accuracy']:.2%}" for row in groups]),
    ]


def _span(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _probabilities(scores: Scores) -> list[Column]:
    """How far probabilities are from what comes true."""
    return [
        Column("calibration error", [f"{scores.ece:.2%}"]),
        Column("Brier score", [f"{scores.brier:.4f}"]),
        Column("log loss", [f"{scores.loss:.4f}"]),
    ]


def _most_confident(scores: Scores) -> list[Column]:
    """What the answers above a probability are worth."""
    rows = scores.risk_coverage
    return [
        Column("most confident", [f"{row['coverage']:.0%}" for row in rows]),
        Column("probability from", [f"{row['min_probability']:.4f}" for row in rows]),
        Column("accuracy", [f"{row['accuracy']:.2%}" for row in rows]),
    ]


def _shares(by_share: list[dict[str, float]]) -> list[Column]:
    """How early one can decide."""
    return [
        Column("after", [f"{row['share']:.0%}" for row in by_share]),
        Column("steps (median)", [f"{row['median_steps']:,.0f}" for row in by_share], rank=1),
        Column("accuracy", [f"{row['accuracy']:.2%}" for row in by_share]),
        Column("same answer as at the end", [f"{row['agreement']:.2%}" for row in by_share]),
    ]
