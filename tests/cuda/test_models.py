"""Every model on the device against the same weights on the CPU: logits, gradients and updates."""

import copy
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from seqtrain.config.schema import Config
from seqtrain.sequences.precision import float32_products
from seqtrain.sequences.store import SequenceStore
from seqtrain.training.loop import train_epochs
from seqtrain.training.trainer import Trainer
from tests.helpers.batches import classify
from tests.helpers.networks import NUM_CLASSES, VOCAB_SIZE, gradients, ids, make_network
from tests.helpers.small_models import PARTS
from tests.helpers.small_models import make_model as small_model
from tests.helpers.stores import store_of
from tests.helpers.trainers import trainer_of

CELLS, POOLINGS = ("gru", "lstm", "rnn"), ("last", "mean", "max", "attention")
UNROLLS, CLASSES = ("packed", "padded", "masked"), tuple("abcd"[:NUM_CLASSES])


def make_store(rows: int, seed: int = 0) -> SequenceStore:
    generator = np.random.default_rng(seed)
    sizes = [generator.integers(1, 30) for _ in range(rows)]
    sequences = [generator.integers(2, VOCAB_SIZE, size=size) for size in sizes]
    return store_of(sequences, [row % NUM_CLASSES for row in range(rows)])


def make_trainer(device: torch.device, model: dict[str, Any], **training: Any) -> Trainer:
    rates = {"dropout": 0.3, "embedding_dropout": 0.3}
    sections: dict[str, Any] = {
        "data": {"train": "train.tsv", "sequence": "text", "label": "label"},
        "batching": {"batch_size": 16},
        "model": rates | model,
        "training": {"lr": 0.01, "schedule": "constant", "max_epochs": 2, **training},
    }
    network = make_network(**sections["model"]).train().to(device)
    config = Config.model_validate(sections)
    return trainer_of(config, network, CLASSES, make_store(64), device=device)


@pytest.mark.parametrize(("rnn", "pooling"), [*product(CELLS, POOLINGS)])
@pytest.mark.parametrize("unroll", UNROLLS)
def test_logits_and_gradients_are_the_cpus(rnn, pooling, unroll, device):
    keys = {"rnn": rnn, "pooling": pooling, "bidirectional": pooling != "last", "num_layers": 2}
    model = make_network(**keys, unroll=unroll, engine="torch")
    other, packed = copy.deepcopy(model).to(device), pack_sequence(ids())
    logits = classify(model, packed)
    expected = gradients(model, logits)
    with float32_products(device):
        found = classify(other, packed.to(device))
        on_device = gradients(other, found)
    torch.testing.assert_close(found.cpu(), logits, rtol=1e-3, atol=1e-4)
    for name, gradient in on_device.items():
        torch.testing.assert_close(gradient.cpu(), expected[name], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd"])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("rnn", CELLS)
def test_updates_are_the_cpus_with_the_same_random_numbers(rnn, sparse, optimizer, device):
    """Dropout everywhere: what is dropped doesn't depend on the device."""
    keys = {"rnn": rnn, "initial_state": "random"}
    losses = []
    for where in (torch.device("cpu"), device):
        trainer = make_trainer(where, keys, optimizer=optimizer, sparse_embedding=sparse)
        losses.append([event.loss for event in train_epochs(trainer)])
        again = make_trainer(where, keys, optimizer=optimizer, sparse_embedding=sparse)
        again.load_state_dict(trainer.state_dict())
    assert losses[1] == pytest.approx(losses[0], abs=2e-3)


@pytest.mark.parametrize("branch", PARTS)
def test_branches_predict_as_on_the_cpu(branch, device):
    kind, rules, keys = PARTS[branch]
    network = small_model(kind, rules, **keys).network
    lengths = torch.tensor([9, 3, 1, 7])
    if kind == "features":
        inputs = torch.randn(4, 9, network.input_size)
    else:
        inputs = torch.randint(1, network.input_size, (4, 9))
    other = copy.deepcopy(network).to(device)
    with torch.no_grad(), float32_products(device):
        expected, found = (
            classify(network, inputs, lengths),
            classify(other, inputs.to(device), lengths),
        )
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-3, atol=1e-4)
