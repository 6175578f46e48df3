"""Scores of a classifier on one split: all metrics, scores of each class, and confusions.

This module imports no torch, so that saved scores are shown without it.
"""

import math
from dataclasses import dataclass, field

from seqtrain.metrics import EPOCH_METRICS, METRICS, Metric, Metrics
from seqtrain.sequences.labels import rare_class
from seqtrain.text import Summarized, listed, quote

FEWEST_TO_COMPARE = 30
"""Fewest examples with which a score is certain enough to compare epochs."""
SHOWN_CLASSES = 5
"""Largest number of classes that a warning names."""
FEWEST_TO_WARN = 20
"""Fewest examples with which it is hardly chance that only one class is predicted."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Scores(Metrics, Summarized):
    """Scores of a split: the metrics that `Metrics` describes, scores of each class, confusions.

    `eval --json` and test.json hold these fields.

    Attributes:
        num_examples: Number of examples.
        num_unknown_labels: Number of examples with a label that the training split lacks.
        labels: Label of each class index.
        per_class: Maps each label to the scores of its class: precision, recall, f1, support,
            num_predicted (how often the class is predicted). Keys auc and average_precision are
            added if they were computed. The key threshold is added if multi-label, or if the
            thresholds of two classes differ.
        by_length: Accuracy in groups of examples of similar length, the shortest first, as {min,
            max, num_examples, accuracy}.
        unknown_predicted: How often each class was predicted for unknown labels, (C,). Empty if
            multi-label.
        confusion_matrix: Counts, rows true and columns predicted, (C, C), without unknown labels;
            or None if there are more than MATRIX_CLASSES classes, or if multi-label.
        confusions: The most frequent mistakes as {true, predicted, count}, without unknown labels,
            at most KEPT_CONFUSIONS. Empty if multi-label.
        risk_coverage: Accuracy of the most confident 10 %, 20 % … of the predictions, as
            {coverage, min_probability, accuracy}. Empty if multi-label.
        multi_label: True if an example may have several labels.
    """

    num_examples: int
    num_unknown_labels: int
    labels: list[str]
    per_class: dict[str, dict[str, float | int]]
    by_length: list[dict[str, float | int]]
    unknown_predicted: list[int] = field(default_factory=list)
    confusion_matrix: list[list[int]] | None = None
    confusions: list[dict[str, str | int]] = field(default_factory=list)
    risk_coverage: list[dict[str, float]] = field(default_factory=list)
    multi_label: bool = False

    @property
    def is_sound(self) -> bool:
        """True if each label has the scores of its class, as scores of a file may lack."""
        known = {"precision", "recall", "f1", "support", "num_predicted"}
        sizes = {len(self.confusion_matrix or self.labels), *map(len, self.confusion_matrix or ())}
        return (
            list(self.per_class) == self.labels
            and all(known <= row.keys() for row in self.per_class.values())
            and sizes == {len(self.labels)}
        )

    def summary(self) -> dict[str, str]:
        """Return the main metrics and numbers as text, by heading, for a short representation."""
        return {
            **{self.title(metric): self.text(metric) for metric in self.shown_metrics()},
            "examples": f"{self.num_examples:,}",
            "classes": f"{len(self.labels)}",
        }

    def shown_metrics(self) -> list[Metric]:
        """Return the metrics that screens show for this kind of task, the loss last."""
        tasks = {"all", "multi-label" if self.multi_label else "single-label"}
        if self.has_rare_class:
            tasks.add("rare class")
        shown = [metric for metric in METRICS.values() if metric.shown in tasks]
        return sorted(shown, key=lambda metric: metric.name == "loss")

    def title(self, metric: Metric) -> str:
        """Return the heading of a metric on screens, which may differ if multi-label."""
        if self.multi_label:
            return metric.multi_label_title
        return metric.title

    def text(self, metric: Metric) -> str:
        """Return the value of a metric as screens show it, "-" if it wasn't computed."""
        return metric.text(getattr(self, metric.name))

    @property
    def num_averaged(self) -> int:
        """Number of classes in the macro means, as `Outcome.macro` counts them."""
        own = sum(bool(row["support"] or row["num_predicted"]) for row in self.per_class.values())
        return own + bool(self.num_unknown_labels)

    @property
    def has_rare_class(self) -> bool:
        """True if the task is single-label with two classes, and one class is rare.

        A rare class has at least one example, but less than a fifth of the examples with known
        labels.
        """
        support = [int(row["support"]) for row in self.per_class.values()]
        return not self.multi_label and rare_class(support) is not None

    def metric_values(self) -> dict[str, float]:
        """Return the values of the metrics that are computed after every epoch, by name."""
        return {name: getattr(self, name) for name in EPOCH_METRICS}

    def monitored(self, name: str) -> float:
        """Return the value of the metric `name`, negated if smaller is better, as for a loss."""
        value: float = getattr(self, name)
        if METRICS[name].smaller_is_better:
            return -value
        return value

    def standard_error(self, name: str) -> float:
        """Return the approximate standard error of a metric, as if it were a share of the examples.

        It is 0 for metrics that are better if smaller, such as the loss. It is 1 with fewer than
        FEWEST_TO_COMPARE examples, because few may all be right by chance.
        """
        if METRICS[name].smaller_is_better:
            return 0.0
        if self.num_examples < FEWEST_TO_COMPARE:
            return 1.0
        share = min(max(getattr(self, name), 0.0), 1.0)
        return math.sqrt(share * (1 - share) / self.num_examples)


def missing_class_warnings(scores: Scores, name: str) -> list[str]:
    """Return a list of one warning if classes of train have no example in a split, or [].

    The macro means leave out such a class unless it is predicted.

    Args:
        scores: Scores of a split.
        name: Name of the split for the warning.
    """
    missing = [label for label, row in scores.per_class.items() if not row["support"]]
    if not missing:
        return []
    shown = listed([quote(label) for label in missing], SHOWN_CLASSES)
    verb = "has" if len(missing) == 1 else "have"
    return [
        f"{name}: {len(missing)} of {len(scores.labels)} classes {verb} no row here ({shown}); "
        f"macro F1 is the mean of {scores.num_averaged}: it leaves them out, but counts 0 for "
        "those that are predicted; score rows of all classes"
    ]


def single_class_warnings(scores: Scores, name: str) -> list[str]:
    """Return a list of one warning if all predictions are of one class though several occur, or [].

    If multi-label, or with fewer than FEWEST_TO_WARN examples, there is no warning.

    Args:
        scores: Scores of a split.
        name: Name of the split for the warning.
    """
    if scores.multi_label or scores.num_examples < FEWEST_TO_WARN:
        return []
    occurring = [label for label, row in scores.per_class.items() if row["support"]]
    predicted = [label for label, row in scores.per_class.items() if row["num_predicted"]]
    if len(occurring) < 2 or len(predicted) != 1:
        return []
    return [
        f"{name}: every prediction is {quote(predicted[0])}, so the model hasn't learned to tell "
        "classes apart; try another training.lr, more training.max_epochs, or "
        "training.class_weights: balanced"
    ]
