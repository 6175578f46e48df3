"""Calibration on validation data: branch weights, temperature, and thresholds.

A weight of 2 counts as the row twice, and a weight of 0 as no row at all.

B examples, C classes. In a multi-label task each class is a yes-or-no decision.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Annotated

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from seqtrain.evaluation.logits import double_blocks
from seqtrain.evaluation.thresholds import (
    CoveragePoint,
    best_threshold,
    class_points,
    coverage_points,
    threshold_reached_by,
)
from seqtrain.model.calibration import COOLEST, HOTTEST, LogitCalibration, Share
from seqtrain.model.network import combined
from seqtrain.sequences.decisions import best_class
from seqtrain.sequences.labels import FEWEST_OF_A_CLASS
from seqtrain.tables.blocks import Array

LEVELS = 100
"""Largest number of points in `Calibration.coverage`."""
MOST_CLASSES = 200
"""Largest number of classes for which `Calibration.classes` is computed."""
MOST_ROWS_OF_WEIGHTS = 10_000
"""Largest number of validation examples on which branch weights are chosen."""
TENTHS = 10
"""Branch weights are tried in steps of 1 / TENTHS."""
DISTANCE_COST = 25.0
"""Nats that branch weights at a squared distance of 1 from the preferred ones must gain. Few rows
then choose weights near the preferred ones, and many rows choose freely. Without it, 28 to 100 rows
chose weights that lost up to 7 points on left-out rows."""


class Calibration(LogitCalibration):
    """Settings of a model that are chosen after training, as model.json holds them.

    All but `shift` are fitted on validation. A model without calibration has the defaults.
    """

    coverage: Annotated[list[CoveragePoint], Field(max_length=LEVELS)] = Field(default=[])
    """Coverage and accuracy on validation, from the most confident predictions to all of them.
    Empty if multi-label."""
    thresholds: list[Share] = Field(default=[])
    """Lowest probability at which each class is predicted, if multi-label, or if one of two classes
    is rare. In the second case their sum is 1. Otherwise empty."""
    classes: list[Annotated[list[CoveragePoint], Field(max_length=LEVELS)]] = Field(default=[])
    """Recall and precision of each class at some thresholds, or empty."""

    def has_sizes_of(self, classes: int, branches: int, *, multi_label: bool) -> bool:
        """Return True if the lengths of all lists suit a model.

        - A list per class has one item for each class, or is empty.
        - There is one weight for each branch, or none.
        - Only a multi-label model has a list of temperatures.
        - A single-label model with more than two classes has no thresholds.

        Args:
            classes: Number of classes of the model.
            branches: Number of branches of the model.
            multi_label: True if a sequence may have several labels.
        """
        if isinstance(self.temperature, list):
            temperatures = self.temperature
        else:
            temperatures = []
        per_class = {len(self.shift or []), len(self.classes), len(self.thresholds)}
        has_decisions = multi_label or classes == 2 or not self.thresholds
        per_decision = {len(temperatures)} <= {0, classes if multi_label else 0}
        if self.branch_weights is not None and len(self.branch_weights) != branches:
            return False
        return per_class <= {0, classes} and per_decision and has_decisions


def fit_temperature(logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> float:
    """Return the temperature with the least mean cross-entropy, from COOLEST to HOTTEST.

    It is 1 if no label is known. With N known labels, the target probability of each label is
    (N + 1) / (N + 2) instead of 1, because few examples may all be right by chance.

    Args:
        logits: Logits, (B, C).
        labels: Class indices, (B,); examples with -1, an unknown label, are left out.
        weights: Weight of each example, (B,), or None for equal weights. N is then their sum.

    Reference:
        Guo et al. 2017, "On Calibration of Modern Neural Networks", section 4.2. Platt 1999,
        "Probabilistic Outputs for Support Vector Machines".
    """
    from scipy.optimize import minimize_scalar

    weights = _counted(labels, weights)
    known = float(weights.sum())
    classes = logits.shape[1]
    if not known:
        return 1.0
    smoothing = classes / (classes - 1) / (known + 2)

    def loss(logarithm: float) -> float:
        """Return the mean cross-entropy at a temperature, given its logarithm."""
        total = 0.0
        done = 0
        for block, label in double_blocks(logits, labels):
            each = functional.cross_entropy(
                block / math.exp(logarithm),
                label,
                ignore_index=-1,
                reduction="none",
                label_smoothing=smoothing,
            )
            total += float(each @ weights[done : done + len(each)])
            done += len(each)
        return total / known

    bounds = math.log(COOLEST), math.log(HOTTEST)
    best = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-9}).x
    return min(max(math.exp(best), COOLEST), HOTTEST)


def _counted(labels: Tensor, weights: Tensor | None) -> Tensor:
    """Return the weight of each example, (B,) float64: 0 for an unknown label."""
    known = (labels >= 0).double()
    if weights is None:
        return known
    return known * weights


def adjustment(strength: float, counts: Array) -> list[float] | None:
    """Return the addition to each class's logit, greatest for the rarest class of train.

    It is `strength` times log(n / m), if the class has m examples and the most frequent class has
    n. A class with less than one example counts as one example.

    Args:
        strength: Value of training.logit_adjustment.
        counts: Number of examples of each class of train, (C,).

    Returns:
        One number per class, or None if the strength is 0.

    Reference:
        Menon et al. 2021, "Long-tail learning via logit adjustment", arXiv 2007.07314, section 4.1.
    """
    if not strength:
        return None
    counts = np.maximum(counts, 1.0)
    additions: list[float] = (strength * np.log(counts.max() / counts)).tolist()
    return additions


def fit_calibration(
    branches: Sequence[Tensor],
    labels: Tensor,
    before: Calibration | None = None,
    *,
    one_threshold: bool = False,
    rare: int | None = None,
    weights: Tensor | None = None,
) -> Calibration:
    """Return a calibration that is fitted to logits of held-out examples.

    Args:
        branches: Logits of each branch, (B, C).
        labels: Class indices, (B,), -1 for an unknown label; or (B, C) if multi-label.
        before: Earlier calibration, or None for the default one. Its shift is kept, but only in a
            single-label task. Its branch weights are kept, unless others are clearly better.
        one_threshold: Use the same threshold for all classes of a multi-label task.
        rare: Index of the rare one of two classes, or None to predict the most probable class. With
            a rare class, `rare_thresholds` chooses the thresholds.
        weights: Weight of each example, (B,), or None for equal weights.

    Returns:
        The calibration. In its coverage, predictions for unknown labels count as wrong. Its
        `classes` are empty if there are more than MOST_CLASSES classes.
    """
    before = before or Calibration()
    if weights is not None and bool((weights == 0).any()):
        rows = weights > 0
        branches = [logits[rows] for logits in branches]
        labels = labels[rows]
        weights = weights[rows]
    if not len(labels):
        return before
    if labels.ndim == 2:
        return _calibrate_multi_label(
            branches, labels > 0, before.branch_weights, weights, one_threshold=one_threshold
        )
    shares = fit_branch_weights(branches, labels, before.branch_weights, weights)
    logits = combined(branches, shares)
    temperature = fit_temperature(logits, labels, weights)
    logits = logits / temperature + logits.new_tensor(before.shift or 0)
    probabilities = logits.double().softmax(dim=1)
    classes = []
    thresholds = []
    if logits.shape[1] <= MOST_CLASSES:
        has_class = labels.unsqueeze(1) == torch.arange(logits.shape[1], device="cpu")
        classes = class_points(probabilities, has_class, weights)
    if rare is not None:
        thresholds = rare_thresholds(logits, labels, rare, weights)
    decided = torch.from_numpy(best_class(probabilities, thresholds))
    confidence = probabilities.gather(1, decided.unsqueeze(1)).squeeze(1)
    return Calibration(
        temperature=temperature,
        branch_weights=shares,
        shift=before.shift,
        coverage=coverage_points(confidence, decided == labels, LEVELS, weights),
        thresholds=thresholds,
        classes=classes,
    )


def rare_thresholds(
    logits: Tensor, labels: Tensor, rare: int, weights: Tensor | None = None
) -> list[float]:
    """Return thresholds of two classes that predict the rare one as often as it occurs.

    If equal probabilities prevent this, the number of predictions is as near as possible.

    Args:
        logits: Calibrated logits, (B, 2).
        labels: Class indices, (B,).
        rare: Index of the rare class.
        weights: Weight of each example, (B,), or None for equal weights.

    Returns:
        The threshold of each class, or an empty list if fewer than `FEWEST_OF_A_CLASS` examples
        are of the rare class.
    """
    is_rare = labels == rare
    number = float(is_rare.sum() if weights is None else weights[is_rare].double().sum())
    if number < FEWEST_OF_A_CLASS:
        return []
    threshold = threshold_reached_by(number, logits.double().softmax(dim=1)[:, rare], weights)
    return [threshold if index == rare else 1 - threshold for index in range(2)]


def _calibrate_multi_label(
    branches: Sequence[Tensor],
    has_class: Tensor,
    shares: list[float] | None,
    weights: Tensor | None,
    *,
    one_threshold: bool,
) -> Calibration:
    """Return a calibration of the yes-or-no decisions of a multi-label task.

    Args:
        branches: Logits of each branch, (B, C).
        has_class: True where an example has the class, (B, C) bool.
        shares: Branch weights that stay unless others are clearly better, or None for equal ones.
        weights: Weight of each example, (B,), or None for equal weights.
        one_threshold: Use the same threshold for all classes. If False, only classes with fewer
            than FEWEST_OF_A_CLASS examples share a threshold.
    """
    flat = [_two_classes(logits) for logits in branches]
    classes = has_class.shape[1]
    if weights is None:
        of_decisions = None
    else:
        of_decisions = weights.repeat_interleave(classes)
    shares = fit_branch_weights(flat, has_class.flatten().long(), shares, of_decisions)
    logits = combined(branches, shares)
    temperature = [
        fit_temperature(_two_classes(column), has.long(), weights)
        for column, has in zip(logits.T, has_class.T, strict=True)
    ]
    divisors = torch.tensor(temperature, dtype=torch.float32, device="cpu")
    probabilities = (logits.float() / divisors).double().sigmoid()  # as a prediction computes them
    common = best_threshold(probabilities.flatten(), has_class.flatten(), of_decisions)
    thresholds = [common] * classes
    if not one_threshold:
        counts = (has_class if weights is None else has_class * weights.unsqueeze(1)).sum(0)
        for index in (counts >= FEWEST_OF_A_CLASS).nonzero().flatten().tolist():
            own = probabilities[:, index]
            has = has_class[:, index]
            thresholds[index] = best_threshold(own, has, weights)
    points = []
    if classes <= MOST_CLASSES:
        points = class_points(probabilities, has_class, weights)
    return Calibration(
        temperature=temperature,
        branch_weights=shares,
        thresholds=thresholds,
        classes=points,
    )


def _two_classes(logits: Tensor) -> Tensor:
    """Convert the logits of N yes-or-no decisions to logits of two classes, no and yes, (N, 2).

    The decisions of an array (B, C) are taken row by row, so N is B * C.
    """
    flat = logits.flatten()
    return torch.stack((torch.zeros_like(flat), flat), dim=1)


def branch_weight_grid(branches: int) -> Iterator[list[float]]:
    """Yield all lists of branch weights that are multiples of 1 / TENTHS and add up to 1."""
    for tenths in product(range(TENTHS + 1), repeat=branches - 1):
        if sum(tenths) <= TENTHS:
            yield [1 - sum(tenths) / TENTHS, *(n / TENTHS for n in tenths)]


def fit_branch_weights(
    branches: Sequence[Tensor],
    labels: Tensor,
    default: list[float] | None = None,
    weights: Tensor | None = None,
) -> list[float] | None:
    """Return the weights of the branches with the least cross-entropy, as in stacking.

    The default weights are for branches that are equally sure of themselves. So each is divided by
    the temperature of its branch. To the summed cross-entropy, `DISTANCE_COST` times the squared
    distance from these weights is added: the result is the most probable one, if weights are spread
    normally around them beforehand. It counts only if it is better than the default weights by
    more than a standard error, the root of the sum of the rows' squared gains. So the error is that
    about a gain of zero, not about the mean gain.

    The weights that are tried are multiples of 1 / TENTHS. They are compared at one temperature. If
    there are more than MOST_ROWS_OF_WEIGHTS examples, an evenly spaced sample is used.

    Args:
        branches: Logits of each branch, (B, C).
        labels: Class indices, (B,); examples with -1 are left out.
        default: Weights to prefer, or None for equal ones.
        weights: Weight of each example, (B,), or None for equal weights.

    Returns:
        The best weights, with a sum of 1. With one branch, or if the default weights make no
        mistake, or if no others are clearly better, `default` is returned.

    Reference:
        Wolpert 1992, "Stacked generalization".
    """
    right = combined(branches, default).argmax(1) == labels
    if len(branches) == 1 or bool(right[labels >= 0].all()):
        return default
    some = slice(None, None, -(-len(labels) // MOST_ROWS_OF_WEIGHTS))
    branches, labels = [logits[some] for logits in branches], labels[some]
    weights = _counted(labels, None if weights is None else weights[some])
    temperatures = [fit_temperature(logits, labels, weights) for logits in branches]
    usual = default or [1 / len(branches)] * len(branches)
    sure = [share / divisor for share, divisor in zip(usual, temperatures, strict=True)]
    center = [share / sum(sure) for share in sure]

    def losses(shares: list[float], temperature: float) -> Tensor:
        logits = combined(branches, shares).double() / temperature
        return functional.cross_entropy(logits, labels, ignore_index=-1, reduction="none")

    def own_temperature(shares: list[float]) -> float:
        return fit_temperature(combined(branches, shares), labels, weights)

    common = own_temperature(center)

    def cost(shares: list[float]) -> float:
        distance = math.dist(shares, center)
        return float(losses(shares, common) @ weights) + DISTANCE_COST * distance**2

    best = min([center, *branch_weight_grid(len(branches))], key=cost)
    before, after = (losses(shares, own_temperature(shares)) for shares in (usual, best))
    gain = before - after
    is_clear = float(gain @ weights) > math.sqrt(float(gain.square() @ weights))
    if is_clear:
        return best
    return default
