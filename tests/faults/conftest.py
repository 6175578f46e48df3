"""What the fault tests share: a fast disk, a small project, and a list of figures at the end."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.helpers.program import write_project

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


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the figures."""
    for line in config.stash.get(FIGURES, []):
        terminalreporter.write_line(f"faults: {line}")
