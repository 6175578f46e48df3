"""Buckets of character n-grams: a stated hash, and the unknown words of a batch."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pytest

from seqtrain.data.batch import spellings
from seqtrain.data.spelling import BUCKETS, MOST_GRAMS, buckets_of, word_grams

WORDS = ["cab", "xylophone", "", "zoo"]


@pytest.mark.parametrize(
    "numbers", [[-1, 3, -1, 0, 3], [2, 1], [-1, -1], [[0, -1], [3, 3]]], ids=str
)
def test_each_step_leads_to_the_ngrams_of_its_word(numbers: list[int]) -> None:
    array = np.array(numbers, dtype=np.int32)
    found = spellings(array, word_grams(WORDS, 3, 5))
    assert found.numbers.shape == array.shape
    for old, new in zip(array.ravel().tolist(), found.numbers.ravel().tolist(), strict=True):
        if old < 0:
            assert new == -1
            continue
        start, stop = found.grams.offsets[new : new + 2].tolist()
        assert found.grams.buckets[start:stop].tolist() == buckets_of(WORDS[old], 3, 5)
    held = {number for number in array.ravel().tolist() if number >= 0}
    assert len(found.grams.offsets) == len(held) + 1


def test_the_ngrams_of_the_marked_word() -> None:
    grams = ["<né", "née", "ée>", "<née", "née>", "<née>"]
    assert buckets_of("née", 3, 5) == [crc32(gram.encode()) % 32768 for gram in grams]


@pytest.mark.parametrize(("word", "number"), [("", 0), ("a", 1), ("ab", 3), ("\ud800", 1)])
def test_short_words(word: str, number: int) -> None:
    assert len(buckets_of(word, 3, 5)) == number


def test_buckets_stay_as_they_are() -> None:
    """Saved models rely on them."""
    assert buckets_of("th", 3, 4) == [4222, 26010, 9357]


def test_a_word_without_end_has_a_bounded_number() -> None:
    assert len(buckets_of("x" * 10**6, 3, 5)) == MOST_GRAMS


def test_words_side_by_side() -> None:
    words = ["", "bank", "a"]
    grams = word_grams(words, 3, 5)
    assert len(grams) == 3
    for i, word in enumerate(words):
        own = grams.buckets[grams.offsets[i] : grams.offsets[i + 1]]
        assert own.tolist() == buckets_of(word, 3, 5)
    assert grams.buckets.max() < BUCKETS
