"""The engine that is torch's own: nn.GRU, nn.LSTM or nn.RNN over packed sequences."""

from __future__ import annotations

from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.cells import CELLS, as_one_tensor, as_torch_takes, cell_of
from seqtrain.model.engines.interface import Between, DistinctInputs, Engine


class TorchEngine(Engine):
    """Calls torch's module; it runs on every device and in every type of number."""

    name = "torch"
    cells = tuple(CELLS.values())
    reads_distinct = False

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
        packed = as_packed(inputs)
        if start is not None:
            start = start.to(packed.data.dtype).contiguous()
        if between is not None or (encoder.training and encoder.dropout):
            outputs, last = _layer_by_layer(encoder, packed, start, between)
            return outputs if need_outputs else None, last
        outputs, last = encoder(packed, None if start is None else as_torch_takes(start))
        return outputs.data if need_outputs else None, as_one_tensor(last)


def _layer_by_layer(
    encoder: nn.RNNBase, packed: PackedSequence, start: Tensor | None, between: Between | None
) -> tuple[Tensor, Tensor]:
    """Call torch's kernel once per layer; shapes as for `Engine.run`."""
    cell, data, sizes = cell_of(encoder), packed.data, packed.batch_sizes
    directions = 2 if encoder.bidirectional else 1
    if start is None:
        layers = encoder.num_layers * directions
        start = data.new_zeros(cell.parts, layers, int(sizes[0]), encoder.hidden_size)
    finals = []
    for layer, first in enumerate(range(0, start.shape[1], directions)):
        if layer and between is not None:
            data = between(data, layer - 1)
        parameters = [*chain(*encoder.all_weights[first : first + directions])]
        before = as_torch_takes(start[:, first : first + directions].contiguous())
        # Biases, one layer, no dropout, keep what backward needs or not, one direction or two.
        options = (encoder.bias, 1, 0.0, encoder.training, encoder.bidirectional)
        data, *last = cell.kernel(data, sizes, before, parameters, *options)
        finals.append(torch.stack(last))
    return data, torch.cat(finals, dim=1)


def as_packed(inputs: PackedSequence | DistinctInputs) -> PackedSequence:
    """Return every time step with a vector of its own.

    Raises:
        TypeError: the vectors are projected for another engine.
    """
    if isinstance(inputs, PackedSequence):
        return inputs
    if not isinstance(inputs.table, Tensor):
        raise TypeError("inputs: projected vectors are for the native engine alone")
    return PackedSequence(inputs.table[inputs.index], inputs.batch_sizes)
