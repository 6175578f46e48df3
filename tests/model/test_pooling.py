"""Pooling of packed steps against masked, padded arithmetic."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from seqtrain.model.pooling import (
    StepPooling,
    join_directions,
    last_of_padded,
    last_valid_state,
    pool_at_once,
)

LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=8).map(
    lambda values: sorted(values, reverse=True)
)


def padded_pooling(pooling: StepPooling, states: Tensor, valid: Tensor) -> Tensor:
    """Pool (B, T, H) under a mask (B, T)."""
    if pooling.how == "mean":
        return (states * valid[..., None]).sum(1) / valid.sum(1, keepdim=True)
    if pooling.how == "max":
        return states.masked_fill(~valid[..., None], -torch.inf).amax(1)
    scores = pooling.score(torch.tanh(pooling.project(states))).squeeze(-1)
    weights = torch.softmax(scores.masked_fill(~valid, -torch.inf), 1)
    return (weights[..., None] * states).sum(1)


@given(LENGTHS, st.sampled_from(["mean", "max", "attention"]), st.sampled_from([1.0, 300.0]))
def test_it_equals_masked_padded_pooling_with_its_gradient(
    lengths: list[int], how: str, scale: float
) -> None:
    generator = torch.Generator().manual_seed(len(lengths))
    sizes = torch.tensor(lengths)
    states = scale * torch.randn(len(lengths), lengths[0], 3, generator=generator)
    states.requires_grad_()
    valid = torch.arange(lengths[0]) < sizes[:, None]
    pooling = StepPooling(how, 3)
    packed = pack_padded_sequence(states, sizes, batch_first=True)
    pooled = pool_at_once(pooling, packed.data, packed.batch_sizes)
    expected = padded_pooling(pooling, states, valid)
    torch.testing.assert_close(pooled, expected, rtol=1e-5, atol=1e-5 * scale)
    weights = torch.randn(pooled.shape, generator=generator)
    gradients = [
        torch.autograd.grad((result * weights).sum(), states)[0] for result in (pooled, expected)
    ]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4 * scale)
    assert (gradients[0][~valid] == 0).all()


def test_equal_largest_steps_share_the_gradient() -> None:
    """Those of an earlier segment too."""
    states = torch.tensor([[1.0], [2.0], [0.0], [2.0], [1.0]], requires_grad=True)
    pooling = StepPooling("max", 1)
    pool = pooling.begin(2, like=states)
    for part, sizes in ((states[:2], [2]), (states[2:], [2, 1])):
        pool = pooling.add(pool, part, torch.tensor(sizes))
    pooling.finish(pool).backward(torch.tensor([[4.0], [6.0]]))
    assert states.grad is not None
    assert states.grad.flatten().tolist() == [2.0, 3.0, 0.0, 3.0, 2.0]


def test_long_means_are_summed_in_full_precision() -> None:
    states = torch.ones(5000, 1, dtype=torch.bfloat16)
    pooled = pool_at_once(StepPooling("mean", 1), states, torch.ones(5000, dtype=torch.int64))
    assert pooled.item() == pytest.approx(1.0)


@given(LENGTHS.flatmap(st.permutations), st.booleans())
def test_the_last_valid_state_is_the_same_in_three_ways(
    lengths: list[int], bidirectional: bool
) -> None:
    gru = torch.nn.GRU(2, 3, num_layers=2, bidirectional=bidirectional, batch_first=True)
    sizes = torch.tensor(lengths)
    inputs = torch.randn(len(lengths), max(lengths), 2)
    packed = pack_padded_sequence(inputs, sizes, batch_first=True, enforce_sorted=False)
    outputs, h_n = gru(packed)
    states, _ = pad_packed_sequence(outputs, batch_first=True, padding_value=torch.nan)
    expected = last_valid_state(h_n, bidirectional=bidirectional)
    for by_mask in (False, True):
        found = last_of_padded(states, sizes, bidirectional=bidirectional, by_mask=by_mask)
        assert torch.equal(found, expected)


def test_directions_are_added_or_averaged() -> None:
    states = torch.tensor([[1.0, 2.0, 5.0, 8.0]])
    assert join_directions(states, "sum").tolist() == [[6.0, 10.0]]
    assert join_directions(states, "mean").tolist() == [[3.0, 5.0]]
