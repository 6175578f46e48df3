"""Random searches, stopped at random moments: the best trial is the run that `fit` repeats."""

import json
import random
import shutil
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.faults.test_random_stops import STOPS, stop
from tests.helpers.examples import seeds
from tests.helpers.program import started
from tests.helpers.tasks import Task, random_task
from tests.helpers.tiny import assert_same_run, metrics, run_in

optuna = pytest.importorskip("optuna")
JournalStorage = optuna.storages.JournalStorage
JournalFileBackend = optuna.storages.journal.JournalFileBackend
HUGE = 65536
"""A hidden size whose weights no machine holds."""


def prepare(seed: int, folder: Path) -> tuple[Task, list[str], int]:
    """Write a task with a space to search; return it, the arguments of tune, and the trials."""
    draw, task = random.Random(seed), random_task(seed)
    training, model = task.settings["training"], task.settings["model"]
    training["monitor"] = draw.choice(["accuracy", "macro_f1", "loss"])
    task.settings["tune"] = {"space": {
        "model.hidden_size": [3, 4, *([HUGE] if draw.random() < 0.5 else [])],
        "model.embedding_dim": None if task.kind == "features" else [3, 4],
        "batching.batch_size": [8, 16],
        "training.lr": {"low": 0.003, "high": 0.1},
        **dict.fromkeys(["data.min_count", "model.subwords", "model.ngrams"]
                        if task.kind == "text" else []),
    }}  # fmt: skip
    if task.kind == "features":
        model["convolutions"] = None
        del task.settings["tune"]["space"]["model.embedding_dim"]
    task.write(folder)
    trials = draw.randint(2, 6)
    words = ["tune", "c.yaml", "--quiet", "--trials", str(trials), "--run-dir", "r"]
    if draw.random() < 0.3:
        words.append("--no-cache")
    return task, words, trials


def recorded(run: Path) -> list[dict[str, Any]]:
    """Return the finished trials of a search."""
    path = run / "study.journal"
    if not path.exists() or not path.stat().st_size:
        return []
    storage = JournalStorage(JournalFileBackend(str(path)))
    found = optuna.load_study(study_name="tune", storage=storage).trials
    return [trial.user_attrs["result"] for trial in found if trial.state.is_finished()]


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(20))
def test_a_stopped_search_ends_with_the_best_of_its_trials(seed, tmp_path):
    task, words, count = prepare(seed, tmp_path)
    draw, run = random.Random(seed), tmp_path / "r"
    began = time.monotonic()
    with started(tmp_path, *words) as running:
        assert running.end() in (0, 3), running.err
    seconds = time.monotonic() - began
    shutil.move(run, tmp_path / "whole")
    code = -1
    for _ in range(draw.randint(1, 6)):
        before, number = recorded(run), draw.choice(STOPS)
        with ExitStack() as programs:
            several = [programs.enter_context(started(tmp_path, *words))]
            if draw.random() < 0.4:
                several.append(programs.enter_context(started(tmp_path, *words)))
            code = stop(several[0], number, draw.uniform(0.1, 1.0) * seconds)
            err = several[0].err
        assert code in (0, 1, 3, -number, 128 + number), (code, err)
        assert "Traceback" not in err or err.rstrip().endswith("KeyboardInterrupt")
        assert all(trial in recorded(run) for trial in before)
    with started(tmp_path, *words) as running:
        code = running.end()
    if code == 3 and "no trial was completed" in running.err:
        assert not [x for x in recorded(run) if x["state"] == "complete"]
        return
    assert code == 0, running.err
    check_end(task, run, count)
    if (tmp_path / "whole" / "config.yaml").exists():
        first, other = (recorded(each)[0]["settings"] for each in (run, tmp_path / "whole"))
        assert first == other


def check_end(task: Task, run: Path, count: int) -> None:
    """Check the trials of a search, and that plain runs of `fit` give their values."""
    trials = recorded(run)
    assert [trial["number"] for trial in trials] == [*range(count)]
    complete = [trial for trial in trials if trial["state"] == "complete"]
    assert all(trial["problem"] for trial in trials if trial["state"] == "failed")
    monitor = task.settings["training"]["monitor"]
    sign = -1 if monitor == "loss" else 1
    best = max(complete, key=lambda x: (sign * x["value"], -x["loss"], -x["number"]))
    assert not (run / "trials").exists()
    folder = run.parent
    run_in(folder, "fit", "r/best.yaml", "--run-dir", "plain", "--quiet")
    assert_same_run(run, folder / "plain")
    assert value_of(folder / "plain", monitor) == best["value"]
    other = complete[task.seed % len(complete)]
    sets = [f"{key}={json.dumps(value)}" for key, value in other["settings"].items()]
    words = [word for each in sets for word in ("--set", each)]
    run_in(folder, "fit", "r/base.yaml", "--run-dir", "other", "--quiet", *words)
    assert value_of(folder / "other", monitor) == other["value"]


def value_of(run: Path, monitor: str) -> Any:
    """Return the monitored value of the best epoch of a run."""
    found: list[Any] = [line for line in metrics(str(run)) if line.get("best")]
    return found[-1]["validation"][monitor]
