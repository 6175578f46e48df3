"""What all tests share: one thread, folders in memory, and how generated examples are drawn.

Torch is imported where it is there: some tests need none, and run without.
"""

from __future__ import annotations

import gc
import io
import os
import shutil
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from tests.helpers.examples import ALL, SOME

os.environ["OMP_NUM_THREADS"] = "1"
"""Read when numpy and scipy are loaded: their threads wait busily, and take ten times the time."""

if TYPE_CHECKING:
    from tests.helpers.tiny import Cli, Ended

MEMORY, ROOM = "/dev/shm", 2**32
"""A file system in memory, and the least bytes that must be free there to take it."""

settings.register_profile(
    "same",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=SOME,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("more", parent=settings.get_profile("same"), max_examples=ALL)


def pytest_configure(config: pytest.Config) -> None:
    """The default suite draws the same few examples every time, the slow one the same many.

    It writes to memory where it can, for the tests make and flush ten thousands of small files.
    What is compiled is kept, for the many processes that the tests start.
    """
    settings.load_profile("more" if _is_slow(config) else "same")
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.pop("COLUMNS", None)  # readline sets it for the workers of xdist
    if not _is_slow(config) and _has_room():
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)


def pytest_itemcollected(item: pytest.Item) -> None:
    """The slow suite also has each test that draws examples."""
    if _is_slow(item.config) and is_hypothesis_test(getattr(item, "obj", None)):
        item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Whatever is loaded by now stays: the collection of garbage leaves it out."""
    gc.collect()
    gc.freeze()


def _is_slow(config: pytest.Config) -> bool:
    return config.getoption("markexpr") == "slow"


def _has_room() -> bool:
    """Tell whether memory takes the tests' files, and lets programs among them run."""
    if not os.access(MEMORY, os.W_OK):
        return False
    found = os.statvfs(MEMORY)
    return found.f_bavail * found.f_frsize >= ROOM and not found.f_flag & os.ST_NOEXEC


@pytest.fixture(scope="session", autouse=True)
def own_signals() -> None:
    """Signals act as in a foreground program, also where nohup or a shell's & had them ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """One thread, so that equal seeds give equal bits and a busy machine doesn't slow us down.

    An old build of the native engine is an error: all its tests would be skipped.
    """
    if find_spec("torch"):
        import torch

        from seqtrain.engines.native.library import why_unavailable

        torch.set_num_threads(1)
        assert "other sources" not in why_unavailable(), (
            "run: python seqtrain/engines/native/build.py"
        )


@pytest.fixture
def cli(capsys, monkeypatch) -> Cli:
    """Run the program in this process, which ends with this exit code; `stdin` is what it reads.

    What the user gave wrong leaves nothing on stdout, but the rows before a bad one.
    """
    from seqtrain.cli.main import run as run_program
    from tests.helpers.tiny import Ended

    def run(*arguments: object, stdin: str | bytes = b"", code: int = 0) -> Ended:
        content = stdin.encode() if isinstance(stdin, str) else stdin
        buffered: BinaryIO = io.BufferedReader(io.BytesIO(content))  # type: ignore[arg-type]
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(buffered))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            run_program([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert ended.value.code == code, captured.err
        assert code != 2 or not captured.out or arguments[0] in ("predict", "reconstruct")
        return Ended(code, captured.out, captured.err)

    return run


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """A current directory with tiny data, a config for it, and no run."""
    from tests.helpers.tiny import write_text_project

    write_text_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def table_project(tmp_path, monkeypatch) -> Path:
    """A current directory with tables of a row per time step, a config for them, and no run."""
    from tests.helpers.tables import write_table_project

    write_table_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Path:
    """A folder with a config, its data, and `run`: a text model. Read only."""
    from tests.helpers.tiny import trained_folder

    return trained_folder(tmp_path_factory)


@pytest.fixture
def beside(trained, monkeypatch) -> Path:
    """The trained folder as current directory, as the run's config names its data relatively."""
    monkeypatch.chdir(trained)
    return trained


@pytest.fixture
def begun(project, trained) -> Path:
    """A current directory with a config, its data, and `r`: a run of it to do anything with."""
    shutil.copytree(trained / "run", project / "r")
    return project
