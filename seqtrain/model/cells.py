"""What a recurrent cell is: its gates, the tensors of its state, its work.

In formulas x is an input, h a hidden state, c an LSTM's cell state; torch's parameters hold the
gates one below the other, H rows each, in the order of the letters.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

PARAMETERS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
"""Names of a layer's parameters in one direction, without `_l0` or `_l0_reverse` and so on."""


@dataclass(frozen=True)
class Cell:
    """A recurrent cell, named as model.rnn has it.

    Attributes:
        gates: blocks of H rows in each weight and bias.
        tensors: of its state: 1 (h), or 2 (h and c).
        keeping_gate: number of the block that keeps the state; None: no gate does.
        kernel: torch's function over padded or packed sequences.
        step: one time step: projected inputs (B, gates * H), recurrent products of the same shape,
            and a state (P, B, H) -> the next state (P, B, H).
    """

    name: str
    gates: int
    tensors: int
    keeping_gate: int | None
    module: type[nn.GRU | nn.LSTM | nn.RNN]
    kernel: Callable[..., Any]
    step: Callable[[Tensor, Tensor, Tensor], Tensor]


def cell_of(encoder: nn.RNNBase) -> Cell:
    """Return the cell of torch's module."""
    return next(cell for cell in CELLS.values() if isinstance(encoder, cell.module))


def zero_state(encoder: nn.RNNBase, rows: int, *, like: Tensor) -> Tensor:
    """Return a state of zeros for torch's module, (S, L * D, B, H), on the device of `like`."""
    layers = encoder.num_layers * (2 if encoder.bidirectional else 1)
    return like.new_zeros(cell_of(encoder).tensors, layers, rows, encoder.hidden_size)


def as_torch_takes(state: Tensor) -> Tensor | tuple[Tensor, ...]:
    """Return a state (P, …) as torch's modules and kernels take it: h, or the tuple h, c."""
    tensors = state.unbind()
    return tensors if len(tensors) > 1 else tensors[0]


def as_one_tensor(state: Tensor | tuple[Tensor, ...]) -> Tensor:
    """Return h, or the tuple h, c as torch's modules return them, as one state (P, …)."""
    return torch.stack(state) if isinstance(state, tuple) else state.unsqueeze(0)


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


# Gates r, z, n: z keeps. Gates i, f, g, o: f keeps.
GRU = Cell("gru", 3, 1, keeping_gate=1, module=nn.GRU, kernel=torch.gru, step=_gru)
LSTM = Cell("lstm", 4, 2, keeping_gate=1, module=nn.LSTM, kernel=torch.lstm, step=_lstm)
RNN = Cell("rnn", 1, 1, keeping_gate=None, module=nn.RNN, kernel=torch.rnn_tanh, step=_tanh)

CELLS = {cell.name: cell for cell in (GRU, LSTM, RNN)}
"""By the name that model.rnn has."""
