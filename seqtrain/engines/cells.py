"""Recurrent cells: their gates, states, and computation. A cell is one entry of `CELLS`.

In formulas x is an input, h a hidden state, and c the cell state of an LSTM. torch's parameters
have the gates one below the other, H rows each, in the order of the letters.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Cell:
    """A recurrent cell.

    Attributes:
        name: name in model.rnn.
        gates: number of gates. Each has a block of H rows in every weight and bias.
        tensors: number S of tensors of a state: 1 (h), or 2 (h and c).
        keeping_gate: number of the gate that keeps the state, or None if there is no such gate.
        module: torch's module, which holds the parameters.
        kernel: torch's function over padded or packed sequences.
        step: function that returns the next state, (S, B, H). Its arguments are the projected
            inputs W_ih x + b_ih and the recurrent products W_hh h + b_hh, (B, gates * H) each; and
            the state, (S, B, H).
    """

    name: str
    gates: int
    tensors: int
    keeping_gate: int | None
    module: type[nn.GRU | nn.LSTM | nn.RNN]
    kernel: Callable[..., Any]
    step: Callable[[Tensor, Tensor, Tensor], Tensor]


def cell_of(encoder: nn.RNNBase) -> Cell:
    """Return the cell that a recurrent module of torch (GRU, LSTM or RNN) computes."""
    return next(cell for cell in CELLS.values() if isinstance(encoder, cell.module))


def zero_state(encoder: nn.RNNBase, rows: int, *, like: Tensor) -> Tensor:
    """Return a state of zeros, (S, L * D, B, H), for B rows, with the device and type of `like`."""
    layers = encoder.num_layers * (2 if encoder.bidirectional else 1)
    return like.new_zeros(cell_of(encoder).tensors, layers, rows, encoder.hidden_size)


def as_torch_takes(state: Tensor) -> Tensor | tuple[Tensor, ...]:
    """Convert a state (S, …) to the form of torch's modules and kernels: h, or the tuple (h, c)."""
    tensors = state.unbind()
    if len(tensors) > 1:
        return tensors
    return tensors[0]


def as_one_tensor(state: Tensor | tuple[Tensor, ...]) -> Tensor:
    """Convert a state that torch's modules return, h or the tuple (h, c), to one tensor (S, …)."""
    if isinstance(state, tuple):
        return torch.stack(state)
    return state.unsqueeze(0)


def _gru(projected: Tensor, recurrent: Tensor, state: Tensor) -> Tensor:
    """Return the next state of a GRU (Cho et al. 2014), (1, B, H); see `Cell.step`.

    As in torch, the reset gate multiplies the recurrent product of n.
    """
    x_r, x_z, x_n = projected.chunk(3, 1)
    h_r, h_z, h_n = recurrent.chunk(3, 1)
    z = torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + torch.sigmoid(x_r + h_r) * h_n)
    return (1 - z) * n + z * state


def _lstm(projected: Tensor, recurrent: Tensor, state: Tensor) -> Tensor:
    """Return the next state, h and c, of an LSTM, (2, B, H); see `Cell.step`.

    References:
        Hochreiter & Schmidhuber 1997; Gers et al. 2000.
    """
    i, f, g, o = (projected + recurrent).chunk(4, 1)
    c = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
    return torch.stack((torch.sigmoid(o) * torch.tanh(c), c))


def _tanh(projected: Tensor, recurrent: Tensor, state: Tensor) -> Tensor:
    """Return the next state of a simple recurrent network (Elman 1990), (1, B, H).

    The arguments are as for `Cell.step`. `recurrent` already depends on the state.
    """
    return torch.tanh(projected + recurrent).unsqueeze(0)


# Gates r, z, n: z keeps. Gates i, f, g, o: f keeps.
GRU = Cell("gru", 3, 1, 1, nn.GRU, torch.gru, _gru)
LSTM = Cell("lstm", 4, 2, 1, nn.LSTM, torch.lstm, _lstm)
RNN = Cell("rnn", 1, 1, None, nn.RNN, torch.rnn_tanh, _tanh)

CELLS = {cell.name: cell for cell in (GRU, LSTM, RNN)}
"""Maps a name in model.rnn to its cell."""
