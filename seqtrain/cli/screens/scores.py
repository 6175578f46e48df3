"""Scores as tables: the main metrics, the classes, the confusions, accuracy by length."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from seqtrain.cli.screens.console import note, stdout_console
from seqtrain.cli.screens.tables import format_number, print_records, print_table
from seqtrain.metrics import METRICS, compared_metric
from seqtrain.runs.run_directory import CONFIG, RunDirectory
from seqtrain.text import printable, quote

if TYPE_CHECKING:
    from seqtrain.api.evaluate import Evaluation
    from seqtrain.evaluation.scores import Scores

SHOWN_CONFUSIONS = 10
LARGEST_MATRIX = 12
"""Largest number of classes for which the confusion matrix is shown."""
MOST_SHOWN_CLASSES, WORST = 20, 10
"""Largest number of classes of which all are shown. Of more classes, the worst are shown."""
LONGEST_HEADING = 4
"""Largest length of labels as headings of the confusion matrix. Longer ones become letters."""
CORNER_WIDTH = 22
"""Smallest width of the first column of the confusion matrix."""
UNKNOWN_LABELS = "(unknown label)"
"""Name of the row for examples whose label the model doesn't know."""
BRANCH_CONCLUSIONS = {
    "ngrams": ("n-grams", "a linear model is enough"),
    "kernels": ("kernels", "these series need no recurrent network"),
    "trees": ("boosted trees", "these sequences need no recurrent network"),
    "recurrent": ("recurrent network", "the other branches add nothing"),
}
"""Maps each branch to its name for people, and to the conclusion if it scores as high as all
branches together."""
LENGTH_COLUMNS = {
    "min": ("length from", ",.0f"),
    "max": ("to", ",.0f"),
    "num_examples": ("examples", ",.0f"),
    "accuracy": ("accuracy", ".2%"),
}
COVERAGE_COLUMNS = {
    "coverage": ("most confident", ".0%"),
    "min_probability": ("probability from", ".4f"),
    "accuracy": ("accuracy", ".2%"),
}
PREFIX_COLUMNS = {
    "share": ("after", ".0%"),
    "median_steps": ("steps (median)", ",.0f"),
    "accuracy": ("accuracy", ".2%"),
    "agreement": ("same label as at the end", ".2%"),
}
NUMERIC_LABEL = re.compile(r"[+-]?[0-9]{1,300}(\.[0-9]+)?")


def show_evaluation(found: Evaluation, *, every: bool) -> None:
    """Print the scores of a run on stdout, and comparisons of branches and the baseline on stderr.

    The runs of an ensemble are always shown. Scores of prefixes are shown if there are any.

    Args:
        found: Scores of the run, and of its branches or the runs of an ensemble.
        every: Also show branches, all classes, and accuracy by length and by confidence.
    """
    console = stdout_console()
    if found.first_model:
        record = {"before training.refit": "validation"}
        for name, value in found.first_model.items():
            record[METRICS[name].title] = METRICS[name].text(value)
        print_records(console, [record])
    if found.parts and (every or found.ensemble):
        records = [
            {
                "part": name,
                **{scores.title(metric): scores.text(metric) for metric in scores.shown_metrics()},
            }
            for name, scores in {"together": found.scores, **found.parts}.items()
        ]
        print_records(console, records)
    print_scores(console, found.scores, found.split or Path(found.data).name, every=every)
    # Scores of rows that were learned don't show which branches generalize.
    show_branches = not (found.ensemble or found.trained_on_rows)
    note_comparisons(found.scores, found.parts if show_branches else {}, monitor_of(found.run))
    print_metrics(console, found.by_share or [], PREFIX_COLUMNS)


def print_scores(console: Console, scores: Scores, name: str, *, every: bool = False) -> None:
    """Print the main metrics, the classes, the confusions, and the calibration of probabilities.

    Args:
        console: Console to print on.
        scores: Scores to show.
        name: Split or file that was scored.
        every: Show all classes if there are many, and accuracy by length and by confidence.
    """
    record = {"scored on": name, "examples": f"{scores.num_examples:,}"}
    for metric in scores.shown_metrics():
        record[scores.title(metric)] = scores.text(metric)
    print_records(console, [record])
    _print_classes(console, scores, every=every)
    if not _print_matrix(console, scores) and scores.confusions:
        headings = ["confused: label", "predicted", "examples"]
        confusions = scores.confusions[:SHOWN_CONFUSIONS]
        rows = [(str(r["true"]), str(r["predicted"]), f"{r['count']:,}") for r in confusions]
        print_table(console, headings, rows)
    details = [metric for metric in METRICS.values() if metric.shown == "details"]
    console.print(", ".join(f"{scores.title(each)} {scores.text(each)}" for each in details))
    if every:
        print_metrics(console, scores.by_length, LENGTH_COLUMNS)
        print_metrics(console, scores.risk_coverage, COVERAGE_COLUMNS)


def print_metrics(
    console: Console,
    rows: Sequence[Mapping[str, float]],
    columns: Mapping[str, tuple[str, str]],
) -> None:
    """Print a table of metrics, or nothing without rows.

    Args:
        console: Console to print on.
        rows: For each row, a mapping of keys to values.
        columns: Maps each key to its heading and to the format of its values.
    """
    headings = [heading for heading, _ in columns.values()]
    if rows:
        cells = [[format(row[key], form) for key, (_, form) in columns.items()] for row in rows]
        print_table(console, headings, cells)


