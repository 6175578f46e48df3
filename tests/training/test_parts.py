"""A batch in parts: every row once, balanced, and the gradient of the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtrain.config.schema import Config
from seqtrain.data.batch import collate
from seqtrain.data.store import SequenceStore
from seqtrain.processes.group import Group
from seqtrain.training.objectives import Classification
from seqtrain.training.parts import part_of, rows_of_parts
from seqtrain.training.shared_gradient import added_in_pairs
from seqtrain.training.trainer import Trainer
from tests.helpers.small_models import PARTS, make_model

OF_WORDS = [name for name, (kind, *_) in PARTS.items() if kind != "features"]
OF_WORDS.remove("convolutions")
LENGTHS = st.lists(st.integers(1, 40) | st.just(5000), min_size=1, max_size=40)


@settings(max_examples=200)
@given(LENGTHS, st.integers(1, 9))
def test_every_row_is_in_one_part_and_parts_are_balanced(lengths: list[int], count: int) -> None:
    steps = torch.tensor(lengths)
    parts = rows_of_parts(steps, count)
    assert len(parts) == count
    assert sorted(torch.cat(parts).tolist()) == list(range(len(lengths)))
    assert all(part.tolist() == sorted(part.tolist()) for part in parts)
    sizes = [int(steps[part].sum()) for part in parts]
    assert max(sizes) - min(sizes) <= max(lengths)


@pytest.mark.slow
@settings(max_examples=2000)
@given(LENGTHS, st.integers(1, 64))
def test_two_thousand_plans(lengths: list[int], count: int) -> None:
    test_every_row_is_in_one_part_and_parts_are_balanced.hypothesis.inner_test(  # type: ignore
        lengths, count
    )


@pytest.mark.parametrize("sort", ["collate", "module"])
def test_a_part_is_what_its_rows_alone_are(
    make_store: Callable[..., SequenceStore], sort: str
) -> None:
    store = make_store(9)
    whole = collate(store, sort)
    rows = torch.tensor([0, 3, 4, 8])
    part = part_of(whole, rows)
    alone = collate(store.__getitems__(part.examples), sort)
    assert torch.equal(part.input_ids, alone.input_ids)
    assert torch.equal(part.packed.data, alone.packed.data)
    assert torch.equal(part.packed.batch_sizes, alone.packed.batch_sizes)
    assert torch.equal(part.lengths, alone.lengths)
    assert torch.equal(part.labels, alone.labels)


def test_sums_go_by_a_tree_of_pairs() -> None:
    parts = torch.tensor([1e8, 1.0, -1e8, 1.0], dtype=torch.float32).split(1)
    assert added_in_pairs(parts).item() == (parts[0] + parts[1] + (parts[2] + parts[3])).item() == 0
    assert added_in_pairs(parts[:3]).item() == 0


def trained(name: str, training: dict[str, Any], **model_keys: Any) -> dict[str, torch.Tensor]:
    """Train a small model with a part of every kind for two epochs; return its weights."""
    kind, rules, keys = PARTS[name]
    model = make_model(kind, rules, **keys, **model_keys)
    generator = np.random.default_rng(0)
    sentences = [" ".join(generator.choice(WORDS, size=1 + i % 6)) for i in range(21)]
    store, _ = encoded(model, sentences, kind)
    config = Config.model_validate(
        {
            "data": {"train": "train.jsonl", "sequence": "s", "label": "l"},
            "batching": {"batch_size": 8},
            "model": model.network.config.model_dump(),
            "training": {"max_epochs": 2, "patience": None, "lr": 0.01, **training},
        }
    )
    names = model.preprocessing.labels
    cpu = torch.device("cpu")
    trainer = Trainer(Classification(model.network, store, None, names, config, cpu, Group()))
    for _ in trainer.events():
        pass
    return model.network.state_dict()


WORDS = ("move", "money", "don't", "éa", "?", "20", "unseen", "others")


def encoded(model: Any, sentences: list[str], kind: str) -> tuple[SequenceStore, Any]:
    from seqtrain.data.examples import Example

    labels = model.preprocessing.labels
    examples = [
        Example(s if kind == "text" else s.split(), labels[i % len(labels)], i + 1)
        for i, s in enumerate(sentences)
    ]
    return model.preprocessing.encode(examples, "train")


@pytest.mark.parametrize("shards", [3, 16])
@pytest.mark.parametrize("name", OF_WORDS)
def test_parts_together_learn_what_the_whole_batch_does(name: str, shards: int) -> None:
    """With every kind of table: embedding, n-grams, subwords; also where parts are empty."""
    keys = {"dropout": 0.2, "embedding_dropout": 0.2}
    whole = trained(name, {}, **keys)
    parts = trained(name, {"shards": shards}, **keys)
    for weight, tensor in whole.items():
        assert torch.allclose(parts[weight], tensor, rtol=1e-4, atol=1e-5), weight


@pytest.mark.parametrize("training", [{"optimizer": "sgd"}, {"sparse_embedding": False}], ids=str)
def test_parts_with_other_updates(training: dict[str, Any]) -> None:
    whole = trained("n-grams and long subwords", training)
    parts = trained("n-grams and long subwords", {**training, "shards": 3})
    for weight, tensor in whole.items():
        assert torch.allclose(parts[weight], tensor, rtol=1e-4, atol=1e-5), weight
