"""Gradients that fade below float32's normal numbers neither slow the kernels nor change torch."""

from __future__ import annotations

import pytest
import torch

from tests.helpers.native_cases import Case, every_cell, needs_library

TINY = 1e-39


@needs_library
@every_cell
def test_a_faded_gradient_is_zero_and_others_stay(cell: str) -> None:
    case = Case([400, 3], 8, 8, cell=cell, need_outputs=False)
    with torch.no_grad():
        for parameter in case.encoder.parameters():
            parameter.mul_(0.3)
    states = case.native()
    (gradient,) = torch.autograd.grad(case.loss(states), [case.table])
    small = (gradient != 0) & (gradient.abs() < torch.finfo(torch.float32).tiny)
    assert not bool(small.any())
    assert bool((gradient[-1] != 0).all())


@needs_library
@pytest.mark.parametrize("count", [1, 2])
def test_torchs_own_small_numbers_survive(count: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        case = Case([30, 20, 10])
        case.gradients(case.native())
        numbers = torch.full((1 << 18,), TINY) * 1.0
        assert bool((numbers > 0).all())
    finally:
        torch.set_num_threads(before)
