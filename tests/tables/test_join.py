"""Columns of further files: joined by a key, or row by row."""

import random
from pathlib import Path

import pytest

from seqtrain.errors import DataError
from seqtrain.tables.blocks import EVERYTHING, Dialect
from seqtrain.tables.join import join_notices, joined_source
from seqtrain.tables.memory import TableSource
from seqtrain.tables.sources import open_source
from tests.helpers.examples import seeds
from tests.tables.conftest import rows_of, select


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def joined(path: str, joins: list, format: str = "csv"):
    return joined_source(open_source(path, Dialect(format)), joins)


def test_columns_are_joined_by_a_key_of_any_spelling():
    Path("X.csv").write_text("series_id,x\n0,1\n0,2\n1,3\n")
    Path("y.jsonl").write_text(
        '{"sequence_ID": 1.0, "label": "b"}\n{"sequence_ID": 0, "label": "a"}\n'
    )
    on = {"left": "series_id", "right": "sequence_ID"}
    source = joined("X.csv", [{"file": "y.jsonl", "on": on}])
    found = list(rows_of(source, select("series_id", "x", "label")))
    assert [row.cells["label"] for row in found] == ["a", "a", "b"]
    assert [row.line for row in found] == [2, 3, 4]
    assert join_notices([source]) == []
    everything = next(rows_of(source)).cells
    assert everything == {"series_id": "0", "x": "1", "label": "a"}


def test_unmatched_and_repeated_keys_are_counted_and_named():
    Path("X.csv").write_text("id,x\na,1\nb,2\nc,3\nd,4\n")
    Path("y.csv").write_text("id,label,group\na,p,1\nb,p,1\nb,q,1\nc,q,1\nc,q,1\nz,p,1\ny,p,1\n")
    source = joined("X.csv", [{"file": "y.csv", "on": "id"}])
    found = list(rows_of(source, select("x", "label")))
    assert [row.cells["label"] for row in found if row.problem is None] == ["p", "q"]
    assert "different rows in y.csv, lines 3, 4" in str(found[1].problem)
    assert "no row of y.csv has id 'd'" in str(found[3].problem)
    assert set(found[0].cells) == {"x", "label"}
    notices = "\n".join(join_notices([source]))
    for words in ("2 keys of id in no row: 'z', 'y'", "1 key of id without a row there: 'd'",
                  "1 key of id with different rows: 'b'"):  # fmt: skip
        assert words in notices
    found = list(rows_of(source, select("x", optional=("label",))))
    assert [(row.cells, row.problem) for row in found] == [({"x": x}, None) for x in "1234"]
    Path("y.csv").unlink()  # a model predicts without the file of the labels
    assert len(list(rows_of(source, select("x", optional=("label",))))) == 4


@pytest.mark.parametrize("names", ["train", "Train", "folder"])
def test_files_are_aligned_row_by_row(names):
    paths = {"X": "X_train.txt", "y": "y_train.txt", "s": "subject_train.txt"}
    if names == "folder":
        paths = {key: f"train/{path}" for key, path in paths.items()}
        Path("train").mkdir()
    if names == "Train":
        paths = {
            key: path.replace("_train", "Train").replace("subjectTrain", "subject-Train")
            for key, path in paths.items()
        }
        paths = {"X": "X-Train.txt", "y": "y-Train.txt", "s": "subject-Train.txt"}
    Path(paths["X"]).write_text("1 2\n\n3 4\n")
    Path(paths["y"]).write_text("5\n\n6\n")
    Path(paths["s"]).write_text("a\nb\nc\n")
    joins = [{"file": paths["y"], "on": "row"}, {"file": paths["s"], "on": "row"}]
    source = joined_source(open_source(paths["X"], Dialect("lines", blank_lines=True)), joins)
    found = list(rows_of(source, select("text", "y", "subject")))
    assert [tuple(row.cells[name] for name in ("text", "y", "subject")) for row in found] == [
        ("1 2", "5", "a"), ("", "", "b"), ("3 4", "6", "c"),
    ]  # fmt: skip
    Path(paths["y"]).write_text("5\n\n6\n7\n")
    with pytest.raises(DataError, match="found 4 rows; expected 3"):
        list(rows_of(source, select("text", "y")))
    Path(paths["y"]).write_text("5\n\n")
    with pytest.raises(DataError, match="3: has no row there; found 2 rows"):
        list(rows_of(source, select("text", "y")))


