"""The engine of torch's own kernels: over packed steps, padded steps, or masked step by step.

All unrolls give equal states up to rounding. Shapes as in `engines.interface`; T is the longest
length. "padded" only uses operations that ONNX has, so that an exported model is computed by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqtrain.engines.cells import LSTM, Cell, as_torch_takes, cell_of, zero_state
from seqtrain.engines.interface import Between, DistinctInputs, Engine
from seqtrain.engines.layout import Layout, Packed, Padded


class TorchEngine(Engine):
    """Engine of torch's own kernels, for every device and floating-point type.

    Args:
        reason: reason why this engine was chosen, for screens.
        unroll: how packed sequences are computed. Padded sequences are never packed.

            - "packed": only valid steps are computed.
            - "padded": padding is also computed. The last state is taken at step length - 1. Of an
              LSTM's last states only h is returned (S = 1).
            - "masked": all rows go step by step. A sequence that has ended keeps its state.
    """

    name = "torch"

    def __init__(self, reason: str, unroll: str = "packed") -> None:
        super().__init__(reason)
        self.unroll = unroll
        self.pads = unroll == "padded"

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
        """Run all layers; see `Engine.run`."""
        steps = inputs.vectors() if isinstance(inputs, DistinctInputs) else inputs
        if start is None:
            start = zero_state(encoder, layout.lengths.shape[0], like=steps)
        start = start.to(steps.dtype).contiguous()
        cell, directions = cell_of(encoder), 2 if encoder.bidirectional else 1
        finals: list[Tensor] = []
        for layer in range(encoder.num_layers):
            if layer and between is not None:
                steps = between(steps, layer - 1)
            begin, end = layer * directions, (layer + 1) * directions
            weights = encoder.all_weights[begin:end]
            steps, last = self._run_layer(cell, steps, layout, start[:, begin:end], weights)
            finals.append(last)
        return steps if need_outputs else None, torch.cat(finals, dim=1)

    def _run_layer(
        self,
        cell: Cell,
        steps: Tensor,
        layout: Layout,
        start: Tensor,
        weights: Sequence[Sequence[Tensor]],
    ) -> tuple[Tensor, Tensor]:
        """Run one layer, with all its directions.

        Args:
            cell: recurrent cell.
            steps: inputs, (steps, E).
            layout: positions of the time steps.
            start: initial states of each direction, (S, D, B, H).
            weights: parameters of each direction: w_ih, w_hh, b_ih, b_hh.

        Returns:
            The states, (steps, D * H), and the last states, (S, D, B, H).
        """
        if isinstance(layout, Padded):
            return _padded(cell, steps, layout, start, weights)
        assert isinstance(layout, Packed)
        if self.unroll == "packed":
            run_packed = _in_rectangles if steps.is_cpu else _packed_on_device
            return run_packed(cell, steps, layout, start, weights)
        run = _padded if self.unroll == "padded" else _masked
        states, last = run(cell, layout.pad(steps), layout.padded(), start, weights)
        return layout.pack(states), last


def _padded(
    cell: Cell, steps: Tensor, layout: Padded, start: Tensor, weights: Sequence[Sequence[Tensor]]
) -> tuple[Tensor, Tensor]:
    """Run one layer over valid steps and padding; see `TorchEngine._run_layer`.

    For the backward direction, each sequence is reversed within its length.
    """
    states, last = [], []
    for direction, own in enumerate(weights):
        read = layout.reverse(steps) if direction else steps
        found = _kernel(cell, read, start[:, direction], own)[0]
        last.append(layout.last(found))
        states.append(layout.reverse(found) if direction else found)
    return torch.cat(states, dim=2), torch.stack(last).unsqueeze(0)


def _masked(
    cell: Cell, steps: Tensor, layout: Padded, start: Tensor, weights: Sequence[Sequence[Tensor]]
) -> tuple[Tensor, Tensor]:
    """Run one layer step by step over padded rows; see `TorchEngine._run_layer`.

    A row keeps its state after its end.
    """
    states, last = [], []
    for direction, (w_ih, w_hh, b_ih, b_hh) in enumerate(weights):
        read = layout.reverse(steps) if direction else steps
        projected = functional.linear(read, w_ih, b_ih)
        state, found = start[:, direction], []
        for step, valid in enumerate(layout.valid):
            recurrent = functional.linear(state[0], w_hh, b_hh)
            after = cell.step(projected[step], recurrent, state)
            state = torch.where(valid, after, state)
            found.append(state[0])
        last.append(state)
        both = torch.stack(found)
        states.append(layout.reverse(both) if direction else both)
    return torch.cat(states, dim=2), torch.stack(last, dim=1)


def _in_rectangles(
    cell: Cell, steps: Tensor, layout: Packed, start: Tensor, weights: Sequence[Sequence[Tensor]]
) -> tuple[Tensor, Tensor]:
    """Run one layer over packed steps on the CPU; see `TorchEngine._run_layer`.

    Consecutive steps with the same number of sequences form a rectangle, for which torch's kernel
    is called once. Without rectangles, torch would compute a packed batch step by step, and the
    time of the backward pass would grow with the square of the length.
    """
    counted = torch.unique_consecutive(layout.batch_sizes, return_counts=True)
    rows, longs = (counts.tolist() for counts in counted)
    flat = steps.split_with_sizes([row * long for row, long in zip(rows, longs, strict=True)])
    rectangles = [one.view(long, row, -1) for one, row, long in zip(flat, rows, longs, strict=True)]
    forward = _forward_rectangles(cell, rectangles, start[:, 0], weights[0])
    if len(weights) == 1:
        return forward[0], forward[1].unsqueeze(1)
    backward = _backward_rectangles(cell, rectangles, start[:, 1], weights[1])
    last = torch.stack((forward[1], backward[1]), dim=1)
    return torch.cat((forward[0], backward[0]), dim=1), last


def _forward_rectangles(
    cell: Cell, rectangles: Sequence[Tensor], start: Tensor, weights: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """Return the packed states and the last states of the forward direction. Rows only end."""
    state, states, ended = start, [], []
    for rectangle in rectangles:
        rows = rectangle.shape[1]
        ended.append(state[:, rows:])
        found, state = _kernel(cell, rectangle, state[:, :rows], weights)
        states.append(found.flatten(0, 1))
    return torch.cat(states), torch.cat((state, *reversed(ended)), dim=1)


def _backward_rectangles(
    cell: Cell, rectangles: Sequence[Tensor], start: Tensor, weights: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """Return the packed states and the last states of the backward direction. Rows only begin."""
    state, states = start[:, :0], []
    for rectangle in reversed(rectangles):
        begin = start[:, state.shape[1] : rectangle.shape[1]]
        state = torch.cat((state, begin), dim=1)
        found, state = _kernel(cell, rectangle.flip(0), state, weights)
        states.append(found.flip(0).flatten(0, 1))
    return torch.cat(states[::-1]), state


def _kernel(
    cell: Cell, steps: Tensor, state: Tensor, weights: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """Call torch's kernel for one layer and direction over a rectangle of time steps.

    Args:
        cell: recurrent cell.
        steps: inputs, (T, B, E).
        state: initial states, (S, B, H).
        weights: w_ih, w_hh, b_ih, b_hh.

    Returns:
        The states of all steps, (T, B, H), and the last states, (S, B, H).
    """
    dtype = _kernel_dtype(cell, steps)
    with nullcontext() if dtype is None else torch.autocast(steps.device.type, enabled=False):
        if dtype is not None:
            steps, state = steps.to(dtype), state.to(dtype)
        states, *last = cell.kernel(
            steps,
            as_torch_takes(state.unsqueeze(1)),
            _weights_for([weights], steps),
            has_biases=True,
            num_layers=1,
            dropout=0.0,
            train=torch.is_grad_enabled(),
            bidirectional=False,
            batch_first=False,
        )
    return states, torch.cat(last)


def _packed_on_device(
    cell: Cell, steps: Tensor, layout: Packed, start: Tensor, weights: Sequence[Sequence[Tensor]]
) -> tuple[Tensor, Tensor]:
    """Run one layer over packed steps by torch's kernel of an accelerator, as nn.GRU does."""
    dtype = _kernel_dtype(cell, steps)
    with nullcontext() if dtype is None else torch.autocast(steps.device.type, enabled=False):
        if dtype is not None:
            steps, start = steps.to(dtype), start.to(dtype)
        states, *last = cell.kernel(
            steps,
            layout.batch_sizes,
            as_torch_takes(start.contiguous()),
            _weights_for(weights, steps),
            has_biases=True,
            num_layers=1,
            dropout=0.0,
            train=torch.is_grad_enabled(),
            bidirectional=len(weights) > 1,
        )
    return states, torch.stack(last)


