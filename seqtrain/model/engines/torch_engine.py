"""The engine of torch's own kernels: over packed steps, padded steps, or masked step by step.

All unrolls give equal states up to rounding. Shapes as in `engines.interface`; T is the longest
length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.cells import (
    LSTM,
    Cell,
    as_torch_takes,
    cell_of,
    zero_state,
)
from seqtrain.model.engines.cudnn import run_kernel
from seqtrain.model.engines.interface import Between, DistinctInputs, Engine
from seqtrain.model.packing import rows_and_steps
from seqtrain.sequences.transfer import move_together

AUTO = "auto"
"""Unroll that packs a batch, or pads it on CUDA if cuDNN is faster with padding."""
LEAST_FULL = 0.5
"""Least fraction of valid steps in a batch that AUTO pads."""


class TorchEngine(Engine):
    """Engine of torch's own kernels, for every device and floating-point type.

    Args:
        reason: reason why this engine was chosen, for screens.
        unroll: how a batch is computed.

            - "packed": only valid steps are computed.
            - "padded": padding is also computed. The last state is taken at step length - 1.
            - "masked": all rows go step by step. A sequence that has ended keeps its state.
            - `AUTO`: packed or padded, chosen for each batch.
    """

    name = "torch"

    def __init__(self, reason: str, unroll: str = "packed") -> None:
        super().__init__(reason)
        self.unroll = unroll
        self.pads = unroll == "padded"

    def run(
        self,
        encoder: nn.RNNBase,
        inputs: PackedSequence | DistinctInputs,
        start: Tensor | None = None,
        *,
        need_outputs: bool = True,
        between: Between | None = None,
    ) -> tuple[Tensor | None, Tensor]:
        """Run all layers; see `Engine.run`.

        The last states of an LSTM are only h (S = 1) if the batch is padded.
        """
        packed = as_packed(inputs)
        data, sizes = packed.data, packed.batch_sizes
        unroll = self.unroll
        if unroll == AUTO:
            unroll = "padded" if _padding_is_faster(encoder, sizes, start) else "packed"
        if start is None:
            start = zero_state(encoder, int(sizes[0]), like=data)
        start = start.to(data.dtype).contiguous()
        layout = sizes if unroll == "packed" else _PaddedLayout(sizes, data.device)
        finals: list[Tensor] = []
        directions = 2 if encoder.bidirectional else 1
        for layer in range(encoder.num_layers):
            if layer and between is not None:
                data = between(data, layer - 1)
            begin, end = layer * directions, (layer + 1) * directions
            layer_start, weights = start[:, begin:end], encoder.all_weights[begin:end]
            data, last = _run_layer(cell_of(encoder), data, layer_start, weights, unroll, layout)
            finals.append(last)
        return data if need_outputs else None, torch.cat(finals, dim=1)


def _run_layer(
    cell: Cell,
    data: Tensor,
    start: Tensor,
    weights: Sequence[Sequence[Tensor]],
    unroll: str,
    layout: Tensor | _PaddedLayout,
) -> tuple[Tensor, Tensor]:
    """Run one layer, with all its directions, over packed steps.

    Args:
        cell: recurrent cell.
        data: inputs.
        start: initial states of each direction.
        weights: parameters of each direction: w_ih, w_hh, b_ih, b_hh.
        unroll: packed, padded or masked.
        layout: batch sizes if `unroll` is packed, else the positions of the padded steps.

    Shape:
        data: (N, E). start: (S, D, B, H). Returns: states (N, D * H), last states (S, D, B, H). If
        `unroll` is padded, the last states of an LSTM are only h (S = 1).
    """
    if isinstance(layout, Tensor) and not data.is_cpu:
        return run_kernel(cell, data, layout, start, [w for own in weights for w in own])
    found = [
        UNROLLS[unroll](cell, data, start[:, i], own, layout, reverse=i == 1)
        for i, own in enumerate(weights)
    ]
    states = [states for states, _ in found]
    last = torch.stack([last for _, last in found], dim=1)
    return torch.cat(states, dim=1) if len(states) > 1 else states[0], last


def _padding_is_faster(encoder: nn.RNNBase, sizes: Tensor, start: Tensor | None) -> bool:
    """Return True if a batch should be padded, so that cuDNN's persistent kernels compute it.

    The batch must meet three conditions:

    - The kernels can compute the hidden size.
    - At least `LEAST_FULL` of the padded batch are valid steps.
    - The cell isn't an LSTM with initial states, whose caller may need the last c. Padding loses c.

    Args:
        encoder: torch's module with the parameters.
        sizes: number of sequences at each time step, (T,), on the CPU.
        start: initial states, or None for zeros.
    """
    cell = cell_of(encoder)
    training, prediction = cell.persistent
    limit = training if torch.is_grad_enabled() else prediction
    full = int(sizes.sum()) >= LEAST_FULL * int(sizes[0]) * len(sizes)
    keeps_last = start is None or cell.tensors == 1
    return encoder.hidden_size <= limit and full and keeps_last


class _PaddedLayout:
    """Positions of packed steps in a padded tensor of B rows and T steps.

    Args:
        batch_sizes: sequences at each time step, (T,), on the CPU.
        device: device of the steps.
    """

    def __init__(self, batch_sizes: Tensor, device: torch.device) -> None:
        row, step = rows_and_steps(batch_sizes)
        self.rows, self.longest = int(batch_sizes[0]), len(batch_sizes)
        lengths = row.bincount(minlength=self.rows)
        self._row, self._step, self.lengths = move_together([row, step, lengths], device)

    def places(self, *, reverse: bool) -> tuple[Tensor, Tensor]:
        """Return the row and the time step in the padded tensor of each packed step, (N,) each.

        If `reverse` is True, each row begins with the last step of its sequence.
        """
        return self._row, self.lengths[self._row] - 1 - self._step if reverse else self._step

    def pad(self, data: Tensor, places: tuple[Tensor, Tensor]) -> Tensor:
        """Return the steps as a padded tensor (B, T, E), with zeros as padding.

        Args:
            data: packed steps, (N, E).
            places: result of `places`.
        """
        zeros = data.new_zeros(self.rows, self.longest, data.shape[1])
        return zeros.index_put(places, data)


def _in_rectangles(
    cell: Cell, data: Tensor, start: Tensor, weights: list[Tensor], sizes: Tensor, *, reverse: bool
) -> tuple[Tensor, Tensor]:
    """Run one direction over packed steps on the CPU.

    Consecutive steps with the same number of sequences form a rectangle, for which torch's kernel
    is called once. Without rectangles, torch would compute a packed batch step by step, and the
    time of the backward pass would grow with the square of the length.

    Args:
        cell: recurrent cell.
        data: inputs of all steps.
        start: initial states.
        weights: w_ih, w_hh, b_ih, b_hh of this direction.
        sizes: number of sequences at each time step, on the CPU.
        reverse: True to go from the last step of each sequence to the first.

    Shape:
        data: (N, E). start: (S, B, H). sizes: (T,). Returns: states of all steps (N, H), in the
        order of `data` for both directions, and last states (S, B, H).
    """
    counted = torch.unique_consecutive(sizes, return_counts=True)
    rows, steps = (counts.tolist() for counts in counted)
    pieces = data.split_with_sizes([r * s for r, s in zip(rows, steps, strict=True)])
    order = range(len(rows))[:: -1 if reverse else 1]
    state, states, ended = start[:, :0], [], []
    for i in order:
        ended.append(state[:, rows[i] :])
        state = torch.cat((state[:, : rows[i]], start[:, state.shape[1] : rows[i]]), dim=1)
        piece = pieces[i].view(steps[i], rows[i], -1)
        outputs, *last = _run_on_cpu(
            cell, piece.flip(0) if reverse else piece, state, weights, batch_first=False
        )
        states.append((outputs.flip(0) if reverse else outputs).flatten(0, 1))
        state = torch.cat(last)
    last_states = torch.cat((state, *ended[::-1]), dim=1)
    return torch.cat(states[::-1] if reverse else states), last_states


def _padded(
    cell: Cell,
    data: Tensor,
    start: Tensor,
    weights: list[Tensor],
    layout: _PaddedLayout,
    *,
    reverse: bool,
) -> tuple[Tensor, Tensor]:
    """Run one direction over valid steps and padding, in one call of torch's kernel.

    Arguments and results are as in `_in_rectangles`, with `layout` for the positions of the steps.
    Of an LSTM's last states only h is returned (S = 1).
    """
    places = layout.places(reverse=reverse)
    padded, before = layout.pad(data, places), start.unsqueeze(1)
    if padded.device.type == "cpu":
        states = _run_on_cpu(cell, padded, start, weights, batch_first=True)[0]
    else:
        states, _ = run_kernel(cell, padded, None, before, weights)
    last = states[torch.arange(len(states), device=states.device), layout.lengths - 1]
    return states[places], last.unsqueeze(0)


def _masked(
    cell: Cell,
    data: Tensor,
    start: Tensor,
    weights: list[Tensor],
    layout: _PaddedLayout,
    *,
    reverse: bool,
) -> tuple[Tensor, Tensor]:
    """Run one direction step by step over padded rows. A row keeps its state after its end.

    Arguments and results are as in `_in_rectangles`, with `layout` for the positions of the steps.
    """
    places = layout.places(reverse=reverse)
    padded = layout.pad(data, places)
    w_ih, w_hh, b_ih, b_hh = weights
    projected = functional.linear(padded, w_ih, b_ih)
    state, states = start, []
    for step in range(layout.longest):
        recurrent = functional.linear(state[0], w_hh, b_hh)
        after = cell.step(projected[:, step], recurrent, state)
        state = torch.where((step < layout.lengths).unsqueeze(1), after, state)
        states.append(state[0])
    return torch.stack(states, dim=1)[places], state


def _run_on_cpu(
    cell: Cell, data: Tensor, state: Tensor, weights: Sequence[Tensor], *, batch_first: bool
) -> tuple[Tensor, ...]:
    """Call torch's kernel for one layer and direction on the CPU.

    Without AVX-512, an LSTM is computed in float32 even under autocast, because oneDNN's LSTM would
    raise an error for bfloat16.

    Args:
        cell: recurrent cell.
        data: inputs, (B, T, E) if `batch_first` is True, else (T, B, E).
        state: initial states, (S, B, H).
        weights: w_ih, w_hh, b_ih, b_hh.
        batch_first: layout of `data` and of the states of all steps.

    Returns:
        The states of all steps, then each tensor of the last states, (1, B, H).
    """
    lowered = torch.is_autocast_enabled("cpu") and cell is LSTM and not _has_bfloat16_lstm()
    if lowered:
        data, state = data.float(), state.float()
    # Biases, one layer, no dropout, keep what the backward pass needs, one direction.
    options = (True, 1, 0.0, torch.is_grad_enabled(), False, batch_first)
    with torch.autocast("cpu", enabled=False) if lowered else nullcontext():
        found: tuple[Tensor, ...] = cell.kernel(
            data, as_torch_takes(state.unsqueeze(1)), weights, *options
        )
    return found


@cache
def _has_bfloat16_lstm() -> bool:
    """Return True if oneDNN's LSTM computes in bfloat16 on this processor."""
    found: bool = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return found


UNROLLS: dict[str, Callable[..., tuple[Tensor, Tensor]]] = {
    "packed": _in_rectangles,
    "padded": _padded,
    "masked": _masked,
}
"""Maps an unroll to the function that runs one direction of a layer in this way."""


def as_packed(inputs: PackedSequence | DistinctInputs) -> PackedSequence:
    """Return packed inputs with one vector for each time step. A PackedSequence isn't copied."""
    if isinstance(inputs, PackedSequence):
        return inputs
    return PackedSequence(inputs.table[inputs.index], inputs.batch_sizes)
