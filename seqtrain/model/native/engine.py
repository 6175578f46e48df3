"""The GRU over packed sequences, computed by the native library: a drop-in for `fused_gru`.

Legend of shapes: B batch, T longest length, N packed tokens, U distinct vectors, E input size,
H hidden size, L layers, D directions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.fused import DistinctInputs
from seqtrain.model.native.buffers import Buffers
from seqtrain.model.native.checks import check_inputs, check_parameters, check_start
from seqtrain.model.native.library import GruCall, Library, load_library, why_not

PARAMETERS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")

_buffers = Buffers()


def serves(encoder: nn.Module) -> bool:
    """Return whether the native engine can run this module: a float32 GRU on the CPU."""
    return (
        not why_not()
        and isinstance(encoder, nn.GRU)
        and all(p.dtype == torch.float32 and p.device.type == "cpu" for p in encoder.parameters())
    )


def native_gru(
    inputs: PackedSequence | DistinctInputs,
    gru: nn.GRU,
    h0: Tensor | None = None,
    *,
    need_outputs: bool = True,
) -> tuple[Tensor | None, Tensor]:
    """Run a GRU over packed sequences: what `gru(packed, h0)` does, gradients included.

    Args:
        inputs: the sequences, longest first.
        gru: owner of the parameters and of the dropout between layers.
        h0: initial states, in the order of the packed sequences; None: zeros.
        need_outputs: also return the states of all steps.

    Shape:
        inputs N tokens of size E, h0 (L * D, B, H) -> outputs (N, D * H), h_n (L * D, B, H).

    Returns:
        The last layer's states of all steps, packed (None where not needed), and the last valid
        state of each sequence; float32, whatever autocast says.

    Raises:
        RuntimeError: the native library isn't there.
        TypeError: a tensor of another type or device than the library's.
        ValueError: sizes that don't fit, or an index outside the table.
    """
    library = load_library()
    index = inputs.index if isinstance(inputs, DistinctInputs) else None
    vectors = inputs.table if isinstance(inputs, DistinctInputs) else inputs.data
    vectors = vectors.to(torch.float32)
    check_parameters(gru)
    check_inputs(vectors, index, inputs.batch_sizes, gru.input_size)
    if h0 is not None:
        check_start(h0, gru, int(inputs.batch_sizes[0]))
    directions = 2 if gru.bidirectional else 1
    outputs: Tensor | None = None
    finals = []
    for layer in range(gru.num_layers):
        last = layer == gru.num_layers - 1
        start = None if h0 is None else h0[layer * directions : (layer + 1) * directions]
        parameters = list(_parameters(gru, layer))
        wanted = need_outputs or not last
        outputs, final = _run_layer(library, wanted, vectors, index, inputs, start, parameters)
        finals.append(final)
        if outputs is not None and not last:
            vectors, index = functional.dropout(outputs, gru.dropout, gru.training), None
    return outputs, torch.cat(finals)


def _parameters(gru: nn.GRU, layer: int) -> Iterator[Tensor]:
    """Yield a layer's parameters, four a direction; zeros for the biases of a GRU without."""
    for suffix in ("", "_reverse") if gru.bidirectional else ("",):
        for name in PARAMETERS:
            parameter: Tensor | None = getattr(gru, f"{name}_l{layer}{suffix}", None)
            yield torch.zeros(3 * gru.hidden_size) if parameter is None else parameter


def _run_layer(
    library: Library,
    need_outputs: bool,
    vectors: Tensor,
    index: Tensor | None,
    inputs: PackedSequence | DistinctInputs,
    start: Tensor | None,
    parameters: list[Tensor],
) -> tuple[Tensor | None, Tensor]:
    """Run one layer in its directions, remembering what backward needs where it may come."""
    differentiable = [vectors, *parameters] if start is None else [vectors, start, *parameters]
    saving = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in differentiable)
    sizes = _Sizes(
        tokens=len(vectors) if index is None else len(index),
        batch=int(inputs.batch_sizes[0]),
        hidden=parameters[1].shape[1],
        directions=len(parameters) // 4,
        threads=torch.get_num_threads(),
    )
    run: Callable[..., tuple[Tensor | None, Tensor]] = _Layer.apply
    start = None if start is None else start.contiguous()
    return run(
        library,
        sizes,
        saving,
        need_outputs,
        inputs.batch_sizes.contiguous(),
        None if index is None else index.contiguous(),
        vectors.contiguous(),
        start,
        *(parameter.contiguous() for parameter in parameters),
    )


@dataclass(frozen=True)
class _Sizes:
    tokens: int
    batch: int
    hidden: int
    directions: int
    threads: int


