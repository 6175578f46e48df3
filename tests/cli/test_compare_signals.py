"""Signals and killed processes in `seqtrain compare`: a line, a code, and no process left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PATIENCE = 300
POLLS = 100

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")


def children(pid: int) -> list[int]:
    """Return the processes that a process has started and not seen ending."""
    found = []
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        found += [int(child) for child in tasks.read_text().split()]
    return found


def under_way(pid: int) -> bool:
    """Return whether a process still does something: it isn't only waiting to be forgotten."""
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def comparing(seconds: int, at_work: int) -> tuple[subprocess.Popen[str], list[int]]:
    """Start the program; return it and its processes once so many variants are at work.

    The first of these starts the others.
    """
    program = subprocess.Popen(
        [sys.executable, "-m", "seqtrain", "compare", "c.yaml", "--seconds", str(seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    for _ in range(PATIENCE * POLLS):
        nursery = next(iter(children(program.pid)), 0)
        started = [nursery, *children(nursery)] if nursery else []
        if len(started) > at_work or program.poll() is not None:
            break
        time.sleep(1 / POLLS)
    return program, started


@pytest.mark.parametrize(
    ("number", "at_work", "code", "line"),
    [
        (signal.SIGINT, 0, 130, "seqtrain: interrupted"),
        (signal.SIGTERM, 5, 143, None),
    ],
)
def test_a_signal_ends_all_processes_without_a_word_of_theirs(
    project: Path, number: int, at_work: int, code: int, line: str | None
) -> None:
    """As from a terminal, while torch is loaded, and while processes are started."""
    program, started = comparing(100, at_work)
    os.killpg(program.pid, number)
    said, _ = program.communicate(timeout=PATIENCE)
    assert started
    assert said.splitlines() == ["measuring for 100 s, in turns", *([line] if line else [])]
    assert program.returncode == code
    assert not [pid for pid in started if under_way(pid)]


def test_a_killed_variant_is_named_and_the_others_go_on(project: Path) -> None:
    """As where the system runs out of memory."""
    program, started = comparing(2, 5)
    os.kill(started[2], signal.SIGKILL)
    said, _ = program.communicate(timeout=PATIENCE)
    assert program.returncode == 0, said
    assert said.count("its process ended with code -9") == 1
    assert "recommended" in said
    assert not [pid for pid in started if under_way(pid)]


@pytest.mark.slow
def test_where_the_process_that_starts_the_others_is_killed(project: Path) -> None:
    program, started = comparing(100, 5)
    os.kill(started[0], signal.SIGKILL)
    said, _ = program.communicate(timeout=PATIENCE)
    assert program.returncode == 3, said
    assert said.splitlines()[1:] == [
        "seqtrain: the process that starts all others ended with code -9"
    ]
    assert not [pid for pid in started if under_way(pid)]


@pytest.mark.slow
def test_where_the_program_is_killed_its_processes_end(project: Path) -> None:
    program, started = comparing(100, 5)
    program.kill()
    program.communicate(timeout=PATIENCE)
    for _ in range(PATIENCE * POLLS):
        if not any(map(under_way, started)):
            return
        time.sleep(1 / POLLS)
    raise AssertionError("processes are left")
