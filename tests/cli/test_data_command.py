"""`seqtrain data`: figures and rows to look at, without training."""

import random
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.tiny import listing, rows, sets, write_jsonl, write_table


def test_json_holds_figures_of_each_split(project, cli):
    before = listing(project)
    ended = cli("data", "c.yaml", "--json")
    assert listing(project) == before
    found = ended.json
    assert {name: split["rows"] for name, split in found["splits"].items()} == {
        "train": 32,
        "validation": 8,
        "test": 20,
    }
    train = found["splits"]["train"]
    assert train["labels"].keys() == {"up", "down"}
    assert sum(train["labels"].values()) == 32
    assert train["lengths"]["0.5"] >= train["lengths"]["0.0"] >= 1
    assert found["splits"]["test"]["unknown"] > 0
    assert 0 <= found["padding"]["bucketing"] <= found["padding"]["random"] < 1


def test_rows_to_look_at_are_named(project, cli):
    texts = rows(40, seed=1)
    extra = [texts[0], (texts[1][0].upper(), "sideways"), ("", "up"), ("b\u0430d \x1b[31m", "up")]
    write_table(project / "train.tsv", [*texts, *extra])
    ended = cli("data", "c.yaml", "--set", "data.validation=null")
    assert "\x1b" not in ended.out
    for words in (
        "train line 2, train line 42",
        "train line 3, train line 43",
        "labels with fewer than 5 rows in train: 'sideways' (1)",
        "train: fit would refuse 1 row",
        "train.tsv:44: the sequence is empty",
    ):
        assert words in ended.out
    assert "train.tsv:44" not in ended.err  # it is said once
    cli("fit", "c.yaml", code=2)
    for key in ("data.empty=drop", "data.bad_rows=drop"):
        keys = sets("data.validation=null", key)
        found = cli("data", "c.yaml", "--json", *keys).json
        is_refused = (
            key == "data.bad_rows=drop"
        )  # it leaves out what can't be read, not blank texts
        assert found["splits"]["train"]["refused"] == is_refused
        cli("fit", "c.yaml", *keys, "--set", "training.max_epochs=1", code=2 if is_refused else 0)


