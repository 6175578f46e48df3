"""A batch in parts: every row once, balanced, and the gradient of the whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtrain.data.batch import collate
from seqtrain.data.store import SequenceStore
from seqtrain.training.parts import part_of, rows_of_parts

LENGTHS = st.lists(st.integers(1, 40) | st.just(5000), min_size=1, max_size=40)


@settings(max_examples=200)
@given(LENGTHS, st.integers(1, 9))
def test_every_row_is_in_one_part_and_parts_are_balanced(lengths: list[int], count: int) -> None:
    steps = torch.tensor(lengths)
    parts = rows_of_parts(steps, count)
    assert len(parts) == count
    assert sorted(torch.cat(parts).tolist()) == list(range(len(lengths)))
    assert all(part.tolist() == sorted(part.tolist()) for part in parts)
    sizes = [int(steps[part].sum()) for part in parts]
    assert max(sizes) - min(sizes) <= max(lengths)


@pytest.mark.slow
@settings(max_examples=2000)
@given(LENGTHS, st.integers(1, 64))
def test_two_thousand_plans(lengths: list[int], count: int) -> None:
    test_every_row_is_in_one_part_and_parts_are_balanced.hypothesis.inner_test(  # type: ignore
        lengths, count
    )


@pytest.mark.parametrize("sort", ["collate", "module"])
def test_a_part_is_what_its_rows_alone_are(
    make_store: Callable[..., SequenceStore], sort: str
) -> None:
    store = make_store(9)
    whole = collate(store, sort)
    rows = torch.tensor([0, 3, 4, 8])
    part = part_of(whole, rows)
    alone = collate(store.__getitems__(part.examples), sort)
    assert torch.equal(part.input_ids, alone.input_ids)
    assert torch.equal(part.packed.data, alone.packed.data)
    assert torch.equal(part.packed.batch_sizes, alone.packed.batch_sizes)
    assert torch.equal(part.lengths, alone.lengths)
    assert torch.equal(part.labels, alone.labels)
