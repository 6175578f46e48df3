"""A disk that is full: a run is refused before it begins, or stops and can go on later."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from seqtrain.api.resume_point import newest_checkpoint
from seqtrain.runs.run_directory import RunDirectory
from tests.helpers.program import (
    fingerprint,
    fit,
    fit_arguments,
    fit_until_killed,
    signals_within,
    started,
)

SMALL = 2**20
PAGE = 4096
"""What a file takes at least on a tmpfs."""
STOPPED_AT = 11


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 1 MiB that a process of its own has mounted, in a namespace of its own."""
    mount = f'mount -t tmpfs -o size={SMALL} none "$0" && echo mounted && exec sleep 600'
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare; the test with a limit of a file's size stands in for this one")
    command = ["unshare", "-rm", "sh", "-c", mount, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stderr
        try:
            if holder.stdout.readline() != b"mounted\n":
                pytest.skip(f"no tmpfs for users here: {holder.stderr.read().decode().strip()}")
            yield Path(f"/proc/{holder.pid}/root{tmp_path}")
        finally:
            holder.kill()


@pytest.fixture
def stopped(project: Path) -> Path:
    """A run that was stopped within its second epoch, and one beside it that never was."""
    fit(project, "whole")
    prepare = signals_within("gradient", STOPPED_AT, (1, signal.SIGTERM))
    with started(project, *fit_arguments(project, "stopped"), prepare=prepare) as running:
        assert running.end() == 143, running.err
    assert saved_step(project / "stopped") == STOPPED_AT
    return project / "stopped"


def saved_step(run: Path) -> int:
    """Return the step of the last checkpoint, which is whole."""
    folder, checkpoint, skipped = newest_checkpoint(RunDirectory(run))
    assert (folder.name, skipped) == ("last", [])
    step: int = checkpoint.progress["updates"]
    return step


def check_refused(run: Path, project: Path, prepare: Callable[[], None] | None, why: str) -> int:
    """Going on fails with one line, no temporary file stays; return the last checkpoint's step."""
    arguments = fit_arguments(project, str(run), "--no-cache")
    with started(project, *arguments, prepare=prepare) as running:
        assert running.end() == 3, running.err
    (line,) = (line for line in running.err.splitlines() if line.startswith("seqtrain: "))
    assert why in line
    assert not [path for path in run.iterdir() if path.name.startswith(".")]
    return saved_step(run)


def test_no_space_stops_a_run_that_goes_on_once_there_is(
    project: Path, stopped: Path, small_disk: Path, figure: Callable[[str], None]
) -> None:
    whole, run, filler = fingerprint(project / "whole"), small_disk / "r", small_disk / "filler"
    files = len(list((stopped / "last").iterdir()))
    for pages in range(files):
        shutil.copytree(stopped, run)
        filler.write_bytes(bytes(shutil.disk_usage(small_disk).free - pages * PAGE))
        assert check_refused(run, project, None, os.strerror(28)) == STOPPED_AT
        filler.unlink()
        fit(project, str(run), "--no-cache")
        assert fingerprint(run) == whole
        shutil.rmtree(run)
    figure(
        f"1 MiB tmpfs, full at each of a save's {files} files: the old checkpoint whole, 0 "
        "differences to the run never stopped once there is space"
    )


def test_a_file_that_may_not_grow_stops_a_run_that_goes_on_later(
    project: Path, stopped: Path, figure: Callable[[str], None]
) -> None:
    whole, run, steps = fingerprint(project / "whole"), project / "r", []
    metrics = (stopped / "metrics.jsonl").stat().st_size
    sizes = [path.stat().st_size for path in (stopped / "last").iterdir()]
    limits = [size - 1 for size in sizes if size > metrics] + [metrics + 1]
    for limit in limits:
        shutil.copytree(stopped, run)
        prepare = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit))
        steps.append(check_refused(run, project, prepare, os.strerror(27)))
        fit(project, str(run), "--no-cache")
        assert fingerprint(run) == whole
        shutil.rmtree(run)
    assert steps == [STOPPED_AT] * len(limits)
    figure(f"EFBIG: {len(limits)} limits of a file's size: the old checkpoint whole, resume exact")


def test_a_disk_too_small_for_a_run_is_refused(project: Path, small_disk: Path) -> None:
    run = small_disk / "runs" / "r"
    with started(project, *fit_arguments(project, str(run))) as running:
        assert running.end() == 3, running.err
    found = re.search(r"r: ([\d,]+) bytes are free on its disk; expected ([\d,]+) for", running.err)
    assert found, running.err
    free, needed = (int(number.replace(",", "")) for number in found.groups())
    assert free <= SMALL < needed
    assert list(small_disk.iterdir()) == []


def test_what_a_run_asks_for_holds_what_it_saves(project: Path, small_disk: Path) -> None:
    """States of 5,000 groups are most of it; the checkpoint after the last step holds them all."""
    lines = [f"rise\t{'up' if i % 2 else 'down'}\t{i}\n" for i in range(5000)]
    (project / "groups.tsv").write_text("text\tlabel\tgroup\n" + "".join(lines))
    keys = {
        "data.train": "groups.tsv", "data.validation": "null", "data.test": "null",
        "data.group": "group",
        "model.initial_state": "carried", "model.hidden_size": "64", "training.max_epochs": "1",
        "batching.batch_size": "5000", "training.checkpoint_every": "{steps: 1}",
    }  # fmt: skip
    sets = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
    with started(project, *fit_arguments(project, str(small_disk / "r"), *sets)) as running:
        assert running.end() == 3, running.err
    needed = int(re.findall(r"expected ([\d,]+) for", running.err)[0].replace(",", ""))
    fit_until_killed(project, "r", 3, *sets)
    saved = sum(path.stat().st_size for path in (project / "r" / "last").iterdir())
    assert saved > 5000 * 64 * 4
    assert needed >= 5 * saved
