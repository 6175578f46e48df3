"""A layer as the library takes it: sizes, and addresses of tensors, in a `LayerCall`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from seqtrain.model.cells import Cell
from seqtrain.model.engines.interface import ProjectedTable
from seqtrain.model.engines.native.buffers import address, new
from seqtrain.model.engines.native.library import KINDS, LayerCall


@dataclass(frozen=True, eq=False)
class Projected(ProjectedTable):
    """What each row of a table adds to the gates of an encoder's first layer.

    It stands for the table and the weights as they were: project again once either changed.

    Attributes:
        cell: of the encoder.
        rows: one tensor a direction, in the library's own layout (U, numbers of a projected row).
        input_size: numbers of a row of the table.
        hidden_size: of the encoder.
    """

    cell: Cell
    rows: tuple[Tensor, ...]
    input_size: int
    hidden_size: int

    def __len__(self) -> int:
        return len(self.rows[0])


@dataclass(frozen=True, eq=False)
class Reading:
    """What a layer reads besides its parameters; tensors are contiguous.

    Attributes:
        cell: the layer's.
        vectors: the input vectors (U, E), or what they add to the gates.
        index: which vector each token is (N,); None: vector i is token i.
        batch_sizes: number of sequences at every step (T,).
        start: initial states (P, D, B, H); None: zeros.
        tokens: how many, N.
        batch: how many sequences, B.
        threads: how many compute.
        bfloat16: whether products may round what they multiply.
    """

    cell: Cell
    vectors: Tensor | Projected
    index: Tensor | None
    batch_sizes: Tensor
    start: Tensor | None
    tokens: int
    batch: int
    threads: int
    bfloat16: bool


def layer_parameters(encoder: nn.RNNBase, layer: int) -> list[Tensor]:
    """Return a layer's parameters, four a direction; zeros for biases where it has none."""
    directions = 2 if encoder.bidirectional else 1
    parameters: list[Tensor] = []
    for weights in encoder.all_weights[layer * directions : (layer + 1) * directions]:
        biases = [] if encoder.bias else [new(len(weights[0])).zero_()] * 2
        parameters += [tensor.contiguous() for tensor in (*weights, *biases)]
    return parameters


def allows_bfloat16() -> bool:
    """Return whether autocast asks for matrix products in bfloat16."""
    return torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16


def describe(reading: Reading, parameters: Sequence[Tensor], direction: int) -> LayerCall:
    """Fill in what a layer reads in one direction."""
    w_ih, w_hh, b_ih, b_hh = parameters[4 * direction : 4 * direction + 4]
    directions, hidden = len(parameters) // 4, w_hh.shape[1]
    rows = reading.batch * hidden
    call = LayerCall(
        cell=KINDS[reading.cell],
        threads=reading.threads,
        bfloat16=reading.bfloat16,
        reverse=direction,
        tokens=reading.tokens,
        steps=reading.batch_sizes.shape[0],
        batch=reading.batch,
        vectors=len(reading.vectors),
        input_size=w_ih.shape[1],
        hidden_size=hidden,
        states_stride=directions * hidden,
        batch_sizes=address(reading.batch_sizes, dtype=torch.int64),
        index=address(reading.index, dtype=torch.int64),
        w_ih=address(w_ih),
        w_hh=address(w_hh),
        b_ih=address(b_ih),
        b_hh=address(b_hh),
        h0=address(reading.start, direction * rows),
    )
    if reading.cell.parts > 1:
        call.c0 = address(reading.start, (directions + direction) * rows)
    if isinstance(reading.vectors, Projected):
        call.projected = address(reading.vectors.rows[direction])
    else:
        call.vectors_in = address(reading.vectors)
    return call
