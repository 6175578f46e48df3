"""The native engine gives what torch's modules give, cell by cell, on every vector path."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.cells import CELLS, as_one_tensor
from tests.helpers.examples import examples
from tests.helpers.native_cases import Case, assert_close, every_cell, needs_library, run_native

CELL = st.sampled_from(sorted(CELLS))
SIZES = st.sampled_from([1, 2, 3, 8, 15, 16, 17, 33, 48, 50, 64])
LENGTHS = st.one_of(
    st.lists(st.integers(1, 12), min_size=1, max_size=20),
    st.lists(st.integers(1, 90), min_size=1, max_size=5),
)


def assert_same_as_torch(case: Case) -> None:
    expected, found = case.torch(), case.native()
    for ours, theirs in zip(found, expected, strict=True):
        assert_close(ours, theirs, 1e-5)
    for ours, theirs in zip(case.gradients(found), case.gradients(expected), strict=True):
        assert_close(ours, theirs, 1e-4)


@examples(100)
@given(
    cell=CELL,
    lengths=LENGTHS,
    input_size=SIZES,
    hidden_size=SIZES,
    num_layers=st.integers(1, 2),
    bidirectional=st.booleans(),
    vectors=st.one_of(st.none(), st.integers(1, 9), st.integers(100, 300)),
    with_start=st.booleans(),
    need_outputs=st.booleans(),
)
def test_states_and_gradients_are_torchs(
    path: str,
    cell: str,
    lengths: list[int],
    input_size: int,
    hidden_size: int,
    num_layers: int,
    bidirectional: bool,
    vectors: int | None,
    with_start: bool,
    need_outputs: bool,
) -> None:
    assert_same_as_torch(
        Case(
            lengths,
            input_size,
            hidden_size,
            cell=cell,
            num_layers=num_layers,
            bidirectional=bidirectional,
            vectors=vectors,
            with_start=with_start,
            need_outputs=need_outputs,
        )
    )


@every_cell
@pytest.mark.parametrize(("input_size", "hidden_size"), [(300, 100), (100, 257), (1, 1)])
def test_awkward_sizes(path: str, cell: str, input_size: int, hidden_size: int) -> None:
    lengths = [40, 30, 9, 9, 8, 7, 6, 5, 1]
    assert_same_as_torch(Case(lengths, input_size, hidden_size, cell=cell, vectors=40))


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("cell", "hidden_size"), [("gru", 310), ("gru", 600), ("lstm", 300)])
def test_awkward_sizes_whose_weights_outgrow_a_cache(
    path: str, cell: str, hidden_size: int, bidirectional: bool
) -> None:
    """More sequences go through time together there, and blocks aren't full."""
    lengths = [*range(9, 1, -1), *([2] * 20), *([1] * 9)]
    keys = {"cell": cell, "bidirectional": bidirectional, "with_start": bidirectional}
    assert_same_as_torch(
        Case(lengths, 7, hidden_size, vectors=None if bidirectional else 30, **keys)
    )


@every_cell
def test_float32_is_near_float64(path: str, cell: str) -> None:
    case = Case([200, 60, 60, 31, 1], 64, 100, cell=cell, vectors=50, with_start=True)
    outputs, last = case.native()
    gradients = case.gradients((outputs, last))
    case.to_float64()
    expected, expected_last = case.torch()
    assert_close(outputs, expected, 3e-6)
    assert_close(last, expected_last, 3e-6)
    for ours, theirs in zip(gradients, case.gradients((expected, expected_last)), strict=True):
        assert_close(ours, theirs, 1e-5)


@needs_library
@every_cell
def test_a_sequence_does_not_depend_on_its_batch_mates(cell: str) -> None:
    case = Case([50, 41, 40] + [3] * 20, 16, 24, cell=cell, bidirectional=True, with_start=True)
    assert case.start is not None
    _, together = case.native()
    starts = case.batch_sizes.cumsum(0) - case.batch_sizes
    for row, steps in ((0, 50), (1, 41), (2, 40), (5, 3)):
        alone = PackedSequence(
            case.table[starts[:steps] + row], torch.ones(steps, dtype=torch.long)
        )
        _, last = run_native(case.encoder, alone, case.start[:, :, row : row + 1])
        assert_close(last[:, :, 0], together[:, :, row], 1e-6)


@needs_library
@every_cell
def test_any_number_of_threads(threads: int, cell: str) -> None:
    assert_same_as_torch(Case([9, 8, 3], cell=cell, vectors=30, bidirectional=True))
    assert_same_as_torch(Case([5], 3, 2, cell=cell))


