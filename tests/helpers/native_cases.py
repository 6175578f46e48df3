"""Cases for the native engine: an encoder, a batch, a loss; run by torch's module and by ours."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.cells import CELLS, as_one_tensor, as_torch_takes
from seqtrain.model.engines.interface import DistinctInputs
from seqtrain.model.engines.native import NativeEngine, why_not

every_cell = pytest.mark.parametrize("cell", sorted(CELLS))
run_native, project = NativeEngine("").run, NativeEngine("").project
needs_library = pytest.mark.skipif(bool(why_not()), reason=why_not())


class Case:
    """An encoder, a batch, and weights that make a loss of all that the encoder returns."""

    def __init__(
        self,
        lengths: list[int],
        input_size: int = 5,
        hidden_size: int = 6,
        *,
        cell: str = "gru",
        num_layers: int = 1,
        bidirectional: bool = False,
        vectors: int | None = None,
        with_start: bool = False,
        need_outputs: bool = True,
        seed: int = 0,
    ) -> None:
        torch.manual_seed(seed)
        self.encoder = CELLS[cell].module(
            input_size, hidden_size, num_layers, bidirectional=bidirectional
        )
        lengths = sorted(lengths, reverse=True)
        self.batch_sizes = torch.tensor([sum(n > t for n in lengths) for t in range(lengths[0])])
        self.table = torch.randn(vectors or sum(lengths), input_size, requires_grad=True)
        self.index = torch.randint(vectors, (sum(lengths),)) if vectors else None
        layers = (1 + bidirectional) * num_layers
        states = (CELLS[cell].tensors, layers, len(lengths), hidden_size)
        self.start = torch.randn(states, requires_grad=True) if with_start else None
        self.weight = torch.randn(states)
        self.output_weight = torch.randn(sum(lengths), (1 + bidirectional) * hidden_size)
        self.need_outputs = need_outputs

    def leaves(self) -> list[Tensor]:
        return [
            self.table,
            *self.encoder.parameters(),
            *([] if self.start is None else [self.start]),
        ]

    def torch(self) -> tuple[Tensor | None, Tensor]:
        data = self.table if self.index is None else self.table[self.index]
        start = None if self.start is None else as_torch_takes(self.start)
        outputs, last = self.encoder(PackedSequence(data, self.batch_sizes), start)
        return outputs.data if self.need_outputs else None, as_one_tensor(last)

    def native(self) -> tuple[Tensor | None, Tensor]:
        inputs: PackedSequence | DistinctInputs = PackedSequence(self.table, self.batch_sizes)
        if self.index is not None:
            inputs = DistinctInputs(self.table, self.index, self.batch_sizes)
        return run_native(self.encoder, inputs, self.start, need_outputs=self.need_outputs)

    def to_float64(self) -> None:
        """Take the same numbers at twice the precision."""
        self.encoder.double()
        self.table = self.table.detach().double().requires_grad_()
        if self.start is not None:
            self.start = self.start.detach().double().requires_grad_()

    def loss(self, states: tuple[Tensor | None, Tensor]) -> Tensor:
        outputs, last = states
        loss = (last * self.weight).sum()
        return loss if outputs is None else loss + (outputs * self.output_weight).sum()

    def gradients(self, states: tuple[Tensor | None, Tensor]) -> list[Tensor]:
        return list(torch.autograd.grad(self.loss(states), self.leaves()))


def assert_close(found: Tensor | None, expected: Tensor | None, limit: float) -> None:
    """Compare within a limit relative to the largest number, or to 1 where that is less."""
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.shape == expected.shape
        scale = max(1.0, expected.abs().max().item())
        assert (found - expected).abs().max().item() <= limit * scale
