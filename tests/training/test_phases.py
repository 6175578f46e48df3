"""Phases of a run in one process: what calibrates the model of a refit."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from seqtrain.config import resolved_config
from seqtrain.sequences.dataset import PreparedData, prepare
from seqtrain.sequences.decisions import best_class
from seqtrain.training.distributed import SINGLE
from seqtrain.training.events import EpochEvent
from seqtrain.training.objectives import KEPT_LOGITS
from seqtrain.training.phases import TrainingSession, train_session
from tests.helpers.tiny import rows, write_table

CONFIG: dict[str, Any] = {
    "data": {"train": "train.tsv", "validation": 0.3, "sequence": "text", "label": "label"},
    "batching": {"batch_size": 16},
    "model": {"embedding_dim": 8, "hidden_size": 8, "dropout": 0.0, "ngrams": [1, 1]},
    "training": {"max_epochs": 8, "lr": 0.03, "patience": None, "refit": True, "device": "cpu"},
}


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrainingSession:
    """Return a session whose model overlearns, because a quarter of the labels are drawn."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(0)
    examples = [
        (text, draw.choice(["up", "down"]) if draw.random() < 0.25 else label)
        for text, label in rows(200, seed=1)
    ]
    write_table(tmp_path / "train.tsv", examples)
    return start(prepare(resolved_config(CONFIG)))


def start(data: PreparedData) -> TrainingSession:
    return TrainingSession(resolved_config(CONFIG), data, torch.device("cpu"), SINGLE)


def test_the_model_of_a_refit_is_calibrated_after_as_many_epochs(session: TrainingSession) -> None:
    validation, after = session.data.splits["validation"], list[list[Tensor]]()
    for event in train_session(session):
        if isinstance(event, EpochEvent) and event.phase == "training":
            after.append(session.branch_logits(validation))
    progress = session.learner.progress
    assert progress.refit_epochs > progress.best_epoch
    expected = session.fitted_calibration(after[progress.refit_epochs - 1])
    assert session.calibration == expected
    assert (
        expected.temperature
        != session.fitted_calibration(after[progress.best_epoch - 1]).temperature
    )


def test_a_checkpoint_keeps_what_calibrates_a_refit(session: TrainingSession) -> None:
    for _ in train_session(session, finish=False):
        pass
    tensors, values = session.learner.capture()
    resumed = start(session.data)
    resumed.load_weights(session.network.state_dict())
    resumed.restore(tensors, values)
    assert torch.equal(resumed.learner.objective.kept_logits, tensors[KEPT_LOGITS])
    for wrong in (tensors[KEPT_LOGITS][:, 1:], tensors[KEPT_LOGITS] * torch.inf):
        with pytest.raises(ValueError, match=KEPT_LOGITS):
            start(session.data).restore(tensors | {KEPT_LOGITS: wrong}, values)


def test_a_refit_predicts_a_rare_class_as_often_as_its_rows_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The threshold of the model before would not fit, for the mean of probabilities differs."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(0)
    examples = [
        (text, "rare" if draw.random() < (0.3 if label == "up" else 0.03) else "usual")
        for text, label in rows(300, seed=1)
    ]
    write_table(tmp_path / "train.tsv", examples)
    session = start(prepare(resolved_config(CONFIG)))
    before = list[list[float]]()
    for _ in train_session(session):
        before.append(session.calibration.thresholds)
    learned = session.learner.objective.store
    logits = session.network.combine(session.branch_logits(learned))
    predicted = best_class(logits.double().softmax(1), session.thresholds)
    often = (learned.labels == session.rare).sum()
    assert (predicted == session.rare).sum() == pytest.approx(often, abs=1)
    assert session.calibration.thresholds != before[-2]