@needs_library
@pytest.mark.parametrize(
    "cell", ["lstm", *(pytest.param(slow, marks=pytest.mark.slow) for slow in ("gru", "rnn"))]
)
def test_a_hundred_thousand_steps(cell: str) -> None:
    case = Case([100_000], 3, 4, cell=cell, need_outputs=False)
    _, last = case.native()
    with torch.no_grad():
        _, expected = case.encoder(case.table)
    assert_close(last[:, :, 0], as_one_tensor(expected), 1e-5)
    assert all(bool(gradient.isfinite().all()) for gradient in case.gradients((None, last)))


@needs_library
def test_no_gradients_no_memory_of_the_steps() -> None:
    case = Case([9, 4, 4], vectors=7, num_layers=2, bidirectional=True)
    with torch.no_grad():
        for ours, theirs in zip(case.native(), case.torch(), strict=True):
            assert ours is not None
            assert not ours.requires_grad
            assert_close(ours, theirs, 1e-5)


@needs_library
def test_frozen_inputs_get_no_gradient() -> None:
    case = Case([9, 4, 4])
    case.table.requires_grad_(False)
    expected, found = (
        torch.autograd.grad(case.loss(states), case.leaves()[1:])
        for states in (case.torch(), case.native())
    )
    for ours, theirs in zip(found, expected, strict=True):
        assert_close(ours, theirs, 1e-4)


@needs_library
@pytest.mark.parametrize("vectors", [None, 7])
def test_gradients_add_up(vectors: int | None) -> None:
    case = Case([9, 4, 4], vectors=vectors)
    once = case.gradients(case.native())
    case.loss(case.native()).backward()
    first = case.encoder.weight_hh_l0.grad
    case.loss(case.native()).backward()
    assert case.encoder.weight_hh_l0.grad is first
    for leaf, gradient in zip(case.leaves(), once, strict=True):
        assert_close(leaf.grad, 2 * gradient, 1e-5)


@needs_library
def test_two_forwards_in_flight() -> None:
    one = Case([30, 4, 4], seed=1)
    other = Case([7, 7, 7], cell="lstm", vectors=5, bidirectional=True, seed=2)
    of_one, of_other = one.native(), other.native()
    for case, states in ((one, of_one), (other, of_other)):
        for ours, theirs in zip(case.gradients(states), case.gradients(case.torch()), strict=True):
            assert_close(ours, theirs, 1e-4)


@needs_library
@every_cell
def test_same_bits_every_time(threads: int, cell: str) -> None:
    lengths = [60, 50, 33] + [20] * 30
    case = Case(lengths, 17, 33, cell=cell, vectors=50, bidirectional=True)
    states = [case.native() for _ in range(3)]
    gradients = [case.gradients(state) for state in states]
    for again in (1, 2):
        assert torch.equal(states[0][1], states[again][1])
        for first, later in zip(gradients[0], gradients[again], strict=True):
            assert torch.equal(first, later)


@every_cell
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_nan_and_infinity_are_torchs(path: str, cell: str, value: float) -> None:
    case = Case([9, 8, 3], cell=cell)
    with torch.no_grad():
        case.table[4, 2] = value
        (outputs, h_n), (expected, expected_h_n) = case.native(), case.torch()
    assert outputs is not None
    assert expected is not None
    torch.testing.assert_close(outputs, expected, equal_nan=True)
    torch.testing.assert_close(h_n, expected_h_n, equal_nan=True)


@needs_library
@every_cell
def test_nan_reaches_the_gradients(cell: str) -> None:
    case = Case([9, 8, 3], cell=cell)
    with torch.no_grad():
        case.table[4, 2] = float("nan")
    assert bool(case.gradients(case.native())[1].isnan().any())


@needs_library
def test_a_forward_is_gone_back_through_once() -> None:
    case = Case([3, 2])
    loss = case.loss(case.native())
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="once"):
        loss.backward()


@needs_library
@every_cell
def test_what_lies_scattered_in_memory_is_read_rightly(cell: str) -> None:
    case = Case([4, 3, 3], cell=cell, vectors=9, with_start=True)
    expected = case.torch()
    assert case.start is not None
    scattered = torch.empty(5, 9).T
    scattered.copy_(case.table.detach())
    case.table = scattered
    case.start = case.start.detach().transpose(2, 3).contiguous().transpose(2, 3)
    case.encoder.weight_hh_l0 = nn.Parameter(case.encoder.weight_hh_l0.detach().T.contiguous().T)
    for ours, theirs in zip(case.native(), expected, strict=True):
        assert_close(ours, theirs, 1e-5)
