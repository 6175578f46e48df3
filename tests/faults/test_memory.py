"""Too little memory, at every phase of a run: exit code 3, or an end by a signal; never a bug.

The system sends SIGKILL. Libraries written in Rust, such as pydantic's core, end the process by
SIGABRT where an allocation fails, and leave no way to answer.
"""

import os
import resource
import shutil
import signal
from functools import partial
from pathlib import Path

import pytest

from seqtrain.engines.native.library import vector_path
from tests.helpers.program import KILLED, fit, fit_arguments, started
from tests.helpers.tiny import fingerprint

MIB = 2**20
FEW, MANY = (2, 40), tuple(range(2, 101))
"""Limits in MiB beside what the program holds once it is loaded."""
ENDS = (0, 3, KILLED, -signal.SIGABRT)
LARGE = ("--set", "model.hidden_size=1000", "--set", "training.max_epochs=1")


def limit_itself(mebibytes: int) -> None:
    """Limit this process, once the native engine is loaded: without it the last bits differ."""
    vector_path()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    allowed = pages * os.sysconf("SC_PAGE_SIZE") + mebibytes * MIB
    resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))


pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")


@pytest.mark.parametrize("limits", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_a_run_short_of_memory_goes_on_exactly(project, limits):
    fit(project, "whole", *LARGE)
    codes, run = set(), project / "r"
    for mebibytes in limits:
        shutil.rmtree(run, ignore_errors=True)
        arguments = fit_arguments(project, "r", *LARGE)
        prepare = partial(limit_itself, mebibytes)
        with started(project, *arguments, prepare=prepare) as running:
            code = running.end()
        codes.add(code)
        assert code in ENDS, (mebibytes, code, running.err)
        if code:
            fit(project, "r", *LARGE)
        assert fingerprint(run) == fingerprint(project / "whole"), (mebibytes, code)
    assert codes - {0}


COMMANDS = (
    ("predict", "test.tsv", "--run", "r", "--output", "new.tsv"),
    ("eval", "r"),
    ("report", "r", "-o", "new.html"),
    ("export", "r", "new"),
    ("data", "c.yaml"),
)


@pytest.mark.parametrize("limits", [FEW, pytest.param(MANY[::4], marks=pytest.mark.slow)])
def test_commands_short_of_memory_leave_runs_and_no_half_files(begun, limits):
    before = fingerprint(begun / "r")
    for mebibytes in limits:
        for arguments in COMMANDS:
            prepare = partial(limit_itself, mebibytes)
            with started(begun, *arguments, prepare=prepare) as running:
                code = running.end()
            assert code in ENDS, (mebibytes, arguments, code, running.err)
            assert fingerprint(begun / "r") == before
            for made in begun.glob("new*"):
                assert code == 0 or made.name == "new.tsv", (mebibytes, made)
                shutil.rmtree(made) if made.is_dir() else made.unlink()
