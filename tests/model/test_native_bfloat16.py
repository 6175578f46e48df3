"""Under autocast native products take bfloat16 where the processor can; all else is float32."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_cases import Case, needs_library
from torch import Tensor, nn

from seqtrain.model.cells import CELLS
from seqtrain.model.engines.native import project, why_not
from seqtrain.model.engines.native.library import load_library

needs_bfloat16 = pytest.mark.skipif(
    bool(why_not()) or not load_library().has_bfloat16, reason="no bfloat16 products here"
)


def rounded(case: Case) -> tuple[Tensor | None, Tensor]:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return case.native()


def relative_difference(found: Tensor, expected: Tensor) -> float:
    """Relative to 1 where numbers are small: they may be what is left of larger ones."""
    return ((found - expected).norm() / expected.norm().clamp(min=1)).item()


@needs_bfloat16
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
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
    case = Case(**keys)  # type: ignore[arg-type]
    expected, found = case.native(), rounded(case)
    for ours, theirs in zip(found, expected, strict=True):
        if ours is not None and theirs is not None:
            assert ours.dtype == torch.float32
            assert relative_difference(ours, theirs) < 0.05
    for ours, theirs in zip(case.gradients(found), case.gradients(expected), strict=True):
        assert relative_difference(ours, theirs) < 0.1


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
