from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from seqtrain.config import Config
from seqtrain.config.schema import BatchingConfig
from seqtrain.data.dataset import prepare
from seqtrain.data.summary import SplitSummary, padding_shares, summarize, warnings

Write = Callable[[str, str | list[tuple[str, str]]], str]
MakeConfig = Callable[..., Config]
Rows = list[tuple[str, str]]


@pytest.fixture
def look(write: Write, make_config: MakeConfig) -> Callable[..., Any]:
    """Prepare and summarize rows of train and test; return the summaries and the warnings."""

    def run(train: Rows, test: Rows | None = None, **keys: Any) -> Any:
        if test is not None:
            keys["test"] = write("test.tsv", test)
        config = make_config(train=write("train.tsv", train), **keys)
        data = prepare(config, cache_folder=None)
        summaries = summarize(data)
        lines = warnings(data, summaries, config.data)
        return summaries, [line for line in lines if not line.startswith("no validation split")]

    return run


PAIR = [("one two", "x"), ("three", "y")]


def test_the_figures_of_a_split(look: Any) -> None:
    train = [("a", "x"), ("a b", "x"), ("a b c d e", "x"), ("b c", "y"), ("e", "y")]
    test = [("a new", "x"), ("a b", "x"), ("new", "y"), ("e", "z")]
    summaries, lines = look(train, test)
    assert summaries["train"] == SplitSummary(5, 11, (1, 1, 2, 5, 5), 0.0, 0, 0.6)
    assert summaries["test"] == SplitSummary(4, 6, (1, 1, 2, 2, 2), 1 / 3, 2, 0.5)
    assert "test: 2 sequences (50.0%) are in train too" in lines
    assert any("test.tsv:5: label 'z' doesn't occur in train" in line for line in lines)


def test_good_data_brings_no_warning(look: Any) -> None:
    assert look(PAIR * 2, [("two three", "x")])[1] == []


@pytest.mark.parametrize(
    ("one", "other"),
    [("cat", "cat "), ("Cat", "cat"), ("caf\u00e9", "cafe\u0301"), ("a b", "a  b")],
)
def test_labels_that_look_alike_are_named_so_that_they_can_be_told_apart(
    look: Any, one: str, other: str
) -> None:
    _, lines = look([("a", one), ("b", other), ("c", "dog")] * 2, label=1, header=True)
    (line,) = lines
    assert line.startswith("labels that look alike are different classes: ")
    assert ascii(one) in line
    assert ascii(other) in line
    assert "dog" not in line


def test_a_cut_vocabulary_is_said_with_its_size(look: Any) -> None:
    train = [("a b c d", "x"), ("a b e f", "y")] * 2
    assert look(train, max_vocab_size=5)[1] == [
        "data.max_vocab_size: the vocabulary holds 3 of 6 distinct tokens, the rest are "
        "<unk>; raise it, or raise data.min_count to leave out rare tokens"
    ]
    assert look(train, max_vocab_size=8)[1] == []
    assert look(train, max_vocab_size=5, min_count=3)[1] == []


def test_classes_of_one_row_are_named(look: Any) -> None:
    _, lines = look([("a", "x"), ("b", "x"), ("c", "[/red]")])
    assert lines == ["classes with one row in train: '[/red]'"]
    _, lines = look([("a", f"c{i}") for i in range(8)])
    assert lines[-1].endswith("'c4' and 3 more")


def test_fewer_rows_of_validation_than_classes_are_warned_of(
    write: Write, make_config: MakeConfig
) -> None:
    rows = [(f"{label} {i}", label) for i in range(4) for label in "xyz"]
    few = "validation: 2 rows for 3 classes, too few to tell epochs apart; "
    for validation, said in (
        (0.2, [f"{few}hold out more (data.validation), or see fit --folds 5"]),
        (0.3, []),  # 4 rows
        ({"fold": 1, "of": 6}, [f"{few}fewer folds hold out more"]),
    ):
        config = make_config(train=write("train.tsv", rows), validation=validation)
        data = prepare(config, cache_folder=None)
        lines = warnings(data, summarize(data), config.data)
        assert [line for line in lines if line.startswith("validation: ")] == said


def test_what_the_policies_did_is_counted(look: Any) -> None:
    train = [*PAIR * 2, ("a b c", "x"), ("", "y")]
    assert look(train, max_length=2, empty="drop")[1] == [
        "train: cut 1 sequence at data.max_length",
        "train: left out 1 empty sequence",
    ]
    assert look(train, empty="unk")[1] == ["train: read 1 empty sequence as one <unk>"]


def test_counts_of_a_file_that_rows_are_held_out_of_say_so(look: Any) -> None:
    train = [(f"a b{i} c", "xy"[i % 2]) for i in range(10)]
    assert look(train, max_length=2, validation=0.2)[1][:1] == [
        "train with its held-out rows: cut 10 sequences at data.max_length"
    ]


def test_many_unknown_labels_are_counted_after_the_first(look: Any) -> None:
    lines = look(PAIR * 2, [("one", "x"), *[(f"t{i}", "z") for i in range(8)]])[1]
    assert len([line for line in lines if "doesn't occur in train" in line]) == 5
    assert lines[-1] == "test: 3 more rows with labels that train lacks"


def test_padding_shares_compare_random_batches_with_buckets(
    write: Write, make_config: MakeConfig
) -> None:
    rows = [("w " * (1 + 7 * i % 50), "xy"[i % 2]) for i in range(400)]
    config = make_config(train=write("train.tsv", rows))
    data = prepare(config, cache_folder=None)
    without, within = padding_shares(data, BatchingConfig(batch_size=16), 0)
    assert 0 <= within < 0.1 < 0.3 < without < 1


def test_training_without_validation_is_warned_of(write: Write, make_config: MakeConfig) -> None:
    rows = [(f"{text} {i}", label) for i in range(3) for text, label in PAIR]
    train, other = write("train.tsv", rows), write("other.tsv", [("one", "x")])
    for keys, warned in (({}, True), ({"validation": other}, False), ({"validation": 0.4}, False)):
        config = make_config(train=train, **keys)
        data = prepare(config, cache_folder=None)
        lines = warnings(data, summarize(data), config.data)
        assert any("data.validation: 0.1" in line for line in lines) == warned
