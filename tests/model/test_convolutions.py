"""Convolutions over packed sequences: each as if it were alone; padding is never seen."""

from __future__ import annotations

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
