"""Names and initial values of the weights."""

from __future__ import annotations

import pytest
import torch

from seqtrain.config.schema import ModelConfig
from seqtrain.model.classifier import SequenceClassifier


def build(**keys: object) -> SequenceClassifier:
    torch.manual_seed(0)
    config = ModelConfig.model_validate({"embedding_dim": 6, "hidden_size": 8, **keys})
    model = SequenceClassifier(config, input_size=50, num_classes=3, features=False)
    model.initialize(seed=0)
    return model


def test_weights_are_named_as_torch_names_them() -> None:
    names = set(build(bidirectional=True).state_dict())
    assert {"embedding.weight", "head.weight", "head.bias"} <= names
    encoder = {name for name in names if name.startswith("encoder.")}
    assert encoder == {
        f"encoder.{kind}_{part}_l0{way}"
        for kind in ("weight", "bias")
        for part in ("ih", "hh")
        for way in ("", "_reverse")
    }


@pytest.mark.parametrize(("rnn", "gates"), [("gru", 3), ("lstm", 4), ("rnn", 1)])
def test_recurrence_is_orthogonal_and_the_keeping_gate_starts_open(rnn: str, gates: int) -> None:
    model = build(rnn=rnn, num_layers=2)
    for name, weight in model.encoder.named_parameters():
        if name.startswith("weight_hh"):
            for gate in weight.detach().split(8):
                torch.testing.assert_close(gate @ gate.T, torch.eye(8), atol=1e-5, rtol=0)
        elif name.startswith("bias_ih"):
            expected = torch.zeros(gates, 8)
            if gates > 1:
                expected[1] = 1.0
            assert torch.equal(weight.detach(), expected.flatten())
        elif name.startswith("bias_hh"):
            assert (weight == 0).all()


def test_the_keeping_gate_keeps_the_state() -> None:
    """The gate that starts open is the one that torch's own cells keep the state by."""
    for rnn in ("gru", "lstm"):
        encoder = build(rnn=rnn).encoder
        with torch.no_grad():
            for name, parameter in encoder.named_parameters():
                parameter.mul_(100.0 if name.startswith("bias_ih") else 0.0)
        state = torch.randn(1, 1, 8)
        start = state if rnn == "gru" else (torch.zeros_like(state), state)
        final = encoder(torch.zeros(1, 5, 6), start)[1]
        kept = final if rnn == "gru" else final[1]
        torch.testing.assert_close(kept, state)


def test_the_padding_row_is_zero_and_the_others_small() -> None:
    weight = build().embedding.weight.detach()
    assert (weight[0] == 0).all()
    assert 0.15 < weight[1:].std() < 0.45


def test_equal_seeds_give_equal_weights() -> None:
    one, other = build(pooling="attention").state_dict(), build(pooling="attention").state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)
