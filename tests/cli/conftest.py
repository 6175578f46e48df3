"""The program run in this process, and tiny runs of each kind."""

from pathlib import Path

import pytest

from tests.helpers.tiny import CONFIG, fit, rows, series, write_jsonl, write_npz


@pytest.fixture(scope="session")
def trained_tokens(tmp_path_factory) -> Path:
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
def trained_features(tmp_path_factory) -> Path:
    """The same for feature vectors, in npz."""
    folder = tmp_path_factory.mktemp("features")
    write_npz(folder / "train.npz", series(40, seed=3), [f"c{i % 2}" for i in range(40)])
    data = "data: {train: train.npz, kind: features}"
    fit(folder, "\n".join([data, *CONFIG.splitlines()[1:]]))
    return folder
