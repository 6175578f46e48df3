"""Files of a run: written whole or not at all, checked when read, cleaned up after a kill."""

import os
import shutil
from pathlib import Path

import pytest

from seqtrain.errors import CheckpointError, RunError
from seqtrain.files.writing import VerifiedFolder, read_folder, remove_strays, write_folder
from seqtrain.runs.run_directory import RunDirectory
from tests.helpers.tiny import file_size_limit

OLD, NEW = {"a": b"old a", "b": b"old b"}, {"a": b"new a", "b": b"new b"}
LINES = b'{"event": "step", "step": 1}\n{"event": "epoch", "epoch": 1}\n'


def content(saved: VerifiedFolder) -> dict[str, bytes]:
    return {name: saved.read(name) for name in ("a", "b")}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file_is_refused_without_waiting(tmp_path, make):
    write_folder(tmp_path / "best", OLD)
    (tmp_path / "best" / "a").unlink()
    make(tmp_path / "best" / "a")
    with pytest.raises(CheckpointError, match="expected a regular file"):
        read_folder(tmp_path / "best", content)


def test_every_byte_and_the_size_are_checked(tmp_path):
    target = tmp_path / "best"
    write_folder(target, OLD)
    for index in range(len(OLD["a"])):
        damaged = bytearray(OLD["a"])
        damaged[index] ^= 4
        (target / "a").write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"damaged: its SHA-256 is .*, the manifest says"):
            read_folder(target, content)
    with open(target / "a", "wb") as file:
        file.truncate(2**30)
    with pytest.raises(CheckpointError, match="1,073,741,824 bytes"):
        read_folder(target, content)


@pytest.mark.parametrize(
    "manifest", ["", "[]", "3", '{"sha256": 3}', '{"sha256": {}}', "[" * 10**5]
)
def test_foreign_manifest_is_refused(tmp_path, manifest):
    write_folder(tmp_path / "best", OLD)
    (tmp_path / "best" / "manifest.json").write_text(manifest)
    with pytest.raises(CheckpointError):
        read_folder(tmp_path / "best", content)


def test_strays_alone_are_removed(tmp_path):
    write_folder(tmp_path / "best", OLD)
    (tmp_path / ".metrics.jsonl-12").write_text("half")
    (tmp_path / ".hidden").write_text("mine")
    (tmp_path / "notes-12").write_text("mine")
    (tmp_path / ".link-3").symlink_to(".hidden")
    shutil.copytree(tmp_path / "best", tmp_path / ".best-old")
    remove_strays(tmp_path, ["best"])
    assert names(tmp_path) == {"best", ".hidden", "notes-12"}


def test_metrics_are_whole_lines_and_cut_at_a_checkpoint(tmp_path):
    run = RunDirectory(tmp_path)
    length = run.append_metrics({"event": "step", "step": 1})
    with file_size_limit(length + 20), pytest.raises(RunError, match=r"metrics\.jsonl"):
        run.append_metrics({"event": "step", "step": 2, "note": "x" * 100})
    assert (tmp_path / "metrics.jsonl").stat().st_size == length
    assert run.append_metrics({"event": "step", "step": 2}) == 2 * length
    assert [line["step"] for line in run.metrics()] == [1, 2]
    run.cut_metrics(length, only_check=True)
    assert len(run.metrics()) == 2
    run.cut_metrics(length)
    assert [line["step"] for line in run.metrics()] == [1]
    with pytest.raises(CheckpointError, match="at least 30"):
        run.cut_metrics(length + 1)


@pytest.mark.parametrize("damage", [b"\xff\n", b"[1]\n", b"{}\n", b'{"event": NaN}\n', b"\n"])
def test_damaged_metrics_are_refused_by_line(tmp_path, damage):
    (tmp_path / "metrics.jsonl").write_bytes(LINES + damage)
    with pytest.raises(CheckpointError, match=r"metrics\.jsonl:3: "):
        RunDirectory(tmp_path).metrics()


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"data": 3}'])
def test_environment_must_hold_digests(tmp_path, content):
    if content is not None:
        (tmp_path / "environment.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"environment\.json"):
        RunDirectory(tmp_path).environment()


def test_file_in_place_of_a_run_holds_nothing(tmp_path: Path) -> None:
    """`diff my.yaml my.yaml` then says that there is no model in it, not "Not a directory"."""
    file = tmp_path / "my.yaml"
    file.write_text("data: {}\n", encoding="utf-8")
    assert not RunDirectory(file).holds("config.yaml")
