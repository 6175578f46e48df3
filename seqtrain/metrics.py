"""Metrics of a classifier on one split: name, heading, and computation of each.

A metric is one field of `Metrics`. JSON, screens, reports, metrics.jsonl, ``training.monitor`` and
the columns of ``seqtrain runs`` are derived from that field. This module imports no torch, so that
the config can list the names.

C is the number of classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Counts and errors of the predictions for one split. Every metric is computed from them.

    In a multi-label task each class of each example is a yes-or-no decision.

    Attributes:
        multi_label: True if an example may have several labels.
        num_examples: Number of examples.
        num_unknown: Number of examples with at least one label that the training split lacks.
        num_correct: Number of examples that are predicted correctly. If multi-label, all labels of
            the example must be right.
        hits: Number of examples of each class for which this class is predicted, (C,).
        support: Number of examples of each class, (C,).
        predicted: Number of examples for which each class is predicted, (C,).
        loss: Mean cross-entropy in nats, over the examples without unknown labels.
        brier: Brier score, over the same examples.
        ece: Expected calibration error over 15 intervals of probability.
        auc: Mean area under the ROC curve of the classes that occur, or None if not computed.
        average_precision: Mean average precision of the same classes, or None if not computed.
    """

    multi_label: bool
    num_examples: int
    num_unknown: int
    num_correct: int
    hits: Floats
    support: Floats
    predicted: Floats
    loss: float
    brier: float
    ece: float
    auc: float | None
    average_precision: float | None

    @property
    def precision(self) -> Floats:
        """Precision of each class, (C,); 0 for a class that is never predicted."""
        precision: Floats = self.hits / self.predicted.clip(min=1)
        return precision

    @property
    def recall(self) -> Floats:
        """Recall of each class, (C,); 0 for a class without examples."""
        recall: Floats = self.hits / self.support.clip(min=1)
        return recall

    @property
    def f1(self) -> Floats:
        """F1 of each class, (C,); 0 for a class that is neither predicted nor present."""
        f1: Floats = 2 * self.hits / (self.support + self.predicted).clip(min=1)
        return f1

    @property
    def total_support(self) -> float:
        """Number of labels of all examples. Unknown labels of one example count as one label."""
        return float(self.support.sum()) + self.num_unknown

    def macro(self, values: Floats) -> float:
        """Return the mean of a metric over the classes that occur or are predicted.

        All labels that the training split lacks count together as one more class with the value 0.
        Without any class, return 0. scikit-learn averages over the same classes, but in multi-label
        tasks over all classes.

        Args:
            values: The metric of each class, (C,). It must be 0 for classes that don't occur and
                aren't predicted.
        """
        classes = int((self.support + self.predicted > 0).sum()) + (self.num_unknown > 0)
        return float(values.sum()) / max(1, classes)


@dataclass(frozen=True)
class Metric:
    """Description of one metric.

    Attributes:
        name: Name of the field of `Metrics`. The config and JSON use the same name.
        title: Heading on screens.
        multi_label_title: Heading on screens in a multi-label task.
        compute: Function that receives an `Outcome` and returns the value, or None if the metric
            isn't defined for the task or wasn't computed.
        form: Format specification of the value, such as ".2%".
        each_epoch: True if the metric is recorded after every epoch.
        monitored: True if training.monitor can name the metric.
        shown: Condition under which screens show the metric. "all": for every task. "single-label"
            and "multi-label": for tasks of this kind. "rare class": if one of two classes has less
            than a fifth of the examples. "details": for every task, below the table of scores. "":
            only JSON and reports have the metric.
        smaller_is_better: True for a loss or an error, False for a metric whose larger values are
            better.
    """

    name: str
    title: str
    multi_label_title: str
    compute: Callable[[Outcome], float | None]
    form: str
    each_epoch: bool
    monitored: bool
    shown: str
    smaller_is_better: bool

    def text(self, value: float | None) -> str:
        """Return a value of the metric as text for screens: "-" for None."""
        if value is None:
            return "-"
        return format(value, self.form)


def metric(
    title: str,
    compute: Callable[[Outcome], float | None],
    *,
    multi_label_title: str = "",
    form: str = ".2%",
    each_epoch: bool = False,
    monitored: bool | None = None,
    shown: str = "",
    smaller_is_better: bool = False,
) -> Any:
    """Return a dataclass field for `Metrics` that describes one metric.

    The arguments have the meaning of the attributes of `Metric`. By default, `multi_label_title`
    equals `title`, and `monitored` equals `each_epoch`.
    """
    settings = {
        "title": title,
        "multi_label_title": multi_label_title or title,
        "compute": compute,
        "form": form,
        "each_epoch": each_epoch,
        "monitored": each_epoch if monitored is None else monitored,
        "shown": shown,
        "smaller_is_better": smaller_is_better,
    }
    return field(metadata=settings)


def cohen_kappa(outcome: Outcome) -> float:
    """Return Cohen's kappa: agreement of labels and predictions beyond chance, in [-1, 1].

    In a multi-label task, each class of each example is one decision, and all decisions are
    compared together. If the agreement expected by chance is 1, return 0.

    Reference:
        Cohen 1960, "A coefficient of agreement for nominal scales".
    """
    count = float(outcome.num_examples)
    observed = outcome.num_correct / count
    expected = float((outcome.support * outcome.predicted).sum()) / count**2
    if outcome.multi_label:
        count *= len(outcome.support)
        hits, present, predicted = (
            float(each.sum()) for each in (outcome.hits, outcome.support, outcome.predicted)
        )
        observed = (count - present - predicted + 2 * hits) / count
        both_yes = present * predicted
        both_no = (count - present) * (count - predicted)
        expected = (both_yes + both_no) / count**2
    if expected == 1:
        return 0.0
    return (observed - expected) / (1 - expected)


