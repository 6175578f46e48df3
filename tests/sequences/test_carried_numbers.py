"""data.missing: last: the last number seen, an indicator, and the time since then."""

import csv
import json
import math
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seqtrain
from seqtrain.config import config_from_mapping
from seqtrain.errors import ConfigError
from seqtrain.sequences.dataset import prepare
from tests.helpers.tiny import fit, run_in

COLUMNS = ("what", "a", "b")
Step = dict[str, Any]


def draw_tables(seed: int, ids: int = 12) -> dict[str, list[Step]]:
    """Return steps of sequences in the order of their times, with None for a missing number."""
    draw = np.random.default_rng(seed)
    tables: dict[str, list[Step]] = {}
    for number in range(ids):
        times = np.sort(draw.integers(0, 9, draw.integers(1, 9)))  # equal times occur
        label = "up" if draw.random() < 0.5 else "down"
        steps = []
        for time in times.tolist():
            step: Step = {"id": f"i{number}", "time": time, "label": label}
            step["what"] = str(draw.choice(["x", "y", "z"]))
            for name in ("a", "b"):
                is_missing = draw.random() < 0.6
                step[name] = None if is_missing else round(float(draw.normal(3, 50)), 3)
            steps.append(step)
        tables[f"i{number}"] = steps
    tables["i0"][0]["a"] = tables["i1"][0]["b"] = 1.0
    return tables


def write(path: Path, tables: dict[str, list[Step]]) -> None:
    """Write the steps by time: sequences are interleaved, and equal times keep their order."""
    rows = sorted((step for steps in tables.values() for step in steps), key=itemgetter("time"))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "time", *COLUMNS, "label"])
        writer.writeheader()
        writer.writerows(rows)


def config_of(path: Path, *, by_time: bool, **data: Any) -> dict[str, Any]:
    steps = {"what": "token", "a": "number", "b": "number"}
    steps |= {"gap": "order"} if by_time else {}
    own = {"id": "id", "order": "time", "label": "label", "steps": steps, "missing": "last"}
    return {"data": {"train": str(path), **own, **data}}


def expected_rows(tables: dict[str, list[Step]], *, by_time: bool) -> dict[str, list[list[float]]]:
    """Return numbers, indicators and times of each step, computed step by step."""
    names = ["a", "b", "gap"] if by_time else ["a", "b"]
    seen_numbers: dict[str, list[float]] = {name: [] for name in names}
    logs: dict[str, list[float]] = {name: [] for name in names}
    found: dict[str, list[dict[str, tuple[float | None, bool, float]]]] = {}
    for key, steps in tables.items():
        last: dict[str, tuple[float | None, float]] = {}
        own = found.setdefault(key, [])
        for number, step in enumerate(steps):
            now = step["time"] - steps[0]["time"] if by_time else number
            gap = step["time"] - steps[max(0, number - 1)]["time"]
            cells: dict[str, tuple[float | None, bool, float]] = {}
            for name in names:
                cell = gap if name == "gap" else step[name]
                if cell is not None:
                    last[name] = cell, now
                    seen_numbers[name].append(cell)
                number_seen, when = last.get(name, (None, 0))
                since = math.log(1 + now - when)
                logs[name].append(since)
                cells[name] = number_seen, cell is None, since
            own.append(cells)
    rows: dict[str, list[list[float]]] = {}
    for key, sequence in found.items():
        rows[key] = []
        for cells in sequence:
            numbers = [
                0.0 if (x := cells[name][0]) is None else scaled(x, seen_numbers[name])
                for name in names
            ]
            flags = [float(cells[name][1]) for name in names]
            rows[key].append(
                [*numbers, *flags, *(scaled(cells[name][2], logs[name]) for name in names)]
            )
    return rows


def scaled(number: float, among: list[float]) -> float:
    spread = float(np.std(among)) if min(among) < max(among) else 1.0
    return (number - float(np.mean(among))) / spread


