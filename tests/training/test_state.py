"""Going on from a captured state: the same bits as without the stop."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from seqtrain.data.store import SequenceStore
from seqtrain.training.events import EpochEvent, UpdateEvent
from seqtrain.training.trainer import Trainer
from tests.helpers.examples import some

MakeTrainer = Callable[..., Trainer]
MakeStore = Callable[..., SequenceStore]


def weights(trainer: Trainer) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in trainer.objective.model.state_dict().items()}


def state_after(trainer: Trainer, events: int) -> tuple[Any, ...]:
    """Train for some events, then copy the whole state out as it is saved."""
    steps = trainer.events()
    for _ in range(events):
        next(steps)
    with trainer.settled():
        tensors, values = trainer.capture()
        return weights(trainer), {name: value.clone() for name, value in tensors.items()}, values


STARTS = ("zeros", "random", "learned")


@pytest.mark.parametrize(
    ("optimizer", "start", "events"),
    [
        *some(product(["adamw"], STARTS, [1, 3, 4, 5, 9]), 2),
        *some(product(["adam", "sgd"], STARTS, [3]), 2),
    ],
)
def test_going_on_from_a_captured_state_gives_equal_bits(
    optimizer: str, start: str, events: int, make_trainer: MakeTrainer, make_store: MakeStore
) -> None:
    training = {"optimizer": optimizer, "max_epochs": 2, "schedule": "cosine", "warmup": 0.2}
    keys: dict[str, Any] = {
        "model": {
            "dropout": 0.3,
            "num_layers": 2,
            "pooling": "attention",
            "initial_state": start,
            "initial_scale": 2.0,
        },
        "training": {**training, "bptt": 4 if start == "random" else None},
        "validation": make_store(20, seed=1),
    }
    uninterrupted = make_trainer(**keys)
    complete = [strip(event) for event in uninterrupted.events()]

    weights_then, tensors, values = state_after(make_trainer(**keys), events)
    resumed = make_trainer(**keys)
    resumed.objective.model.load_state_dict(weights_then)
    torch.manual_seed(99)
    resumed.restore(tensors, values)
    remaining = [strip(event) for event in resumed.events()]

    assert remaining == complete[events:]
    expected = weights(uninterrupted)
    assert all(torch.equal(value, expected[name]) for name, value in weights(resumed).items())


def strip(event: UpdateEvent | EpochEvent) -> dict[str, Any]:
    """All of an event but the time that it took."""
    return {name: value for name, value in vars(event).items() if name != "seconds"}
