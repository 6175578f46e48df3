"""What stands around the recurrence, with gradients: on the CPU natively, elsewhere torch's own.

B batch, N packed time steps, H width of a state, A units of attention, V rows of a table, E size of
a row, P entries of all sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from seqtrain.model.engines.native.library import (
    PoolCall,
    RowSums,
    address,
    distinct,
    load_library,
    new,
    why_not,
)
from seqtrain.model.engines.native.recurrence import Lent


def native_takes(*tensors: Tensor) -> bool:
    """Whether the native library computes with these."""
    return all(x.is_cpu and x.dtype == torch.float32 for x in tensors) and not why_not()


def sum_rows(
    table: Tensor, which: Tensor, offsets: Tensor, weights: Tensor, *, sparse: bool
) -> Tensor:
    """Return weighted sums of a table's rows, as torch's `embedding_bag` does.

    A sparse gradient holds the rows of the sums alone, natively each once, ascending.

    Shape:
        table: (V, E). which, weights: (P,), int64 and float. offsets: (B,) int64. Returns: (B, E).
    """
    if native_takes(table, weights):
        run: Callable[..., Tensor] = _SumRows.apply
        return run(table.contiguous(), which, offsets, weights, sparse)
    return functional.embedding_bag(
        which, table, offsets, mode="sum", per_sample_weights=weights, sparse=sparse
    )


class _SumRows(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, table: Tensor, which: Tensor, offsets: Tensor, weights: Tensor, sparse: bool
    ) -> Tensor:
        """Return the sums."""
        totals = new(len(offsets), table.shape[1])
        if load_library().sum_rows(_described(table, which, offsets, weights, totals)) < 0:
            raise ValueError(f"which: rows must be 0 to {len(table) - 1}")
        ctx.save_for_backward(which, offsets, weights)
        ctx.shape, ctx.sparse = table.shape, sparse
        return totals

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        """Return the gradient of the table."""
        which, offsets, weights = ctx.saved_tensors
        rows, which = distinct(which, ctx.shape[0])
        values = torch.zeros(len(rows), ctx.shape[1], device="cpu")
        gradient = gradient.contiguous()
        load_library().add_to_rows(_described(values, which, offsets, weights, gradient))
        found = torch.sparse_coo_tensor(
            rows[None], values, ctx.shape, is_coalesced=True, check_invariants=False
        )
        return found if ctx.sparse else found.to_dense(), None, None, None, None


def _described(
    table: Tensor, which: Tensor, offsets: Tensor, weights: Tensor, totals: Tensor
) -> RowSums:
    return RowSums(
        threads=torch.get_num_threads(),
        sums=len(offsets),
        entries=len(which),
        rows=len(table),
        width=table.shape[1],
        offsets=address(offsets, dtype=torch.int64),
        which=address(which, dtype=torch.int64),
        weights=address(weights),
        table=address(table),
        totals=address(totals),
    )


def drop_rows(values: Tensor, seeds: Tensor, least: int, scale: float) -> Tensor:
    """Return units times `scale` or 0, as `RandomNumbers.drop` says, natively: see `native_takes`.

    Shape:
        values: (N, E). seeds: (N,) int64.
    """
    run: Callable[..., Tensor] = _DropRows.apply
    return run(values, seeds.contiguous(), least, scale)


class _DropRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, seeds: Tensor, *how: Any) -> Tensor:
        """Return what is kept of the values."""
        ctx.save_for_backward(seeds)
        ctx.how = how
        return _dropped(values, seeds, *how)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        """Return what is kept of the gradient."""
        return _dropped(gradient, *ctx.saved_tensors, *ctx.how), None, None, None


def _dropped(values: Tensor, seeds: Tensor, least: int, scale: float) -> Tensor:
    values, kept = values.contiguous(), new(*values.shape)
    given = address(seeds, dtype=torch.int64), *values.shape, least, scale
    load_library().drop(*given, address(values), address(kept))
    return kept


def pool(
    states: Tensor, batch_sizes: Tensor, project: nn.Linear | None, score: nn.Linear | None
) -> Tensor:
    """Return the pooled states of each sequence, (B, H), natively: see `native_takes`.

    Attention scores with `project` (H -> A) and `score` (A -> 1); without, it is the maximum.

    Shape:
        states: packed, (N, H). batch_sizes: (T,).
    """
    run: Callable[..., Tensor] = _Pool.apply
    weights = () if project is None or score is None else (*project.parameters(), score.weight)
    return run(states.contiguous(), batch_sizes.contiguous(), *(x.contiguous() for x in weights))


class _Pool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, batch_sizes: Tensor, *weights: Tensor) -> Tensor:
        """Return the pooled states."""
        ctx.hidden = Lent(len(states) * (len(weights[0]) + 64) if weights else 0)
        ctx.weights, pooled = Lent(len(states)), new(int(batch_sizes[0]), states.shape[1])
        ctx.save_for_backward(states, batch_sizes, pooled, *weights)
        ctx.bfloat16 = torch.is_autocast_enabled("cpu")
        _pool(ctx, load_library().pool, states, batch_sizes, pooled, *weights)
        return pooled

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the states and of the weights."""
        states, _, _, *weights = ctx.saved_tensors
        gradients = [torch.empty_like(tensor) for tensor in (states, *weights)]
        names = ("d_states", "d_w", "d_b", "d_v")
        given = dict(zip(names, gradients, strict=False)) | {"d_pooled": gradient.contiguous()}
        _pool(ctx, load_library().pool_back, *ctx.saved_tensors, **given)
        return gradients[0], None, *gradients[1:]


def _pool(
    ctx: Any,
    function: Callable[[PoolCall], None],
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
        bfloat16=ctx.bfloat16,
        tokens=len(states),
        steps=len(batch_sizes),
        batch=len(pooled),
        width=states.shape[1],
        size=len(weights[0]) if weights else 0,
        batch_sizes=address(batch_sizes, dtype=torch.int64),
        states=address(states),
        hidden=address(ctx.hidden.tensor),
        weights=address(ctx.weights.tensor),
        pooled=address(pooled),
        **{name: address(x) for name, x in zip("wbv", weights, strict=False)},
        **{name: address(x) for name, x in gradients.items()},
    )
    scratch = Lent(load_library().pool_scratch(call) // 4)
    call.scratch = address(scratch.tensor)
    function(call)
