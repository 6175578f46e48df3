"""model.subwords: words that the vocabulary lacks are <unk>, and their spelling stands beside."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from seqtrain.api.prediction_input import memory_parts
from seqtrain.config import Config, config_from_mapping
from seqtrain.sequences.columns import tokens
from seqtrain.sequences.dataset import PreparedData, prepare
from seqtrain.sequences.encoder import encode_for_prediction
from seqtrain.sequences.store import SequenceStore, joined_stores
from seqtrain.sequences.vocabulary import MOST_GRAMS, UNK, word_grams
from tests.helpers.spelling import buckets_of

TRAIN = [("common rare", "x"), ("common odd common", "y"), ("common", "x"), ("rare2 common", "y")]


def ready(sizes: list[int] | None = None, **data: Any) -> PreparedData:
    config: Config = config_from_mapping(
        {
            "data": {"sequence": "text", "label": "label", **data},
            "model": {"subwords": sizes or [3, 5]},
        }
    )
    return prepare(config)


def spelled_out(store: SequenceStore, row: int) -> list[list[int] | None]:
    """Return the buckets of the spelling of each step, or None if it has none."""
    numbers = store.spellings[store.offsets[row] : store.offsets[row + 1]]
    offsets = store.words.offsets
    return [
        None if i < 0 else store.words.buckets[offsets[i] : offsets[i + 1]].tolist()
        for i in numbers.tolist()
    ]


def test_words_of_train_and_of_other_files(write):
    test = write("test.tsv", [("new common rare new", "x"), ("common", "y")])
    data = ready(train=write("train.tsv", TRAIN), test=test, min_count=2)
    train, other = data.splits["train"], data.splits["test"]
    assert train.values.tolist() == [2, UNK, 2, UNK, 2, 2, UNK, 2]
    assert spelled_out(train, 0) == [None, buckets_of("rare", 3, 5)]
    assert spelled_out(train, 1) == [None, buckets_of("odd", 3, 5), None]
    assert other.values.tolist() == [UNK, 2, UNK, UNK, 2]
    new, rare = buckets_of("new", 3, 5), buckets_of("rare", 3, 5)
    assert spelled_out(other, 0) == [new, None, rare, new]
    assert spelled_out(other, 1) == [None]


def test_spellings_stay_beside_their_steps_where_splits_are_joined(write):
    store = ready(train=write("train.tsv", TRAIN), min_count=2).splits["train"]
    both = [store, replace(store, words=word_grams(["odd", "rare3", "x"], 3, 5))]
    expected = [spelled_out(one, row) for one in both for row in range(len(one))]
    assert [spelled_out(joined_stores(both), row) for row in range(8)] == expected


def test_each_chunk_numbers_its_own(write):
    preprocessing = ready(train=write("train.tsv", TRAIN)).preprocessing
    for word in ("zebra", "yak"):
        parts, _ = memory_parts([f"common {word}"], preprocessing)
        ((_, store),) = encode_for_prediction(preprocessing, parts, "x")
        assert spelled_out(store, 0) == [None, buckets_of(word, 3, 5)]
        assert len(store.words) == 1


def test_beyond_a_number_unknown_words_are_unk_alone(write, monkeypatch):
    monkeypatch.setattr(tokens, "MOST_SPELLINGS", 2)
    preprocessing = ready(train=write("train.tsv", TRAIN)).preprocessing
    parts, _ = memory_parts(["a1 b1 c1 a1"], preprocessing)
    ((_, store),) = encode_for_prediction(preprocessing, parts, "x")
    found = spelled_out(store, 0)
    assert store.values.tolist() == [UNK] * 4
    assert found == [buckets_of("a1", 3, 5), buckets_of("b1", 3, 5), None, found[0]]


def test_buckets_stay_as_they_are():
    """Saved models rely on them."""
    assert word_grams(["th"], 3, 4).buckets.tolist() == [4222, 26010, 9357]


@pytest.mark.parametrize("sizes", [(1, 1), (2, 6), (5, 9)])
def test_words_of_any_characters_have_the_buckets_of_their_ngrams(sizes):
    words = ["", "a", "né", "中文字", "😀x", "\ud800a", "", "abcdefghijkl" * 9]
    found = word_grams(words, *sizes)
    for word, own in zip(words, np.split(found.buckets, found.offsets[1:-1]), strict=True):
        assert own.tolist() == buckets_of(word, *sizes)


def test_a_word_without_end_has_a_bounded_number():
    found, short = word_grams(["x" * 10**6, "a"], 3, 5), buckets_of("x" * 2000, 3, 5)
    assert np.diff(found.offsets).tolist() == [MOST_GRAMS, 1]
    assert found.buckets[:MOST_GRAMS].tolist() == short[:MOST_GRAMS]
