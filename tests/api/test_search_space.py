"""What a search may try: by kind of data, as the config says, and never what it can't take."""

from typing import Any

import pytest

from seqtrain.api.search_space import VALUES_BY_KIND, ValueRange, changed, differing, space_of
from seqtrain.config import Config, config_from_mapping

TEXT = {"train": "a.csv", "sequence": "s", "label": "l"}


def config(data: dict[str, Any], **sections: Any) -> Config:
    return config_from_mapping({"data": data, **sections})


DATA = {
    "words": TEXT,
    "characters": {**TEXT, "tokenizer": "char"},
    "symbols": {"train": "a.jsonl", "kind": "tokens", "sequence": "s", "label": "l"},
    "features": {"train": "a.npz", "kind": "features"},
}


@pytest.mark.parametrize("kind", DATA)
def test_each_value_of_each_kind_makes_a_config(kind):
    base = config(DATA[kind])
    space = space_of(base)
    assert VALUES_BY_KIND[kind].keys() < space.keys()
    for key, tried in space.items():
        values = tried if isinstance(tried, list) else [tried.low, tried.high]
        assert len(values) > 1
        for value in values:
            assert differing(base, {key: value}) in ({}, {key: value})
            changed(base, {key: value})


def test_what_the_config_rules_out_is_not_tried():
    base = config(
        TEXT,
        batching={"max_tokens": 500},
        model={"unroll": "masked"},
        training={"bptt": 20},
        pretraining={"objective": "language_model"},
    )
    space = space_of(base)
    assert "batching.batch_size" not in space
    assert "model.bidirectional" not in space


def test_the_configs_own_value_is_among_those_tried():
    space = space_of(config(TEXT, model={"hidden_size": 100, "dropout": 0.25}))
    assert space["model.hidden_size"] == [100, 64, 128, 192, 256]
    assert 0.25 in space["model.dropout"]  # type: ignore[operator]


def test_tune_space_adds_replaces_and_removes():
    wanted = {
        "model.hidden_size": {"low": 16, "high": 64},
        "model.dropout": {"low": 0.1, "high": 0.5},
        "training.lr": None,
        "training.schedule": ["linear", "cosine"],
    }
    space = space_of(config(TEXT, tune={"space": wanted}))
    assert space["model.hidden_size"] == ValueRange(16, 128, whole=True)  # 128 is the config's own
    assert space["model.dropout"] == ValueRange(0.1, 0.5, whole=False)
    assert "training.lr" not in space
    assert space["training.schedule"] == ["linear", "cosine"]
