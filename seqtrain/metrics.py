"""Metrics of a classifier on one split: name, heading, and computation of each.

A metric is one field of `Metrics`. JSON, screens, reports, metrics.jsonl, ``training.monitor`` and
the columns of ``seqtrain runs`` are derived from that field. This module imports no torch, so that
the config can list the names.

C classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Predictions of a split, counted: all that a metric may be computed from.

    In a multi-label task each class of each example is a yes-or-no decision.

    Attributes:
        multi_label: True if an example may have several labels.
        num_examples: Number of examples.
        num_unknown: Number of examples with a label that the training split lacks.
        num_correct: Number of examples with a correct prediction, of all labels if multi-label.
        hits: Number of correct predictions of each class, (C,).
        support: Number of examples of each class, (C,).
        predicted: Number of predictions of each class, (C,).
        loss: Mean cross-entropy in nats, over examples with known labels.
        brier: Mean squared distance between probabilities and labels, over the same examples.
        ece: Expected calibration error.
        auc: Mean over the classes that occur, or None if it wasn't computed.
        average_precision: Mean over the classes that occur, or None if it wasn't computed.
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
        """Number of labels of all examples, those that the training split lacks included."""
        return float(self.support.sum()) + self.num_unknown

    def macro(self, values: Floats) -> float:
        """Return the mean over the classes that occur or are predicted, as scikit-learn does.

        All labels that the training split lacks count as one more class, of value 0.
        """
        classes = int((self.support + self.predicted > 0).sum()) + (self.num_unknown > 0)
        return float(values.sum()) / max(1, classes)


@dataclass(frozen=True)
class Metric:
    """Description of one metric.

    Attributes:
        name: Field of `Metrics`, and name in JSON and in the config.
        title: Heading on screens.
        multi_label_title: Heading if an example may have several labels.
        compute: Function from an `Outcome` to the value.
        form: Format specification of the value.
        each_epoch: True if it is computed after every epoch.
        monitored: True if training.monitor can name it; then it is computed after every epoch.
        shown: Tasks in which screens show it: "all", "single-label", "multi-label", or "rare class"
            (two classes, of which one has less than a fifth of the examples); "details" for the
            line below the table; "" for nowhere.
        smaller_is_better: True for a loss or an error.
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
        """Return a value as screens show it."""
        return "-" if value is None else format(value, self.form)


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
    """Return a field of `Metrics`. The arguments are described at `Metric`."""
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

    In a multi-label task it is the agreement of all yes-or-no decisions. It is 0 if chance alone
    agrees always.

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
        both_yes, both_no = present * predicted, (count - present) * (count - predicted)
        expected = (both_yes + both_no) / count**2
    return 0.0 if expected == 1 else (observed - expected) / (1 - expected)


@dataclass(frozen=True, kw_only=True, repr=False)
class Metrics:
    """Values of all metrics; shares are in [0, 1]. An unknown label makes a prediction wrong."""

    loss: float = metric(
        "loss",
        lambda outcome: outcome.loss,
        form=".4f",
        each_epoch=True,
        shown="all",
        smaller_is_better=True,
    )
    """Mean cross-entropy in nats over examples with known labels; if multi-label, the sum of the
    classes' binary cross-entropies."""
    accuracy: float = metric(
        "accuracy",
        lambda outcome: outcome.num_correct / outcome.num_examples,
        multi_label_title="all labels right",
        each_epoch=True,
        shown="all",
    )
    """Share of correct examples; if multi-label, all labels must be right (subset accuracy)."""
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
    """Accuracy of always predicting the most frequent class of these examples; None if
    multi-label."""
    macro_f1: float = metric(
        "macro F1",
        lambda outcome: outcome.macro(outcome.f1),
        each_epoch=True,
        shown="all",
    )
    """Mean of the classes' F1, over classes that occur or are predicted."""
    weighted_f1: float = metric(
        "weighted F1",
        lambda outcome: (
            float((outcome.f1 * outcome.support).sum()) / max(1.0, outcome.total_support)
        ),
        each_epoch=True,
        shown="single-label",
    )
    """Mean of the classes' F1, weighted by their support."""
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
    """F1 of all labels together; equal to accuracy unless multi-label."""
    macro_precision: float = metric(
        "macro precision", lambda outcome: outcome.macro(outcome.precision)
    )
    """Mean of the classes' precision, over the same classes as `macro_f1`."""
    macro_recall: float = metric("macro recall", lambda outcome: outcome.macro(outcome.recall))
    """Mean of the classes' recall, over the same classes as `macro_f1`."""
    auc: float | None = metric("AUC", lambda outcome: outcome.auc, shown="rare class")
    """Mean area under the ROC curve of each class against all others, over the classes that occur;
    None if it wasn't computed."""
    average_precision: float | None = metric(
        "average precision", lambda outcome: outcome.average_precision, shown="rare class"
    )
    """Mean average precision over the same classes as `auc`; None if it wasn't computed."""
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
    """Mean squared distance between probabilities and the label's 1 among 0s, in [0, 2], over the
    same examples as `loss`."""
    cohen_kappa: float = metric(
        "Cohen's kappa", cohen_kappa, form=".4f", each_epoch=True, shown="details"
    )
    """Agreement of labels and predictions beyond chance, in [-1, 1]."""


METRICS: dict[str, Metric] = {
    each.name: Metric(name=each.name, **each.metadata) for each in fields(Metrics)
}
EPOCH_METRICS: tuple[str, ...] = tuple(
    name for name, metric in METRICS.items() if metric.each_epoch
)
"""Metrics that are computed after every epoch."""
MONITORED: tuple[str, ...] = tuple(
    sorted(
        (name for name, metric in METRICS.items() if metric.monitored),
        key=lambda name: METRICS[name].smaller_is_better,
    )
)
"""Values of training.monitor; those that grow come first."""


def compared_metric(monitor: str, *, has_rare_class: bool = False) -> Metric:
    """Return the metric by which branches are compared with the whole model.

    It is the monitored one. Accuracy replaces a loss, which calibration lowers for the whole model
    only, and metrics that aren't computed for single branches. If one of two classes is rare, it is
    macro F1.
    """
    metric = METRICS["macro_f1" if has_rare_class else monitor]
    is_comparable = metric.each_epoch and not metric.smaller_is_better
    return metric if is_comparable else METRICS["accuracy"]
