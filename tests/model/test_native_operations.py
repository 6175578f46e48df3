"""Operations around the recurrence: natively as torch computes them in double precision."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_sequence

from seqtrain.model.engines.operations import SparseRows, sum_rows
from seqtrain.model.pooling import make_pooling, pool_at_once
from seqtrain.model.randomness import RandomNumbers
from tests.helpers.networks import needs_library, num_threads

pytestmark = needs_library

LENGTHS = [[5], [9, 7, 7, 3, 1], [300, 300, *[40] * 20, 1]]


def gradients(total: Tensor, *tensors: Tensor) -> list[Tensor]:
    torch.manual_seed(1)
    weights = torch.randn(total.shape, dtype=torch.float32).to(total.dtype)
    found = torch.autograd.grad((total * weights).sum(), tensors)
    return [total, *(each.to_dense() for each in found)]


def assert_as_double(ours: list[Tensor], theirs: list[Tensor]) -> None:
    for own, expected in zip(ours, theirs, strict=True):
        largest = float(expected.detach().abs().max())
        torch.testing.assert_close(own.double(), expected, rtol=1e-5, atol=3e-6 * max(1, largest))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("width", [1, 6, 16, 77, 300])
def test_sums_of_rows(width: int, threads: int) -> None:
    """Some are empty, some hold a row twice; the gradient's rows ascend, each once."""
    torch.manual_seed(0)
    counts = torch.tensor([0, 3, 90, 0, 1, *[12] * 40, 0])
    matrix = make_matrix(torch.randint(50, (int(counts.sum()),)), counts)
    table = torch.randn(60, width, requires_grad=True)
    double = table.detach().double().requires_grad_()
    rows = torch.tensor([3, 2, 2, *range(5, 46), 0, 1])
    with num_threads(threads):
        ours = sum_rows(table, matrix, rows, sparse=True)
        found = torch.autograd.grad(ours.sum(), table, retain_graph=True)[0]
        assert found.is_coalesced()
        of_rows = [matrix.which[matrix.offsets[r] : matrix.offsets[r + 1]] for r in rows]
        assert torch.equal(found.indices()[0], torch.cat(of_rows).unique())
        theirs = sum_rows(double, matrix, rows, sparse=False)
        assert_as_double(gradients(ours, table), gradients(theirs, double))


def make_matrix(which: Tensor, counts: Tensor) -> SparseRows:
    offsets = torch.cat((torch.zeros(1), counts.cumsum(0))).long()
    return SparseRows(which.int(), torch.rand(len(which)), offsets)


@pytest.mark.parametrize(("row", "column"), [(0, -1), (0, 60), (-1, 0), (1, 0)])
def test_rows_outside_matrix_or_table_are_refused(row: int, column: int) -> None:
    matrix = make_matrix(torch.tensor([column]), torch.tensor([1]))
    with pytest.raises(ValueError, match="must be 0 to 59"):
        sum_rows(torch.zeros(60, 4), matrix, torch.tensor([row]), sparse=True)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize(("width", "size"), [(37, 10), (256, 64), (4, None)])
@pytest.mark.parametrize("how", ["attention", "max"])
def test_pooling(how: str, width: int, size: int | None, lengths: list[int], threads: int) -> None:
    """Equal largest states share the gradient."""
    torch.manual_seed(0)
    pooling = make_pooling(how, width, size)
    assert pooling is not None
    packed = pack_sequence([torch.randn(length, width).round(decimals=1) for length in lengths])
    states = packed.data.requires_grad_()
    double = packed.data.detach().double().requires_grad_()
    with num_threads(threads):
        ours = gradients(
            pool_at_once(pooling, states, packed.batch_sizes), states, *pooling.parameters()
        )
    pooling = pooling.double()
    theirs = gradients(
        pool_at_once(pooling, double, packed.batch_sizes), double, *pooling.parameters()
    )
    assert_as_double(ours, theirs)


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("width", [1, 4, 300])
@pytest.mark.parametrize("rate", [0.001, 0.6])
def test_dropout_keeps_the_same_units(rate: float, width: int, number: int) -> None:
    torch.manual_seed(0)
    random = RandomNumbers(7, torch.arange(0))
    keys = [torch.randint(2**40, (50,)) for _ in range(number)]
    values = torch.randn(50, width, requires_grad=True)
    double = values.detach().double().requires_grad_()
    ours = random.drop(values, rate, 3, *keys)
    theirs = random.drop(double, rate, 3, *keys)
    assert_as_double(gradients(ours, values), gradients(theirs, double))
    assert torch.equal(ours == 0, theirs == 0)
