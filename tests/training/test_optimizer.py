"""Learning rates as functions of the step, and what decays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from seqtrain.config.schema import TrainingConfig
from seqtrain.data.batch import collate
from seqtrain.model.engines import native
from seqtrain.model.engines.native import why_not
from seqtrain.training import embedding_rows
from seqtrain.training.events import EpochEvent, UpdateEvent
from seqtrain.training.optimizer import clip_gradients
from seqtrain.training.schedule import lr_at
from seqtrain.training.trainer import Trainer
from tests.helpers.stores import StoreBuilder

MakeTrainer = Callable[..., Trainer]
SCHEDULES = ["constant", "linear", "cosine", "plateau"]


def settings(**keys: Any) -> TrainingConfig:
    return TrainingConfig.model_validate({"lr": 1.0, **keys})


def rates(total: int = 100, **keys: Any) -> list[float]:
    return [lr_at(step, total, settings(**keys)) for step in range(total)]


def test_the_schedules_without_warmup() -> None:
    assert rates(schedule="constant") == [1.0] * 100
    assert rates(schedule="linear") == pytest.approx([1 - step / 100 for step in range(100)])
    cosine = rates(schedule="cosine")
    assert (cosine[0], cosine[50]) == pytest.approx((1.0, 0.5))
    assert cosine[99] < 0.001
    assert cosine == sorted(cosine, reverse=True)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_warmup_rises_to_the_peak_and_no_further(schedule: str) -> None:
    curve = rates(schedule=schedule, warmup=0.2)
    assert curve[:20] == pytest.approx([(step + 1) / 20 for step in range(20)])
    assert curve[20] == 1.0
    assert max(curve) == 1.0


def test_plateau_halves_for_each_epoch_that_brought_nothing_better() -> None:
    config = settings(schedule="plateau")
    assert [lr_at(50, 100, config, plateaus=n) for n in range(3)] == [1.0, 0.5, 0.25]
    assert lr_at(50, 100, settings(schedule="constant"), plateaus=3) == 1.0


@given(
    st.integers(0, 500),
    st.integers(1, 300),
    st.sampled_from(SCHEDULES),
    st.floats(0, 0.99),
)
def test_the_rate_stays_between_zero_and_the_peak(
    step: int, total: int, schedule: str, warmup: float
) -> None:
    assert 0.0 <= lr_at(step, total, settings(schedule=schedule, warmup=warmup)) <= 1.0


def test_the_loop_uses_the_schedule_step_by_step(make_trainer: MakeTrainer) -> None:
    keys = {"schedule": "linear", "warmup": 0.25, "max_epochs": 3, "lr": 0.01}
    trainer = make_trainer(training=keys)
    events = list(trainer.events())
    steps = [event for event in events if isinstance(event, UpdateEvent)]
    total = trainer.total_updates
    assert len(steps) == total == 12
    config = trainer.objective.config.training
    assert [event.lr for event in steps] == [lr_at(step, total, config) for step in range(total)]
    ends = [event for event in events if isinstance(event, EpochEvent)]
    assert [event.lr for event in ends] == [steps[3].lr, steps[7].lr, steps[11].lr]


def test_the_loop_halves_the_rate_on_a_plateau(
    make_trainer: MakeTrainer, make_store: Callable[..., Any]
) -> None:
    keys = {"schedule": "plateau", "lr": 1e-9, "max_epochs": 4, "patience": None}
    trainer = make_trainer(validation=make_store(20, seed=1), training=keys)
    ends = [event for event in trainer.events() if isinstance(event, EpochEvent)]
    assert [event.lr for event in ends] == [1e-9, 1e-9, 5e-10, 2.5e-10]


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd"])
def test_decay_falls_on_matrices_alone_and_never_on_the_padding_row(
    optimizer: str, make_trainer: MakeTrainer
) -> None:
    trainer = make_trainer(
        model={"pooling": "attention"},
        training={"optimizer": optimizer, "weight_decay": 0.1, "max_epochs": 2},
    )
    decay = trainer.optimizer._state.decay
    names = {weight: name for name, weight in trainer.objective.model.named_parameters()}
    assert decay.keys() == names.keys()
    assert all(bool(decay[weight]) == ("bias" not in name) for weight, name in names.items())
    before = trainer.objective.model.embedding.weight.detach().clone()
    for _ in trainer.events():
        pass
    after = trainer.objective.model.embedding.weight.detach()
    assert (after[0] == 0).all()
    assert (after[2:] != before[2:]).all()


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd"])
@pytest.mark.parametrize("sparse", [True, False])
def test_updates_are_those_of_torchs_plain_optimizer(
    optimizer: str, sparse: bool, make_trainer: MakeTrainer, make_store: Callable[..., Any]
) -> None:
    """Every token stands in every batch, so that touched rows are all rows but two."""
    keys = {"optimizer": optimizer, "lr": 0.05, "weight_decay": 0.01, "max_grad_norm": 0.5}
    everything = {"batching": {"batch_size": 100}, "data": {}}
    trainer = make_trainer(
        train=make_store(60),
        training={**keys, "sparse_embedding": sparse, "max_epochs": 4},
        **everything,
    )
    copy = make_trainer(train=make_store(60), **everything)
    matrices = [p for p in copy.objective.model.parameters() if p.ndim > 1]
    vectors = [p for p in copy.objective.model.parameters() if p.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": 0.01},
        {"params": vectors, "weight_decay": 0.0},
    ]
    theirs: torch.optim.Optimizer
    if optimizer == "sgd":
        theirs = torch.optim.SGD(groups, lr=0.05, momentum=0.9)
    else:
        theirs = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}[optimizer](groups, lr=0.05)
    copy.objective.model.embedding.sparse = False
    for epoch, _ in enumerate(e for e in trainer.events() if isinstance(e, UpdateEvent)):
        (rows,) = copy.plan(epoch)
        batch = collate(copy.objective.store.__getitems__(rows))
        theirs.zero_grad()
        functional.cross_entropy(copy.objective.model(batch.packed), batch.labels).backward()
        torch.nn.utils.clip_grad_norm_(copy.objective.model.parameters(), 0.5)
        theirs.step()
    for (name, ours), expected in zip(
        trainer.objective.model.named_parameters(), copy.objective.model.parameters(), strict=True
    ):
        here = slice(2, None) if name == "embedding.weight" else slice(None)
        torch.testing.assert_close(ours[here], expected[here], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd"])
def test_a_step_leaves_the_tokens_of_other_batches_alone(
    optimizer: str, native: bool, make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not native:
        monkeypatch.setattr(embedding_rows, "native_serves", lambda weight: False)
    builder = StoreBuilder()
    builder.add_ids([3, 4, 3], 0, 1)
    builder.add_ids([5], 1, 2)
    keys = {"optimizer": optimizer, "weight_decay": 0.1, "max_epochs": 3}
    trainer = make_trainer(train=builder.build(), batching={"batch_size": 1}, training=keys)
    embedding = trainer.objective.model.embedding.weight
    before = embedding.detach().clone()
    for event in trainer.events():
        after = embedding.detach().clone()
        moved = (after != before).any(1).nonzero().flatten().tolist()
        assert not isinstance(event, UpdateEvent) or moved in ([3, 4], [5])
        before = after


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd"])
def test_sparse_updates_learn_what_dense_ones_do(
    optimizer: str,
    native: bool,
    make_trainer: MakeTrainer,
    make_store: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Batches of two short rows: most tokens are idle in most steps."""
    if not native:
        monkeypatch.setattr(embedding_rows, "native_serves", lambda weight: False)
    weights = []
    for is_sparse in (True, False):
        keys = {"optimizer": optimizer, "sparse_embedding": is_sparse, "max_epochs": 3}
        trainer = make_trainer(
            train=make_store(40, longest=3), training=keys, batching={"batch_size": 2}
        )
        start = trainer.objective.model.embedding.weight.detach().clone()
        for _ in trainer.events():
            pass
        weights.append(trainer.objective.model.embedding.weight.detach() - start)
    moved = weights[1][2:].norm()
    assert moved > 0.1
    assert (weights[0] - weights[1])[2:].norm() < 0.1 * moved


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_native_and_torch_update_rows_alike() -> None:
    rows, gradient = torch.tensor([1, 4, 7]), torch.randn(3, 5)
    keys = {"lr": 0.1, "betas": (0.9, 0.999), "eps": 1e-8}
    results = []
    for idle in (native.adam_idle, embedding_rows.torch_adam_idle):
        weight, mean, square = (torch.full((9, 5), value) for value in (1.0, 0.1, 0.2))
        state = {"exp_avg": mean, "exp_avg_sq": square, "up_to_date": torch.arange(9) % 3}
        for step in (2.0, 3.0):
            state["step"] = torch.tensor(step)
            idle(weight, state, rows, **keys, weight_decay=0.01)
            if idle is native.adam_idle:
                sparse = torch.sparse_coo_tensor(
                    rows[None], gradient, (9, 5), check_invariants=False
                )
                described = native.describe_weight(weight, state, decay=0.01)
                native.adam(native.Gradients([(described, sparse)]), **keys)
            else:
                state["step"] += 1
                embedding_rows.torch_adam_rows(
                    weight, state, rows, gradient, **keys, weight_decay=0.01
                )
        results.append(torch.stack((weight, mean, square)))
        assert state["up_to_date"][rows].tolist() == [4, 4, 4]
    torch.testing.assert_close(*results)


