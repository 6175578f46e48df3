"""Paired bootstrap: the confidence interval of the difference of two classifiers.

N examples, K distinct outcomes, C classes, R resamples.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.data.store import Array

RESAMPLES = 5000
SHARE = 0.95
"""Share of the resamples that an interval holds."""
CELLS = 2**22
"""Counts that are held at once: memory stays flat."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MetricDifference:
    """A metric of two classifiers, a and b; their difference b - a, and its interval."""

    metric: str
    a: float
    b: float
    difference: float
    low: float
    high: float


def paired_bootstrap(labels: Array, a: Array, b: Array, *, seed: int = 0) -> list[MetricDifference]:
    """Compare accuracy, then macro F1, of two classifiers on the same examples.

    A resample draws N examples with replacement, as multinomial counts of the distinct outcomes.
    Intervals are percentiles. In a multi-label task accuracy is that of whole label sets, and micro
    F1 replaces macro F1.

    Args:
        labels: Class indices, (N,), or the classes of each example, (N, C) bool. N is at least 1.
        a: Predictions of the first classifier, in the same form.
        b: Predictions of the second classifier.
        seed: Seed of the resamples.
    """
    multi_label = labels.ndim == 2
    names = ("accuracy", "micro_f1" if multi_label else "macro_f1")
    outcomes, counts = np.unique(np.stack([labels, a, b], axis=1), axis=0, return_counts=True)
    if not multi_label:
        outcomes = np.eye(int(outcomes.max()) + 1, dtype=bool)[outcomes]
    labels, predicted = outcomes[:, :1], outcomes[:, 1:]
    right, shared = (labels == predicted).all(2), (labels & predicted).astype(np.float64)
    sizes = labels.astype(np.float64) + predicted
    if multi_label:
        shared, sizes = (each.sum(2, keepdims=True) for each in (shared, sizes))

    def metrics(times: npt.NDArray[Any]) -> Floats:
        """Return both metrics of a and b, (2, R, 2), for counts of the outcomes, (R, K)."""
        times = times.astype(np.float64)
        hits, all_of_them = (np.tensordot(times, each, 1) for each in (shared, sizes))
        occurs = all_of_them > 0
        f1 = np.divide(2 * hits, all_of_them, out=np.zeros_like(hits), where=occurs)
        accuracy = times @ right / times.sum(axis=1, keepdims=True)
        return np.stack([accuracy, f1.sum(2) / np.maximum(1, occurs.sum(2))])

    generator = np.random.default_rng(seed)
    at_once = max(1, CELLS // max(len(counts), sizes[0].size))
    total = int(counts.sum())
    drawn = [
        metrics(generator.multinomial(total, counts / total, size=size))
        for size in (min(at_once, RESAMPLES - start) for start in range(0, RESAMPLES, at_once))
    ]
    found, resampled = metrics(counts[None]), np.concatenate(drawn, axis=1)
    tail = (1 - SHARE) / 2
    differences = []
    for name, (value_a, value_b), each in zip(names, found[:, 0].tolist(), resampled, strict=True):
        low, high = np.quantile(each[:, 1] - each[:, 0], [tail, 1 - tail]).tolist()
        differences.append(MetricDifference(name, value_a, value_b, value_b - value_a, low, high))
    return differences