def test_columns_are_one_key_together():
    Path("X.csv").write_text("who,trial,x\n7,1.0,a\n7,2,b\n07,1,c\n8,1,d\n9,,e\n9,3,f\n")
    Path("y.csv").write_text(
        "trial,label,who\n1,p,7\n2,q,7\n1,r,07\n1,p,8\n1,q,8\n,p,9\n4,p,9\n3,q,9\n"
    )
    source = joined("X.csv", [{"file": "y.csv", "on": ["who", "trial"]}])
    found = list(rows_of(source, select("x", "label")))
    labels = [row.cells["label"] if row.problem is None else row.problem for row in found]
    assert labels[:3] == ["p", "q", "r"]  # 07 is a name
    assert "who, trial '8,1' has different rows in y.csv, lines 5, 6" in labels[3]
    assert labels[5] == "q"
    notices = join_notices([source])
    assert any(
        "'9,4'" in line and line.startswith("y.csv: 1 key of who, trial") for line in notices
    )
    assert any("'8,1'" in line for line in notices)
    assert len(notices) == 2
    Path("z.csv").write_text("run,label,person\n1,s,7\n2,t,7\n")
    on = {"left": ["who", "trial"], "right": ["person", "run"]}
    source = joined("X.csv", [{"file": "z.csv", "on": on}])
    found = list(rows_of(source, select("x", "label")))
    assert [row.cells["label"] for row in found if row.problem is None] == ["s", "t"]
    assert "no row of z.csv has person, run '8,1'" in str(found[3].problem)
    source = joined("X.csv", [{"file": "z.csv", "on": ["who", "run"]}])
    with pytest.raises(DataError, match=r"z\.csv:1: no column 'who'"):
        list(source.blocks(select("x", "label")))


def test_the_files_of_another_split_are_joined():
    for split, label in (("train", "a"), ("test", "b"), ("validation", "c")):
        Path(f"X_{split}.csv").write_text("id,x\n1,2\n")
        Path(f"y_{split}.csv").write_text(f"id,label\n1,{label}\n")
    joins = [{"file": "y_train.csv", "on": "id"}]
    labels = []
    for split in ("train", "test", "validation"):
        source = joined(f"X_{split}.csv", joins)
        labels += [row.cells["label"] for row in rows_of(source, select("x", "label"))]
    assert labels == ["a", "b", "c"]
    Path("y_test.csv").unlink()  # one file holds the labels of all splits
    source = joined("X_test.csv", joins)
    assert [row.cells["label"] for row in rows_of(source, select("x", "label"))] == ["a"]


def test_a_column_of_both_is_that_of_the_rows():
    Path("X.csv").write_text("id,x,label\n1,2,own\n")
    Path("y.csv").write_text("id,label\n1,other\n")
    source = joined("X.csv", [{"file": "y.csv", "on": "id"}])
    assert next(rows_of(source, select("label", "x"))).cells == {"label": "own", "x": "2"}


def test_what_is_missing_is_named():
    Path("X.csv").write_text("id,x\n1,2\n")
    Path("y.csv").write_text("key,label\n1,a\n")
    for on, said in (
        ("id", r"y\.csv:1: no column 'id'"),
        ({"left": "i", "right": "key"}, r"X\.csv:1: no column 'i'"),
    ):
        source = joined("X.csv", [{"file": "y.csv", "on": on}])
        for selection in (select("x", "label"), EVERYTHING):
            with pytest.raises(DataError, match=said):
                list(source.blocks(selection))
    with pytest.raises(DataError, match="no such file"):
        list(rows_of(joined("X.csv", [{"file": "z.csv", "on": "id"}]), select("x", "label")))
    on = {"left": "id", "right": "key"}
    with pytest.raises(DataError, match=r"X\.csv:1: no column 'labl'"):
        list(rows_of(joined("X.csv", [{"file": "y.csv", "on": on}]), select("x", "labl")))


def test_a_table_in_memory_is_joined():
    Path("y.csv").write_text("id,label\n1,a\n2,b\n")
    source = joined_source(
        TableSource({"id": [2, 1], "x": [5, 6]}), [{"file": "y.csv", "on": "id"}]
    )
    assert [row.cells["label"] for row in rows_of(source, select("x", "label"))] == ["b", "a"]


def test_random_joins_are_those_of_a_dict():
    for seed in seeds(30):
        draw = random.Random(seed)
        keys = [f"k{index}" for index in range(draw.randint(1, 12))]
        if draw.random() < 0.5:
            keys = [f"k{index % 3},{index // 3}" for index in range(len(keys))]
        right = {key: draw.choice("pqr") for key in keys if draw.random() < 0.8}
        left = [draw.choice(keys) for _ in range(draw.randint(1, 40))]
        on = ["id", "part"] if "," in keys[0] else ["id"]
        names = ",".join(on)
        Path("X.csv").write_text(f"{names},x\n" + "".join(f"{key},1\n" for key in left))
        order = draw.sample(sorted(right), len(right))
        lines = [f"{names},label\n", *(f"{key},{right[key]}\n" for key in order)]
        Path("y.csv").write_text("".join(lines))
        source = joined("X.csv", [{"file": "y.csv", "on": on}])
        rows = list(rows_of(source, select("id", "label"), draw.choice([1, 3, 256])))
        assert [row.cells["label"] for row in rows] == [right.get(key) for key in left]
        assert [row.problem is None for row in rows] == [key in right for key in left]
