"""Operations before and after the recurrence on CUDA, which never make the CPU wait for the GPU.

Letters of shapes as in `engines.ops`; U distinct rows of a table.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from seqtrain.model.engines.ops import Ops, SparseRows
from seqtrain.sequences.batch import entries_of
from seqtrain.sequences.transfer import move_together


class CudaOps(Ops):
    """Operations on CUDA.

    Sparse matrices and row numbers should be on the CPU, so that nothing waits for the GPU. If a
    matrix is on the GPU, `Ops` computes the product.
    """

    def sum_rows(self, table: Tensor, matrix: SparseRows, rows: Tensor, *, sparse: bool) -> Tensor:
        """Return products of rows of a sparse matrix with a table; see `Ops.sum_rows`.

        If the matrix is on the CPU, a sparse gradient has each used row of the table once, in
        ascending order.
        """
        if not matrix.offsets.is_cpu:
            return super().sum_rows(table, matrix, rows, sparse=sparse)
        entries, counts = entries_of(matrix.offsets, rows)
        distinct, place = torch.unique(matrix.which[entries].long(), return_inverse=True)
        starts, weights = counts.cumsum(0) - counts, matrix.weights[entries]
        distinct, place, starts, weights = move_together(
            [distinct, place, starts, weights], table.device
        )
        vectors = self.distinct_rows(table, distinct, sparse=sparse)
        weights = weights.to(vectors.dtype)
        return functional.embedding_bag(
            place, vectors, starts, mode="sum", per_sample_weights=weights
        )

    def distinct_rows(self, table: Tensor, rows: Tensor, *, sparse: bool) -> Tensor:
        """Return some rows of a table; see `Ops.distinct_rows`.

        A sparse gradient is marked as coalesced. The caller must pass ascending, distinct `rows`,
        which aren't checked.
        """
        if not sparse:
            return super().distinct_rows(table, rows, sparse=False)
        run: Callable[..., Tensor] = _DistinctRows.apply
        return run(table, rows)


class _DistinctRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, rows: Tensor) -> Tensor:
        """Return the rows of the table, (U, E)."""
        ctx.save_for_backward(rows)
        ctx.shape = table.shape
        return table.index_select(0, rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Return the gradient of the table, which is sparse and coalesced."""
        (rows,) = ctx.saved_tensors
        total = torch.sparse_coo_tensor(
            rows[None], gradient, ctx.shape, is_coalesced=True, check_invariants=False
        )
        return total, None
