"""The training loop: what it learns, reports, stops at, and goes on from."""

import math
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from seqtrain.errors import RunError
from seqtrain.sequences.batch import collate
from seqtrain.sequences.plan import plan_epoch
from seqtrain.training.events import EpochEvent
from seqtrain.training.loop import train_epochs
from seqtrain.training.trainer import Trainer
from tests.helpers.batches import classify
from tests.helpers.stores import store_of


def first_plan(trainer: Trainer) -> list[np.ndarray]:
    return plan_epoch(trainer.setup.rows.lengths, trainer.config.batching, seed=0, epoch=0)


def weights(trainer: Trainer) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in trainer.network.state_dict().items()}


def equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def epochs(trainer: Trainer) -> list[EpochEvent]:
    return [event for event in train_epochs(trainer) if isinstance(event, EpochEvent)]


def test_a_validation_split_does_not_change_what_is_learned(make_trainer, make_store):
    keys: dict[str, Any] = {"model": {"dropout": 0.3}, "training": {"max_epochs": 2}}
    one, other = make_trainer(**keys), make_trainer(validation=make_store(20, seed=1), **keys)
    epochs(one)
    epochs(other)
    assert equal(weights(one), weights(other))


def test_losses_are_means_over_examples_with_a_ragged_last_batch(make_trainer):
    trainer = make_trainer(training={"max_epochs": 1, "sparse_embedding": False})
    events = []
    sums: list[float] = []
    correct = 0
    plan = first_plan(trainer)
    assert sorted(map(len, plan)) == [5, 8, 8, 8]
    steps = train_epochs(trainer)
    for rows in plan:
        batch = collate(trainer.setup.rows.__getitems__(rows))
        with torch.no_grad():
            logits = classify(trainer.network, batch.packed)
        losses = functional.cross_entropy(logits, batch.labels, reduction="none")
        event = next(steps)
        assert event.loss == pytest.approx(float(losses.mean()), rel=1e-5)
        assert event.time_steps == int(batch.lengths.sum())
        events.append(event)
        sums += losses.tolist()
        correct += int((logits.argmax(1) == batch.labels).sum())
    epoch = next(steps)
    assert epoch.loss == pytest.approx(sum(sums) / 29, rel=1e-5)
    assert epoch.accuracy == correct / 29
    assert epoch.time_steps == len(trainer.setup.rows.values)
    assert [event.batch for event in events] == [1, 2, 3, 4]
    assert [event.update for event in events] == [1, 2, 3, 4] == [1, 2, 3, epoch.update]


def test_a_loss_that_is_not_finite_stops_before_the_update(make_trainer):
    trainer = make_trainer(batching={"batch_size": 8, "bucketing": False})
    steps = train_epochs(trainer)
    next(steps)
    store = trainer.setup.rows
    rows = first_plan(trainer)[1]
    guilty = store[int(rows[3])][0][-1]
    trainer.network.recurrent.embedding.weight.data[guilty, 0] = math.nan
    lines = [str(store.lines[row]) for row in rows if guilty in store[int(row)][0]]
    assert 0 < len(lines) < len(rows)
    before, moments = weights(trainer), deepcopy(trainer.optimizer.state_dict())
    with pytest.raises(RunError) as caught:
        next(steps)
    assert str(caught.value).startswith("update 2: ")
    assert f" train lines {', '.join(lines)} " in str(caught.value)
    after = weights(trainer)
    assert all(torch.equal(before[n].nan_to_num(), after[n].nan_to_num()) for n in before)
    assert trainer.progress.updates == 1
    assert equal(trainer.optimizer.state_dict(), moments)


def test_a_gradient_that_is_not_finite_stops_too(make_trainer):
    trainer = make_trainer(model={"pooling": "mean"})
    trainer.network.recurrent.head.weight.register_hook(lambda gradient: gradient * math.inf)
    before = weights(trainer)
    with pytest.raises(RunError, match=r"^update 1: the gradient isn.t finite for train lines \d+"):
        next(train_epochs(trainer))
    assert equal(before, weights(trainer))


