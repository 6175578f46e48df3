"""A model that can't fit into memory is refused by its size, n-grams and subwords included."""

import pytest

from seqtrain.api import resources
from seqtrain.config import ModelConfig
from seqtrain.errors import ConfigError
from tests.helpers.small_models import PARTS, make_model

SMALL = ModelConfig(embedding_dim=8, hidden_size=8)


def refused(monkeypatch: pytest.MonkeyPatch, memory: int, model: ModelConfig, *sizes: int) -> str:
    """Return what is said on a machine of so many bytes; nothing where it is enough."""
    monkeypatch.setattr(resources, "physical_memory", lambda: memory)
    try:
        resources.check_model(model, *sizes)
    except ConfigError as error:
        return str(error)
    return ""


def test_ngrams_and_subwords_are_counted(monkeypatch):
    assert refused(monkeypatch, 2**22, SMALL, 100, 10) == ""
    said = refused(monkeypatch, 2**22, SMALL, 100, 10, 50_000)  # 8 MB and more
    assert said.startswith("model.max_ngrams: 5")
    assert said.endswith("lower it")
    with_subwords = SMALL.model_copy(update={"subwords": [3, 5]})  # 2 ** 15 rows of 8
    assert "lower model.hidden_size" in refused(monkeypatch, 2**22, with_subwords, 100, 10)


@pytest.mark.parametrize("part", ["n-grams", "subwords"])
def test_the_estimate_is_near_the_real_size(monkeypatch, part):
    kind, rules, keys = PARTS[part]
    model = make_model(kind, rules, **keys, num_layers=2)
    rules = model.preprocessing
    sizes = rules.input_size, len(rules.labels), rules.num_ngrams
    exact = 16 * sum(weight.numel() for weight in model.network.parameters())
    assert refused(monkeypatch, int(0.7 * exact), model.network.config, *sizes)
    assert not refused(monkeypatch, int(1.3 * exact), model.network.config, *sizes)
