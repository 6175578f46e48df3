"""Fixtures of the fault tests: a fast disk, a small project, and a tracer of system calls."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.program import fit, write_project
from tests.helpers.tiny import fingerprint
from tests.helpers.tracing import saved_twice

TIMES = "SEQTRAIN_TIMES"
"""Environment variable: how often a slow form tries, in place of its own number."""
COUNTS = ("kills", "signals", "stops", "count", "examples")
MEMORY_DISK = Path("/dev/shm")
SHORT = ("--set", "training.max_epochs=1", "--set", "training.checkpoint_every=null")


@pytest.fixture
def disk() -> Iterator[Path]:
    """An empty folder where flushing costs nothing, where the system has one."""
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as name:
        yield Path(name)


@pytest.fixture
def project(disk) -> Path:
    """A folder with a config and its data."""
    write_project(disk)
    return disk


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Path:
    """A project with a short run, `r`. Read only."""
    folder = tmp_path_factory.mktemp("finished")
    write_project(folder)
    fit(folder, "r", *SHORT)
    return folder


@pytest.fixture(scope="session")
def whole(tmp_path_factory) -> dict[str, str]:
    """The fingerprint of the project's run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    write_project(folder)
    fit(folder, "r")
    return fingerprint(folder / "r")


@pytest.fixture
def begun(finished, disk) -> Path:
    """A copy of it, to do anything with."""
    return shutil.copytree(finished, disk, dirs_exist_ok=True)


@pytest.fixture
def template(disk) -> Path:
    """A folder in which was saved twice."""
    return saved_twice(disk / "template")


@pytest.fixture
def strace() -> str:
    """The tracer that injects faults into system calls."""
    path = shutil.which("strace")
    if path is None:
        pytest.skip("needs strace")
    return path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Repeat slow tests as often as SEQTRAIN_TIMES asks for."""
    for item in items:
        call = getattr(item, "callspec", None)
        if TIMES in os.environ and call is not None and item.get_closest_marker("slow"):
            for name in call.params.keys() & COUNTS:
                call.params[name] = int(os.environ[TIMES])
