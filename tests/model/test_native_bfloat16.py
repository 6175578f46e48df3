"""Under autocast native products take bfloat16 where the processor can; all else is float32."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from seqtrain.model.cells import CELLS
from seqtrain.model.engines.native import why_not
from seqtrain.model.engines.native.library import load_library
from tests.helpers.examples import examples
from tests.helpers.native_cases import Case, needs_library, project

needs_bfloat16 = pytest.mark.skipif(
    bool(why_not()) or not load_library().has_bfloat16, reason="no bfloat16 products here"
)


def rounded(case: Case) -> tuple[Tensor | None, Tensor]:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return case.native()


ROUNDING = 2.0**-8
"""Relative error of a product of two numbers of bfloat16, each rounded by 2^-9 at most."""
MOVES = 8


def results(case: Case, states: tuple[Tensor | None, Tensor]) -> list[Tensor]:
    """Return states and gradients: all that a caller sees."""
    return [state.detach() for state in states if state is not None] + case.gradients(states)


def norms(found: list[Tensor], expected: list[Tensor]) -> Tensor:
    """Return how far each result is from the expected one."""
    return torch.stack([(a - b).norm() for a, b in zip(found, expected, strict=True)])


def moved(case: Case, expected: list[Tensor]) -> Tensor:
    """Return how far each result moves where every factor moves by what products are rounded by.

    How much an error grows through layers and time steps depends on the weights. So it is measured
    in float32: of several moves of all weights and inputs by 2^-8, up or down, the farthest counts.
    """
    leaves, farthest = case.leaves(), torch.zeros(len(expected))
    before = [leaf.detach().clone() for leaf in leaves]
    for _ in range(MOVES):
        with torch.no_grad():
            for leaf, value in zip(leaves, before, strict=True):
                leaf.copy_(value * (1 + ROUNDING * (2.0 * torch.randint(2, value.shape) - 1)))
        farthest = torch.maximum(farthest, norms(results(case, case.native()), expected))
    with torch.no_grad():
        for leaf, value in zip(leaves, before, strict=True):
            leaf.copy_(value)
    return farthest


def limits(case: Case, expected: list[Tensor]) -> Tensor:
    """Return how far each result may be from that of float32."""
    width = max(case.encoder.input_size, case.encoder.hidden_size)
    steps = int(case.batch_sizes.sum())
    gradients = len(case.leaves())
    sums = [width] * (len(expected) - gradients) + [max(width, steps)] * gradients
    farthest = moved(case, expected)
    own = ROUNDING * torch.stack([result.norm() for result in expected])
    return 2 * torch.tensor(sums).sqrt() * farthest + own


@needs_bfloat16
@examples(30)
@given(
    cell=st.sampled_from(sorted(CELLS)),
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=20),
    input_size=st.sampled_from([1, 2, 15, 16, 33, 64]),
    hidden_size=st.sampled_from([1, 2, 15, 16, 33, 64]),
    num_layers=st.integers(1, 2),
    bidirectional=st.booleans(),
    vectors=st.sampled_from([None, 1, 9, 200]),
    with_start=st.booleans(),
    need_outputs=st.booleans(),
)
def test_close_to_float32(**keys: object) -> None:
    """The bound follows from the arithmetic.

    A product of bfloat16 is off by 2^-8 at most, as if its factors had moved so far. Moves by
    chance go up and down; in a sum of K products roundings may all go one way, which is the square
    root of K times as far. K is the width of a state, and for a gradient also the number of time
    steps that it sums over. The states between time steps are rounded too, and can't be moved:
    twice as far. What is left is the rounding of the results themselves.
    """
    case = Case(**keys)  # type: ignore[arg-type]
    expected = results(case, case.native())
    found = results(case, rounded(case))
    assert all(ours.dtype == torch.float32 for ours in found)
    assert (norms(found, expected) <= limits(case, expected)).all()


@needs_bfloat16
def test_rounds_nothing_but_what_is_multiplied() -> None:
    gru = nn.GRU(33, 17)
    with torch.no_grad():
        for weight in (gru.weight_ih_l0, gru.weight_hh_l0):
            weight.copy_(weight.bfloat16())  # what bfloat16 holds, it multiplies exactly
    table = torch.randn(50, 33).bfloat16().float()
    exact = project(table, gru)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = project(table, gru)
    torch.testing.assert_close(found.rows[0], exact.rows[0], rtol=1e-6, atol=1e-6)


def test_other_paths_stay_in_float32(path: str) -> None:
    case = Case([9, 4, 4], vectors=7)
    same = torch.equal(rounded(case)[1], case.native()[1])
    assert same != load_library().has_bfloat16
    assert path == "avx512" or same


@needs_library
def test_other_types_of_autocast_stay_in_float32() -> None:
    case = Case([9, 4, 4], vectors=7)
    with torch.autocast("cpu", dtype=torch.float16):
        found = case.native()[1]
    assert torch.equal(found, case.native()[1])


@needs_bfloat16
def test_same_bits_every_time(threads: int) -> None:
    case = Case([60, 50, 33] + [20] * 30, 17, 33, vectors=50, bidirectional=True)
    states = [rounded(case) for _ in range(2)]
    assert torch.equal(states[0][1], states[1][1])
    for first, later in zip(*map(case.gradients, states), strict=True):
        assert torch.equal(first, later)


@needs_bfloat16
def test_float32_is_what_it_was_beside_it() -> None:
    case = Case([30, 4, 4], 33, 17)
    before = case.gradients(case.native())
    in_float32, in_bfloat16 = case.native(), rounded(case)
    case.gradients(in_bfloat16)
    for ours, theirs in zip(case.gradients(in_float32), before, strict=True):
        assert torch.equal(ours, theirs)


@needs_bfloat16
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_and_infinity_pass_through(value: float) -> None:
    case = Case([9, 8, 3])
    with torch.no_grad():
        case.table[4, 2] = value
        expected, found = case.native()[0], rounded(case)[0]
    assert expected is not None
    assert found is not None
    assert torch.equal(found.isfinite(), expected.isfinite())
    assert torch.equal(found.isnan(), expected.isnan())
