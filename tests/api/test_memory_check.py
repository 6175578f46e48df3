"""A model that can't fit into memory is refused by its size, n-grams and subwords included."""

import pytest
import torch

import seqtrain
from seqtrain.errors import ConfigError
from seqtrain.runs import environment
from seqtrain.sequences.labels import LabelSet
from tests.helpers.small_models import PARTS, make_model


def refused(monkeypatch: pytest.MonkeyPatch, memory: int, kind: str, rules, **keys) -> str:
    """Return what is said on a machine of so many bytes; nothing where it is enough."""
    monkeypatch.setattr(environment, "physical_memory", lambda: memory)
    model = make_model(kind, rules, **keys)
    try:
        cpu = torch.device("cpu")
        environment.check_model(model.network.config, model.preprocessing, cpu, 100)
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


def test_boosting_of_many_classes_is_refused_before_memory_is_asked_for(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    lines = ["label,text", *(f"l{n},a b c" for n in range(300) for _ in range(2))]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    monkeypatch.setattr(environment, "physical_memory", lambda: 10_000_000)
    data = {"train": "a.csv", "kind": "tokens", "sequence": "text", "label": "label"}
    config = {"data": data, "model": {"trees": True, "hidden_size": 4, "embedding_dim": 4}}
    with pytest.raises(ConfigError, match=r"model\.trees: 600 rows of 300 classes.*trees: false"):
        seqtrain.fit(config, run_dir="run", progress=False)
    assert not (tmp_path / "run").exists()


def test_many_n_grams_of_many_classes_name_the_key_to_lower(monkeypatch):
    kind, rules, keys = PARTS["n-grams"]
    many = {**rules, "label_set": LabelSet(tuple(map(str, range(400))))}
    said = refused(monkeypatch, 50_000, kind, many, **keys)
    assert said.startswith("model.max_ngrams")
