"""The program run in this process, and tiny runs of each kind."""

import shutil
from pathlib import Path

import pytest

from tests.helpers.tiny import (
    CONFIG,
    fit,
    rows,
    series,
    write_jsonl,
    write_npz,
    write_text_project,
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory with a config and its data, and no run."""
    write_text_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a config, its data, and `run`: a text model. Read only."""
    folder = tmp_path_factory.mktemp("trained")
    write_text_project(folder)
    fit(folder, CONFIG)
    return folder


@pytest.fixture
def beside(trained: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The trained folder as current directory, as the run's config names its data relatively."""
    monkeypatch.chdir(trained)
    return trained


@pytest.fixture
def begun(project: Path, trained: Path) -> Path:
    """A current directory with a config, its data, and `r`: a run of it to do anything with."""
    shutil.copytree(trained / "run", project / "r")
    return project


@pytest.fixture(scope="session")
def trained_tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for symbols already split, in jsonl."""
    folder = tmp_path_factory.mktemp("tokens")
    write_jsonl(
        folder / "train.jsonl",
        [{"text": text.split(), "label": label} for text, label in rows(40, seed=1)],
    )
    data = "data: {train: train.jsonl, kind: tokens, sequence: text, label: label}"
    fit(folder, "\n".join([data, *CONFIG.splitlines()[1:]]))
    return folder


@pytest.fixture(scope="session")
def trained_features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for feature vectors, in npz."""
    folder = tmp_path_factory.mktemp("features")
    write_npz(folder / "train.npz", series(40, seed=3), [f"c{i % 2}" for i in range(40)])
    data = "data: {train: train.npz, kind: features}"
    fit(folder, "\n".join([data, *CONFIG.splitlines()[1:]]))
    return folder
