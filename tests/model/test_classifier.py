"""Names and initial values of the weights, and the choice of the engine."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from seqtrain.config.schema import ModelConfig
from seqtrain.errors import ConfigError
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.encoder import choose_engine
from seqtrain.model.engines.native import why_not
from seqtrain.model.engines.native.library import find_library


def build(**keys: object) -> SequenceClassifier:
    torch.manual_seed(0)
    config = ModelConfig.model_validate({"embedding_dim": 6, "hidden_size": 8, **keys})
    model = SequenceClassifier(config, input_size=50, num_classes=3, features=False)
    model.initialize()
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
    assert 0.05 < weight[1:].std() < 0.15


def test_equal_seeds_give_equal_weights() -> None:
    one, other = build(pooling="attention").state_dict(), build(pooling="attention").state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(
    ("keys", "device", "engine"),
    [
        ({}, "cpu", "fused" if why_not() else "native"),
        ({}, "cuda", "torch"),
        ({"rnn": "lstm"}, "cpu", "torch"),
        ({"engine": "torch"}, "cpu", "torch"),
        ({"unroll": "masked"}, "cpu", "torch"),
        ({"engine": "fused"}, "cuda", "fused"),
    ],
)
def test_auto_takes_the_fastest_engine_that_serves(
    keys: dict[str, str], device: str, engine: str
) -> None:
    config = ModelConfig.model_validate(keys)
    chosen, reason = choose_engine(config, torch.device(device))
    assert chosen == engine
    assert reason


def test_native_is_chosen_only_where_it_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    config = ModelConfig.model_validate({"engine": "native"})
    with pytest.raises(ConfigError, match="no kernels for cuda; or set auto, fused or torch"):
        choose_engine(config, torch.device("cuda"))
    monkeypatch.setenv("SEQTRAIN_NATIVE", "off")
    find_library.cache_clear()
    try:
        with pytest.raises(ConfigError, match=r"switched off \(SEQTRAIN_NATIVE=off\)"):
            choose_engine(config, torch.device("cpu"))
        engine, reason = choose_engine(ModelConfig(), torch.device("cpu"))
        assert engine == "fused"
        assert "switched off" in reason
    finally:
        find_library.cache_clear()


@pytest.mark.skipif(bool(why_not()), reason=why_not())
@pytest.mark.parametrize("pooling", ["last", "max"])
def test_native_gives_the_logits_of_the_fused_engine(pooling: str) -> None:
    logits = []
    for engine in ("native", "fused"):
        torch.manual_seed(0)
        config = ModelConfig.model_validate(
            {"engine": engine, "pooling": pooling, "bidirectional": True, "hidden_size": 24}
        )
        model = SequenceClassifier(config, input_size=20, num_classes=3, features=False)
        model.initialize()
        ids = [torch.randint(2, 20, (length,)) for length in (9, 5, 5, 1)]
        logits.append(model(pack_sequence(ids)))
    assert torch.allclose(*logits, atol=1e-5)


def test_a_model_in_float64_is_computed_by_an_engine_that_can() -> None:
    torch.manual_seed(0)
    model = SequenceClassifier(ModelConfig(), input_size=20, num_classes=3, features=False)
    model.initialize()
    packed = pack_sequence([torch.tensor([2, 3, 4]), torch.tensor([5])])
    expected = model(packed)
    model.double()
    assert model(packed).dtype == torch.float64
    assert torch.allclose(model(packed).float(), expected, atol=1e-5)
    assert model.project_vocabulary() is None
