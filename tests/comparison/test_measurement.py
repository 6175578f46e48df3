"""Measuring in turns: typical batches first, long batches given up, equal training."""

import time
from collections.abc import Mapping

import numpy as np
import pytest

from seqtrain.comparison.compare import VariantRun, compare, learn_equally, take_turns
from seqtrain.comparison.task import Task, typical_first
from seqtrain.errors import ConfigError

ROWS = 90
LEARNERS = ["torch", "padded-sorted", "random-batches", "packed", "last-of-padding"]


def measured(task: Task, *names: str, seconds: float = 0.0) -> Mapping[str, VariantRun]:
    runs = [VariantRun(name, task) for name in names]
    take_turns(runs, "training", seconds, lambda run: None)
    return {run.name: run for run in runs}


def test_first_batches_are_typical_and_all_come_once(task):
    batches = typical_first(task.train.lengths, task.config)
    longest = [int(task.train.lengths[rows].max()) for rows in batches]
    assert sorted(np.concatenate(batches)) == list(range(ROWS))
    ranks = np.argsort(np.argsort(longest)) / len(longest)
    assert ranks[:3] == pytest.approx([0.5, 0.25, 0.75], abs=0.1)


def test_turns_go_on_until_the_time_is_over_and_each_variant_has_one(task):
    began = time.monotonic()
    runs = measured(task, "torch", "packed", seconds=1.0)
    assert time.monotonic() - began > 0.3
    speeds = [run.speed("training") for run in runs.values()]
    assert sum(speed.turns for speed in speeds if speed) > 2
    (late,) = measured(task, "unroll-padded").values()
    speed = late.speed("training")
    assert speed.slowest == speed.fastest == speed.tokens_per_second > 0
    assert late.speed("prediction") is None


def test_training_counts_the_tokens_that_were_learned(task, monkeypatch):
    """Also after prediction, which takes ever more batches at once."""
    run = VariantRun("torch", task)
    take_turns([run], "prediction", 0.5, lambda run: None)
    learned, learn = [], run.learner.learn
    monkeypatch.setattr(run.learner, "learn", lambda rows: (learned.append(rows), learn(rows)))
    take_turns([run], "training", 0.0, lambda run: None)
    counted = run.rate("training") * sum(run.seconds("training"))
    assert 0 < counted <= sum(task.train.lengths[rows].sum() for rows in learned)


def test_a_batch_that_would_take_too_long_is_given_up(task, monkeypatch):
    monkeypatch.setattr("seqtrain.comparison.compare.LONGEST", 1e-9)
    runs = measured(task, "torch", "packed", seconds=-1.0)
    assert all("allow more seconds" in run.problem for run in runs.values())
    assert all(run.speed("training") is None for run in runs.values())


def test_what_is_alike_learns_once_and_what_differs_for_itself(task):
    runs = measured(task, *LEARNERS)
    before: list[str] = []
    examples = learn_equally(runs.values(), task, 60.0, lambda run: before.append(run.name))
    assert examples == task.config.training.max_epochs * ROWS
    accuracies = {name: run.accuracy for name, run in runs.items()}
    assert None not in accuracies.values()
    assert accuracies["torch"] == accuracies["padded-sorted"]
    assert accuracies["random-batches"] == accuracies["packed"]
    assert set(before) == {"torch", "random-batches", "last-of-padding"}
    assert learn_equally(runs.values(), task, 0.0, lambda run: None) == 0


def test_no_time_is_an_error():
    with pytest.raises(ConfigError, match="seconds"):
        compare("configs/quickstart.yaml", seconds=0)
