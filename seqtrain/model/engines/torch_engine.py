"""The engine that is torch's own: nn.GRU, nn.LSTM or nn.RNN over packed sequences."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.cells import CELLS, as_one_tensor, as_torch_takes
from seqtrain.model.engines.interface import DistinctInputs, Engine


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
    ) -> tuple[Tensor | None, Tensor]:
        """Run all layers; as `Engine.run`."""
        packed = as_packed(inputs)
        states = None
        if start is not None:
            states = as_torch_takes(start.to(packed.data.dtype).contiguous())
        outputs, last = encoder(packed, states)
        return outputs.data if need_outputs else None, as_one_tensor(last)


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
