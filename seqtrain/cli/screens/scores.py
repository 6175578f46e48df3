"""Scores as tables: the main metrics, the classes, the confusions, accuracy by length."""

from __future__ import annotations

import re
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
CORNER = "label \\ predicted"
"""Heading of the first column of the confusion matrix."""
NEVER_FOUND = {"precision": 0.0, "recall": 0.0, "f1": 0.0}
"""Scores of labels that the model doesn't know."""
UNKNOWN_LABELS = "(unknown label)"
"""Name of the row for examples whose label the model doesn't know."""
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
    if found.parts and (every or found.ensemble):
        parts = {"together": found.learned or found.scores, **found.parts}
        print_records(console, [{"part": name, **_main(own)} for name, own in parts.items()])
    name = found.split or Path(found.data).name
    if found.learned is not None:
        name += ", before training.refit"
    print_scores(console, found.scores, name, every=every)
    if found.learned is not None:
        shown = {"after training.refit": "rows that it learned", **_main(found.learned)}
        print_records(console, [shown])
    # Scores of rows that were learned don't show which branches generalize.
    show_branches = not (found.ensemble or found.trained_on_rows or found.learned)
    directory = RunDirectory(found.run)
    monitor = "accuracy"
    if directory.holds(CONFIG):
        monitor = directory.config().training.monitor
    note_comparisons(found.scores, found.parts if show_branches else {}, monitor)
    print_metrics(console, found.by_share or [], PREFIX_COLUMNS)


def print_scores(console: Console, scores: Scores, name: str, *, every: bool = False) -> None:
    """Print the main metrics, the classes, the confusions, and the calibration of probabilities.

    Args:
        console: Console to print on.
        scores: Scores to show.
        name: Split or file that was scored.
        every: Show all classes if there are many, and accuracy by length and by confidence.
    """
    examples = f"{scores.num_examples:,}"
    print_records(console, [{"scored on": name, "examples": examples, **_main(scores)}])
    _print_classes(console, scores, every=every)
    if not _print_matrix(console, scores):
        _print_confusions(console, scores)
    details = [metric for metric in METRICS.values() if metric.shown == "details"]
    console.print(", ".join(f"{scores.title(each)} {scores.text(each)}" for each in details))
    if every:
        print_metrics(console, scores.by_length, LENGTH_COLUMNS)
        print_metrics(console, scores.risk_coverage, COVERAGE_COLUMNS)


def _main(scores: Scores) -> dict[str, str]:
    """Return the main metrics as texts by heading."""
    return {scores.title(metric): scores.text(metric) for metric in scores.shown_metrics()}


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
    records = []
    for row in rows:
        cells = {heading: format(row[key], form) for key, (heading, form) in columns.items()}
        records.append(cells)
    print_records(console, records)


def note_comparisons(scores: Scores, branches: Mapping[str, Scores | float], monitor: str) -> None:
    """Print the scores of the branches, and a line if the model isn't better than the baseline.

    The baseline predicts the most frequent class for each example. If one of two classes is rare,
    there is no line about the baseline. For multi-label scores nothing is printed.

    Args:
        scores: Scores of the whole model.
        branches: Maps each branch to its scores, or to its value of the compared metric. Other
            names are ignored.
        monitor: Metric that chose the best epoch. It determines the metric that is printed (see
            `compared_metric`).
    """
    if scores.majority_baseline is None:
        return
    from seqtrain.model.branches import BRANCHES

    metric = compared_metric(monitor, has_rare_class=scores.has_rare_class)
    whole = getattr(scores, metric.name)
    alone = []
    enough = []
    for branch in BRANCHES:
        if branch.name in branches:
            own = branches[branch.name]
            if isinstance(own, float):
                value = own
            else:
                value = getattr(own, metric.name)
            alone.append(f"{branch.title} {value:.1%}")
            if value >= whole:
                enough.append(branch.title)
    if alone:
        verdict = f"; enough alone: {', '.join(enough)}" if enough else ""
        note(f"{metric.title}: {', '.join(alone)}, all together {whole:.1%}{verdict}")
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
    own = scores.per_class
    heading = "class"
    labels = display_order(scores.labels)
    if not every and len(labels) > MOST_SHOWN_CLASSES:
        labels.sort(key=lambda label: (own[label]["f1"], -own[label]["support"]))
        labels = labels[:WORST]
        heading = f"worst {WORST} classes"
    rows: dict[str, Mapping[str, float | None]] = {label: own[label] for label in labels}
    columns = {"precision": "precision", "recall": "recall", "f1": "F1"}
    if (every or scores.multi_label or len(scores.labels) == 2) and scores.auc is not None:
        columns |= {"auc": "AUC", "average_precision": "average precision"}
    if "threshold" in own[labels[0]]:
        columns["threshold"] = "threshold"
    if scores.num_unknown_labels:
        rows[UNKNOWN_LABELS] = {**NEVER_FOUND, "support": scores.num_unknown_labels}
    rows[f"mean of {scores.num_averaged:,}"] = {
        "precision": scores.macro_precision,
        "recall": scores.macro_recall,
        "f1": scores.macro_f1,
        "auc": scores.auc,
        "average_precision": scores.average_precision,
        "support": scores.num_examples,
    }
    cells = []
    for name, values in rows.items():
        numbers = [format_number(values.get(key), ".2%") for key in columns]
        cells.append([name, *numbers, format_number(values["support"], ",.0f")])
    headings = [heading, *columns.values(), "examples"]
    print_table(console, headings, cells, sections=[len(cells) - 1])


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

    It can't be printed if the scores have no matrix, or if the console has no room for it.
    """
    counts = scores.confusion_matrix
    labels = display_order(scores.labels)
    if counts is None or len(labels) > LARGEST_MATRIX:
        return False
    order = [scores.labels.index(label) for label in labels]
    rows = [
        [label, *_counts(counts[index], order)] for label, index in zip(labels, order, strict=True)
    ]
    if scores.num_unknown_labels:
        rows.append([UNKNOWN_LABELS, *_counts(scores.unknown_predicted, order)])
    headings = [CORNER, *map(printable, labels)]
    widest = max(len(cell) for row in rows for cell in row[1:])
    width = sum(max(widest, len(heading)) + 3 for heading in headings)
    if width > console.width:
        return False
    print_table(console, headings, rows)
    return True


def _counts(counts: Sequence[int], order: Sequence[int]) -> list[str]:
    """Return the counts of classes in an order as texts, a dot for 0."""
    return [f"{counts[index]:,}" if counts[index] else "·" for index in order]


def _print_confusions(console: Console, scores: Scores) -> None:
    """Print the most frequent mistakes, or nothing if the scores have none."""
    records = []
    for mistake in scores.confusions[:SHOWN_CONFUSIONS]:
        true, predicted, count = str(mistake["true"]), str(mistake["predicted"]), mistake["count"]
        records.append({"confused: label": true, "predicted": predicted, "examples": f"{count:,}"})
    print_records(console, records)
