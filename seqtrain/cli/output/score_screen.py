"""Scores as tables: the figures, the classes, the confusions, accuracy by length."""

import re
import string
from collections.abc import Mapping, Sequence

from rich.console import Console

from seqtrain.cli.output.console import note
from seqtrain.cli.output.table import Record, TableColumn, figure, print_records, print_table
from seqtrain.evaluation.scores import Scores
from seqtrain.metrics import METRICS
from seqtrain.text import printable, quote

SHOWN_CONFUSIONS = 10
LARGEST_MATRIX = 12
MOST_CLASSES, WORST = 20, 10
"""Classes that are all shown; of more the worst."""
LONGEST_HEADING = 4
"""Characters of a label that can head a column of the confusion matrix."""
NO_GAIN = "the model isn't better: try `seqtrain tune`, more rows, other columns"
UNKNOWN = "(unknown label)"
"""Row of the examples whose label the model lacks."""
ALONE = {
    "ngrams": ("n-grams", "a linear model is enough"),
    "kernels": ("kernels", "these series need no recurrent network"),
    "recurrent": ("the recurrent network", "the linear model beside it adds nothing"),
}
"""Branches in words, and what is said where one alone is as good as all."""
EXAMPLES, ACCURACY = (TableColumn("examples"), ",.0f"), (TableColumn("accuracy"), ".2%")
OF_LENGTHS = {
    "min": (TableColumn("length from"), ",.0f"),
    "max": (TableColumn("to"), ",.0f"),
    "num_examples": EXAMPLES,
    "accuracy": ACCURACY,
}
OF_COVERAGE = {
    "coverage": (TableColumn("most confident"), ".0%"),
    "min_probability": (TableColumn("probability from"), ".4f"),
    "accuracy": ACCURACY,
}
OF_SHARES = {
    "share": (TableColumn("after"), ".0%"),
    "median_steps": (TableColumn("steps (median)", rank=1), ",.0f"),
    "accuracy": ACCURACY,
    "agreement": (TableColumn("same label as at the end"), ".2%"),
}
"""Figures by length, by confidence, and by the share of each sequence that was read."""
NUMBER = re.compile(r"[+-]?[0-9]{1,300}(\.[0-9]+)?")


def print_scores(console: Console, scores: Scores, name: str, *, every: bool = False) -> None:
    """Print the figures, the classes, the confusions, and how far to trust probabilities.

    `every`: all of many classes, and accuracies by length and by confidence.
    """
    figures: Record = {
        TableColumn("scored on", "words"): name,
        "examples": f"{scores.num_examples:,}",
    }
    for place, metric in enumerate(scores.shown_metrics()):
        rank = 1 if metric.smaller_is_better else 2 * (place > 1)
        figures[TableColumn(scores.title(metric), rank=rank)] = scores.text(metric)
    print_records(console, [figures])
    _print_classes(console, scores, every=every)
    if not _print_matrix(console, scores) and scores.confusions:
        words = [TableColumn("most frequent mistakes: true", "words")]
        words += [TableColumn("predicted", "words"), TableColumn("examples")]
        mistakes = scores.confusions[:SHOWN_CONFUSIONS]
        rows = [(str(r["true"]), str(r["predicted"]), f"{r['count']:,}") for r in mistakes]
        print_table(console, words, rows)
    details = [metric for metric in METRICS.values() if metric.shown == "details"]
    console.print(", ".join(f"{scores.title(each)} {scores.text(each)}" for each in details))
    if scores.multi_label:
        console.print("of several labels per row there is no confusion matrix")
    if every:
        print_figures(console, scores.by_length, OF_LENGTHS)
        print_figures(console, scores.risk_coverage, OF_COVERAGE)


def print_figures(
    console: Console,
    rows: Sequence[Mapping[str, float]],
    columns: Mapping[str, tuple[TableColumn, str]],
) -> None:
    """Print rows of figures, if there are any: by key the column of each, and how it is written."""
    print_records(
        console,
        ({x: format(row[key], form) for key, (x, form) in columns.items()} for row in rows),
    )


