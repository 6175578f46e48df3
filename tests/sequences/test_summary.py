"""Figures of the splits; and lines that say what a user should know before trusting a score."""

from collections.abc import Callable
from typing import Any

import pytest

from seqtrain.config import Config
from seqtrain.config.schema import TrainingConfig
from seqtrain.sequences.dataset import PreparedData, prepare
from seqtrain.sequences.inspection import Inspection
from seqtrain.sequences.summary import SplitSummary, summarize, warnings

Rows = list[tuple[str, str]]
Ready = Callable[..., tuple[PreparedData, Config]]
Warned = Callable[..., list[str]]
PAIR = [("one two", "x"), ("three", "y")]
NO_VALIDATION = "no validation split: "


@pytest.fixture
def ready(write, make_config) -> Ready:
    """Prepare rows. Validation and test may be rows or values of the key."""

    def run(train: Rows, **keys: Any) -> tuple[PreparedData, Config]:
        for name in ("validation", "test"):
            if isinstance(keys.get(name), list):
                keys[name] = write(f"{name}.tsv", keys[name])
        config = make_config(train=write("train.tsv", train), **keys)
        return prepare(config), config

    return run


@pytest.fixture
def warned(ready) -> Warned:
    """Return what is said of rows, but that there is no validation split."""

    def run(train: Rows, **keys: Any) -> list[str]:
        data, config = ready(train, **keys)
        lines = warnings(data, summarize(data), config)
        rest = [line for line in lines if not line.startswith(NO_VALIDATION)]
        assert (len(rest) < len(lines)) == ("validation" not in keys)
        return rest

    return run


def test_the_figures_of_a_split(ready):
    train = [("a", "x"), ("a b", "x"), ("a b c d e", "x"), ("b c", "y"), ("e", "y")]
    test = [("a new", "x"), ("a b", "x"), ("new", "y"), ("e", "z")]
    summaries = summarize(ready(train, test=test)[0])
    assert summaries["train"] == SplitSummary(5, 11, (1, 1, 2, 5, 5), 0.0, 0, 0.6)
    assert summaries["test"] == SplitSummary(4, 6, (1, 1, 2, 2, 2), 1 / 3, 2, 0.5)


@pytest.mark.parametrize(
    ("key", "value", "has_effect"),
    [
        ("monitor", "macro_f1", False),
        ("monitor", "loss", True),
        ("thresholds", "one", False),
        ("min_delta", 0.5, False),
        ("patience", 4, True),
    ],
)
def test_keys_without_effect_are_named_where_no_rows_are_held_out(ready, key, value, has_effect):
    data, config = ready(PAIR * 4)
    config = config.model_copy(update={"training": TrainingConfig(**{key: value})})
    (line,) = [x for x in warnings(data, summarize(data), config) if x.startswith(NO_VALIDATION)]
    assert (f"training.{key}: {value}" not in line) == has_effect


ODD = [*PAIR * 2, ("a b c", "x"), ("", "y")]
WORDS = [(word, "xy"[i % 2]) for i, word in enumerate("abcdef")] * 3
HELD = [(f"a b{i} c", "xy"[i % 2]) for i in range(10)]
CLASSES = [(f"{label} {i}", label) for i in range(4) for label in "xyz"]
NO_Z = (
    "the class 'z', so macro F1 is the mean of the other classes and says nothing about it; "
    "hold out more, or see fit --folds 5"
)
ALIKE = [("a", "x"), ("c", "y"), (" A ", "y"), ("a", "x"), ("d", "x"), ("d", "y")]


