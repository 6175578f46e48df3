"""Computation of scores from logits: metrics, scores of each class, and confusions.

B examples, C classes. Definitions follow scikit-learn, and tests compare with it.
"""

from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from seqtrain.evaluation.logits import LOGITS_AT_ONCE, check_finite, double_blocks
from seqtrain.evaluation.scores import Scores
from seqtrain.evaluation.thresholds import (
    best_threshold,
    coverage_points,
    threshold_curve,
    threshold_reached_by,
)
from seqtrain.metrics import METRICS, Outcome
from seqtrain.model.network import ClassifierNetwork
from seqtrain.sequences.decisions import best_class, reached
from seqtrain.sequences.labels import has_class, unknown_rows
from seqtrain.sequences.store import SequenceStore
from seqtrain.tables.blocks import Array

LENGTH_GROUPS = 5
"""Largest number of groups in `Scores.by_length`."""
CONFIDENCE_BINS = 15
"""Number of intervals of probability for the expected calibration error."""
COVERAGE_LEVELS = 10
"""Largest number of points in `Scores.risk_coverage`."""
MATRIX_CLASSES = 200
"""Largest number of classes with a confusion matrix, whose size is the square of it."""
KEPT_CONFUSIONS = 100
"""Largest number of mistakes in `Scores.confusions`."""


def score_branches(
    network: ClassifierNetwork,
    branches: Sequence[Tensor],
    store: SequenceStore,
    names: Sequence[str],
    thresholds: Sequence[float],
) -> tuple[Tensor, Scores, dict[str, Scores]]:
    """Score the combined logits of a model's branches, and each branch by itself.

    A branch predicts the most probable class, with these exceptions:

    - If the thresholds of two classes differ, the branch gets thresholds at which it predicts the
      second class as often as the model does.
    - If multi-label, the branch gets the one threshold that is best for it on these examples.

    Args:
        network: The model, whose calibration combines the branches.
        branches: Logits of each branch, (B, C).
        store: The sequences and their labels.
        names: Label of each class.
        thresholds: Threshold of each class, (C,), or empty, as for `score`.

    Returns:
        The combined logits, (B, C); their scores; and the scores of each branch by its name (empty
        for one branch).

    Raises:
        RunError: If a combined logit isn't finite.
    """
    logits = check_finite(network.combine(branches), store)
    together = score(logits, store.labels, store.lengths, names, thresholds, ranked=True)
    by_branch = {}
    if len(branches) > 1:
        for name, own in zip(network.branch_names, branches, strict=True):
            decision = None
            if not together.multi_label and len(set(thresholds)) > 1:
                number = together.per_class[names[1]]["num_predicted"]
                second = threshold_reached_by(number, own.double().softmax(dim=1)[:, 1])
                decision = [1 - second, second]
            by_branch[name] = score(own, store.labels, store.lengths, names, decision)
    return logits, together, by_branch


def score(
    logits: Tensor,
    labels: Tensor | Array,
    lengths: Tensor | Array,
    names: Sequence[str],
    thresholds: Sequence[float] | Array | None = None,
    *,
    ranked: bool = False,
) -> Scores:
    """Return the scores of predictions.

    Args:
        logits: Logits, (B, C).
        labels: Class indices, (B,), -1 for a label that the training split lacks; or (B, C) as in a
            SequenceStore, if multi-label. B is at least 1.
        lengths: Time steps of each example, (B,).
        names: Label of each class.
        thresholds: Threshold of each class, (C,), or of each class for each example, (B, C).
            Without thresholds, the most probable class is predicted, or if multi-label, each class
            that reaches the one threshold that is best for these examples.
        ranked: Also compute AUC and average precision. They are always computed for two classes of
            a single-label task.
    """
    labels, lengths = (torch.asarray(x, copy=True, device="cpu") for x in (labels, lengths))
    least = np.asarray(() if thresholds is None else thresholds, dtype=np.float64)
    has_two_classes = labels.ndim == 1 and len(names) == 2
    if ranked or has_two_classes:
        ranks = _rank_classes(logits, labels)
    else:
        ranks = {}
    details: dict[str, Any] = {}
    if labels.ndim == 2:
        least = least if least.size else _common_threshold(logits, labels)
        correct, counts = _count_decisions(logits, labels, least)
    else:
        decided, confidence, counts = _count_classes(logits, labels, least)
        correct = decided == labels
        points = coverage_points(confidence, correct, COVERAGE_LEVELS)
        details["risk_coverage"] = [point.model_dump() for point in points]
        details |= _confusions(names, decided, labels)
    outcome = Outcome(
        multi_label=labels.ndim == 2,
        num_examples=len(labels),
        num_unknown=int(unknown_rows(labels).sum()),
        num_correct=int(correct.sum()),
        auc=fmean(auc for auc, _ in ranks.values()) if ranks else None,
        average_precision=fmean(precision for _, precision in ranks.values()) if ranks else None,
        **counts,
    )
    metrics: dict[str, Any] = {name: metric.compute(outcome) for name, metric in METRICS.items()}
    return Scores(
        **metrics,
        num_examples=outcome.num_examples,
        num_unknown_labels=outcome.num_unknown,
        labels=list(names),
        per_class=_class_scores(outcome, names, ranks, least),
        by_length=_by_length(correct.double(), lengths),
        multi_label=outcome.multi_label,
        **details,
    )


