"""Weights of examples: one vector for the loss, the solved branches, calibration and thresholds."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import seqtrain
from seqtrain.evaluation.calibration import fit_calibration, fit_temperature
from seqtrain.sklearn import SequenceClassifier
from tests.helpers import tiny

BRANCHES: list[dict[str, Any]] = [{}, {"model.trees": True, "model.kernels": True}]


def classifier(branches: dict[str, Any], **keys: Any) -> SequenceClassifier:
    small = {"embedding_dim": 8, "hidden_size": 8, "dropout": 0.0, "lr": 0.03, "max_epochs": 12}
    settings = {"batching.batch_size": 8, **branches}
    return SequenceClassifier(**small, **keys, settings=settings)


@pytest.mark.parametrize("branches", BRANCHES, ids=str)
@pytest.mark.parametrize("form", ["rows", "classes"])
def test_weights_reach_every_branch(branches, form):
    """Every series occurs once in each class, so only the weights tell the classes apart."""
    labels = np.array(["down", "up"] * 60)
    series = [np.random.default_rng(i // 2).normal(size=(12, 1)) for i in range(120)]
    if form == "rows":
        weights = np.where(labels == "up", 20.0, 0.5)
        fitted = classifier(branches).fit(series, labels, sample_weight=weights)
    else:
        fitted = classifier(branches, class_weight={"down": 1, "up": 40}).fit(series, labels)
    assert fitted.predict_proba(series)[:, 1].mean() > 0.9


@pytest.mark.parametrize("branches", BRANCHES, ids=str)
def test_a_row_of_weight_0_is_not_learned(branches):
    draw = np.random.default_rng(0)
    labels = np.array(["down", "up"] * 40)
    series = [draw.normal(size=(12, 1)) + 2.0 * (label == "up") for label in labels]
    wrong = [draw.normal(size=(12, 1)) + 2.0 * (label == "down") for label in labels]
    weights = np.repeat([1.0, 0.0], [80, 80])
    fitted = classifier(branches).fit(
        [*series, *wrong], np.concatenate([labels, labels]), sample_weight=weights
    )
    assert (fitted.predict(series) == labels).mean() > 0.9
    alone = classifier(branches).fit(series, labels)
    difference = np.abs(fitted.predict_proba(series) - alone.predict_proba(series))
    # The values are scaled by all rows, whatever their weights.
    assert difference.mean() < 0.1


@pytest.mark.parametrize("refit", [False, True])
def test_equal_weights_are_no_weights(refit, tmp_path):
    """By a mean of 1, the learning rate suits them. In a refit, validation rows weigh as much."""
    train, validation = (
        [{"text": text, "label": label} for text, label in tiny.rows(count, seed=count)]
        for count in (60, 24)
    )
    config = {
        "data": {"sequence": "text", "label": "label"},
        "batching": {"batch_size": 8},
        "model": {"embedding_dim": 4, "hidden_size": 4},
        "training": {"max_epochs": 3, "lr": 0.05, "optimizer": "sgd", "refit": refit},
    }
    for name, weights in (("plain", None), ("heavy", np.full(60, 3.0))):
        given = {"train": train, "validation": validation, "sample_weight": weights}
        seqtrain.fit(config, run_dir=tmp_path / name, progress=False, **given)
    plain, heavy = (tmp_path / name / "best/model.safetensors" for name in ("plain", "heavy"))
    assert plain.read_bytes() == heavy.read_bytes()


def test_weights_of_rows_that_are_not_sorted_go_to_their_rows():
    """Without bucketing, the rows of a batch are sorted by length, and so are the losses."""
    draw = np.random.default_rng(1)
    labels = np.array(["down", "up"] * 60)
    weights = np.where(draw.random(120) < 0.5, 1.0, 0.001)
    # Rows of little weight say the contrary.
    signs = np.where((labels == "up") == (weights == 1), 1.0, -1.0)
    series = [draw.normal(size=(int(draw.integers(3, 30)), 1)) * 0.3 + sign for sign in signs]
    keys = {"batching.bucketing": False}
    fitted = classifier(keys).fit(series, labels, sample_weight=weights)
    expected = np.where(signs > 0, "up", "down")
    assert (fitted.predict(series) == expected).mean() > 0.95


@pytest.mark.parametrize("size", [60, 26])  # of 26 rows, 7 are of the rare class
def test_a_weight_of_2_is_the_row_twice_in_calibration(size):
    generator = torch.Generator().manual_seed(0)
    logits = [2 * torch.randn(size, 2, generator=generator) for _ in range(2)]
    labels = (torch.arange(size) % (5 if size == 60 else 4) == 0).long()
    weights = torch.randint(0, 3, (size,), generator=generator) + (size == 26)
    rows = torch.arange(size).repeat_interleave(weights)
    found = fit_calibration(logits, labels, rare=1, weights=weights.float())
    expected = fit_calibration([own[rows] for own in logits], labels[rows], rare=1)
    assert found.temperature == pytest.approx(expected.temperature)
    assert found.branch_weights == expected.branch_weights
    assert found.thresholds == pytest.approx(expected.thresholds)
    assert found.thresholds
    one = fit_temperature(logits[0], labels, weights.double())
    assert one == pytest.approx(fit_temperature(logits[0][rows], labels[rows]))


@pytest.mark.parametrize("size", [60, 16])  # of 16 rows, less than 10 have each label
def test_weights_reach_the_thresholds_of_several_labels(size):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(size, 3, generator=generator)
    labels = (torch.rand(size, 3, generator=generator) < 0.5).to(torch.int8)
    weights = torch.randint(0, 3, (size,), generator=generator)
    rows = torch.arange(size).repeat_interleave(weights)
    found = fit_calibration([logits], labels, weights=weights.float())
    expected = fit_calibration([logits[rows]], labels[rows])
    assert found.thresholds == pytest.approx(expected.thresholds)
    assert found.temperature == pytest.approx(expected.temperature)


TEXTS = ["rise climb", "fall sink", "grow rise up", "drop down fall", "lift up", "slip down"] * 8
LABELS = ["up", "down"] * 24


def refitted(folder: Path, count: int, weight: float, **training: Any) -> list[float]:
    """Train and refit; return probabilities. Rows after the first 48 have wrong labels, weight 0.

    Validation has no weights.
    """
    labels = [*LABELS, *reversed(LABELS)][:count]
    train = {"text": (TEXTS * 2)[:count], "label": labels}
    held_out = {"text": TEXTS[:9], "label": LABELS[1:10]}
    config = {
        "data": {"train": "t", "sequence": "text", "label": "label"},
        "model": {"embedding_dim": 4, "hidden_size": 4, "dropout": 0.0, "embedding_dropout": 0.0},
        "training": {"max_epochs": 3, "patience": None, "lr": 0.05, "refit": True, **training},
    }
    weights = np.where(np.arange(count) < len(LABELS), weight, 0.0)
    run = seqtrain.fit(
        config,
        train=train,
        validation=held_out,
        sample_weight=weights,
        run_dir=folder / f"{count} {weight}",
        progress=False,
    )
    return [each.probabilities["up"] for each in seqtrain.load(run).predict(TEXTS[:6])]


@pytest.mark.parametrize("class_weights", [None, {"up": 3.0, "down": 1.0}])
def test_a_refit_weighs_validation_as_the_rows_of_train(tmp_path, class_weights):
    expected = refitted(tmp_path, 48, 1.0, class_weights=class_weights)
    for count, weight in ((48, 64.0), (96, 1.0), (96, 64.0)):
        found = refitted(tmp_path, count, weight, class_weights=class_weights)
        assert found == pytest.approx(expected, abs=1e-5)
