"""Columns of tokens and numbers are coded as train says, and stay so."""

import json
from pathlib import Path

import numpy as np
import pytest

from seqtrain.config import config_from_mapping, load_config
from seqtrain.errors import DataError
from seqtrain.sequences.dataset import PreparedData, prepare
from seqtrain.sequences.summary import summarize, warnings
from tests.helpers.tables import table, write_rows


def prepared(*options: str) -> PreparedData:
    return prepare(load_config("c.yaml", list(options)))


def rare(table_project: Path) -> None:
    rows = table(60, seed=1)
    rows[0]["mood"], rows[0]["place"] = "once", "moon"
    write_rows(table_project / "train.csv", rows)


def test_train_chooses_each_columns_tokens_and_scales(table_project: Path) -> None:
    rare(table_project)
    data = prepared("data.validation=null")
    coding, facts = data.preprocessing.steps, data.preprocessing.row_features
    assert coding is not None
    assert facts is not None
    place, mood = (vocabulary.tokens for vocabulary in coding.vocabularies)
    assert set(place) == {"<pad>", "<unk>", "moon", "cafe", "home", "park", "work"}
    assert set(mood) == {"<pad>", "<unk>", "a", "b", "c"}
    train = data.splits["train"]
    assert train.static is not None
    numbers = np.concatenate((train.values[:, 2:], np.full((1, 2), np.nan)))
    assert np.nanmean(numbers, axis=0) == pytest.approx(0, abs=1e-5)
    assert np.nanstd(numbers, axis=0) == pytest.approx(1, abs=1e-5)
    assert train.static[:, 1].std() == pytest.approx(1, abs=1e-5)
    row, sequence = 0, train[0][0]
    assert [place[int(i)] for i in sequence[:, 0]][row] == "moon"
    assert int(sequence[0, 1]) == 1
    heat, (mean, std) = table(60, seed=1)[0]["heat"], coding.scales()["heat"]
    assert sequence[0, 2] * std + mean == pytest.approx(heat, abs=1e-4)