@pytest.mark.skipif(bool(why_not()), reason=why_not())
@pytest.mark.parametrize("optimizer", ["adamw", "adam"])
def test_one_native_call_updates_as_torch_does_part_by_part(
    optimizer: str, make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dense and sparse weights, clipped, over epochs; the state of the one fits the other."""
    trainers = []
    for serves in (True, False):
        monkeypatch.setattr(embedding_rows, "native_serves", lambda weight, serves=serves: serves)
        keys = {"optimizer": optimizer, "weight_decay": 0.1, "max_grad_norm": 0.2, "max_epochs": 3}
        trainers.append(make_trainer(training=keys, batching={"batch_size": 4}))
        assert (trainers[-1].optimizer._native is not None) == serves
    ours, theirs = (list(trainer.events()) for trainer in trainers)
    losses = [[e.loss for e in events if isinstance(e, UpdateEvent)] for events in (ours, theirs)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)
    tensors = [trainer.optimizer.tensors() for trainer in trainers]
    assert tensors[0].keys() == tensors[1].keys()
    for name, tensor in tensors[0].items():
        torch.testing.assert_close(tensor, tensors[1][name], rtol=1e-3, atol=1e-5, msg=name)
    trainers[1].optimizer.load(tensors[0], some=False, begun=True)


def test_the_rows_of_a_token_that_stands_twice_in_a_gradient_are_summed(
    make_trainer: MakeTrainer,
) -> None:
    """Several parts of a long sequence read the same rows, so a gradient may name a row twice."""
    weights = []
    for bptt in (2, 9):
        trainer = make_trainer(training={"bptt": bptt, "max_epochs": 2, "max_grad_norm": None})
        optimizer = trainer.optimizer
        embedding = trainer.objective.model.embedding
        rows = torch.tensor([3, 5, 3] if bptt == 2 else [3, 5])
        values = torch.tensor([1.0, 2.0, 3.0] if bptt == 2 else [4.0, 2.0])
        table = torch.nn.functional.embedding(rows, embedding.weight, sparse=True)
        optimizer.gradient((table.sum(1) * values).sum())
        optimizer.step(lr=0.1)
        weights.append(embedding.weight.detach().clone())
    torch.testing.assert_close(*weights)


@pytest.mark.parametrize("max_norm", [0.3, 1e9, None])
def test_clipping_is_torchs_also_where_a_token_has_several_entries(max_norm: float | None) -> None:
    ids = torch.tensor([3, 1, 3, 3])
    gradients, norms = [], []
    for is_sparse in (True, False):
        embedding = torch.nn.Embedding(6, 4, sparse=is_sparse)
        head = torch.nn.Linear(4, 2, bias=False)
        with torch.no_grad():
            embedding.weight.copy_(torch.arange(24.0).view(6, 4) / 24)
            head.weight.fill_(0.5)
        head(embedding(ids)).square().sum().backward()
        parameters = [embedding.weight, head.weight]
        if is_sparse:
            norms.append(clip_gradients(parameters, max_norm))
        else:
            norms.append(torch.nn.utils.clip_grad_norm_(parameters, max_norm or float("inf")))
        gradients.append([p.grad.to_dense() for p in parameters])
    torch.testing.assert_close(*norms)
    torch.testing.assert_close(*gradients)
