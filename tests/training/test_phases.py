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
from seqtrain.training.events import EpochEvent
from seqtrain.training.phases import fitted_calibration, run_phases
from seqtrain.training.scoring import shared_logits
from seqtrain.training.trainer import VALIDATION_LOGITS, Trainer
from tests.helpers.tiny import rows, write_table

CONFIG: dict[str, Any] = {
    "data": {"train": "train.tsv", "validation": 0.3, "sequence": "text", "label": "label"},
    "batching": {"batch_size": 16},
    "model": {"embedding_dim": 8, "hidden_size": 8, "dropout": 0.0, "ngrams": [1, 1]},
    "training": {"max_epochs": 8, "lr": 0.03, "patience": None, "refit": True, "device": "cpu"},
}


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trainer:
    """Return a session whose model overlearns, because a quarter of the labels are drawn."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(0)
    examples = [
        (text, draw.choice(["up", "down"]) if draw.random() < 0.25 else label)
        for text, label in rows(200, seed=1)
    ]
    write_table(tmp_path / "train.tsv", examples)
    return start(prepare(resolved_config(CONFIG)))


def start(data: PreparedData) -> Trainer:
    return Trainer(resolved_config(CONFIG), data, torch.device("cpu"))


def test_the_model_of_a_refit_is_calibrated_after_as_many_epochs(session: Trainer) -> None:
    validation, after = session.data.splits["validation"], list[list[Tensor]]()
    for event in run_phases(session):
        if isinstance(event, EpochEvent) and event.phase == "training":
            after.append(shared_logits(session, validation))
    assert session.refit_epochs > session.best_epoch
    expected = fitted_calibration(session, after[session.refit_epochs - 1])
    assert session.calibration == expected
    of_best = fitted_calibration(session, after[session.best_epoch - 1])
    assert expected.temperature != of_best.temperature


def test_a_checkpoint_keeps_what_calibrates_a_refit(session: Trainer) -> None:
    for _ in run_phases(session, finish=False):
        pass
    state = session.state_dict()
    resumed = start(session.data)
    resumed.load_state_dict(state)
    kept = state["training"][VALIDATION_LOGITS]
    assert torch.equal(resumed.kept_logits, kept)
    for wrong in (kept[:, 1:], kept * torch.inf):
        changed = {**state, "training": state["training"] | {VALIDATION_LOGITS: wrong}}
        with pytest.raises(ValueError, match=VALIDATION_LOGITS):
            start(session.data).load_state_dict(changed)


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
    for _ in run_phases(session):
        before.append(session.calibration.thresholds)
    learned = session.setup.rows
    logits = session.network.combine(shared_logits(session, learned))
    predicted = best_class(logits.double().softmax(1), session.thresholds)
    often = (learned.labels == session.weights.rare).sum()
    assert (predicted == session.weights.rare).sum() == pytest.approx(often, abs=1)
    assert session.calibration.thresholds != before[-2]
