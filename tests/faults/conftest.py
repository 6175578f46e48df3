"""What the fault tests share: a fast disk, a small project, and a list of figures at the end."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.helpers.program import write_project

TIMES = "SEQTRAIN_TIMES"
"""Environment variable: how often a slow form tries, in place of its own number."""
COUNTS = ("kills", "signals", "stops", "count", "examples")
FIGURES = pytest.StashKey[list[str]]()
MEMORY_DISK = Path("/dev/shm")


@pytest.fixture
def disk() -> Iterator[Path]:
    """An empty folder where flushing costs nothing, where the system has one."""
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as name:
        yield Path(name)


@pytest.fixture
def project(disk: Path) -> Path:
    """A folder with a config and its data."""
    write_project(disk)
    return disk


@pytest.fixture
def figure(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Note one line of figures, printed when the tests are over."""
    return pytestconfig.stash.setdefault(FIGURES, []).append


@pytest.fixture
def strace() -> str:
    """The tracer that injects faults into system calls, tried out."""
    path = shutil.which("strace")
    if path is None:
        pytest.skip("needs strace")
    return path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let slow forms try as often as asked for."""
    for item in items:
        call = getattr(item, "callspec", None)
        if TIMES in os.environ and call is not None and item.get_closest_marker("slow"):
            for name in call.params.keys() & COUNTS:
                call.params[name] = int(os.environ[TIMES])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the figures."""
    for line in config.stash.get(FIGURES, []):
        terminalreporter.write_line(f"faults: {line}")
