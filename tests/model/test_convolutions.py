"""Convolutions over packed sequences: each as if it were alone; padding is never seen."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_sequence, unpack_sequence

from seqtrain.model.convolutions import ConvolutionLayer, Convolutions

LAYERS = [[(5, 3, 1)], [(5, 7, 2)], [(4, 1, 3)], [(6, 7, 2), (3, 5, 2)], [(4, 9, 4), (2, 3, 1)]]
LENGTHS = [23, 9, 9, 4, 3, 2, 1, 1]


def sequences(channels: int = 2, lengths: list[int] = LENGTHS) -> list[Tensor]:
    generator = torch.Generator().manual_seed(len(lengths))
    return [torch.randn(length, channels, generator=generator) for length in lengths]


def make(layers: list[tuple[int, int, int]], *, training: bool = False) -> Convolutions:
    torch.manual_seed(0)
    model = Convolutions(2, layers)
    for layer in model.children():
        assert isinstance(layer, ConvolutionLayer)
        torch.nn.init.normal_(layer.norm.weight)
        torch.nn.init.normal_(layer.norm.bias)
        torch.nn.init.normal_(layer.norm.running_mean)
        torch.nn.init.uniform_(layer.norm.running_var, 0.5, 2.0)
    return model.train(training)


def one_by_one(model: Convolutions, rows: list[Tensor]) -> list[Tensor]:
    """With torch's own convolution and batch normalisation, sequence by sequence."""
    for layer in model.children():
        assert isinstance(layer, ConvolutionLayer)
        rows = [
            functional.conv1d(
                row.T[None], layer.weight, stride=layer.stride, padding=layer.kernel // 2
            )[0].T
            for row in rows
        ]
        norm = layer.norm
        mean, var = norm.running_mean, norm.running_var
        if model.training:
            steps = torch.cat(rows)
            mean, var = steps.mean(0), steps.var(0, unbiased=False)
        assert mean is not None
        assert var is not None
        rows = [
            functional.relu((row - mean) / (var + norm.eps).sqrt() * norm.weight + norm.bias)
            for row in rows
        ]
    return rows


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("layers", LAYERS)
def test_as_sequence_by_sequence(layers: list[tuple[int, int, int]], training: bool) -> None:
    model = make(layers, training=training)
    rows = sequences()
    expected = one_by_one(model, rows)
    for found, wanted in zip(unpack_sequence(model(pack_sequence(rows))), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layers", LAYERS)
def test_lengths_are_rounded_up_and_never_zero(layers: list[tuple[int, int, int]]) -> None:
    model = make(layers)
    expected = LENGTHS
    for _, _, stride in layers:
        expected = [-(-length // stride) for length in expected]
    assert model.lengths(torch.tensor(LENGTHS)).tolist() == expected
    rows = unpack_sequence(model(pack_sequence(sequences())))
    assert [len(row) for row in rows] == expected


def test_answers_do_not_depend_on_batch_mates() -> None:
    model = make([(6, 7, 2), (3, 5, 2)])
    rows = sequences()
    together = unpack_sequence(model(pack_sequence(rows)))
    for row, found in zip(rows, together, strict=True):
        torch.testing.assert_close(model(pack_sequence([row])).data, found)


def test_running_statistics_are_those_of_the_valid_steps() -> None:
    layer = ConvolutionLayer(2, 3, kernel=1, stride=1)
    rows = sequences()
    layer(pack_sequence(rows))
    steps = torch.cat(rows) @ layer.weight[:, :, 0].T
    assert layer.norm.running_mean is not None
    assert layer.norm.running_var is not None
    torch.testing.assert_close(layer.norm.running_mean, 0.1 * steps.mean(0))
    torch.testing.assert_close(layer.norm.running_var, 0.9 + 0.1 * steps.var(0))
    assert layer.norm.num_batches_tracked == 1


def test_one_step_alone_trains_by_the_running_statistics() -> None:
    layer = ConvolutionLayer(2, 3, kernel=3, stride=1).train()
    row = sequences(lengths=[1])
    trained = layer(pack_sequence(row)).data
    trained.sum().backward()
    assert layer.norm.num_batches_tracked == 0
    assert torch.equal(trained, layer.eval()(pack_sequence(row)).data)


def test_gradients_are_those_of_the_loop() -> None:
    model = make([(6, 7, 2), (3, 5, 2)], training=True).double()
    rows = [row.double() for row in sequences()]
    parameters = list(model.parameters())
    found = torch.autograd.grad(model(pack_sequence(rows)).data.square().sum(), parameters)
    total = torch.cat(one_by_one(model, rows)).square().sum()
    for gradient, expected in zip(found, torch.autograd.grad(total, parameters), strict=True):
        torch.testing.assert_close(gradient, expected)


def test_the_output_is_packed() -> None:
    packed = make([(3, 3, 2)])(pack_sequence(sequences()))
    assert isinstance(packed, PackedSequence)
    assert packed.batch_sizes.tolist() == [8, 5, 3, 3, 3] + [1] * 7


@pytest.mark.parametrize("layer", [(4, 3, 5), (4, 1, 7), (3, 51, 1), (3, 51, 4), (4, 9, 2)])
def test_any_stride_and_kernel_are_torchs_own_with_gradients(layer: tuple[int, int, int]) -> None:
    model = make([layer], training=True).double()
    rows = [row.double().requires_grad_() for row in sequences()]
    wanted = [*rows, *model.parameters()]
    total = model(pack_sequence(rows)).data
    expected = torch.cat(one_by_one(model, rows))
    torch.testing.assert_close(total.square().sum(), expected.square().sum())
    found = torch.autograd.grad(total.square().sum(), wanted)
    for gradient, other in zip(
        found, torch.autograd.grad(expected.square().sum(), wanted), strict=True
    ):
        torch.testing.assert_close(gradient, other)


@pytest.mark.parametrize("layers", LAYERS)
def test_a_mate_that_is_not_finite_changes_no_other_answer(
    layers: list[tuple[int, int, int]],
) -> None:
    model = make(layers)
    rows = sequences()
    expected = unpack_sequence(model(pack_sequence(rows)))
    for spoilt in range(len(rows)):
        given = [row.clone() for row in rows]
        given[spoilt].fill_(torch.inf)
        found = unpack_sequence(model(pack_sequence(given)))
        for index in set(range(len(rows))) - {spoilt}:
            assert torch.equal(found[index], expected[index])


def test_autocast_rounds_no_running_sum() -> None:
    layer = ConvolutionLayer(64, 64, kernel=25, stride=1).eval()
    layer.initialize(torch.Generator().manual_seed(0))
    layer.weight.data = layer.weight.data.bfloat16().float()
    exact = copy.deepcopy(layer).double()
    rows = [row.bfloat16().float() for row in sequences(channels=64, lengths=[90, 60])]
    lower = [row.clone().requires_grad_() for row in rows]
    upper = [row.double().requires_grad_() for row in rows]
    with torch.autocast("cpu", torch.bfloat16):
        found = layer(pack_sequence(lower)).data
    expected = exact(pack_sequence(upper)).data
    both = (found > 0) & (expected > 0)
    outer = torch.randn(both.shape, generator=torch.Generator().manual_seed(0)).bfloat16() * both
    of_lower = torch.cat(torch.autograd.grad(found, lower, outer.to(found.dtype)))
    of_upper = torch.cat(torch.autograd.grad(expected, upper, outer.double()))
    for rounded, true in (found, expected), (of_lower, of_upper):
        assert torch.linalg.norm(rounded - true) < 2**-8 * torch.linalg.norm(true)
