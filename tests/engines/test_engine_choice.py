"""Choice of the engine of a model: made once, with a reason, and never replaced silently."""

from collections.abc import Iterator

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from seqtrain.config.schema import ModelConfig
from seqtrain.engines.choice import choose_engine, engines_by_name
from seqtrain.engines.native.library import VARIABLE, find_library, why_unavailable
from seqtrain.errors import ConfigError
from tests.helpers.batches import classify
from tests.helpers.networks import ids, make_network, needs_library

CPU = torch.device("cpu")
FASTEST = "torch" if why_unavailable() else "native"


@pytest.fixture
def forget_library() -> Iterator[None]:
    """Look for the library again, before the test's environment and after it."""
    find_library.cache_clear()
    yield
    find_library.cache_clear()


@pytest.mark.parametrize(
    ("keys", "device", "engine", "reason"),
    [
        *(({"rnn": rnn}, "cpu", FASTEST, "") for rnn in ("gru", "lstm", "rnn")),
        ({}, "cuda", "torch", "its own kernels on cuda"),
        ({}, "mps", "torch", "its own kernels on mps"),
        ({"engine": "torch"}, "cpu", "torch", "model.engine"),
        ({"unroll": "masked"}, "cpu", "torch", "unroll masked"),
    ],
)
def test_auto_takes_the_fastest_engine_that_serves(keys, device, engine, reason):
    chosen = choose_engine(ModelConfig.model_validate(keys), torch.device(device))
    assert chosen.name == engine
    assert chosen.reason
    assert reason in chosen.reason


@pytest.mark.parametrize(("value", "says"), [("off", "switched off"), ("sse", "must be one of")])
@pytest.mark.usefixtures("forget_library")
def test_without_the_library_torch_computes_and_says_so(value, says, monkeypatch) -> None:
    monkeypatch.setenv(VARIABLE, value)
    engine = choose_engine(ModelConfig(), CPU)
    assert engine.name == "torch"
    assert engine.reason.startswith("without padding, but slower than native: ")
    assert says in engine.reason
    with pytest.raises(ConfigError, match=rf"{says}.*; or set auto or torch"):
        choose_engine(ModelConfig(engine="native"), CPU)
    assert [*engines_by_name(ModelConfig(), CPU)] == ["torch"]


@needs_library
def test_no_engine_stands_in_for_the_one_that_was_asked_for():
    with pytest.raises(ConfigError, match="cuda"):
        choose_engine(ModelConfig(engine="native"), torch.device("cuda"))
    model, packed = make_network(engine="native"), pack_sequence(ids())
    classify(model, packed)
    model.double()
    with pytest.raises(ConfigError, match="float64"):
        classify(model, packed)
