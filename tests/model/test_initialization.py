"""Names and initial values of the weights."""

from typing import Any

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from seqtrain.config.schema import ModelConfig
from seqtrain.model.decoder import Autoencoder
from seqtrain.model.input_spec import InputSpec
from seqtrain.model.network import ClassifierNetwork
from seqtrain.model.randomness import RandomNumbers
from tests.helpers.batches import batch_of
from tests.helpers.networks import ids, make_network

ALL: dict[str, Any] = {
    "ngrams": [1, 2],
    "subwords": [2, 4],
    "convolutions": [[8, 5, 2]],
    "pooling": ["last", "attention"],
    "bidirectional": True,
}


def test_weights_are_named_as_torch_names_them():
    names = set(make_network(bidirectional=True).state_dict())
    encoder = {
        f"encoder.{kind}_{of}_l0{way}"
        for kind in ("weight", "bias")
        for of in ("ih", "hh")
        for way in ("", "_reverse")
    }
    assert names == {"embedding.weight", "head.weight", "head.bias", *encoder}
    names = set(make_network(**ALL).state_dict())
    assert {
        "subwords.weight",
        "ngrams.weight",
        "ngrams.intercept",
        "convolutions.0.weight",
    } <= names
    assert {"pooling.attention.score.weight", "convolutions.0.norm.running_mean"} <= names
    names = set(make_network(features=2, convolutions=[[8, 7, 2]]).state_dict())
    assert not any(name.startswith("embedding") for name in names), "no linear map before them"


@pytest.mark.parametrize(("rnn", "gates"), [("gru", 3), ("lstm", 4), ("rnn", 1)])
def test_recurrence_is_orthogonal_and_the_keeping_gate_starts_open(rnn, gates):
    model = make_network(rnn=rnn, num_layers=2, hidden_size=8)
    model.initialize(0)
    for name, weight in model.recurrent.encoder.named_parameters():
        if name.startswith("weight_hh"):
            for gate in weight.detach().split(8):
                torch.testing.assert_close(gate @ gate.T, torch.eye(8), atol=1e-5, rtol=0)
        elif name.startswith("bias"):
            expected = torch.zeros(gates, 8)
            if gates > 1 and name.startswith("bias_ih"):
                expected[1] = 1.0
            assert torch.equal(weight.detach(), expected.flatten())


def test_equal_seeds_draw_equal_weights_and_torchs_generator_has_no_part():
    torch.manual_seed(1)
    before, drawn = torch.get_rng_state(), []
    for seed in (4, 4, 5):
        model = make_network(**ALL)
        model.initialize(seed)
        drawn.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
    pretraining = Autoencoder(make_network(dropout=0.2), 0.3).train()
    pretraining.initialize(seed=5)
    random = RandomNumbers.of(0, 0, torch.arange(7))
    pretraining(batch_of(pack_sequence(ids())), random).sum().backward()
    assert torch.equal(torch.get_rng_state(), before)
    fixed = ("bias", "norm", "ngrams")
    for name, weight in drawn[0].items():
        assert torch.equal(weight, drawn[1][name]), name
        same = any(word in name for word in fixed) and "attention" not in name
        assert torch.equal(weight, drawn[2][name]) == same, name
    assert not drawn[0]["ngrams.weight"].any()


def test_a_learned_state_begins_as_zeros_and_tokens_with_small_vectors():
    config = ModelConfig(initial_state="learned", rnn="lstm", bidirectional=True)
    model = ClassifierNetwork(config, InputSpec(90, 2))
    model.initialize(0)
    assert torch.equal(model.recurrent.initial_state, torch.zeros(2, 2, 128))
    weight = model.get_parameter("recurrent.embedding.weight")
    assert (weight[0] == 0).all(), "padding"
    assert 0.25 < weight[1:].std() < 0.35
