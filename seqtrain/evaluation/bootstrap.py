"""How sure the difference of two classifiers on the same examples is: a paired bootstrap.

N examples, K distinct outcomes, C classes, R resamples.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.data.store import Array, Ints

RESAMPLES = 5000
SHARE = 0.95
"""Share of the resamples that an interval holds."""
CELLS = 2**22
"""Counts that are held at once: memory stays flat."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MetricDifference:
    """A metric of two classifiers, a and b; b - a, and the interval of that difference."""

    metric: str
    a: float
    b: float
    difference: float
    low: float
    high: float


def paired_bootstrap(labels: Array, a: Array, b: Array, *, seed: int = 0) -> list[MetricDifference]:
    """Compare accuracy, then macro F1, of two classifiers on the same examples.

    A resample draws N examples with replacement, as multinomial counts of the distinct outcomes.
    Intervals are of percentiles. Where an example may have several labels, accuracy is that of
    whole sets, and micro F1 takes the place of macro F1.

    Shape:
        labels, and the predicted classes a and b: (N,), from 0; or which of the classes an example
        has, (N, C) bool; N at least 1.
    """
    outcomes, names, metrics = np.stack([labels, a, b]), ("accuracy", "macro_f1"), _metrics
    if labels.ndim == 2:
        names, metrics = ("accuracy", "micro_f1"), _set_metrics
        figures = (((x == labels).all(1), (x & labels).sum(1), x.sum(1)) for x in (a, b))
        outcomes = np.stack([each for own in figures for each in (*own, labels.sum(1))])
    outcomes, counts = np.unique(outcomes, axis=1, return_counts=True)
    counted = counts[None].astype(np.float64)
    generator = np.random.default_rng(seed)
    at_once = max(1, CELLS // max(outcomes.shape[1], int(outcomes.max()) + 1))
    drawn = [
        metrics(outcomes, generator.multinomial(len(labels), counts / len(labels), size=size))
        for size in (min(at_once, RESAMPLES - start) for start in range(0, RESAMPLES, at_once))
    ]
    found, resampled = metrics(outcomes, counted), np.concatenate(drawn, axis=1)
    tail = (1 - SHARE) / 2
    differences = []
    for name, (value_a, value_b), each in zip(names, found[:, 0].tolist(), resampled, strict=True):
        low, high = np.quantile(each[:, 1] - each[:, 0], [tail, 1 - tail]).tolist()
        differences.append(MetricDifference(name, value_a, value_b, value_b - value_a, low, high))
    return differences


def _metrics(outcomes: Ints, counts: npt.NDArray[Any]) -> Floats:
    """Return accuracy and macro F1, (2, R, 2), of outcomes (3, K) that come (R, K) times."""
    labels, classes = outcomes[0], int(outcomes.max()) + 1
    weights = counts.astype(np.float64)
    support = _per_class(weights, labels, classes)
    metrics = []
    for predicted in outcomes[1:]:
        right = labels == predicted
        hits = _per_class(weights[:, right], labels[right], classes)
        total = support + _per_class(weights, predicted, classes)
        f1 = np.divide(2 * hits, total, out=np.zeros_like(hits), where=total > 0)
        metrics.append((hits.sum(axis=1) / support.sum(axis=1), f1.sum(1) / (total > 0).sum(1)))
    return np.stack(metrics, axis=-1)


def _set_metrics(outcomes: Ints, counts: npt.NDArray[Any]) -> Floats:
    """Return accuracy and micro F1, (2, R, 2), by who is right and numbers of labels, (8, K)."""
    sums = counts.astype(np.float64) @ outcomes.T
    right, shared, *sizes = sums.reshape(len(counts), 2, 4).transpose(2, 0, 1)
    size = np.maximum(sum(sizes), 1)  # of no labels at all 0 are shared
    return np.stack([right / counts.sum(axis=1, keepdims=True), 2 * shared / size])


def _per_class(weights: Floats, classes: Ints, count: int) -> Floats:
    return weights @ np.eye(count)[classes]
