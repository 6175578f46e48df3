"""The native engine: a stack of recurrent layers in C++, with their gradients.

Shapes as in `engines.interface`.
"""

from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from seqtrain.engines.cells import Cell, cell_of
from seqtrain.engines.interface import Between, DistinctInputs, Engine
from seqtrain.engines.layout import Layout, Packed
from seqtrain.engines.native.library import (
    CELL_KINDS,
    LayerCall,
    Library,
    address,
    load_library,
    new,
    why_unavailable,
)


class NativeEngine(Engine):
    """Engine of the compiled library: float32 on the CPU.

    Under autocast to bfloat16, the factors of matrix products are rounded to bfloat16 if the
    processor has such products. All other numbers stay float32. A forward pass can have only one
    backward pass, because this overwrites the saved numbers.
    """

    name = "native"

    @classmethod
    def unavailable(cls, cell: Cell, device: torch.device, dtype: torch.dtype) -> str:
        """Return the reason why the engine can't run a model, or an empty string if it can.

        Args:
            cell: recurrent cell.
            device: device of the weights.
            dtype: type of the weights.
        """
        if cell not in CELL_KINDS:
            return f"it has no {cell.name}"
        if device.type != "cpu":
            return f"it has no kernels for {device.type}"
        if dtype != torch.float32:
            return f"native only takes float32, not {str(dtype).removeprefix('torch.')}"
        return why_unavailable()

    def run(
        self,
        encoder: nn.RNNBase,
        inputs: Tensor | DistinctInputs,
        layout: Layout,
        start: Tensor | None = None,
        *,
        need_outputs: bool = True,
        between: Between | None = None,
    ) -> tuple[Tensor | None, Tensor]:
        """Run all layers; see `Engine.run`. Results are float32, even under autocast.

        Raises:
            ValueError: If a shape, an index or a batch size doesn't fit, or the layout is padded.
            RuntimeError: If the compiled library can't be used.
        """
        library, directions = load_library(), 2 if encoder.bidirectional else 1
        vectors, steps = _checked(encoder, inputs, layout, start)
        outputs, lasts, layer_start, weights = None, [], None, encoder.all_weights
        saving = torch.is_grad_enabled() and any(
            tensor is not None and tensor.requires_grad
            for tensor in chain((vectors, start), *weights)
        )
        run: Callable[..., tuple[Tensor | None, Tensor]] = _RunLayer.apply
        for number in range(encoder.num_layers):
            top = number == encoder.num_layers - 1
            begin, end = number * directions, (number + 1) * directions
            if start is not None:
                layer_start = start[:, begin:end].contiguous()
            parameters = [tensor.contiguous() for tensor in chain(*weights[begin:end])]
            outputs, last = run(
                library, cell_of(encoder), steps, need_outputs or not top, saving,
                vectors, layer_start, *parameters,
            )  # fmt: skip
            lasts.append(last)
            if outputs is not None and not top:
                if between is None:
                    vectors = outputs
                else:
                    vectors = between(outputs, number).contiguous()
                steps = steps._replace(which=None)
        return outputs, lasts[0] if len(lasts) == 1 else torch.cat(lasts, dim=1)


class _Steps(NamedTuple):
    """Layout of the time steps of a packed batch. Tensors are contiguous.

    Attributes:
        which: row of the input vectors for each time step, (N,), or None if step i uses row i.
            Equal inputs can share a row.
        sizes: number of sequences at each time step, (T,).
        tokens: number N of time steps.
        batch: number B of sequences.
    """

    which: Tensor | None
    sizes: Tensor
    tokens: int
    batch: int


