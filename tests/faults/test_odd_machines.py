"""Machines that lack something, a clock that goes backwards, and processes that are stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from seqtrain.errors import CheckpointError
from seqtrain.files.lock import locked
from tests.helpers.program import (
    fingerprint,
    fit,
    fit_arguments,
    run_program,
    started,
    write_project,
)
from tests.helpers.tracing import trace

SHORT = ("--set", "training.max_epochs=1", "--set", "training.checkpoint_every={steps: 5}")
RUN = """
import json, sys
from seqtrain.cli.main import run
for arguments in json.loads(sys.argv[1]):
    try:
        run(arguments)
    except SystemExit as ended:
        if ended.code:
            raise
"""


def run_without(place: str, folder: Path, *commands: list[str]) -> None:
    """Run the program where an empty folder, or one that nobody may write to, hides a place."""
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    options = "ro,size=4k" if place == "/dev/shm" else "size=4k"
    script = f'mount -t tmpfs -o {options} none "$0" && exec "$@"'
    program = [sys.executable, "-c", RUN, json.dumps(commands)]
    command = ["unshare", "-rm", "sh", "-c", script, place, *program]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if "mount" in ended.stderr or "unshare" in ended.stderr:
        pytest.skip(f"no mounts for users here: {ended.stderr.strip()}")
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("place", ["/dev/shm", pytest.param("/proc", marks=pytest.mark.slow)])
def test_without_a_folder_of_the_system(place: str) -> None:
    """Training, going on and predicting need neither /proc nor /dev/shm.

    Without /proc torch doesn't know the processor, and then the last bits may differ.
    """
    with TemporaryDirectory() as name:  # in neither of the two
        check_without(place, Path(name))


def check_without(place: str, folder: Path) -> None:
    write_project(folder)
    fit(folder, "whole", *SHORT)
    arguments = ["fit", "c.yaml", "--run-dir", "r", "--quiet", *SHORT]
    predict = ["predict", "test.tsv", "--run", "r"]
    run_without(place, folder, arguments, [*arguments, "--resume"], predict)
    processors = [
        json.loads((folder / run / "environment.json").read_text())["cpu_capability"]
        for run in ("r", "whole")
    ]
    same = fingerprint(folder / "r") == fingerprint(folder / "whole")
    assert same or processors[0] != processors[1]


def begin(folder: Path) -> None:
    run_program(str(folder), fit_arguments(folder, "r", *SHORT), None)


@pytest.mark.parametrize("error", ["ENOLCK", "EOPNOTSUPP", "EINVAL"])
def test_a_file_system_without_locks(project: Path, strace: str, error: str) -> None:
    """As NFS may be: the run is as any other, and only two runs in one directory aren't told."""
    fit(project, "whole", *SHORT)
    options = ("-e", "trace=flock", "-e", f"inject=flock:error={error}")
    code, lines = trace(strace, project, begin, *options)
    assert code == 0
    assert "(INJECTED)" in "".join(lines)
    assert fingerprint(project / "r") == fingerprint(project / "whole")
    assert not (project / "r" / ".lock").exists()


def set_clock_back(every_look: bool) -> None:
    """Let the time of day stand a year before, or lose an hour whenever this process looks."""
    now, looks = time.time_ns, count(1)

    def turned_back() -> int:
        lost = 3600 * next(looks) if every_look else 86400 * 365
        return now() - lost * 10**9

    time.time_ns = turned_back
    time.time = lambda: turned_back() / 1e9


@pytest.mark.parametrize("every_look", [True, False])
def test_a_clock_that_goes_backwards(project: Path, every_look: bool) -> None:
    """During a run, and between a run and its resuming."""
    fit(project, "whole")
    prepare = partial(set_clock_back, every_look)
    with started(project, *fit_arguments(project, "r"), prepare=prepare) as running:
        running.wait_for(project / "r" / "config.yaml")
        running.send(signal.SIGTERM)
        assert running.end() in (0, 143), running.err
    future = time.time() + 86400
    for path in (project / "r").rglob("*"):
        os.utime(path, (future, future))
    with started(project, *fit_arguments(project, "r"), prepare=prepare) as running:
        assert running.end() == 0, running.err
    assert fingerprint(project / "r") == fingerprint(project / "whole")


@pytest.mark.parametrize("stops", [6, pytest.param(100, marks=pytest.mark.slow)])
def test_stopped_and_continued(project: Path, figure: Callable[[str], None], stops: int) -> None:
    """SIGSTOP and SIGCONT at any moment change nothing; the lock is held meanwhile."""
    fit(project, "whole")
    whole, done, refused = fingerprint(project / "whole"), 0, 0
    while done < stops:
        shutil.rmtree(project / "r", ignore_errors=True)
        with started(project, *fit_arguments(project, "r")) as running:
            running.wait_for(project / "r" / ".lock")
            for _ in range(3):
                running.send(signal.SIGSTOP)
                time.sleep(0.02)
                lock = project / "r" / ".lock"  # its owner writes into it once it is locked
                if running.process.is_alive() and lock.exists() and lock.read_text():
                    with pytest.raises(CheckpointError, match="in use by process"):
                        locked(project / "r").__enter__()
                    refused += 1
                running.send(signal.SIGCONT)
                done += 1
                time.sleep(0.02)
            assert running.end() == 0, running.err
        assert fingerprint(project / "r") == whole
    assert refused
    figure(f"SIGSTOP and SIGCONT: {done} stops, 0 differences; {refused} times the lock was held")
