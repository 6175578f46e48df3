"""Going on from a captured state gives the bits of no stop; and what counts as progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from seqtrain.data.store import SequenceStore
from seqtrain.training.events import EpochEvent, UpdateEvent
from seqtrain.training.state import Progress, checked_progress
from seqtrain.training.trainer import Trainer
from tests.helpers.examples import some

MakeTrainer = Callable[..., Trainer]
MakeStore = Callable[..., SequenceStore]
STARTS = ("zeros", "random", "learned", "carried")


def weights(trainer: Trainer) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in trainer.objective.model.state_dict().items()}


def strip(event: UpdateEvent | EpochEvent) -> dict[str, Any]:
    """All of an event but the time that it took."""
    return {name: value for name, value in vars(event).items() if name != "seconds"}


@pytest.mark.parametrize(
    ("optimizer", "start", "events"),
    [
        *some(product(["adamw"], STARTS, [1, 3, 4, 5, 9]), 4),
        *some(product(["adam", "sgd"], STARTS, [3]), 2),
        ("adamw", "carried", 7),
    ],
)
def test_going_on_from_a_captured_state_gives_equal_bits(
    optimizer: str, start: str, events: int, make_trainer: MakeTrainer, make_store: MakeStore
) -> None:
    training = {"optimizer": optimizer, "max_epochs": 2, "schedule": "cosine", "warmup": 0.2}
    model = {"dropout": 0.3, "num_layers": 2, "pooling": "attention", "initial_state": start}
    keys: dict[str, Any] = {"model": model, "train": make_store(29)}
    if start == "random":
        model["initial_scale"], training["bptt"] = 2.0, 4
    if start == "carried":
        keys["data"] = {"group": "chat", "validation": None}
        groups = np.random.default_rng(3).integers(-1, 7, size=29)
        keys["train"] = replace(keys["train"], groups=groups)
    keys |= {"training": training, "validation": make_store(20, seed=1)}
    uninterrupted = make_trainer(**keys)
    complete = [strip(event) for event in uninterrupted.events()]

    stopped, resumed = make_trainer(**keys), make_trainer(**keys)
    for _, _ in zip(range(events), stopped.events(), strict=False):
        pass
    tensors, values = stopped.capture()
    resumed.objective.model.load_state_dict(weights(stopped))
    torch.manual_seed(99)
    resumed.restore({name: value.clone() for name, value in tensors.items()}, values)
    assert [strip(event) for event in resumed.events()] == complete[events:]
    expected = weights(uninterrupted)
    assert all(torch.equal(value, expected[name]) for name, value in weights(resumed).items())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("updates", "4"),
        ("updates", -1),
        ("updates", 10**400),
        ("updates", True),
        ("loss_sum", 1e308),
        ("batches_done", 3),
        ("best_value", float("nan")),
        ("module", "os"),
        ("pretraining", 1),
    ],
)
def test_counters_that_no_run_has_are_refused(name: str, value: object) -> None:
    good = vars(Progress(epoch=1, updates=4))
    assert checked_progress(good) == Progress(epoch=1, updates=4)
    with pytest.raises(ValueError, match=r"^progress[:.].{5,}$"):
        checked_progress({**good, name: value})


@pytest.mark.parametrize(("counts", "waited"), [(True, 1), (False, 3)])
def test_a_falling_loss_is_progress_where_it_counts(counts: bool, waited: int) -> None:
    progress = Progress()
    for value, loss in ((0.5, 2.0), (0.5, 1.5), (0.5, 1.0), (0.5, 1.25)):
        progress.note_value(value)
        progress.note_loss(loss, counts=counts)
    assert (progress.epochs_without_better, progress.plateaus) == (waited, 3)
    assert (progress.lowest_loss, progress.loss_fell) == (1.0, False)
    assert progress.best_epoch == 1


def test_of_equal_values_the_lower_loss_is_best() -> None:
    progress, best = Progress(), []
    for epoch, loss in enumerate((0.9, 0.5, 0.5, 0.6)):
        progress.epoch = epoch
        best.append(progress.note_value(1.0, loss))
    assert best == [True, True, False, False]
    assert (progress.best_epoch, progress.epochs_without_better) == (2, 3)


@pytest.mark.parametrize(
    ("values", "errors", "best", "epochs"),
    [
        ((0.5, 0.9, 0.88, 0.7, 0.87, 0.86), (0.03,) * 6, 2, 5),
        ((0.5, 0.9, 0.88, 0.7, 0.87, 0.86), (0.0,) * 6, 2, 2),  # monitor: loss has no such error
        ((0.5, 0.9, 0.88, 0.95, 0.88), (0.03,) * 5, 4, 4),  # near the best so far, not of all
        ((0.95, 0.942, 0.9), (0.007, 0.02, 0.5), 1, 1),  # the error of the best counts
    ],
)
def test_a_refit_repeats_the_epochs_up_to_the_last_within_a_standard_error_of_the_best(
    values: tuple[float, ...], errors: tuple[float, ...], best: int, epochs: int
) -> None:
    progress = Progress()
    for epoch, (value, error) in enumerate(zip(values, errors, strict=True)):
        progress.epoch = epoch
        progress.note_value(value, error=error)
    assert (progress.best_epoch, progress.refit_epochs) == (best, epochs)
