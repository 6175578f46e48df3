"""Full disks: a run stops in a line and can be resumed later."""

import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.helpers.program import UPDATE, ended, fit, signals_within
from tests.helpers.tiny import fingerprint

SMALL = 2**20
PAGE = 4096
"""What a file takes at least on a tmpfs."""
STOPPED_AT = 11
"""Updates, within the second epoch."""


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A tmpfs of 1 MiB, mounted by another process in its namespace."""
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
def stopped(project) -> Path:
    """A run that was stopped within its second epoch."""
    prepare = signals_within(UPDATE, STOPPED_AT, (1, signal.SIGTERM))
    fit(project, "stopped", prepare=prepare, code=143)
    return project / "stopped"


def check_goes_on_later(
    project: Path, run: Path, prepare: Callable[[], None] | None, why: int, make_room: Path | None
) -> None:
    """Resuming fails with one line and loses nothing; with free space it goes on."""
    running = fit(project, str(run), prepare=prepare, code=3)
    (line,) = (line for line in running.err.splitlines() if line.startswith("seqtrain: "))
    assert os.strerror(why) in line
    assert not [path for path in run.iterdir() if path.name.startswith(".")]
    state = (run / "last" / "training_state.json").read_text()
    assert f'"updates": {STOPPED_AT},' in state
    if make_room is not None:
        make_room.unlink()
    fit(project, str(run))


def test_no_space_stops_a_run_that_goes_on_once_there_is(stopped, whole, small_disk):
    filler = small_disk / "filler"
    for pages in range(0, len(list((stopped / "last").iterdir())), 3):
        run = shutil.copytree(stopped, small_disk / "r")
        filler.write_bytes(bytes(shutil.disk_usage(small_disk).free - pages * PAGE))
        check_goes_on_later(stopped.parent, run, None, 28, filler)
        assert fingerprint(run) == whole
        shutil.rmtree(run)


def test_a_file_that_may_not_grow_stops_a_run_that_goes_on_later(stopped, whole):
    metrics = (stopped / "metrics.jsonl").stat().st_size
    sizes = [path.stat().st_size for path in (stopped / "last").iterdir()]
    for limit in (max(sizes) - 1, metrics + 1):
        run = shutil.copytree(stopped, stopped.parent / "r")
        prepare = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit))
        check_goes_on_later(stopped.parent, run, prepare, 27, None)
        assert fingerprint(run) == whole
        shutil.rmtree(run)


def test_a_disk_too_small_for_a_run_ends_it_in_a_line_and_it_starts_again(
    project, whole, small_disk
):
    filler, run = small_disk / "filler", small_disk / "r"
    filler.write_bytes(bytes(shutil.disk_usage(small_disk).free - 2 * PAGE))
    running = fit(project, str(run), code=3)
    (problem,) = running.err.splitlines()
    assert "No space left on device" in problem
    filler.unlink()
    ended(project, "fit", "c.yaml", "--run-dir", str(run), "--quiet")
    assert fingerprint(run) == whole
