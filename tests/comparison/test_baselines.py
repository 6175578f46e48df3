"""Plain torch scripts give the logits and gradients of the model whose weights they borrow."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from seqtrain.comparison.learners import plain_logits
from seqtrain.config.schema import ModelConfig
from seqtrain.model.classifier import ClassifierNetwork

LENGTHS = [3, 7, 1, 12, 7, 1, 4]
"""Unsorted, with the shortest possible and equal ones."""


def compared(packed: bool, by_mask: bool = False, features: int = 0, **keys: object) -> None:
    """Compare logits and gradients with those of the sequences one by one."""
    torch.manual_seed(0)
    settings = {"embedding_dim": 5, "hidden_size": 6, "engine": "torch", **keys}
    model = ClassifierNetwork(
        ModelConfig.model_validate(settings),
        input_size=features or 30,
        num_classes=4,
        features=bool(features),
    ).eval()
    model.initialize(seed=0)
    sequences: list[Tensor] = [torch.randint(1, 30, (length,)) for length in LENGTHS]
    if features:
        sequences = [torch.randn(length, features) for length in LENGTHS]
    lengths = torch.tensor(LENGTHS)
    padded = pad_sequence(sequences, batch_first=True, padding_value=5)  # an id like any other
    found = plain_logits(model, padded, lengths, packed=packed, by_mask=by_mask)
    alone = [model(s.unsqueeze(0), torch.tensor([len(s)])) for s in sequences]
    expected = torch.cat(alone)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
    weights = [p for name, p in model.named_parameters() if not name.startswith("embedding")]
    gradients = [torch.autograd.grad(y.square().sum(), weights) for y in (found, expected)]
    torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "padded"])
@pytest.mark.parametrize(
    "keys",
    [
        {"rnn": "gru", "pooling": "last"},
        {"rnn": "gru", "pooling": "attention", "num_layers": 2, "bidirectional": True},
        {"rnn": "lstm", "pooling": "last", "bidirectional": True, "join": "sum"},
        {"rnn": "lstm", "pooling": "mean", "num_layers": 2},
        {"rnn": "rnn", "pooling": "max", "bidirectional": True, "join": "mean"},
        {"features": 3, "bidirectional": True},
    ],
)
def test_every_cell_and_pooling(keys: dict[str, Any], packed: bool) -> None:
    compared(packed, **keys)


@pytest.mark.parametrize("rnn", ["gru", "lstm", "rnn"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_last_steps_found_by_a_mask(rnn: str, bidirectional: bool) -> None:
    compared(packed=False, by_mask=True, rnn=rnn, bidirectional=bidirectional)