def _count_decisions(
    logits: Tensor, labels: Tensor, thresholds: Array
) -> tuple[Tensor, dict[str, Any]]:
    """Return which examples of a multi-label task are right, and fields of `Outcome` by name.

    Loss and Brier score are summed over the classes, and averaged over the examples whose labels
    are all known.

    Args:
        logits: Logits, (B, C).
        labels: Labels as in a SequenceStore, (B, C).
        thresholds: Threshold of each class, (C,), or also for each example, (B, C).

    Returns:
        True for each example whose labels are all known and right, (B,) bool; and the fields.
    """
    is_known = ~unknown_rows(labels)
    decided = torch.from_numpy(reached(logits.double().sigmoid(), thresholds))
    has = labels > 0
    loss = brier = 0.0
    surplus = torch.zeros(CONFIDENCE_BINS, dtype=torch.float64, device="cpu")
    for block, true in double_blocks(logits[is_known], has[is_known]):
        probabilities = block.sigmoid()
        loss += float(
            functional.binary_cross_entropy_with_logits(block, true.double(), reduction="sum")
        )
        brier += float((probabilities - true.double()).square().sum())
        surplus += _overconfidence(probabilities.flatten(), true.flatten())
    number = max(1, int(is_known.sum()))
    counts = {
        "hits": (decided & has).sum(0).double().numpy(),
        "support": has.sum(0).double().numpy(),
        "predicted": decided.sum(0).double().numpy(),
        "loss": loss / number,
        "brier": brier / number,
        "ece": float(surplus.abs().sum()) / (number * logits.shape[1]),
    }
    return (decided == has).all(1) & is_known, counts


def _count_classes(
    logits: Tensor, labels: Tensor, thresholds: Array
) -> tuple[Tensor, Tensor, dict[str, Any]]:
    """Return predictions of a single-label task, and fields of `Outcome` by name.

    Loss and Brier score are means over the examples with a known label.

    Args:
        logits: Logits, (B, C).
        labels: Class indices, (B,), -1 for a label that the training split lacks.
        thresholds: Threshold of each class, (C,), or also for each example, (B, C); or empty.

    Returns:
        Predicted class of each example, (B,); its probability, (B,); and the fields.
    """
    predicted = []
    confidence = []
    loss, brier, done = 0.0, 0.0, 0
    for block, true in double_blocks(logits, labels):
        logarithms = block.log_softmax(dim=1)
        probabilities = logarithms.exp()
        if thresholds.ndim == 2:
            least = thresholds[done : done + len(block)]
        else:
            least = thresholds
        done += len(block)
        chosen = torch.from_numpy(best_class(probabilities, least))
        predicted.append(chosen)
        confidence.append(probabilities.gather(1, chosen.unsqueeze(1)).squeeze(1))
        known = true >= 0
        of_label = logarithms[known].gather(1, true[known].unsqueeze(1))
        loss -= float(of_label.sum())
        squares = probabilities[known].square().sum(dim=1)
        brier += float((squares - 2 * of_label.exp().squeeze(1) + 1).sum())
    decided = torch.cat(predicted)
    sure = torch.cat(confidence)
    number = max(1, int((labels >= 0).sum()))
    counts: dict[str, Any] = {"loss": loss / number, "brier": brier / number}
    counts["ece"] = float(_overconfidence(sure, decided == labels).abs().sum()) / len(labels)
    size = logits.shape[1]
    for name, those in (
        ("hits", labels[decided == labels]),
        ("support", labels[labels >= 0]),
        ("predicted", decided),
    ):
        counts[name] = torch.bincount(those, minlength=size).double().numpy()
    return decided, sure, counts


def _class_scores(
    outcome: Outcome,
    names: Sequence[str],
    ranks: dict[int, tuple[float, float]],
    thresholds: Array,
) -> dict[str, dict[str, float | int]]:
    """Return `Scores.per_class`.

    If thresholds differ between examples, the result has their means.

    Args:
        outcome: Counts of predictions.
        names: Label of each class.
        ranks: Maps the index of a class to its AUC and average precision.
        thresholds: Threshold of each class, (C,), or also for each example, (B, C); or empty.
    """
    columns = {
        "precision": outcome.precision.tolist(),
        "recall": outcome.recall.tolist(),
        "f1": outcome.f1.tolist(),
        "support": outcome.support.astype(int).tolist(),
        "num_predicted": outcome.predicted.astype(int).tolist(),
    }
    if outcome.multi_label or (thresholds.size and thresholds.min() < thresholds.max()):
        columns["threshold"] = thresholds.reshape(-1, len(names)).mean(axis=0).tolist()
    scores = {}
    for index, name in enumerate(names):
        scores[name] = {column: values[index] for column, values in columns.items()}
        if index in ranks:
            scores[name]["auc"], scores[name]["average_precision"] = ranks[index]
    return scores


