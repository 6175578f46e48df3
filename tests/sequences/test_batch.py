"""A batch against torch's own padding and packing, and the loop over batches."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import pack_sequence, pad_sequence
from torch.utils.data import ConcatDataset, DataLoader

from seqtrain.config.schema import BatchingConfig
from seqtrain.errors import DataError
from seqtrain.sequences.batch import collate, sort_and_pack
from seqtrain.sequences.plan import plan_epoch
from seqtrain.sequences.store import SequenceStore
from tests.helpers.stores import store_of


def make_store(lengths: list[int], channels: int = 0) -> SequenceStore:
    draw = np.random.default_rng(0)
    rows = [
        draw.normal(size=(n, channels)) if channels else draw.integers(2, 100, n) for n in lengths
    ]
    return store_of(rows, range(len(rows)))


@given(st.lists(st.integers(1, 12), min_size=1, max_size=20), st.sampled_from([0, 1, 3]))
def test_it_equals_torchs_padding_and_packing(lengths, channels):
    store = make_store(lengths, channels)
    batch = collate(store)
    dtype: Any = torch.float32 if channels else torch.int64
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    ordered = [torch.tensor(store[row][0]).to(dtype) for row in order]

    assert torch.equal(batch.input_ids, pad_sequence(ordered, batch_first=True))
    packed = pack_sequence(ordered)
    assert torch.equal(batch.packed.data, packed.data)
    assert torch.equal(batch.packed.batch_sizes, packed.batch_sizes)
    assert torch.equal(collate(store, "module").packed.data, packed.data)
    assert batch.input_ids.dtype == dtype
    assert batch.lengths.dtype == torch.int64
    assert batch.lengths.tolist() == [lengths[row] for row in order]
    assert batch.labels.tolist() == order
    assert batch.sorted_indices.tolist() == order
    assert batch.restore(batch.labels).tolist() == list(range(len(lengths)))
    assert batch.restore(batch.labels.tolist()) == batch.examples.tolist()


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([2, 0, 1], "row 1: found length 0; expected 1 to 4"),
        ([2, 1, 5], "row 2: found length 5; expected 1 to 4"),
        ([2, 1], r"lengths: found shape \(2,\); expected \(3,\)"),
        ([2.0, 1.0, 3.0], "lengths: found torch.float32 on cpu; expected torch.int64 on cpu"),
    ],
)
def test_lengths_that_do_not_fit_never_reach_torch(lengths, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        sort_and_pack(torch.ones(3, 4, dtype=torch.int64), torch.tensor(lengths))


def test_a_torch_loader_takes_store_plan_and_collate_as_they_are():
    store = make_store([5, 1, 2, 7, 3])
    plan = plan_epoch(store.lengths, BatchingConfig(batch_size=2), seed=0, epoch=0)
    loader = DataLoader(
        store,
        batch_sampler=[rows.tolist() for rows in plan],
        collate_fn=collate,
        generator=torch.Generator(),
    )
    labels = [batch.restore(batch.labels).tolist() for batch in loader]
    assert labels == [rows.tolist() for rows in plan]


@pytest.mark.parametrize("sort", ["collate", "module"])
def test_a_torch_loader_takes_several_stores(sort):
    stores = [make_store([5, 1, 2]), make_store([7, 3])]
    loader = DataLoader(
        ConcatDataset(stores),
        batch_size=4,
        collate_fn=partial(collate, sort=sort),
        generator=torch.Generator(),
    )
    batches = [*loader]
    lengths = [batch.restore(batch.lengths).tolist() for batch in batches]
    assert lengths == [[5, 1, 2, 7], [3]]
    first = batches[0].restore(batches[0].input_ids)
    assert first[3].tolist() == stores[1][0][0].tolist()


NOTHING = store_of([[1]]).selection(np.arange(0))


@pytest.mark.parametrize("rows", [[], NOTHING, [([1, 2], 0)], ["text"]])
def test_what_is_no_batch_is_refused_in_a_line(rows):
    with pytest.raises(DataError, match=r"^collate: found .*; expected "):
        collate(rows)
