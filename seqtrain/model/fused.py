"""The GRU over packed sequences at a cost linear in their tokens, with its gradient by hand.

torch's own GRU takes time quadratic in the length to go back through packed sequences on the
CPU. This one computes the same from the same parameters (Cho et al. 2014, arXiv:1406.1078,
with torch's place for the reset gate, after the recurrent product):

    r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)
    z = sigmoid(W_iz x + b_iz + W_hz h + b_hz)
    q = W_hn h + b_hn
    n = tanh(W_in x + b_in + r q)
    h' = (1 - z) n + z h

Legend of shapes: B batch, T longest length, N packed tokens, M packed tokens of a block,
U distinct vectors, E input size, H hidden size, L layers, D directions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.matmul import long_product, outer_product, product

BLOCK = 1024
"""Packed tokens for which the work outside the recurrence is done at once, in the cache."""

PARAMETERS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class DistinctInputs(NamedTuple):
    """Packed tokens many of which share a vector, so that each vector is projected once.

    Attributes:
        table: the distinct vectors (U, E).
        index: row of the table of every packed token (N,), in PackedSequence's order.
        batch_sizes: number of sequences at every step (T,), int64, on the CPU.
    """

    table: Tensor
    index: Tensor
    batch_sizes: Tensor


def fused_gru(
    inputs: PackedSequence | DistinctInputs,
    gru: nn.GRU,
    h0: Tensor | None = None,
    *,
    need_outputs: bool = True,
) -> tuple[Tensor | None, Tensor]:
    """Run a GRU over packed sequences: what `gru(packed, h0)` does, gradients included.

    Args:
        inputs: the sequences, longest first.
        gru: owner of the parameters and of the dropout between layers.
        h0: initial states, in the order of the packed sequences; None: zeros.
        need_outputs: also return the states of all steps.

    Shape:
        inputs N tokens of size E, h0 (L * D, B, H) -> outputs (N, D * H), h_n (L * D, B, H).

    Returns:
        The last layer's states of all steps, packed (None where not needed), and the last valid
        state of each sequence. Autocast is ignored: both have the dtype of the parameters.
    """
    with torch.autocast(inputs[0].device.type, enabled=False):
        return _run_layers(inputs, gru, h0, need_outputs=need_outputs)


def _run_layers(
    inputs: PackedSequence | DistinctInputs, gru: nn.GRU, h0: Tensor | None, *, need_outputs: bool
) -> tuple[Tensor | None, Tensor]:
    """Run each layer in each direction; backward is forward over the reversed sequences."""
    index = inputs.index if isinstance(inputs, DistinctInputs) else None
    vectors = inputs[0].to(gru.weight_ih_l0.dtype)
    blocks = _blocks(inputs.batch_sizes.tolist())
    reversal = _reversal(inputs.batch_sizes).to(vectors.device) if gru.bidirectional else None
    batch = blocks[0].sizes[0]
    outputs: Tensor | None = None
    finals: list[Tensor] = []
    for layer in range(gru.num_layers):
        last = layer == gru.num_layers - 1
        outputs_of_directions = []
        for order in (None, reversal) if gru.bidirectional else (None,):
            suffix = f"_l{layer}" if order is None else f"_l{layer}_reverse"
            start = vectors.new_zeros(batch, gru.hidden_size) if h0 is None else h0[len(finals)]
            states, final = _Recurrence.apply(
                vectors,
                order if index is None else index if order is None else index[order],
                start.to(vectors.dtype),
                *(getattr(gru, name + suffix) for name in PARAMETERS),
                blocks,
                need_outputs or not last,
            )
            finals.append(final)
            if states is not None:
                outputs_of_directions.append(
                    states if order is None else states.index_select(0, order)
                )
        if outputs_of_directions:
            outputs = torch.cat(outputs_of_directions, 1)
        if not last:
            vectors, index = functional.dropout(outputs, gru.dropout, gru.training), None
    return outputs, torch.stack(finals)