class _RunLayer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        library: Library,
        cell: Cell,
        steps: _Steps,
        need_outputs: bool,
        saving: bool,
        vectors: Tensor,
        start: Tensor | None,
        *parameters: Tensor,
    ) -> tuple[Tensor | None, Tensor]:
        """Run one layer, with one direction or both.

        Args:
            ctx: torch's context for the backward pass.
            library: the compiled library.
            cell: recurrent cell.
            steps: layout of the time steps.
            need_outputs: True to return the states of all time steps.
            saving: True to save what the backward pass needs.
            vectors: input vectors, (U, E).
            start: initial states, (S, D, B, H), or None for zeros.
            *parameters: w_ih, w_hh, b_ih, b_hh of each direction.

        Returns:
            The states of all time steps, (N, D * H), or None; and the last states, (S, D, B, H).
        """
        directions, hidden = len(parameters) // 4, parameters[1].shape[1]
        tokens, kind = steps.tokens, CELL_KINDS[cell]
        row = library.gate_row(kind, hidden)
        last = new(cell.tensors, directions, steps.batch, hidden)
        if need_outputs:
            outputs = new(tokens, directions * hidden)
        else:
            outputs = None
        gates = new(directions * tokens * row) if saving else None
        if saving and not need_outputs:
            own = new(tokens * directions * hidden)
        else:
            own = None
        states = own if outputs is None else outputs
        calls = []
        for direction in range(directions):
            w_ih, w_hh, b_ih, b_hh = parameters[4 * direction : 4 * direction + 4]
            call = LayerCall(
                cell=kind,
                threads=torch.get_num_threads(),
                reverse=direction,
                tokens=tokens,
                steps=len(steps.sizes),
                batch=steps.batch,
                vectors=len(vectors),
                input_size=w_ih.shape[1],
                hidden_size=hidden,
                states_stride=directions * hidden,
                batch_sizes=address(steps.sizes, dtype=torch.int64),
                index=address(steps.which, dtype=torch.int64),
                vectors_in=address(vectors),
                w_ih=address(w_ih),
                w_hh=address(w_hh),
                b_ih=address(b_ih),
                b_hh=address(b_hh),
                states=address(states, direction * hidden),
                gates=address(gates, direction * tokens * row),
            )
            call.h0, call.c0 = _addresses(start, direction)
            call.last, call.last_c = _addresses(last, direction)
            scratch = new(library.scratch(call, 0) // 4)
            call.scratch = address(scratch)
            library.forward(call)
            calls.append(call)
        if saving:
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(vectors, start, outputs, *parameters)
            ctx.library, ctx.calls = library, calls
            ctx.read = steps, gates, own  # keeps the tensors alive whose addresses `calls` have
        return outputs, last

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor | None, d_last: Tensor | None) -> tuple[Any, ...]:
        """Return one gradient or None for each argument of `forward` after `ctx`, in their order.

        The parameters always have gradients. `vectors` and `start` have gradients if torch needs
        them.

        Args:
            ctx: torch's context of the forward pass.
            d_outputs: gradient of the states of all time steps, or None for zeros.
            d_last: gradient of the last states, or None for zeros.

        Raises:
            RuntimeError: If it is called twice for one forward pass.
        """
        vectors, start, _, *parameters = ctx.saved_tensors
        library, calls, ctx.calls = ctx.library, ctx.calls, None
        if calls is None:
            raise RuntimeError("the native engine goes back through a forward pass once only")
        d_outputs = None if d_outputs is None else d_outputs.contiguous()
        d_last = None if d_last is None else d_last.contiguous()
        if ctx.needs_input_grad[5]:
            d_vectors = new(*vectors.shape)
        else:
            d_vectors = None
        d_start = new(*start.shape) if ctx.needs_input_grad[6] else None
        d_parameters = [new(*parameter.shape) for parameter in parameters]
        for direction, call in enumerate(calls):
            call.d_states = address(d_outputs, direction * call.hidden_size)
            call.d_last, call.d_last_c = _addresses(d_last, direction)
            call.d_h0, call.d_c0 = _addresses(d_start, direction)
            call.d_vectors, call.add_d_vectors = address(d_vectors), direction
            own = d_parameters[4 * direction : 4 * direction + 4]
            call.d_w_ih, call.d_w_hh, call.d_b_ih, call.d_b_hh = map(address, own)
            scratch = new(library.scratch(call, 1) // 4)
            call.scratch = address(scratch)
            library.backward(call)
        ctx.read = None
        return (*(None,) * 5, d_vectors, d_start, *d_parameters)


def _addresses(states: Tensor | None, direction: int) -> tuple[int, int]:
    """Return the memory addresses of h and c of one direction in states (S, D, B, H).

    The address of c is 0 (null) if the cell has no c. Both addresses are 0 if `states` is None.
    """
    if states is None:
        return 0, 0
    size = states[0, 0].numel()
    if len(states) > 1:
        c = address(states, (states.shape[1] + direction) * size)
    else:
        c = 0
    return address(states, direction * size), c


def _checked(
    encoder: nn.RNNBase, inputs: Tensor | DistinctInputs, layout: Layout, start: Tensor | None
) -> tuple[Tensor, _Steps]:
    """Check the arguments of `NativeEngine.run` before native code reads them.

    Returns:
        The input vectors, contiguous and in float32, and the layout of the time steps.

    Raises:
        ValueError: If a shape, an index or a batch size doesn't fit, or the layout is padded.
    """
    if not isinstance(layout, Packed):
        raise ValueError("layout: the native engine only takes packed sequences")
    cell, sizes = cell_of(encoder), layout.batch_sizes.contiguous()
    if isinstance(inputs, DistinctInputs):
        vectors, index = inputs.table, inputs.index.contiguous()
    else:
        vectors, index = inputs, None
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
    layers = encoder.num_layers * (2 if encoder.bidirectional else 1)
    shape = (cell.tensors, layers, rows[0], encoder.hidden_size)
    if start is not None and start.shape != shape:
        raise ValueError(f"start: shape {tuple(start.shape)}, must be {shape}")
    return vectors, _Steps(index, sizes, tokens, rows[0])
