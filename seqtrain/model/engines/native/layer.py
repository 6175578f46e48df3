"""One layer in its directions, forward and backward: each direction a call of the library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqtrain.model.engines.native.buffers import Buffers, Loan, address, new
from seqtrain.model.engines.native.call import Reading, describe
from seqtrain.model.engines.native.library import KINDS, LayerCall, Library

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
        reading: its cell and inputs.
        parameters: four a direction.
        need_outputs: also return the states of all steps.
        saving: remember what backward needs.

    Shape:
        Returns outputs (N, D * H), None where not needed, and the last states (P, D, B, H).
    """
    if not saving:
        outputs, last, _ = _forward(library, reading, parameters, need_outputs, saving)
        return outputs, last
    run: Callable[..., tuple[Tensor | None, Tensor]] = _Layer.apply
    return run(library, reading, need_outputs, reading.vectors, reading.start, *parameters)


class _Layer(torch.autograd.Function):
    """A layer that gradients flow through."""

    @staticmethod
    def forward(
        ctx: Any,
        library: Library,
        reading: Reading,
        need_outputs: bool,
        vectors: Tensor,
        start: Tensor | None,
        *parameters: Tensor,
    ) -> tuple[Tensor | None, Tensor]:
        outputs, last, saved = _forward(library, reading, parameters, need_outputs, True)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(
            vectors, reading.index, reading.batch_sizes, start, outputs, *parameters
        )
        ctx.library, ctx.saved, ctx.cell = library, saved, reading.cell
        ctx.numbers = reading.tokens, reading.batch, reading.threads, reading.bfloat16
        return outputs, last

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor | None, d_last: Tensor | None) -> tuple[Any, ...]:
        vectors, index, batch_sizes, start, outputs, *parameters = ctx.saved_tensors
        library, saved = ctx.library, ctx.saved
        if saved is None:
            raise RuntimeError("the native engine goes back through a forward pass once only")
        ctx.saved = None
        reading = Reading(ctx.cell, vectors, index, batch_sizes, start, *ctx.numbers)
        d_outputs = None if d_outputs is None else d_outputs.contiguous()
        d_last = None if d_last is None else d_last.contiguous()
        d_vectors = new(*vectors.shape) if ctx.needs_input_grad[3] else None
        d_start = new(*start.shape) if ctx.needs_input_grad[4] else None
        d_parameters = [new(*parameter.shape) for parameter in parameters]
        directions = len(parameters) // 4
        for direction in range(directions):
            call = describe(reading, parameters, direction)
            _add_states(call, library, saved, outputs)
            rows = call.batch * call.hidden_size
            call.d_states = address(d_outputs, direction * call.hidden_size)
            call.d_last = address(d_last, direction * rows)
            call.d_h0 = address(d_start, direction * rows)
            if ctx.cell.parts > 1:
                call.d_last_c = address(d_last, (directions + direction) * rows)
                call.d_c0 = address(d_start, (directions + direction) * rows)
            call.d_vectors, call.add_d_vectors = address(d_vectors), direction
            call.d_w_ih, call.d_w_hh, call.d_b_ih, call.d_b_hh = map(
                address, d_parameters[4 * direction : 4 * direction + 4]
            )
            scratch = _buffers.lend(library.scratch(call, 1) // 4)
            call.scratch = address(scratch.tensor)
            library.backward(call)
        return (*(None,) * 3, d_vectors, d_start, *d_parameters)


def _forward(
    library: Library,
    reading: Reading,
    parameters: Sequence[Tensor],
    need_outputs: bool,
    saving: bool,
) -> tuple[Tensor | None, Tensor, _Saved | None]:
    """Run a layer; return its outputs, last states and what was saved."""
    directions, hidden = len(parameters) // 4, parameters[1].shape[1]
    outputs = new(reading.tokens, directions * hidden) if need_outputs else None
    last = new(reading.cell.parts, directions, reading.batch, hidden)
    saved = None
    if saving:
        row = library.gate_row(KINDS[reading.cell], hidden)
        gates = _buffers.lend(directions * reading.tokens * row)
        states = None if need_outputs else _buffers.lend(reading.tokens * directions * hidden)
        saved = _Saved(gates, states)
    for direction in range(directions):
        call = describe(reading, parameters, direction)
        _add_states(call, library, saved, outputs)
        rows = reading.batch * hidden
        call.last = address(last, direction * rows)
        if reading.cell.parts > 1:
            call.last_c = address(last, (directions + direction) * rows)
        scratch = _buffers.lend(library.scratch(call, 0) // 4)
        call.scratch = address(scratch.tensor)
        library.forward(call)
    return outputs, last, saved


def _add_states(
    call: LayerCall, library: Library, saved: _Saved | None, outputs: Tensor | None
) -> None:
    """Say where the states of all steps are, and what else is saved of them."""
    states = outputs
    if saved is not None:
        row = library.gate_row(call.cell, call.hidden_size)
        call.gates = address(saved.gates.tensor, call.reverse * call.tokens * row)
        states = outputs if saved.states is None else saved.states.tensor
    call.states = address(states, call.reverse * call.hidden_size)
