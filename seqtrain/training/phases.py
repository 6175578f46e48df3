"""The phases of a run: pretraining, training, calibration, refit, and scoring of test.

- Pretraining teaches the encoder without labels.
- Training learns from train; validation selects its best epoch.
- Calibration fits temperature, thresholds and branch weights of the best model on validation.
- A refit trains a new model on train and validation together.
- At last, test is scored.

Each phase is a function of the trainer and an iterator of events. A run that resumes starts at the
phase of its progress.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from seqtrain.evaluation.calibration import (
    Calibration,
    adjustment,
    fit_calibration,
    rare_thresholds,
)
from seqtrain.evaluation.scoring import score, score_branches
from seqtrain.model.decoder import PretrainingModel
from seqtrain.model.network import combined as combined_logits
from seqtrain.training.advice import traded_accuracy
from seqtrain.training.events import CalibrationEnd, PhaseEnd, TrainingEvent
from seqtrain.training.loop import train_epochs
from seqtrain.training.scoring import shared_logits
from seqtrain.training.trainer import Trainer


def run_phases(trainer: Trainer, *, finish: bool = True) -> Iterator[TrainingEvent]:
    """Run all phases that are left, from the trainer's position on, and yield their events.

    Args:
        trainer: The run. It is changed, and is up to date at every event.
        finish: False to stop after training, without calibration, refit and scores of test. With
            False, a run that resumes in its refit does nothing.
    """
    names = list(PHASES)
    last = len(names) if finish else names.index("calibration")
    for name in names[names.index(trainer.progress.phase) : last]:
        yield from PHASES[name](trainer)


def pretrain(trainer: Trainer) -> Iterator[TrainingEvent]:
    """Pretrain the encoder, then begin training."""
    yield from train_epochs(trainer)
    model = trainer.setup.model
    assert isinstance(model, PretrainingModel)
    trainer.begin("training")
    yield PhaseEnd(model)


def train(trainer: Trainer) -> Iterator[TrainingEvent]:
    """Train the classifier until its last epoch, or until training stops early."""
    yield from train_epochs(trainer)
    yield PhaseEnd()


def calibrate(trainer: Trainer) -> Iterator[TrainingEvent]:
    """Load the best weights, fit the calibration of the model, and score it on validation.

    With ``training.calibration: none``, only the logit adjustment is fitted. Without validation,
    only the logit adjustment is fitted, and nothing is scored. If nothing was fitted or scored,
    yield no event.
    """
    if not trainer.holds_model_to_keep:
        trainer.load_best()
    validation = trainer.data.splits.get("validation")
    if validation is None:
        logits = []
    else:
        logits = shared_logits(trainer, validation)
    if trainer.config.training.calibration == "none":
        fitted_to = []
    else:
        fitted_to = logits
    found = fitted_calibration(trainer, fitted_to)
    is_fitted = bool(fitted_to or found.shift)
    if is_fitted:
        trainer.set_calibration(found)
    if validation is not None:
        combined = trainer.network.combine(logits)
        known = validation.labels, validation.lengths, trainer.labels
        trainer.result.validation = score(combined, *known, trainer.thresholds)
        if not trainer.result.validation.multi_label:
            before = score(combined_logits(logits, trainer.calibration.branch_weights), *known)
            trainer.result.notes += traded_accuracy(before, trainer.result.validation)
    if is_fitted or validation is not None:
        yield CalibrationEnd()


def refit(trainer: Trainer) -> Iterator[TrainingEvent]:
    """Train a new model on train and validation together. Without training.refit, do nothing.

    At the end, choose the threshold of a rare class for the new model.
    """
    if not trainer.config.training.refit:
        return
    if trainer.setup.selects_epoch:  # else the run resumed in its refit
        kept = list(trainer.kept_logits)
        trainer.begin_refit()
        if kept:
            trainer.set_calibration(fitted_calibration(trainer, kept))
    yield from train_epochs(trainer)
    match_learned_rows(trainer)
    yield PhaseEnd()


def score_test(trainer: Trainer) -> Iterator[TrainingEvent]:
    """Score the model and each of its branches on test, and set the results in the trainer.

    A single branch isn't scored separately. No event is yielded. Without test, do nothing.
    """
    test = trainer.data.splits.get("test")
    if test is not None:
        logits = shared_logits(trainer, test)
        _, trainer.result.test, trainer.result.branches = score_branches(
            trainer.network, logits, test, trainer.labels, trainer.thresholds
        )
    yield from ()


PHASES: dict[str, Callable[[Trainer], Iterator[TrainingEvent]]] = {
    "pretraining": pretrain,
    "training": train,
    "calibration": calibrate,
    "refit": refit,
    "test": score_test,
}
"""Maps the name of each phase to its function, in the order of a run."""


def fitted_calibration(trainer: Trainer, branches: list[Tensor]) -> Calibration:
    """Return the calibration of a model, fitted to its logits for validation.

    The logit adjustment is fitted on train. With ``training.thresholds: none``, the result has no
    thresholds. The calibration of the trainer doesn't change.

    Args:
        trainer: The trainer.
        branches: Logits of each branch for validation, (B, C). With an empty list, only the logit
            adjustment is fitted, and the branches get their default weights.
    """
    settings = trainer.config.training
    is_single = trainer.data.splits["train"].labels.ndim == 1
    strength = settings.logit_adjustment if is_single else 0.0
    before = trainer.calibration.model_copy(
        update={
            "shift": adjustment(strength, trainer.weights.class_counts),
            "branch_weights": trainer.network.default_branch_weights,
        }
    )
    if not branches:
        return before
    has_thresholds = settings.thresholds != "none"
    weights = trainer.weights.of_rows["validation"]
    found = fit_calibration(
        branches,
        torch.from_numpy(trainer.data.splits["validation"].labels),
        before,
        one_threshold=settings.thresholds == "one",
        rare=trainer.weights.rare if has_thresholds else None,
        weights=None if weights is None else torch.from_numpy(weights),
    )
    if has_thresholds:
        return found
    return found.model_copy(update={"thresholds": []})


def match_learned_rows(trainer: Trainer) -> None:
    """Choose the threshold of a rare class on the rows that the model of a refit learned.

    The mean probabilities of two models differ. With the threshold of the earlier model, the new
    one would predict the rare class too often or too seldom. Without a rare class, or without
    thresholds, do nothing.
    """
    if trainer.weights.rare is None or not trainer.calibration.thresholds:
        return
    rows = trainer.setup.rows
    logits = trainer.network.combine(shared_logits(trainer, rows))
    found = rare_thresholds(
        logits, torch.from_numpy(rows.labels), trainer.weights.rare, trainer.setup.weights
    )
    trainer.set_calibration(trainer.calibration.model_copy(update={"thresholds": found}))
