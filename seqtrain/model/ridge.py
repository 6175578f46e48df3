"""Ridge regression as a classifier, with a penalty chosen by leave-one-out cross-validation.

n rows, P features, K classes, R eigenvectors.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

SMALLEST_EIGENVALUE = 1e-10
"""Eigenvalues below this fraction of the largest count as 0."""
PENALTIES = torch.logspace(-4, 2, 13, dtype=torch.float64, device="cpu").tolist()
FACTORS = np.geomspace(0.2, 60, 60).tolist()
"""Values from which `ridge` chooses the factor of the scores, which is 1 / temperature."""


def ridge(features: Tensor, labels: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
    """Fit a linear classifier by ridge regression, and scale its scores to logits.

    The penalty of the regression and the factor of the scores minimize the leave-one-out log loss.
    For the loss, labels are smoothed, as in `fit_temperature`.

    Args:
        features: features with a mean of 0, on the CPU.
        labels: class index of each row. In a multi-label task, a matrix with a positive number for
            each class that a row has.
        num_classes: number of classes.

    Shape:
        features: (n, P). labels: (n,) or (n, K). Returns: weight (P, K) and intercept (K,), of the
        type of the features. Logits are features @ weight + intercept.
    """
    rows, multi_label = features.double(), labels.ndim == 2
    has_class = labels > 0 if multi_label else functional.one_hot(labels, num_classes)
    targets = 2.0 * has_class.double() - 1
    mean = targets.mean(0)
    values, basis = _eigenvectors(rows)
    projected = basis.T @ (targets - mean)
    best = (float("inf"), 0.0, 1.0)
    for penalty in PENALTIES:
        kept = values / (values + penalty)
        leverage = 1 / len(rows) + basis.square() @ kept
        residual = targets - mean - basis @ (kept.unsqueeze(1) * projected)
        floor = (1 - leverage).clamp(min=SMALLEST_EIGENVALUE)
        left_out = targets - residual / floor.unsqueeze(1)
        for factor in FACTORS:
            loss = _log_loss(factor * left_out, has_class if multi_label else labels)
            best = min(best, (loss, penalty, factor))
    _, penalty, factor = best
    weight = rows.T @ (basis @ (projected / (values + penalty).unsqueeze(1)))
    return (factor * weight).to(features), (factor * mean).to(features)


def _eigenvectors(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the nonzero eigenvalues of rows @ rows.T, (R,), and their eigenvectors, (n, R).

    Eigenvalues below `SMALLEST_EIGENVALUE` times the largest are left out.
    """
    wide = len(rows) <= rows.shape[1]
    values, basis = torch.linalg.eigh(rows @ rows.T if wide else rows.T @ rows)
    kept = values > SMALLEST_EIGENVALUE * values[-1].clamp(min=SMALLEST_EIGENVALUE)
    values, basis = values[kept], basis[:, kept]
    return values, basis if wide else rows @ basis / values.sqrt()


def _log_loss(logits: Tensor, labels: Tensor) -> float:
    smoothing = 1 / (len(labels) + 2)
    if labels.ndim == 2:
        smooth = labels * (1 - smoothing) + smoothing / 2
        return float(functional.binary_cross_entropy_with_logits(logits, smooth.double()))
    return float(functional.cross_entropy(logits, labels, label_smoothing=smoothing))
