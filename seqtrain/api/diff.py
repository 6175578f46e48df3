"""`seqtrain.diff`: the difference of two runs' predictions for the same examples."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from seqtrain.api.evaluate import Labelled, load_labelled
from seqtrain.api.named_runs import NO_TEST, RunLike, default_split
from seqtrain.api.split_results import predicted_rows
from seqtrain.errors import DataError, parameter
from seqtrain.evaluation.bootstrap import MetricDifference, paired_bootstrap
from seqtrain.evaluation.predicted_example import PredictedExample
from seqtrain.sequences.labels import LabelSet, unknown_rows
from seqtrain.text import Summarized, counted, display_name, quote

Pair: TypeAlias = tuple[PredictedExample, PredictedExample]


@dataclass(frozen=True, repr=False)
class RunDifference(Summarized):
    """Differences of two runs, a and b.

    Attributes:
        runs: Directories of a and b.
        data: Name of the file or files that were read, as run a names them.
        metrics: Accuracy and F1 of both runs, with the confidence interval of the difference.
        num_examples: Number of examples that both runs predicted.
        left_out: Number of examples that only one run predicted, which aren't compared.
        counts: Maps "both", "only_a", "only_b" and "neither" to the number of examples that these
            runs predicted correctly.
        rows: Pairs of predictions, by a and by b, for each example whose predicted labels differ.
            Pairs with a correct prediction come first, and then pairs of wrong predictions. Within
            each group, the most confident come first.
        warnings: Limits of the comparison, one line each.
    """

    runs: tuple[Path, Path]
    data: str
    metrics: list[MetricDifference]
    num_examples: int
    left_out: int
    counts: dict[str, int]
    rows: list[Pair]
    warnings: list[str]

    def summary(self) -> dict[str, str]:
        """Return runs, data, metrics with intervals, counts, and any warnings, by heading."""
        metrics = {
            each.metric.replace("_", " "): f"{each.a:.2%} and {each.b:.2%}, difference "
            f"{each.difference:+.2%} (95 % interval {each.low:+.1%} to {each.high:+.1%})"
            for each in self.metrics
        }
        right = {f"right, {name.replace('_', ' ')}": f"{n:,}" for name, n in self.counts.items()}
        found = {"runs": " and ".join(map(str, self.runs)), "data": self.data, **metrics, **right}
        return found | ({"warnings": "; ".join(self.warnings)} if self.warnings else {})


def diff(
    a: RunLike,
    b: RunLike,
    *,
    split: str | None = None,
    data: Any = None,
    device: str = "auto",
) -> RunDifference:
    """Compare the predictions of two runs, a and b, for the same examples.

    Args:
        a: A run directory, a model folder, what `fit` or `load` returned, or None for the newest
            run.
        b: The other run, as for `a`.
        split: test, validation or train. None is test, or validation if only this split is in both
            runs.
        data: Labelled data to compare the runs on, in place of a split: a file, or a table as `fit`
            takes it; or None.
        device: auto, cpu, cuda, cuda:N or mps.

    Raises:
        DataError: If the runs' data differ both in name and in content. If the runs share no row,
            or read different labels for a row. Also if `evaluate` would raise it.
        CheckpointError, ConfigError, RunError: If `evaluate` would raise it for a run.
    """
    name = split or (default_split(a, b) if data is None else None)
    warnings = [NO_TEST] if name == "validation" and split is None else []
    first, second = (load_labelled(run, split=name, data=data, device=device) for run in (a, b))
    pairs = _pairs(first, second)
    left_out = len(first.store) + len(second.store) - 2 * len(pairs)
    warnings += first.warnings + second.warnings
    if left_out:
        warnings.append(f"left out {counted(left_out, 'row')} that only one run predicts")
    classifiers = [first.classifier, second.classifier]
    multi_label = any(each.preprocessing.multi_label for each in classifiers)
    classes = dict.fromkeys(label for each in classifiers for label in each.labels)
    right = [(x.is_correct, y.is_correct) for x, y in pairs]
    sides = {"both": (True, True), "only_a": (True, False)}
    sides |= {"only_b": (False, True), "neither": (False, False)}
    return RunDifference(
        runs=(first.classifier.path, second.classifier.path),
        data=first.source,
        metrics=_metrics(pairs, list(classes), multi_label=multi_label),
        num_examples=len(pairs),
        left_out=left_out,
        counts={side: right.count(who) for side, who in sides.items()},
        rows=sorted(
            ((x, y) for x, y in pairs if x.predicted != y.predicted),
            key=lambda of: (not any(x.is_correct for x in of), -max(x.probability for x in of)),
        ),
        warnings=list(dict.fromkeys(warnings)),
    )


def _metrics(
    pairs: Sequence[Pair], classes: Sequence[str], *, multi_label: bool
) -> list[MetricDifference]:
    """Return the differences of two runs in accuracy and F1, as `paired_bootstrap` does.

    All labels that neither run was trained on count as one additional class.

    Args:
        pairs: Predictions of both runs for each example.
        classes: Labels of both runs.
        multi_label: True if an example may have several labels.
    """
    label_set = LabelSet(tuple(classes), multi_label)
    rows = ((x.labels, x.predicted_labels, y.predicted_labels) for x, y in pairs)
    encoded = []
    for column in zip(*rows, strict=True):
        labels = label_set.encode(column)
        unknown = unknown_rows(labels)
        if multi_label:
            encoded.append(np.column_stack((labels > 0, unknown)))
        else:
            encoded.append(np.where(unknown, len(classes), labels))
    return paired_bootstrap(*encoded)


def _pairs(a: Labelled, b: Labelled) -> list[Pair]:
    """Return the predictions of both runs for each example that both predicted.

    Examples are matched by file and line. They are in the order of run a.

    Raises:
        DataError: If the data differ both in name and in content. If both runs predicted no common
            example, or read different labels for one.
    """
    hint = f"give one labelled file for both with {parameter('data')}"
    names = " and ".join(display_name(each.source) for each in (a, b))
    if a.source != b.source and list(a.digests.values()) != list(b.digests.values()):
        raise DataError(f"{names} differ, so the runs can't be compared on them; {hint}")
    of_a, of_b = ({(x.file, x.line): x for x in predicted_rows(each)} for each in (a, b))
    pairs = [(row, of_b[place]) for place, row in of_a.items() if place in of_b]
    if not pairs:
        raise DataError(f"{names}: the runs hold out different rows; {hint}")
    for x, y in pairs:
        if x.labels != y.labels:
            raise DataError(
                f"{display_name(a.source)}:{x.line}: the label is {quote(x.label)} for one "
                f"run and {quote(y.label)} for the other; do both read the same column?"
            )
    return pairs