@pytest.mark.parametrize(
    ("train", "keys", "lines"),
    [
        (PAIR * 2, {"test": [("two three", "x"), ("four", "y")]}, []),
        (PAIR * 2, {"test": [("a b", "x"), ("three", "y")]}, [
            "test: 1 sequence (50.0%) is in train too"
        ]),
        (CLASSES, {"validation": 0.3}, []),
        (CLASSES, {"validation": [("w", "x"), ("v", "y")]}, [f"validation: no row of {NO_Z}"]),
        (ODD, {"max_length": 2, "empty": "drop"}, [
            "train: cut 1 sequence to data.max_length",
            "train: skipped 1 empty sequence (16.7% of the rows)",
        ]),
        (ODD, {"empty": "unk"}, ["train: read 1 empty sequence as one <unk>"]),
        (HELD, {"max_length": 2, "validation": 0.2}, [
            "train (including rows held out for other splits): cut 10 sequences to data.max_length",
        ]),
        (WORDS, {"validation": [("a", "x"), ("b", "y"), ("a b", "x")]}, [
            "validation: 2 sequences (66.7%) are in train too"
        ]),
        (WORDS, {"validation": WORDS[:2]}, [
            "validation: every sequence is in train too, so its score says nothing about new "
            "data; name another file in data.validation, or hold out a part of train with "
            "data.validation: 0.1"
        ]),
    ],
)  # fmt: skip
def test_what_is_said(warned, train, keys, lines):
    assert warned(train, **keys) == lines


SENSORS = [(f"0.{i} 1.{i} 2.{i % 3}", "xy"[i % 2]) for i in range(40)]
SEVERAL = [(f"a b{i}", ["x|y", "x", "y"][i % 3]) for i in range(30)]


@pytest.mark.parametrize(
    ("train", "keys", "said"),
    [
        (SENSORS, {}, "of the words are numbers, each a symbol of its own"),
        (SEVERAL, {}, "labels look like lists separated by '|', such as 'x|y'"),
    ],
)
def test_data_that_is_read_as_what_it_is_not(warned, train, keys, said):
    assert any(said in line for line in warned(train, **keys))


def test_labels_that_train_lacks_are_named_five_times_and_counted(warned):
    lines = warned(PAIR * 2, test=[("one", "x"), ("o", "y"), *[(f"t{i}", "z") for i in range(8)]])
    assert len([line for line in lines if "doesn't occur in train" in line]) == 5
    assert "test.tsv:4: label 'z' " in lines[0]
    assert lines[-1].startswith("test: 3 more rows ")


def test_equal_sequences_under_several_labels(warned):
    (line,) = warned(ALIKE, validation=[("e f", "x"), ("g", "y")])
    assert line.startswith("train: 5 rows hold 2 sequences under several labels (lines ")
    assert "(lines 2 and 4, 6 and 7)" in line
    assert "data.label" in line


@pytest.mark.parametrize("lowercase", [True, False])
def test_rows_are_equal_if_the_config_makes_them_equal(warned, lowercase):
    train = [("Red blue", "x"), ("one two", "y"), ("Red green", "x"), ("one three", "y")]
    held = [("red blue", "x"), ("ONE two", "y")]
    lines = warned(train, validation=held, lowercase=lowercase)
    assert any("in train too" in line for line in lines) == lowercase


def test_row_features_do_not_change_what_is_said_of_the_vocabulary(tmp_path, make_config):
    lines = [f"{'abc'[i % 3]} b{i % 4},{'xy'[i % 2]},{'mno'[i % 3]}" for i in range(24)]
    (tmp_path / "a.csv").write_text("\n".join(["text,label,land", *lines, ""]))
    said = []
    for static in (None, {"land": "token"}):
        config = make_config(train=str(tmp_path / "a.csv"), static=static, validation=0.25)
        found = Inspection(config)
        said.append((found.data.preprocessing.vocabulary, found.summaries, found.warnings))
    assert said[0] == said[1]
    assert len(said[0][0]) == 2 + 7


def test_a_header_read_as_data(warned):
    rows = [(f"word{i} and more", "xy"[i % 2]) for i in range(40)]
    keys = {"sequence": 0, "label": 1}
    (line,) = [line for line in warned(rows, **keys) if "data.header: true" in line]
    assert line.startswith("train: 'label' on line 1 ")
    assert not warned(rows, **keys, header=True)
    assert not warned(rows)
