"""Convolutions over packed sequences equal those of single sequences, without padding."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_sequence, unpack_sequence

from seqtrain.model.convolutions import ConvolutionLayer, Convolutions
from tests.helpers.batches import layout_of

Layers = list[tuple[int, int, int]]
LAYERS: list[Layers] = [
    *([layer] for layer in ((5, 3, 1), (5, 7, 2), (4, 1, 3), (4, 3, 5), (3, 51, 1), (3, 51, 4))),
    [(6, 7, 2), (3, 5, 2)],
    [(4, 9, 4), (2, 3, 1)],
]
LENGTHS = [23, 9, 9, 4, 3, 2, 1, 1]


def sequences(channels: int = 2, lengths: list[int] = LENGTHS) -> list[Tensor]:
    generator = torch.Generator().manual_seed(len(lengths))
    return [torch.randn(n, channels, generator=generator).double() for n in lengths]


def make(layers: Layers, *, training: bool = False) -> Convolutions:
    torch.manual_seed(0)
    model = Convolutions(2, layers).double()
    model.initialize(torch.Generator().manual_seed(0))
    for layer in model:
        for tensor in (layer.norm.weight, layer.norm.bias, layer.norm.running_mean):
            torch.nn.init.normal_(tensor)
        torch.nn.init.uniform_(layer.norm.running_var, 0.5, 2.0)
    return model.train(training)


def one_by_one(model: Convolutions, rows: list[Tensor]) -> list[Tensor]:
    """With torch's own convolution and batch normalisation, sequence by sequence."""
    for layer in model:
        keys = {"stride": layer.stride, "padding": layer.kernel // 2}
        rows = [functional.conv1d(row.T[None], layer.weight, **keys)[0].T for row in rows]
        norm, steps = layer.norm, torch.cat(rows)
        mean, var = norm.running_mean, norm.running_var
        if model.training:
            mean, var = steps.mean(0), steps.var(0, unbiased=False)
        rows = [
            functional.relu((row - mean) / (var + norm.eps).sqrt() * norm.weight + norm.bias)
            for row in rows
        ]
    return rows


def convolve(model: torch.nn.Module, rows: list[Tensor]) -> PackedSequence:
    packed = pack_sequence(rows)
    steps, layout = model(packed.data, layout_of(packed))
    return PackedSequence(steps, layout.batch_sizes)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("layers", LAYERS)
def test_values_lengths_and_gradients_are_those_of_single_sequences(layers, training):
    model = make(layers, training=training)
    rows = [row.requires_grad_() for row in sequences()]
    found, expected = unpack_sequence(convolve(model, rows)), one_by_one(model, rows)
    lengths = LENGTHS
    for _, _, stride in layers:
        lengths = [-(-length // stride) for length in lengths]
    assert [len(row) for row in found] == lengths
    torch.testing.assert_close(found, expected)
    wanted = [*rows, *model.parameters()]
    sums = [torch.cat(results).square().sum() for results in (found, expected)]
    torch.testing.assert_close(*(torch.autograd.grad(total, wanted) for total in sums))


def test_running_statistics_are_those_of_the_valid_steps():
    layer = ConvolutionLayer(2, 3, kernel=1, stride=1).double()
    layer.initialize(torch.Generator().manual_seed(0))
    convolve(layer, sequences())
    steps = torch.cat(sequences()) @ layer.weight[:, :, 0].T
    torch.testing.assert_close(layer.norm.running_mean, 0.1 * steps.mean(0))
    torch.testing.assert_close(layer.norm.running_var, 0.9 + 0.1 * steps.var(0))
    assert layer.norm.num_batches_tracked == 1


def test_one_step_alone_trains_by_the_running_statistics():
    model = make([(3, 3, 1)], training=True)
    rows = sequences(lengths=[1])
    trained = convolve(model, rows).data
    trained.sum().backward()
    assert model[0].norm.num_batches_tracked == 0
    assert torch.equal(trained, convolve(model.eval(), rows).data)


@pytest.mark.parametrize("layers", LAYERS)
def test_a_mate_that_is_not_finite_changes_no_other_sequence(layers):
    model, rows = make(layers), sequences()
    expected = unpack_sequence(convolve(model, rows))
    for spoilt in range(len(rows)):
        given = [row.clone().fill_(torch.inf) if i == spoilt else row for i, row in enumerate(rows)]
        found = unpack_sequence(convolve(model, given))
        for index in set(range(len(rows))) - {spoilt}:
            assert torch.equal(found[index], expected[index])
