"""The paired bootstrap: its metrics are those of eval, its interval that of drawing examples."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seqtrain.evaluation.bootstrap import paired_bootstrap
from seqtrain.evaluation.metrics import score


def drawn(examples: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels and the answers of two classifiers, of which the second is better."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(classes, size=examples)
    answers = [
        np.where(
            generator.random(examples) < share, labels, generator.integers(classes, size=examples)
        )
        for share in (0.5, 0.7)
    ]
    return labels, answers[0], answers[1]


@pytest.mark.parametrize("classes", [2, 5, 40])
def test_values_are_those_of_eval(classes: int) -> None:
    labels, *answers = drawn(200, classes)
    found = {each.metric: each for each in paired_bootstrap(labels, *answers)}
    for answer, name in zip(answers, "ab", strict=True):
        logits = torch.nn.functional.one_hot(torch.from_numpy(answer), classes).float()
        lengths = torch.ones(len(labels), dtype=torch.int64)
        scores = score(logits, torch.from_numpy(labels), lengths, [str(c) for c in range(classes)])
        for metric in ("accuracy", "macro_f1"):
            value = getattr(found[metric], name)
            assert value == pytest.approx(getattr(scores, metric), abs=1e-12)


def test_the_interval_is_that_of_drawing_examples() -> None:
    labels, a, b = drawn(300, 4)
    accuracy, macro_f1 = paired_bootstrap(labels, a, b)
    generator = np.random.default_rng(1)
    differences = []
    for _ in range(3000):
        rows = generator.integers(300, size=300)
        differences.append(np.mean(b[rows] == labels[rows]) - np.mean(a[rows] == labels[rows]))
    low, high = np.quantile(differences, [0.025, 0.975])
    assert (accuracy.low, accuracy.high) == pytest.approx((low, high), abs=0.012)
    assert accuracy.low < accuracy.difference < accuracy.high
    assert macro_f1.low < macro_f1.difference < macro_f1.high


def test_pairing_matters_and_equal_answers_differ_by_nothing() -> None:
    labels, a, _ = drawn(200, 3)
    same = paired_bootstrap(labels, a, a)
    assert [(each.low, each.difference, each.high) for each in same] == [(0, 0, 0)] * 2
    better = a.copy()
    better[np.flatnonzero(a != labels)[:10]] = labels[np.flatnonzero(a != labels)[:10]]
    accuracy = paired_bootstrap(labels, a, better)[0]
    assert accuracy.difference == pytest.approx(0.05)
    assert 0 < accuracy.low < 0.05 < accuracy.high < 0.1  # unpaired it would hold 0


def test_it_is_seeded() -> None:
    data = drawn(100, 3)
    assert paired_bootstrap(*data) == paired_bootstrap(*data)
    assert paired_bootstrap(*data) != paired_bootstrap(*data, seed=1)


def test_one_example() -> None:
    one = np.zeros(1, dtype=np.int64)
    accuracy, _ = paired_bootstrap(one, one + 1, one)
    assert (accuracy.a, accuracy.b, accuracy.low, accuracy.high) == (0, 1, 1, 1)
