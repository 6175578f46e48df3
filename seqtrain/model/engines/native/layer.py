"""One layer in its directions, forward and backward: each direction a call of the library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqtrain.model.engines.native.buffers import Buffers, Loan
from seqtrain.model.engines.native.call import Reading, address, describe
from seqtrain.model.engines.native.library import GruCall, Library

_buffers = Buffers()


@dataclass(frozen=True, eq=False)
class _Saved:
    """What backward needs of forward's steps, on loan; no states where they are an output."""

    gates: Loan
    states: Loan | None


def run_layer(
    library: Library,
    reading: Reading,
    parameters: list[Tensor],
    need_outputs: bool,
    saving: bool,
) -> tuple[Tensor | None, Tensor]:
    """Run a layer.

    Args:
        library: what computes it.
        reading: its inputs.
        parameters: four a direction.
        need_outputs: also return the states of all steps.
        saving: remember what backward needs.

    Shape:
        Returns outputs (N, D * H), None where not needed, and h_n (D, B, H).
    """
    if not saving:
        outputs, h_n, _ = _forward(library, reading, parameters, need_outputs, saving)
        return outputs, h_n
    run: Callable[..., tuple[Tensor | None, Tensor]] = _Layer.apply
    return run(library, reading, need_outputs, reading.vectors, reading.h0, *parameters)


class _Layer(torch.autograd.Function):
    """A layer that gradients flow through."""

    @staticmethod
    def forward(
        ctx: Any,
        library: Library,
        reading: Reading,
        need_outputs: bool,
        vectors: Tensor,
        h0: Tensor | None,
        *parameters: Tensor,
    ) -> tuple[Tensor | None, Tensor]:
        outputs, h_n, saved = _forward(library, reading, parameters, need_outputs, True)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(vectors, reading.index, reading.batch_sizes, h0, outputs, *parameters)
        ctx.library, ctx.saved = library, saved
        ctx.numbers = reading.tokens, reading.batch, reading.threads, reading.bfloat16
        return outputs, h_n

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor | None, d_h_n: Tensor | None) -> tuple[Any, ...]:
        vectors, index, batch_sizes, h0, outputs, *parameters = ctx.saved_tensors
        library, saved = ctx.library, ctx.saved
        if saved is None:
            raise RuntimeError("the native GRU goes back through a forward pass once only")
        ctx.saved = None
        reading = Reading(vectors, index, batch_sizes, h0, *ctx.numbers)
        d_outputs = None if d_outputs is None else d_outputs.contiguous()
        d_h_n = None if d_h_n is None else d_h_n.contiguous()
        d_vectors = torch.empty_like(vectors) if ctx.needs_input_grad[3] else None
        d_h0 = torch.empty_like(h0) if ctx.needs_input_grad[4] else None
        d_parameters = [torch.empty_like(parameter) for parameter in parameters]
        for direction in range(len(parameters) // 4):
            call = describe(reading, parameters, direction)
            _add_states(call, library, saved, outputs)
            offset = direction * call.hidden_size
            call.d_states = address(d_outputs, offset)
            call.d_last = address(d_h_n, offset * call.batch)
            call.d_vectors, call.add_d_vectors = address(d_vectors), direction
            call.d_h0 = address(d_h0, offset * call.batch)
            call.d_w_ih, call.d_w_hh, call.d_b_ih, call.d_b_hh = map(
                address, d_parameters[4 * direction : 4 * direction + 4]
            )
            scratch = _buffers.lend(library.scratch(call, 1) // 4)
            call.scratch = address(scratch.tensor)
            library.backward(call)
        return (*(None,) * 3, d_vectors, d_h0, *d_parameters)


def _forward(
    library: Library,
    reading: Reading,
    parameters: Sequence[Tensor],
    need_outputs: bool,
    saving: bool,
) -> tuple[Tensor | None, Tensor, _Saved | None]:
    """Run a layer; return its outputs, last states and what was saved."""
    directions, hidden = len(parameters) // 4, parameters[1].shape[1]
    outputs = torch.empty(reading.tokens, directions * hidden) if need_outputs else None
    h_n = torch.empty(directions, reading.batch, hidden)
    saved = None
    if saving:
        gates = _buffers.lend(directions * reading.tokens * library.gate_row(hidden))
        states = None if need_outputs else _buffers.lend(reading.tokens * directions * hidden)
        saved = _Saved(gates, states)
    for direction in range(directions):
        call = describe(reading, parameters, direction)
        _add_states(call, library, saved, outputs)
        call.last = address(h_n, direction * reading.batch * hidden)
        scratch = _buffers.lend(library.scratch(call, 0) // 4)
        call.scratch = address(scratch.tensor)
        library.forward(call)
    return outputs, h_n, saved


def _add_states(
    call: GruCall, library: Library, saved: _Saved | None, outputs: Tensor | None
) -> None:
    """Say where the states of all steps are, and what else is saved of them."""
    states = outputs
    if saved is not None:
        row = library.gate_row(call.hidden_size)
        call.gates = address(saved.gates.tensor, call.reverse * call.tokens * row)
        states = outputs if saved.states is None else saved.states.tensor
    call.states = address(states, call.reverse * call.hidden_size)
