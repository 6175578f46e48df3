"""The native engine: a stack of recurrent layers in C++, with their gradients.

Shapes as in `engines.interface`.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.cells import Cell, cell_of
from seqtrain.model.engines.interface import Between, DistinctInputs, Engine
from seqtrain.model.engines.native.library import (
    KINDS,
    LayerCall,
    Library,
    address,
    load_library,
    new,
    why_not,
)

_FREE: list[Tensor] = []
"""By size."""
_FREE_LOCK = threading.Lock()


class NativeEngine(Engine):
    """Calls the compiled library: float32 on the CPU.

    Under autocast to bfloat16, matrix products round what they multiply to it, where the processor
    has such products; their sums, and all else, stay float32. Each forward is gone back through
    once, as backward overwrites what it saved.
    """

    name = "native"

    @classmethod
    def why_not(cls, cell: Cell, device: torch.device, dtype: torch.dtype) -> str:
        """Return in one line why it can't run on such weights; empty where it can."""
        if cell not in KINDS:
            return f"it has no {cell.name}"
        if device.type != "cpu":
            return f"it has no kernels for {device.type}"
        if dtype != torch.float32:
            return f"native takes float32 alone, not {str(dtype).removeprefix('torch.')}"
        return why_not()

    def run(
        self,
        encoder: nn.RNNBase,
        inputs: PackedSequence | DistinctInputs,
        start: Tensor | None = None,
        *,
        need_outputs: bool = True,
        between: Between | None = None,
    ) -> tuple[Tensor | None, Tensor]:
        """Run all layers; as `Engine.run`, float32 whatever autocast says."""
        library, directions = chosen_library(), 2 if encoder.bidirectional else 1
        layer = _first_layer(encoder, inputs, start)
        vectors, outputs, lasts = layer.vectors, None, []
        tensors = [vectors, start, *encoder.parameters()]
        saving = torch.is_grad_enabled() and any(
            isinstance(tensor, Tensor) and tensor.requires_grad for tensor in tensors
        )
        run: Callable[..., tuple[Tensor | None, Tensor]] = _RunLayer.apply
        for number in range(encoder.num_layers):
            top = number == encoder.num_layers - 1
            begin, end = number * directions, (number + 1) * directions
            if start is not None:
                layer = replace(layer, start=start[:, begin:end].contiguous())
            parameters = [
                tensor.contiguous()
                for of_direction in encoder.all_weights[begin:end]
                for tensor in of_direction
            ]
            outputs, last = run(
                library, layer, need_outputs or not top, saving, layer.vectors, layer.start,
                *parameters,
            )  # fmt: skip
            lasts.append(last)
            if outputs is not None and not top:
                below = outputs if between is None else between(outputs, number).contiguous()
                layer = replace(layer, vectors=below, index=None)
        return outputs, lasts[0] if len(lasts) == 1 else torch.cat(lasts, dim=1)


@dataclass(frozen=True, eq=False)
class _Layer:
    """What a layer reads besides its parameters; tensors are contiguous.

    Shape:
        vectors: (U, E). index: vector of each time step, (N,); None: vector i is step i.
        batch_sizes: (T,). start: (S, D, B, H); None: zeros.
    """

    cell: Cell
    vectors: Tensor
    index: Tensor | None
    batch_sizes: Tensor
    start: Tensor | None
    tokens: int
    batch: int
    threads: int

    @property
    def kind(self) -> int:
        return KINDS[self.cell]

    def call(self, parameters: Sequence[Tensor], direction: int, directions: int) -> LayerCall:
        """Describe one direction to the library: sizes, and what is read."""
        w_ih, w_hh, b_ih, b_hh = parameters
        hidden = w_hh.shape[1]
        call = LayerCall(
            cell=self.kind,
            threads=self.threads,
            reverse=direction,
            tokens=self.tokens,
            steps=len(self.batch_sizes),
            batch=self.batch,
            vectors=len(self.vectors),
            input_size=w_ih.shape[1],
            hidden_size=hidden,
            states_stride=directions * hidden,
            batch_sizes=address(self.batch_sizes, dtype=torch.int64),
            index=address(self.index, dtype=torch.int64),
            vectors_in=address(self.vectors),
            w_ih=address(w_ih),
            w_hh=address(w_hh),
            b_ih=address(b_ih),
            b_hh=address(b_hh),
        )
        call.h0, call.c0 = self.states_of(self.start, direction, directions, hidden)
        return call

    def states_of(
        self, states: Tensor | None, direction: int, directions: int, hidden: int
    ) -> tuple[int, int]:
        """Return the addresses of h and c of a direction in states (S, D, B, H); 0: null."""
        if states is None:
            return 0, 0
        h = direction * self.batch * hidden
        c = directions * self.batch * hidden + h
        return address(states, h), address(states, c) if len(states) > 1 else 0


