"""Which engine computes a model: chosen once, with a reason; none takes another's place unsaid."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from seqtrain.config.schema import ModelConfig
from seqtrain.errors import ConfigError
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.engines.choice import choose_engine, serving_engines
from seqtrain.model.engines.native import why_not
from seqtrain.model.engines.native.library import find_library
from seqtrain.model.engines.torch_engine import TorchEngine

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("keys", "device", "engine"),
    [
        ({}, "cpu", "torch" if why_not() else "native"),
        ({}, "cuda", "torch"),
        ({"rnn": "lstm"}, "cpu", "torch" if why_not() else "native"),
        ({"engine": "torch"}, "cpu", "torch"),
        ({"unroll": "masked"}, "cpu", "torch"),
    ],
)
def test_auto_takes_the_fastest_engine_that_serves(
    keys: dict[str, str], device: str, engine: str
) -> None:
    config = ModelConfig.model_validate(keys)
    chosen = choose_engine(config, torch.device(device))
    assert chosen.name == engine
    assert chosen.reason


def test_native_is_chosen_only_where_it_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    config = ModelConfig.model_validate(
        {"dropout": 0.0, "embedding_dropout": 0.0, "engine": "native"}
    )
    with pytest.raises(ConfigError, match="no kernels for cuda; or set auto or torch"):
        choose_engine(config, torch.device("cuda"))
    monkeypatch.setenv("SEQTRAIN_NATIVE", "off")
    find_library.cache_clear()
    try:
        with pytest.raises(ConfigError, match=r"switched off \(SEQTRAIN_NATIVE=off\)"):
            choose_engine(config, torch.device("cpu"))
        engine = choose_engine(ModelConfig(dropout=0.0, embedding_dropout=0.0), torch.device("cpu"))
        assert engine.name == "torch"
        assert "switched off" in engine.reason
    finally:
        find_library.cache_clear()


@pytest.mark.skipif(bool(why_not()), reason=why_not())
@pytest.mark.parametrize("pooling", ["last", "max"])
def test_native_gives_the_logits_of_the_torch_engine(pooling: str) -> None:
    logits = []
    for engine in ("native", "torch"):
        torch.manual_seed(0)
        config = ModelConfig.model_validate(
            {
                "dropout": 0.0,
                "embedding_dropout": 0.0,
                "engine": engine,
                "pooling": pooling,
                "bidirectional": True,
                "hidden_size": 24,
            }
        )
        model = SequenceClassifier(config, input_size=20, num_classes=3, features=False)
        model.initialize(seed=0)
        ids = [torch.randint(2, 20, (length,)) for length in (9, 5, 5, 1)]
        logits.append(model(pack_sequence(ids)))
    assert torch.allclose(*logits, atol=1e-5)


def test_a_model_in_float64_is_computed_by_an_engine_that_can() -> None:
    torch.manual_seed(0)
    model = SequenceClassifier(
        ModelConfig(dropout=0.0, embedding_dropout=0.0),
        input_size=20,
        num_classes=3,
        features=False,
    )
    model.initialize(seed=0)
    packed = pack_sequence([torch.tensor([2, 3, 4]), torch.tensor([5])])
    expected = model(packed)
    model.double()
    assert model.engine.name == "torch"
    assert model(packed).dtype == torch.float64
    assert torch.allclose(model(packed).float(), expected, atol=1e-5)
    assert model.project_vocabulary() is None


def test_the_choice_is_made_once_and_anew_after_a_move(
    make_model: Callable[..., SequenceClassifier],
) -> None:
    model = make_model()
    engine = model.engine
    model(pack_sequence([torch.tensor([2, 3])]))
    assert model.engine is engine
    model.double()
    assert model.engine.name == "torch"
    assert model.engine.reason.endswith("native takes float32 alone, not float64")
    assert model.float().engine.name == engine.name
    assert copy.deepcopy(model).engine.name == engine.name


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_no_engine_stands_in_for_the_one_that_was_asked_for(
    make_model: Callable[..., SequenceClassifier],
) -> None:
    model = make_model(engine="native")
    packed = pack_sequence([torch.tensor([2, 3])])
    model(packed)
    model.double()
    with pytest.raises(ConfigError, match="native takes float32 alone, not float64; or set"):
        model(packed)
    beside = make_model(engine="native")
    beside.encoder.double()
    with pytest.raises(TypeError, match="float64"):
        beside(packed)


def test_a_model_can_be_computed_by_each_engine_that_serves(
    make_model: Callable[..., SequenceClassifier],
) -> None:
    model = make_model()
    packed = pack_sequence([torch.tensor([2, 3, 4]), torch.tensor([5])])
    names = serving_engines(model.config, CPU)
    assert names[0] == "torch"
    for name in names:
        other = model.computed_by(engine=name)
        assert other.engine.name == name
        torch.testing.assert_close(other(packed), model(packed), atol=1e-5, rtol=1e-4)
    assert model.config.engine == "auto"


@pytest.mark.parametrize("how", ["padded", "masked"])
def test_an_unroll_is_torchs_but_over_packed_for_pretraining(how: str) -> None:
    engine = choose_engine(ModelConfig.model_validate({"unroll": how}), CPU)
    assert (engine.name, engine.reason) == ("torch", f"unroll {how}")
    assert isinstance(engine, TorchEngine)
    assert engine.over_packed.unroll == "packed"
