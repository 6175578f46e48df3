"""The sample that a check takes, and batches padded with other values."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.api.check import (
    SAMPLE_LENGTH,
    SAMPLE_ROWS,
    SAMPLE_STEPS,
    collate_padded,
    first_rows,
    sample,
)
from seqtrain.data.batch import collate
from tests.helpers.examples import examples
from tests.helpers.stores import StoreBuilder


@examples(60)
@given(st.lists(st.integers(1, 30_000), min_size=1, max_size=400))
def test_a_sample_holds_both_extremes_within_its_limits(lengths: list[int]) -> None:
    drawn = sample(np.array(lengths))
    assert len(set(drawn.tolist())) == len(drawn) <= SAMPLE_ROWS
    found = np.array(lengths)[drawn]
    assert np.minimum(found, SAMPLE_LENGTH).sum() <= SAMPLE_STEPS
    assert found.max() == max(lengths)
    assert len(drawn) == 1 or found.min() == min(lengths)


@examples(60)
@given(st.lists(st.integers(1, 30_000), min_size=1, max_size=400))
def test_the_first_rows_are_as_many_as_the_limits_allow(lengths: list[int]) -> None:
    drawn = first_rows(np.array(lengths))
    counted = np.minimum(lengths, SAMPLE_LENGTH)
    assert drawn.tolist() == list(range(len(drawn)))
    assert counted[drawn].sum() <= SAMPLE_STEPS
    more = counted[: len(drawn) + 1].sum()
    assert len(drawn) in (len(lengths), SAMPLE_ROWS) or more > SAMPLE_STEPS


def test_little_data_is_taken_whole() -> None:
    assert sorted(sample(np.arange(1, 41))) == list(range(40))


@pytest.mark.parametrize("channels", [0, 2])
def test_other_padding_reaches_the_model_and_leaves_the_real_steps(channels: int) -> None:
    builder = StoreBuilder(channels)
    for length in (2, 5, 1):
        if channels:
            builder.add_features(np.full((length, 2), float(length)), 0, 1)
        else:
            builder.add_ids(range(1, length + 1), 0, 1)
    store = builder.build()
    plain, padded = collate(store), collate_padded(store, value=9)
    assert isinstance(padded.inputs, torch.Tensor)
    assert bool((padded.inputs[0, 2:] == 9).all())
    assert torch.equal(plain.packed.data, padded.packed.data)
    assert torch.equal(plain.packed.batch_sizes, padded.packed.batch_sizes)
