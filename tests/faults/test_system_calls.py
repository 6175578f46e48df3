"""A fault at every system call of a save that changes something: nothing that was good is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from seqtrain.runs.run_directory import RunDirectory
from tests.helpers.program import (
    fingerprint,
    fit,
    fit_arguments,
    fit_until_killed,
    run_program,
    write_project,
)
from tests.helpers.tracing import (
    NEW,
    OLD,
    calls,
    check_recovery,
    copied,
    prepare,
    save_new,
    trace,
)

SYNCS = ("write", "fsync")
SHORT = ("--set", "training.max_epochs=1", "--set", "training.checkpoint_every={steps: 5}")


@pytest.fixture
def template(disk: Path) -> Path:
    prepare(disk / "template")
    return disk / "template"


def test_kill_at_every_call_leaves_a_good_checkpoint(
    template: Path, strace: str, figure: Callable[[str], None]
) -> None:
    code, lines = trace(strace, copied(template, "run"), save_new)
    points = calls(lines, template.with_name("run"))
    assert code == 0
    assert {"mkdir", "write", "fsync", "rename", "unlinkat"} <= {point.name for point in points}
    for point in points:
        run = copied(template, "run")
        inject = f"inject={point.name}:signal=KILL:when={point.ordinal}"
        _, lines = trace(strace, run, save_new, "-e", inject)
        assert "+++ killed by SIGKILL +++" in lines[-1], point
        assert len(calls(lines, run)) == points.index(point) + 1, point
        check_recovery(run, {OLD, NEW}, least=1)
    figure(
        f"SIGKILL at every one of a save's {len(points)} system calls that change something: "
        "0 unusable states"
    )


@pytest.mark.parametrize(
    "errors",
    [["ENOSPC"], pytest.param(["ENOSPC", "EIO", "EDQUOT", "EROFS"], marks=pytest.mark.slow)],
)
def test_error_at_every_write_and_flush_keeps_what_was_saved(
    template: Path, strace: str, figure: Callable[[str], None], errors: list[str]
) -> None:
    _, lines = trace(strace, copied(template, "run"), save_new)
    points = [p for p in calls(lines, template.with_name("run")) if p.name in SYNCS]
    for error in errors:
        for point in points:
            run = copied(template, "run")
            inject = f"inject={point.name}:error={error}:when={point.ordinal}"
            code, lines = trace(strace, run, save_new, "-e", inject)
            assert code == 3, (point, error)
            assert sum("(INJECTED)" in line for line in lines) == 1
            assert not [path for path in run.iterdir() if path.name.startswith(".")]
            check_recovery(run, {OLD, NEW}, least=1)
    figure(
        f"{', '.join(errors)} at every one of a save's {len(points)} writes and flushes: "
        "an error of one line each, a good checkpoint after each"
    )


def test_what_cannot_be_removed_stays_and_goes_later(
    template: Path, strace: str, project: Path
) -> None:
    """As where one of its files is immutable."""
    refuse = ("-e", "inject=unlinkat:error=EPERM")
    run = copied(template, "run")
    code, _ = trace(strace, run, save_new, *refuse)
    assert code == 0
    assert sum(path.name.startswith(".") for path in run.iterdir()) == 2
    check_recovery(run, {NEW}, least=2)
    code, _ = trace(strace, project, begin_short_run, *refuse)
    assert code == 0
    (told,) = project.glob("err-*")
    warnings = [line for line in told.read_text().splitlines() if "can't be removed" in line]
    left = {path.name for path in (project / "r").iterdir() if path.name.startswith(".")}
    left = left - {".lock"} | {"previous"}
    assert len(left) > 1
    assert len(warnings) == len(left)
    assert all(any(name in warning for warning in warnings) for name in left)
    assert "can't be removed" not in fit(project, "r", *SHORT).err
    assert not left & {path.name for path in (project / "r").iterdir()}


def remove_previous(folder: Path) -> None:
    RunDirectory(folder).remove_previous()


def test_kill_while_the_checkpoint_before_is_removed_harms_no_other(
    template: Path, strace: str
) -> None:
    """As at the end of a run."""
    _, lines = trace(strace, copied(template, "run"), remove_previous)
    points = calls(lines, template.with_name("run"))
    assert [point.name for point in points] == [*["unlinkat"] * 3, "rmdir"]
    for point in points:
        run = copied(template, "run")
        inject = f"inject={point.name}:signal=KILL:when={point.ordinal}"
        trace(strace, run, remove_previous, "-e", inject)
        check_recovery(run, {OLD}, least=1)


def begin_short_run(folder: Path) -> None:
    """The program itself: three saves and more, in a second or so under strace.

    The path is whole, for that is how `calls` knows the run's; what the cache holds may change.
    """
    arguments = fit_arguments(folder, str(folder / "r"), *SHORT, "--no-cache")
    run_program(str(folder), arguments, None)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a finished run."""
    folder = tmp_path_factory.mktemp("finished")
    write_project(folder)
    fit(folder, "r")
    return folder


