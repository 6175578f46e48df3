"""The loop over batches: what comes back, in which order, and what is said where memory ends."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.config.schema import BatchingConfig
from seqtrain.data.batch import Batch, collate
from seqtrain.data.batches import map_batches
from seqtrain.data.plan import plan_epoch
from seqtrain.data.store import SequenceStore
from seqtrain.errors import RunError
from tests.helpers.stores import StoreBuilder

CPU = torch.device("cpu")


def make_store(lengths: list[int]) -> SequenceStore:
    """Return sequences whose ids are their row number."""
    builder = StoreBuilder()
    for row, length in enumerate(lengths):
        builder.add_ids([row] * length, row, row + 1)
    return builder.build()


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=40),
    st.integers(1, 9),
    st.sampled_from(["collate", "module"]),
)
def test_restored_results_stand_beside_their_examples(
    lengths: list[int], size: int, sort: str
) -> None:
    store = make_store(lengths)
    plan = plan_epoch(store.lengths, BatchingConfig(batch_size=size), seed=0, epoch=0)
    found = torch.full((len(store),), -1)
    for batch, first in map_batches(
        lambda batch: batch.input_ids[:, 0], store, plan, CPU, collate=partial(collate, sort=sort)
    ):
        found[torch.from_numpy(batch.examples)] = batch.restore(first)
    assert found.tolist() == list(range(len(store)))


def test_nothing_is_computed_before_it_is_asked_for() -> None:
    asked: list[int] = []
    batches = map_batches(
        lambda batch: len(batch.examples),
        make_store([1, 2, 3]),
        [np.array([0]), np.array([2, 1])],
        CPU,
        before_batch=lambda: asked.append(len(asked)),
    )
    assert asked == []
    assert next(batches)[1] == 1
    assert asked == [0]
    assert next(batches)[1] == 2


def fail(error: Exception, batch: Batch) -> None:
    raise error


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("[enforce fail] . DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("MPS backend out of memory (MPS allocated: 1 GB)"),
    ],
)
def test_exhausted_memory_is_told_with_the_batch(error: Exception) -> None:
    batches = map_batches(
        partial(fail, error), make_store([4, 9, 2]), [np.arange(3)], CPU, lower="data.max_length"
    )
    with pytest.raises(RunError) as caught:
        next(batches)
    assert str(caught.value) == (
        "memory ran out on 3 sequences, the longest of 9 steps; lower data.max_length"
    )


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("CUDA error: an illegal memory access was encountered"),
        RuntimeError("unsupported operation: some elements refer to a single memory location"),
        ValueError("memory"),
    ],
)
def test_other_errors_that_say_memory_pass(error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)):
        next(map_batches(partial(fail, error), make_store([4]), [np.arange(1)], CPU))
