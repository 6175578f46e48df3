"""Several processes on one run: one trains, all others read what is whole."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from seqtrain.runs.run_directory import RunDirectory
from tests.helpers.program import FORKS, fingerprint, fit, started
from tests.helpers.saving import save
from tests.helpers.tracing import good


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
