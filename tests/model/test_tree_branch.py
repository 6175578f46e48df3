"""The branch of boosted trees: through every command, in every batch, and from crafted folders."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

import seqtrain
from tests.helpers.tiny import fit, run_in


def write_table(path: Path, ids: int, seed: int) -> None:
    """Write a table whose class is a threshold on the largest value of one column."""
    draw = np.random.default_rng(seed)
    lines = ["id,time,event,value,label"]
    for number in range(ids):
        values = draw.normal(size=draw.integers(2, 9)).round(3)
        label = "high" if values.max() > 1 else "low"
        for time, value in enumerate(values):
            lines.append(f"{path.stem}{number},{time},{draw.choice(list('abc'))},{value},{label}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("trees")
    write_table(folder / "train.csv", 200, 0)
    write_table(folder / "test.csv", 80, 1)
    config = {
        "data": {
            "train": "train.csv",
            "test": "test.csv",
            "validation": 0.2,
            "id": "id",
            "order": "time",
            "label": "label",
            "steps": {"event": "token", "value": "number"},
        },
        "model": {"trees": True, "hidden_size": 8, "embedding_dim": 4},
        "training": {"max_epochs": 2},
    }
    fit(folder, json.dumps(config))
    return folder


@pytest.fixture(autouse=True)
def _in_folder(trained, monkeypatch):
    monkeypatch.chdir(trained)


def test_an_explanation_names_the_value_that_decided():
    """The labels are exchanged, so that every right prediction is listed as an error."""
    lines = [line.rsplit(",", 1) for line in Path("test.csv").read_text().splitlines()]
    other = {"high": "low", "low": "high", "label": "label"}
    Path("swapped.csv").write_text("".join(f"{row},{other[label]}\n" for row, label in lines))
    words = ("--data", "swapped.csv", "--explain", "--json", "--top", "80")
    found = json.loads(run_in(Path(), "errors", "run", *words).out)["errors"]
    high = [each["weights"] for each in found if each["predicted"] == "high"]
    decided = 0
    for weights in high:
        values = [(name.partition("value=")[2], weight) for name, weight in weights]
        numbers = [(float(value), weight) for value, weight in values if value]
        decided += max(numbers)[0] == max(numbers, key=lambda pair: pair[1])[0]
    assert decided >= 0.8 * len(high) > 5


def test_three_classes_without_a_validation_split(tmp_path):
    rows = [line.split(",") for line in Path("train.csv").read_text().splitlines()]
    for row in rows[1:]:
        number = int(row[0].removeprefix("train"))
        row[-1] = "middle" if row[-1] == "low" and number % 3 else row[-1]
    Path("three.csv").write_text("".join(",".join(row) + "\n" for row in rows))
    words = ("--set", "data.train=three.csv", "--set", "data.validation=null")
    run_in(Path(), "fit", "c.yaml", "--run-dir", str(tmp_path / "three"), *words)
    found = seqtrain.evaluate(tmp_path / "three", data="test.csv").scores
    assert found.labels == ["high", "low", "middle"]
    assert found.per_class["high"]["recall"] >= 0.9


def test_a_crafted_column_number_reads_nothing_else():
    """A model folder may come from anyone: it may name a column that isn't there."""
    shutil.copytree("run/best", "crafted")
    path = Path("crafted/model.safetensors")
    weights = safetensors.torch.load_file(path)
    weights["trees.column"] = torch.full_like(weights["trees.column"], 2**40)
    safetensors.torch.save_file(weights, path)
    manifest = Path("crafted/manifest.json")
    before = hashlib.sha256(Path("run/best/model.safetensors").read_bytes()).hexdigest()
    after = hashlib.sha256(path.read_bytes()).hexdigest()
    assert before in manifest.read_text()
    manifest.write_text(manifest.read_text().replace(before, after))
    assert len([*seqtrain.predict("test.csv", "crafted")]) == 80
