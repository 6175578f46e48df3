"""Two other ways over sequences of unequal length: padded, and masked step by step.

Both run layer by layer and direction by direction over the padded form (B, T, ·). The backward
direction reads each sequence from its own end, so that padding stays behind what is read.

Legend of shapes: B batch, T longest length, N packed tokens, E input size, H hidden size, L layers,
D directions, P parts of a state: h, and c of an LSTM.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.engines.fused.engine import PARAMETERS
from seqtrain.model.packing import rows_and_steps
from seqtrain.model.pooling import last_by_gather

Run = Callable[[str, Tensor, Tensor, Tensor, list[Tensor]], tuple[Tensor, Tensor]]
"""One layer forward: cell, input (B, T, E), lengths, start (P, B, H), parameters -> its states of
all steps (B, T, H) and the last valid state (P, B, H)."""


def unroll(
    inputs: PackedSequence, encoder: nn.RNNBase, start: Tensor | None, *, how: str
) -> tuple[Tensor, Tensor]:
    """Run an encoder over sequences of unequal length without torch's packed kernels.

    Args:
        inputs: the sequences, longest first.
        encoder: owner of the parameters and of the dropout between layers.
        start: initial states; None: zeros.
        how: padded (torch's kernels run over padding too, and the state at length - 1 is taken) or
            masked (step by step; a sequence that has ended keeps its state).

    Shape:
        inputs N tokens of size E, start (P, L * D, B, H) -> outputs (N, D * H), packed, and state
        (P, L * D, B, H); of a padded LSTM without c, for padding has changed it (P = 1).
    """
    row, step = (index.to(inputs.data.device) for index in rows_and_steps(inputs.batch_sizes))
    rows, longest = int(inputs.batch_sizes[0]), len(inputs.batch_sizes)
    lengths = row.bincount(minlength=rows)
    padded = inputs.data.new_zeros(rows, longest, inputs.data.shape[1])
    padded = padded.index_put((row, step), inputs.data)
    states, state = over_padded(padded, lengths, encoder, start, how=how)
    return states[row, step], state


def over_padded(
    below: Tensor, lengths: Tensor, encoder: nn.RNNBase, start: Tensor | None = None, *, how: str
) -> tuple[Tensor, Tensor]:
    """Do the same for sequences that are padded already, in any order; arguments as for `unroll`.

    Args:
        below: the padded sequences.
        lengths: steps of each, on the device of the sequences.
        encoder: as for `unroll`.
        start: as for `unroll`, row by row.
        how: as for `unroll`.

    Shape:
        below (B, T, E), lengths (B,) -> states (B, T, D * H), and the last ones as `unroll` does.
    """
    run: Run = _masked if how == "masked" else _padded
    rows = len(below)
    if start is None:
        parts = 2 if encoder.mode == "LSTM" else 1
        layers = encoder.num_layers * (2 if encoder.bidirectional else 1)
        start = below.new_zeros(parts, layers, rows, encoder.hidden_size)
    finals: list[Tensor] = []
    for layer in range(encoder.num_layers):
        if layer:
            below = functional.dropout(below, encoder.dropout, encoder.training)
        states = []
        for suffix in ("", "_reverse") if encoder.bidirectional else ("",):
            parameters = [getattr(encoder, f"{name}_l{layer}{suffix}") for name in PARAMETERS]
            read = _reversed(below, lengths) if suffix else below
            state, final = run(encoder.mode, read, lengths, start[:, len(finals)], parameters)
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
    cell: str, inputs: Tensor, lengths: Tensor, start: Tensor, parameters: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """Run torch's kernel over valid steps and padding alike."""
    # Biases, one layer, no dropout, keep what backward needs, one direction, batch first.
    options = (True, 1, 0.0, torch.is_grad_enabled(), False, True)
    if cell == "LSTM":
        states = torch.lstm(inputs, (start[:1], start[1:]), parameters, *options)[0]
    else:
        kernel = torch.gru if cell == "GRU" else torch.rnn_tanh
        states = kernel(inputs, start, parameters, *options)[0]
    return states, last_by_gather(states, lengths.cpu()).unsqueeze(0)


def _masked(
    cell: str, inputs: Tensor, lengths: Tensor, start: Tensor, parameters: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """Take step after step; where a sequence has ended, its state stays as it is."""
    w_ih, w_hh, b_ih, b_hh = parameters
    projected = functional.linear(inputs, w_ih, b_ih)
    state, states = start, []
    for step in range(inputs.shape[1]):
        recurrent = functional.linear(state[0], w_hh, b_hh)
        after = CELLS[cell](projected[:, step], recurrent, state)
        state = torch.where((step < lengths).unsqueeze(1), after, state)
        states.append(state[0])
    return torch.stack(states, dim=1), state


def _gru(projected: Tensor, recurrent: Tensor, state: Tensor) -> Tensor:
    """Cho et al. 2014, arXiv:1406.1078, the reset gate after the product, as torch has it."""
    x_r, x_z, x_n = projected.chunk(3, 1)
    h_r, h_z, h_n = recurrent.chunk(3, 1)
    z = torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + torch.sigmoid(x_r + h_r) * h_n)
    return (1 - z) * n + z * state


def _lstm(projected: Tensor, recurrent: Tensor, state: Tensor) -> Tensor:
    """Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000."""
    i, f, g, o = (projected + recurrent).chunk(4, 1)
    c = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
    return torch.stack((torch.sigmoid(o) * torch.tanh(c), c))


def _tanh(projected: Tensor, recurrent: Tensor, state: Tensor) -> Tensor:
    """Elman 1990."""
    return torch.tanh(projected + recurrent).unsqueeze(0)


CELLS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "GRU": _gru,
    "LSTM": _lstm,
    "RNN_TANH": _tanh,
}
"""One step: projected input, recurrent product (B, gates * H), state (P, B, H) -> next state."""
