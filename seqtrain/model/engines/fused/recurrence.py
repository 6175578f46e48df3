"""One layer of the fused GRU in one direction: steps forward, and the gradient by hand.

For each token, with input x and state h (Cho et al. 2014, arXiv:1406.1078, but with torch's
place for the reset gate, after the recurrent product):

    r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)
    z = sigmoid(W_iz x + b_iz + W_hz h + b_hz)
    q = W_hn h + b_hn
    n = tanh(W_in x + b_in + r q)
    h' = (1 - z) n + z h

Only what a step needs from the step before stays in the loop over steps: a product with W_h
and a few operations in place. The rest is done for a block of steps at once.

Legend of shapes: B batch, N packed tokens, M packed tokens of a block, U distinct vectors,
E input size, H hidden size.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import repeat
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqtrain.model.engines.fused.matmul import long_product, outer_product, product

BLOCK = 1024
"""Tokens of a block: enough to share the cost of an operation, few enough for the cache."""


class Block(NamedTuple):
    """A run of steps.

    Attributes:
        tokens: where its packed tokens are.
        sizes: number of sequences at every step.
    """

    tokens: slice
    sizes: list[int]


def cut_into_blocks(batch_sizes: list[int]) -> list[Block]:
    """Cut the steps of packed sequences into runs of at most BLOCK tokens, or of one step."""
    blocks: list[Block] = []
    sizes: list[int] = []
    start = stop = 0
    for size in batch_sizes:
        if sizes and stop + size - start > BLOCK:
            blocks.append(Block(slice(start, stop), sizes))
            start, sizes = stop, []
        sizes.append(size)
        stop += size
    return [*blocks, Block(slice(start, stop), sizes)]


class Recurrence(torch.autograd.Function):
    """The recurrence over packed tokens; its inputs in the order of `forward`.

    Args:
        vectors: input vectors (N, E), or the distinct ones among them (U, E).
        index: row of `vectors` of every token (N,); None: token i has row i.
        h0: initial states (B, H).
        w_ih, w_hh, b_ih, b_hh: torch's parameters, gates in the order r, z, n.
        blocks: the steps.
        need_outputs: return the states of all steps.
        need_gradient: keep what backward needs.
        dtype: type of the matrix products; all else has the parameters' type.

    Returns:
        The states of all steps (N, H) or None, and each sequence's last valid state (B, H).
    """

    @staticmethod
    def forward(
        ctx: Any,
        vectors: Tensor,
        index: Tensor | None,
        h0: Tensor,
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
        hidden = h0.clone(memory_format=torch.contiguous_format)
        count, size = blocks[-1].tokens.stop, hidden.shape[1]
        outputs = hidden.new_empty(count, size) if need_outputs else None
        lower_ih, lower_hh = w_ih.to(dtype), w_hh.to(dtype)
        with _full_precision(hidden):
            projected = None if index is None else long_product(vectors, lower_ih, b_ih)
            saved: list[Tensor] = []
            for tokens, sizes in blocks:
                if index is None or projected is None:
                    gates = long_product(vectors[tokens], lower_ih, b_ih)
                else:
                    gates = projected.index_select(0, index[tokens])
                before = q = None
                if need_gradient:
                    before, q = gates.new_empty(2, len(gates), size)
                    saved += gates, before, q
                after = None if outputs is None else outputs[tokens]
                _advance(hidden, sizes, gates, lower_hh, b_hh, before, q, after)
        if need_gradient:
            ctx.blocks, ctx.dtype = blocks, dtype
            ctx.save_for_backward(vectors, index, w_ih, w_hh, *saved)
            ctx.set_materialize_grads(False)
        return outputs, hidden

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor | None, d_final: Tensor | None) -> tuple[Any, ...]:
        """Run all steps back, with the gradients of both results (None: zero)."""
        vectors, index, w_ih, w_hh, *saved = ctx.saved_tensors
        size = w_hh.shape[1]
        lower_ih, lower_hh = w_ih.T.to(ctx.dtype), w_hh.T.to(ctx.dtype)
        dh = w_hh.new_zeros(ctx.blocks[0].sizes[0], size)
        if d_final is not None:
            dh += d_final
        d_vectors = torch.empty_like(vectors) if ctx.needs_input_grad[0] else None
        d_projected = w_ih.new_zeros(0 if index is None else len(vectors), 3 * size)
        dw_ih, dw_hh = torch.zeros_like(w_ih), torch.zeros_like(w_hh)
        db_ih, db_hh = w_ih.new_zeros(3 * size), w_hh.new_zeros(3 * size)

        def project_back(d_gates: Tensor, rows: slice) -> None:
            dw_ih.add_(outer_product(d_gates, vectors[rows], ctx.dtype))
            db_ih.add_(d_gates.sum(0))
            if d_vectors is not None:
                d_vectors[rows] = long_product(d_gates, lower_ih)

        kept = zip(ctx.blocks, saved[::3], saved[1::3], saved[2::3], strict=True)
        with _full_precision(dh):
            for (tokens, sizes), gates, before, q in reversed([*kept]):
                d_recurrent, dn = _derivatives(gates, before, q)
                d_after = None if d_outputs is None else d_outputs[tokens]
                _retreat(dh, sizes, gates, lower_hh, d_recurrent, dn, d_after)
                dw_hh += outer_product(d_recurrent, before, ctx.dtype)
                db_hh += d_recurrent.sum(0)
                d_gates = d_recurrent
                d_gates[:, 2 * size :] = dn
                if index is None:
                    project_back(d_gates, tokens)
                else:
                    d_projected.index_add_(0, index[tokens], d_gates)
            if index is not None:
                project_back(d_projected, slice(None))
        return d_vectors, None, dh, dw_ih, dw_hh, db_ih, db_hh, None, None, None, None


def _full_precision(tensor: Tensor) -> AbstractContextManager[object]:
    """Switch autocast off where the tensor's device has it."""
    if torch.amp.is_autocast_available(tensor.device.type):
        return torch.autocast(tensor.device.type, enabled=False)
    return nullcontext()


