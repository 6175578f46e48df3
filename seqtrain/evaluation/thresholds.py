"""Thresholds on probabilities: coverage, accuracy and F1 above each of them.

B examples, C classes.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from seqtrain.config.value_types import Section
from seqtrain.model.calibration import Share

TIE = 1e-12
"""Scores that differ by less count as equal, because the difference may come from rounding."""
MARGIN = 1e-5
"""Least relative distance between the two probabilities that a threshold separates."""
CLASS_LEVELS = 20
"""Largest number of points in the coverage of one class."""


class CoveragePoint(Section):
    """Summary of the predictions whose probability reaches a threshold.

    It counts the predictions of all classes, or of one class.
    """

    coverage: Share
    """Number of these predictions, as a share of all. For one class: its recall."""
    min_probability: Share
    """The threshold."""
    accuracy: Share
    """Share of these predictions that are right. For one class: its precision."""


def threshold_curve(
    scores: Tensor, correct: Tensor, weights: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Count the examples that reach each possible threshold, the highest threshold first.

    Scores that differ by less than TIE share one threshold. K is the number of thresholds.

    Args:
        scores: Score of each example, (B,), in any order. B is at least 1.
        correct: True for the examples to be found, (B,) bool.
        weights: Weight of each example, (B,), or None to count each once.

    Returns:
        The thresholds, (K,); the number of scores that reach each threshold, (K,); and the number
        of correct examples among these, (K,). A threshold is the lowest of the scores that share
        it.
    """
    ordered, order = scores.double().sort(descending=True, stable=True)
    is_last = torch.cat((ordered.diff() < -TIE, correct.new_ones(1, dtype=torch.bool)))
    ends = is_last.nonzero().flatten()
    if weights is None:
        each = torch.ones_like(ordered)
    else:
        each = weights[order].double()
    hits = (correct[order] * each).cumsum(0)
    return ordered[ends], each.cumsum(0)[ends], hits[ends]


def best_threshold(probabilities: Tensor, correct: Tensor, weights: Tensor | None = None) -> float:
    """Return the threshold with the greatest F1, if the examples that reach it are predicted.

    The threshold is between two probabilities, or between the lowest one and 0.

    Args:
        probabilities: Probability of each example, (B,). B is at least 1.
        correct: True for the examples to be found, (B,) bool.
        weights: Weight of each example, (B,), or None for equal weights.
    """
    thresholds, counts, hits = threshold_curve(probabilities, correct, weights)
    return _below_best(thresholds, 2 * hits / (counts + hits[-1]))


def threshold_reached_by(
    number: float, probabilities: Tensor, weights: Tensor | None = None
) -> float:
    """Return a threshold that `number` examples reach, or as near to this number as possible.

    It is between two probabilities, between the highest one and 1, or between the lowest one and 0.

    Args:
        number: Number of examples, or sum of their weights.
        probabilities: Probability of each example, (B,).
        weights: Weight of each example, (B,), or None to count each once.
    """
    above = probabilities.new_ones(1, dtype=torch.float64)
    thresholds, counts, _ = threshold_curve(probabilities, probabilities >= 0, weights)
    thresholds = torch.cat((above, thresholds))
    counts = torch.cat((above - 1, counts))
    return _below_best(thresholds, -(counts - number).abs())


def _below_best(thresholds: Tensor, quality: Tensor) -> float:
    """Return a threshold slightly below the best probability, with the same decisions.

    It is the middle between the best probability and the next lower one (or 0). So the decisions
    don't depend on rounding. Two probabilities that are less than `MARGIN` apart aren't separated.

    Args:
        thresholds: Probabilities that may be thresholds, descending, (K,).
        quality: Quality of each probability as a threshold, (K,). The best one has the greatest.
    """
    following = torch.cat((thresholds[1:], thresholds.new_zeros(1)))
    is_apart = thresholds - following > MARGIN * thresholds
    best = int(quality.where(is_apart, -math.inf).argmax())
    return float(thresholds[best] + following[best]) / 2


def coverage_points(
    confidence: Tensor,
    correct: Tensor,
    levels: int,
    weights: Tensor | None = None,
    *,
    of_class: bool = False,
) -> list[CoveragePoint]:
    """Return coverage and accuracy at thresholds, from the highest to the lowest.

    The coverage of the points grows in equal steps, as far as equal probabilities allow.

    Args:
        confidence: Probability of each prediction, (B,).
        correct: True for each correct prediction, (B,) bool.
        levels: Largest number of points.
        weights: Weight of each prediction, (B,), or None for equal weights.
        of_class: True if `confidence` is the probability of one class. `coverage` is then the
            share of the correct predictions that reach the threshold (recall).

    Returns:
        The points. The last one has a coverage of 1. The list is empty if a probability is NaN, or
        if `of_class` is True and no prediction is correct.
    """
    if bool(confidence.isnan().any()) or (of_class and not bool(correct.any())):
        return []
    thresholds, counts, hits = threshold_curve(confidence, correct, weights)
    reached = hits if of_class else counts
    shares = torch.arange(1, levels + 1, dtype=torch.float64, device="cpu")
    wanted = shares * reached[-1] / levels
    if weights is None:
        wanted = wanted.ceil()
    at = torch.unique(torch.searchsorted(reached, wanted).clamp(max=len(reached) - 1))
    coverage = reached[at] / reached[-1]
    accuracy = (hits[at] / counts[at]).clamp(max=1)
    rows = zip(coverage.tolist(), thresholds[at].tolist(), accuracy.tolist(), strict=True)
    return [
        CoveragePoint(coverage=share, min_probability=threshold, accuracy=right)
        for share, threshold, right in rows
    ]


def class_points(
    probabilities: Tensor, has_class: Tensor, weights: Tensor | None = None
) -> list[list[CoveragePoint]]:
    """Return recall (as coverage) and precision (as accuracy) of each class at some thresholds.

    Args:
        probabilities: Probability of each class, (B, C).
        has_class: True where an example has the class, (B, C) bool.
        weights: Weight of each example, (B,), or None for equal weights.

    Returns:
        One list per class with at most CLASS_LEVELS points; empty for a class without examples, or
        if a probability is NaN.
    """
    columns = zip(probabilities.T, has_class.T, strict=True)
    return [coverage_points(own, has, CLASS_LEVELS, weights, of_class=True) for own, has in columns]


def most_covered(points: Sequence[CoveragePoint], precision: float) -> CoveragePoint | None:
    """Return the point with the greatest coverage among points with enough accuracy.

    Args:
        points: Coverage and accuracy at some thresholds.
        precision: Accuracy that the point must reach.

    Returns:
        The point, or None if no point reaches this accuracy.
    """
    good = [point for point in points if point.accuracy >= precision]
    return max(good, key=lambda point: point.coverage, default=None)
