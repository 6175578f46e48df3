"""Faults within a save: kills and errors at every system call; readers and other runs meanwhile."""

import re
import shutil
from pathlib import Path

import pytest

from seqtrain.runs.run_directory import RunDirectory
from tests.faults.conftest import SHORT
from tests.helpers.program import FORKS, ended, fit, fit_arguments, run_program, started
from tests.helpers.tiny import fingerprint
from tests.helpers.tracing import NEW, calls, copied, good, plain, recovered, save, save_new, trace

every = pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
"""Of so many calls one is tried."""


@every
def test_kill_at_every_call_leaves_a_good_checkpoint(template, strace, step):
    code, lines = trace(strace, copied(template), save_new)
    points = calls(lines, template.with_name("run"))
    assert code == 0
    assert {"mkdir", "write", "fsync", "rename", "unlinkat"} <= {point.name for point in points}
    for point in points[::step]:
        run = copied(template)
        inject = f"inject={point.name}:signal=KILL:when={point.ordinal}"
        _, lines = trace(strace, run, save_new, "-e", inject)
        assert "+++ killed by SIGKILL +++" in lines[-1], point
        assert len(calls(lines, run)) == points.index(point) + 1, point
        recovered(run)
        save(run, NEW + 1)
        assert [found for found, _ in good(run / "last", run / "best")] == [NEW + 1] * 2


@every
@pytest.mark.parametrize("error", ["ENOSPC", pytest.param("EIO", marks=pytest.mark.slow)])
def test_error_at_every_write_and_flush_keeps_what_was_saved(template, strace, error, step):
    _, lines = trace(strace, copied(template), save_new)
    points = calls(lines, template.with_name("run"))
    for point in [point for point in points if point.name in ("write", "fsync")][::step]:
        run = copied(template)
        inject = f"inject={point.name}:error={error}:when={point.ordinal}"
        code, lines = trace(strace, run, save_new, "-e", inject)
        assert code == 3, point
        assert sum("(INJECTED)" in line for line in lines) == 1
        assert not [path for path in run.iterdir() if path.name.startswith(".")]
        recovered(run)


def begin(folder: Path) -> None:
    """Train; the whole path of the run is given, for that is how `calls` knows it."""
    arguments = fit_arguments(folder, str(folder / "r"), *SHORT)
    run_program(str(folder), arguments, None)


@pytest.mark.slow
def test_kill_at_every_call_of_a_whole_run(project, strace):
    fit(project, "whole", *SHORT)
    _, lines = trace(strace, project, begin)
    for point in calls(lines, project / "r"):
        shutil.rmtree(project / "r")
        inject = f"inject={point.name}:signal=KILL:when={point.ordinal}"
        _, lines = trace(strace, project, begin, "-e", inject)
        assert "+++ killed by SIGKILL +++" in lines[-1], point
        fit(project, "r", *SHORT)
        assert fingerprint(project / "r") == fingerprint(project / "whole"), point


def begin_repeats(folder: Path) -> None:
    """Train folds, the second of which is to be killed at a call."""
    run_program(str(folder), repeats_arguments(folder), None)


def repeats_arguments(folder: Path) -> list[str]:
    words = ["fit", "folds.yaml", "--folds", "2", "--run-dir", str(folder / "r")]
    return [*words, "--quiet", *SHORT, *(["--resume"] if (folder / "r").exists() else [])]


