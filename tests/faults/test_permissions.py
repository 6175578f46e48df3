"""What may not be read or written, paths that lead nowhere, and too few descriptors."""

from __future__ import annotations

import ctypes
import io
import os
import resource
import shutil
import struct
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.helpers.program import fingerprint, fit, started, write_project
from tests.helpers.watched import watch

CAPABILITIES = 0x20080522
"""Version of the sets that capget and capset take."""
SHORT = ("--set", "training.max_epochs=1", "--set", "training.checkpoint_every=null", "--quiet")
RESUME = ("fit", "c.yaml", "--run-dir", "r", "--resume", *SHORT)
FORCE = ("fit", "c.yaml", "--run-dir", "r", "--force", *SHORT)
FRESH = ("fit", "c.yaml", "--run-dir", "r", *SHORT)
PREDICT = ("predict", "test.tsv", "--run", "r")
DATA = "data.train=locked/train.tsv"
LOCKED: dict[str, tuple[str, tuple[str, ...]]] = {
    "best, to predict": ("r/best", PREDICT),
    "best, to score": ("r/best", ("eval", "r")),
    "best, to replace": ("r/best", FORCE),
    "last, to replace": ("r/last", FORCE),
    "the run, to predict": ("r", PREDICT),
    "the run, to score": ("r", ("eval", "r")),
    "the run, to check": ("r", ("check", "r")),
    "the run, to go on": ("r", RESUME),
    "the run, to replace": ("r", FORCE),
    "the run, to write into": ("r", FRESH),
    "the metrics": ("r/metrics.jsonl", RESUME),
    "the environment": ("r/environment.json", RESUME),
    "the run's config": ("r/config.yaml", RESUME),
    "the run's config, to score": ("r/config.yaml", ("eval", "r", "--split", "validation")),
    "the weights": ("r/best/model.safetensors", PREDICT),
    "the manifest": ("r/best/manifest.json", PREDICT),
    "all runs": ("runs", ("eval",)),
    "a folder of data": ("locked", ("fit", "c.yaml", "--set", DATA, *SHORT)),
    "a folder of a config": ("locked", ("fit", "locked/c.yaml", *SHORT)),
    "a folder of inputs": ("locked", ("predict", "locked/test.tsv", "--run", "r")),
    "a folder of outputs": ("locked", (*PREDICT, "--output", "locked/out.tsv")),
    "a folder of charts": ("locked", ("compare", "c.yaml", "--chart", "locked/chart.svg")),
    "a folder of runs": ("locked", ("fit", "c.yaml", "--run-dir", "locked/r", *SHORT)),
    "a folder of runs, to list": ("locked", ("runs", "locked")),
    "a folder of reports": ("locked", ("report", "r", "-o", "locked/r.html")),
    "a folder of exports": ("locked", ("export", "r", "locked/port")),
    "an export, to replace": ("port", ("export", "r", "port", "--force")),
    "a folder of proposals": ("locked", ("init", "train.tsv", "-o", "locked/x.yaml")),
    "a folder of data, to propose": ("locked", ("init", "locked/train.tsv")),
    "a folder of data, to inspect": ("locked", ("data", "c.yaml", "--set", DATA)),
    "the run, to report": ("r", ("report", "r", "-o", "r.html")),
    "the run, to compare": ("r", ("diff", "r", "r")),
    "the metrics, to report": ("r/metrics.jsonl", ("report", "r", "-o", "r.html")),
    "the scored data": ("test.tsv", ("errors", "r")),
    "a file of data": ("train.tsv", ("fit", "c.yaml", *SHORT)),
    "the config": ("c.yaml", ("fit", "c.yaml", *SHORT)),
}


def lose_roots_rights() -> None:
    """Let permissions count for root too, as for every other user."""
    libc, header = ctypes.CDLL(None), struct.pack("II", CAPABILITIES, 0)
    sets = ctypes.create_string_buffer(24)
    assert libc.capget(header, sets) == 0
    words = [word & ~0b110 for word in struct.unpack("6I", sets.raw)[:3]]  # reading, writing all
    words += struct.unpack("6I", sets.raw)[3:]
    assert libc.capset(header, struct.pack("6I", *words)) == 0


def use_locked(disk: Path) -> dict[str, tuple[int, str, bool]]:
    """Lock each in turn; return the command's exit code, its problems, and if the run stayed."""
    from seqtrain.cli.main import run

    if os.geteuid() == 0:
        lose_roots_rights()
    folder, found = disk / "p", {}
    for name, (locked, arguments) in LOCKED.items():
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
        found[name] = (code, sys.stderr.getvalue(), fingerprint(folder / "r") == before)
        shutil.rmtree(folder)
    return found