@pytest.mark.parametrize("by_time", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_vectors_are_those_of_a_computation_step_by_step(seed, by_time, tmp_path):
    tables = draw_tables(seed)
    write(tmp_path / "train.csv", tables)
    config = config_from_mapping(config_of(tmp_path / "train.csv", by_time=by_time))
    data = prepare(config)
    store, expected = data.splits["train"], expected_rows(tables, by_time=by_time)
    with (tmp_path / "train.csv").open() as file:
        ids = [row["id"] for row in csv.DictReader(file)]
    for number, key in enumerate(dict.fromkeys(ids)):
        vectors = store.values[store.offsets[number] : store.offsets[number + 1]]
        assert vectors[:, 1:] == pytest.approx(np.array(expected[key]), abs=1e-4)
    assert store.values.shape[1] == data.preprocessing.input_size


@pytest.mark.parametrize("overlong", ["head", "tail"])
def test_a_cut_sequence_keeps_what_was_seen_before(overlong, tmp_path):
    rows = [
        {"id": name, "time": t, "what": "x", "a": 7 if t == 0 else None, "b": t, "label": name}
        for name in ("i", "j")
        for t in range(5)
    ]
    write(tmp_path / "train.csv", {"i": rows})
    given = config_of(tmp_path / "train.csv", by_time=False, max_length=2, overlong=overlong)
    store = prepare(config_from_mapping(given)).splits["train"]
    assert store.lengths.tolist() == [2, 2]
    assert np.array_equal(store.values[:2, 3], [0, 1] if overlong == "head" else [1, 1])
    assert (np.diff(store.values[:2, 5]) > 0).all()  # the time since `a` was seen


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("last")
    write(folder / "train.csv", draw_tables(0, 80))
    write(folder / "test.csv", draw_tables(1, 30))
    given = config_of(Path("train.csv"), by_time=True, test="test.csv", validation=0.2)
    given["data"]["number_bins"] = 4
    given["model"] = {"trees": True, "hidden_size": 8, "embedding_dim": 8}
    given["training"] = {"max_epochs": 2}
    fit(folder, json.dumps(given))
    return folder


def test_batches_prefixes_and_the_export_agree(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(trained)
    assert seqtrain.check("run").passed
    run_in(Path(), "export", "run", str(tmp_path / "exported"))  # compares golden rows
    saved = json.loads((tmp_path / "exported" / "preprocessing.json").read_text())
    rules = saved["preprocessing"]["sequence"]
    assert (rules["missing"], rules["clock"], len(rules["since"]["mean"])) == ("last", "gap", 3)


def test_predictions_of_a_table_are_those_of_each_sequence(trained, monkeypatch):
    monkeypatch.chdir(trained)
    model, tables = seqtrain.load("run"), draw_tables(2, 20)
    together = model.predict([row for steps in tables.values() for row in steps])
    for steps, predicted in zip(tables.values(), together, strict=True):
        (own,) = model.predict(steps)
        assert own.label == predicted.label
        assert own.probability == pytest.approx(predicted.probability, abs=1e-6)


def test_row_features_are_masked(tmp_path):
    tables = draw_tables(3)
    for number, steps in enumerate(tables.values()):
        for step in steps:
            step["b"] = None if number % 3 else number
    write(tmp_path / "train.csv", tables)
    given = config_of(tmp_path / "train.csv", by_time=True)
    del given["data"]["steps"]["b"]
    given["data"]["static"] = {"b": "number"}
    data = prepare(config_from_mapping(given))
    assert set(np.unique(data.splits["train"].static[:, 1])) == {0, 1}
    assert data.preprocessing.data_settings()["missing"] == "last"


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": {"what": "token"}},
        {"steps": {"what": "token", "a": {"number": True, "by": "what"}}},
        {"standardize": "both"},
        {"steps": None, "id": None, "order": None, "kind": "features"},
        {"steps": None, "id": None, "order": None, "sequence": "a"},
    ],
)
def test_only_numbers_of_steps_are_carried(changes):
    given = config_of(Path("train.csv"), by_time=False)
    given["data"] |= changes
    with pytest.raises(ConfigError, match=r"data\.missing"):
        config_from_mapping(given)
