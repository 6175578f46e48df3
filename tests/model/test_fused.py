"""The fused engine gives what torch\'s modules give: states and gradients; repeatably."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from seqtrain.model.cells import CELLS, as_one_tensor, as_torch_takes
from seqtrain.model.engines.fused.engine import FusedEngine
from seqtrain.model.engines.fused.matmul import long_product, outer_product, product
from seqtrain.model.engines.interface import DistinctInputs
from tests.helpers.examples import examples, some

run_fused = FusedEngine("").run
every_cell = pytest.mark.parametrize("cell", sorted(CELLS))

VOCABULARY = 11
INPUT_SIZE = 5
LIMITS = {torch.float32: (1e-5, 1e-4), torch.float64: (1e-10, 1e-10)}


class Case:
    """An encoder, a batch of token sequences, and weights for a loss of all that it returns."""

    def __init__(
        self,
        lengths: list[int],
        *,
        cell: str = "gru",
        hidden_size: int = 6,
        num_layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
        with_start: bool = False,
        dtype: torch.dtype = torch.float64,
        input_size: int = INPUT_SIZE,
        vocabulary: int = VOCABULARY,
        seed: int = 0,
    ) -> None:
        generator = torch.Generator().manual_seed(seed)

        def random(*shape: int) -> Tensor:
            return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

        torch.manual_seed(seed)
        self.encoder = CELLS[cell].module(
            input_size,
            hidden_size,
            num_layers=num_layers,
            bidirectional=bidirectional,
            dropout=dropout,
            dtype=dtype,
        )
        self.tokens = pack_sequence(
            [
                torch.randint(vocabulary, (n,), generator=generator)
                for n in sorted(lengths, reverse=True)
            ]
        )
        directions = 1 + bidirectional
        states = (CELLS[cell].parts, num_layers * directions, len(lengths), hidden_size)
        self.embedding = random(vocabulary, input_size).requires_grad_()
        self.start = random(*states).requires_grad_() if with_start else None
        self.output_weights = random(sum(lengths), directions * hidden_size)
        self.final_weights = random(*states)
        self.leaves = [self.embedding, *self.encoder.parameters()]
        self.leaves += [] if self.start is None else [self.start]

    def vectors(self) -> PackedSequence:
        return PackedSequence(self.embedding[self.tokens.data], self.tokens.batch_sizes)

    def distinct(self) -> DistinctInputs:
        ids, index = torch.unique(self.tokens.data, return_inverse=True)
        return DistinctInputs(self.embedding[ids], index, self.tokens.batch_sizes)

    def fused_run(self, *, distinct: bool = True) -> tuple[Tensor, Tensor]:
        inputs = self.distinct() if distinct else self.vectors()
        outputs, h_n = run_fused(self.encoder, inputs, self.start)
        assert outputs is not None
        return outputs, h_n

    def torch_run(self) -> tuple[Tensor, Tensor]:
        start = None if self.start is None else as_torch_takes(self.start)
        outputs, last = self.encoder(self.vectors(), start)
        return outputs.data, as_one_tensor(last)

    def loss(self, outputs: Tensor | None, h_n: Tensor) -> Tensor:
        loss = (h_n * self.final_weights).sum()
        return loss if outputs is None else loss + (outputs * self.output_weights).sum()

    def gradients(self, outputs: Tensor | None, h_n: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(self.loss(outputs, h_n), self.leaves)


def assert_near(found: Tensor, expected: Tensor, limit: float) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    scale = max(1e-3, float(expected.detach().abs().max()))
    assert float((found - expected).detach().abs().max()) <= limit * scale


def assert_same_as_torch(case: Case, *, distinct: bool, need_outputs: bool) -> None:
    state_limit, gradient_limit = LIMITS[case.embedding.dtype]
    inputs = case.distinct() if distinct else case.vectors()
    outputs, h_n = run_fused(case.encoder, inputs, case.start, need_outputs=need_outputs)
    torch_outputs, torch_h_n = case.torch_run()
    assert_near(h_n, torch_h_n, state_limit)
    if outputs is not None:
        assert_near(outputs, torch_outputs, state_limit)
    assert (outputs is not None) == need_outputs
    expected = case.gradients(torch_outputs if need_outputs else None, torch_h_n)
    for found, gradient in zip(case.gradients(outputs, h_n), expected, strict=True):
        assert_near(found, gradient, gradient_limit)


@pytest.mark.parametrize("dtype", LIMITS)
@examples(120)
@given(
    cell=st.sampled_from(sorted(CELLS)),
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    hidden_size=st.sampled_from([1, 3, 8, 17]),
    num_layers=st.integers(1, 2),
    bidirectional=st.booleans(),
    with_start=st.booleans(),
    distinct=st.booleans(),
    need_outputs=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_states_and_gradients_are_torchs(
    dtype: torch.dtype,
    cell: str,
    lengths: list[int],
    hidden_size: int,
    num_layers: int,
    bidirectional: bool,
    with_start: bool,
    distinct: bool,
    need_outputs: bool,
    seed: int,
) -> None:
    case = Case(
        lengths,
        cell=cell,
        hidden_size=hidden_size,
        num_layers=num_layers,
        bidirectional=bidirectional,
        with_start=with_start,
        dtype=dtype,
        seed=seed,
    )
    assert_same_as_torch(case, distinct=distinct, need_outputs=need_outputs)


@every_cell
def test_without_gradients_torchs_own_modules_run(cell: str) -> None:
    """They are linear then, and faster."""
    case = Case([5, 4, 1], cell=cell, num_layers=2, bidirectional=True, with_start=True)
    with torch.no_grad():
        for found, expected in zip(case.fused_run(), case.torch_run(), strict=True):
            assert torch.equal(found, expected)


def test_vectors_of_another_type_than_the_weights_are_read_without_gradients_too() -> None:
    encoder = nn.GRU(3, 4).double()
    vectors = pack_sequence([torch.randn(5, 3), torch.randn(2, 3)])
    _, expected = FusedEngine("").run(encoder, vectors)
    with torch.no_grad():
        _, found = FusedEngine("").run(encoder, vectors)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("distinct", "dtype", "cell"), some(itertools.product((False, True), LIMITS, sorted(CELLS)), 5)
)
def test_large_batches_are_torchs(cell: str, dtype: torch.dtype, distinct: bool) -> None:
    """Enough tokens, distinct tokens and units for several blocks and for oneDNN's products."""
    case = Case(
        [70, 1, 1, *range(20, 70)],
        cell=cell,
        hidden_size=96,
        input_size=64,
        vocabulary=3000,
        bidirectional=True,
        with_start=True,
        dtype=dtype,
    )
    assert_same_as_torch(case, distinct=distinct, need_outputs=True)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("distinct", [False, True])
