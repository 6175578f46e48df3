"""Networks of shapes alone: no memory, no draws."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from seqtrain.config.schema import ModelConfig
from seqtrain.model.building import shapes_alone, undrawn
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.convolutions import Convolutions


def test_a_network_of_any_size_takes_no_memory_and_draws_nothing() -> None:
    config = ModelConfig(embedding_dim=1 << 16, hidden_size=1 << 16)
    before = torch.get_rng_state()
    with shapes_alone():
        network = SequenceClassifier(config, input_size=1 << 24, num_classes=2, features=False)
    assert network.embedding.weight.shape == (1 << 24, 1 << 16)
    assert all(weight.is_meta for weight in network.parameters())
    assert torch.equal(torch.get_rng_state(), before)


def test_convolutions_draw_nothing_before_they_are_asked_to() -> None:
    before = torch.get_rng_state()
    with undrawn():
        Convolutions(2, [(3, 5, 2)])
    assert torch.equal(torch.get_rng_state(), before)


class Calls(TorchFunctionMode):
    """Notes the names of what torch does inside."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_shapes_of_convolutions_draw_nothing() -> None:
    """A draw on the device "meta" would load torch's compiler, which takes seconds."""
    with Calls() as calls, shapes_alone():
        Convolutions(2, [(3, 5, 2)])
    assert calls.names
    assert not [name for name in calls.names if "normal" in name or "uniform" in name]
