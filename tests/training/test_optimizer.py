"""The optimizer's updates are torch's; of a table only the rows of the batch are touched."""

from typing import Any

import pytest
import torch
from torch.nn import functional

from seqtrain.config.schema import TrainingConfig
from seqtrain.engines import optimizer as module
from seqtrain.engines.native.library import why_unavailable
from seqtrain.engines.schedule import learning_rate
from seqtrain.sequences.batch import collate
from seqtrain.training.events import EpochEvent, UpdateEvent
from seqtrain.training.loop import train_epochs
from seqtrain.training.stopping import stopping_rule
from tests.helpers.batches import classify
from tests.helpers.stores import store_of

RULES = ["adamw", "adam", "sgd"]


@pytest.fixture(params=[True, False], ids=["native", "torch"])
def native(request, monkeypatch) -> bool:
    """Whether the native library may update the weights."""
    if request.param and why_unavailable():
        pytest.skip(str(why_unavailable()))
    if not request.param:
        monkeypatch.setattr(module, "can_update_natively", lambda weight: False)
    return bool(request.param)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("sparse", [True, False])
def test_updates_are_those_of_torchs_plain_optimizer(
    rule, sparse, native, make_trainer, make_store
):
    """Every token stands in every batch, so that touched rows are all rows but two."""
    keys = {"optimizer": rule, "lr": 0.05, "weight_decay": 0.01, "max_grad_norm": 0.5}
    whole = {"batching": {"batch_size": 100}, "train": make_store(60)}
    keys |= {"sparse_embedding": sparse, "max_epochs": 4}
    # SparseAdam adds its epsilon before the correction of the second moment.
    tolerance = 5e-3 if sparse and not native and rule != "sgd" else 1e-5
    trainer, copy = make_trainer(training=keys, **whole), make_trainer(**whole)
    network = copy.network
    groups = [
        {"params": [p for p in network.parameters() if p.ndim > 1], "weight_decay": 0.01},
        {"params": [p for p in network.parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ]
    theirs: torch.optim.Optimizer
    if rule == "sgd":
        theirs = torch.optim.SGD(groups, lr=0.05, momentum=0.9)
    else:
        theirs = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}[rule](groups, lr=0.05)
    network.recurrent.embedding.sparse = False
    for epoch, _ in enumerate(e for e in train_epochs(trainer) if isinstance(e, UpdateEvent)):
        (rows,) = copy.setup.plan(epoch)
        batch = collate(copy.setup.rows.__getitems__(rows))
        theirs.zero_grad()
        functional.cross_entropy(classify(network, batch.packed), batch.labels).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 0.5)
        theirs.step()
    for (name, ours), expected in zip(
        trainer.network.named_parameters(), network.parameters(), strict=True
    ):
        here = slice(2, None) if name == "recurrent.embedding.weight" else slice(None)
        torch.testing.assert_close(ours[here], expected[here], rtol=1e-4, atol=tolerance)


@pytest.mark.parametrize("rule", ["adamw", "adam"])
def test_tokens_of_other_batches_stay_as_they_are(rule, native, make_trainer):
    rows = store_of([[3, 4, 3], [5]], [0, 1])
    keys = {"optimizer": rule, "weight_decay": 0.1, "max_epochs": 3}
    trainer = make_trainer(train=rows, batching={"batch_size": 1}, training=keys)
    embedding = trainer.network.recurrent.embedding.weight
    before = embedding.detach().clone()
    for event in train_epochs(trainer):
        after = embedding.detach().clone()
        moved = (after != before).any(1).nonzero().flatten().tolist()
        assert moved in ([3, 4], [5]) if isinstance(event, UpdateEvent) else not moved
        before = after


def test_decay_falls_on_matrices_alone_and_never_on_the_padding_row(native, make_trainer):
    """A learning rate of 1e-30 moves nothing; times a decay of 1e30 it sets to zero what decays."""
    keys = {"optimizer": "adamw", "lr": 1e-3, "weight_decay": 1000.0, "max_epochs": 1}
    batching = {"batch_size": 100}
    trainer = make_trainer(model={"pooling": "attention"}, training=keys, batching=batching)
    network = trainer.network
    with torch.no_grad():
        for weight in network.parameters():
            weight.fill_(100.0)
        network.recurrent.embedding.weight[0] = 0.0
    next(train_epochs(trainer))
    for name, weight in network.named_parameters():
        decayed = weight[2:] if name == "recurrent.embedding.weight" else weight
        small = bool((decayed.abs() < 1).all())
        assert small == ("bias" not in name), name
    assert not network.recurrent.embedding.weight[:1].any()