def _weights_for(weights: Sequence[Sequence[Tensor]], steps: Tensor) -> list[Tensor]:
    """Return the weights of all directions, in the order and the form that torch's kernel takes.

    cuDNN reads the matrices of all directions, and then the biases, from one buffer. Without such a
    buffer, torch copies the weights at each call, and warns.

    Args:
        weights: w_ih, w_hh, b_ih, b_hh of each direction.
        steps: inputs, whose type the weights get on CUDA.
    """
    in_order = [weight for own in weights for weight in own]
    if not steps.is_cuda:
        return in_order
    stored = [weight for own in weights for weight in own[:2]]
    stored += [weight for own in weights for weight in own[2:]]
    buffer = torch.cat([weight.flatten() for weight in stored]).to(steps.dtype)
    parts = buffer.split_with_sizes([weight.numel() for weight in stored])
    views = {id(w): part.view_as(w) for w, part in zip(stored, parts, strict=True)}
    return [views[id(weight)] for weight in in_order]


def _kernel_dtype(cell: Cell, steps: Tensor) -> torch.dtype | None:
    """Return the type in which a kernel must run under autocast, or None to leave it to autocast.

    On CUDA autocast would always use float16, so the kernel runs in autocast's type, or in float32
    if cuDNN lacks kernels for this type. On CPUs without AVX-512, oneDNN's LSTM would raise an
    error for bfloat16, so it runs in float32.
    """
    device = steps.device.type
    if device not in ("cpu", "cuda") or not torch.is_autocast_enabled(device):
        return None
    if device == "cpu":
        return torch.float32 if cell is LSTM and not _has_bfloat16_lstm() else None
    asked = torch.get_autocast_dtype("cuda")
    return asked if torch.cudnn_is_acceptable(steps.new_empty(1, dtype=asked)) else torch.float32


@cache
def _has_bfloat16_lstm() -> bool:
    """Return True if oneDNN's LSTM computes in bfloat16 on this processor."""
    found: bool = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return found