def _confusions(names: Sequence[str], predicted: Tensor, labels: Tensor) -> dict[str, Any]:
    """Return the fields of `Scores` that count true and predicted classes, by name.

    Args:
        names: Label of each class.
        predicted: Predicted class indices, (B,).
        labels: True class indices, (B,), or -1.
    """
    known = labels >= 0
    counts = Counter(zip(labels[known].tolist(), predicted[known].tolist(), strict=True))
    wrong = sorted((-count, *pair) for pair, count in counts.items() if pair[0] != pair[1])
    classes = range(len(names))
    matrix = None
    if len(classes) <= MATRIX_CLASSES:
        matrix = [[counts[row, column] for column in classes] for row in classes]
    return {
        "unknown_predicted": torch.bincount(predicted[~known], minlength=len(names)).tolist(),
        "confusion_matrix": matrix,
        "confusions": [
            {"true": names[true], "predicted": names[found], "count": -count}
            for count, true, found in wrong[:KEPT_CONFUSIONS]
        ],
    }


def _rank_classes(logits: Tensor, labels: Tensor) -> dict[int, tuple[float, float]]:
    """Return the AUC and the average precision of each class, by its index.

    A class is left out if every example or no example belongs to it. Examples are ranked by
    log-probability, or in a multi-label task by logit.

    Args:
        logits: Logits, (B, C).
        labels: Class indices, (B,), or labels as in a SequenceStore, (B, C), if multi-label.
    """
    scores = logits
    if labels.ndim == 1:
        blocks = (block for block, _ in double_blocks(logits, labels))
        scores = torch.cat([x.log_softmax(1) for x in blocks])
    ranks = {}
    for index in range(logits.shape[1]):
        _, counts, hits = threshold_curve(scores[:, index], has_class(labels, index))
        if not 0 < hits[-1] < counts[-1]:
            continue
        recall = hits / hits[-1]
        false_positive_rate = (counts - hits) / (counts[-1] - hits[-1])
        steps, wrong_steps = (x.diff(prepend=x.new_zeros(1)) for x in (recall, false_positive_rate))
        area = float((wrong_steps * (recall - steps / 2)).sum())
        ranks[index] = area, float((steps * hits / counts).sum())
    return ranks


def _common_threshold(logits: Tensor, labels: Tensor) -> Array:
    """Return the threshold with the best micro F1, repeated for each class, (C,).

    If there are more than LOGITS_AT_ONCE logits, it is chosen on a sample of the examples.

    Args:
        logits: Logits, (B, C).
        labels: Labels as in a SequenceStore, (B, C).
    """
    some = slice(None, None, -(-logits.numel() // LOGITS_AT_ONCE))
    best = best_threshold(logits[some].double().sigmoid().flatten(), labels[some].flatten() > 0)
    return np.full(logits.shape[1], best)


def _overconfidence(confidence: Tensor, correct: Tensor) -> Tensor:
    """Return probability minus correctness, summed in each interval of probability.

    Args:
        confidence: Probability of each prediction, (B,).
        correct: True for each correct prediction, (B,) bool.

    Returns:
        The sums, (CONFIDENCE_BINS,). If positive, the predictions were less often right than their
        probabilities say.
    """
    interval = (confidence * CONFIDENCE_BINS).ceil().long().clamp(1, CONFIDENCE_BINS) - 1
    surplus = confidence - correct.double()
    return surplus.new_zeros(CONFIDENCE_BINS).index_add(0, interval, surplus)


def _by_length(correct: Tensor, lengths: Tensor) -> list[dict[str, float | int]]:
    """Return `Scores.by_length`, with at most LENGTH_GROUPS groups of similar size.

    Examples of equal length are in one group, so there may be fewer groups, and their sizes may
    differ.

    Args:
        correct: 1.0 for each correct example, (B,).
        lengths: Time steps of each example, (B,).
    """
    ordered = lengths.sort().values
    number = len(lengths)
    last = [
        max(1, round(number * part / LENGTH_GROUPS)) - 1 for part in range(1, LENGTH_GROUPS + 1)
    ]
    ends = torch.unique(ordered[last])
    groups = (lengths[:, None] > ends).sum(1)
    rows = []
    for group in range(len(ends)):
        own = lengths[groups == group]
        right = correct[groups == group]
        row = {"min": int(own.min()), "max": int(own.max()), "num_examples": len(own)}
        rows.append(row | {"accuracy": float(right.mean())})
    return rows