def _by_step(sizes: list[int], *tensors: Tensor | None) -> Iterator[tuple[Any, ...]]:
    """Yield each step's rows of the packed tensors of a block."""
    steps = (repeat(None, len(sizes)) if t is None else t.split_with_sizes(sizes) for t in tensors)
    return zip(*steps, strict=True)


def _advance(
    hidden: Tensor,
    sizes: list[int],
    gates: Tensor,
    w_hh: Tensor,
    b_hh: Tensor,
    before: Tensor | None,
    q: Tensor | None,
    after: Tensor | None,
) -> None:
    """Carry the hidden states through a block's steps.

    Args:
        hidden: the states (B, H), changed in place; a sequence that has ended keeps its last.
        sizes: number of sequences at every step.
        gates: the projected inputs (M, 3H); become r, z, n.
        w_hh: recurrent weight (3H, H).
        b_hh: recurrent bias (3H,).
        before: receives h (M, H); None: not kept.
        q: receives q (M, H); None: not kept.
        after: receives h' (M, H); None: not kept.
    """
    size = hidden.shape[1]
    r, z, n = gates.chunk(3, 1)
    rz = gates[:, : 2 * size]
    for rz_t, r_t, z_t, n_t, before_t, q_t, after_t in _by_step(
        sizes, rz, r, z, n, before, q, after
    ):
        h = hidden[: len(r_t)]
        recurrent_rz, recurrent_q = product(h, w_hh, b_hh).split_with_sizes((2 * size, size), 1)
        rz_t.add_(recurrent_rz).sigmoid_()
        if q_t is not None:
            before_t.copy_(h)
            q_t.copy_(recurrent_q)
        _tanh_(n_t.addcmul_(r_t, recurrent_q))
        torch.lerp(n_t, h, z_t, out=h)
        if after_t is not None:
            after_t.copy_(h)


def _tanh_(x: Tensor) -> Tensor:
    """Take tanh in place; on the CPU as 2 sigmoid(2x) - 1, twice as fast in torch."""
    return x.mul_(2).sigmoid_().mul_(2).sub_(1) if x.device.type == "cpu" else x.tanh_()


def _derivatives(gates: Tensor, before: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    """Derivatives of h' by W_hr h, W_hz h and q (M, 3H), and by W_in x (M, H)."""
    r, z, n = gates.chunk(3, 1)
    by_gates = torch.empty_like(gates)
    by_r, by_z, by_q = by_gates.chunk(3, 1)
    one = gates.new_ones(())
    rest = one - z
    by_n = torch.addcmul(one, n, n, value=-1).mul_(rest)
    torch.mul(by_n, r, out=by_q)
    slope = by_q * q
    torch.addcmul(slope, slope, r, value=-1, out=by_r)
    torch.sub(before, n, out=by_z).mul_(z).mul_(rest)
    return by_gates, by_n


def _retreat(
    dh: Tensor,
    sizes: list[int],
    gates: Tensor,
    w_hh: Tensor,
    d_gates: Tensor,
    d_n: Tensor,
    d_after: Tensor | None,
) -> None:
    """Carry the gradient of the hidden states back through a block's steps.

    Args:
        dh: the gradient (B, H), changed in place; a sequence's row waits for its last step.
        sizes: number of sequences at every step.
        gates: r, z, n (M, 3H).
        w_hh: recurrent weight, transposed (H, 3H).
        d_gates: derivatives of h' (M, 3H); become gradients.
        d_n: derivatives of h' (M, H); become gradients.
        d_after: gradient of h' itself, where all states are outputs (M, H); None: no such.
    """
    size = dh.shape[1]
    z = gates[:, size : 2 * size]
    by_gate = d_gates.view(-1, 3, size)
    steps = [*_by_step(sizes, z, d_gates, by_gate, d_n, d_after)]
    for z_t, d_gates_t, by_gate_t, d_n_t, d_after_t in reversed(steps):
        d = dh[: len(z_t)]
        if d_after_t is not None:
            d.add_(d_after_t)
        by_gate_t.mul_(d.unsqueeze(1))
        d_n_t.mul_(d)
        torch.addcmul(product(d_gates_t, w_hh), z_t, d, out=d)
