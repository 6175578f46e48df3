"""Scores of a classifier on one split, each a mean over examples.

B examples, C classes. Definitions follow scikit-learn; the tests compare with it. Where an example
may have several labels, a prediction is right if all of them are.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from seqtrain.data.labels import has_class, unknown_rows
from seqtrain.data.store import Array, SequenceStore
from seqtrain.evaluation.calibration import (
    CELLS,
    best_threshold,
    coverage_points,
    double_blocks,
    threshold_curve,
)
from seqtrain.evaluation.logits import check_finite
from seqtrain.model.classifier import ClassifierNetwork
from seqtrain.text import Summarized, quote

MAIN = ("loss", "accuracy", "macro_f1")
"""Fields of `Scores` that stand for all where there is room for few: a test split, a branch."""
OF_AN_EPOCH = (*MAIN, "weighted_f1", "micro_f1")
"""Fields that metrics.jsonl and logs hold after every epoch."""
LENGTH_GROUPS = 5
CONFIDENCE_BINS = 15
"""Equal intervals of probability, for the expected calibration error."""
COVERAGE_LEVELS = 10
MATRIX_CLASSES = 200
"""Classes up to which the whole confusion matrix is kept: it grows with their square."""
KEPT_CONFUSIONS = 100
"""Most frequent confusions that are kept, however many classes there are."""
FEW = 30
"""Examples below which a score hardly says which epoch is better."""
FEWEST_TO_DOUBT = 20
"""Examples from which on one class for all of them is no chance."""


@dataclass(frozen=True, repr=False)
class Scores(Summarized):
    """What `eval --json` and `test.json` hold; fractions are in [0, 1].

    Attributes:
        loss: mean cross-entropy in nats, over examples whose label train has; of several labels
            the sum of all classes' binary cross-entropies.
        accuracy, macro_f1, weighted_f1, micro_f1: a label that train lacks is wrong. Accuracy is
            subset accuracy where there are several; micro F1 is accuracy where there are not.
        macro_precision, macro_recall: means over the same classes as macro_f1.
        auc, average_precision: means over the classes that occur, each against all others.
        num_unknown_labels: examples among num_examples whose label train lacks.
        unknown_predicted: how often each class was predicted for them.
        labels: label of each class index.
        per_class: precision, recall, f1 and support by label; auc and average_precision, and the
            threshold of several labels.
        confusion_matrix: counts; rows true, columns predicted; None above `MATRIX_CLASSES`, and of
            several labels.
        confusions: the most frequent mistakes, as {true, predicted, count}; `KEPT_CONFUSIONS` at
            most.
        by_length: accuracy in groups of like length, shortest first.
        ece: expected calibration error, mean over 15 intervals of probability.
        brier: mean over the same examples as loss of the squared distance between probabilities and
            the label's 1 among 0s, in [0, 2].
        risk_coverage: accuracy of the most confident 10 %, 20 % … of all predictions, as
            {coverage, min_probability, accuracy}; 1 - accuracy is the risk. None of several labels.
        multi_label: True if an example can have any number of labels.
    """

    loss: float
    accuracy: float
    macro_f1: float
    weighted_f1: float
    micro_f1: float
    macro_precision: float
    macro_recall: float
    auc: float | None
    average_precision: float | None
    num_examples: int
    num_unknown_labels: int
    labels: list[str]
    per_class: dict[str, dict[str, float | int]]
    by_length: list[dict[str, float | int]]
    ece: float
    brier: float
    unknown_predicted: list[int] = field(default_factory=list)
    confusion_matrix: list[list[int]] | None = None
    confusions: list[dict[str, str | int]] = field(default_factory=list)
    risk_coverage: list[dict[str, float]] = field(default_factory=list)
    multi_label: bool = False

    def summary(self) -> dict[str, str]:
        """Return the main figures."""
        return {
            "subset accuracy" if self.multi_label else "accuracy": f"{self.accuracy:.2%}",
            **({"micro F1": f"{self.micro_f1:.2%}"} if self.multi_label else {}),
            "macro F1": f"{self.macro_f1:.2%}",
            "loss": f"{self.loss:.4f}",
            "examples": f"{self.num_examples:,}",
            "classes": f"{len(self.labels)}",
        }

    def figures(self, names: Sequence[str] = MAIN) -> dict[str, float]:
        """Return some fields by name."""
        return {name: getattr(self, name) for name in names}

    def monitored(self, name: str) -> float:
        """Return a metric in the sense that greater is better."""
        value: float = getattr(self, name)
        return -value if name == "loss" else value

    def standard_error(self, name: str) -> float:
        """Return about that of a metric that is a share of the examples; 0 for the loss.

        A few examples may all be right by chance: for these it is 1.
        """
        if name == "loss":
            return 0.0
        if self.num_examples < FEW:
            return 1.0
        share: float = getattr(self, name)
        return math.sqrt(share * (1 - share) / self.num_examples)


def one_class_doubts(scores: Scores, name: str) -> list[str]:
    """Say where one class alone is predicted for a split (or file) that holds several."""
    rows = scores.per_class.items() if not scores.multi_label else ()
    found = [label for label, row in rows if row["support"]]
    times = {x: row["support"] * row["recall"] / (row["precision"] or math.inf) for x, row in rows}
    only = next((label for label in times if round(times[label]) == scores.num_examples), None)
    if only is None or scores.num_examples < FEWEST_TO_DOUBT or len(found) < 2:
        return []
    return [
        f"{name}: every prediction is {quote(only)}, so the model hasn't learned to tell classes "
        "apart; try another training.lr, more training.max_epochs, or training.class_weights: "
        "balanced"
    ]


def score_branches(
    network: ClassifierNetwork,
    branches: Sequence[Tensor],
    store: SequenceStore,
    names: Sequence[str],
    thresholds: Sequence[float],
) -> tuple[Tensor, Scores, dict[str, Scores]]:
    """Score the logits of a model's branches, (B, C) each, together, and of several each alone.

    Returns:
        The logits together, (B, C); their scores, with those of any threshold; each branch's, by
        name.
    """
    logits, rows = check_finite(network.combine(branches), store), (store.labels, store.lengths)
    named = zip(network.branch_names, branches, strict=True) if len(branches) > 1 else ()
    alone = {name: score(own, *rows, names) for name, own in named}
    return logits, score(logits, *rows, names, thresholds, ranked=True), alone


def score(
    logits: Tensor,
    labels: Tensor | Array,
    lengths: Tensor | Array,
    names: Sequence[str],
    thresholds: Sequence[float] | None = None,
    *,
    ranked: bool = False,
) -> Scores:
    """Score predictions; `names` are the labels of the classes.

    Of several labels, `thresholds` are the probabilities from which on each class is predicted;
    None: one for all classes, the best for these very examples. With `ranked`, each class gets
    scores of any threshold, too.

    Shape:
        logits: (B, C). labels: class index, (B,); -1 where train lacks it; or (B, C), which of the
        classes an example has, as in a store. lengths: (B,).

    Reference:
        Guo et al. 2017, section 2: calibration error.
    """
    labels, lengths = (torch.asarray(x, copy=True, device="cpu") for x in (labels, lengths))
    multi_label = labels.ndim == 2
    is_unknown = unknown_rows(labels)
    if multi_label:
        has, chosen, thresholds = _decided(logits, labels, thresholds)
        correct = (chosen == has).all(1) & ~is_unknown
        counts = (each.sum(0) for each in (chosen & has, has, chosen))
        loss, brier, error = _of_decisions(logits[~is_unknown], has[~is_unknown])
    else:
        predicted = logits.argmax(dim=1)
        correct = predicted == labels
        found = (labels[correct], labels[~is_unknown], predicted)
        counts = (torch.bincount(each, minlength=len(names)) for each in found)
        confidence, loss, brier = _probabilities(logits, labels)
        error = float(_surplus(confidence, correct).abs().sum()) / len(labels)
    unknown = int(is_unknown.sum())
    means, columns = _of_classes([each.double() for each in counts], unknown)
    if multi_label:
        columns["threshold"] = list(thresholds or [])
    rows = zip(names, *columns.values(), strict=True)
    per_class = {name: dict(zip(columns, row, strict=True)) for name, *row in rows}
    auc, precision = _rank(logits, labels, per_class) if ranked else (None, None)
    scores = Scores(
        loss=loss,
        accuracy=float(correct.double().mean()),
        **means,
        auc=auc,
        average_precision=precision,
        num_examples=len(labels),
        num_unknown_labels=unknown,
        labels=list(names),
        per_class=per_class,
        by_length=_by_length(correct.double(), lengths),
        ece=error,
        brier=brier,
        multi_label=multi_label,
    )
    return scores if multi_label else _with_confusions(scores, predicted, labels, confidence)


def _of_classes(
    counts: Sequence[Tensor], unknown: int
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return means over the classes, and figures of each, (C,).

    They follow from three counts of each class: how often it is right, occurs and is predicted. A
    class that neither occurs nor is predicted is left out of the macro averages, as scikit-learn
    does without `labels`; those that train lacks are one more class, of F1 0.
    """
    hits, support, times = counts
    parts = (hits, times), (hits, support), (2 * hits, support + times)
    precision, recall, f1 = (
        torch.where(whole > 0, part / whole.clamp(min=1), 0.0) for part, whole in parts
    )
    seen = max(1, int((support + times > 0).sum()) + (unknown > 0))
    total = float(support.sum()) + unknown
    means = {
        "macro_precision": float(precision.sum()) / seen,
        "macro_recall": float(recall.sum()) / seen,
        "macro_f1": float(f1.sum()) / seen,
        "weighted_f1": float((f1 * support).sum()) / max(1, total),
        "micro_f1": float(2 * hits.sum()) / max(1, total + float(times.sum())),
    }
    figures = {"precision": precision, "recall": recall, "f1": f1, "support": support.long()}
    return means, {name: values.tolist() for name, values in figures.items()}


