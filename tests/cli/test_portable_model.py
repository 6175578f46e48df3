"""A model folder predicts wherever it is copied, and is refused where it was damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.helpers.tiny import Cli


def test_model_folder_travels(trained: Path, tmp_path: Path, cli: Cli) -> None:
    """Nothing of the run or its data is needed beside the folder."""
    expected = cli("predict", trained / "test.tsv", "--run", trained / "run", "--format", "jsonl")
    shutil.copytree(trained / "run" / "best", tmp_path / "elsewhere")
    shutil.copy(trained / "test.tsv", tmp_path / "in.tsv")
    ended = cli(
        "predict", tmp_path / "in.tsv", "--run", tmp_path / "elsewhere", "--format", "jsonl"
    )
    assert ended.code == 0
    assert ended.out == expected.out
    assert str(trained) not in (trained / "run/best/model.json").read_text()


@pytest.mark.parametrize("run", [".", ""])
def test_model_folder_is_the_current_one(
    trained: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, run: str
) -> None:
    monkeypatch.chdir(trained / "run" / "best")
    assert cli("predict", "-", "--run", run, stdin="rise\n").code == 0
    monkeypatch.chdir(trained / "run" / "best" / "..")
    assert cli("eval", run, "--data", trained / "test.tsv").code == 0
    monkeypatch.chdir(trained)
    assert cli("predict", "-", "--run", run, stdin="rise\n").code == 2


def damaged(folder: Path, case: str) -> None:
    """Damage a model folder."""
    weights, model = folder / "model.safetensors", folder / "model.json"
    if case == "flipped bit":
        content = bytearray(weights.read_bytes())
        content[-3] ^= 1
        weights.write_bytes(content)
    elif case == "truncated":
        weights.write_bytes(weights.read_bytes()[:-20])
    elif case == "no weights":
        weights.unlink()
    elif case == "no manifest":
        (folder / "manifest.json").unlink()
    elif case == "manifest is a list":
        (folder / "manifest.json").write_text("[]")
    elif case == "pickle":
        weights.rename(folder / "model.pt")
    elif case == "not JSON":
        model.write_text("{")
    elif case == "empty":
        shutil.rmtree(folder)
        folder.mkdir()


CASES = [
    *("flipped bit", "truncated", "no weights", "no manifest", "manifest is a list"),
    *("pickle", "not JSON", "empty"),
]


@pytest.mark.parametrize("case", CASES)
def test_damaged_model_is_refused(trained: Path, tmp_path: Path, cli: Cli, case: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(trained / "run" / "best", folder)
    damaged(folder, case)
    ended = cli("predict", "-", "--run", folder, stdin="rise\n")
    assert ended.code == 2
    assert ended.out == ""
    assert len(ended.problems) == 1
    assert str(folder)[-40:] in ended.err  # a long path keeps its end