@pytest.mark.parametrize("column", ["heat", "age"])
def test_missing_numbers_are_refused_or_masked(column: str, table_project: Path) -> None:
    rows = table(60, seed=1)
    for row in rows[:1] if column == "heat" else rows:
        row[column] = None if row["visit"] == "v0" else row[column]
    write_rows(table_project / "train.csv", rows)
    where = "step 1: " if column == "heat" else ""
    with pytest.raises(DataError, match=rf"train\.csv:2: {where}missing value of {column}; "):
        prepared()
    data = prepared("data.missing=mask", "data.validation=null")
    train = data.splits["train"]
    assert train.static is not None
    vector = train.values[0, 2:] if column == "heat" else train.static[0, 1:]
    assert vector[0] == 0
    assert vector[len(vector) // 2] == 1
    assert (train.values[1:, 4:] == 0).all()


def test_equal_sequences_are_held_out_together(table_project: Path) -> None:
    rows = table(40, seed=1)
    again = [{**row, "visit": f"{row['visit']}-again", "time": row["time"] + 7} for row in rows]
    write_rows(table_project / "train.csv", rows + again)
    splits = prepared("data.validation=0.3").splits
    assert len(splits["validation"]) == 24
    keys = [set(np.asarray(splits[name].keys).tolist()) for name in ("train", "validation")]
    assert not keys[0] & keys[1]


def test_rows_of_other_facts_are_other_rows(table_project: Path) -> None:
    """Without them all rows are equal, and none could be held out."""
    first = table(1, seed=1)[0]
    rows = [{**first, "visit": f"v{n}", "age": n, "who": ["ann", "bob"][n % 2]} for n in range(40)]
    write_rows(table_project / "train.csv", rows)
    data = prepared("data.validation=0.5")
    assert len(data.splits["validation"]) == 20
    said = warnings(data, summarize(data), load_config("c.yaml"))
    assert not [line for line in said if "in train too" in line or "under several labels" in line]


def test_the_rows_of_an_id_stand_in_one_file(table_project: Path) -> None:
    rows = table(40, seed=1)
    write_rows(table_project / "day1.csv", rows[::2])
    write_rows(table_project / "day2.csv", rows[1::2])
    with pytest.raises(DataError, match=r"day2\.csv:2: id 'v0' is in day1\.csv too; put all its"):
        prepared("data.train=[day1.csv, day2.csv]")
    half = next(n for n, row in enumerate(rows) if row["visit"] == "v20")
    write_rows(table_project / "day1.csv", rows[:half])
    write_rows(table_project / "day2.csv", rows[half:])
    write_rows(table_project / "train.csv", rows)
    both, one = prepared("data.train=day*.csv").splits, prepared().splits
    assert all(np.array_equal(both[name].values, one[name].values) for name in one)


@pytest.mark.parametrize("damage", [None, "hot"])
def test_an_id_in_two_files_is_dropped_with_all_its_rows(damage, table_project: Path) -> None:
    rows = table(60, seed=1)
    half = next(n for n, row in enumerate(rows) if row["visit"] == "v30")
    write_rows(table_project / "day1.csv", [{**rows[half], "heat": "cold"}, *rows[1:half]])
    again = [{**rows[1], "heat": damage or rows[1]["heat"]}, {**rows[9], "visit": "new"}]
    write_rows(table_project / "day2.csv", [*rows[half:], *again])
    sets = "data.train=[day1.csv, day2.csv]", "data.bad_rows=drop", "data.validation=null"
    data = prepared(*sets)
    train, report = data.splits["train"], data.reports["train"]
    own = {rows[1]["visit"], "v30"}
    kept = {row["visit"] for row in rows} - own
    assert len(train) == report.rows == len(kept) + 1
    assert report.unreadable == 4  # two examples, each of which has a part in either file
    line = 2 + next(n for n, row in enumerate(rows[half:]) if row["visit"] not in own)
    assert f"day2.csv:{line}" in {train.place(number) for number in range(len(train))}


def test_the_order_may_be_named_by_its_index(table_project: Path) -> None:
    named, numbered = prepared().splits, prepared("data.order=1").splits
    assert all(np.array_equal(named[name].values, numbered[name].values) for name in named)


def test_bad_rows_are_dropped_where_asked(table_project: Path) -> None:
    rows = table(60, seed=1)
    rows[0]["heat"] = "hot"
    write_rows(table_project / "train.csv", rows)
    with pytest.raises(DataError, match=r"train\.csv:2: heat: .*'hot'"):
        prepared()
    data = prepared("data.bad_rows=drop", "data.validation=null")
    assert len(data.splits["train"]) == 59
    assert data.reports["train"].unreadable == 1


def test_a_bad_id_of_two_files_takes_no_other_id_with_it(tmp_path, make_config):
    """Its bad row is the last line of the first file, and nothing is kept from there on."""
    for name, rows in (
        ("a", [("g1", 1, "x"), ("g2", 1, "y"), ("bad", "hot", "x")]),
        ("b", [("g3", 1, "x"), ("g4", 1, "y"), ("bad", 1, "x")]),
    ):
        lines = [json.dumps({"who": who, "heat": heat, "l": label}) for who, heat, label in rows]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    data = prepare(
        make_config(
            train=[str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")],
            sequence=None,
            id="who",
            steps={"heat": "number"},
            label="l",
            bad_rows="drop",
        )
    )
    train = data.splits["train"]
    assert [data.preprocessing.labels[code] for code in train.labels] == ["x", "y", "x", "y"]
    assert [train.place(row).rpartition("/")[2] for row in range(4)] == [
        *("a.jsonl:1", "a.jsonl:2", "b.jsonl:1", "b.jsonl:2"),
    ]


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("mark", [".", ","])
def test_a_bad_cell_of_a_wide_table_is_named_with_its_column(tmp_path, header, mark):
    rows = [[f"{row + step}{mark}5" for step in range(9)] + ["ab"[row % 2]] for row in range(8)]
    rows[5][3] = "k.A."
    names = [f"v{step}" for step in range(9)] + ["kind"]
    lines = [";".join(row) for row in ([names, *rows] if header else rows)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines) + "\n")
    label = "kind" if header else 9
    data = {"train": str(path), "validation": None, "kind": "features", "decimal": mark}
    config = config_from_mapping({"data": {**data, "header": header, "label": label}})
    with pytest.raises(DataError, match=rf"a\.csv:{6 + header}: .*data\.na_values") as refused:
        prepare(config)
    assert ("v3: " if header else "column 3: ") in str(refused.value)