def monitor_of(run: Path) -> str:
    """Return the metric that chose the best epoch of a run.

    It is "accuracy" for a model folder or the directory of an ensemble, which have no config.

    Raises:
        ConfigError: If the config isn't valid.
    """
    directory = RunDirectory(run)
    return directory.config().training.monitor if directory.holds(CONFIG) else "accuracy"


def note_comparisons(scores: Scores, branches: Mapping[str, Scores | float], monitor: str) -> None:
    """Print the score of each branch, and a line if the model isn't better than the baseline.

    The baseline predicts the most frequent class for each example. If one of two classes is rare,
    there is no line about the baseline. For multi-label scores nothing is printed.

    Args:
        scores: Scores of the whole model.
        branches: Maps each branch to its scores, or to its value of the compared metric. Names that
            aren't in `BRANCH_CONCLUSIONS` are ignored.
        monitor: Metric that chose the best epoch. It determines the metric that is printed (see
            `compared_metric`).
    """
    if scores.majority_baseline is None:
        return
    metric = compared_metric(monitor, has_rare_class=scores.has_rare_class)
    whole = getattr(scores, metric.name)
    title = "" if metric.name == "accuracy" else f"{metric.title} "
    for name, own in branches.items():
        if name in BRANCH_CONCLUSIONS:
            words, conclusion = BRANCH_CONCLUSIONS[name]
            value = own if isinstance(own, float) else getattr(own, metric.name)
            verdict = f"; {conclusion}" if value >= whole else ""
            note(f"{words} only: {title}{value:.1%}, all branches: {whole:.1%}{verdict}")
    if scores.accuracy <= scores.majority_baseline and not scores.has_rare_class:
        label = max(scores.per_class, key=lambda name: scores.per_class[name]["support"])
        note(
            f"always predicting {quote(label)} is right for {scores.majority_baseline:.1%}, so the "
            "model is no better than the majority-class baseline: try `seqtrain tune`, more rows, "
            "other columns"
        )


def _print_classes(console: Console, scores: Scores, *, every: bool) -> None:
    """Print the metrics of the classes, and their means.

    Args:
        console: Console to print on.
        scores: Scores to show.
        every: Print all classes. If False, and there are more than `MOST_SHOWN_CLASSES`, only the
            `WORST` with the lowest F1 are printed.
    """
    labels, heading = display_order(scores.labels), "class"
    by_label, unknown = dict(scores.per_class), scores.num_unknown_labels
    if not every and len(labels) > MOST_SHOWN_CLASSES:
        labels.sort(key=lambda label: (by_label[label]["f1"], -by_label[label]["support"]))
        labels, heading = labels[:WORST], f"worst {WORST} classes"
    columns = {"precision": "precision", "recall": "recall", "f1": "F1"}
    if (every or scores.multi_label or len(labels) == 2) and scores.auc is not None:
        columns["auc"] = "AUC"
        columns["average_precision"] = "average precision"
    if "threshold" in by_label[labels[0]]:
        columns["threshold"] = "threshold"
    if unknown:
        labels.append(UNKNOWN_LABELS)
        by_label[UNKNOWN_LABELS] = {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": unknown}
    labels.append(f"mean of {len(scores.labels) + (unknown > 0):,}")
    means = {f"macro_{key}": key for key in ("precision", "recall", "f1")}
    means |= {"auc": "auc", "average_precision": "average_precision", "num_examples": "support"}
    by_label[labels[-1]] = {key: getattr(scores, name) for name, key in means.items()}
    rows = []
    for name in labels:
        own = by_label[name]
        numbers = [format_number(own.get(key), ".2%") for key in columns]
        rows.append([name, *numbers, f"{int(own['support']):,}"])
    headings = [heading, *columns.values(), "examples"]
    print_table(console, headings, rows, sections=[len(rows) - 1])


def display_order(labels: Sequence[str]) -> list[str]:
    """Return labels in the order of their characters, but numbers by value.

    "class 2" comes before "class 10", and capital letters before small ones.
    """
    if all(NUMERIC_LABEL.fullmatch(label) for label in labels):
        return sorted(labels, key=float)

    def key(label: str) -> list[str | int]:
        # Texts and numbers alternate, so that texts are compared with texts.
        parts = re.split("([0-9]{1,300})", label)
        return [int(part) if i % 2 else part for i, part in enumerate(parts)]

    return sorted(labels, key=key)


def _print_matrix(console: Console, scores: Scores) -> bool:
    """Print the confusion matrix and return True, or return False if it can't be printed.

    It can't be printed if the scores have no matrix, or if the matrix is too large. If labels are
    long, the headings of columns are letters.
    """
    counts, order = scores.confusion_matrix, display_order(scores.labels)
    if counts is None or len(order) > LARGEST_MATRIX:
        return False
    headings = names = [printable(label) for label in order]
    if max(map(len, names)) > LONGEST_HEADING:
        headings = list(string.ascii_uppercase[: len(names)])
        names = [f"{letter} {label}" for letter, label in zip(headings, names, strict=True)]
    indices = [scores.labels.index(label) for label in order]
    rows = [[_count(counts[i][j]) for j in indices] for i in indices]
    if scores.num_unknown_labels:
        names = [*names, UNKNOWN_LABELS]
        rows.append([_count(scores.unknown_predicted[i]) for i in indices])
    corner = "label \\ predicted"
    widest = max(len(cell) for cell in (*headings, *(cell for row in rows for cell in row)))
    if len(order) * (widest + 3) + CORNER_WIDTH > console.width:
        return False
    cells = [(name, *row) for name, row in zip(names, rows, strict=True)]
    print_table(console, [corner, *headings], cells)
    return True


def _count(value: int) -> str:
    """Return a number of examples as text, a dot for 0."""
    return f"{value:,}" if value else "·"
