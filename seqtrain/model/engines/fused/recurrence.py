"""One layer of the fused engine in one direction: block by block through time, and back.

Legend of shapes: B batch, N packed time steps, M packed time steps of a block, U distinct vectors,
E input size, H hidden size, G gates, P parts of a state.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from seqtrain.model.engines.fused.arithmetic import Arithmetic
from seqtrain.model.engines.fused.matmul import long_product, outer_product

BLOCK = 1024
"""Tokens of a block: enough to share the cost of an operation, few enough for the cache."""
STEPS = 16
"""Steps of a block, at most."""
FADED = 1e-30
"""A gradient of a state below this adds nothing to those of the weights. Between blocks it becomes
zero, before it fades on to denormal numbers, with which a processor is many times as slow."""


class Block(NamedTuple):
    """A run of steps.

    Attributes:
        tokens: where its packed tokens are.
        sizes: number of sequences at every step.
    """

    tokens: slice
    sizes: list[int]


def cut_into_blocks(batch_sizes: list[int]) -> list[Block]:
    """Cut the steps of packed sequences into runs of STEPS and BLOCK tokens at most."""
    blocks: list[Block] = []
    sizes: list[int] = []
    start = stop = 0
    for size in batch_sizes:
        if sizes and (len(sizes) == STEPS or stop + size - start > BLOCK):
            blocks.append(Block(slice(start, stop), sizes))
            start, sizes = stop, []
        sizes.append(size)
        stop += size
    return [*blocks, Block(slice(start, stop), sizes)]


class Recurrence(torch.autograd.Function):
    """The recurrence over packed tokens; its inputs in the order of `forward`.

    Args:
        arithmetic: of the cell.
        vectors: input vectors (N, E), or the distinct ones among them (U, E).
        index: row of `vectors` of every token (N,); None: token i has row i.
        start: initial states (P, B, H).
        w_ih, w_hh, b_ih, b_hh: torch's parameters, gates in torch's order.
        blocks: the steps.
        need_outputs: return the states of all steps.
        need_gradient: keep what backward needs.
        dtype: type of the matrix products; all else has the parameters' type.

    Returns:
        The states of all steps (N, H) or None, and each sequence's last valid states (P, B, H).
    """

    @staticmethod
    def forward(
        ctx: Any,
        arithmetic: Arithmetic,
        vectors: Tensor,
        index: Tensor | None,
        start: Tensor,
        w_ih: Tensor,
        w_hh: Tensor,
        b_ih: Tensor,
        b_hh: Tensor,
        blocks: list[Block],
        need_outputs: bool,
        need_gradient: bool,
        dtype: torch.dtype,
    ) -> tuple[Tensor | None, Tensor]:
        """Run all steps."""
        need_gradient = need_gradient and any(ctx.needs_input_grad)
        state = start.clone(memory_format=torch.contiguous_format)
        count, size = blocks[-1].tokens.stop, state.shape[2]
        outputs = state.new_empty(count, size) if need_outputs else None
        ready_hh, ready_bias = arithmetic.prepare(w_hh, b_hh)
        lower_ih, lower_hh = w_ih.to(dtype), ready_hh.to(dtype)
        with _full_precision(state):
            projected = None if index is None else long_product(vectors, lower_ih, b_ih)
            saved: list[Tensor] = []
            for tokens, sizes in blocks:
                if index is None or projected is None:
                    gates = long_product(vectors[tokens], lower_ih, b_ih)
                else:
                    gates = projected.index_select(0, index[tokens])
                kept = None
                if need_gradient:
                    kept = gates.new_empty(arithmetic.kept, len(gates), size)
                    saved += gates, kept
                after = None if outputs is None else outputs[tokens]
                arithmetic.advance(state, sizes, gates, lower_hh, ready_bias, kept, after)
        if need_gradient:
            ctx.arithmetic, ctx.blocks, ctx.dtype = arithmetic, blocks, dtype
            ctx.parts = len(start)
            ctx.save_for_backward(vectors, index, w_ih, w_hh, *saved)
            ctx.set_materialize_grads(False)
        return outputs, state

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor | None, d_last: Tensor | None) -> tuple[Any, ...]:
        """Run all steps back, with the gradients of both results (None: zero)."""
        vectors, index, w_ih, w_hh, *saved = ctx.saved_tensors
        gate_rows, size = w_hh.shape
        lower_ih, lower_hh = w_ih.T.to(ctx.dtype), w_hh.T.to(ctx.dtype)
        d_state = w_hh.new_zeros(ctx.parts, ctx.blocks[0].sizes[0], size)
        if d_last is not None:
            d_state += d_last
        d_vectors = torch.empty_like(vectors) if ctx.needs_input_grad[1] else None
        d_projected = w_ih.new_zeros(0 if index is None else len(vectors), gate_rows)
        dw_ih, dw_hh = torch.zeros_like(w_ih), torch.zeros_like(w_hh)
        db_ih, db_hh = w_ih.new_zeros(gate_rows), w_hh.new_zeros(gate_rows)

        def project_back(d_gates: Tensor, rows: slice) -> None:
            dw_ih.add_(outer_product(d_gates, vectors[rows], ctx.dtype))
            db_ih.add_(d_gates.sum(0))
            if d_vectors is not None:
                d_vectors[rows] = long_product(d_gates, lower_ih)

        with _full_precision(d_state):
            for (tokens, sizes), gates, kept in reversed(
                [*zip(ctx.blocks, saved[::2], saved[1::2], strict=True)]
            ):
                d_after = None if d_outputs is None else d_outputs[tokens]
                d_state = functional.hardshrink(d_state, FADED)
                d_gates, d_last_gate = ctx.arithmetic.retreat(
                    d_state, sizes, gates, lower_hh, kept, d_after
                )
                dw_hh += outer_product(d_gates, kept[0], ctx.dtype)
                db_hh += d_gates.sum(0)
                if d_last_gate is not None:
                    d_gates[:, -size:] = d_last_gate
                if index is None:
                    project_back(d_gates, tokens)
                else:
                    d_projected.index_add_(0, index[tokens], d_gates)
            if index is not None:
                project_back(d_projected, slice(None))
        gradients = d_state, dw_ih, dw_hh, db_ih, db_hh
        return None, d_vectors, None, *gradients, None, None, None, None


def _full_precision(tensor: Tensor) -> AbstractContextManager[object]:
    """Switch autocast off where the tensor's device has it."""
    if torch.amp.is_autocast_available(tensor.device.type):
        return torch.autocast(tensor.device.type, enabled=False)
    return nullcontext()
