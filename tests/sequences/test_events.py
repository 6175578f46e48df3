"""Lists of objects: each object is a time step, as a row of a step table is one."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seqtrain
from seqtrain.errors import ConfigError, DataError
from seqtrain.sequences.dataset import prepare

STEPS = {"page": "token", "spent": "number"}


def visits(count: int, seed: int) -> list[dict[str, Any]]:
    """Return rows with a list of events. The label follows from the pages."""
    draw, found = random.Random(seed), []
    for number in range(count):
        label = "yn"[number % 2]
        pages = ["home", "cart", "pay"] if label == "y" else ["home", "help", "quit"]
        events = [
            {"page": draw.choice(pages), "spent": draw.randrange(40) / 4, "more": 1}
            for _ in range(draw.randint(1, 6))
        ]
        events.append({"page": pages[2], "spent": 1})
        found.append({"visit": {"events": events}, "bought": label})
    return found


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    if path.suffix == ".csv":
        import csv

        with path.open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["visit.events", "bought"])
            out.writerows([json.dumps(row["visit"]["events"]), row["bought"]] for row in rows)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def config_of(make_config: Any, path: str, **keys: Any) -> Any:
    own = {"sequence": "visit.events", "label": "bought", "steps": STEPS, **keys}
    return make_config(train=path, **own)


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_they_are_the_sequences_of_a_step_table(make_config, tmp_path, ending):
    rows = visits(40, 0)
    data = prepare(config_of(make_config, write(tmp_path / f"a.{ending}", rows)))
    lines = [
        f"{number},{event['page']},{event['spent']},{row['bought']}"
        for number, row in enumerate(rows)
        for event in row["visit"]["events"]
    ]
    (tmp_path / "steps.csv").write_text("\n".join(["id,page,spent,bought", *lines, ""]))
    table = {"sequence": None, "id": "id", "label": "bought", "steps": STEPS}
    expected = prepare(make_config(train=str(tmp_path / "steps.csv"), **table)).splits["train"]
    found = data.splits["train"]
    for name in ("values", "offsets", "labels"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_a_model_of_them_scores_and_predicts_every_form(make_config, tmp_path):
    train = write(tmp_path / "a.jsonl", visits(60, 0))
    config = config_of(make_config, train).with_keys(
        model={"trees": True, "hidden_size": 4}, training={"max_epochs": 2}
    )
    run = seqtrain.fit(config, run_dir=tmp_path / "r", progress=False)
    rows = visits(20, 1)
    for path in (write(tmp_path / "b.jsonl", rows), write(tmp_path / "b.csv", rows)):
        assert seqtrain.evaluate(run, data=path).scores.accuracy == 1
        assert [each.label for each in seqtrain.predict(path, run)] == ["y", "n"] * 10
    table = {"visit.events": [row["visit"]["events"] for row in rows]}
    assert seqtrain.load(run).predict(table).labels == ["y", "n"] * 10


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ("home cart", "found no list; expected a list of objects with the fields page, spent"),
        ([1, 2], "found an integer|found a number"),
        ([{"url": "/"}], "found an object with the fields 'url'"),
        ([{"page": "a", "spent": 1}, {"page": "b", "spent": "much"}], "step 2: spent: "),
        ([{"page": "a"}], "missing value of spent"),
    ],
)
def test_other_cells_are_refused_by_their_line(make_config, tmp_path, events, problem):
    rows = [*visits(4, 0), {"visit": {"events": events}, "bought": "y"}]
    path = write(tmp_path / "a.jsonl", rows)
    with pytest.raises(DataError, match=f"a.jsonl:5: .*({problem})"):
        prepare(config_of(make_config, path))


@pytest.mark.parametrize("keys", [{"sequence": None}, {"id": "bought"}, {"order": "visit.at"}])
def test_keys_that_need_an_id_are_refused_without_one(make_config, keys):
    with pytest.raises(ConfigError, match=r"data\.(steps|sequence|order|id)"):
        config_of(make_config, "a.jsonl", **keys)
