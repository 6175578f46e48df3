"""A closer look at data: what is repeated, contradictory, rare, unseen, refused or confusable."""

from collections.abc import Callable
from typing import Any

import pytest

from seqtrain.data.inspection import Inspection, mixed_words

Rows = list[tuple[str, str]]
BASE = [(f"word{i} two three", "xy"[i % 2]) for i in range(10)]


@pytest.fixture
def look(write, make_config) -> Callable[..., Inspection]:
    def run(train: Rows, test: Rows | None = None, **keys: Any) -> Inspection:
        if test is not None:
            keys["test"] = write("test.tsv", test)
        return Inspection(make_config(train=write("train.tsv", train), **keys), cache_folder=None)

    return run


def test_rows_that_come_again_are_named_by_split_and_line(look):
    train = [*BASE, ("a b", "x"), ("a b", "x"), ("A, B!", "y"), ("call 12", "x"), ("call 7", "y")]
    found = look(train, [("word3 two three", "y"), ("a b", "y"), ("new", "x")])
    assert found.duplicates == [
        [("train", 5), ("test", 2)],
        [("train", 12), ("train", 13), ("test", 3)],
    ]
    assert found.near_duplicates == [
        [("train", 12), ("train", 14)],
        [("train", 15), ("train", 16)],
    ]
    assert found.conflicts == [([("train", 12), ("train", 13), ("test", 3)], ["x", "y"])]


def test_labels_that_are_rare_or_unseen(look):
    found = look([*BASE, ("z", "rare")], [("one", "x"), ("two", "sideways")])
    assert found.rare_labels == {"rare": 1}
    assert found.unseen_labels == {"test": ["sideways"]}
    assert found.labels["train"] == {"rare": 1, "x": 5, "y": 5}


def test_lengths_are_those_before_the_cut(look):
    found = look([*BASE, ("w " * 50, "x")], max_length=3)
    assert found.lengths["train"] == [3, 3, 3, 3, 3, 50, 50, 50]
    assert found.cut == {"train": (1, 1 / 11)}
    assert found.data.splits["train"].lengths.max() == 3


def test_characters_and_words_that_look_alike(look):
    found = look([*BASE, ("don't", "x"), ("don’t", "y"), ("bаnk", "x"), ("привет", "y")])
    assert {"'": 1, "’": 1} in found.alike
    assert found.mixed_words == {"bаnk": 1}
    assert mixed_words("банк and bank") == []
