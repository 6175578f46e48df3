"""Rows of an embedding that lie idle: settled, they stand where dense updates would have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from seqtrain.data.store import SequenceStore
from seqtrain.model.engines import native
from seqtrain.training import embedding_rows
from seqtrain.training.events import UpdateEvent
from seqtrain.training.trainer import Trainer
from tests.helpers.stores import StoreBuilder

MakeTrainer = Callable[..., Trainer]
LATE = 100_000
"""Updates made: bias corrections stand still."""
RULES = [embedding_rows.torch_adam_idle, *([] if native.why_not() else [native.adam_idle])]


def dense(weight: Tensor, state: dict[str, Tensor], idle: int, **keys: Any) -> Tensor:
    """Let torch's AdamW make so many updates without a gradient, late in training."""
    parameter = weight.double().requires_grad_()
    optimizer = torch.optim.AdamW([parameter], **keys)
    optimizer.state[parameter] = {
        "step": torch.tensor(float(LATE - idle)),
        "exp_avg": state["exp_avg"].double(),
        "exp_avg_sq": state["exp_avg_sq"].double(),
    }
    parameter.grad = torch.zeros_like(parameter)
    for _ in range(idle):
        optimizer.step()
    return parameter.detach()


@given(
    st.integers(0, 40),
    st.floats(1e-6, 1000.0),
    st.one_of(st.just(0.0), st.floats(0.0, 1000.0), st.sampled_from([1.0, 100.0])),
    st.integers(0, 5),
)
@pytest.mark.parametrize("rule", RULES)
def test_idle_updates_are_torchs_for_any_rate_and_decay(
    rule: Callable[..., None], idle: int, lr: float, weight_decay: float, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    weight, mean = (torch.randn(3, 5, generator=generator) for _ in range(2))
    state = {
        "exp_avg": mean,
        "exp_avg_sq": torch.rand(3, 5, generator=generator) + 0.1,
        "up_to_date": torch.full((3,), LATE - idle),
        "step": torch.tensor(float(LATE)),
    }
    expected = dense(weight, state, idle, lr=lr, weight_decay=weight_decay)
    keys = {"betas": (0.9, 0.999), "eps": 1e-8}
    rule(weight, state, torch.arange(3), lr=lr, weight_decay=weight_decay, **keys)
    if float(expected.abs().max()) > 1e30:  # beyond the range of float32, or nearly so
        return
    scale = max(lr, float(expected.abs().max()))
    torch.testing.assert_close(weight.double(), expected, rtol=1e-3, atol=1e-4 * scale)


@pytest.mark.parametrize("decay", [0.1, 100.0, 150.0])
@pytest.mark.parametrize("native_serves", [True, False])
def test_weights_stay_finite_where_rate_times_decay_reaches_one(
    decay: float, native_serves: bool, make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not native_serves:
        monkeypatch.setattr(embedding_rows, "native_serves", lambda weight: False)
    weights = []
    for sparse in (True, False):
        keys = {"lr": 0.01, "weight_decay": decay, "sparse_embedding": sparse, "max_epochs": 4}
        trainer = make_trainer(training=keys, batching={"batch_size": 2})
        for _ in trainer.events():
            pass
        weights.append(trainer.objective.model.embedding.weight.detach())
    assert torch.isfinite(weights[0]).all()
    torch.testing.assert_close(*weights, rtol=0.0, atol=0.05)


def snapshot(trainer: Trainer) -> Tensor:
    weight: Tensor = trainer.objective.model.embedding.weight.detach().clone()
    return weight


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd"])
def test_within_an_epoch_a_saved_model_is_settled_and_training_is_not_touched(
    optimizer: str, make_trainer: MakeTrainer, make_store: Callable[..., SequenceStore]
) -> None:
    keys = {
        "training": {"optimizer": optimizer, "max_epochs": 1, "weight_decay": 0.1},
        "train": make_store(40, longest=3),
        "batching": {"batch_size": 2},
    }
    trainer, settled = make_trainer(**keys), make_trainer(**keys)
    events, steps = trainer.events(), settled.events()
    for _ in range(9):
        next(events), next(steps)
    before = {name: tensor.clone() for name, tensor in trainer.capture()[0].items()}
    raw = snapshot(trainer)
    settled.optimizer.settle(lr=0.01)
    with trainer.settled():
        assert torch.equal(snapshot(trainer), snapshot(settled))
        assert not torch.equal(snapshot(trainer), raw)
        tensors, _ = trainer.capture()
        assert torch.equal(tensors.pop("unsettled.weight"), raw)
        assert all(torch.equal(tensors[name], before[name]) for name in before)
    assert torch.equal(snapshot(trainer), raw)
    assert "unsettled.weight" not in trainer.capture()[0]


def test_nothing_is_kept_beside_a_model_that_is_settled(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(training={"max_epochs": 1})
    with trainer.settled():
        assert "unsettled.weight" not in trainer.capture()[0]
    for _ in trainer.events():
        pass
    with trainer.settled():
        assert "unsettled.weight" not in trainer.capture()[0]


@pytest.mark.parametrize("what", ["shape", "nan", "dense", "step", "ahead", "before"])
def test_a_forged_state_of_idle_rows_is_refused(what: str, make_trainer: MakeTrainer) -> None:
    builder = StoreBuilder()
    for row in range(4):
        builder.add_ids([2 + row], row % 3, row + 1)
    keys: dict[str, Any] = {"train": builder.build(), "batching": {"batch_size": 1}}
    trainer = make_trainer(**keys)
    events = trainer.events()
    assert isinstance([next(events), next(events)][-1], UpdateEvent)
    with trainer.settled():
        tensors, progress = trainer.capture()
    if what == "shape":
        tensors["unsettled.weight"] = tensors["unsettled.weight"][1:]
    elif what == "nan":
        tensors["unsettled.weight"] = tensors["unsettled.weight"] * float("nan")
    elif what == "dense":
        del tensors["optimizer.0.up_to_date"]
    elif what == "step":
        tensors["optimizer.0.step"] = torch.tensor(0.0)
    else:
        tensors["optimizer.0.up_to_date"][0] = 9 if what == "ahead" else -1
    with pytest.raises(ValueError, match=r"^(unsettled\.weight|optimizer\.0)"):
        make_trainer(**keys).restore(tensors, progress)
