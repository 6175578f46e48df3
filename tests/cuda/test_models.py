"""Every model on the device against the same weights on the CPU: logits, gradients and updates."""

from __future__ import annotations

import copy
import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from seqtrain.config.schema import Config
from seqtrain.data.batch import collate
from seqtrain.data.store import SequenceStore
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.training.objectives import Classification
from seqtrain.training.trainer import Trainer
from tests.helpers.small_models import PARTS
from tests.helpers.small_models import make_model as small_model
from tests.helpers.stores import StoreBuilder

VOCABULARY, CLASSES = 40, ("a", "b", "c")
CELLS, POOLINGS = ("gru", "lstm", "rnn"), ("last", "mean", "max", "attention")
ENGINES = ({"engine": "torch"}, {"unroll": "padded"}, {"unroll": "masked"})


def make_store(rows: int, seed: int = 0) -> SequenceStore:
    generator, builder = np.random.default_rng(seed), StoreBuilder()
    for row in range(rows):
        ids = generator.integers(2, VOCABULARY, size=generator.integers(1, 30))
        builder.add_ids(ids.tolist(), row % len(CLASSES), row + 1)
    return builder.build()


def make_config(model: dict[str, Any], **training: Any) -> Config:
    sizes = {"embedding_dim": 24, "hidden_size": 32}
    return Config.model_validate(
        {
            "data": {"train": "train.tsv"},
            "batching": {"batch_size": 16},
            "model": sizes | model,
            "training": {"lr": 0.01, "schedule": "constant", "max_epochs": 2, **training},
        }
    )


def make_model(config: Config) -> SequenceClassifier:
    model = SequenceClassifier(
        config.model, input_size=VOCABULARY, num_classes=len(CLASSES), features=False
    )
    model.initialize(seed=0)
    return model


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("rnn", "pooling", "engine"), [*product(CELLS, POOLINGS, ENGINES)])
def test_logits_and_gradients_are_the_cpus(
    rnn: str, pooling: str, engine: dict[str, str], bidirectional: bool, device: torch.device
) -> None:
    keys = {"rnn": rnn, "pooling": pooling, "bidirectional": bidirectional, "num_layers": 2}
    config = make_config({**keys, **engine, "dropout": 0.0, "embedding_dropout": 0.0})
    model = make_model(config)
    batch = collate(make_store(12))
    other = copy.deepcopy(model).to(device)
    moved = batch.to(device)
    results = []
    for network, given in ((model, batch), (other, moved)):
        logits = network(given.packed)
        functional.cross_entropy(logits, given.labels).backward()
        gradients = [p.grad.to_dense().cpu() for p in network.parameters() if p.grad is not None]
        results.append([logits.detach().cpu(), *gradients])
    for ours, expected in zip(*results, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd"])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("rnn", CELLS)
def test_updates_are_the_cpus_with_the_same_random_numbers(
    rnn: str, sparse: bool, optimizer: str, device: torch.device
) -> None:
    """Dropout everywhere: what is dropped doesn't depend on the device."""
    keys = {"rnn": rnn, "dropout": 0.3, "embedding_dropout": 0.3, "initial_state": "random"}
    losses = []
    for place in (torch.device("cpu"), device):
        config = make_config(keys, optimizer=optimizer, sparse_embedding=sparse)
        model, store = make_model(config).to(place), make_store(64)
        trainer = Trainer(Classification(model, store, None, CLASSES, config, place))
        losses.append([event.loss for event in trainer.events()])
        with trainer.settled():
            tensors, progress = trainer.capture()
        again = Trainer(Classification(model, store, None, CLASSES, config, place))
        again.restore(tensors, progress)
    assert losses[1] == pytest.approx(losses[0], abs=2e-3)


@pytest.mark.parametrize("part", PARTS)
def test_parts_answer_as_on_the_cpu(part: str, device: torch.device) -> None:
    kind, rules, keys = PARTS[part]
    network = small_model(kind, rules, **keys).network
    lengths = torch.tensor([9, 3, 1, 7])
    if kind == "features":
        inputs = torch.randn(4, 9, network.input_size)
    else:
        inputs = torch.randint(1, network.input_size, (4, 9))
    other = copy.deepcopy(network).to(device)
    with torch.no_grad():
        expected, found = network(inputs, lengths), other(inputs.to(device), lengths)
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-3, atol=1e-4)


def test_an_update_waits_for_the_gpu_a_few_times_only(device: torch.device) -> None:
    """Each wait leaves the GPU idle. What waits: the figures of an update, and distinct tokens."""
    if device.type != "cuda":
        pytest.skip("only CUDA counts waits")
    config = make_config({"dropout": 0.3, "embedding_dropout": 0.3})
    model = make_model(config).to(device).train()
    trainer = Trainer(Classification(model, make_store(64), None, CLASSES, config, device))
    batches = [collate(make_store(16, seed)).to(device) for seed in range(3)]
    for batch in batches[:2]:
        trainer.update(batch, 0.01)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            trainer.update(batches[2], 0.01)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    waits = [str(w.filename) + f":{w.lineno}" for w in caught if "synchronizing" in str(w.message)]
    assert len(waits) <= 12, waits