@dataclass(frozen=True, kw_only=True, repr=False)
class Metrics:
    """Values of all metrics for one split. Shares are in [0, 1], not in percent.

    The prediction for an example is wrong if the training split lacks a label of this example.
    """

    loss: float = metric(
        "loss",
        lambda outcome: outcome.loss,
        form=".4f",
        each_epoch=True,
        shown="all",
        smaller_is_better=True,
    )
    """Mean cross-entropy in nats, over the examples without unknown labels. If multi-label, the
    cross-entropy of an example is the sum of the binary cross-entropies of all classes."""
    accuracy: float = metric(
        "accuracy",
        lambda outcome: outcome.num_correct / outcome.num_examples,
        multi_label_title="all labels right",
        each_epoch=True,
        shown="all",
    )
    """Share of examples that are predicted correctly. If multi-label, all labels of an example must
    be right (subset accuracy)."""
    majority_baseline: float | None = metric(
        "majority class",
        lambda outcome: (
            None
            if outcome.multi_label
            else float(outcome.support.max(initial=0)) / outcome.num_examples
        ),
        each_epoch=True,
        monitored=False,
        shown="single-label",
    )
    """Accuracy of always predicting the most frequent class of this split, or None if multi-label.
    Labels that the training split lacks aren't considered as this class."""
    macro_f1: float = metric(
        "macro F1",
        lambda outcome: outcome.macro(outcome.f1),
        each_epoch=True,
        shown="all",
    )
    """Mean of the classes' F1, over the classes that occur or are predicted."""
    weighted_f1: float = metric(
        "weighted F1",
        lambda outcome: (
            float((outcome.f1 * outcome.support).sum()) / max(1.0, outcome.total_support)
        ),
        each_epoch=True,
        shown="single-label",
    )
    """Mean of the classes' F1, weighted by the number of examples of the class. Labels that the
    training split lacks count with F1 0."""
    micro_f1: float = metric(
        "micro F1",
        lambda outcome: (
            2
            * float(outcome.hits.sum())
            / max(1.0, outcome.total_support + float(outcome.predicted.sum()))
        ),
        each_epoch=True,
        shown="multi-label",
    )
    """F1 of the labels of all classes counted together. It equals accuracy unless multi-label."""
    macro_precision: float = metric(
        "macro precision", lambda outcome: outcome.macro(outcome.precision)
    )
    """Mean of the classes' precision, over the same classes as `macro_f1`."""
    macro_recall: float = metric("macro recall", lambda outcome: outcome.macro(outcome.recall))
    """Mean of the classes' recall, over the same classes as `macro_f1`."""
    auc: float | None = metric("AUC", lambda outcome: outcome.auc, shown="rare class")
    """Mean area under the ROC curve of each class against all others, over the classes that occur,
    or None if it wasn't computed."""
    average_precision: float | None = metric(
        "average precision", lambda outcome: outcome.average_precision, shown="rare class"
    )
    """Mean average precision over the same classes as `auc`, or None if it wasn't computed."""
    ece: float = metric(
        "calibration error",
        lambda outcome: outcome.ece,
        shown="details",
        smaller_is_better=True,
    )
    """Expected calibration error over 15 intervals of probability (Guo et al. 2017, section 2)."""
    brier: float = metric(
        "Brier score",
        lambda outcome: outcome.brier,
        form=".4f",
        shown="details",
        smaller_is_better=True,
    )
    """Brier score: the squared differences between probabilities and labels (1 or 0), summed over
    the classes, in [0, 2], or in [0, C] if multi-label. Mean over the same examples as `loss`."""
    cohen_kappa: float = metric(
        "Cohen's kappa", cohen_kappa, form=".4f", each_epoch=True, shown="details"
    )
    """Agreement of labels and predictions beyond chance, in [-1, 1]."""


METRICS: dict[str, Metric] = {
    each.name: Metric(name=each.name, **each.metadata) for each in fields(Metrics)
}
"""Maps the name of each metric to its description, in the order of `Metrics`."""
EPOCH_METRICS: tuple[str, ...] = tuple(
    name for name, metric in METRICS.items() if metric.each_epoch
)
"""Names of the metrics that are recorded after every epoch."""
MONITORED: tuple[str, ...] = tuple(
    sorted(
        (name for name, metric in METRICS.items() if metric.monitored),
        key=lambda name: METRICS[name].smaller_is_better,
    )
)
"""Values of training.monitor. Metrics whose larger values are better come first."""


def compared_metric(monitor: str, *, has_rare_class: bool = False) -> Metric:
    """Return the metric by which the branches of a model are compared with the whole model.

    Normally, this is the metric that `monitor` names. In place of a loss it is accuracy, because
    calibration lowers only the loss of the whole model. If one of two classes is rare, it is macro
    F1.

    Args:
        monitor: Value of training.monitor.
        has_rare_class: True if the task has two classes and one of them is rare.
    """
    metric = METRICS["macro_f1" if has_rare_class else monitor]
    is_comparable = metric.each_epoch and not metric.smaller_is_better
    if is_comparable:
        return metric
    return METRICS["accuracy"]


def perplexity(loss: float) -> float:
    """Return the perplexity of a mean loss per token in nats: its exponential, at most exp(700)."""
    return math.exp(min(loss, 700.0))
