"""States carried from row to row of a group: training, evaluation, and going on exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from seqtrain.data.batch import collate
from seqtrain.data.plan import plan_epoch_of_groups
from seqtrain.data.store import SequenceStore
from seqtrain.evaluation.carried import CarriedStates
from seqtrain.evaluation.logits import predict_logits
from seqtrain.training.events import EpochEvent
from seqtrain.training.trainer import Trainer

MakeTrainer = Callable[..., Trainer]
MakeStore = Callable[..., SequenceStore]
CPU = torch.device("cpu")
RNNS = ["gru", "lstm", "rnn"]


@pytest.fixture
def grouped(make_store: MakeStore) -> SequenceStore:
    """Random sequences in groups of 1 to 9 rows that are mixed with one another, some alone."""
    groups = np.random.default_rng(3).integers(-1, 7, size=40)
    return replace(make_store(40), groups=groups)


def carrying(make_trainer: MakeTrainer, train: SequenceStore, **keys: Any) -> Trainer:
    model = {"initial_state": "carried", "num_layers": 2, **keys.pop("model", {})}
    return make_trainer(train=train, model=model, **keys)


def one_by_one(trainer: Trainer, store: SequenceStore) -> Tensor:
    """Classify each row with torch's module from the state that the group's last row ended in."""
    model, states, logits = trainer.objective.model, {}, []
    for row in range(len(store)):
        group = int(store.groups[row])
        ids = torch.tensor(store[row][0]).long()
        start = states.get(group) if group >= 0 else None
        outputs, states[group] = model.encoder(model.embedding(ids).unsqueeze(0), start)
        logits.append(model.head(outputs[0, -1]))
    return torch.stack(logits)


@pytest.mark.parametrize("rnn", RNNS)
@pytest.mark.parametrize("unroll", ["packed", "masked"])
def test_every_row_starts_where_the_row_before_it_ended(
    rnn: str, unroll: str, make_trainer: MakeTrainer, grouped: SequenceStore
) -> None:
    trainer = carrying(make_trainer, grouped, model={"rnn": rnn, "unroll": unroll})
    with torch.no_grad():
        expected = one_by_one(trainer, grouped)
    logits = predict_logits(trainer.objective.model, grouped, CPU)
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=0)
    alone = predict_logits(trainer.objective.model, replace(grouped, groups=None), CPU)
    assert not torch.allclose(logits, alone, atol=1e-3)


def test_states_pass_from_one_store_to_the_next(
    make_trainer: MakeTrainer, grouped: SequenceStore
) -> None:
    trainer = carrying(make_trainer, grouped)
    whole = predict_logits(trainer.objective.model, grouped, CPU)
    carried = CarriedStates()
    parts = [grouped.__getitems__(np.arange(*span)) for span in ((0, 11), (11, 12), (12, 40))]
    logits = [predict_logits(trainer.objective.model, part, CPU, carried=carried) for part in parts]
    torch.testing.assert_close(torch.cat(logits), whole, atol=1e-6, rtol=0)


@pytest.mark.parametrize("sort", ["collate", "module"])
@pytest.mark.parametrize("rnn", RNNS)
def test_training_carries_states_and_cuts_gradients_between_rows(
    rnn: str, sort: str, make_trainer: MakeTrainer, grouped: SequenceStore
) -> None:
    keys: dict[str, Any] = {
        "batching": {"batch_size": 5, "sort": sort},
        "training": {
            "optimizer": "sgd",
            "sparse_embedding": False,
            "lr": 0.1,
            "max_epochs": 2,
            "max_grad_norm": None,
        },
        "model": {"rnn": rnn},
    }
    trainer, reference = (carrying(make_trainer, grouped, **keys) for _ in range(2))
    events = trainer.events()
    model, config = reference.objective.model, reference.objective.config
    step = 0
    for epoch in range(2):
        states: dict[int, Tensor] = {}
        plan = plan_epoch_of_groups(
            grouped.lengths, grouped.groups, config.batching, seed=0, epoch=epoch
        )
        for rows in plan:
            losses = []
            for row in rows:
                batch = collate(grouped.__getitems__(np.array([row])))
                group = int(grouped.groups[row])
                start = states.get(group) if group >= 0 else None
                (logits,), state = model.branches(batch.packed, start=start)
                states[group] = state.detach()
                losses.append(torch.nn.functional.cross_entropy(logits, batch.labels))
            loss = torch.stack(losses).mean()
            reference.optimizer.gradient(loss)
            reference.optimizer.step(lr=0.1)
            event = next(events)
            step += 1
            assert event.update == step
            assert event.loss == pytest.approx(loss.item(), abs=1e-5)
        assert isinstance(next(events), EpochEvent)


@pytest.mark.parametrize("events", [2, 7, 12])
def test_going_on_in_the_middle_of_groups_gives_equal_bits(
    events: int, make_trainer: MakeTrainer, grouped: SequenceStore
) -> None:
    keys = {"batching": {"batch_size": 5}, "training": {"max_epochs": 3}}
    uninterrupted = carrying(make_trainer, grouped, **keys)
    complete = [vars(event) | {"seconds": 0} for event in uninterrupted.events()]

    stopped, resumed = (carrying(make_trainer, grouped, **keys) for _ in range(2))
    steps = stopped.events()
    for _ in range(events):
        next(steps)
    tensors, values = stopped.capture()
    tensors = {name: value.clone() for name, value in tensors.items()}
    resumed.objective.model.load_state_dict(stopped.objective.model.state_dict())
    resumed.restore(tensors, values)
    remaining = [vars(event) | {"seconds": 0} for event in resumed.events()]
    assert remaining == complete[events:]


def test_states_that_do_not_fit_are_refused(
    make_trainer: MakeTrainer, grouped: SequenceStore
) -> None:
    trainer = carrying(make_trainer, grouped)
    next(trainer.events())
    good = trainer.objective.carried.tensors(trainer.objective.model)
    assert good["carried.states"].shape[1:] == (1, 2, 8)
    for bad in (
        {},
        {"carried.groups": good["carried.groups"]},
        {**good, "carried.groups": good["carried.groups"] * 0},
        {**good, "carried.groups": good["carried.groups"] - 99},
        {**good, "carried.groups": good["carried.groups"][:-1]},
        {**good, "carried.states": good["carried.states"] * torch.nan},
        {**good, "carried.states": good["carried.states"].double()},
    ):
        with pytest.raises(ValueError, match=r"^carried: "):
            trainer.objective.carried.load(bad, trainer.objective.model)
    trainer.objective.carried.load(good, trainer.objective.model)
    trainer.objective.carried.forget()
    none = trainer.objective.carried.tensors(trainer.objective.model)
    assert [len(tensor) for tensor in none.values()] == [0, 0]
    trainer.objective.carried.load(none, trainer.objective.model)


@pytest.mark.parametrize("lost", ["all", "one"])
def test_a_resume_without_the_states_so_far_is_refused(
    lost: str, make_trainer: MakeTrainer, grouped: SequenceStore
) -> None:
    trainer = carrying(make_trainer, grouped)
    next(trainer.events())
    tensors, values = trainer.capture()
    for name in ("carried.groups", "carried.states"):
        if lost == "all":
            del tensors[name]
        else:
            tensors[name] = tensors[name][1:]
    with pytest.raises(ValueError, match=r"^carried"):
        carrying(make_trainer, grouped).restore(tensors, values)
