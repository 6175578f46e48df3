"""Buckets of a word's character n-grams: a stated hash, equal everywhere."""

from __future__ import annotations

from zlib import crc32

import pytest

from seqtrain.data.subwords import BUCKETS, MOST_GRAMS, buckets_of, word_grams


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
