"""Random tasks stopped at random moments end with the bits of a run that was never stopped."""

import random
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.helpers.examples import seeds
from tests.helpers.program import PATIENCE, POLLS, Running, children, started
from tests.helpers.tasks import Task, random_task
from tests.helpers.tiny import fingerprint

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
REPEATS = ((), (), (), ("--seeds", "0,1"), ("--folds", "2"))


def prepare(seed: int, folder: Path) -> list[str]:
    """Write a task with checkpoints within epochs; return the arguments of fit."""
    draw, task = random.Random(seed), random_task(seed)
    while "validation" in task.splits:  # folds need a fraction
        task = random_task(draw.randrange(10**6))
    training = task.settings["training"]
    training["refit"] = draw.random() < 0.5
    training["checkpoint_every"] = draw.choice([None, {"steps": 1}, {"steps": 3}])
    pretrained(task, draw)
    task.splits = {name: rows[:80] for name, rows in task.splits.items()}
    task.write(folder)
    return ["fit", "c.yaml", "--quiet", *draw.choice(REPEATS)]


def pretrained(task: Task, draw: random.Random) -> None:
    """Add pretraining to some tasks that allow it."""
    objectives = ["autoencoder", "language_model"]
    if task.kind in ("text", "tokens") and not task.data.get("static") and draw.random() < 0.7:
        task.settings["pretraining"] = {"objective": draw.choice(objectives), "max_epochs": 2}
        task.settings["model"]["bidirectional"] = False
        task.settings["training"]["refit"] = False  # there is none after pretraining


def whole(folder: Path, words: list[str], run: str) -> float:
    """Train a run to its end; return the seconds that it took."""
    began = time.monotonic()
    with started(folder, *words, "--run-dir", run) as running:
        assert running.end() == 0, running.err
    return time.monotonic() - began


def stop(running: Running, number: int, seconds: float) -> int:
    """Send a signal after some time; return the exit code, once no worker is left.

    A worker whose program was killed still saves its progress.
    """
    running.process.join(seconds)
    workers = []
    with suppress(OSError):  # the program has ended
        workers = children(running.process.pid or 0)
    running.send(number)
    code = running.end()
    for _ in range(PATIENCE * POLLS):
        if not any(Path(f"/proc/{worker}").exists() for worker in workers):
            return code
        time.sleep(1 / POLLS)
    raise AssertionError("a worker is left")


@pytest.mark.skipif(sys.platform != "linux", reason="finds workers under /proc")
@pytest.mark.parametrize("seed", seeds(1))
def test_stopped_runs_end_with_equal_bits(seed, tmp_path):
    words, draw = prepare(seed, tmp_path), random.Random(seed)
    seconds = whole(tmp_path, words, "whole")
    run, code = tmp_path / "r", -1
    for _ in range(draw.randint(1, 5)):
        number = draw.choice(STOPS)
        with started(tmp_path, *words, *resumed(run)) as running:
            code = stop(running, number, draw.uniform(0.1, 1.1) * seconds)
        # A signal before the program handles it, or after its end, ends Python itself: SIGINT with
        # code 1, because multiprocessing started it.
        ends = (0, -number, 128 + number, *((1,) if number == signal.SIGINT else ()))
        assert code in ends, (code, running.err)
        if code == 1:
            assert not running.err or running.err.rstrip().endswith("KeyboardInterrupt")
        else:
            assert "Traceback" not in running.err
        if code == 0:
            break
    if code != 0:
        with started(tmp_path, *words, *resumed(run)) as running:
            assert running.end() == 0, running.err
    assert fingerprints(run) == fingerprints(tmp_path / "whole")


def resumed(run: Path) -> list[str]:
    """Return the options that start or resume a run. What was killed before it began is removed."""
    if run.exists() and not list(run.rglob("config.yaml")):
        shutil.rmtree(run)
    return ["--run-dir", run.name, *(["--resume"] if run.exists() else [])]


def fingerprints(folder: Path) -> dict[str, dict[str, str]]:
    """Return the digests of a run, or of each of several."""
    runs = sorted(path.parent for path in folder.rglob("config.yaml"))
    return {str(run.relative_to(folder)): fingerprint(run) for run in runs}
