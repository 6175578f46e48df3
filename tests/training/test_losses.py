from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight
from torch.nn import functional

from seqtrain.config.schema import TrainingConfig
from seqtrain.training.losses import example_losses
from seqtrain.training.row_weights import class_weights, example_weights

NAMES = ["no", "yes", "zz"]


def settings(**keys: Any) -> TrainingConfig:
    return TrainingConfig.model_validate(keys)


@given(st.lists(st.integers(0, 2), min_size=3, max_size=60).filter(lambda x: len(set(x)) == 3))
def test_balanced_weights_are_those_of_scikit_learn(labels):
    weights = class_weights(settings(class_weights="balanced"), np.bincount(labels), NAMES)
    expected = compute_class_weight("balanced", classes=np.arange(3), y=labels)
    np.testing.assert_allclose(weights.numpy(), expected, rtol=1e-6)
    assert weights[torch.tensor(labels)].mean() == pytest.approx(1.0, rel=1e-5)


def test_given_weights_go_by_label():
    given_weights = settings(class_weights={"zz": 3.0, "no": 1.0, "yes": 0.5})
    weights = class_weights(given_weights, np.ones(3), NAMES)
    assert weights.tolist() == [1.0, 0.5, 3.0]
    assert class_weights(settings(), np.ones(3), NAMES) is None
    labels, own = np.array([0, 2, -1]), np.array([1, 2, 5], np.float32)
    assert example_weights(labels, own, weights).tolist() == [1.0, 6.0, 5.0]
    assert example_weights(labels, None, None) is None


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_weight_multiplies_the_loss_of_its_example_alone(smoothing, weighted):
    generator = torch.Generator().manual_seed(0)
    logits, labels = torch.randn(7, 3, generator=generator), torch.tensor([0, 1, 2, 2, 1, 0, 0])
    weights = torch.tensor([0.5, 1.0, 3.0, 0.0, 1.0, 2.0, 1.0]) if weighted else None
    keys = settings(label_smoothing=smoothing)
    losses = example_losses(logits, labels, weights, keys)
    expected = functional.cross_entropy(logits, labels, reduction="none", label_smoothing=smoothing)
    torch.testing.assert_close(losses, expected * (1.0 if weights is None else weights))
    alone = example_losses(logits[:1], labels[:1], None if weights is None else weights[:1], keys)
    assert float(alone) == pytest.approx(float(losses[0]))
