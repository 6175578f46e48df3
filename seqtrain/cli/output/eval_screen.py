"""Scores as tables: the figures, the classes, the confusions, accuracy by length."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping

from rich.table import Table
from rich.text import Text

from seqtrain.cli.output.console import plain, small_table, stdout_console
from seqtrain.inference.metrics import Scores
from seqtrain.text import printable

SHOWN_CONFUSIONS = 10
LARGEST_MATRIX = 12
NUMBER = re.compile(r"[+-]?[0-9]{1,300}(\.[0-9]+)?")
LONGEST_HEADING = 4
"""Characters of a label that can head a column of the confusion matrix."""


def show_scores(
    scores: Scores,
    by_share: list[dict[str, float]] | None = None,
    parts: Mapping[str, Scores] | None = None,
) -> None:
    """Print the tables on stdout.

    Args:
        scores: of the answers.
        by_share: of answers before the end, if any.
        parts: of the model's parts alone, by name, if there are several.
    """
    console = stdout_console()
    if parts:
        console.print(_parts(scores, parts))
    for table in score_tables(scores, "scores"):
        console.print(table)
    console.print(_probabilities(scores))
    console.print(_most_confident(scores))
    if by_share is not None:
        console.print(_shares(by_share))


def score_tables(scores: Scores, title: str) -> Iterator[Table]:
    """Yield the tables of one split's scores."""
    yield _figures(scores, title)
    yield _classes(scores)
    if scores.confusion_matrix is not None and len(scores.labels) <= LARGEST_MATRIX:
        yield _matrix(scores.labels, scores.confusion_matrix)
    else:
        yield _confusions(scores)
    yield _lengths(scores)


def _figures(scores: Scores, title: str) -> Table:
    table = small_table(title, "examples", "accuracy", "macro F1", "weighted F1", "loss")
    table.add_row(
        "",
        f"{scores.num_examples:,}",
        f"{scores.accuracy:.2%}",
        f"{scores.macro_f1:.2%}",
        f"{scores.weighted_f1:.2%}",
        f"{scores.loss:.4f}",
    )
    return table


def _parts(scores: Scores, parts: Mapping[str, Scores]) -> Table:
    """What each part answers alone, beside both together."""
    table = small_table("part", "accuracy", "macro F1", "loss")
    for name, own in (("together", scores), *parts.items()):
        row = f"{own.accuracy:.2%}", f"{own.macro_f1:.2%}", f"{own.loss:.4f}"
        table.add_row(name, *row)
    return table


def _classes(scores: Scores) -> Table:
    table = small_table("class", "precision", "recall", "F1", "examples")
    for i in display_order(scores.labels):
        label = scores.labels[i]
        row = scores.per_class[label]
        table.add_row(
            plain(label),
            *(f"{row[name]:.2%}" for name in ("precision", "recall", "f1")),
            f"{row['support']:,}",
        )
    return table


def display_order(labels: list[str]) -> list[int]:
    """Return class indices in the order people expect: labels that are numbers by their value."""
    order = range(len(labels))
    if all(NUMBER.fullmatch(label) for label in labels):
        return sorted(order, key=lambda i: float(labels[i]))
    return list(order)


def _matrix(labels: list[str], matrix: list[list[int]]) -> Table:
    """Count answers. Short labels head their columns; longer ones have letters there."""
    order = display_order(labels)
    shown = [printable(labels[i]) for i in order]
    keys = shown
    if max(map(len, shown)) > LONGEST_HEADING:
        keys = list(string.ascii_uppercase[: len(shown)])
        shown = [f"{key} {label}" for key, label in zip(keys, shown, strict=True)]
    table = small_table("true \\ predicted", *keys)
    for i, name in zip(order, shown, strict=True):
        table.add_row(Text(name), *(f"{matrix[i][j]:,}" if matrix[i][j] else "·" for j in order))
    return table


def _confusions(scores: Scores) -> Table:
    """The most frequent mistakes, where the matrix is too wide to read."""
    table = small_table("most frequent mistakes: true", "predicted", "examples")
    for row in scores.confusions[:SHOWN_CONFUSIONS]:
        table.add_row(plain(str(row["true"])), plain(str(row["predicted"])), f"{row['count']:,}")
    return table


def _lengths(scores: Scores) -> Table:
    table = small_table("length", "examples", "accuracy")
    for group in scores.by_length:
        table.add_row(
            f"{group['min']:,} to {group['max']:,}",
            f"{group['num_examples']:,}",
            f"{group['accuracy']:.2%}",
        )
    return table


def _probabilities(scores: Scores) -> Table:
    """How far probabilities are from what comes true."""
    table = small_table("probabilities", "calibration error", "Brier score", "log loss")
    table.add_row("", f"{scores.ece:.2%}", f"{scores.brier:.4f}", f"{scores.loss:.4f}")
    return table


def _most_confident(scores: Scores) -> Table:
    """What the answers above a probability are worth."""
    table = small_table("most confident", "probability from", "accuracy")
    for row in scores.risk_coverage:
        table.add_row(
            f"{row['coverage']:.0%}", f"{row['min_probability']:.4f}", f"{row['accuracy']:.2%}"
        )
    return table


def _shares(by_share: list[dict[str, float]]) -> Table:
    """How early one can decide."""
    table = small_table("after", "steps (median)", "accuracy", "same answer as at the end")
    for row in by_share:
        table.add_row(
            f"{row['share']:.0%}",
            f"{row['median_steps']:,.0f}",
            f"{row['accuracy']:.2%}",
            f"{row['agreement']:.2%}",
        )
    return table
