"""Signals in `seqtrain compare`: one line, its code, and no process left."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.helpers.program import started

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
    arguments = ("compare", "c.yaml", "--seconds", "100")
    with started(project, *arguments, prepare=os.setsid) as program:
        pid = program.process.pid
        assert pid
        pool, workers = 0, []
        for _ in range(PATIENCE * POLLS):
            pool = next(iter(children(pid)), 0)
            workers = children(pool) if pool else []
            if (pool and len(workers) >= at_work) or not program.process.is_alive():
                break
            time.sleep(1 / POLLS)
        os.killpg(pid, number)
        assert program.end() == code
    assert pool
    assert program.out == ""
    assert program.err.splitlines() == ["measuring for 100 s, in turns", *([line] if line else [])]
    assert not [pid for pid in (pool, *workers) if under_way(pid)]
