"""Measuring in turns: typical batches first, processes that are ended, what is recommended."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import nn

from seqtrain.config.schema import Config, ModelConfig
from seqtrain.data.store import SequenceStore
from seqtrain.errors import ConfigError
from seqtrain.workflows.candidates import Task, spread_batches, why_left_out
from seqtrain.workflows.compare import Row, Speed, compare, recommend
from seqtrain.workflows.measuring import Contender, Turn, take_turns, tokens_per_second
from seqtrain.workflows.peak import flops_a_token

ROWS = 90


@pytest.fixture
def task() -> Task:
    lengths = np.arange(1, ROWS + 1)
    train = SequenceStore(
        values=np.arange(lengths.sum(), dtype=np.int32) % 20 + 2,
        offsets=np.concatenate(([0], np.cumsum(lengths))),
        labels=np.arange(ROWS) % 2,
        lines=np.arange(ROWS),
    )
    sections = {
        "data": {"train": "a.tsv", "sequence": 0, "label": 1},
        "batching": {"batch_size": 6},
        "model": {"embedding_dim": 4, "hidden_size": 4},
    }
    return Task(
        config=Config.model_validate(sections),
        train=train,
        input_size=22,
        labels=("a", "b"),
        device=torch.device("cpu"),
        threads=1,
        probe=np.arange(3),
    )


@pytest.fixture
def contender(task: Task) -> Iterator[Contender]:
    started = Contender("fused", task)
    yield started
    started.end()


def test_first_batches_are_typical_and_all_come_once(task: Task) -> None:
    batches = spread_batches(task, bucketing=True)
    longest = [int(task.train.lengths[rows].max()) for rows in batches]
    assert sorted(np.concatenate(batches)) == list(range(ROWS))
    ranks = np.argsort(np.argsort(longest)) / len(longest)
    assert ranks[:3] == pytest.approx([0.5, 0.25, 0.75], abs=0.1)


def test_turns_go_on_until_the_deadline_and_count_real_tokens(
    task: Task, contender: Contender
) -> None:
    assert contender.logits is not None
    assert contender.logits.shape == (3, 2)
    take_turns([contender], "training", time.monotonic() + 1.0, lambda: None)
    first, *others = contender.turns["training"]
    assert first.batches == 1
    assert others
    whole_epochs, rest = divmod(sum(t.batches for t in contender.turns["training"]), 15)
    batches = spread_batches(task, bucketing=True)[:rest]
    expected = whole_epochs * int(task.train.lengths.sum())
    expected += sum(int(task.train.lengths[rows].sum()) for rows in batches)
    assert sum(t.tokens for t in contender.turns["training"]) == expected
    assert contender.turns["prediction"] == []


def test_past_the_deadline_each_still_gets_one_batch(contender: Contender) -> None:
    take_turns([contender], "prediction", time.monotonic() - 1.0, lambda: None)
    assert [turn.batches for turn in contender.turns["prediction"]] == [1]
    assert contender.failure == ""


def test_a_batch_that_takes_too_long_is_ended_and_reported(contender: Contender) -> None:
    contender.measure("training", 100.0, 0.1)
    assert "cut" in contender.failure
    take_turns([contender], "training", time.monotonic() + 60.0, lambda: None)
    assert contender.turns["training"] == []


def test_the_first_turn_warms_up() -> None:
    turns = [Turn(1, 10, 9.0), Turn(2, 100, 1.0), Turn(1, 50, 2.0)]
    assert tokens_per_second(turns) == 50.0
    assert tokens_per_second(turns[:1]) == pytest.approx(10 / 9)
    assert tokens_per_second([]) is None


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


def row(name: str, kind: str, speed: float, difference: float = 0.0) -> Row:
    return Row(name, kind, Speed(speed, 9, 0.1, None), None, difference, "")


def test_recommended_is_the_fastest_with_the_right_logits() -> None:
    rows = [row("native", "engine", 9e5), row("fused", "engine", 2e6, difference=0.3)]
    rows += [row("packed", "recipe", 1e4), row("padded", "recipe", 1e5)]
    name, reason = recommend(rows)
    assert name == "native"
    assert "9.0 times today's best recipe (padded)" in reason
    assert recommend(rows[1:])[0] == "padded"
    assert recommend([])[0] is None


def test_no_time_is_an_error() -> None:
    with pytest.raises(ConfigError, match="seconds"):
        compare("configs/quickstart.yaml", seconds=0)
