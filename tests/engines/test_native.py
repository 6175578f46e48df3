"""The native engine gives what torch's modules give, cell by cell, on every vector path."""

from typing import Any

import pytest
import torch
from hypothesis import given
from torch import Tensor

from seqtrain.engines.cells import as_one_tensor
from seqtrain.engines.native.library import load_library, why_unavailable
from tests.helpers.examples import examples
from tests.helpers.native_cases import CASES, Case, assert_close, assert_same_as_torch, every_cell
from tests.helpers.networks import needs_library, num_threads

needs_bfloat16 = pytest.mark.skipif(
    bool(why_unavailable()) or load_library().rounding is load_library(),
    reason="no bfloat16 products here",
)


@examples(100)
@given(keys=CASES)
def test_states_and_gradients_are_torchs(path, keys):
    assert_same_as_torch(Case(**keys))


@every_cell
@pytest.mark.parametrize(("input_size", "hidden_size"), [(300, 100), (100, 257), (1, 1)])
def test_awkward_sizes(path, cell, input_size, hidden_size):
    lengths = [40, 30, 9, 9, 8, 7, 6, 5, 1]
    assert_same_as_torch(Case(lengths, input_size, hidden_size, cell=cell, vectors=40))


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("cell", "hidden_size"), [("gru", 310), ("gru", 600), ("lstm", 300)])
def test_awkward_sizes_whose_weights_outgrow_a_cache(path, cell, hidden_size, bidirectional):
    """More sequences go through time together there, and blocks aren't full."""
    lengths = [*range(9, 1, -1), *([2] * 20), *([1] * 9)]
    vectors = None if bidirectional else 30
    keys: dict[str, Any] = {"cell": cell, "vectors": vectors, "with_start": bidirectional}
    assert_same_as_torch(Case(lengths, 7, hidden_size, bidirectional=bidirectional, **keys))


@needs_library
@every_cell
def test_any_number_of_threads_gives_torchs_results_and_its_own_bits(threads, cell):
    assert_same_as_torch(Case([5], 3, 2, cell=cell))
    case = Case([60, 50, 33] + [20] * 30, 17, 33, cell=cell, vectors=50, bidirectional=True)
    assert_same_as_torch(case)
    for run in (case.native, case.rounded):
        states = [run() for _ in range(3)]
        gradients = [case.gradients(state) for state in states]
        for again in (1, 2):
            assert torch.equal(states[0][1], states[again][1])
            assert all(map(torch.equal, gradients[0], gradients[again]))


@needs_library
def test_a_hundred_thousand_steps():
    case = Case([100_000], 3, 4, cell="lstm", need_outputs=False)
    _, last = case.native()
    with torch.no_grad():
        _, expected = case.encoder(case.table)
    assert_close(last[:, :, 0], as_one_tensor(expected), 1e-5)
    assert all(bool(gradient.isfinite().all()) for gradient in case.gradients((None, last)))


@needs_library
@pytest.mark.parametrize("vectors", [None, 7])
def test_several_forwards_wait_for_their_backward_and_gradients_add_up(vectors):
    case, other = Case([30, 4, 4], vectors=vectors), Case([7, 7], cell="lstm", bidirectional=True)
    once, of_other = case.gradients(case.torch()), other.gradients(other.torch())
    losses = [case.loss(case.native()), other.loss(other.native()), case.loss(case.native())]
    for loss in losses:
        loss.backward()
    for leaf, gradient in zip(case.leaves(), once, strict=True):
        assert_close(leaf.grad, 2 * gradient, 1e-4)
    for leaf, gradient in zip(other.leaves(), of_other, strict=True):
        assert_close(leaf.grad, gradient, 1e-4)


@every_cell
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_nan_and_infinity_are_torchs(path, cell, value):
    case = Case([9, 8, 3], cell=cell)
    with torch.no_grad():
        case.table[4, 2] = value
        found, expected, rounded = case.native()[0], case.torch()[0], case.rounded()[0]
    torch.testing.assert_close(found, expected, equal_nan=True)
    assert torch.equal(rounded.isnan(), found.isnan())
    if value != value:
        assert bool(case.gradients(case.native())[1].isnan().any())


@needs_library
@every_cell
def test_a_faded_gradient_is_zero_and_torchs_own_small_numbers_survive(cell):
    """Processors are slow with numbers below float32's normal ones."""
    case = Case([400, 3], 8, 8, cell=cell, need_outputs=False)
    with torch.no_grad():
        for parameter in case.encoder.parameters():
            parameter.mul_(0.3)
    for count in (1, 2):
        with num_threads(count):
            (gradient,) = torch.autograd.grad(case.loss(case.native()), [case.table])
            assert bool((torch.full((1 << 18,), 1e-39) * 1.0 > 0).all())
        small = (gradient != 0) & (gradient.abs() < torch.finfo(torch.float32).tiny)
        assert not bool(small.any())
        assert bool((gradient[-1] != 0).all())


@needs_bfloat16
@examples(30)
@given(keys=CASES)
def test_bfloat16_is_close_to_float32(keys):
    """Factors are rounded by 2^-9 at most, and all else is float32.

    Eight units at least: of a single one, a small gradient may be all rounding.
    """
    lengths = [min(length, 12) for length in keys["lengths"]]
    case = Case(**{**keys, "lengths": lengths, "hidden_size": max(8, keys["hidden_size"])})

    def results(states: tuple[Tensor | None, Tensor]) -> list[Tensor]:
        own = [state.detach() for state in states if state is not None]
        return own + case.gradients(states)

    expected = results(case.native())
    whole = torch.stack([result.norm() for result in expected])
    for found, result in zip(results(case.rounded()), expected, strict=True):
        assert found.dtype == torch.float32
        assert (found - result).norm() <= 0.05 * result.norm() + 1e-3 * whole.max()


def test_only_the_widest_path_has_bfloat16_and_only_where_it_is_asked_for(path):
    case = Case([9, 4, 4], vectors=7)
    exact = case.native()[1]
    has_bfloat16 = load_library().rounding is not load_library()
    assert torch.equal(case.rounded()[1], exact) != has_bfloat16
    assert path == "avx512" or torch.equal(case.rounded()[1], exact)
    with torch.autocast("cpu", dtype=torch.float16):
        assert torch.equal(case.native()[1], exact)
