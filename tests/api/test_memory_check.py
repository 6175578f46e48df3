"""A model that can't fit into memory is refused by its size, n-grams and subwords included."""

import pytest
import torch

from seqtrain.errors import ConfigError
from seqtrain.runs import environment
from tests.helpers.small_models import PARTS, make_model


def refused(monkeypatch: pytest.MonkeyPatch, memory: int, kind: str, rules, **keys) -> str:
    """Return what is said on a machine of so many bytes; nothing where it is enough."""
    monkeypatch.setattr(environment, "physical_memory", lambda: memory)
    model = make_model(kind, rules, **keys)
    try:
        cpu = torch.device("cpu")
        environment.check_model(model.network.config, model.preprocessing, cpu)
    except ConfigError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("part", ["n-grams", "subwords"])
def test_what_training_needs_is_compared_with_the_memory(monkeypatch, part):
    kind, rules, keys = PARTS[part]
    parameters = make_model(kind, rules, **keys).network.parameters()
    needed = 16 * sum(weight.numel() for weight in parameters)
    assert not refused(monkeypatch, needed, kind, rules, **keys)
    said = refused(monkeypatch, needed - 1, kind, rules, **keys)
    assert f"{needed:,} bytes" in said
    assert "model.hidden_size" in said
