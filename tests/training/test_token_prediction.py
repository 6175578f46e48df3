"""Pretraining: what it learns, reports and leaves to the classifier."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from seqtrain.config.schema import Config
from seqtrain.data.batch import collate
from seqtrain.data.store import SequenceStore
from seqtrain.errors import RunError
from seqtrain.model.classifier import ClassifierNetwork
from seqtrain.model.decoder import Autoencoder, LanguageModel
from seqtrain.training.events import EpochEvent, UpdateEvent
from seqtrain.training.token_prediction import TokenPrediction, shortened
from seqtrain.training.trainer import Trainer
from tests.helpers.stores import StoreBuilder

VOCAB_SIZE = 12
OBJECTIVES = (LanguageModel, Autoencoder)
MakeStore = Callable[..., SequenceStore]


@pytest.fixture
def make_pretrainer(make_config: Callable[..., Config]) -> Callable[..., Trainer]:
    def run(
        objective: type[LanguageModel | Autoencoder],
        store: SequenceStore,
        validation: SequenceStore | None = None,
        model: dict[str, Any] | None = None,
        **keys: Any,
    ) -> Trainer:
        config = make_config(model=model or {}, training={"schedule": "linear"})
        section = config.pretraining.model_copy(update={"dropout": 0.0, **keys})
        config = config.model_copy(update={"pretraining": section})
        classifier = ClassifierNetwork(
            config.model, input_size=VOCAB_SIZE, num_classes=3, features=False
        )
        classifier.initialize(seed=0)
        network = objective(classifier, config.pretraining.dropout)
        network.initialize(seed=0)
        objective = TokenPrediction(network, store, validation, config, torch.device("cpu"))
        return Trainer(objective)

    return run


def epochs(pretrainer: Trainer) -> list[EpochEvent]:
    return [event for event in pretrainer.events() if isinstance(event, EpochEvent)]


def weights(pretrainer: Trainer) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in pretrainer.objective.model.state_dict().items()}


@pytest.mark.parametrize("rnn", ["gru", "lstm"])
def test_an_autoencoder_reconstructs_what_it_memorised(
    rnn: str, make_pretrainer: Callable[..., Trainer], make_store: MakeStore
) -> None:
    store = make_store(10, longest=6)
    pretrainer = make_pretrainer(
        Autoencoder,
        store,
        model={"rnn": rnn, "hidden_size": 32, "embedding_dim": 16, "bidirectional": True},
        max_epochs=80,
        lr=0.03,
    )
    assert epochs(pretrainer)[-1].loss < 0.1
    model = pretrainer.objective.model.eval()
    assert isinstance(model, Autoencoder)
    batch = collate(store)
    found = model.reconstruct(batch.packed, steps=20)
    for row, place in enumerate(batch.unsorted_indices.tolist()):
        assert found[place] == store[row][0].tolist()


@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_language_model_learns_what_follows(
    bidirectional: bool, make_pretrainer: Callable[..., Trainer]
) -> None:
    builder = StoreBuilder()
    for row in range(20):  # ids count up, so that each tells the next; the first is open
        builder.add_ids([2 + (row + i) % 8 for i in range(6)], 0, row + 2)
    pretrainer = make_pretrainer(
        LanguageModel,
        builder.build(),
        model={"bidirectional": bidirectional, "hidden_size": 32, "embedding_dim": 16},
        max_epochs=60,
        lr=0.02,
    )
    assert epochs(pretrainer)[-1].loss < 0.1


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_embedding_and_encoder_learn_in_place_and_the_head_stays(
    objective: type[LanguageModel | Autoencoder],
    make_pretrainer: Callable[..., Trainer],
    make_store: MakeStore,
) -> None:
    pretrainer = make_pretrainer(objective, make_store(20), max_epochs=1)
    before = weights(pretrainer)
    epochs(pretrainer)
    after = weights(pretrainer)
    learned = {name for name in before if not torch.equal(before[name], after[name])}
    parts = {name.split(".")[1] for name in learned if name.startswith("classifier.")}
    assert parts == {"embedding", "encoder"}
    assert not after["classifier.embedding.weight"][0].any()


def test_same_seed_same_weights(
    make_pretrainer: Callable[..., Trainer], make_store: MakeStore
) -> None:
    runs = []
    for _ in range(2):
        pretrainer = make_pretrainer(Autoencoder, make_store(20), max_epochs=2, dropout=0.3)
        epochs(pretrainer)
        runs.append(weights(pretrainer))
    assert all(torch.equal(runs[0][name], runs[1][name]) for name in runs[0])


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("events", [1, 3, 4, 6, 8])
def test_going_on_from_a_captured_state_gives_equal_bits(
    objective: type[LanguageModel | Autoencoder],
    events: int,
    make_pretrainer: Callable[..., Trainer],
    make_store: MakeStore,
) -> None:
    def make() -> Trainer:
        validation = make_store(7, seed=1)
        return make_pretrainer(objective, make_store(20), validation, max_epochs=2, dropout=0.3)

    uninterrupted = make()
    complete = [timeless(event) for event in uninterrupted.events()]
    stopped = make()
    steps = stopped.events()
    for _ in range(events):
        next(steps)
    state, (tensors, values) = weights(stopped), stopped.capture()
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}

    resumed = make()
    with torch.no_grad():
        for parameter in resumed.objective.model.softmax.parameters():
            parameter.zero_()
    classifier = {name: t for name, t in state.items() if name.startswith("classifier.")}
    resumed.objective.model.load_state_dict(classifier, strict=False)
    torch.manual_seed(99)
    resumed.restore(tensors, values)
    assert [timeless(event) for event in resumed.events()] == complete[events:]
    expected = weights(uninterrupted)
    assert all(torch.equal(value, expected[name]) for name, value in weights(resumed).items())


def timeless(event: UpdateEvent | EpochEvent) -> dict[str, Any]:
    """All of an event but the time that it took."""
    return {name: value for name, value in vars(event).items() if name != "seconds"}


def forge(tensors: dict[str, Tensor], progress: dict[str, Any], what: str) -> None:
    """Put something into a state that no pretraining can have."""
    name = "pretraining.softmax.head.weight"
    if what == "missing":
        del tensors[name]
    elif what == "shape":
        tensors[name] = tensors[name][1:]
    elif what == "type":
        tensors[name] = tensors[name].double()
    elif what == "nan":
        tensors[name] = tensors[name] * math.nan
    elif what == "moment":
        tensors["optimizer.0.exp_avg"] = torch.zeros(3)
    elif what == "phase":
        progress["pretraining"] = 1
    else:
        progress["examples"] = 0


@pytest.mark.parametrize("what", ["missing", "shape", "type", "nan", "moment", "phase", "examples"])
def test_a_forged_state_is_refused(
    what: str, make_pretrainer: Callable[..., Trainer], make_store: MakeStore
) -> None:
    pretrainer = make_pretrainer(LanguageModel, make_store(20), max_epochs=1)
    next(pretrainer.events())
    tensors, progress = pretrainer.capture()
    forge(tensors, progress, what)
    with pytest.raises(ValueError, match=r"pretraining|optimizer\.0|progress"):
        pretrainer.restore(tensors, progress)


def test_events_count_steps_and_hold_means_over_tokens(
    make_pretrainer: Callable[..., Trainer], make_store: MakeStore
) -> None:
    store, validation = make_store(20), make_store(7, seed=1)
    pretrainer = make_pretrainer(LanguageModel, store, validation, max_epochs=2, max_length=None)
    events = list(pretrainer.events())
    steps = [event for event in events if isinstance(event, UpdateEvent)]
    assert [event.update for event in steps] == list(range(1, 7))
    assert sum(event.time_steps for event in steps) == 2 * len(store.values)
    assert steps[0].lr == pytest.approx(0.002)
    first, last = (event for event in events if isinstance(event, EpochEvent))
    weighted = sum(event.loss * event.time_steps for event in steps[:3]) / len(store.values)
    assert first.loss == pytest.approx(weighted)
    assert last.time_steps == len(store.values)
    pretrainer.objective.model.eval()
    with torch.no_grad():
        losses = torch.cat([pretrainer.objective.model(collate(validation).packed)])
    assert last.validation_loss == pytest.approx(float(losses.mean()), rel=1e-5)


def test_long_sequences_are_read_cut(make_store: MakeStore) -> None:
    store = make_store(12, longest=9)
    pieces = shortened(store, 4)
    assert pieces.lengths.max() <= 4
    np.testing.assert_array_equal(pieces.values, store.values)
    assert set(store.offsets) <= set(pieces.offsets)
    assert len(pieces) == sum(math.ceil(length / 4) for length in store.lengths)
    spread = [np.ptp(pieces.lengths[pieces.lines == line]) for line in store.lines]
    assert max(spread) <= 1
    assert shortened(store, None) is store


def test_a_loss_that_is_not_finite_stops_it(
    make_pretrainer: Callable[..., Trainer], make_store: MakeStore
) -> None:
    pretrainer = make_pretrainer(LanguageModel, make_store(20), max_epochs=1)
    with torch.no_grad():
        pretrainer.objective.model.softmax.head.weight.fill_(math.nan)
    with pytest.raises(RunError, match=r"pretraining step 1: .*lower pretraining\.lr"):
        epochs(pretrainer)


def test_memory_that_runs_out_in_scoring_names_what_to_lower(
    make_pretrainer: Callable[..., Trainer], make_store: MakeStore
) -> None:
    pretrainer = make_pretrainer(LanguageModel, make_store(9), make_store(5, seed=1))

    def hungry(module: torch.nn.Module, _: object) -> None:
        if not module.training:
            torch.empty(2**60)

    pretrainer.objective.model.softmax.head.register_forward_pre_hook(hungry)
    with pytest.raises(RunError, match=r"ran out on 5 sequences, .* lower pretraining\.max_length"):
        epochs(pretrainer)
