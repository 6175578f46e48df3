"""The engine that is torch's own: its kernels over packed or padded steps, or masked step by step.

Every way gives the same states. Shapes as in `engines.interface`; T is the longest length.
"""

from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from seqtrain.data.transfer import move_together
from seqtrain.model.cells import (
    PARAMETERS,
    Cell,
    as_torch_takes,
    cell_of,
    zero_state,
)
from seqtrain.model.engines.cudnn import run_kernel
from seqtrain.model.engines.interface import Between, DistinctInputs, Engine
from seqtrain.model.packing import rows_and_steps


class TorchEngine(Engine):
    """Runs on every device and in every type of number.

    `unroll` is packed; padded (kernels run over padding too, and the states at length - 1 are
    taken); masked (step by step; a sequence that has ended keeps its state).
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
        """Run all layers; as `Engine.run`, but a padded LSTM's last states are h alone (S = 1)."""
        packed = as_packed(inputs)
        data, sizes = packed.data, packed.batch_sizes
        if start is None:
            start = zero_state(encoder, int(sizes[0]), like=data)
        start = start.to(data.dtype).contiguous()
        if self.unroll == "packed" and data.device.type != "cpu":
            outputs, last = _on_accelerator(encoder, packed, start, between)
            return outputs if need_outputs else None, last
        finals: list[Tensor] = []
        for layer in range(encoder.num_layers):
            if layer and between is not None:
                data = between(data, layer - 1)
            states = []
            for suffix in ("", "_reverse") if encoder.bidirectional else ("",):
                layer_start = start[:, len(finals)]
                weights = [getattr(encoder, f"{name}_l{layer}{suffix}") for name in PARAMETERS]
                if self.unroll == "packed":
                    run = _in_rectangles
                else:
                    run = _padded if self.unroll == "padded" else _masked
                state, final = run(
                    cell_of(encoder), data, sizes, layer_start, weights, reverse=bool(suffix)
                )
                states.append(state)
                finals.append(final)
            data = torch.cat(states, dim=1) if len(states) > 1 else states[0]
        return data if need_outputs else None, torch.stack(finals, dim=1)


def _on_accelerator(
    encoder: nn.RNNBase, packed: PackedSequence, start: Tensor, between: Between | None
) -> tuple[Tensor, Tensor]:
    """Run all layers over packed steps, one kernel call each; shapes as for `Engine.run`."""
    data, finals = packed.data, []
    cell, directions = cell_of(encoder), 2 if encoder.bidirectional else 1
    for layer, first in enumerate(range(0, start.shape[1], directions)):
        if layer and between is not None:
            data = between(data, layer - 1)
        weights = [*chain(*encoder.all_weights[first : first + directions])]
        layer_start = start[:, first : first + directions]
        data, last = run_kernel(
            cell,
            data,
            packed.batch_sizes,
            layer_start,
            weights,
            bidirectional=encoder.bidirectional,
        )
        finals.append(last)
    return data, torch.cat(finals, dim=1)


def _in_rectangles(
    cell: Cell, data: Tensor, sizes: Tensor, start: Tensor, weights: list[Tensor], *, reverse: bool
) -> tuple[Tensor, Tensor]:
    """Call torch's kernel once for all consecutive steps that have the same sequences.

    torch's own way over a packed batch takes step by step, and its backward pass on the CPU a time
    that grows with the square of the length.

    Shape:
        data (N, E), sizes (T,), start (S, B, H) -> states (N, H), and the last ones (S, B, H).
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
        outputs, *last = cell.kernel(
            piece.flip(0) if reverse else piece,
            as_torch_takes(state.unsqueeze(1)),
            weights,
            *_options(batch_first=False),
        )
        states.append((outputs.flip(0) if reverse else outputs).flatten(0, 1))
        state = torch.cat(last)
    last_states = torch.cat((state, *ended[::-1]), dim=1)
    return torch.cat(states[::-1] if reverse else states), last_states


def _padded(
    cell: Cell, data: Tensor, sizes: Tensor, start: Tensor, weights: list[Tensor], *, reverse: bool
) -> tuple[Tensor, Tensor]:
    """Run torch's kernel over valid steps and padding alike; shapes as for `_in_rectangles`."""
    padded, place, lengths = _pad(data, sizes, reverse=reverse)
    if padded.device.type == "cpu":
        before = as_torch_takes(start.unsqueeze(1))
        states = cell.kernel(padded, before, weights, *_options(batch_first=True))[0]
    else:
        states, _ = run_kernel(cell, padded, None, start.unsqueeze(1), weights, bidirectional=False)
    last = states[torch.arange(len(states), device=states.device), lengths - 1]
    return states[place], last.unsqueeze(0)


def _masked(
    cell: Cell, data: Tensor, sizes: Tensor, start: Tensor, weights: list[Tensor], *, reverse: bool
) -> tuple[Tensor, Tensor]:
    padded, place, lengths = _pad(data, sizes, reverse=reverse)
    w_ih, w_hh, b_ih, b_hh = weights
    projected = functional.linear(padded, w_ih, b_ih)
    state, states = start, []
    for step in range(padded.shape[1]):
        recurrent = functional.linear(state[0], w_hh, b_hh)
        after = cell.step(projected[:, step], recurrent, state)
        state = torch.where((step < lengths).unsqueeze(1), after, state)
        states.append(state[0])
    return torch.stack(states, dim=1)[place], state


def _pad(
    data: Tensor, sizes: Tensor, *, reverse: bool
) -> tuple[Tensor, tuple[Tensor, Tensor], Tensor]:
    """Lay packed steps out row by row, (B, T, E), each with its index, and lengths (B,).

    In reverse each row begins with its own last step.
    """
    row, step = rows_and_steps(sizes)
    lengths = row.bincount(minlength=int(sizes[0]))
    row, step, lengths = move_together([row, step, lengths], data.device)
    place = row, lengths[row] - 1 - step if reverse else step
    padded = data.new_zeros(int(sizes[0]), len(sizes), data.shape[1])
    return padded.index_put(place, data), place, lengths


def _options(*, batch_first: bool) -> tuple[bool, int, float, bool, bool, bool]:
    """Biases, one layer, no dropout, keep what backward needs or not, one direction, order."""
    return True, 1, 0.0, torch.is_grad_enabled(), False, batch_first


def as_packed(inputs: PackedSequence | DistinctInputs) -> PackedSequence:
    """Return every time step with a vector of its own."""
    if isinstance(inputs, PackedSequence):
        return inputs
    return PackedSequence(inputs.table[inputs.index], inputs.batch_sizes)
