"""A model that can't fit into memory is refused by its size, n-grams and subwords included."""

from __future__ import annotations

import pytest

from seqtrain.api import memory
from seqtrain.config import ModelConfig
from seqtrain.errors import ConfigError

SMALL = ModelConfig(embedding_dim=8, hidden_size=8)


def refused(
    monkeypatch: pytest.MonkeyPatch, mebibytes: int, model: ModelConfig, **sizes: int
) -> str:
    """Return what is said on a machine of so much memory; nothing where it is enough."""
    monkeypatch.setattr(memory, "physical_memory", lambda: mebibytes * 2**20)
    try:
        memory.check_model(model, **sizes)
    except ConfigError as error:
        return str(error)
    return ""


def test_ngrams_and_subwords_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"input_size": 100, "num_classes": 10}
    assert refused(monkeypatch, 4, SMALL, **sizes) == ""
    said = refused(monkeypatch, 4, SMALL, **sizes, ngrams=50_000)  # 8 MB and more
    assert said.startswith("model.max_ngrams: 5")
    assert said.endswith("lower it")
    with_subwords = SMALL.model_copy(update={"subwords": [3, 5]})  # 2 ** 15 rows of 8
    assert "lower model.hidden_size" in refused(monkeypatch, 4, with_subwords, **sizes)
