"""Operations around the recurrence in C++, for float32 tensors on the CPU.

Letters of shapes as in `engines.interface`; A units of attention.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqtrain.engines.interface import DropRule, Ops, SparseRows
from seqtrain.engines.layout import Layout, Packed
from seqtrain.engines.native.library import (
    PoolCall,
    RowSums,
    address,
    load_library,
    new,
)

PADDING = 64
"""Largest number of unused units per step: attention rounds A up to whole vectors."""

_POOLINGS = ("max", "attention")
"""Kinds of poolings that the library computes."""


class NativeOps(Ops):
    """Operations of the compiled library, for float32 tensors on the CPU.

    The library has weighted sums of rows, dropout, and the poolings max and attention. torch
    computes all other operations.
    """

    def sum_rows(self, table: Tensor, matrix: SparseRows, rows: Tensor, *, sparse: bool) -> Tensor:
        """Return products of rows of a sparse matrix with a table; see `Ops.sum_rows`.

        A sparse gradient has each used row of the table once, in ascending order. If the weights of
        the matrix aren't float32 on the CPU, torch computes the product. Its gradient may repeat
        rows.
        """
        if not matrix.weights.is_cpu or matrix.weights.dtype != torch.float32:
            return super().sum_rows(table, matrix, rows, sparse=sparse)
        run: Callable[..., Tensor] = _SumRows.apply
        return run(table.contiguous(), matrix, rows.contiguous(), sparse)

    def drop(self, values: Tensor, rule: DropRule) -> Tensor:
        """Apply dropout; see `Ops.drop`."""
        run: Callable[..., Tensor] = _Drop.apply
        return run(values, rule)

    def pool(self, pooling: Any, states: Tensor, layout: Layout) -> Tensor:
        """Return the pooled states of packed sequences; see `Ops.pool`."""
        if pooling.kind not in _POOLINGS or not isinstance(layout, Packed):
            return super().pool(pooling, states, layout)
        # Weight and bias of `project`, and weight of `score`; none for the maximum.
        weights = [weight.contiguous() for weight in pooling.parameters()]
        run: Callable[..., Tensor] = _Pool.apply
        return run(states.contiguous(), layout.batch_sizes.contiguous(), *weights)


class _SumRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, matrix: SparseRows, rows: Tensor, sparse: bool) -> Tensor:
        """Return the product of the chosen rows of the matrix with the table, (B, E).

        Raises:
            ValueError: If a chosen row or the column of an entry is out of range.
        """
        totals = new(len(rows), table.shape[1])
        if load_library().sum_rows(_row_sums_call(table, matrix, rows, totals)) < 0:
            raise ValueError(f"rows of a table: must be 0 to {len(table) - 1}")
        ctx.save_for_backward(rows)
        ctx.shape, ctx.matrix, ctx.sparse = table.shape, matrix, sparse
        return totals

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        """Return the gradient of the table, and None for the other arguments of `forward`.

        The gradient is a sparse tensor if `sparse` is True.
        """
        library, (rows,), gradient = load_library(), ctx.saved_tensors, gradient.contiguous()
        place = new(ctx.shape[0], dtype=torch.int32)
        found = new(ctx.shape[0], dtype=torch.int64)
        call = _row_sums_call(new(0, ctx.shape[1]), ctx.matrix, rows, gradient)
        call.rows, call.place = ctx.shape[0], address(place, dtype=torch.int32)
        found = found[: library.summed_rows(call, address(found, dtype=torch.int64))]
        values = torch.zeros(len(found), ctx.shape[1], device="cpu")
        call.table = address(values)
        library.add_to_rows(call)
        total = torch.sparse_coo_tensor(
            found[None], values, ctx.shape, is_coalesced=True, check_invariants=False
        )
        return total if ctx.sparse else total.to_dense(), None, None, None


def _row_sums_call(table: Tensor, matrix: SparseRows, rows: Tensor, totals: Tensor) -> RowSums:
    return RowSums(
        threads=torch.get_num_threads(),
        of=len(matrix.offsets) - 1,
        sums=len(rows),
        rows=len(table),
        width=table.shape[1],
        offsets=address(matrix.offsets, dtype=torch.int64),
        chosen=address(rows, dtype=torch.int64),
        which=address(matrix.which, dtype=torch.int32),
        weights=address(matrix.weights),
        table=address(table),
        totals=address(totals),
    )


class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, rule: DropRule) -> Tensor:
        """Return the values after dropout, (N, E)."""
        ctx.rule = rule
        return _dropped(values, rule)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Return the gradient of the values.

        It is 0 for units that `forward` set to 0. Other units are multiplied by the scale.
        """
        return _dropped(gradient, ctx.rule), None


def _dropped(values: Tensor, rule: DropRule) -> Tensor:
    values, kept, keys = values.contiguous(), new(*values.shape), rule.keys.contiguous()
    if isinstance(rule.seeds, int):
        one_seed, seeds = rule.seeds, None
    else:
        one_seed, seeds = 0, rule.seeds
    load_library().drop(
        one_seed,
        address(seeds, dtype=torch.int64),
        address(keys, dtype=torch.int64),
        *values.shape,
        rule.least,
        rule.scale,
        address(values),
        address(kept),
    )
    return kept


class _Pool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, batch_sizes: Tensor, *weights: Tensor) -> Tensor:
        """Return the states pooled by attention, or without weights by the maximum, (B, H)."""
        ctx.hidden = new(len(states) * (len(weights[0]) + PADDING) if weights else 0)
        ctx.weights, pooled = new(len(states)), new(int(batch_sizes[0]), states.shape[1])
        ctx.save_for_backward(states, batch_sizes, pooled, *weights)
        ctx.library = load_library()
        _call_pool(ctx, "pool", states, batch_sizes, pooled, *weights)
        return pooled

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the states and of the weights."""
        states, _, _, *weights = ctx.saved_tensors
        gradients = [torch.empty_like(tensor) for tensor in (states, *weights)]
        names = ("d_states", "d_w", "d_b", "d_v")
        named = dict(zip(names, gradients, strict=False)) | {"d_pooled": gradient.contiguous()}
        _call_pool(ctx, "pool_back", *ctx.saved_tensors, **named)
        return gradients[0], None, *gradients[1:]


def _call_pool(
    ctx: Any,
    function: str,
    states: Tensor,
    batch_sizes: Tensor,
    pooled: Tensor,
    *weights: Tensor,
    **gradients: Tensor,
) -> None:
    if int(batch_sizes.sum()) != len(states):
        raise ValueError(f"batch_sizes: sum isn't {len(states)}, the number of states")
    call = PoolCall(
        threads=torch.get_num_threads(),
        tokens=len(states),
        steps=len(batch_sizes),
        batch=len(pooled),
        width=states.shape[1],
        size=len(weights[0]) if weights else 0,
        batch_sizes=address(batch_sizes, dtype=torch.int64),
        states=address(states),
        hidden=address(ctx.hidden),
        weights=address(ctx.weights),
        pooled=address(pooled),
        **{name: address(x) for name, x in zip("wbv", weights, strict=False)},
        **{name: address(x) for name, x in gradients.items()},
    )
    scratch = new(ctx.library.pool_scratch(call) // 4)
    call.scratch = address(scratch)
    getattr(ctx.library, function)(call)
