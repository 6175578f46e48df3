"""The launcher itself, in a process of its own: restarts, signals, exit codes, refused options."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seqtrain.errors import ConfigError
from seqtrain.processes.launch import launch
from seqtrain.processes.place import Place, threads_each
from tests.helpers.program import fingerprint
from tests.helpers.together import fit_together

LONG = ("--set", "training.max_epochs=8")
PATIENCE = 240


def launcher(folder: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "seqtrain", "fit", "c.yaml", "--run-dir", "several", "--quiet"]
    root = str(Path(__file__).parents[2])
    return subprocess.Popen(
        [*command, "--nproc-per-node", "2", *LONG, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": root},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    last = time.monotonic() + PATIENCE
    while not path.exists() and process.poll() is None and time.monotonic() < last:
        time.sleep(0.01)
    assert path.exists(), process.communicate()


def ranks(process: subprocess.Popen[str]) -> list[int]:
    """Return the process ids that a launcher started, by rank."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not children.exists():
        pytest.skip("needs /proc")
    return sorted(map(int, children.read_text().split()))


def test_lost_ranks_are_started_again_and_the_run_goes_on(project: Path) -> None:
    fit_together(project, "whole", 2, *LONG)
    with launcher(project, "--max-restarts", "1") as process:
        wait_for(project / "several" / "previous", process)
        os.kill(ranks(process)[1], signal.SIGKILL)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert out == "several\n"
    assert "lost: rank 1 on " in err
    assert "Traceback" not in err
    assert fingerprint(project / "several") == fingerprint(project / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(2))
def test_sigterm_to_the_launcher_stops_all(project: Path, turn: int) -> None:
    with launcher(project) as process:
        wait_for(project / "several" / "previous", process)
        time.sleep(0.2 * turn)
        process.terminate()
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143, err
    assert out == ""
    assert err.count("stopped by SIGTERM after step") == 1
    fit_together(project, "several", 2, *LONG)


@pytest.mark.slow
def test_a_killed_rank_without_restarts_is_exit_3(project: Path) -> None:
    with launcher(project) as process:
        wait_for(project / "several" / "previous", process)
        os.kill(ranks(process)[0], signal.SIGKILL)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3
    assert "rank 0 by signal 9" in err


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