def test_rows_that_a_gradient_names_twice_are_summed(native, make_trainer):
    """Several segments of a long sequence read the same rows."""
    weights = []
    for rows, values in (([3, 5, 3], [1.0, 2.0, 3.0]), ([3, 5], [4.0, 2.0])):
        trainer = make_trainer(training={"max_grad_norm": None})
        weight = trainer.network.recurrent.embedding.weight
        table = functional.embedding(torch.tensor(rows), weight, sparse=True)
        trainer.optimizer.forget_gradients()
        (table.sum(1) * torch.tensor(values)).sum().backward()
        trainer.optimizer.step(0.1)
        weights.append(weight.detach().clone())
    torch.testing.assert_close(*weights)


def rates(total: int = 100, **keys: Any) -> list[float]:
    config = TrainingConfig.model_validate({"lr": 1.0, **keys})
    return [learning_rate(config, step, total) for step in range(total)]


@pytest.mark.parametrize(
    ("schedule", "middle", "end"),
    [("constant", 1.0, 1.0), ("linear", 0.5, 0.01), ("cosine", 0.5, 0.0002), ("plateau", 1.0, 1.0)],
)
def test_the_schedules_with_and_without_warmup(schedule, middle, end):
    plain, warmed = rates(schedule=schedule), rates(schedule=schedule, warmup=0.2)
    assert (plain[0], plain[50], plain[99]) == pytest.approx((1.0, middle, end), abs=1e-4)
    assert plain == sorted(plain, reverse=True)
    assert warmed[:20] == pytest.approx([(step + 1) / 20 for step in range(20)])
    assert warmed[20] == max(warmed) == 1.0


def test_the_loop_uses_the_schedule_step_by_step(make_trainer):
    keys = {"schedule": "linear", "warmup": 0.25, "max_epochs": 3, "lr": 0.01}
    trainer = make_trainer(training=keys)
    events = list(train_epochs(trainer))
    steps = [event for event in events if isinstance(event, UpdateEvent)]
    total, config = trainer.setup.total_updates, trainer.config.training
    assert len(steps) == total == 12
    assert [event.lr for event in steps] == [
        learning_rate(config, step, total) for step in range(total)
    ]
    ends = [event for event in events if isinstance(event, EpochEvent)]
    assert [event.lr for event in ends] == [steps[3].lr, steps[7].lr, steps[11].lr]


def test_a_plateau_halves_the_rate(make_trainer, make_store):
    keys = {"schedule": "plateau", "lr": 1e-9, "max_epochs": 4, "patience": None}
    trainer = make_trainer(validation=make_store(20, seed=1), training=keys)
    ends = [event for event in train_epochs(trainer) if isinstance(event, EpochEvent)]
    assert [event.lr for event in ends] == [1e-9, 1e-9, 5e-10, 2.5e-10]


@pytest.mark.parametrize(
    ("updates_per_epoch", "epochs", "patience"), [(5, 100, 20), (24, 84, 17), (391, 10, 3)]
)
def test_small_data_gets_its_updates(updates_per_epoch, epochs, patience):
    found = stopping_rule(TrainingConfig(), updates_per_epoch)
    assert (found.epochs, found.patience, found.loss_is_progress) == (epochs, patience, True)
    found = stopping_rule(TrainingConfig(max_epochs=4, patience=2), updates_per_epoch)
    assert (found.epochs, found.patience, found.loss_is_progress) == (4, 2, False)
    assert stopping_rule(TrainingConfig(patience=None), updates_per_epoch).patience is None


@pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable())
@pytest.mark.parametrize("first", ["native", "torch"])
@pytest.mark.parametrize("rule", ["adamw", "adam"])
def test_a_state_is_loaded_where_the_native_library_is_or_isnt(
    first, rule, make_trainer, make_store, monkeypatch
):
    """The second epoch goes on from it as it would have with the same library."""

    def trainer(kind: str) -> Any:
        settings = {"optimizer": rule, "lr": 0.05, "weight_decay": 0.01, "max_epochs": 2}
        with monkeypatch.context() as patch:
            if kind == "torch":
                patch.setattr(module, "can_update_natively", lambda weight: False)
            return make_trainer(training=settings, train=make_store(60))

    whole, begun = trainer(first), trainer(first)
    other = trainer("torch" if first == "native" else "native")
    assert begun.optimizer.parts.keys() != other.optimizer.parts.keys()
    list(train_epochs(whole))
    next(event for event in train_epochs(begun) if isinstance(event, EpochEvent))
    other.load_state_dict(begun.state_dict())
    list(train_epochs(other))
    for name, weight in whole.network.state_dict().items():
        torch.testing.assert_close(other.network.state_dict()[name], weight, atol=2e-3, rtol=0)