def note_floors(scores: Scores, alone: Mapping[str, float]) -> None:
    """Say how good each branch is alone, and whether the largest class is as good; by accuracy."""
    if scores.multi_label:
        return  # branches alone have no thresholds of their own
    for name, own in alone.items():
        if name in ALONE:
            words, verdict = ALONE[name]
            as_good = f"; {verdict}" if own >= scores.accuracy else ""
            note(f"{words} alone: {own:.1%}, all together {scores.accuracy:.1%}{as_good}")
    label, largest = max(scores.per_class.items(), key=lambda each: each[1]["support"])
    majority = largest["support"] / scores.num_examples
    if scores.accuracy <= majority:
        note(f"always {quote(label)}: {majority:.1%}; {NO_GAIN}")


def _print_classes(console: Console, scores: Scores, *, every: bool) -> None:
    """Print the figures of each class, of many the worst, and at the end the means of all."""
    labels, heading = display_order(scores.labels), "class"
    figures, unknown = dict(scores.per_class), scores.num_unknown_labels
    if not every and len(labels) > MOST_CLASSES:
        labels.sort(key=lambda label: (figures[label]["f1"], -figures[label]["support"]))
        labels, heading = labels[:WORST], f"worst {WORST} classes"
    columns = {
        "precision": TableColumn("precision", rank=2),
        "recall": TableColumn("recall", rank=1),
        "f1": TableColumn("F1"),
    }
    if (every or scores.multi_label or len(labels) == 2) and scores.auc is not None:
        columns["auc"] = TableColumn("AUC", rank=4)
        columns["average_precision"] = TableColumn("average precision", rank=3)
    if scores.multi_label:
        columns["threshold"] = TableColumn("threshold", rank=5)
    if unknown:
        labels.append(UNKNOWN)
        figures[UNKNOWN] = {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": unknown}
    labels.append(f"all {len(scores.labels) + (unknown > 0):,}, mean")
    means = {f"macro_{key}": key for key in ("precision", "recall", "f1")}
    means |= {"auc": "auc", "average_precision": "average_precision", "num_examples": "support"}
    figures[labels[-1]] = {key: getattr(scores, name) for name, key in means.items()}
    records: list[Record] = [
        {
            TableColumn(heading, "words"): name,
            **{column: figure(figures[name].get(key), ".2%") for key, column in columns.items()},
            "examples": f"{int(figures[name]['support']):,}",
        }
        for name in labels
    ]
    print_records(console, records, sections=[len(records) - 1])


def display_order(labels: list[str]) -> list[str]:
    """Return labels in the order people expect: numbers, also in names, by their value."""
    if all(NUMBER.fullmatch(label) for label in labels):
        return sorted(labels, key=float)
    # re.split puts the numbers at odd places, so that texts are compared with texts.
    parts = {label: re.split("([0-9]{1,300})", label) for label in labels}
    return sorted(labels, key=lambda x: [int(p) if n % 2 else p for n, p in enumerate(parts[x])])


def _print_matrix(console: Console, scores: Scores) -> bool:
    """Print the confusion matrix if it has room; long labels have letters at their columns."""
    counts, order = scores.confusion_matrix, display_order(scores.labels)
    if counts is None or len(order) > LARGEST_MATRIX:
        return False
    keys = shown = [printable(label) for label in order]
    if max(map(len, shown)) > LONGEST_HEADING:
        keys = list(string.ascii_uppercase[: len(shown)])
        shown = [f"{key} {label}" for key, label in zip(keys, shown, strict=True)]
    index = [scores.labels.index(label) for label in order]
    cells = [[f"{counts[i][j]:,}" if counts[i][j] else "·" for j in index] for i in index]
    widest = max(len(cell) for cell in (*keys, *(c for row in cells for c in row)))
    if len(order) * (widest + 3) + len("true \\ predicted") + 2 > console.width:
        return False
    rows = [(name, *row) for name, row in zip(shown, cells, strict=True)]
    if scores.num_unknown_labels:
        missed = (scores.unknown_predicted[i] for i in index)
        rows.append((UNKNOWN, *(f"{count:,}" if count else "·" for count in missed)))
    print_table(console, [TableColumn("true \\ predicted", "words"), *keys], rows)
    return True
