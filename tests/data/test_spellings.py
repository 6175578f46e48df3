"""Unknown words of a batch: numbered anew, with their own n-grams."""

from __future__ import annotations

import numpy as np
import pytest

from seqtrain.data.spellings import spellings
from seqtrain.data.subwords import buckets_of, word_grams

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
