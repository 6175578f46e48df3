"""Thresholds on probabilities: coverage, accuracy and F1 above each of them.

B examples, C classes.
"""

import math
from collections.abc import Sequence
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from seqtrain.config.value_types import Section

TIE = 1e-12
"""Scores that differ by less are equal but for rounding."""
MARGIN = 1e-5
"""Relative distance between a threshold's two probabilities: rounding must not cross it."""
Z_95 = 1.96
"""Standard deviations of a normal distribution that hold 95 % of it."""
CLASS_LEVELS = 20
"""Points of a class's coverage that are kept with a model."""

Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
"""A number in [0, 1], as a model file holds it."""


class CoveragePoint(Section):
    """Predictions whose probability reaches a threshold, of all classes or of one."""

    coverage: Share
    """Share of all examples; of one class: its recall."""
    min_probability: Share
    """The threshold."""
    accuracy: Share
    """Share of these predictions that are right."""

    def least(self, rows: int) -> float:
        """Return the lower end of the accuracy's 95 % interval for `rows` predictions.

        Reference:
            Wilson 1927, "Probable inference, the law of succession, and statistical inference".
        """
        square = Z_95 * Z_95 / rows
        spread = math.sqrt(square * self.accuracy * (1 - self.accuracy) + square * square / 4)
        return (self.accuracy + square / 2 - spread) / (1 + square)


def threshold_curve(scores: Tensor, correct: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Count the examples above each possible threshold. Equal scores share one threshold.

    Args:
        scores: Score of each example, (B,).
        correct: True for the examples to be found, (B,) bool.

    Returns:
        The lowest score of each group of equal ones, descending, (K,); the number of scores that
        reach it; the number of correct examples among these.
    """
    ordered, order = scores.double().sort(descending=True, stable=True)
    is_last = torch.cat((ordered.diff() < -TIE, correct.new_ones(1, dtype=torch.bool)))
    ends = is_last.nonzero().flatten()
    hits = correct[order].double().cumsum(0)
    return ordered[ends], (ends + 1).double(), hits[ends]


def best_threshold(probabilities: Tensor, correct: Tensor) -> float:
    """Return the threshold with the greatest F1.

    It is the middle between two probabilities that are at least `MARGIN` apart, or between the
    lowest one and 0. So a probability that another program rounds otherwise stays on its side.

    Args:
        probabilities: Probability of each example, (B,).
        correct: True for the examples to be found, (B,) bool.
    """
    thresholds, counts, hits = threshold_curve(probabilities, correct)
    following = torch.cat((thresholds[1:], thresholds.new_zeros(1)))
    f1 = 2 * hits / (counts + hits[-1])
    f1[thresholds - following <= MARGIN * thresholds] = -1.0
    best = int(f1.argmax())
    return float(thresholds[best] + following[best]) / 2


def coverage_points(
    confidence: Tensor, correct: Tensor, levels: int, *, of_class: bool = False
) -> list[CoveragePoint]:
    """Return coverage and accuracy at thresholds that reach equal shares of the predictions.

    Args:
        confidence: Probability of each prediction, (B,).
        correct: True for each correct prediction, (B,) bool.
        levels: Number of points at most. Predictions of equal probability share one.
        of_class: Coverage is a share of the correct predictions (recall) instead of all.

    Returns:
        The points from the most confident predictions to all. The list is empty if a probability
        isn't a number, or if `of_class` is set and no prediction is correct.
    """
    if bool(confidence.isnan().any()) or (of_class and not bool(correct.any())):
        return []
    thresholds, counts, hits = threshold_curve(confidence, correct)
    reached = hits if of_class else counts
    shares = torch.arange(1, levels + 1, dtype=torch.float64, device="cpu")
    at = torch.unique(torch.searchsorted(reached, (shares * reached[-1] / levels).ceil()))
    coverage, accuracy = reached[at] / reached[-1], hits[at] / counts[at]
    rows = zip(coverage.tolist(), thresholds[at].tolist(), accuracy.tolist(), strict=True)
    return [
        CoveragePoint(coverage=share, min_probability=threshold, accuracy=right)
        for share, threshold, right in rows
    ]


def class_points(probabilities: Tensor, has_class: Tensor) -> list[list[CoveragePoint]]:
    """Return recall and precision of each class at some thresholds.

    Args:
        probabilities: Probability of each class, (B, C).
        has_class: True where an example has the class, (B, C) bool.
    """
    columns = zip(probabilities.T, has_class.T, strict=True)
    return [coverage_points(own, has, CLASS_LEVELS, of_class=True) for own, has in columns]


def most_covered(points: Sequence[CoveragePoint], precision: float) -> CoveragePoint | None:
    """Return the point with the greatest coverage among those with enough accuracy.

    Args:
        points: Coverage and accuracy at some thresholds.
        precision: Least accuracy.

    Returns:
        The point, or None if no point is accurate enough.
    """
    good = [point for point in points if point.accuracy >= precision]
    return max(good, key=lambda point: point.coverage, default=None)
