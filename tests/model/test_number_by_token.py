"""Numbers whose meaning depends on a token of their step, through every command."""

import json
from pathlib import Path

import numpy as np
import pytest
from pydantic import TypeAdapter

import seqtrain
from seqtrain.config import load_config
from seqtrain.errors import ConfigError
from seqtrain.sequences.columns.scaling import Scale
from seqtrain.sequences.columns.tables import NumberColumn
from seqtrain.sequences.dataset import prepare
from tests.helpers.tiny import fit, run_in

MEANS = {"pulse": 80.0, "weight": 7000.0, "fever": 37.0}


def write_table(path: Path, ids: int, seed: int) -> None:
    """Write measurements whose class is a high fever, next to much larger numbers."""
    draw = np.random.default_rng(seed)
    lines = ["id,time,what,value,label"]
    for number in range(ids):
        is_ill = draw.random() < 0.5
        for time, what in enumerate(draw.choice([*MEANS], 8)):
            value = draw.normal(MEANS[what] + 3 * (is_ill and what == "fever"), 1)
            label = "ill" if is_ill else "well"
            lines.append(f"{path.stem}{number},{time},{what},{value:.2f},{label}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("by")
    write_table(folder / "train.csv", 200, 0)
    write_table(folder / "test.csv", 100, 1)
    steps = {"what": "token", "value": {"number": True, "by": "what"}}
    columns = {"id": "id", "order": "time", "label": "label", "steps": steps, "number_bins": 4}
    files = {"train": "train.csv", "test": "test.csv", "validation": 0.2}
    config = {
        "data": files | columns,
        "model": {"trees": True, "hidden_size": 8, "embedding_dim": 8},
        "training": {"max_epochs": 2},
    }
    fit(folder, json.dumps(config))
    return folder


@pytest.fixture(autouse=True)
def _in_folder(trained, monkeypatch):
    monkeypatch.chdir(trained)


def test_numbers_are_scaled_within_their_token():
    data = prepare(load_config("c.yaml"))
    steps = data.splits["train"].values
    for token in range(2, 5):
        own = steps[steps[:, 0] == token, 1]
        assert abs(own.mean()) < 1e-4
        assert abs(own.std() - 1) < 1e-4


def test_an_unknown_token_has_the_scale_of_all_numbers():
    column = NumberColumn("value", by="what")
    numbers = np.array([1.0, 2.0, 3.0, 7.0, np.nan, 9.0], np.float32)
    ids = np.array([2, 2, 2, 3, 3, 4], np.float32)
    fitted = column.fit({"value": numbers, "what": ids}, {"what": 5}, None)
    found, absent = fitted.standardized({"value": numbers, "what": np.array([2, 1, 4, 3, 0, 1])})
    mean, std = np.nanmean(numbers), np.nanstd(numbers)
    expected = [(1 - 2) / np.std([1, 2, 3]), *(numbers[1:4] - mean) / std, 0, (9 - mean) / std]
    assert found[:, 0] == pytest.approx(expected, abs=1e-5)
    assert absent[:, 0].tolist() == [False, False, False, False, True, False]
    saved = TypeAdapter(NumberColumn)
    assert saved.validate_json(saved.dump_json(fitted)) == fitted


def test_a_constant_token_has_zeros():
    scale = Scale.fit_groups(np.full(7, 0.1, np.float32), np.ones(7, int), Scale((0,), (1,)), 2)
    found, _ = scale.apply(np.full((7, 1), 0.1, np.float32), np.ones(7, int))
    assert not found.any()


def test_the_class_is_learned_and_every_batch_and_the_export_agree(tmp_path):
    assert seqtrain.evaluate("run").scores.accuracy >= 0.9
    assert seqtrain.check("run").passed
    run_in(Path(), "export", "run", str(tmp_path / "exported"))  # compares golden rows


@pytest.mark.parametrize(
    "steps",
    [
        {"value": {"number": True, "by": "what"}},
        {"value": {"number": True, "by": "value"}, "what": "token"},
        {"value": {"number": True}, "what": "token"},
        {"value": {"number": False, "by": "what"}, "what": "token"},
    ],
)
def test_a_number_depends_on_a_token_column(steps):
    with pytest.raises(ConfigError, match=r"data\.steps"):
        load_config("c.yaml", [f"data.steps={json.dumps(steps)}"])


def test_init_finds_the_token_on_which_a_number_depends():
    config = seqtrain.init("train.csv", label="label", id="id")
    assert config.data.steps["value"] == {"number": True, "by": "what"}
