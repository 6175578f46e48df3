from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.data.store import SequenceStore
from tests.helpers.stores import StoreBuilder


@given(
    st.lists(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=6), max_size=12),
    st.randoms(use_true_random=False),
)
def test_what_was_added_comes_back_in_any_order(
    sequences: list[list[int]], chance: random.Random
) -> None:
    builder = StoreBuilder()
    for row, ids in enumerate(sequences):
        builder.add_ids(ids, row % 3, 10 * row)
    store = builder.build()
    assert len(store) == len(sequences)
    assert store.lengths.tolist() == [len(ids) for ids in sequences]
    assert store.lengths is store.lengths
    rows = list(range(len(sequences))) * 2
    chance.shuffle(rows)
    picked = store.__getitems__(np.array(rows, dtype=np.int64))
    for place, row in enumerate(rows):
        ids, label = picked[place]
        assert (ids.tolist(), label, picked.lines[place]) == (sequences[row], row % 3, 10 * row)


def test_feature_vectors_come_back_with_their_channels() -> None:
    builder = StoreBuilder(channels=2)
    first = np.arange(6, dtype=np.float32).reshape(3, 2)
    transposed = np.arange(4, dtype=np.float64).reshape(2, 2).T
    builder.add_features(first, 0, 1)
    builder.add_features(transposed.astype(np.float32), 1, 2)
    store = builder.build()
    assert store.values.dtype == np.float32
    assert (store[0][0] == first).all()
    assert (store[1][0] == transposed).all()


@pytest.mark.parametrize(
    ("offsets", "labels", "complaint"),
    [
        ([0, 2, 5], [0, 1, 2], "3 labels need 4 offsets"),
        ([0, 2, 4], [0, 1], "offsets go from 0 to 4, expected 0 to 5"),
        ([1, 2, 5], [0, 1], "offsets go from 1 to 5"),
        ([0, 0, 5], [0, 1], "row 0 has length 0, expected at least 1"),
        ([0, 6, 5], [0, 1], "row 1 has length -1"),
    ],
)
def test_offsets_that_do_not_fit_are_refused(
    offsets: list[int], labels: list[int], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        SequenceStore(
            np.zeros(5, dtype=np.int32),
            np.array(offsets),
            np.array(labels),
            np.ones(len(labels), dtype=np.int64),
        )
