"""What stands around the recurrence, with gradients: on the CPU natively, elsewhere torch's own.

B batch, N packed time steps, H width of a state, A units of attention, V rows of a table, E size of
a row, P entries of a sparse matrix of R rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from seqtrain.data.batch import entries_of
from seqtrain.model.engines.native.library import (
    PoolCall,
    RowSums,
    address,
    load_library,
    new,
    why_not,
)
from seqtrain.model.engines.native.recurrence import chosen_library

PADDING = 64
"""Units of attention fill whole groups of vectors: at most so many more are computed."""


def native_takes(*tensors: Tensor) -> bool:
    """Whether the native library computes with these."""
    return all(x.is_cpu and x.dtype == torch.float32 for x in tensors) and not why_not()


@dataclass(frozen=True)
class SparseRows:
    """Rows of a sparse matrix: the entries of row r lie from offsets[r] to offsets[r + 1].

    Shape:
        which, column of each entry: (P,) int32. weights: (P,). offsets: (R + 1,) int64.
    """

    which: Tensor
    weights: Tensor
    offsets: Tensor


def sum_rows(table: Tensor, matrix: SparseRows, rows: Tensor, *, sparse: bool) -> Tensor:
    """Return rows (B,) int64 of a sparse matrix times a table (V, E): (B, E).

    A sparse gradient holds the rows of the table that count alone; natively each once, ascending.
    """
    rows = rows.to(table.device)
    if native_takes(table, matrix.weights):
        run: Callable[..., Tensor] = _SumRows.apply
        return run(table.contiguous(), matrix, rows.contiguous(), sparse)
    entries, counts = entries_of(matrix.offsets, rows)
    which, weights = matrix.which[entries].long(), matrix.weights[entries].to(table.dtype)
    starts = counts.cumsum(0) - counts
    return functional.embedding_bag(
        which, table, starts, mode="sum", per_sample_weights=weights, sparse=sparse
    )


class _SumRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, matrix: SparseRows, rows: Tensor, sparse: bool) -> Tensor:
        """Return the sums."""
        totals = new(len(rows), table.shape[1])
        if load_library().sum_rows(_described(table, matrix, rows, totals)) < 0:
            raise ValueError(f"rows of a table: must be 0 to {len(table) - 1}")
        ctx.save_for_backward(rows)
        ctx.shape, ctx.matrix, ctx.sparse = table.shape, matrix, sparse
        return totals

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        """Return the gradient of the table."""
        library, (rows,), gradient = load_library(), ctx.saved_tensors, gradient.contiguous()
        place, found = (new(ctx.shape[0], dtype=kind) for kind in (torch.int32, torch.int64))
        call = _described(new(0, ctx.shape[1]), ctx.matrix, rows, gradient)
        call.rows, call.place = ctx.shape[0], address(place, dtype=torch.int32)
        found = found[: library.summed_rows(call, address(found, dtype=torch.int64))]
        values = torch.zeros(len(found), ctx.shape[1], device="cpu")
        call.table = address(values)
        library.add_to_rows(call)
        total = torch.sparse_coo_tensor(
            found[None], values, ctx.shape, is_coalesced=True, check_invariants=False
        )
        return total if ctx.sparse else total.to_dense(), None, None, None


def _described(table: Tensor, matrix: SparseRows, rows: Tensor, totals: Tensor) -> RowSums:
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


def drop_rows(
    values: Tensor, seeds: Tensor | int, keys: Tensor, least: int, scale: float
) -> Tensor:
    """Return units times `scale` or 0, as `RandomNumbers.drop` says, natively: see `native_takes`.

    Shape:
        values: (N, E). seeds, if many, and keys: (N,) int64.
    """
    run: Callable[..., Tensor] = _DropRows.apply
    return run(values, seeds, keys.contiguous(), least, scale)


class _DropRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, *how: Any) -> Tensor:
        """Return what is kept of the values."""
        ctx.how = how
        return _dropped(values, *how)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return what is kept of the gradient."""
        return _dropped(gradient, *ctx.how), *(None,) * len(ctx.how)


def _dropped(values: Tensor, seeds: Tensor | int, keys: Tensor, least: int, scale: float) -> Tensor:
    values, kept = values.contiguous(), new(*values.shape)
    one, many = (seeds, None) if isinstance(seeds, int) else (0, seeds)
    streams = one, address(many, dtype=torch.int64), address(keys, dtype=torch.int64)
    load_library().drop(*streams, *values.shape, least, scale, address(values), address(kept))
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
        ctx.hidden = new(len(states) * (len(weights[0]) + PADDING) if weights else 0)
        ctx.weights, pooled = new(len(states)), new(int(batch_sizes[0]), states.shape[1])
        ctx.save_for_backward(states, batch_sizes, pooled, *weights)
        ctx.library = chosen_library()
        _pool(ctx, "pool", states, batch_sizes, pooled, *weights)
        return pooled

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the states and of the weights."""
        states, _, _, *weights = ctx.saved_tensors
        gradients = [torch.empty_like(tensor) for tensor in (states, *weights)]
        names = ("d_states", "d_w", "d_b", "d_v")
        given = dict(zip(names, gradients, strict=False)) | {"d_pooled": gradient.contiguous()}
        _pool(ctx, "pool_back", *ctx.saved_tensors, **given)
        return gradients[0], None, *gradients[1:]


def _pool(
    ctx: Any,
    name: str,
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
    getattr(ctx.library, name)(call)