def _with_confusions(
    scores: Scores, predicted: Tensor, labels: Tensor, confidence: Tensor
) -> Scores:
    """Add what only predictions of one label each have: which are taken for which, and coverage."""
    classes, known = range(len(scores.labels)), labels >= 0
    counts = Counter(zip(labels[known].tolist(), predicted[known].tolist(), strict=True))
    wrong = sorted((-count, *pair) for pair, count in counts.items() if pair[0] != pair[1])
    matrix = None
    if len(classes) <= MATRIX_CLASSES:
        matrix = [[counts[true, found] for found in classes] for true in classes]
    points = coverage_points(confidence, predicted == labels, COVERAGE_LEVELS)
    return replace(
        scores,
        unknown_predicted=torch.bincount(predicted[~known], minlength=len(classes)).tolist(),
        confusion_matrix=matrix,
        confusions=[
            {"true": scores.labels[true], "predicted": scores.labels[found], "count": -count}
            for count, true, found in wrong[:KEPT_CONFUSIONS]
        ],
        risk_coverage=[point.model_dump() for point in points],
    )


def _rank(
    logits: Tensor, labels: Tensor, per_class: Mapping[str, dict[str, float | int]]
) -> tuple[float | None, float | None]:
    """Add AUC and average precision of each class that occurs; return their means."""
    whole: Tensor | float = 0.0
    if labels.ndim == 1:
        whole = torch.cat([some.logsumexp(1) for some, _ in double_blocks(logits, labels)])
    found = list[tuple[float, float]]()
    for index, row in enumerate(per_class.values()):
        scores = logits[:, index].double() - whole
        _, counts, hits = threshold_curve(scores, has_class(labels, index))
        if 0 < hits[-1] < counts[-1]:
            share, wrong = hits / hits[-1], (counts - hits) / (counts[-1] - hits[-1])
            steps, wrong_steps = (x.diff(prepend=x.new_zeros(1)) for x in (share, wrong))
            area = float((wrong_steps * (share - steps / 2)).sum())
            found.append((area, float((steps * hits / counts).sum())))
            row["auc"], row["average_precision"] = found[-1]
    if not found:
        return None, None
    auc, precision = (sum(each) / len(found) for each in zip(*found, strict=True))
    return auc, precision


