"""Missing permissions and too few descriptors: exit code 2 or 3, nothing is changed."""

import ctypes
import io
import os
import resource
import shutil
import struct
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.faults.conftest import SHORT
from tests.helpers.program import ended, started
from tests.helpers.tiny import fingerprint
from tests.helpers.watched import watch

CAPABILITIES = 0x20080522
"""Version of the sets that capget and capset take."""
FIT = ("fit", "c.yaml", *SHORT, "--quiet")
PREDICT = ("predict", "test.tsv", "--run", "r")
DATA = ("--set", "data.train=locked/train.tsv")
LOCKED: list[tuple[str, tuple[str, ...]]] = [  # what may not be used, and who wants to
    *(("r/best", use) for use in (PREDICT, ("eval", "r"), (*FIT, "--run-dir", "r", "--force"))),
    ("r/last", (*FIT, "--run-dir", "r", "--force")),
    *(("r", use) for use in (PREDICT, ("eval", "r"), ("check", "r"), ("diff", "r", "r"))),
    ("r", ("report", "r", "-o", "r.html")),
    *(("r", (*FIT, "--run-dir", "r", *how)) for how in ((), ("--resume",), ("--force",))),
    *(
        (f"r/{name}", (*FIT, "--run-dir", "r", "--resume"))
        for name in ("metrics.jsonl", "environment.json", "config.yaml")
    ),
    ("r/metrics.jsonl", ("report", "r", "-o", "r.html")),
    ("r/config.yaml", ("eval", "r", "--split", "validation")),
    *((f"r/best/{name}", PREDICT) for name in ("model.safetensors", "manifest.json")),
    ("runs", ("eval",)),
    ("locked", (*FIT, *DATA)),
    ("locked", ("data", "c.yaml", *DATA)),
    ("locked", ("fit", "locked/c.yaml")),
    ("locked", (*FIT, "--run-dir", "locked/r")),
    ("locked", ("predict", "locked/test.tsv", "--run", "r")),
    ("locked", (*PREDICT, "--output", "locked/out.tsv")),
    ("locked", ("runs", "locked")),
    ("locked", ("report", "r", "-o", "locked/r.html")),
    ("locked", ("export", "r", "locked/port")),
    ("locked", ("init", "train.tsv", "-o", "locked/x.yaml")),
    ("locked", ("init", "locked/train.tsv")),
    ("port", ("export", "r", "port", "--force")),
    ("test.tsv", ("errors", "r")),
    ("train.tsv", FIT),
    ("c.yaml", FIT),
]


def lose_roots_rights() -> None:
    """Make permissions apply to root, too."""
    libc, header = ctypes.CDLL(None), struct.pack("II", CAPABILITIES, 0)
    sets = ctypes.create_string_buffer(24)
    assert libc.capget(header, sets) == 0
    words = [word & ~0b110 for word in struct.unpack("6I", sets.raw)[:3]]  # reading, writing all
    words += struct.unpack("6I", sets.raw)[3:]
    assert libc.capset(header, struct.pack("6I", *words)) == 0


def use_locked(disk: Path) -> list[tuple[int, str, bool]]:
    """Lock each in turn; return the command's exit code, its problems, and if the run stayed."""
    from seqtrain.cli.main import run

    if os.geteuid() == 0:
        lose_roots_rights()
    folder, found = disk / "p", []
    for locked, arguments in LOCKED:
        shutil.copytree(disk / "trained", folder)
        for made in ("runs", "locked", "port"):
            (folder / made).mkdir()
        for copied in ("train.tsv", "test.tsv", "c.yaml"):
            shutil.copy(folder / copied, folder / "locked")
        before, mode = fingerprint(folder / "r"), (folder / locked).stat().st_mode
        (folder / locked).chmod(0o000)
        os.chdir(folder)
        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
        code = 0
        try:
            run(list(arguments))
        except SystemExit as ended:
            code = int(ended.code or 0)
        (folder / locked).chmod(mode)
        found.append((code, sys.stderr.getvalue(), fingerprint(folder / "r") == before))
        shutil.rmtree(folder)
    return found


def test_what_may_not_be_used_is_named(finished, disk):
    shutil.copytree(finished, disk / "trained")
    found, _, _ = watch(disk, use_locked)
    for (locked, arguments), (code, said, is_unchanged) in zip(LOCKED, found, strict=True):
        problem = next(line for line in said.splitlines() if line.startswith("seqtrain: "))
        assert code in (2, 3), (arguments, code, said)
        assert Path(locked).name in problem, (arguments, problem)
        assert "None" not in problem, (arguments, problem)
        assert "ermission denied" in problem or "can't be" in problem, (arguments, problem)
        assert is_unchanged, arguments


def go_and_remove(folder: Path) -> None:
    os.chdir(folder)
    folder.rmdir()


@pytest.mark.parametrize("arguments", [("fit", "c.yaml"), ("predict", "x.tsv")])
def test_a_removed_current_directory(disk, arguments):
    (disk / "gone").mkdir()
    prepare = partial(go_and_remove, disk / "gone")
    running = ended(disk, *arguments, prepare=prepare, code=2)
    assert "current directory" in running.err


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_too_few_descriptors_are_the_machines_fault(begun, step):
    """Whatever can't be opened for lack of them: exit code 3, and an earlier run is whole."""
    before, codes = fingerprint(begun / "r"), set()
    for number in range(10, 40, step):
        prepare = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (number, number))
        with started(begun, *FIT, "--run-dir", "r", "--force", prepare=prepare) as running:
            code = running.end()
        codes.add(code)
        assert code in (0, 3), (number, running.err)
        if code == 3 and (begun / "r" / "config.yaml").exists():
            assert fingerprint(begun / "r") == before, number
    assert 3 in codes
