"""Measuring in turns: typical batches first, long batches given up, equal training."""

from collections.abc import Mapping

import pytest

from seqtrain.comparison.compare import VariantRun, compare, learn_equally, take_turns
from seqtrain.comparison.task import Task
from seqtrain.errors import ConfigError

ROWS = 90
LEARNERS = ["torch", "padded-sorted", "random-batches", "packed", "last-of-padding"]


def measured(task: Task, *names: str, seconds: float = 0.0) -> Mapping[str, VariantRun]:
    runs = [VariantRun(name, task) for name in names]
    take_turns(runs, "training", seconds, lambda run: None)
    return {run.name: run for run in runs}


def test_a_batch_that_would_take_too_long_is_given_up(task, monkeypatch):
    monkeypatch.setattr("seqtrain.comparison.compare.LONGEST", 1e-9)
    runs = measured(task, "torch", "packed", seconds=-1.0)
    assert all("allow more seconds" in run.problem for run in runs.values())
    assert all(run.speed("training") is None for run in runs.values())


def test_what_is_alike_learns_once_and_what_differs_for_itself(task):
    runs = measured(task, *LEARNERS)
    before: list[str] = []
    examples = learn_equally([*runs.values()], task, 60.0, lambda run: before.append(run.name))
    assert examples == task.config.training.max_epochs * ROWS
    accuracies = {name: run.accuracy for name, run in runs.items()}
    assert None not in accuracies.values()
    assert accuracies["torch"] == accuracies["padded-sorted"]
    assert accuracies["random-batches"] == accuracies["packed"]
    assert set(before) == {"torch", "random-batches", "last-of-padding"}
    assert learn_equally([*runs.values()], task, 0.0, lambda run: None) == 0


def test_no_time_is_an_error():
    with pytest.raises(ConfigError, match="seconds"):
        compare("configs/quickstart.yaml", seconds=0)