@every_cell
def test_gradients_are_the_numerical_ones(cell: str, bidirectional: bool, distinct: bool) -> None:
    case = Case(
        [4, 2, 2, 1], cell=cell, hidden_size=3, bidirectional=bidirectional, with_start=True
    )

    def run(*_leaves: Tensor) -> tuple[Tensor, Tensor]:
        return case.fused_run(distinct=distinct)  # gradcheck changes the leaves in place

    assert torch.autograd.gradcheck(run, case.leaves, fast_mode=True)


def test_inputs_and_weights_without_gradient() -> None:
    case = Case([3, 2], num_layers=2)
    case.embedding.requires_grad_(False)
    frozen = case.encoder.get_parameter("weight_hh_l0").requires_grad_(False)
    case.leaves = [p for p in case.encoder.parameters() if p is not frozen]
    found = case.gradients(*case.fused_run(distinct=False))
    for gradient, expected in zip(found, case.gradients(*case.torch_run()), strict=True):
        assert_near(gradient, expected, 1e-10)


@pytest.mark.parametrize("distinct", [False, True])
@every_cell
def test_gradients_accumulate(cell: str, distinct: bool) -> None:
    case = Case([5, 3, 1], cell=cell, num_layers=2, bidirectional=True, with_start=True)
    once = case.gradients(*case.fused_run(distinct=distinct))
    loss = case.loss(*case.fused_run(distinct=distinct))
    torch.autograd.backward(loss, retain_graph=True)
    torch.autograd.backward(loss)
    torch.autograd.backward(case.loss(*case.fused_run(distinct=distinct)))
    for leaf, gradient in zip(case.leaves, once, strict=True):
        assert leaf.grad is not None
        assert_near(leaf.grad, 3 * gradient, 1e-12)


@pytest.mark.parametrize("distinct", [False, True])
@every_cell
def test_forwards_in_flight_keep_apart(cell: str, distinct: bool) -> None:
    cases = (Case([5, 3, 1], cell=cell), Case([7, 7], cell=cell, seed=1))
    alone = [case.gradients(*case.fused_run(distinct=distinct)) for case in cases]
    runs = [case.fused_run(distinct=distinct) for case in cases]
    for case, run, expected in zip(cases, runs, alone, strict=True):
        for found, gradient in zip(case.gradients(*run), expected, strict=True):
            assert torch.equal(found, gradient)


def test_one_gru_twice_in_one_graph() -> None:
    case = Case([4, 2, 2], num_layers=2)
    _, h_n = case.fused_run()
    found = case.gradients(*run_fused(case.encoder, case.distinct(), h_n))
    _, torch_h_n = case.encoder(case.vectors())
    outputs, torch_h_n = case.encoder(case.vectors(), torch_h_n)
    expected = case.gradients(outputs.data, torch_h_n[None])
    for gradient, torch_gradient in zip(found, expected, strict=True):
        assert_near(gradient, torch_gradient, 1e-10)


