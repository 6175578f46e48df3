"""Labels as tuples: encoding, unknown labels, separators, and saved label sets."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter

from seqtrain.errors import DataError
from seqtrain.sequences.labels import LabelSet, class_counts, has_class, unknown_rows
from tests.helpers.tiny import Cli, sets

MULTI = LabelSet(("a", "b"), multi_label=True, separator="|")
CONFIG = """\
data: {train: train.jsonl, test: test.jsonl, sequence: text, label: topics}
model: {embedding_dim: 4, hidden_size: 4}
training: {max_epochs: 1, monitor: loss}
"""


def write(name: str, *rows: tuple[str, Any]) -> None:
    lines = (json.dumps({"text": text, "topics": topics}) + "\n" for text, topics in rows)
    Path(name).write_text("".join(lines))


def test_single_labels_are_class_indices() -> None:
    labels = LabelSet(("a", "b"))
    encoded = labels.encode([("b",), None, ("c",), ("a", "b"), ()])
    assert encoded.tolist() == [1, -1, -1, -1, -1]
    assert unknown_rows(encoded).tolist() == [False, True, True, True, True]
    assert labels.decode([1, 0]) == ("b", "a")
    assert class_counts(encoded, 2).tolist() == [0, 1]


@pytest.mark.parametrize("of", [np.asarray, torch.as_tensor])
def test_a_row_of_all_classes_and_an_unknown_label_is_unknown(of: Any) -> None:
    rows = [("a", "b"), ("a", "b", "c"), ("c",), None, ("b",), ()]
    encoded = of(MULTI.encode(rows))
    assert unknown_rows(encoded).tolist() == [False, True, True, True, False, False]
    assert has_class(encoded, 0).tolist() == [True, True, False, False, False, False]
    assert has_class(encoded, 1).tolist() == [True, True, False, False, True, False]
    assert class_counts(np.asarray(encoded), 2).tolist() == [2, 3]


def test_all_classes_and_an_unknown_label_score_as_wrong(project: Path, cli: Cli) -> None:
    Path("c.yaml").write_text(CONFIG)
    write("train.jsonl", *[("x y", ["a", "b"])] * 20, ("x y", []))
    write("test.jsonl", ("x y", ["a", "b", "new"]), ("x y", ["a", "b"]), ("x y", ["new"]))
    cli("fit", "c.yaml", "--run-dir", "run", "--set", "model.ngrams=null")
    scores = json.loads(Path("run/test.json").read_text())
    assert scores["num_unknown_labels"] == 2
    assert scores["accuracy"] <= 1 / 3
    assert scores["multi_label"] is True


def test_a_row_without_a_label_is_named_if_every_row_of_train_has_one(
    project: Path, cli: Cli
) -> None:
    Path("c.yaml").write_text(CONFIG)
    Path("train.csv").write_text("text,a,b\n" + "x y,1,0\ny z,0,1\n" * 20)
    Path("test.csv").write_text("text,a,b\nx y,1,0\nz,0,0\n")
    found = cli(
        "data", "c.yaml", *sets("data.train=train.csv", "data.test=test.csv", "data.label=[a, b]")
    )
    assert "test.csv:3: the row has no label" in found.out


def test_a_separator_is_one_that_no_class_contains() -> None:
    rows = [("a|b", "c"), ("d;e",)]
    assert LabelSet.fit(rows, multi_label=True).separator == ","
    assert LabelSet.fit([("a",)], multi_label=True).separator == "|"
    every = LabelSet.fit([("a|b;c,d",), ("x||y",), ("z|||",)], multi_label=True).separator
    assert every == "||||"
    with pytest.raises(DataError, match=r"'a\|b' .*'\|'"):
        LabelSet.fit(rows, multi_label=True, separator="|")


def test_predicted_classes_with_a_bar_can_be_told_apart(project: Path, cli: Cli) -> None:
    Path("c.yaml").write_text(CONFIG.replace("test: test.jsonl, ", ""))
    write("train.jsonl", *[("x y", ["a|b", "c"]), ("z", ["d"])] * 10)
    learned = ("--set", "training.max_epochs=30", "--set", "training.lr=0.05")
    cli("fit", "c.yaml", "--run-dir", "run", *learned)
    rows = cli("predict", "train.jsonl", "run").out.splitlines()[1:]
    assert {row.split("\t")[0] for row in rows} <= {"a|b;c", "d", "a|b", "c", ""}
    assert "a|b;c" in {row.split("\t")[0] for row in rows}


def test_a_unit_separator_is_part_of_a_label(project: Path, cli: Cli) -> None:
    label = "\x1fpos"
    Path("c.yaml").write_text(CONFIG.replace("test: test.jsonl, ", ""))
    write("train.jsonl", *[("x y", "pos"), ("z", "neg")] * 20, ("z", label))
    cli("fit", "c.yaml", "--run-dir", "run", "--set", "training.monitor=accuracy")
    saved = json.loads(Path("run/best/model.json").read_text())["preprocessing"]["label_set"]
    assert saved["classes"] == sorted(["pos", "neg", label])
    assert saved["multi_label"] is False
    assert saved["separator"] is None


def test_a_label_of_a_list_with_a_unit_separator_is_one_class(project: Path, cli: Cli) -> None:
    Path("c.yaml").write_text(CONFIG.replace("test: test.jsonl, ", ""))
    write("train.jsonl", *[("x y", ["a\x1fb", "c"]), ("z", ["d"])] * 10)
    cli("fit", "c.yaml", "--run-dir", "run")
    saved = json.loads(Path("run/best/model.json").read_text())["preprocessing"]["label_set"]
    assert saved["classes"] == ["a\x1fb", "c", "d"]


def test_labels_of_an_earlier_model_keep_their_indices() -> None:
    old = LabelSet(("z", "b"))
    assert LabelSet.fit([("a",), ("b",)], multi_label=False, known=old).classes == ("z", "b", "a")
    with pytest.raises(DataError, match=r"data\.label"):
        LabelSet.fit([("a", "b")], multi_label=True, known=old)


@pytest.mark.parametrize(
    "change",
    [
        {"classes": ["a", "a"]},
        {"classes": ["a", 1]},
        {"classes": "ab"},
        {"multi_label": 1},
        {"separator": 3},
    ],
)
def test_saved_label_sets_are_validated(change: dict[str, Any]) -> None:
    saved = TypeAdapter(LabelSet)
    values = saved.dump_python(MULTI, mode="json")
    assert saved.validate_json(json.dumps(values)) == MULTI
    with pytest.raises(ValueError, match=r"classes|multi_label|separator"):
        saved.validate_json(json.dumps({**values, **change}))
