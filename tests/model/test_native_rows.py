"""Distinct ids are torch.unique's; Adam on touched rows is AdamW's; idle steps are made up for."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.model.engines.native import adam_idle, adam_rows, distinct, why_not

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


def make_state(size: int, *, step: int) -> dict[str, torch.Tensor]:
    mean, square = torch.randn(9, size), torch.rand(9, size)
    done = torch.arange(9) % 4
    return {
        "exp_avg": mean,
        "exp_avg_sq": square,
        "up_to_date": done,
        "step": torch.tensor(float(step)),
    }


@needs_library
def test_adam_on_all_rows_is_adamw() -> None:
    weight = torch.randn(9, 37)
    expected = weight.clone().requires_grad_()
    keys = {"lr": 0.1, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.2}
    adamw = torch.optim.AdamW([expected], **keys)
    state = {"exp_avg": torch.zeros(9, 37), "exp_avg_sq": torch.zeros(9, 37)}
    state |= {"up_to_date": torch.zeros(9, dtype=torch.int64)}
    for step in range(1, 6):
        expected.grad = torch.randn(9, 37)
        adamw.step()
        state["step"] = torch.tensor(float(step))
        adam_rows(weight, state, torch.arange(9), expected.grad, **keys)
    torch.testing.assert_close(weight, expected.detach(), rtol=1e-5, atol=1e-5)
    assert state["up_to_date"].tolist() == [5] * 9


@needs_library
@pytest.mark.parametrize("idle", [True, False])
def test_adam_leaves_other_rows_alone(idle: bool) -> None:
    weight, state = torch.randn(9, 4), make_state(4, step=5)
    before = [tensor.clone() for tensor in (weight, *state.values())]
    touched = torch.tensor([1, 8])
    if idle:
        adam_idle(weight, state, touched, lr=0.1)
    else:
        adam_rows(weight, state, touched, torch.randn(2, 4), lr=0.1)
    for tensor, old in zip((weight, *state.values()), before, strict=True):
        if tensor.ndim:
            assert (tensor != old).view(9, -1).all(1).nonzero().flatten().tolist() == [1, 8]
    assert state["up_to_date"][touched].tolist() == [5, 5]


@needs_library
def test_idle_steps_are_those_of_dense_adamw_without_gradient() -> None:
    """Late in training, where the bias corrections stand still and eps is small beside sqrt(v)."""
    weight, state = torch.randn(9, 5), make_state(5, step=10_000)
    state["up_to_date"] = 10_000 - torch.tensor([0, 1, 2, 5, 10, 50, 100, 1000, 10_000])
    keys = {"lr": 0.01, "weight_decay": 0.02}
    expected = weight.clone()
    mean, square = state["exp_avg"].clone(), state["exp_avg_sq"].clone()
    for row, done in enumerate(state["up_to_date"].tolist()):
        for _ in range(done, 10_000):
            mean[row] *= 0.9
            square[row] *= 0.999
            expected[row] *= 1 - 0.01 * 0.02
            expected[row] -= 0.01 * mean[row] / (square[row].sqrt() + 1e-8)
    adam_idle(weight, state, torch.arange(9), **keys)
    torch.testing.assert_close(weight, expected, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(state["exp_avg"], mean)
    torch.testing.assert_close(state["exp_avg_sq"], square, rtol=1e-4, atol=1e-6)


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
    with pytest.raises(ValueError, match=says):
        adam_rows(
            *(torch.zeros(9, 4), make_state(4, step=4), torch.tensor(rows)),
            torch.zeros(gradient),
            lr=0.1,
        )


@needs_library
@pytest.mark.parametrize(
    ("name", "wrong", "error"),
    [
        ("exp_avg", torch.zeros(8, 4), ValueError),
        ("exp_avg_sq", torch.zeros(4, 9).T, ValueError),
        ("exp_avg", torch.zeros(9, 4).double(), TypeError),
        ("up_to_date", torch.zeros(8, dtype=torch.int64), ValueError),
        ("up_to_date", torch.zeros(9), TypeError),
    ],
)
def test_adam_refuses_a_state_that_does_not_fit(
    name: str, wrong: torch.Tensor, error: type[Exception]
) -> None:
    state = {**make_state(4, step=4), name: wrong}
    with pytest.raises(error, match=name):
        adam_idle(torch.zeros(9, 4), state, torch.tensor([1]), lr=0.1)
