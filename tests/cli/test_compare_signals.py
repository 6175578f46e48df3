"""Signals in `seqtrain compare`: one line, its code, and no process left."""

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
    program = subprocess.Popen(
        [sys.executable, "-m", "seqtrain", "compare", "c.yaml", "--seconds", "100"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    nursery, started = 0, []
    for _ in range(PATIENCE * POLLS):
        nursery = next(iter(children(program.pid)), 0)
        started = [nursery, *(children(nursery) if nursery else [])]
        if (nursery and len(started) > at_work) or program.poll() is not None:
            break
        time.sleep(1 / POLLS)
    os.killpg(program.pid, number)
    said, _ = program.communicate(timeout=PATIENCE)
    assert nursery
    assert said.splitlines() == ["measuring for 100 s, in turns", *([line] if line else [])]
    assert program.returncode == code
    assert not [pid for pid in started if under_way(pid)]