@pytest.mark.parametrize("dtype", LIMITS)
def test_repeats_bit_for_bit(dtype: torch.dtype) -> None:
    case = Case([60, *range(1, 60)], hidden_size=64, vocabulary=900, dtype=dtype)
    runs = [case.fused_run() for _ in range(2)]
    first, second = ((*run, *case.gradients(*run)) for run in runs)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_evaluation_has_no_dropout_and_no_graph() -> None:
    case = Case([6, 4, 1], num_layers=2, dropout=0.4)
    case.encoder.eval()
    with torch.no_grad():
        outputs, h_n = case.fused_run()
    expected, torch_h_n = case.torch_run()
    assert not h_n.requires_grad
    assert_near(outputs, expected, 1e-10)
    assert_near(h_n, torch_h_n, 1e-10)


@pytest.mark.parametrize("distinct", [False, True])
@every_cell
def test_autocast_lowers_the_products_alone(cell: str, distinct: bool) -> None:
    case = Case(
        [6, 4, 1], cell=cell, num_layers=2, hidden_size=32, with_start=True, dtype=torch.float32
    )
    run = case.fused_run(distinct=distinct)
    expected = (*run, *case.gradients(*run))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        run = case.fused_run(distinct=distinct)
        found = (*run, *case.gradients(*run))
    for lower, full in zip(found, expected, strict=True):
        assert lower.dtype == torch.float32
        assert not torch.equal(lower, full)
        torch.testing.assert_close(lower, full, atol=3e-2, rtol=5e-2)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@every_cell
def test_nan_and_inf_show_and_stay_in_their_sequence(cell: str, bad: float) -> None:
    case = Case([5, 4, 3], cell=cell)
    clean, _ = case.fused_run(distinct=False)
    data = case.vectors().data.detach().clone()
    data[1] = bad  # the second sequence's first token
    inputs = PackedSequence(data, case.tokens.batch_sizes)
    outputs, h_n = run_fused(case.encoder, inputs)
    expected, last = case.encoder(inputs)
    torch_h_n = as_one_tensor(last)
    assert outputs is not None
    assert torch.equal(outputs.isfinite(), expected.data.isfinite())
    others = [0, 2, 3, 5, 6, 8, 9, 11]
    assert torch.equal(outputs[others], clean[others])
    weight = case.encoder.get_parameter("weight_hh_l0")
    (found,) = torch.autograd.grad(h_n.sum(), [weight])
    (gradient,) = torch.autograd.grad(torch_h_n.sum(), [weight])
    assert torch.equal(found.isfinite(), gradient.isfinite())


@every_cell
def test_a_sequence_does_not_depend_on_its_batch_mates(cell: str) -> None:
    case = Case([40, 30, 30, *[20] * 30], cell=cell, hidden_size=128, dtype=torch.float32)
    _, h_n = run_fused(case.encoder, case.distinct())
    lengths = [40, 30, 30]
    for row, length in enumerate(lengths):
        positions = case.tokens.batch_sizes.cumsum(0) - case.tokens.batch_sizes + row
        tokens = case.tokens.data[positions[:length]]
        alone = PackedSequence(case.embedding[tokens], torch.ones(length, dtype=torch.int64))
        assert_near(run_fused(case.encoder, alone)[1][:, 0, 0], h_n[:, 0, row], 1e-6)


@pytest.mark.parametrize("rows", [1, 63, 64, 511, 512, 513, 1100])
def test_products_are_torchs(rows: int) -> None:
    torch.manual_seed(0)
    x, y = torch.randn(rows, 64), torch.randn(rows, 192)
    weight, bias = torch.randn(192, 64), torch.randn(192)
    expected = x @ weight.T + bias
    torch.testing.assert_close(product(x, weight, bias), expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(long_product(x, weight, bias), expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(long_product(y, weight.T), y @ weight, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(outer_product(x, y, x.dtype), x.T @ y, atol=2e-4, rtol=1e-4)


@every_cell
def test_a_faded_gradient_is_zero(cell: str) -> None:
    """Denormal numbers would make a processor many times as slow."""
    case = Case([500, 499, 3], cell=cell, dtype=torch.float32)
    vectors = case.embedding[case.tokens.data].detach().requires_grad_()
    packed = PackedSequence(vectors, case.tokens.batch_sizes)
    last = run_fused(case.encoder, packed, need_outputs=False)[1]
    (gradient,) = torch.autograd.grad(last[0].sum(), [vectors])
    small = (gradient != 0) & (gradient.abs() < torch.finfo(torch.float32).tiny)
    assert not bool(small.any())
    assert bool((gradient[:3] == 0).any())
    assert bool((gradient[-1] != 0).all())