@pytest.mark.parametrize("key", ["sequence", "label", "group", "weight"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_missing_column_is_named_with_its_key_and_the_nearest_one(project, cli, key, ending):
    rows = [{"memo": f"one two {n}", "fate": "xy"[n % 2], "day": n, "trust": 1} for n in range(20)]
    if ending == "csv":
        lines = [",".join(map(str, each)) for each in ([*rows[0]], *(row.values() for row in rows))]
        (project / "t.csv").write_text("\n".join(lines))
    else:
        write_jsonl(project / "t.jsonl", rows)
    names = {"sequence": "memo", "label": "fate", "group": "day", "weight": "trust"}
    near = names[key]
    names[key] = f"{near}s"
    keys = [f"data.{name}={column}" for name, column in names.items()]
    ended = cli("data", "c.yaml", *sets(f"data.train=t.{ending}", "data.test=null", *keys), code=2)
    assert f"t.{ending}:1: " in ended.err
    assert f"data.{key} " in ended.err
    assert f" '{near}'?" in ended.err


def test_json_names_what_comes_again_and_contradicts(project, cli):
    base = [(f"word{i} two three", "xy"[i % 2]) for i in range(10)]
    train = [*base, ("a b", "x"), ("a b", "x"), ("A, B!", "y"), ("call 12", "x"), ("call 7", "y")]
    train += [("w " * 50, "x"), ("don't", "x"), ("don’t", "y"), ("bаnk", "x"), ("банк", "rare")]
    write_table(project / "train.tsv", train)
    test = [("word3 two three", "y"), ("a b", "y"), ("new", "sideways")]
    write_table(project / "test.tsv", test)
    keys = sets("data.validation=null", "data.max_length=3")
    found = cli("data", "c.yaml", "--json", *keys).json

    def places(groups: list[list[dict[str, Any]]]) -> list[list[tuple[str, int]]]:
        return [[(row["split"], row["line"]) for row in rows] for rows in groups]

    again = [("train", 12), ("train", 13), ("test", 3)]
    assert places(found["duplicates"]) == [[("train", 5), ("test", 2)], again]
    assert places([each["rows"] for each in found["conflicts"]]) == [again]
    assert found["conflicts"][0]["labels"] == ["x", "y"]
    assert found["rare_labels"] == {"rare": 1}
    assert found["splits"]["test"]["unseen_labels"] == ["sideways"]
    assert found["splits"]["train"]["labels"] == {"rare": 1, "x": 11, "y": 8}
    assert (found["splits"]["train"]["cut"], found["splits"]["train"]["lengths"]["1.0"]) == (2, 50)


def test_one_list_at_the_end_holds_all_that_is_doubtful(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(5)
    head, rows = "case,step,flow,site,code,state\n", []
    for case in range(60):
        state = ["dry", "wet"][case % 2] if case else "odd"
        cells = [[f"k{case}", k, round(draw.gauss(case % 2, 1), 2)] for k in range(6)]
        rows += [[*own, f"s{case % 7}", f"z{state}", state] for own in cells]
    rows[100][2] = "#REF!"
    rows += [["again", *row[1:]] for row in rows[6:12]]
    rows += [["other", *row[1:-2], "zwet", "wet"] for row in rows[12:18]]
    Path("a.csv").write_text(head + "".join(",".join(map(str, row)) + "\n" for row in rows))
    keys = {"train": "a.csv", "id": "case", "order": "step", "label": "state", "bad_rows": "drop"}
    keys |= {"steps": "{flow: number}", "validation": "0.2", "window": "null"}
    Path("c.yaml").write_text("data:\n" + "".join(f"  {x}: {y}\n" for x, y in keys.items()))
    out = cli("data", "c.yaml").out
    doubts = out[out.index("doubtful:") :]
    for words in ("line 102", "'code' gives the label away", "validation: no row", "equal: 2"):
        assert words in doubts
    assert len(cli("data", "c.yaml", "--json").json["doubts"]) >= 4


def test_groups_on_both_sides_are_in_the_list(tmp_path, monkeypatch, cli):
    """In files of their own, or where a fraction of train is held out without their column."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(6)
    for name, start in (("a", 0), ("b", 11)):
        lines = ["client_nr,note,state"]
        for row in range(120):
            words = " ".join(draw.choices(["mo", "ta", "ril", "sen"], k=6))
            lines.append(f"c{start + row % 12},{words} {row},{'uv'[row % 2]}")
        Path(f"{name}.csv").write_text("\n".join(lines) + "\n")
    Path("c.yaml").write_text("data: {train: a.csv, sequence: note, label: state}\n")
    files = sets("data.validation=b.csv", "data.group=client_nr")
    for keys, words in (
        (files, "validation: 10 sequences of groups that are in train"),
        (sets("data.validation=0.2"), "data.group=client_nr"),
    ):
        out = cli("data", "c.yaml", *keys).out
        assert words in out[out.index("doubtful:") :]
        assert any(words in line for line in cli("data", "c.yaml", "--json", *keys).json["doubts"])
    held = cli("data", "c.yaml", *sets("data.validation=0.2", "data.group=client_nr")).out
    assert "client_nr" not in held


SPELLINGS = ("?", "None", "k.A.", "\\N", "<NA>")


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_labels_that_may_be_missing_are_doubted_and_left_out(project, cli, spelling):
    """They stay classes until the config says otherwise, also if there is one other class."""
    train = [
        (text, spelling if row % 9 == 0 else label) for row, (text, label) in enumerate(rows(40, 1))
    ]
    write_table(project / "train.tsv", train)
    keys = "data.validation=null", "data.test=null"
    out = cli("data", "c.yaml", *sets(*keys)).out
    (found,) = re.findall(r"--set .*na_values.* data\.bad_rows=drop", out)
    more = shlex.split(found)[1::2]
    assert "data.na_values" in cli("init", "train.tsv", "-o", "d.yaml", "--force").err
    fits = [
        cli("fit", "c.yaml", "--run-dir", f"r{n}", *sets(*keys, *given, "training.max_epochs=1"))
        for n, given in enumerate(([], more))
    ]
    assert ["data.na_values" in each.err for each in fits] == [True, False]
    left = cli("data", "c.yaml", "--json", *sets(*keys, *more)).json["splits"]["train"]
    assert (left["rows"], set(left["labels"])) == (35, {"up", "down"})
    said = cli("init", "train.tsv", "-o", "-", *sets(*more[:1])).err
    assert not re.search("warning: .*data.na_values", said)
    cli("data", "c.yaml", *sets(*keys, "data.na_values={lable: [x]}"), code=2)
    two = [(text, spelling if label == "up" else label) for text, label in train]
    write_table(project / "train.tsv", two)
    assert "data.na_values" in cli("data", "c.yaml", *sets(*keys)).out


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize("sentinel", [-999, -9999.0, 99999, 999999999, -99999999.0])
def test_numbers_far_from_all_others_may_be_missing(tmp_path, monkeypatch, cli, ending, sentinel):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(8)
    found = [
        {"case": f"k{case}", "flow": round(draw.gauss(case % 2, 1), 2), "state": "uv"[case % 2]}
        for case in range(20)
        for _ in range(5)
    ]
    for row in (7, 30, 31):
        found[row]["flow"] = sentinel
    for name, value in (("a", sentinel), ("b", None)):
        table = [row | {"flow": value} if row["flow"] == sentinel else row for row in found]
        if ending == "csv":
            lines = [",".join("" if x is None else str(x) for x in row.values()) for row in table]
            Path(f"{name}.csv").write_text("\n".join(["case,flow,state", *lines]) + "\n")
        else:
            write_jsonl(Path(f"{name}.jsonl"), table)
    keys = {"train": f"a.{ending}", "id": "case", "label": "state", "steps": "{flow: number}"}
    Path("c.yaml").write_text("data:\n" + "".join(f"  {x}: {y}\n" for x, y in keys.items()))
    out = cli("data", "c.yaml").out
    advised = shlex.split(re.findall(r"--set .*na_values.* data\.missing=mask", out)[0])
    assert "3 cells of 'flow'" in out
    more = [*advised, *sets("training.max_epochs=1")]
    assert "data.na_values" not in cli("data", "c.yaml", *more).out
    cli("data", "c.yaml", *more[:2], code=0)
    cli("fit", "c.yaml", *more[:2], code=2)
    cli("fit", "c.yaml", "--run-dir", "r", *more)
    predicted = [cli("predict", f"{name}.{ending}", "r").out for name in "ab"]
    assert predicted[0] == predicted[1]


def test_numbers_within_the_others_are_no_doubt(tmp_path, monkeypatch, cli):
    """Nor if such a number is the only one, or many columns have it: then one line is about all."""
    monkeypatch.chdir(tmp_path)
    for cells, count in (((99, 99, 60, 120), 0), ((-999, 1, 2, 3), 0), ((-999, -999, 2, 3), 1)):
        lines = ["a,b,c,d,e,state"]
        for row in range(40):
            usual = [row % 17 + column / 10 for column in range(5)]
            own = [cells[row] if row < 4 and (count or not at) else x for at, x in enumerate(usual)]
            lines.append(",".join([*map(str, own), "uv"[row % 2]]))
        Path("a.csv").write_text("\n".join(lines) + "\n")
        Path("c.yaml").write_text("data: {train: a.csv, kind: features, label: state}\n")
        out = cli("data", "c.yaml").out
        assert out.count('data.na_values={"*": [-999]}') == count == out.count("na_values")


def test_long_sequences_that_take_very_long_are_said(tmp_path, monkeypatch, cli):
    """In init, data and fit, until data.max_length cuts them."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(5)
    rows = [[" ".join(draw.choices("abcdef", k=1200 + n)), "uv"[n % 2]] for n in range(30)]
    write_table(Path("a.tsv"), [("symbols", "label"), *rows])
    slow = sets("training.max_epochs=90000")
    (option,) = re.findall(
        r"--set (data\.max_length=\d+)", cli("init", "a.tsv", *slow, "-o", "c.yaml").err
    )
    shown = [
        cli("data", "c.yaml", *sets(*keys)).out
        for keys in ([], [option], ["training.max_epochs=2"])
    ]
    assert ["--set data.max_length" in " ".join(text.split()) for text in shown] == [
        True,
        False,
        False,
    ]
    assert "1,229" in shown[0]
    assert "data.max_length=" not in cli("init", "a.tsv", *slow, *sets(option), "-o", "d.yaml").err
