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
        if isinstance(inputs, DistinctInputs):
            steps = inputs.vectors()
        else:
            steps = inputs
        if start is None:
            start = zero_state(encoder, layout.rows, like=steps)
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
            return _over_padding(cell, steps, layout, start, weights, masked=False)
        assert isinstance(layout, Packed)
        if self.unroll == "packed" and steps.is_cpu:
            return _in_rectangles(cell, steps, layout, start, weights)
        if self.unroll == "packed":
            return _kernel(cell, steps, start, weights, layout.batch_sizes)
        masked = self.unroll == "masked"
        padded = layout.pad(steps), layout.padded()
        states, last = _over_padding(cell, *padded, start, weights, masked=masked)
        return layout.pack(states), last


def _over_padding(
    cell: Cell,
    steps: Tensor,
    layout: Padded,
    start: Tensor,
    weights: Sequence[Sequence[Tensor]],
    *,
    masked: bool,
) -> tuple[Tensor, Tensor]:
    """Run one layer over padded rows; see `TorchEngine._run_layer`.

    For the backward direction, each sequence is reversed within its length. If `masked` is True,
    the rows go step by step, and keep their state after their end.
    """
    states, last = [], []
    for direction, own in enumerate(weights):
        read = layout.reverse(steps) if direction else steps
        if masked:
            found, end = _step_by_step(cell, read, layout, start[:, direction], own)
        else:
            found, _ = _kernel(cell, read, start[:, direction : direction + 1], [own])
            end = layout.last(found).unsqueeze(0)
        states.append(layout.reverse(found) if direction else found)
        last.append(end)
    return torch.cat(states, dim=2), torch.stack(last, dim=1)


def _step_by_step(
    cell: Cell, steps: Tensor, layout: Padded, state: Tensor, weights: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """Return the states of one direction, (T, B, H), and the last states, (S, B, H)."""
    w_ih, w_hh, b_ih, b_hh = weights
    projected, states = functional.linear(steps, w_ih, b_ih), []
    for step, valid in zip(projected, layout.valid, strict=True):
        after = cell.step(step, functional.linear(state[0], w_hh, b_hh), state)
        state = torch.where(valid, after, state)
        states.append(state[0])
    return torch.stack(states), state


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
    found = [
        _in_one_direction(cell, rectangles, start[:, number : number + 1], own, backward=number > 0)
        for number, own in enumerate(weights)
    ]
    states, last = zip(*found, strict=True)
    return torch.cat(states, dim=1), torch.cat(last, dim=1)


def _in_one_direction(
    cell: Cell,
    rectangles: Sequence[Tensor],
    start: Tensor,
    weights: Sequence[Tensor],
    *,
    backward: bool,
) -> tuple[Tensor, Tensor]:
    """Return the packed states (N, H) and the last states (S, 1, B, H) of one direction.

    From rectangle to rectangle, rows end in the forward direction, and begin in the backward one.
    """
    state, states, ended = start, [], list[Tensor]()
    if backward:
        state = start[:, :, :0]
    for rectangle in reversed(rectangles) if backward else rectangles:
        rows, known = rectangle.shape[1], state.shape[2]
        ended.append(state[:, :, rows:])
        state = torch.cat((state[:, :, :rows], start[:, :, known:rows]), dim=2)
        read = rectangle.flip(0) if backward else rectangle
        found, state = _kernel(cell, read, state, [weights])
        states.append((found.flip(0) if backward else found).flatten(0, 1))
    last = torch.cat((state, *reversed(ended)), dim=2)
    return torch.cat(states[::-1] if backward else states), last


def _kernel(
    cell: Cell,
    steps: Tensor,
    state: Tensor,
    weights: Sequence[Sequence[Tensor]],
    batch_sizes: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Call torch's kernel for one layer.

    Args:
        cell: recurrent cell.
        steps: inputs, a rectangle (T, B, E), or packed (N, E).
        state: initial states, (S, D, B, H).
        weights: w_ih, w_hh, b_ih, b_hh of each direction.
        batch_sizes: number of sequences at each time step if the inputs are packed, which is fast
            on accelerators. None for a rectangle.

    Returns:
        The states of all steps, (…, D * H), and the last states, (S, D, B, H).
    """
    dtype = _kernel_dtype(cell, steps)
    with nullcontext() if dtype is None else torch.autocast(steps.device.type, enabled=False):
        if dtype is not None:
            steps, state = steps.to(dtype), state.to(dtype)
        inputs = [steps, as_torch_takes(state.contiguous()), _weights_for(weights, steps)]
        options = {"bidirectional": len(weights) > 1, "train": torch.is_grad_enabled()}
        if batch_sizes is None:
            options["batch_first"] = False
        else:
            inputs.insert(1, batch_sizes)
        states, *last = cell.kernel(*inputs, has_biases=True, num_layers=1, dropout=0.0, **options)
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
        if cell is LSTM and not _has_bfloat16_lstm():
            return torch.float32
        return None
    asked = torch.get_autocast_dtype("cuda")
    if torch.cudnn_is_acceptable(steps.new_empty(1, dtype=asked)):
        return asked
    return torch.float32


@cache
def _has_bfloat16_lstm() -> bool:
    """Return True if oneDNN's LSTM computes in bfloat16 on this processor."""
    found: bool = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return found
