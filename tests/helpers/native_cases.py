"""Cases for the native engine: an encoder, a batch, a loss; run by torch's module and by ours."""

import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from seqtrain.engines.cells import CELLS, as_one_tensor, as_torch_takes, zero_state
from seqtrain.engines.interface import DistinctInputs
from seqtrain.engines.layout import Packed
from seqtrain.engines.native.recurrence import NativeEngine

every_cell = pytest.mark.parametrize("cell", sorted(CELLS))
ENGINE = NativeEngine("")
SIZES = st.sampled_from([1, 2, 3, 8, 15, 16, 17, 33, 48, 50, 64])
CASES = st.fixed_dictionaries(
    {
        "cell": st.sampled_from(sorted(CELLS)),
        "lengths": st.one_of(
            st.lists(st.integers(1, 12), min_size=1, max_size=20),
            st.lists(st.integers(1, 90), min_size=1, max_size=5),
        ),
        "input_size": SIZES,
        "hidden_size": SIZES,
        "num_layers": st.integers(1, 2),
        "bidirectional": st.booleans(),
        "vectors": st.one_of(st.none(), st.integers(1, 9), st.integers(100, 300)),
        "with_start": st.booleans(),
        "need_outputs": st.booleans(),
    }
)
"""Arguments of any `Case`."""


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
    ) -> None:
        torch.manual_seed(0)
        self.encoder = CELLS[cell].module(
            input_size, hidden_size, num_layers, bidirectional=bidirectional
        )
        lengths = sorted(lengths, reverse=True)
        self.batch_sizes = torch.tensor([sum(n > t for n in lengths) for t in range(lengths[0])])
        self.table = torch.randn(vectors or sum(lengths), input_size, requires_grad=True)
        self.index = torch.randint(vectors, (sum(lengths),)) if vectors else None
        self.weight = torch.randn_like(zero_state(self.encoder, len(lengths), like=self.table))
        self.start = torch.randn_like(self.weight).requires_grad_() if with_start else None
        self.output_weight = torch.randn(sum(lengths), (1 + bidirectional) * hidden_size)
        self.need_outputs = need_outputs

    def leaves(self) -> list[Tensor]:
        start = [] if self.start is None else [self.start]
        return [self.table, *self.encoder.parameters(), *start]

    def torch(self) -> tuple[Tensor | None, Tensor]:
        data = self.table if self.index is None else self.table[self.index]
        start = None if self.start is None else as_torch_takes(self.start)
        outputs, last = self.encoder(PackedSequence(data, self.batch_sizes), start)
        return outputs.data if self.need_outputs else None, as_one_tensor(last)

    def native(self) -> tuple[Tensor | None, Tensor]:
        inputs: Tensor | DistinctInputs = self.table
        if self.index is not None:
            inputs = DistinctInputs(self.table, self.index)
        layout = Packed(self.batch_sizes, self.table.device)
        return ENGINE.run(self.encoder, inputs, layout, self.start, need_outputs=self.need_outputs)

    def rounded(self) -> tuple[Tensor | None, Tensor]:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.native()

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


def assert_same_as_torch(case: Case) -> None:
    expected, found = case.torch(), case.native()
    for ours, theirs in zip(found, expected, strict=True):
        assert_close(ours, theirs, 1e-5)
    for ours, theirs in zip(case.gradients(found), case.gradients(expected), strict=True):
        assert_close(ours, theirs, 1e-4)
