"""Measuring in turns: typical batches first, processes that are ended, equal training."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from seqtrain.config.schema import Config, ModelConfig
from seqtrain.data.store import SequenceStore
from seqtrain.errors import ConfigError
from seqtrain.workflows.candidates import PackedCandidate, alone, make_candidate, spread_batches
from seqtrain.workflows.compare import compare
from seqtrain.workflows.equal_training import learn_equally
from seqtrain.workflows.measuring import TURN, Contender, Nursery, Turn, measured, speed, take_turns
from seqtrain.workflows.peak import flops_a_token
from seqtrain.workflows.task import Task, prepare_task
from seqtrain.workflows.ways import WAYS, ways_for, why_left_out

ROWS = 90
OTHERS = ["torch", "unroll-padded", "unroll-masked", "sort-in-module", "padded"]
LEARNERS = ["fused", "padded-sorted", "random-batches", "packed", "last-of-padding"]


@pytest.fixture(scope="module")
def task() -> Task:
    lengths = np.arange(1, ROWS + 1)
    train = SequenceStore(
        values=np.arange(lengths.sum(), dtype=np.int32) % 20 + 2,
        offsets=np.concatenate(([0], np.cumsum(lengths))),
        labels=np.arange(ROWS) % 2,
        lines=np.arange(ROWS),
    )
    sections: dict[str, dict[str, Any]] = {
        "data": {"train": "a.tsv", "sequence": 0, "label": 1},
        "batching": {"batch_size": 6},
        "model": {"embedding_dim": 4, "hidden_size": 4},
        "training": {"max_epochs": 3},
    }
    return Task(
        config=Config.model_validate(sections),
        train=train,
        held_out=train.__getitems__(np.arange(0, ROWS, 3)),
        input_size=22,
        labels=("a", "b"),
        device=torch.device("cpu"),
        threads=1,
        warnings=[],
        probe=np.arange(3),
    )


@pytest.fixture(scope="module")
def contenders(task: Task) -> Iterator[dict[str, Contender]]:
    """Processes at work; each test takes others."""
    with Nursery() as nursery:
        yield nursery.start(OTHERS + LEARNERS, task)


def test_first_batches_are_typical_and_all_come_once(task: Task) -> None:
    batches = spread_batches(task.train.lengths, task.config)
    longest = [int(task.train.lengths[rows].max()) for rows in batches]
    assert sorted(np.concatenate(batches)) == list(range(ROWS))
    ranks = np.argsort(np.argsort(longest)) / len(longest)
    assert ranks[:3] == pytest.approx([0.5, 0.25, 0.75], abs=0.1)


def test_turns_go_on_until_the_deadline_and_count_real_tokens(
    task: Task, contenders: dict[str, Contender]
) -> None:
    contender = contenders["torch"]
    assert contender.logits is not None
    assert contender.logits.shape == (3, 2)
    take_turns([contender], "training", time.monotonic() + 0.5)
    first, *others = contender.turns["training"]
    assert first.batches == 1
    assert others
    whole_epochs, rest = divmod(sum(t.batches for t in contender.turns["training"]), 15)
    batches = spread_batches(task.train.lengths, task.config)[:rest]
    expected = whole_epochs * int(task.train.lengths.sum())
    expected += sum(int(task.train.lengths[rows].sum()) for rows in batches)
    assert sum(t.tokens for t in contender.turns["training"]) == expected
    assert contender.turns["prediction"] == []


def test_past_the_deadline_each_still_gets_a_batch_and_one_more_where_it_was_short(
    contenders: dict[str, Contender],
) -> None:
    contender = contenders["unroll-padded"]
    take_turns([contender], "prediction", time.monotonic() - 1.0)
    first, *more = contender.turns["prediction"]
    assert first.batches == 1
    assert [turn.batches for turn in more] == ([1] if first.seconds <= TURN else [])
    assert contender.failure == ""


def test_a_batch_that_takes_too_long_is_ended_and_reported(
    contenders: dict[str, Contender],
) -> None:
    contender = contenders["unroll-masked"]
    contender.measure("training", 100.0, 0.1)
    assert "cut" in contender.failure
    take_turns([contender], "training", time.monotonic() + 60.0)
    assert contender.turns["training"] == []


def test_a_process_that_dies_is_reported(contenders: dict[str, Contender]) -> None:
    contender = contenders["padded"]
    contender.measure("training", "no seconds", 60.0)  # type: ignore[arg-type]
    assert contender.failure == "its process ended with code 1"


def test_the_first_turn_warms_up() -> None:
    turns = [Turn(1, 10, 9.0), Turn(2, 100, 1.0), Turn(1, 50, 2.0)]
    assert speed(measured(turns)) == 50.0
    assert speed(measured(turns[:1])) == pytest.approx(10 / 9)


@pytest.mark.parametrize("rnn", ["gru", "lstm", "rnn"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_token_takes_two_operations_a_weight_and_three_times_that_in_training(
    rnn: str, bidirectional: bool
) -> None:
    config = ModelConfig(
        embedding_dim=5, hidden_size=7, num_layers=3, rnn=rnn, bidirectional=bidirectional
    )
    modules: dict[str, type[nn.RNNBase]] = {"gru": nn.GRU, "lstm": nn.LSTM, "rnn": nn.RNN}
    encoder = modules[rnn](5, 7, num_layers=3, bidirectional=bidirectional)
    weights = sum(p.numel() for p in encoder.parameters() if p.ndim == 2)
    assert flops_a_token(config) == {"training": 6 * weights, "prediction": 2 * weights}


def test_engines_without_the_cell_are_left_out(task: Task) -> None:
    model = task.config.model.model_copy(update={"rnn": "lstm"})
    config = task.config.model_copy(update={"model": model})
    assert "lstm" in why_left_out("fused", config, task.device)
    assert why_left_out("torch", config, task.device) == ""
    assert why_left_out("packed", config, task.device) == ""


def with_model(task: Task, **keys: object) -> Task:
    model = task.config.model.model_copy(update=keys)
    return replace(task, config=task.config.model_copy(update={"model": model}))


@pytest.mark.parametrize("pooling", ["last", "mean", "max"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_right_ways_answer_as_one_by_one_and_wrong_ones_do_not(
    task: Task, pooling: str, bidirectional: bool
) -> None:
    task = with_model(task, pooling=pooling, bidirectional=bidirectional)
    for name in ways_for(task.config):
        if why_left_out(name, task.config, task.device):
            continue
        of_way = WAYS[name].config(task.config).model.pooling
        found = make_candidate(name, task).logits([task.probe])
        difference = float((found - alone(task, of_way)).abs().max())
        assert (difference > 1e-3) == (WAYS[name].kind == "wrong"), name


@pytest.mark.parametrize(("name", "pooling"), [("last-of-padding", -1), ("mean-over-padding", 0)])
def test_wrong_ways_are_what_torch_makes_of_padding_without_lengths(
    task: Task, name: str, pooling: int
) -> None:
    candidate = make_candidate(name, task)
    assert isinstance(candidate, PackedCandidate)
    model = candidate.trainer.model
    rows = [torch.tensor(task.train[row][0]).long() for row in task.probe.tolist()]
    with torch.no_grad():
        states = model.encoder(model.embedding(pad_sequence(rows, batch_first=True)))[0]
        expected = model.head(states[:, -1] if pooling else states.mean(1))
    assert torch.allclose(candidate.logits([task.probe]), expected, atol=1e-5)


def test_ways_that_a_config_is_already_do_not_come_twice(task: Task) -> None:
    assert "last-valid" not in ways_for(task.config)
    assert {"mean-valid", "random-batches", "padded-sorted-mask"} <= set(ways_for(task.config))
    batching = task.config.batching.model_copy(update={"bucketing": False})
    random = with_model(task, pooling="mean").config.model_copy(update={"batching": batching})
    names = set(ways_for(random))
    assert "last-valid" in names
    assert not {"mean-valid", "random-batches", "padded-sorted-mask"} & names


def test_settings_are_keys_that_give_the_way(task: Task) -> None:
    config = task.config
    assert WAYS["native"].setting(config) == "model.engine: native"
    assert WAYS["unroll-masked"].setting(config) == "model.engine: torch, model.unroll: masked"
    masked = with_model(task, unroll="masked").config
    assert WAYS["native"].setting(masked) == "model.engine: native, model.unroll: packed"
    assert WAYS["random-batches"].config(task.config).batching.bucketing is False


def test_what_is_alike_learns_once_and_what_differs_for_itself(
    task: Task, contenders: dict[str, Contender]
) -> None:
    contenders = {name: contenders[name] for name in LEARNERS}
    take_turns(list(contenders.values()), "training", time.monotonic())
    learned = learn_equally(contenders, LEARNERS[:-1], task, time.monotonic() + 60.0)
    assert learned.examples == task.config.training.max_epochs * ROWS
    assert learned.seeds >= 1
    assert learned.accuracies.keys() == set(LEARNERS)
    assert learned.accuracies["fused"] == learned.accuracies["padded-sorted"]
    assert learned.accuracies["random-batches"] == learned.accuracies["packed"]
    taught = [name for name in LEARNERS if contenders[name].accuracies]
    assert taught == ["fused", "random-batches", "last-of-padding"]


def test_without_time_nothing_is_learned(task: Task, contenders: dict[str, Contender]) -> None:
    contender = contenders["sort-in-module"]
    take_turns([contender], "training", time.monotonic())
    learned = learn_equally({contender.name: contender}, OTHERS, task, time.monotonic())
    assert learned.examples == 0


def test_accuracy_is_of_what_was_learned_anew(task: Task) -> None:
    """Sequences whose class stands in their last step are learned by heart, or not at all."""
    train = replace(task.train, values=task.train.values.copy())
    train.values[train.offsets[1:] - 1] = 2 + train.labels
    training = task.config.training.model_copy(update={"lr": 0.05})
    config = task.config.model_copy(update={"training": training})
    easy = replace(task, train=train, held_out=train, config=config)
    candidate = make_candidate("fused", easy)
    assert isinstance(candidate, PackedCandidate)
    assert candidate.accuracy(10 * ROWS, seed=0) == 1.0
    unlearned = candidate.accuracy(0, seed=0)
    assert unlearned < 1.0


def test_carried_states_go_on_in_their_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row without its predecessor's state can't be answered; batches never hold a group twice."""
    monkeypatch.setenv("SEQTRAIN_CACHE", str(tmp_path / "cache"))
    rows = [f"{talk},{x},{label}" for talk in range(60) for x, label in said(talk)]
    (tmp_path / "t.csv").write_text("\n".join(["talk,text,label", *rows]) + "\n")
    data = {"train": str(tmp_path / "t.csv"), "sequence": "text", "label": "label", "group": "talk"}
    sections = {
        "data": data,
        "batching": {"batch_size": 8},
        "model": {"embedding_dim": 8, "hidden_size": 16, "initial_state": "carried"},
        "training": {"lr": 0.02},
    }
    alone = prepare_task(Config.model_validate(sections), torch.device("cpu"), None)
    assert len(alone.held_out) == 0
    task = replace(alone, held_out=alone.train)
    assert task.train.groups is not None
    assert (np.diff(task.train.lines) > 0).all()
    candidate = make_candidate("fused", task)
    assert isinstance(candidate, PackedCandidate)
    assert candidate.accuracy(20 * len(task.train), seed=0) > 0.95
    assert "carried" in why_left_out("last-of-padding", task.config, task.device)
    assert why_left_out("mean-valid", task.config, task.device) == ""


def said(talk: int) -> list[tuple[str, str]]:
    """What a conversation says and means: the answer is in its first line alone."""
    label = "ab"[talk % 2]
    return [(label, label), *(("and then", label) for _ in range(4))]


def test_no_time_is_an_error() -> None:
    with pytest.raises(ConfigError, match="seconds"):
        compare("configs/quickstart.yaml", seconds=0)
