"""The engine that auto chooses on CUDA is exact."""

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