class _Layer(torch.autograd.Function):
    """One layer in one or two directions, each a call of the library."""

    @staticmethod
    def forward(
        ctx: Any,
        library: Library,
        sizes: _Sizes,
        saving: bool,
        need_outputs: bool,
        batch_sizes: Tensor,
        index: Tensor | None,
        vectors: Tensor,
        h0: Tensor | None,
        *parameters: Tensor,
    ) -> tuple[Tensor | None, Tensor]:
        width = sizes.directions * sizes.hidden
        row = library.gate_row(sizes.hidden)
        outputs = vectors.new_empty(sizes.tokens, width) if need_outputs else None
        h_n = vectors.new_empty(sizes.directions, sizes.batch, sizes.hidden)
        states = gates = None
        if saving:
            states = None if need_outputs else _buffers.lend(sizes.tokens * width)
            gates = _buffers.lend(sizes.directions * sizes.tokens * row)
        kept = outputs if states is None else states.tensor
        for direction in range(sizes.directions):
            call = _describe(sizes, direction, batch_sizes, index, vectors, h0, parameters)
            call.states = _address(kept, direction * sizes.hidden)
            call.gates = _address(
                None if gates is None else gates.tensor, direction * sizes.tokens * row
            )
            call.last = _address(h_n[direction])
            scratch = _buffers.lend(library.scratch(call, 0) // 4)
            call.scratch = _address(scratch.tensor)
            library.forward(call)
        ctx.set_materialize_grads(False)
        if saving:
            ctx.save_for_backward(batch_sizes, index, vectors, h0, outputs, *parameters)
            ctx.library, ctx.sizes, ctx.states, ctx.gates = library, sizes, states, gates
        return outputs, h_n

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor | None, d_h_n: Tensor | None) -> tuple[Any, ...]:
        batch_sizes, index, vectors, h0, outputs, *parameters = ctx.saved_tensors
        library, sizes, states, gates = ctx.library, ctx.sizes, ctx.states, ctx.gates
        if gates is None:
            raise RuntimeError("the native GRU goes back through a forward pass once only")
        ctx.states = ctx.gates = None
        d_outputs = None if d_outputs is None else d_outputs.contiguous()
        d_h_n = None if d_h_n is None else d_h_n.contiguous()
        d_vectors = torch.empty_like(vectors) if ctx.needs_input_grad[6] else None
        d_h0 = torch.empty_like(h0) if ctx.needs_input_grad[7] else None
        d_parameters = [torch.empty_like(parameter) for parameter in parameters]
        row = library.gate_row(sizes.hidden)
        for direction in range(sizes.directions):
            call = _describe(sizes, direction, batch_sizes, index, vectors, h0, parameters)
            offset = direction * sizes.hidden
            call.states = _address(outputs if states is None else states.tensor, offset)
            call.gates = _address(gates.tensor, direction * sizes.tokens * row)
            call.d_states = _address(d_outputs, offset)
            call.d_last = _address(d_h_n, offset * sizes.batch)
            call.d_vectors, call.add_d_vectors = _address(d_vectors), direction
            call.d_h0 = _address(d_h0, offset * sizes.batch)
            call.d_w_ih, call.d_w_hh, call.d_b_ih, call.d_b_hh = map(
                _address, d_parameters[4 * direction : 4 * direction + 4]
            )
            scratch = _buffers.lend(library.scratch(call, 1) // 4)
            call.scratch = _address(scratch.tensor)
            library.backward(call)
        return (*(None,) * 6, d_vectors, d_h0, *d_parameters)


def _describe(
    sizes: _Sizes,
    direction: int,
    batch_sizes: Tensor,
    index: Tensor | None,
    vectors: Tensor,
    h0: Tensor | None,
    parameters: tuple[Tensor, ...] | list[Tensor],
) -> GruCall:
    """Fill in what forward and backward have in common."""
    w_ih, w_hh, b_ih, b_hh = map(_address, parameters[4 * direction : 4 * direction + 4])
    return GruCall(
        threads=sizes.threads,
        reverse=direction,
        tokens=sizes.tokens,
        steps=len(batch_sizes),
        batch=sizes.batch,
        vectors=len(vectors),
        input_size=vectors.shape[1],
        hidden_size=sizes.hidden,
        states_stride=sizes.directions * sizes.hidden,
        batch_sizes=_address(batch_sizes),
        index=_address(index),
        vectors_in=_address(vectors),
        w_ih=w_ih,
        w_hh=w_hh,
        b_ih=b_ih,
        b_hh=b_hh,
        h0=_address(h0, direction * sizes.batch * sizes.hidden),
    )


def _address(tensor: Tensor | None, offset: int = 0) -> int | None:
    """Return where a contiguous tensor's number `offset` lies; None (null) for no tensor."""
    return None if tensor is None else tensor.data_ptr() + offset * tensor.element_size()
