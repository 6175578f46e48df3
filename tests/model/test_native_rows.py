"""Distinct ids are torch.unique's; Adam on touched rows is AdamW's, and leaves the others alone."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.model.native import adam_rows, distinct, why_not

needs_library = pytest.mark.skipif(bool(why_not()), reason=why_not())


@needs_library
@given(st.lists(st.integers(0, 19), min_size=0, max_size=50))
def test_distinct_is_unique(ids: list[int]) -> None:
    expected = torch.unique(torch.tensor(ids, dtype=torch.int64), return_inverse=True)
    for ours, theirs in zip(distinct(torch.tensor(ids).long(), 20), expected, strict=True):
        assert torch.equal(ours, theirs)


@needs_library
@pytest.mark.parametrize("wrong", [-1, 20, 2**40])
def test_distinct_refuses_ids_outside_the_vocabulary(wrong: int) -> None:
    with pytest.raises(ValueError, match="must be 0 to 19"):
        distinct(torch.tensor([3, wrong, 5]), 20)


@needs_library
def test_adam_on_all_rows_is_adamw() -> None:
    weight = torch.randn(9, 37)
    expected = weight.clone().requires_grad_()
    adamw = torch.optim.AdamW([expected], lr=0.1, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.2)
    moments = torch.zeros(2, 9, 37)
    for step in range(1, 6):
        expected.grad = torch.randn(9, 37)
        adamw.step()
        adam_rows(
            *(weight, moments[0], moments[1], torch.arange(9), expected.grad),
            step=step,
            lr=0.1,
            betas=(0.8, 0.95),
            eps=1e-3,
            weight_decay=0.2,
        )
    torch.testing.assert_close(weight, expected.detach(), rtol=1e-5, atol=1e-5)


@needs_library
def test_adam_leaves_other_rows_alone() -> None:
    weight, moments = torch.randn(9, 4), torch.ones(2, 9, 4)
    before = weight.clone()
    touched = torch.tensor([1, 8])
    adam_rows(weight, moments[0], moments[1], touched, torch.randn(2, 4), step=3, lr=0.1)
    changed = (weight != before).all(1)
    assert changed.nonzero().flatten().tolist() == [1, 8]
    assert (moments != 1).all(2).any(0).nonzero().flatten().tolist() == [1, 8]


@needs_library
@pytest.mark.parametrize(
    ("rows", "gradient", "says"),
    [
        ([1, 9], (2, 4), "0 to 8"),
        ([-1, 2], (2, 4), "0 to 8"),
        ([1, 1], (2, 4), "ascend"),
        ([1, 2], (2, 5), "gradient"),
        ([1, 2], (3, 4), "gradient"),
    ],
)
def test_adam_refuses_rows_that_do_not_fit(
    rows: list[int], gradient: tuple[int, int], says: str
) -> None:
    weight, mean, square = torch.zeros(3, 9, 4)
    with pytest.raises(ValueError, match=says):
        adam_rows(weight, mean, square, torch.tensor(rows), torch.zeros(gradient), step=1, lr=0.1)
