"""Files of a run: written whole or not at all, checked when read, cleaned up after a kill."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from seqtrain.errors import CheckpointError, RunError
from seqtrain.files.folder import (
    VerifiedFolder,
    complete_folder,
    read_folder,
    remove_strays,
    write_folder,
)
from seqtrain.files.writing import write_file
from seqtrain.runs.run_directory import RunDirectory

OLD, NEW = {"a": b"old a", "b": b"old b"}, {"a": b"new a", "b": b"new b"}


def content(saved: VerifiedFolder) -> dict[str, bytes]:
    return {name: saved.read(name) for name in ("a", "b")}


def test_folder_is_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "best"
    write_folder(target, {**OLD, "gone": b"x"})
    write_folder(target, NEW)
    assert read_folder(target, content) == NEW
    assert {path.name for path in target.iterdir()} == {"a", "b", "manifest.json"}
    assert [path.name for path in tmp_path.iterdir()] == ["best"]


def test_previous_folder_is_kept_and_the_one_before_removed(tmp_path: Path) -> None:
    last, previous = tmp_path / "last", tmp_path / "previous"
    for number in range(4):
        write_folder(last, {**OLD, "a": str(number).encode()}, previous)
    assert [read_folder(folder, content)["a"] for folder in (last, previous)] == [b"3", b"2"]
    assert {path.name for path in tmp_path.iterdir()} == {"last", "previous"}


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_regular_file_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    write_folder(tmp_path / "best", OLD)
    (tmp_path / "best" / "a").unlink()
    make(tmp_path / "best" / "a")
    with pytest.raises(CheckpointError):
        read_folder(tmp_path / "best", content)


def test_larger_file_than_allowed_is_not_read(tmp_path: Path) -> None:
    write_folder(tmp_path / "best", OLD)
    with open(tmp_path / "best" / "a", "wb") as file:
        file.truncate(2**30)
    with pytest.raises(CheckpointError, match="at most"):
        read_folder(tmp_path / "best", content)


def test_every_byte_is_checked(tmp_path: Path) -> None:
    target = tmp_path / "best"
    write_folder(target, OLD)
    for place in range(len(OLD["a"])):
        damaged = bytearray(OLD["a"])
        damaged[place] ^= 4
        (target / "a").write_bytes(damaged)
        with pytest.raises(CheckpointError, match="damaged") as error:
            read_folder(target, content)
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 250


@pytest.mark.parametrize(
    "manifest", ["", "[]", "3", '{"sha256": 3}', '{"sha256": {}}', "[" * 10**5]
)
def test_foreign_manifest_is_refused(tmp_path: Path, manifest: str) -> None:
    write_folder(tmp_path / "best", OLD)
    (tmp_path / "best" / "manifest.json").write_text(manifest)
    with pytest.raises(CheckpointError):
        read_folder(tmp_path / "best", content)


def test_kill_between_the_two_renames_loses_nothing(tmp_path: Path) -> None:
    target = tmp_path / "best"
    write_folder(target, OLD)
    target.rename(tmp_path / ".best-old")
    (tmp_path / ".best-77").mkdir()
    assert complete_folder(target) != target
    assert read_folder(target, content) == OLD
    remove_strays(tmp_path, ["best"])
    assert [path.name for path in tmp_path.iterdir()] == ["best"]
    assert read_folder(target, content) == OLD


def test_strays_alone_are_removed(tmp_path: Path) -> None:
    write_folder(tmp_path / "best", OLD)
    (tmp_path / ".metrics.jsonl-12").write_text("half")
    (tmp_path / ".hidden").write_text("mine")
    (tmp_path / "notes-12").write_text("mine")
    shutil.copytree(tmp_path / "best", tmp_path / ".best-old")
    remove_strays(tmp_path, ["best"])
    assert {path.name for path in tmp_path.iterdir()} == {"best", ".hidden", "notes-12"}


def test_reader_sees_the_old_or_the_new_while_a_writer_is_at_work(tmp_path: Path) -> None:
    """The files are large, so that the folder is replaced while a reader stands between two."""
    target, stop = tmp_path / "best", threading.Event()
    versions = [{name: text * 200_000 for name, text in files.items()} for files in (OLD, NEW)]
    write_folder(target, versions[0])

    def write() -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            write_folder(target, versions[turn % 2])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(40):
            assert read_folder(target, content) in versions
    finally:
        stop.set()
        writer.join()


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let writing past this size fail with EFBIG, as a full disk does with ENOSPC."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, previous)


def test_failed_write_leaves_the_old_content_and_no_temporaries(tmp_path: Path) -> None:
    write_file(tmp_path / "file", b"old")
    write_folder(tmp_path / "best", OLD)
    kept = "what stood there before is untouched$"
    with file_size_limit(100):
        with pytest.raises(RunError, match=f"file: .*{kept}"):
            write_file(tmp_path / "file", b"x" * 1000)
        with pytest.raises(RunError, match=f"best: .*{kept}"):
            write_folder(tmp_path / "best", {"a": b"x", "b": b"x" * 1000})
        with pytest.raises(RunError, match="new: File too large"):
            write_file(tmp_path / "new", b"x" * 1000)
        with pytest.raises(RunError, match="last: File too large"):
            write_folder(tmp_path / "last", {"a": b"x" * 1000})
    assert (tmp_path / "file").read_bytes() == b"old"
    assert read_folder(tmp_path / "best", content) == OLD
    assert {path.name for path in tmp_path.iterdir()} == {"file", "best"}


def test_failed_append_leaves_whole_lines(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    length = run.append_metrics({"event": "step", "step": 1})
    with file_size_limit(length + 20), pytest.raises(RunError, match=r"metrics\.jsonl"):
        run.append_metrics({"event": "step", "step": 2, "note": "x" * 100})
    assert (tmp_path / "metrics.jsonl").stat().st_size == length
    assert run.append_metrics({"event": "step", "step": 2}) == 2 * length
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2]


def test_metrics_after_the_checkpoint_are_cut(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    length = run.append_metrics({"step": 1})
    run.append_metrics({"step": 2})
    run.cut_metrics(length)
    assert (tmp_path / "metrics.jsonl").read_text() == '{"step": 1}\n'
    with pytest.raises(CheckpointError, match="shortened"):
        run.cut_metrics(length + 1)


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"data": 3}'])
def test_environment_must_hold_digests(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "environment.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"environment\.json"):
        RunDirectory(tmp_path).environment()