def refusal(folder: Path, arguments: tuple[str, ...], prepare: Callable[[], None] | None) -> str:
    """Return the first problem of a command that ends with 2 or 3."""
    with started(folder, *arguments, prepare=prepare) as running:
        code = running.end()
    problems = [line for line in running.err.splitlines() if line.startswith("seqtrain: ")]
    assert code in (2, 3), (code, running.err)
    assert problems
    assert "None" not in problems[0]
    return problems[0]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a run, in a place where any user comes to."""
    folder = tmp_path_factory.mktemp("trained")
    write_project(folder)
    fit(folder, "r", *SHORT)
    return folder


@pytest.fixture
def begun(project: Path, trained: Path) -> Path:
    """A project of this test with a run, `r`."""
    shutil.copytree(trained / "r", project / "r")
    return project


def test_what_may_not_be_used_is_told(
    trained: Path, disk: Path, figure: Callable[[str], None]
) -> None:
    shutil.copytree(trained, disk / "trained")
    found, _, _ = watch(disk, use_locked)
    for name, (code, problems, unchanged) in found.items():
        problem = next(line for line in problems.splitlines() if line.startswith("seqtrain: "))
        assert code in (2, 3), (name, code, problems)
        assert Path(LOCKED[name][0]).name in problem, (name, problem)
        assert "None" not in problem, (name, problem)
        assert "ermission denied" in problem or "can't be" in problem, (name, problem)
        assert unchanged, name
    figure(f"no permission: {len(LOCKED)} commands end with 2 or 3, nothing is changed")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("loop", ("--force",)),
        ("loop", ()),
        ("nowhere", ()),
        ("loop/r", ()),
        ("loop", ("--resume",)),
    ],
)
def test_a_run_directory_that_is_a_link_to_nothing(
    project: Path, name: str, options: tuple[str, ...]
) -> None:
    (project / "loop").symlink_to("loop")
    (project / "nowhere").symlink_to("missing")
    arguments = ("fit", "c.yaml", "--run-dir", name, *SHORT, *options)
    assert name.split("/")[0] in refusal(project, arguments, None)
    assert not (project / "missing").exists()


@pytest.mark.parametrize(
    "arguments", [("fit", "c.yaml"), ("eval",), ("predict", "x.tsv"), ("fit", "c.yaml", "--resume")]
)
def test_a_removed_current_directory(project: Path, arguments: tuple[str, ...]) -> None:
    gone = project / "gone"
    gone.mkdir()
    assert refusal(project, arguments, partial(go_and_remove, gone))


def go_and_remove(folder: Path) -> None:
    os.chdir(folder)
    folder.rmdir()


def few_descriptors(number: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_too_few_descriptors_are_the_machines_fault(begun: Path, step: int) -> None:
    """Whatever can't be opened for lack of them: exit code 3, and an earlier run is whole."""
    before, codes = fingerprint(begun / "r"), set()
    for number in range(10, 40, step):
        with started(begun, *FORCE, prepare=partial(few_descriptors, number)) as running:
            code = running.end()
        codes.add(code)
        assert code in (0, 3), (number, print(running.err))
        if code == 3 and (begun / "r" / "config.yaml").exists():
            assert fingerprint(begun / "r") == before, number
    assert 3 in codes


@pytest.mark.parametrize("place", ["best", "last", "previous", "pretrained"])
@pytest.mark.parametrize("kind", ["link", "file", "pipe"])
def test_force_removes_nothing_before_all_is_checked(begun: Path, place: str, kind: str) -> None:
    path, other = begun / "r" / place, begun / "other"
    shutil.copytree(begun / "r" / "best", other)
    shutil.rmtree(path, ignore_errors=True)
    if kind == "link":
        path.symlink_to("../other")
    elif kind == "file":
        path.write_text("mine")
    else:
        os.mkfifo(path)
    names = sorted(path.name for path in (begun / "r").iterdir())
    if kind == "link":
        with started(begun, *FORCE) as running:
            assert running.end() == 0, running.err
        assert not path.is_symlink()
        assert (other / "model.json").exists()
    else:
        problem = refusal(begun, FORCE, None)
        assert f"no run wrote r/{place}" in problem
        assert sorted(path.name for path in (begun / "r").iterdir()) == names


def test_force_refuses_a_folder_in_a_files_place(begun: Path) -> None:
    (begun / "r" / "test.json").unlink()
    (begun / "r" / "test.json").mkdir()
    before = sorted(path.name for path in (begun / "r").iterdir())
    assert "no run wrote r/test.json" in refusal(begun, FORCE, None)
    assert sorted(path.name for path in (begun / "r").iterdir()) == before


@pytest.mark.parametrize(
    ("config", "runs", "chosen"),
    [
        ("exp", ["exp-20260101-000000", "exp-2-20260102-000000"], "exp-20260101-000000"),
        ("exp", ["exp-20260101-000000-2", "exp-20260101-extra"], "exp-20260101-000000-2"),
        ("exp", ["exp-2-20260102-000000", "exp-x", "exp-1"], None),
        ("exp-2", ["exp-2-20260102-000000", "exp-20260103-000000"], "exp-2-20260102-000000"),
        ("e[x]p", ["e[x]p-20260102-000000", "exp-20260103-000000"], "e[x]p-20260102-000000"),
    ],
)
def test_resume_takes_a_run_of_this_config_alone(
    project: Path, trained: Path, config: str, runs: list[str], chosen: str | None
) -> None:
    (project / f"{config}.yaml").write_bytes((project / "c.yaml").read_bytes())
    for name in runs:
        shutil.copytree(trained / "r", project / "runs" / name)
    arguments = ("fit", f"{config}.yaml", "--resume", *SHORT[:-1])
    if chosen is None:
        assert f"no run of {config}" in refusal(project, arguments, None)
        return
    with started(project, *arguments) as running:
        assert running.end() == 0, running.err
    assert running.out.splitlines()[-1] == f"runs/{chosen}"