class _RunLayer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        library: Library,
        layer: _Layer,
        need_outputs: bool,
        saving: bool,
        vectors: Tensor,
        start: Tensor | None,
        *parameters: Tensor,
    ) -> tuple[Tensor | None, Tensor]:
        """Return outputs (N, D * H), None where not needed, and last states (S, D, B, H)."""
        directions, hidden = len(parameters) // 4, parameters[1].shape[1]
        outputs = new(layer.tokens, directions * hidden) if need_outputs else None
        last = new(layer.cell.tensors, directions, layer.batch, hidden)
        saved = None
        if saving:
            row = library.gate_row(layer.kind, hidden)
            gates = Lent(directions * layer.tokens * row)
            states = None if need_outputs else Lent(layer.tokens * directions * hidden)
            saved = gates, states
        for direction in range(directions):
            own = parameters[4 * direction : 4 * direction + 4]
            call = layer.call(own, direction, directions)
            _add_steps(call, library, saved, outputs)
            call.last, call.last_c = layer.states_of(last, direction, directions, hidden)
            scratch = Lent(library.scratch(call, 0) // 4)
            call.scratch = address(scratch.tensor)
            library.forward(call)
        if saving:
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(vectors, start, outputs, *parameters)
            ctx.library, ctx.saved = library, saved
            ctx.layer = replace(layer, vectors=new(0), start=None)
        return outputs, last

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor | None, d_last: Tensor | None) -> tuple[Any, ...]:
        """Return the gradients of vectors and start, where they are wanted, and parameters."""
        vectors, start, outputs, *parameters = ctx.saved_tensors
        library, saved = ctx.library, ctx.saved
        if saved is None:
            raise RuntimeError("the native engine goes back through a forward pass once only")
        ctx.saved = None
        layer = replace(ctx.layer, vectors=vectors, start=start)
        d_outputs = None if d_outputs is None else d_outputs.contiguous()
        d_last = None if d_last is None else d_last.contiguous()
        d_vectors = new(*vectors.shape) if ctx.needs_input_grad[4] else None
        d_start = new(*start.shape) if ctx.needs_input_grad[5] else None
        d_parameters = [new(*parameter.shape) for parameter in parameters]
        directions, hidden = len(parameters) // 4, parameters[1].shape[1]
        for direction in range(directions):
            own = slice(4 * direction, 4 * direction + 4)
            call = layer.call(parameters[own], direction, directions)
            _add_steps(call, library, saved, outputs)
            call.d_states = address(d_outputs, direction * hidden)
            call.d_last, call.d_last_c = layer.states_of(d_last, direction, directions, hidden)
            call.d_h0, call.d_c0 = layer.states_of(d_start, direction, directions, hidden)
            call.d_vectors, call.add_d_vectors = address(d_vectors), direction
            call.d_w_ih, call.d_w_hh, call.d_b_ih, call.d_b_hh = map(address, d_parameters[own])
            scratch = Lent(library.scratch(call, 1) // 4)
            call.scratch = address(scratch.tensor)
            library.backward(call)
        return (*(None,) * 4, d_vectors, d_start, *d_parameters)


def _add_steps(
    call: LayerCall,
    library: Library,
    saved: tuple[Lent, Lent | None] | None,
    outputs: Tensor | None,
) -> None:
    states = outputs
    if saved is not None:
        gates, own_states = saved
        row = library.gate_row(call.cell, call.hidden_size)
        call.gates = address(gates.tensor, call.reverse * call.tokens * row)
        states = outputs if own_states is None else own_states.tensor
    call.states = address(states, call.reverse * call.hidden_size)


class Lent:
    """A float buffer that is used again, once nobody refers to it: fresh megabytes are slow."""

    def __init__(self, count: int) -> None:
        with _FREE_LOCK:
            at = bisect_left(_FREE, count, key=Tensor.numel)
            found = _FREE.pop(at if at < len(_FREE) else -1) if _FREE else None
        fits = found is not None and found.numel() >= count
        self.tensor = found if found is not None and fits else new(count + count // 4)

    def __del__(self) -> None:
        with _FREE_LOCK:
            insort(_FREE, self.tensor, key=Tensor.numel)


def _first_layer(
    encoder: nn.RNNBase,
    inputs: PackedSequence | DistinctInputs,
    start: Tensor | None,
) -> _Layer:
    """Check what is read before native code sees it; return the first layer, without a start."""
    cell, sizes = cell_of(encoder), inputs.batch_sizes.contiguous()
    directions = 2 if encoder.bidirectional else 1
    if isinstance(inputs, DistinctInputs):
        vectors, index = inputs.table, inputs.index.contiguous()
    else:
        vectors, index = inputs.data, None
    vectors = vectors.to(torch.float32).contiguous()
    if vectors.dim() != 2 or vectors.shape[1] != encoder.input_size:
        found = tuple(vectors.shape)
        raise ValueError(f"inputs: shape {found}, must be (tokens, {encoder.input_size})")
    rows = sizes.tolist()
    tokens = sum(rows)
    if sizes.dtype != torch.int64 or not rows or min(rows) < 1 or rows != sorted(rows)[::-1]:
        raise ValueError("batch_sizes: must be positive and never grow (longest sequence first)")
    if len(vectors if index is None else index) != tokens:
        raise ValueError(f"batch_sizes: sum is {tokens}, not the number of tokens")
    if index is not None:
        low, high = (int(bound) for bound in index.aminmax())
        if low < 0 or high >= len(vectors):
            raise ValueError(f"index: {low} to {high}, must be 0 to {len(vectors) - 1}")
    layers = encoder.num_layers * directions
    shape = (cell.tensors, layers, rows[0], encoder.hidden_size)
    if start is not None and start.shape != shape:
        raise ValueError(f"start: shape {tuple(start.shape)}, must be {shape}")
    return _Layer(cell, vectors, index, sizes, None, tokens, rows[0], torch.get_num_threads())


def chosen_library() -> Library:
    """Return the library; products round to bfloat16 where autocast lets them."""
    lowered = torch.is_autocast_enabled("cpu")
    lowered = lowered and torch.get_autocast_dtype("cpu") == torch.bfloat16
    library = load_library()
    return library.rounding if lowered else library
