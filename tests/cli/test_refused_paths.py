"""Paths that the system refuses are the user's to mend: exit code 2 and one line, never a bug."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.tiny import Cli, write_text_project

NOBODY = 65534
PATHS = {
    "config": ("config", "closed/c.yaml"),
    "train": ("fit", "c.yaml", "--set", "data.train=closed/train.tsv"),
    "folder of texts": ("fit", "c.yaml", "--set", "data.train=closed", "--set", "data.format=txt"),
    "run directory": ("fit", "c.yaml", "--run-dir", "closed/run"),
    "output": ("predict", "train.tsv", "--output", "closed/new.tsv"),
    "chart": ("compare", "c.yaml", "--chart", "closed/new.svg"),
    "evaluated run": ("eval", "closed/run"),
    "link to itself": ("compare", "c.yaml", "--chart", "loop/new.svg"),
    "long name": ("compare", "c.yaml", "--chart", f"{'x' * 300}.svg"),
}


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current directory that any user may read, with a folder in it that nobody may open."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        write_text_project(folder)
        (folder / "closed").mkdir()
        write_text_project(folder / "closed")
        (folder / "loop").symlink_to("loop")
        monkeypatch.chdir(folder)
        yield folder


@pytest.mark.parametrize("case", PATHS)
def test_a_folder_without_permission(cli: Cli, shared: Path, case: str) -> None:
    # so that all is imported that the user who may read nothing needs
    cli(*(argument.replace("closed", "absent") for argument in PATHS[case]))
    (shared / "closed").chmod(0)
    root = os.geteuid() == 0
    try:
        if root:
            os.seteuid(NOBODY)
        ended = cli(*PATHS[case])
    finally:
        if root:
            os.seteuid(0)
        (shared / "closed").chmod(0o755)
    assert ended.code == 2
    assert len(ended.problems) == 1
    assert "closed" in ended.err or case in ("link to itself", "long name")


@pytest.mark.parametrize(
    "arguments",
    [("fit", "c.yaml"), ("eval",), ("predict", "t.tsv"), ("config", "c.yaml"), ("check",)],
)
def test_a_deleted_current_directory_is_said(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    ended = cli(*arguments)
    monkeypatch.chdir(tmp_path)
    assert ended.code == 2
    assert ended.problems == [
        "seqtrain: the current directory was deleted; change to one that exists"
    ]
