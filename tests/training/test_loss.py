from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight
from torch.nn import functional

from seqtrain.config.schema import TrainingConfig
from seqtrain.training.objectives import class_weights, example_losses

NAMES = ["no", "yes", "zz"]


def settings(**keys: Any) -> TrainingConfig:
    return TrainingConfig.model_validate(keys)


@given(st.lists(st.integers(0, 2), min_size=3, max_size=60).filter(lambda x: len(set(x)) == 3))
def test_balanced_weights_are_those_of_scikit_learn(labels):
    weights = class_weights(settings(class_weights="balanced"), np.array(labels), NAMES)
    expected = compute_class_weight("balanced", classes=np.arange(3), y=labels)
    np.testing.assert_allclose(weights.numpy(), expected, rtol=1e-6)
    assert weights[torch.tensor(labels)].mean() == pytest.approx(1.0, rel=1e-5)


def test_given_weights_go_by_label():
    weights = class_weights(
        settings(class_weights={"zz": 3.0, "no": 1.0, "yes": 0.5}), np.array([0, 1, 2]), NAMES
    )
    assert weights.tolist() == [1.0, 0.5, 3.0]
    assert class_weights(settings(), np.array([0, 1, 2]), NAMES) is None


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_are_torchs_without_its_weighted_mean(smoothing, weighted):
    generator = torch.Generator().manual_seed(0)
    logits, labels = torch.randn(7, 3, generator=generator), torch.tensor([0, 1, 2, 2, 1, 0, 0])
    weights = torch.tensor([0.5, 1.0, 3.0]) if weighted else None
    losses = example_losses(logits, labels, weights, settings(label_smoothing=smoothing))
    total = functional.cross_entropy(
        logits, labels, weight=weights, reduction="sum", label_smoothing=smoothing
    )
    assert float(losses.sum()) == pytest.approx(float(total), rel=1e-6)
    alone = example_losses(logits[:1], labels[:1], weights, settings(label_smoothing=smoothing))
    assert float(alone) == pytest.approx(float(losses[0]))
    if not smoothing:
        scale = 1.0 if weights is None else weights[labels]
        expected = -torch.log_softmax(logits, 1)[torch.arange(7), labels] * scale
        torch.testing.assert_close(losses, expected)
