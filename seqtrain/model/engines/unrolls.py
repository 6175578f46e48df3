"""Two other ways over sequences of unequal length: padded, and masked step by step.

Both run layer by layer and direction by direction over the padded form (B, T, ·). The backward
direction reads each sequence from its own end, so that padding stays behind what is read.

Legend of shapes: B batch, T longest length, N packed tokens, E input size, H hidden size, L layers,
D directions, P parts of a state.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.cells import PARAMETERS, Cell, as_torch_takes, cell_of
from seqtrain.model.engines.interface import Between, DistinctInputs, Engine
from seqtrain.model.engines.torch_engine import TorchEngine, as_packed
from seqtrain.model.packing import rows_and_steps
from seqtrain.model.pooling import last_by_gather

RunLayer = Callable[[Cell, Tensor, Tensor, Tensor, list[Tensor]], tuple[Tensor, Tensor]]
"""One layer forward: cell, input (B, T, E), lengths, start (P, B, H), parameters -> its states of
all steps (B, T, H) and the last valid state (P, B, H)."""


class UnrolledEngine(Engine):
    """torch's kernels, or its mathematics, over the padded form.

    Args:
        how: padded (torch's kernels run over padding too, and the state at length - 1 is taken) or
            masked (step by step; a sequence that has ended keeps its state).
        reason: why it was chosen.
    """

    name = TorchEngine.name
    cells = TorchEngine.cells
    reads_distinct = False

    def __init__(self, how: str, reason: str) -> None:
        super().__init__(reason)
        self.how = how

    @property
    def over_packed(self) -> TorchEngine:
        """Torch's own: of a padded LSTM the last c is lost, for padding has changed it."""
        return TorchEngine(self.reason)

    def run(
        self,
        encoder: nn.RNNBase,
        inputs: PackedSequence | DistinctInputs,
        start: Tensor | None = None,
        *,
        need_outputs: bool = True,
        between: Between | None = None,
    ) -> tuple[Tensor | None, Tensor]:
        """Run all layers; as `Engine.run`, but a padded LSTM's last states are h alone (P = 1)."""
        packed = as_packed(inputs)
        row, step = (index.to(packed.data.device) for index in rows_and_steps(packed.batch_sizes))
        rows, longest = int(packed.batch_sizes[0]), len(packed.batch_sizes)
        lengths = row.bincount(minlength=rows)
        padded = packed.data.new_zeros(rows, longest, packed.data.shape[1])
        padded = padded.index_put((row, step), packed.data)

        def between_padded(states: Tensor, layer: int) -> Tensor:
            assert between is not None
            below = between(states[row, step], layer)
            return torch.zeros_like(states).index_put((row, step), below)

        padded_between = None if between is None else between_padded
        states, last = over_padded(
            padded, lengths, encoder, start, how=self.how, between=padded_between
        )
        return states[row, step] if need_outputs else None, last


def over_padded(
    below: Tensor,
    lengths: Tensor,
    encoder: nn.RNNBase,
    start: Tensor | None = None,
    *,
    how: str,
    between: Between | None = None,
) -> tuple[Tensor, Tensor]:
    """Run an encoder over sequences that are padded already, in any order.

    Args:
        below: the padded sequences.
        lengths: time steps of each, on the device of the sequences.
        encoder: owner of the parameters; its own dropout isn't applied.
        start: initial states, row by row; None: zeros.
        how: as for `UnrolledEngine`.
        between: as for `Engine.run`, but over padded states (B, T, D * H).

    Shape:
        below (B, T, E), lengths (B,), start (P, L * D, B, H) -> states (B, T, D * H), and the last
        ones (P, L * D, B, H); of a padded LSTM without c (P = 1).
    """
    run: RunLayer = _masked if how == "masked" else _padded
    cell, rows = cell_of(encoder), len(below)
    if start is None:
        layers = encoder.num_layers * (2 if encoder.bidirectional else 1)
        start = below.new_zeros(cell.parts, layers, rows, encoder.hidden_size)
    finals: list[Tensor] = []
    for layer in range(encoder.num_layers):
        if layer and between is not None:
            below = between(below, layer - 1)
        states = []
        for suffix in ("", "_reverse") if encoder.bidirectional else ("",):
            parameters = [getattr(encoder, f"{name}_l{layer}{suffix}") for name in PARAMETERS]
            read = _reversed(below, lengths) if suffix else below
            state, final = run(cell, read, lengths, start[:, len(finals)], parameters)
            states.append(_reversed(state, lengths) if suffix else state)
            finals.append(final)
        below = torch.cat(states, dim=2)
    return below, torch.stack(finals, dim=1)


def _reversed(padded: Tensor, lengths: Tensor) -> Tensor:
    """Turn each row's valid steps around, padding left where it is: its own inverse."""
    step = torch.arange(padded.shape[1], device=padded.device)
    mirrored = lengths.unsqueeze(1) - 1 - step
    index = torch.where(mirrored >= 0, mirrored, step)
    return padded.gather(1, index.unsqueeze(2).expand_as(padded))


def _padded(
    cell: Cell, inputs: Tensor, lengths: Tensor, start: Tensor, parameters: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """Run torch's kernel over valid steps and padding alike."""
    # Biases, one layer, no dropout, keep what backward needs, one direction, batch first.
    options = (True, 1, 0.0, torch.is_grad_enabled(), False, True)
    states = cell.kernel(inputs, as_torch_takes(start.unsqueeze(1)), parameters, *options)[0]
    return states, last_by_gather(states, lengths.cpu()).unsqueeze(0)


def _masked(
    cell: Cell, inputs: Tensor, lengths: Tensor, start: Tensor, parameters: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """Take step after step; where a sequence has ended, its state stays as it is."""
    w_ih, w_hh, b_ih, b_hh = parameters
    projected = functional.linear(inputs, w_ih, b_ih)
    state, states = start, []
    for step in range(inputs.shape[1]):
        recurrent = functional.linear(state[0], w_hh, b_hh)
        after = cell.step(projected[:, step], recurrent, state)
        state = torch.where((step < lengths).unsqueeze(1), after, state)
        states.append(state[0])
    return torch.stack(states, dim=1), state
