"""Pretraining: what it learns, reports and leaves to the classifier."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from seqtrain.model.input_spec import InputSpec
from seqtrain.model.network import ClassifierNetwork
from seqtrain.sequences.batch import collate
from seqtrain.sequences.store import SequenceStore, split_sequences
from seqtrain.training.events import EpochEvent, UpdateEvent
from seqtrain.training.loop import train_epochs
from seqtrain.training.trainer import Trainer
from tests.helpers.trainers import trainer_of

VOCAB_SIZE = 12


@pytest.fixture
def make_pretrainer(make_config) -> Callable[..., Trainer]:
    def run(
        objective: str,
        store: SequenceStore,
        validation: SequenceStore | None = None,
        model: dict[str, Any] | None = None,
        batch_size: int = 8,
        **keys: Any,
    ) -> Trainer:
        sections = {"model": model or {}, "batching": {"batch_size": batch_size}}
        training = {"schedule": "linear", "optimizer": "sgd" if batch_size == 1 else "adamw"}
        config = make_config(**sections, training=training)
        keys = {"objective": objective, "dropout": 0.0, **keys}
        section = config.pretraining.model_copy(update=keys)
        config = config.model_copy(update={"pretraining": section})
        classifier = ClassifierNetwork(config.model, InputSpec(VOCAB_SIZE, 3))
        classifier.initialize(seed=0)
        names = ("a", "b", "c")
        return trainer_of(config, classifier, names, store, validation, unlabelled=store)

    return run


def epochs(pretrainer: Trainer) -> list[EpochEvent]:
    return [event for event in train_epochs(pretrainer) if isinstance(event, EpochEvent)]


def test_an_autoencoder_reconstructs_what_it_memorised(make_pretrainer, make_store):
    store = make_store(10, longest=6)
    pretrainer = make_pretrainer(
        "autoencoder",
        store,
        model={"rnn": "lstm", "hidden_size": 32, "embedding_dim": 16, "bidirectional": True},
        max_epochs=80,
        lr=0.03,
    )
    assert epochs(pretrainer)[-1].loss < 0.1
    model = pretrainer.setup.model.eval()
    batch = collate(store)
    found = model.reconstruct(batch, steps=20)
    for row, place in enumerate(batch.unsorted_indices.tolist()):
        assert found[place] == store[row][0].tolist()


def test_events_count_steps_and_hold_means_over_tokens(make_pretrainer, make_store):
    store, validation = make_store(20), make_store(7, seed=1)
    pretrainer = make_pretrainer("language_model", store, validation, max_epochs=2, max_length=None)
    events = list(train_epochs(pretrainer))
    steps = [event for event in events if isinstance(event, UpdateEvent)]
    assert [event.update for event in steps] == list(range(1, 7))
    assert sum(event.time_steps for event in steps) == 2 * len(store.values)
    assert steps[0].lr == pytest.approx(0.002)
    first, last = (event for event in events if isinstance(event, EpochEvent))
    weighted = sum(event.loss * event.time_steps for event in steps[:3]) / len(store.values)
    assert first.loss == pytest.approx(weighted)
    assert last.time_steps == len(store.values)
    pretrainer.setup.model.eval()
    with torch.no_grad():
        losses = torch.cat([pretrainer.setup.model(collate(validation))])
    assert last.validation_loss == pytest.approx(float(losses.mean()), rel=1e-5)


def test_long_sequences_are_read_cut(make_store):
    store = make_store(12, longest=9)
    pieces = split_sequences(store, 4)
    assert pieces.lengths.max() <= 4
    np.testing.assert_array_equal(pieces.values, store.values)
    assert set(store.offsets) <= set(pieces.offsets)
    assert len(pieces) == sum(math.ceil(length / 4) for length in store.lengths)
    spread = [np.ptp(pieces.lengths[pieces.lines == line]) for line in store.lines]
    assert max(spread) <= 1
    assert split_sequences(store, None) is store
