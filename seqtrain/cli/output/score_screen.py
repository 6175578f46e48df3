"""Scores as tables: the figures, the classes, the confusions, accuracy by length."""

import re
import string
from collections.abc import Mapping

from rich.console import Console

from seqtrain.cli.output.console import note
from seqtrain.cli.output.table import TableColumn, print_table
from seqtrain.evaluation.metrics import Scores
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
NUMBER = re.compile(r"[+-]?[0-9]{1,300}(\.[0-9]+)?")


def print_scores(console: Console, scores: Scores, name: str, *, every: bool = False) -> None:
    """Print the figures, the classes, the confusions, and how far to trust probabilities.

    `every`: all of many classes, and accuracies by length and by confidence.
    """
    more = scores.micro_f1 if scores.several else scores.weighted_f1
    means = (scores.accuracy, scores.macro_f1, more)
    columns = [TableColumn("scored on", "words"), TableColumn("examples")]
    columns += [TableColumn("all labels right" if scores.several else "accuracy")]
    columns += [TableColumn("macro F1")]
    columns += [TableColumn("micro F1" if scores.several else "weighted F1", rank=2)]
    columns += [TableColumn("loss", rank=1)]
    figures = (f"{scores.num_examples:,}", *(f"{x:.2%}" for x in means), f"{scores.loss:.4f}")
    print_table(console, columns, [(name, *figures)])
    _print_classes(console, scores, every=every)
    if not _print_matrix(console, scores) and scores.confusions:
        words = [TableColumn("most frequent mistakes: true", "words")]
        words += [TableColumn("predicted", "words"), TableColumn("examples")]
        mistakes = scores.confusions[:SHOWN_CONFUSIONS]
        rows = [(str(r["true"]), str(r["predicted"]), f"{r['count']:,}") for r in mistakes]
        print_table(console, words, rows)
    no_matrix = "; of several labels per row there is no confusion matrix" * scores.several
    console.print(f"calibration error {scores.ece:.2%}, Brier score {scores.brier:.4f}{no_matrix}")
    if every:
        print_table(
            console,
            ["length", "examples", "accuracy"],
            [
                (_span(r), f"{r['num_examples']:,}", f"{r['accuracy']:.2%}")
                for r in scores.by_length
            ],
        )
    if every and scores.risk_coverage:
        print_table(
            console,
            ["most confident", "probability from", "accuracy"],
            [
                (f"{r['coverage']:.0%}", f"{r['min_probability']:.4f}", f"{r['accuracy']:.2%}")
                for r in scores.risk_coverage
            ],
        )


def print_parts(console: Console, scores: Mapping[str, Scores]) -> None:
    """Print the scores of a model, and of its branches or runs alone, by name."""
    print_table(
        console,
        [TableColumn("part", "words"), "accuracy", "macro F1", "loss"],
        [(n, f"{s.accuracy:.2%}", f"{s.macro_f1:.2%}", f"{s.loss:.4f}") for n, s in scores.items()],
    )


def note_floors(scores: Scores, alone: Mapping[str, float]) -> None:
    """Say which branch alone, or the largest class alone, is as good as the whole; by accuracy."""
    if scores.several:
        return  # branches alone have no thresholds of their own
    for name, own in alone.items():
        if name in ALONE and own >= scores.accuracy:
            words, verdict = ALONE[name]
            note(f"{words} alone: {own:.1%}, all together {scores.accuracy:.1%}; {verdict}")
    label, largest = max(scores.per_class.items(), key=lambda each: each[1]["support"])
    majority = largest["support"] / scores.num_examples
    if scores.accuracy <= majority:
        note(f"always {quote(label)}: {majority:.1%}; {NO_GAIN}")


def print_shares(console: Console, by_share: list[dict[str, float]]) -> None:
    """Print the scores of predictions before the end of each sequence."""
    steps = TableColumn("steps (median)", rank=1)
    print_table(
        console,
        ["after", steps, "accuracy", "same label as at the end"],
        [
            (
                *(f"{r['share']:.0%}", f"{r['median_steps']:,.0f}"),
                *(f"{r['accuracy']:.2%}", f"{r['agreement']:.2%}"),
            )
            for r in by_share
        ],
    )


def _span(row: Mapping[str, float]) -> str:
    least, most = int(row["min"]), int(row["max"])
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _print_classes(console: Console, scores: Scores, *, every: bool) -> None:
    """Print the figures of each class, of many the worst, and at the end the means of all."""
    labels, heading = display_order(scores.labels), "class"
    figures = scores.per_class
    if not every and len(labels) > MOST_CLASSES:
        labels.sort(key=lambda label: (figures[label]["f1"], -figures[label]["support"]))
        labels, heading = labels[:WORST], f"worst {WORST} classes"
    columns = [TableColumn(heading, "words"), TableColumn("precision", rank=2)]
    columns += [TableColumn("recall", rank=1), TableColumn("F1")]
    keys, means = ["precision", "recall", "f1"], [scores.macro_precision, scores.macro_recall]
    means += [scores.macro_f1]
    shown = every or scores.several or len(labels) == 2
    if shown and scores.auc is not None and scores.average_precision is not None:
        keys += ["auc", "average_precision"]
        means += [scores.auc, scores.average_precision]
        columns += [TableColumn("AUC", rank=4), TableColumn("average precision", rank=3)]
    if scores.several:
        columns += [TableColumn("threshold", rank=5)]
    columns += [TableColumn("examples")]
    threshold = ["threshold"] * scores.several
    rows = [
        (
            *(x, *(f"{figures[x][key]:.2%}" if key in figures[x] else "-" for key in keys)),
            *(f"{figures[x][key]:.3f}" for key in threshold),
            f"{int(figures[x]['support']):,}",
        )
        for x in labels
    ]
    unknown, blank = scores.num_unknown_labels, [""] * len(threshold)
    rows += [(UNKNOWN, *["0.00%"] * 3, *["-"] * (len(keys) - 3), *blank, f"{unknown:,}")] * (
        unknown > 0
    )
    every_one = f"all {len(scores.labels) + (unknown > 0):,}, mean"
    last = (every_one, *(f"{mean:.2%}" for mean in means), *blank, f"{scores.num_examples:,}")
    print_table(console, columns, [*rows, last], sections=[len(rows)])


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
