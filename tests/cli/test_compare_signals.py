"""Signals and killed processes in `seqtrain compare`: a line, a code, and no process left."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers.program import Running, started

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


@contextmanager
def comparing(folder: Path, seconds: int, at_work: int) -> Iterator[tuple[Running, list[int]]]:
    """Start the program in a session of its own; so many variants are at work in the block.

    Yields:
        The program and its processes, of which the first starts the others.
    """
    arguments = ("compare", "c.yaml", "--seconds", str(seconds))
    with started(folder, *arguments, prepare=os.setsid) as program:
        assert program.process.pid
        for _ in range(PATIENCE * POLLS):
            pool = next(iter(children(program.process.pid)), 0)
            processes = [pool, *children(pool)] if pool else []
            if len(processes) > at_work or not program.process.is_alive():
                break
            time.sleep(1 / POLLS)
        yield program, processes


@pytest.mark.parametrize(
    ("number", "at_work", "code", "line"),
    [
        (signal.SIGINT, 0, 130, "seqtrain: interrupted"),
        pytest.param(signal.SIGTERM, 5, 143, None, marks=pytest.mark.slow),
    ],
)
def test_a_signal_ends_all_processes_without_a_word_of_theirs(
    project: Path, number: int, at_work: int, code: int, line: str | None
) -> None:
    """As from a terminal, while torch is loaded, and while processes are started."""
    with comparing(project, 100, at_work) as (program, processes):
        assert processes, (program.end(), program.err)
        assert program.process.pid
        os.killpg(program.process.pid, number)
        assert program.end() == code, program.err
        assert program.out == ""
        expected = ["measuring for 100 s, in turns", *([line] if line else [])]
        assert program.err.splitlines() == expected
        assert not [pid for pid in processes if under_way(pid)]


def test_a_killed_variant_is_named_and_the_others_go_on(project: Path) -> None:
    """As where the system runs out of memory."""
    with comparing(project, 1, 5) as (program, processes):
        os.kill(processes[2], signal.SIGKILL)
        assert program.end() == 0, program.err
        assert program.err.count("its process ended with code -9") == 1
        assert "recommended" in program.out
        assert "%|" not in program.err, "no bar in a file"
        assert not [pid for pid in processes if under_way(pid)]


@pytest.mark.slow
def test_where_the_process_that_starts_the_others_is_killed(project: Path) -> None:
    with comparing(project, 100, 5) as (program, processes):
        os.kill(processes[0], signal.SIGKILL)
        assert program.end() == 3, program.err
        assert program.err.splitlines()[1:] == [
            "seqtrain: the process that starts all others ended with code -9"
        ]
        assert not [pid for pid in processes if under_way(pid)]


@pytest.mark.slow
def test_where_the_program_is_killed_its_processes_end(project: Path) -> None:
    with comparing(project, 100, 5) as (program, processes):
        program.process.kill()
        for _ in range(PATIENCE * POLLS):
            if not any(map(under_way, processes)):
                return
            time.sleep(1 / POLLS)
        raise AssertionError("processes are left")
