"""The batch plan, checked for any lengths and settings."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.config.schema import BatchingConfig
from seqtrain.sequences.plan import plan_epoch, plan_epoch_of_groups, plan_in_order_of_length

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=300).map(
    lambda values: np.array(values, dtype=np.int64)
)
SETTINGS = st.builds(
    BatchingConfig,
    batch_size=st.integers(1, 40),
    max_tokens=st.none() | st.integers(1, 500),
    bucketing=st.booleans(),
)
SEEDS = st.integers(0, 2**63 - 1)
EPOCHS = st.integers(0, 3)


def check_cover(batches: list[np.ndarray], lengths: np.ndarray, batching: BatchingConfig) -> None:
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for rows in batches:
        if batching.max_tokens is None:
            assert len(rows) <= batching.batch_size
        else:
            assert len(rows) == 1 or len(rows) * lengths[rows].max() <= batching.max_tokens


@given(LENGTHS, SETTINGS, SEEDS, EPOCHS)
def test_every_example_comes_exactly_once_an_epoch_within_the_limits(
    lengths, batching, seed, epoch
):
    batches = plan_epoch(lengths, batching, seed=seed, epoch=epoch)
    check_cover(batches, lengths, batching)
    if batching.max_tokens is None:
        sizes = sorted(map(len, batches), reverse=True)
        assert all(size == batching.batch_size for size in sizes[:-1])


@given(LENGTHS, SETTINGS)
def test_evaluation_covers_everything_once_longest_first(lengths, batching):
    batches = plan_in_order_of_length(lengths, batching)
    check_cover(batches, lengths, batching)
    order = np.concatenate(batches)
    assert (np.diff(lengths[order]) <= 0).all()
    same = np.diff(lengths[order]) == 0
    assert (np.diff(order)[same] > 0).all(), "equal lengths stay in input order"
    if batching.max_tokens is not None:
        for rows, following in pairwise(batches):
            larger = (len(rows) + 1) * max(lengths[rows].max(), lengths[following[0]])
            assert larger > batching.max_tokens, "a batch takes what fits"


@given(LENGTHS, SETTINGS, SEEDS)
def test_epoch_0_begins_with_the_largest_batch(lengths, batching, seed):
    batches = plan_epoch(lengths, batching, seed=seed, epoch=0)
    sizes = [(len(rows) * lengths[rows].max(), lengths[rows].max()) for rows in batches]
    assert sizes[0] == max(sizes)


GROUPED = LENGTHS.flatmap(
    lambda lengths: st.tuples(
        st.just(lengths),
        st.lists(st.integers(-1, 9), min_size=len(lengths), max_size=len(lengths)).map(np.array),
    )
)


@given(GROUPED, SETTINGS, SEEDS, EPOCHS)
def test_every_row_of_a_group_comes_in_a_later_batch_than_the_row_before(
    grouped, batching, seed, epoch
):
    lengths, groups = grouped
    plans = [
        plan_epoch_of_groups(lengths, groups, batching, seed=seed, epoch=epoch),
        plan_in_order_of_length(lengths, batching, groups),
    ]
    for batches in plans:
        check_cover(batches, lengths, batching)
        batch_of_row = np.empty(len(lengths), dtype=int)
        for number, rows in enumerate(batches):
            batch_of_row[rows] = number
        for group in set(groups.tolist()) - {-1}:
            assert (np.diff(batch_of_row[groups == group]) > 0).all()
    again = plan_epoch_of_groups(lengths, groups, batching, seed=seed, epoch=epoch)
    assert [rows.tolist() for rows in again] == [rows.tolist() for rows in plans[0]]