def predict(folder: Path) -> None:
    run_program(str(folder), ["predict", "test.tsv", "--run", "r"], None)


def begin_uncached(folder: Path) -> None:
    run_program(str(folder), ["fit", "c.yaml", "--run-dir", "new", "--no-cache"], None)


def go_on(folder: Path) -> None:
    run_program(str(folder), fit_arguments(folder, "r"), None)


@pytest.mark.parametrize("fault", ["read:error=EIO", "openat:error=EMFILE", "openat:error=ENFILE"])
@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("c.yaml", begin_uncached),
        ("train.tsv", begin_uncached),
        ("test.tsv", predict),
        ("r/best/model.safetensors", predict),
        ("r/best/manifest.json", go_on),
        ("r/environment.json", go_on),
    ],
)
def test_machine_that_fails_to_read_is_exit_3(
    finished: Path, disk: Path, strace: str, name: str, task: Callable[[Path], None], fault: str
) -> None:
    project = shutil.copytree(finished, disk / "p")
    before = fingerprint(project / "r")
    call = fault.split(":")[0]
    path = Path(name)
    folder = path.parent if path.parent.name == "best" else path
    paths = name, str(project / name), path.name if path == folder else str(folder)
    options = [word for each in paths for word in ("-P", each)]
    options += ["-e", f"trace={call}", "-e", f"inject={fault}"]
    code, lines = trace(strace, project, task, *options)
    assert "(INJECTED)" in "".join(lines)
    (told,) = project.glob("err-*")
    problems = [x for x in told.read_text().splitlines() if x.startswith("seqtrain: ")]
    assert (code, len(problems)) == (3, 1), problems
    assert str(folder) in problems[0]
    assert fingerprint(project / "r") == before


def test_checkpoint_that_the_machine_fails_to_read_is_skipped(project: Path, strace: str) -> None:
    fit(project, "whole")
    fit_until_killed(project, "r", 6)
    refuse = ("-e", "trace=openat", "-e", "inject=openat:error=EIO:when=1")
    code, _ = trace(strace, project, go_on, "-P", "r/last/model.json", *refuse)
    assert code == 0
    (told,) = project.glob("err-*")
    assert "going on from r/previous" in told.read_text()
    told.unlink()
    assert fingerprint(project / "r") == fingerprint(project / "whole")


@pytest.mark.slow
def test_kill_at_every_call_of_a_whole_run(
    project: Path, strace: str, figure: Callable[[str], None]
) -> None:
    fit(project, "whole", *SHORT)
    whole = fingerprint(project / "whole")
    _, lines = trace(strace, project, begin_short_run)
    points = calls(lines, project / "r")
    assert {"mkdirat", "write", "fsync", "renameat", "renameat2"} <= {
        point.name for point in points
    }
    for point in points:
        shutil.rmtree(project / "r")
        inject = f"inject={point.name}:signal=KILL:when={point.ordinal}"
        _, lines = trace(strace, project, begin_short_run, "-e", inject)
        assert "+++ killed by SIGKILL +++" in lines[-1], (point, calls(lines, project / "r")[-9:])
        fit(project, "r", *SHORT)
        assert fingerprint(project / "r") == whole, point
    figure(
        f"SIGKILL at every one of a whole run's {len(points)} system calls that change something, "
        "then --resume: 0 differences to the run never stopped"
    )
