"""Learning rates as functions of the step, and what decays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.config.schema import TrainingConfig
from seqtrain.training.loop import EpochEvent, StepEvent, Trainer
from seqtrain.training.optimization import lr_at, make_optimizer

MakeTrainer = Callable[..., Trainer]
SCHEDULES = ["constant", "linear", "cosine", "plateau"]


def settings(**keys: Any) -> TrainingConfig:
    return TrainingConfig.model_validate({"lr": 1.0, **keys})


def rates(total: int = 100, **keys: Any) -> list[float]:
    return [lr_at(step, total, settings(**keys)) for step in range(total)]


def test_the_schedules_without_warmup() -> None:
    assert rates() == [1.0] * 100
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
    assert lr_at(50, 100, settings(), plateaus=3) == 1.0


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
    steps = [event for event in events if isinstance(event, StepEvent)]
    total = trainer.total_steps
    assert len(steps) == total == 12
    config = trainer.config.training
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
    groups = trainer.optimizer.param_groups
    decaying = {id(p) for group in groups if group["weight_decay"] for p in group["params"]}
    for name, parameter in trainer.model.named_parameters():
        assert (id(parameter) in decaying) == ("bias" not in name), name
    assert sum(len(group["params"]) for group in groups) == len(list(trainer.model.parameters()))
    before = trainer.model.embedding.weight.detach().clone()
    for _ in trainer.events():
        pass
    after = trainer.model.embedding.weight.detach()
    assert (after[0] == 0).all()
    assert (after[2:] != before[2:]).all()


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd"])
def test_updates_are_those_of_torchs_plain_optimizer(
    optimizer: str, make_trainer: MakeTrainer
) -> None:
    keys = {"optimizer": optimizer, "lr": 0.1, "weight_decay": 0.01}
    model = torch.nn.Linear(3, 2)
    ours = make_optimizer(model, settings(**keys))
    copy = torch.nn.Linear(3, 2)
    copy.load_state_dict(model.state_dict())
    plain: dict[str, Callable[..., torch.optim.Optimizer]] = {
        "adamw": torch.optim.AdamW,
        "adam": torch.optim.Adam,
        "sgd": lambda groups, lr: torch.optim.SGD(groups, lr, momentum=0.9),
    }
    groups = [
        {"params": [copy.weight], "weight_decay": 0.01},
        {"params": [copy.bias], "weight_decay": 0.0},
    ]
    theirs = plain[optimizer](groups, lr=0.1)
    for step in range(3):
        for net, update in ((model, ours), (copy, theirs)):
            update.zero_grad()
            net(torch.full((4, 3), 1.0 + step)).square().sum().backward()
            update.step()
    torch.testing.assert_close(model.weight, copy.weight)
    torch.testing.assert_close(model.bias, copy.bias)
