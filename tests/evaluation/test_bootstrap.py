"""The paired bootstrap: its metrics are those of eval, its interval that of drawing examples."""

import numpy as np
import pytest
import torch

from seqtrain.evaluation.bootstrap import paired_bootstrap
from seqtrain.evaluation.scoring import score


def drawn(examples: int, classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels and the predictions of two classifiers, of which the second is better."""
    generator = np.random.default_rng(0)
    labels, others = generator.integers(classes, size=(2, examples))
    a, b = (np.where(generator.random(examples) < share, labels, others) for share in (0.5, 0.7))
    return labels, a, b


def test_values_of_several_labels_are_those_of_eval():
    labels, a, b = np.random.default_rng(0).random((3, 90, 4)) < 0.4
    accuracy, micro_f1 = paired_bootstrap(labels, a, b)
    logits, lengths = torch.from_numpy(b * 2.0 - 1), torch.ones(90, dtype=torch.int64)
    scores = score(logits, torch.from_numpy(labels.astype(np.int8)), lengths, [*"abcd"], [0.5] * 4)
    assert (accuracy.b, micro_f1.b) == pytest.approx((scores.accuracy, scores.micro_f1))
    assert micro_f1.low <= micro_f1.difference <= micro_f1.high


def test_the_interval_is_that_of_drawing_examples():
    labels, a, b = drawn(300, 4)
    accuracy, macro_f1 = paired_bootstrap(labels, a, b)
    rows = np.random.default_rng(1).integers(300, size=(3000, 300))
    differences = (b[rows] == labels[rows]).mean(1) - (a[rows] == labels[rows]).mean(1)
    low, high = np.quantile(differences, [0.025, 0.975])
    assert (accuracy.low, accuracy.high) == pytest.approx((low, high), abs=0.012)
    assert accuracy.low < accuracy.difference < accuracy.high
    assert macro_f1.low < macro_f1.difference < macro_f1.high
    assert paired_bootstrap(labels, a, b) == [accuracy, macro_f1]
    assert paired_bootstrap(labels, a, b, seed=1) != [accuracy, macro_f1]


def test_equal_predictions_differ_by_nothing_and_pairing_matters():
    labels, a, _ = drawn(200, 3)
    same = paired_bootstrap(labels, a, a)
    assert [(each.low, each.difference, each.high) for each in same] == [(0, 0, 0)] * 2
    better, wrong = a.copy(), np.flatnonzero(a != labels)[:10]
    better[wrong] = labels[wrong]
    accuracy = paired_bootstrap(labels, a, better)[0]
    assert accuracy.difference == pytest.approx(0.05)
    assert 0 < accuracy.low < 0.05 < accuracy.high < 0.1  # unpaired it would hold 0
    accuracy = paired_bootstrap(labels[:1], labels[:1] + 1, labels[:1])[0]
    assert (accuracy.a, accuracy.b, accuracy.low, accuracy.high) == (0, 1, 1, 1)