def test_a_validation_loss_that_is_not_finite_claims_no_checkpoint(make_trainer):
    trainer = make_trainer(validation=store_of([[1]]))
    trainer.network.recurrent.embedding.weight.data[1] = math.nan
    with pytest.raises(RunError) as caught:
        epochs(trainer)
    assert str(caught.value).startswith("epoch 1: the validation loss is nan")
    assert "training.lr" in str(caught.value)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("[enforce fail] . DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("MPS backend out of memory (MPS allocated: 1 GB)"),
    ],
)
def test_memory_that_runs_out_says_what_to_lower(make_trainer, error):
    def fail(*given: object) -> None:
        raise error

    trainer = make_trainer(batching={"max_tokens": 40})
    trainer.network.recurrent.head.register_forward_pre_hook(fail)
    said = r"^memory ran out on \d+ sequences, the longest of \d steps; lower batching\.max_tokens"
    with pytest.raises(RunError, match=said):
        next(train_epochs(trainer))


def test_training_stops_when_patience_runs_out(make_trainer, make_store):
    keys = {"lr": 1e-9, "patience": 2, "max_epochs": 50, "monitor": "accuracy"}
    trainer = make_trainer(validation=make_store(20, seed=1), training=keys)
    events = epochs(trainer)
    assert len({event.validation.accuracy for event in events if event.validation}) == 1
    assert len(events) == 3  # a lower loss alone is no progress where patience is set
    assert trainer.stopped_early
    assert len(epochs(make_trainer(training={**keys, "patience": None, "max_epochs": 6}))) == 6
    last = make_trainer(validation=make_store(20, seed=1), training={**keys, "max_epochs": 3})
    assert len(epochs(last)) == 3
    assert not last.stopped_early  # patience ran out in the last epoch


@pytest.mark.parametrize(("patience", "trained"), [("auto", 20), (None, 40)])
def test_training_ends_where_half_of_it_beats_never_the_largest_class(
    patience, trained, make_trainer
):
    rows = replace(store_of([[2, 2], [3, 3]] * 9), labels=np.zeros(18, dtype=np.int64))
    keys = {"lr": 1e-4, "patience": patience, "max_epochs": 40, "min_delta": 0.0}
    assert len(epochs(make_trainer(train=rows, validation=rows, training=keys))) == trained


@pytest.mark.parametrize(("patience", "pairs"), [(None, 50), (50, 49)])
def test_training_stops_when_all_of_validation_was_right_for_long(patience, pairs, make_trainer):
    rows = replace(store_of([[2, 2], [3, 3]] * pairs), labels=np.array([0, 1] * pairs))
    keys = {"lr": 0.05, "patience": patience, "max_epochs": 40, "monitor": "accuracy"}
    trainer = make_trainer(train=rows, validation=rows, training=keys)
    events = epochs(trainer)
    right = [event.validation.accuracy for event in events]
    assert len(events) == right.index(1.0) + 1 + 8  # a fifth of all epochs


@pytest.mark.parametrize("monitor", ["accuracy", "macro_f1", "weighted_f1", "loss"])
def test_the_best_epoch_is_that_of_the_monitored_validation_metric(
    monitor, make_trainer, make_store
):
    trainer = make_trainer(
        validation=make_store(40, seed=1),
        training={"monitor": monitor, "max_epochs": 8, "patience": None, "lr": 0.05},
    )
    events = epochs(trainer)
    values = [getattr(event.validation, monitor) for event in events]
    best = min(values) if monitor == "loss" else max(values)
    assert trainer.best_epoch == values.index(best) + 1
    assert trainer.best_value() == best
    assert events[trainer.best_epoch - 1].is_best


def test_without_validation_trains_own_scores_are_monitored(make_trainer):
    trainer = make_trainer(training={"max_epochs": 3, "monitor": "loss"})
    events = epochs(trainer)
    assert events[0].validation is None
    assert trainer.best_value() == min(event.loss for event in events)
