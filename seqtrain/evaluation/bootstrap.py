"""Paired bootstrap: the confidence interval of the difference of two classifiers.

N examples, K distinct outcomes, C classes, R resamples.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.sequences.store import Array

RESAMPLES = 5000
SHARE = 0.95
"""Share of the resamples whose difference is inside the interval."""
LARGEST_BLOCK = 2**22
"""Largest number of counts in memory at one time."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MetricDifference:
    """Values of a metric for two classifiers, a and b, and their difference.

    Attributes:
        metric: Name of the metric.
        a, b: Value for each classifier.
        difference: b - a.
        low, high: Ends of the 95 % confidence interval of the difference.
    """

    metric: str
    a: float
    b: float
    difference: float
    low: float
    high: float


def paired_bootstrap(labels: Array, a: Array, b: Array, *, seed: int = 0) -> list[MetricDifference]:
    """Return the differences in accuracy and macro F1 of two classifiers on the same examples.

    In a multi-label task, accuracy is the share of examples whose labels are all right, and micro
    F1 replaces macro F1. The ends of an interval are percentiles over resamples of N examples,
    drawn with replacement.

    Args:
        labels: Class indices, (N,); or True for the classes of each example, (N, C) bool. N is at
            least 1.
        a: Predictions of the first classifier, in the same form as `labels`.
        b: Predictions of the second classifier, in the same form.
        seed: Seed of the resamples.

    Returns:
        Two differences: of accuracy, and of macro F1 (or micro F1).
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
        """Return accuracy and F1 of a and b in R resamples, (2, R, 2).

        The axes are metric, resample, classifier. An outcome is a distinct triple: label,
        prediction of a, prediction of b. `times`, (R, K), is how often each of K outcomes occurs in
        each resample.
        """
        times = times.astype(np.float64)
        hits, all_of_them = (np.tensordot(times, each, 1) for each in (shared, sizes))
        occurs = all_of_them > 0
        f1 = np.divide(2 * hits, all_of_them, out=np.zeros_like(hits), where=occurs)
        accuracy = times @ right / times.sum(axis=1, keepdims=True)
        return np.stack([accuracy, f1.sum(2) / np.maximum(1, occurs.sum(2))])

    generator = np.random.default_rng(seed)
    at_once = max(1, LARGEST_BLOCK // max(len(counts), sizes[0].size))
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
