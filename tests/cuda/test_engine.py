"""The engine that auto chooses on CUDA pads batches that are full enough, and is exact."""

import copy

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from seqtrain.sequences.precision import float32_products
from tests.helpers.batches import classify
from tests.helpers.networks import gradients, ids, make_network

FULL, SPARSE = (9, 8, 8, 7, 6, 6), (30, 4, 2, 1, 1, 1)


@pytest.mark.parametrize("lengths", [FULL, SPARSE])
@pytest.mark.parametrize("rnn", ["gru", "lstm", "rnn"])
@pytest.mark.parametrize("keys", [{}, {"num_layers": 2, "bidirectional": True}])
def test_logits_and_gradients_are_the_cpus(keys, rnn, lengths, device):
    model = make_network(rnn=rnn, **keys, pooling=["last", "mean"])
    other, packed = copy.deepcopy(model).to(device), pack_sequence(ids(lengths))
    expected = gradients(model, classify(model, packed))
    with float32_products(device):
        found = gradients(other, classify(other, packed.to(device)))
    for name, gradient in found.items():
        torch.testing.assert_close(gradient.cpu(), expected[name], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("hidden", "lengths", "learns", "packed"),
    [
        (128, FULL, True, False),
        (129, FULL, True, True),
        (192, FULL, False, False),
        (193, FULL, False, True),
        (16, SPARSE, True, True),
    ],
)
@pytest.mark.parametrize("rnn", ["gru", "lstm"])
def test_padded_where_cudnn_has_fast_kernels(rnn, hidden, lengths, learns, packed, fake):
    model = make_network(rnn=rnn, hidden_size=hidden).to("cuda")
    fake.recurrences.clear()
    with torch.set_grad_enabled(learns):
        classify(model, pack_sequence(ids(lengths)).to("cuda"))
    assert [call.packed for call in fake.recurrences] == [packed]


def test_an_lstm_that_carries_states_is_packed(fake):
    model = make_network(rnn="lstm").to("cuda")
    packed = pack_sequence(ids(FULL)).to("cuda")
    start = torch.zeros(2, 1, len(FULL), 6, device="cuda")
    fake.recurrences.clear()
    classify(model, packed, start=start)
    assert [call.packed for call in fake.recurrences] == [True]
