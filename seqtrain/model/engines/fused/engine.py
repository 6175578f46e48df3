"""torch's recurrent modules over packed sequences, by other means: cost linear in the tokens.

On the CPU, going back through packed sequences with torch's own modules takes time quadratic in
their length. This computes the same from the same parameters, gradients included. Where no
gradients are wanted, torch's own modules are linear too, and faster: then they run.

Legend of shapes: B batch, T longest length, N packed tokens, U distinct vectors, E input size,
H hidden size, L layers, D directions.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.cells import PARAMETERS, cell_of
from seqtrain.model.engines.fused.arithmetic import ARITHMETIC, Arithmetic
from seqtrain.model.engines.fused.recurrence import Block, Recurrence, cut_into_blocks
from seqtrain.model.engines.interface import Between, DistinctInputs, Engine
from seqtrain.model.engines.torch_engine import TorchEngine
from seqtrain.model.packing import rows_and_steps


class FusedEngine(Engine):
    """Runs on every device and in every type of number."""

    name = "fused"
    cells = tuple(ARITHMETIC)
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
        """Run all layers; as `Engine.run`.

        Results have the dtype of the parameters; under autocast the matrix products alone have its
        dtype.
        """
        parameter = next(encoder.parameters())
        if isinstance(inputs, DistinctInputs):
            table, index = inputs.table, inputs.index
        else:
            table, index = inputs.data, None
        if not isinstance(table, Tensor):
            raise TypeError("inputs: projected vectors are for the native engine alone")
        alike = table.dtype == parameter.dtype == _product_dtype(parameter)
        if alike and not torch.is_grad_enabled():
            alone = TorchEngine(self.reason)
            return alone.run(encoder, inputs, start, need_outputs=need_outputs, between=between)
        vectors = table.to(parameter.dtype)
        blocks = cut_into_blocks(inputs.batch_sizes.tolist())
        if start is None:
            layers = encoder.num_layers * (2 if encoder.bidirectional else 1)
            parts, rows = cell_of(encoder).parts, blocks[0].sizes[0]
            start = vectors.new_zeros(parts, layers, rows, encoder.hidden_size)
        order = _reversal(inputs.batch_sizes).to(vectors.device) if encoder.bidirectional else None
        outputs: Tensor | None = None
        lasts: list[Tensor] = []
        for layer in range(encoder.num_layers):
            top, states = layer == encoder.num_layers - 1, []
            for suffix in ("", "_reverse") if encoder.bidirectional else ("",):
                parameters = [getattr(encoder, f"{name}_l{layer}{suffix}") for name in PARAMETERS]
                state, last = _run(
                    ARITHMETIC[cell_of(encoder)],
                    *_in_order(vectors, index, order if suffix else None),
                    start[:, len(lasts)].to(vectors.dtype),
                    parameters,
                    blocks,
                    need_outputs or not top,
                )
                lasts.append(last)
                if state is not None:
                    states.append(_in_order(state, None, order if suffix else None)[0])
            outputs = torch.cat(states, 1) if states else None
            if outputs is not None and not top:
                vectors = outputs if between is None else between(outputs, layer)
                index = None
        return outputs, torch.stack(lasts, dim=1)


def _in_order(
    vectors: Tensor, index: Tensor | None, order: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Return vectors and index with the tokens in this order (None: as they are)."""
    if order is None:
        return vectors, index
    return (vectors.index_select(0, order), None) if index is None else (vectors, index[order])


def _run(
    arithmetic: Arithmetic,
    vectors: Tensor,
    index: Tensor | None,
    start: Tensor,
    parameters: list[Tensor],
    blocks: list[Block],
    need_outputs: bool,
) -> tuple[Tensor | None, Tensor]:
    """Run one layer in one direction, forward over the tokens."""
    recur: Callable[..., tuple[Tensor | None, Tensor]] = Recurrence.apply
    return recur(
        arithmetic,
        vectors,
        index,
        start,
        *parameters,
        blocks,
        need_outputs,
        torch.is_grad_enabled(),
        _product_dtype(vectors),
    )


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
