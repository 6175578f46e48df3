"""Several processes on one run: one trains, all others read what is whole."""

from __future__ import annotations

import re
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from program import FORKS, fingerprint, fit, fit_arguments, started
from saving import save
from tracing import good

from seqtrain.runs.run_directory import RunDirectory


@pytest.mark.parametrize("pairs", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_of_two_fits_one_wins(project: Path, figure: Callable[[str], None], pairs: int) -> None:
    fit(project, "whole")
    whole, named = fingerprint(project / "whole"), 0
    for turn in range(pairs):
        arguments = ["fit", "c.yaml", "--run-dir", f"r{turn}", "--quiet"]
        with started(project, *arguments) as first, started(project, *arguments) as second:
            codes = [first.end(), second.end()]
        winner, loser = (first, second) if codes[0] == 0 else (second, first)
        assert sorted(codes) == [0, 2], first.err + second.err
        (line,) = (line for line in loser.err.splitlines() if line.startswith("seqtrain"))
        in_use = re.search(r"in use by process (\d+);", line)
        assert "isn't empty" in line or (in_use and int(in_use[1]) == winner.process.pid)
        named += bool(in_use)
        assert fingerprint(project / f"r{turn}") == whole
    figure(f"two fits on one directory: {pairs} pairs, 1 winner each ({named} losers named it)")


def save_for_ever(folder: str) -> None:
    number = 0
    while True:
        number += 1
        save(Path(folder), number)


@pytest.mark.parametrize("reads", [200, pytest.param(2_000, marks=pytest.mark.slow)])
def test_readers_see_whole_folders(disk: Path, figure: Callable[[str], None], reads: int) -> None:
    run = RunDirectory(disk / "r")
    run.path.mkdir()
    save(run.path, 0)
    writer = FORKS.Process(target=save_for_ever, args=(str(run.path),))
    writer.start()
    seen: list[int] = []
    try:
        while len(seen) < reads or seen[-1] < reads // 10:
            ((number, _),) = good(run.best)
            seen.append(number)
            assert good(run.last)
    finally:
        writer.kill()
        writer.join()
    assert seen == sorted(seen)
    figure(f"readers: {len(seen)} reads while {seen[-1]} saves were made, 0 torn, 0 refused")


@pytest.mark.parametrize("signals", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_sigterm_loses_no_step(project: Path, figure: Callable[[str], None], signals: int) -> None:
    options = ("--set", "training.max_epochs=40", "--set", "training.checkpoint_every=null")
    fit(project, "whole", *options)
    whole, run, done, slowest = fingerprint(project / "whole"), "r", 0, 0.0
    while done < signals:
        with started(project, *fit_arguments(project, run, *options)) as running:
            running.wait_for(project / run / ".lock")
            running.wait_for(project / run / "config.yaml")
            time.sleep(0.02 * (done % 5))
            began = time.monotonic()
            running.send(signal.SIGTERM)
            code = running.end()
            slowest = max(slowest, time.monotonic() - began)
        assert code in (0, 143), running.err
        saved = re.search(r"stopped by SIGTERM after step (\d+), saved", running.err)
        if saved:
            assert code == 143
            state = (project / run / "last" / "training_state.json").read_text()
            assert f'"step": {saved[1]},' in state
            done += 1
        if code == 0 or done % 5 == 0 or done == signals:
            fit(project, run, *options)
            assert fingerprint(project / run) == whole
            shutil.rmtree(project / run)
    assert slowest < 5
    figure(f"SIGTERM: {done} times, 143 within {slowest:.1f} s, 0 steps lost")
