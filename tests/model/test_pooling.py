"""Pooling of packed steps against masked, padded arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from seqtrain.model.packing import rows_and_steps
from seqtrain.model.pooling import (
    JoinedPooling,
    StepPooling,
    join_directions,
    last_by_gather,
    last_by_mask,
    last_valid_state,
    make_pooling,
    pooling_names,
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
    torch.manual_seed(0)
    pooling = StepPooling(how, 3)
    packed = pack_padded_sequence(states, sizes, batch_first=True)

    pooled = pooling(packed.data, packed.batch_sizes)
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


@given(LENGTHS)
def test_each_packed_step_belongs_to_its_row(lengths: list[int]) -> None:
    sizes = torch.tensor(lengths)
    own_row = torch.arange(len(lengths)).unsqueeze(1).expand(-1, lengths[0])
    packed = pack_padded_sequence(own_row, sizes, batch_first=True)
    row, step = rows_and_steps(packed.batch_sizes)
    assert torch.equal(row, packed.data)
    own_step = torch.arange(lengths[0]).expand(len(lengths), -1)
    assert torch.equal(step, pack_padded_sequence(own_step, sizes, batch_first=True).data)


def test_long_means_are_summed_in_full_precision() -> None:
    states = torch.ones(5000, 1, dtype=torch.bfloat16)
    pooled = StepPooling("mean", 1)(states, torch.ones(5000, dtype=torch.int64))
    assert pooled.item() == pytest.approx(1.0)


def test_the_last_valid_state_joins_both_directions_of_the_top_layer() -> None:
    h_n = torch.arange(4.0).reshape(4, 1, 1)
    assert last_valid_state(h_n, bidirectional=True).tolist() == [[2.0, 3.0]]
    assert last_valid_state(h_n, bidirectional=False).tolist() == [[3.0]]


@given(LENGTHS.flatmap(st.permutations), st.booleans())
def test_the_last_valid_state_is_the_same_in_three_ways(
    lengths: list[int], bidirectional: bool
) -> None:
    torch.manual_seed(0)
    gru = torch.nn.GRU(2, 3, num_layers=2, bidirectional=bidirectional, batch_first=True)
    sizes = torch.tensor(lengths)
    inputs = torch.randn(len(lengths), max(lengths), 2)
    packed = pack_padded_sequence(inputs, sizes, batch_first=True, enforce_sorted=False)
    outputs, h_n = gru(packed)
    states, _ = pad_packed_sequence(outputs, batch_first=True, padding_value=torch.nan)
    expected = last_valid_state(h_n, bidirectional=bidirectional)
    assert torch.equal(last_by_gather(states, sizes, bidirectional=bidirectional), expected)
    assert torch.equal(last_by_mask(states, sizes, bidirectional=bidirectional), expected)


@pytest.mark.parametrize("way", [last_by_gather, last_by_mask])
@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        (torch.tensor([3, 0]), "row 1: found length 0; expected 1 to 4"),
        (torch.tensor([-1, 2]), "row 0: found length -1; expected 1 to 4"),
        (torch.tensor([4, 5]), "row 1: found length 5; expected 1 to 4"),
        (torch.tensor([4]), r"lengths: found shape \(1,\); expected \(2,\), one for each row"),
        (torch.tensor(4), r"lengths: found shape \(\); expected"),
        (torch.tensor([4.0, 2.0]), "lengths: found torch.float32 on cpu; expected torch.int64"),
        (torch.tensor([4, 2], device="meta"), "lengths: found torch.int64 on meta; .* on cpu"),
    ],
)
def test_lengths_that_do_not_fit_are_refused(
    way: Callable[..., Tensor], lengths: Tensor, message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        way(torch.zeros(2, 4, 6), lengths)


def test_directions_are_joined() -> None:
    states = torch.tensor([[1.0, 2.0, 5.0, 8.0]])
    assert join_directions(states, "concat").tolist() == [[1.0, 2.0, 5.0, 8.0]]
    assert join_directions(states, "sum").tolist() == [[6.0, 10.0]]
    assert join_directions(states, "mean").tolist() == [[3.0, 5.0]]


@given(LENGTHS, st.permutations(["mean", "max", "attention"]), st.integers(1, 3))
def test_a_list_joins_its_poolings(lengths: list[int], hows: list[str], number: int) -> None:
    states = torch.randn(len(lengths), lengths[0], 3)
    packed = pack_padded_sequence(states, torch.tensor(lengths), batch_first=True)
    joined = JoinedPooling(hows[:number], 3)
    parts = [joined[how] for how in hows[:number]]
    found = joined(packed.data, packed.batch_sizes)
    expected = torch.cat([part(packed.data, packed.batch_sizes) for part in parts], dim=1)
    assert torch.equal(found, expected)
    begun = joined.begin(len(lengths), like=states)
    by_parts = joined.finish(joined.add(begun, packed.data, packed.batch_sizes))
    assert torch.equal(by_parts, expected)
    running = joined.running(packed.data, packed.batch_sizes)
    assert running.shape == (len(packed.data), 3 * number)


def test_the_last_state_stands_first_in_a_list() -> None:
    assert pooling_names(["max", "last", "mean"]) == ("last", "max", "mean")
    assert pooling_names("attention") == ("attention",)
    assert make_pooling("last", 3) is None
    assert make_pooling(["last"], 3) is None
    joined = make_pooling(["max", "last", "mean"], 3)
    assert isinstance(joined, JoinedPooling)
    assert [part.how for part in joined.parts] == ["max", "mean"]
