"""Operations around the recurrence: every backend gives what torch computes in double precision."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_sequence

from seqtrain.engines.choice import NATIVE, REFERENCE
from seqtrain.engines.interface import DropRule, Ops, SparseRows
from seqtrain.engines.layout import Packed
from seqtrain.model.pooling import POOLINGS, PoolingList
from tests.helpers.networks import needs_library, num_threads

LENGTHS = [[5], [9, 7, 7, 3, 1], [300, 300, *[40] * 20, 1]]
every_backend = pytest.mark.parametrize(
    "ops", [REFERENCE, pytest.param(NATIVE, marks=needs_library)], ids=["torch", "native"]
)


def gradients(total: Tensor, *tensors: Tensor) -> list[Tensor]:
    torch.manual_seed(1)
    weights = torch.randn(total.shape, dtype=torch.float32).to(total.dtype)
    found = torch.autograd.grad((total * weights).sum(), tensors)
    return [total, *(each.to_dense() for each in found)]


def assert_as_double(ours: list[Tensor], theirs: list[Tensor]) -> None:
    for own, expected in zip(ours, theirs, strict=True):
        largest = float(expected.detach().abs().max())
        torch.testing.assert_close(own.double(), expected, rtol=1e-5, atol=3e-6 * max(1, largest))


def pooled(ops: Ops, pooling: PoolingList, states: Tensor, layout: Packed) -> Tensor:
    return torch.cat([ops.pool(part, states, layout) for part in pooling.parts], dim=1)


@every_backend
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("width", [1, 6, 16, 77, 300])
def test_sums_of_rows(width: int, threads: int, ops: Ops) -> None:
    """Some rows are empty, and some have a row of the table twice."""
    torch.manual_seed(0)
    counts = torch.tensor([0, 3, 90, 0, 1, *[12] * 40, 0])
    matrix = make_matrix(torch.randint(50, (int(counts.sum()),)), counts)
    table = torch.randn(60, width, requires_grad=True)
    double = table.detach().double().requires_grad_()
    rows = torch.tensor([3, 2, 2, *range(5, 46), 0, 1])
    with num_threads(threads):
        ours = ops.sum_rows(table, matrix, rows, sparse=True)
        found = torch.autograd.grad(ours.sum(), table, retain_graph=True)[0]
        of_rows = [matrix.which[matrix.offsets[r] : matrix.offsets[r + 1]] for r in rows]
        assert torch.equal(found.coalesce().indices()[0], torch.cat(of_rows).unique())
        if ops is NATIVE:
            assert found.is_coalesced()
        theirs = REFERENCE.sum_rows(double, matrix, rows, sparse=False)
        assert_as_double(gradients(ours, table), gradients(theirs, double))


def make_matrix(which: Tensor, counts: Tensor) -> SparseRows:
    offsets = torch.cat((torch.zeros(1), counts.cumsum(0))).long()
    return SparseRows(which.int(), torch.rand(len(which)), offsets)


@every_backend
@pytest.mark.parametrize(("row", "column"), [(0, -1), (0, 60), (1, 0)])
def test_rows_outside_matrix_or_table_are_refused(row: int, column: int, ops: Ops) -> None:
    matrix = make_matrix(torch.tensor([column]), torch.tensor([1]))
    with pytest.raises((ValueError, IndexError, RuntimeError)):
        ops.sum_rows(torch.zeros(60, 4), matrix, torch.tensor([row]), sparse=True)


@every_backend
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize(("width", "size"), [(37, 10), (4, None)])
@pytest.mark.parametrize("how", [*([name] for name in POOLINGS), ["max", "attention"]], ids=str)
def test_pooling(
    how: list[str], width: int, size: int | None, lengths: list[int], threads: int, ops: Ops
) -> None:
    """Equal largest states share the gradient."""
    torch.manual_seed(0)
    pooling = PoolingList(how, width, size)
    packed = pack_sequence([torch.randn(length, width).round(decimals=1) for length in lengths])
    states, layout = packed.data.requires_grad_(), Packed(packed.batch_sizes, torch.device("cpu"))
    double = packed.data.detach().double().requires_grad_()
    with num_threads(threads):
        ours = gradients(pooled(ops, pooling, states, layout), states, *pooling.parameters())
    pooling = pooling.double()
    found = pooled(REFERENCE, pooling, double, layout)
    assert_as_double(ours, gradients(found, double, *pooling.parameters()))


@every_backend
@pytest.mark.parametrize("seeds", [lambda: 2**64 - 3, lambda: torch.randint(2**40, (50,))])
@pytest.mark.parametrize("width", [1, 4, 300])
@pytest.mark.parametrize("least", [-32700, 6000])
def test_dropout_keeps_the_same_units(
    least: int, width: int, seeds: Callable[[], Tensor | int], ops: Ops
) -> None:
    torch.manual_seed(0)
    rule = DropRule(seeds(), torch.randint(2**40, (50,)), least, 1.7)
    values = torch.randn(50, width, requires_grad=True)
    double = values.detach().double().requires_grad_()
    ours, theirs = ops.drop(values, rule), REFERENCE.drop(double, rule)
    assert_as_double(gradients(ours, values), gradients(theirs, double))
    assert torch.equal(ours == 0, theirs == 0)
