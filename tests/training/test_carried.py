"""States carried from row to row of a group: training, and going on exactly."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from seqtrain.evaluation.logits import predict_logits
from seqtrain.model.carried import CarriedStates
from seqtrain.sequences.batch import collate
from seqtrain.sequences.plan import plan_epoch_of_groups
from seqtrain.sequences.store import SequenceStore
from seqtrain.training.events import EpochEvent
from seqtrain.training.loop import train_epochs
from seqtrain.training.trainer import Trainer
from tests.helpers.batches import classify_by_branch

MakeTrainer = Callable[..., Trainer]
CPU = torch.device("cpu")
RNNS = ["gru", "lstm", "rnn"]


@pytest.fixture
def grouped(make_store) -> SequenceStore:
    """Random sequences in groups of 1 to 9 rows that are mixed with one another, some alone."""
    groups = np.random.default_rng(3).integers(-1, 7, size=40)
    return replace(make_store(40), groups=groups)


def carrying(make_trainer: MakeTrainer, train: SequenceStore, **keys: Any) -> Trainer:
    model = {"initial_state": "carried", "num_layers": 2, **keys.pop("model", {})}
    data = {"group": "chat", "validation": None}
    return make_trainer(train=train, model=model, data=data, **keys)


def one_by_one(trainer: Trainer, store: SequenceStore) -> Tensor:
    """Classify each row with torch's module from the state that the group's last row ended in."""
    model, states, logits = trainer.network, {}, []
    for row in range(len(store)):
        group = int(store.groups[row])
        ids = torch.tensor(store[row][0]).long()
        start = states.get(group) if group >= 0 else None
        outputs, states[group] = model.recurrent.encoder(
            model.recurrent.embedding(ids).unsqueeze(0), start
        )
        logits.append(model.recurrent.head(outputs[0, -1]))
    return torch.stack(logits)


@pytest.mark.parametrize("rnn", RNNS)
@pytest.mark.parametrize("unroll", ["packed", "masked"])
def test_every_row_starts_where_the_row_before_it_ended(rnn, unroll, make_trainer, grouped):
    trainer = carrying(make_trainer, grouped, model={"rnn": rnn, "unroll": unroll})
    with torch.no_grad():
        expected = one_by_one(trainer, grouped)
    model = trainer.network
    logits = predict_logits(model, grouped, CPU)
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=0)
    alone = predict_logits(model, replace(grouped, groups=None), CPU)
    assert not torch.allclose(logits, alone, atol=1e-3)
    carried = CarriedStates()
    stores = [grouped.__getitems__(np.arange(*span)) for span in ((0, 11), (11, 12), (12, 40))]
    one_after_another = [predict_logits(model, store, CPU, carried=carried) for store in stores]
    torch.testing.assert_close(torch.cat(one_after_another), logits, atol=1e-6, rtol=0)


@pytest.mark.parametrize("sort", ["collate", "module"])
@pytest.mark.parametrize("rnn", RNNS)
def test_training_carries_states_and_cuts_gradients_between_rows(rnn, sort, make_trainer, grouped):
    keys: dict[str, Any] = {
        "batching": {"batch_size": 5, "sort": sort},
        "training": {"optimizer": "sgd", "lr": 0.1, "max_epochs": 2, "max_grad_norm": None},
        "model": {"rnn": rnn},
    }
    trainer, reference = (carrying(make_trainer, grouped, **keys) for _ in range(2))
    events = train_epochs(trainer)
    model, config = reference.network, reference.config
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
                (logits,), state = classify_by_branch(model, batch.packed, start=start)
                states[group] = state.detach()
                losses.append(torch.nn.functional.cross_entropy(logits, batch.labels))
            loss = torch.stack(losses).mean()
            reference.optimizer.forget_gradients()
            loss.backward()
            reference.optimizer.step(0.1)
            assert next(events).loss == pytest.approx(loss.item(), abs=1e-5)
        assert isinstance(next(events), EpochEvent)