@pytest.mark.parametrize("step", [48, pytest.param(1, marks=pytest.mark.slow)])
def test_kill_at_every_call_of_a_fold_keeps_the_finished_fold(project, strace, step):
    """By default at some of the calls with which a fold starts, before it has a config."""
    text = (project / "c.yaml").read_text()
    (project / "folds.yaml").write_text(text.replace("validation: 0.2, ", ""))
    ended(project, *repeats_arguments(project))
    whole = {name: fingerprint(project / "r" / name) for name in ("fold-1", "fold-2")}
    (project / "r").rename(project / "whole")
    _, lines = trace(strace, project, begin_repeats)
    second = str(project / "r/fold-2")
    points = [point for point in calls(lines, project / "r") if second in plain(point.line)]
    named = [point.name == "rename" and "config.yaml" in plain(point.line) for point in points]
    if step > 1:
        points = points[: named.index(True) + 1]
    for point in points[step // 2 :: step]:
        shutil.rmtree(project / "r")
        inject = f"inject={point.name}:signal=KILL:when={point.ordinal}"
        _, lines = trace(strace, project, begin_repeats, "-e", inject)
        assert "+++ killed by SIGKILL +++" in lines[-1], point
        epoch = (project / "r/fold-1/metrics.jsonl").read_text().splitlines()[0]
        ended(project, *repeats_arguments(project))
        assert (project / "r/fold-1/metrics.jsonl").read_text().startswith(epoch)  # its seconds too
        found = {name: fingerprint(project / "r" / name) for name in whole}
        assert found == whole, point


def predict(folder: Path) -> None:
    run_program(str(folder), ["predict", "test.tsv", "--run", "r"], None)


def begin_new(folder: Path) -> None:
    run_program(str(folder), ["fit", "c.yaml", "--run-dir", "new"], None)


def go_on(folder: Path) -> None:
    run_program(str(folder), fit_arguments(folder, "r"), None)


@pytest.mark.parametrize(
    "fault", ["read:error=EIO", pytest.param("openat:error=EMFILE", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("c.yaml", begin_new),
        ("train.tsv", begin_new),
        ("test.tsv", predict),
        ("r/best/model.safetensors", predict),
        ("r/config.yaml", go_on),
        ("r/environment.json", go_on),
    ],
)
def test_machine_that_fails_to_read_is_exit_3(begun, strace, name, task, fault):
    before = fingerprint(begun / "r")
    options = [word for each in (name, str(begun / name)) for word in ("-P", each)]
    options += ["-e", f"trace={fault.split(':')[0]}", "-e", f"inject={fault}"]
    code, lines = trace(strace, begun, task, *options)
    assert "(INJECTED)" in "".join(lines)
    (said,) = begun.glob("err-*")
    problems = [x for x in said.read_text().splitlines() if x.startswith("seqtrain: ")]
    assert (code, len(problems)) == (3, 1), problems
    assert name in problems[0]
    assert fingerprint(begun / "r") == before


def save_for_ever(folder: str) -> None:
    number = 0
    while True:
        number += 1
        save(Path(folder), number)


@pytest.mark.parametrize("count", [200, pytest.param(2_000, marks=pytest.mark.slow)])
def test_readers_see_whole_folders(disk, count):
    run = RunDirectory(disk / "r")
    run.path.mkdir()
    save(run.path, 0)
    writer = FORKS.Process(target=save_for_ever, args=(str(run.path),))
    writer.start()
    seen: list[int] = []
    try:
        while len(seen) < count or seen[-1] < count // 10:
            ((number, _),) = good(run.best)
            seen.append(number)
            assert good(run.last)
    finally:
        writer.kill()
        writer.join()
    assert seen == sorted(seen)


@pytest.mark.parametrize("count", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_of_two_fits_one_wins(project, whole, count):
    for turn in range(count):
        arguments = ["fit", "c.yaml", "--run-dir", f"r{turn}", "--quiet"]
        with started(project, *arguments) as first, started(project, *arguments) as second:
            codes = [first.end(), second.end()]
        winner, loser = (first, second) if codes[0] == 0 else (second, first)
        assert sorted(codes) == [0, 2], first.err + second.err
        in_use = re.search(r"in use by process (\d+);", loser.err)
        assert "isn't empty" in loser.err or (in_use and int(in_use[1]) == winner.process.pid)
        assert fingerprint(project / f"r{turn}") == whole
