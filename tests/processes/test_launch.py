"""The launcher itself, in a process of its own: restarts, signals, exit codes, refused options."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from seqtrain.errors import ConfigError
from seqtrain.processes.launch import launch
from seqtrain.processes.place import Place, threads_each
from tests.helpers.program import Running, fingerprint, started
from tests.helpers.together import fit_together, take_place

LONG = ("--set", "training.max_epochs=8")
PATH = {"PYTHONPATH": str(Path(__file__).parents[2])}


@contextmanager
def launching(folder: Path, processes: int, *options: str) -> Iterator[tuple[Running, list[int]]]:
    """Start the launcher; in the block its processes train.

    Yields:
        The launcher, and the ids of its processes by rank.
    """
    arguments = ["fit", "c.yaml", "--run-dir", "several", "--quiet", *LONG, *options]
    arguments += ["--nproc-per-node", str(processes)]
    with started(folder, *arguments, prepare=partial(take_place, PATH, None)) as launcher:
        launcher.wait_for(folder / "several" / "previous")
        pid = launcher.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children")
        if not children.exists():
            pytest.skip("needs /proc")
        yield launcher, sorted(map(int, children.read_text().split()))


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_lost_ranks_are_started_again_and_the_run_goes_on(project: Path, processes: int) -> None:
    fit_together(project, "whole", processes, *LONG)
    with launching(project, processes, "--max-restarts", "1") as (launcher, ranks):
        os.kill(ranks[-1], signal.SIGKILL)
        assert launcher.end() == 0, launcher.err
    assert launcher.out == "several\n"
    assert ("lost: rank 1 on " in launcher.err) == (processes > 1)
    assert "Traceback" not in launcher.err
    assert fingerprint(project / "several") == fingerprint(project / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(10))
def test_sigterm_to_the_launcher_stops_all(project: Path, turn: int) -> None:
    with launching(project, 2) as (launcher, _):
        time.sleep(0.05 * turn)
        launcher.send(signal.SIGTERM)
        assert launcher.end() == 143, launcher.err
    assert launcher.out == ""
    assert launcher.err.count("stopped by SIGTERM after step") == 1
    fit_together(project, "several", 2, *LONG)


@pytest.mark.slow
def test_a_killed_rank_without_restarts_is_exit_3(project: Path) -> None:
    with launching(project, 2) as (launcher, ranks):
        os.kill(ranks[0], signal.SIGKILL)
        assert launcher.end() == 3
    assert "rank 0 by signal 9" in launcher.err


@pytest.mark.parametrize(
    ("hosts", "endpoint", "words"),
    [
        ("two", None, "--nnodes: found two; expected a number of hosts, or MIN:MAX"),
        ("2", None, "--nnodes: found 2, but no --rdzv-endpoint"),
        (
            None,
            "here:29500",
            "--rdzv-endpoint: found here:29500; expected HOST:PORT, with --nnodes",
        ),
        ("2", "a b", "--rdzv-endpoint: found a b; expected HOST:PORT"),
    ],
)
def test_wrong_options_are_refused(hosts: str | None, endpoint: str | None, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        launch([], processes=2, hosts=hosts, endpoint=endpoint, restarts=0)
    assert words in str(refused.value)


def test_a_place_is_read_from_the_environment() -> None:
    assert Place.here({}) == Place()
    found = Place.here({"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"})
    assert found == Place(3, 4, 1, 2)
    for wrong in ({"RANK": "4", "WORLD_SIZE": "4"}, {"RANK": "x"}, {"WORLD_SIZE": "-1"}):
        with pytest.raises(ConfigError, match=r"RANK|WORLD_SIZE"):
            Place.here(wrong)


def test_the_cores_are_shared() -> None:
    assert threads_each(1) >= 1
    assert threads_each(10**6) == 1
