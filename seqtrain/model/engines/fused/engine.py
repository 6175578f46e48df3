"""torch's GRU over packed sequences, by other means: its cost is linear in the tokens.

On the CPU, going back through packed sequences with torch's own GRU takes time quadratic in
their length. This computes the same from the same parameters, gradients included.

Legend of shapes: B batch, T longest length, N packed tokens, U distinct vectors, E input size,
H hidden size, L layers, D directions.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.cells import GRU, PARAMETERS
from seqtrain.model.engines.fused.recurrence import Block, Recurrence, cut_into_blocks
from seqtrain.model.engines.interface import Between, DistinctInputs, Engine
from seqtrain.model.packing import rows_and_steps


class FusedEngine(Engine):
    """Runs on every device and in every type of number."""

    name = "fused"
    cells = (GRU,)
    reads_distinct = True

    def run(
        self,
        encoder: nn.RNNBase,
        inputs: PackedSequence | DistinctInputs,
        start: Tensor | None = None,
        *,
        need_outputs: bool = True,
        between: Between | None = None,
    ) -> tuple[Tensor | None, Tensor]:
        """Run all layers; as `Engine.run`."""
        assert isinstance(encoder, nn.GRU), "why_not lets no other cell through"
        h0 = None if start is None else start[0]
        outputs, h_n = fused_gru(inputs, encoder, h0, need_outputs=need_outputs, between=between)
        return outputs, h_n.unsqueeze(0)


def fused_gru(
    inputs: PackedSequence | DistinctInputs,
    gru: nn.GRU,
    h0: Tensor | None = None,
    *,
    need_outputs: bool = True,
    between: Between | None = None,
) -> tuple[Tensor | None, Tensor]:
    """Run a GRU over packed sequences: what `gru(packed, h0)` does, gradients included.

    Args:
        inputs: the sequences, longest first.
        gru: owner of the parameters (biases among them).
        h0: initial states, in the order of the packed sequences; None: zeros.
        need_outputs: also return the states of all steps.
        between: as for `Engine.run`.

    Shape:
        inputs N tokens of size E, h0 (L * D, B, H) -> outputs (N, D * H), h_n (L * D, B, H).

    Returns:
        The last layer's states of all steps, packed (None where not needed), and the last valid
        state of each sequence, in the dtype of the parameters; under autocast the matrix products
        alone have its dtype.
    """
    if isinstance(inputs, DistinctInputs):
        table, index = inputs.table, inputs.index
    else:
        table, index = inputs.data, None
    if not isinstance(table, Tensor):
        raise TypeError("inputs: projected vectors are for the native engine alone")
    vectors = table.to(next(gru.parameters()).dtype)
    blocks = cut_into_blocks(inputs.batch_sizes.tolist())
    directions: list[tuple[str, Tensor | None]] = [("", None)]
    if gru.bidirectional:
        directions.append(("_reverse", _reversal(inputs.batch_sizes).to(vectors.device)))
    outputs: Tensor | None = None
    finals: list[Tensor] = []
    for layer in range(gru.num_layers):
        is_last = layer == gru.num_layers - 1
        states = []
        for suffix, order in directions:
            parameters = [getattr(gru, f"{name}_l{layer}{suffix}") for name in PARAMETERS]
            start = None if h0 is None else h0[len(finals)].to(vectors.dtype)
            state, final = _run(
                vectors, index, order, start, parameters, blocks, need_outputs or not is_last
            )
            finals.append(final)
            if state is not None:
                states.append(state)
        outputs = torch.cat(states, 1) if states else None
        if outputs is not None and not is_last:
            vectors, index = outputs if between is None else between(outputs, layer), None
    return outputs, torch.stack(finals)


def _run(
    vectors: Tensor,
    index: Tensor | None,
    order: Tensor | None,
    start: Tensor | None,
    parameters: list[Tensor],
    blocks: list[Block],
    need_outputs: bool,
) -> tuple[Tensor | None, Tensor]:
    """Run one layer in one direction: forward over the tokens in this order (None: as is)."""
    if order is not None and index is not None:
        index = index[order]
    elif order is not None:
        vectors = vectors.index_select(0, order)
    if start is None:
        start = vectors.new_zeros(blocks[0].sizes[0], parameters[1].shape[1])
    recur: Callable[..., tuple[Tensor | None, Tensor]] = Recurrence.apply
    states, final = recur(
        vectors,
        index,
        start,
        *parameters,
        blocks,
        need_outputs,
        torch.is_grad_enabled(),
        _product_dtype(vectors),
    )
    if states is not None and order is not None:
        states = states.index_select(0, order)
    return states, final


def _product_dtype(vectors: Tensor) -> torch.dtype:
    """Return the type of the matrix products: autocast's where it is on."""
    device = vectors.device.type
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return vectors.dtype


def _reversal(batch_sizes: Tensor) -> Tensor:
    """Packed position of each token when every sequence is read from its end: its own inverse."""
    starts = batch_sizes.cumsum(0) - batch_sizes
    sequence, step = rows_and_steps(batch_sizes)
    lengths = sequence.bincount()
    return starts[lengths[sequence] - 1 - step] + sequence
