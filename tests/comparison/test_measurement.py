"""Measuring in turns: typical batches first, processes that are ended, equal training."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from seqtrain.comparison.accuracy import learn_equally
from seqtrain.comparison.compare import compare
from seqtrain.comparison.learners import (
    typical_first,
)
from seqtrain.comparison.speed import Turn, measured, rate
from seqtrain.comparison.task import Task
from seqtrain.comparison.turns import TURN, take_turns
from seqtrain.comparison.worker_pool import Worker, worker_pool
from seqtrain.errors import ConfigError

ROWS = 90
OTHERS = ["unroll-padded", "unroll-masked", "sort-in-module", "padded"]
LEARNERS = ["torch", "padded-sorted", "random-batches", "packed", "last-of-padding"]


@pytest.fixture(scope="module")
def workers(task: Task) -> Iterator[dict[str, Worker]]:
    """Processes at work; each test takes others."""
    with worker_pool() as pool:
        yield pool.start(OTHERS + LEARNERS, task)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the system doesn't list threads")
def test_what_forks_workers_has_no_threads_of_openmp() -> None:
    """Without AVX, oneDNN starts some for products that take none elsewhere."""
    code = "import os, torch._dynamo; before = len(os.listdir('/proc/self/task')); "
    code += "import seqtrain.comparison.worker; print(len(os.listdir('/proc/self/task')) - before)"
    old = {"OMP_NUM_THREADS": "2", "ONEDNN_MAX_CPU_ISA": "SSE41"}
    command = [sys.executable, "-c", code]
    assert subprocess.check_output(command, env={**os.environ, **old}, text=True).strip() == "0"


def test_first_batches_are_typical_and_all_come_once(task: Task) -> None:
    batches = typical_first(task.train.lengths, task.config)
    longest = [int(task.train.lengths[rows].max()) for rows in batches]
    assert sorted(np.concatenate(batches)) == list(range(ROWS))
    ranks = np.argsort(np.argsort(longest)) / len(longest)
    assert ranks[:3] == pytest.approx([0.5, 0.25, 0.75], abs=0.1)


def test_turns_go_on_until_the_deadline_and_count_real_tokens(
    task: Task, workers: dict[str, Worker]
) -> None:
    worker = workers["torch"]
    assert worker.ask("logits", limit=60.0).shape == (3, 2)
    take_turns([worker], "training", time.monotonic() + 0.5)
    first, *others = worker.turns["training"]
    assert first.batches == 1
    assert others
    whole_epochs, rest = divmod(sum(t.batches for t in worker.turns["training"]), 15)
    batches = typical_first(task.train.lengths, task.config)[:rest]
    expected = whole_epochs * int(task.train.lengths.sum())
    expected += sum(int(task.train.lengths[rows].sum()) for rows in batches)
    assert sum(t.tokens for t in worker.turns["training"]) == expected
    assert worker.turns["prediction"] == []


def test_past_the_deadline_each_still_gets_a_batch_and_one_more_where_it_was_short(
    workers: dict[str, Worker],
) -> None:
    worker = workers["unroll-padded"]
    take_turns([worker], "prediction", time.monotonic() - 1.0)
    first, *more = worker.turns["prediction"]
    assert first.batches == 1
    assert [turn.batches for turn in more] == ([1] if first.seconds <= TURN else [])
    assert worker.failure == ""


def test_a_batch_that_takes_too_long_is_ended_and_reported(
    workers: dict[str, Worker],
) -> None:
    worker = workers["unroll-masked"]
    worker.measure("training", 100.0, 0.1)
    assert "cut" in worker.failure
    take_turns([worker], "training", time.monotonic() + 60.0)
    assert worker.turns["training"] == []


def test_a_process_that_dies_is_reported(workers: dict[str, Worker]) -> None:
    worker = workers["padded"]
    worker.measure("training", "no seconds", 60.0)  # type: ignore[arg-type]
    assert worker.failure == "its process ended with code 1"


def test_the_first_turn_warms_up() -> None:
    turns = [Turn(1, 10, 9.0), Turn(2, 100, 1.0), Turn(1, 50, 2.0)]
    assert rate(measured(turns)) == 50.0
    assert rate(measured(turns[:1])) == pytest.approx(10 / 9)


def test_what_is_alike_learns_once_and_what_differs_for_itself(
    task: Task, workers: dict[str, Worker]
) -> None:
    workers = {name: workers[name] for name in LEARNERS}
    take_turns(list(workers.values()), "training", time.monotonic())
    before: list[str] = []
    learned = learn_equally(
        workers,
        LEARNERS[:-1],
        task,
        time.monotonic() + 60.0,
        lambda worker: before.append(worker.name),
    )
    assert learned.examples == task.config.training.max_epochs * ROWS
    assert learned.seeds >= 1
    assert learned.accuracies.keys() == set(LEARNERS)
    assert learned.accuracies["torch"] == learned.accuracies["padded-sorted"]
    assert learned.accuracies["random-batches"] == learned.accuracies["packed"]
    assert set(before) == {"torch", "random-batches", "last-of-padding"}


def test_without_time_nothing_is_learned(task: Task, workers: dict[str, Worker]) -> None:
    worker = workers["sort-in-module"]
    take_turns([worker], "training", time.monotonic())
    learned = learn_equally({worker.name: worker}, OTHERS, task, time.monotonic())
    assert learned.examples == 0


def test_no_time_is_an_error() -> None:
    with pytest.raises(ConfigError, match="seconds"):
        compare("configs/quickstart.yaml", seconds=0)