def _decided(
    logits: Tensor, labels: Tensor, thresholds: Sequence[float] | None
) -> tuple[Tensor, Tensor, Sequence[float]]:
    """Return which of several labels each example has, which are predicted, and the thresholds."""
    has = labels > 0
    if thresholds is None:
        some = slice(None, None, -(-logits.numel() // CELLS))
        best = best_threshold(logits[some].double().sigmoid().flatten(), has[some].flatten())
        thresholds = [best] * logits.shape[1]
    least = torch.tensor(thresholds, dtype=torch.float64, device="cpu").logit()
    return has, logits >= least.float(), thresholds


def _of_decisions(logits: Tensor, has: Tensor) -> tuple[float, float, float]:
    """Return log loss and Brier score, summed over classes, and calibration error of any class."""
    loss, brier, surplus = 0.0, 0.0, torch.zeros(CONFIDENCE_BINS, dtype=torch.float64, device="cpu")
    for some, own in double_blocks(logits, has):
        probabilities, true = some.sigmoid(), own.double()
        bce = functional.binary_cross_entropy_with_logits
        loss += float(bce(some, true, reduction="sum"))
        brier += float((probabilities - true).square().sum())
        surplus += _surplus(probabilities.flatten(), own.flatten())
    number = max(1, len(has))
    return loss / number, brier / number, float(surplus.abs().sum()) / max(1, has.numel())


def _probabilities(logits: Tensor, labels: Tensor) -> tuple[Tensor, float, float]:
    """Return the greatest probability of each row, (B,) float64, cross-entropy and Brier score."""
    confidence, loss, brier = [], 0.0, 0.0
    for some, true in double_blocks(logits, labels):
        logarithms = some.log_softmax(dim=1)
        probabilities = logarithms.exp()
        confidence.append(probabilities.amax(dim=1))
        known = true >= 0
        of_label = logarithms[known].gather(1, true[known].unsqueeze(1))
        loss -= float(of_label.sum())
        squares = probabilities[known].square().sum(dim=1)
        brier += float((squares - 2 * of_label.exp().squeeze(1) + 1).sum())
    number = max(1, int((labels >= 0).sum()))
    return torch.cat(confidence), loss / number, brier / number


def _surplus(confidence: Tensor, correct: Tensor) -> Tensor:
    """Return by how much probabilities are too great, summed over each interval of them."""
    interval = (confidence * CONFIDENCE_BINS).ceil().long().clamp(1, CONFIDENCE_BINS) - 1
    surplus = confidence - correct.double()
    return surplus.new_zeros(CONFIDENCE_BINS).index_add(0, interval, surplus)


def _by_length(correct: Tensor, lengths: Tensor) -> list[dict[str, float | int]]:
    """Accuracy in at most five groups with like numbers of examples, cut between lengths."""
    ordered, number = lengths.sort().values, len(lengths)
    last = [
        max(1, round(number * part / LENGTH_GROUPS)) - 1 for part in range(1, LENGTH_GROUPS + 1)
    ]
    ends = torch.unique(ordered[last])
    groups = (lengths[:, None] > ends).sum(1)
    parts = [(lengths[groups == group], correct[groups == group]) for group in range(len(ends))]
    return [
        {
            "min": int(own.min()),
            "max": int(own.max()),
            "num_examples": len(own),
            "accuracy": float(right.mean()),
        }
        for own, right in parts
    ]
