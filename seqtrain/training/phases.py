"""The phases of a run: pretraining, training, calibration, refit, and scoring of test.

Each phase is a generator of events that changes the `TrainingSession`. A run that resumes starts at
the phase of its progress.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import safetensors.torch
import torch
from torch import Tensor

from seqtrain.config.schema import Config
from seqtrain.data.dataset import PreparedData
from seqtrain.data.labels import class_counts, rare_class
from seqtrain.data.store import Array, SequenceStore, joined_stores
from seqtrain.evaluation.calibration import Calibration, adjustment
from seqtrain.evaluation.calibration import calibrate as fit_calibration
from seqtrain.evaluation.scores import Scores
from seqtrain.evaluation.scoring import score_branches
from seqtrain.model.classifier import ClassifierNetwork
from seqtrain.model.decoder import OBJECTIVES, PretrainingModel
from seqtrain.training.distributed import Processes
from seqtrain.training.events import (
    CalibrationEnd,
    PretrainingEnd,
    TrainingEnd,
    TrainingEvent,
)
from seqtrain.training.initial_weights import initial_network
from seqtrain.training.learner import Learner, train
from seqtrain.training.objectives import Classification, shared_logits
from seqtrain.training.token_prediction import TokenPrediction

CLEAR_MARGIN = 2.0
"""Standard errors by which a model should beat the majority-class baseline."""


@dataclass(frozen=True)
class TrainingContext:
    """What a run trains with. It doesn't change during the run."""

    config: Config
    data: PreparedData
    device: torch.device
    processes: Processes


class TrainingSession:
    """A run in progress: the network, its calibration, and the learner of the current phase.

    Args:
        context: Config, data, device and processes.
        network: The classifier, with initial weights or those of a checkpoint.
        calibration: How the network predicts.
        pretrains: False if pretraining is over. It is skipped as well if the config has none.

    Attributes:
        learner: Learner of the current phase.
        classifier_learner: Learner of training or of the refit. It is `learner` after pretraining.
        must_settle: See `train`. It is called with the number of each update.
        test_scores: Scores on test, or None before the last phase, or without the split.
        branch_scores: The same of each branch, by name; empty for a network of one branch.
    """

    def __init__(
        self,
        context: TrainingContext,
        network: ClassifierNetwork,
        calibration: Calibration | None = None,
        *,
        pretrains: bool = True,
    ) -> None:
        self.context = context
        self.config, self.data, self.processes = context.config, context.data, context.processes
        self.network = network.to(context.device)
        self.calibration = Calibration()
        self.set_calibration(calibration or self.calibration)
        self.must_settle: Callable[[int], bool] = lambda update: True
        self.test_scores: Scores | None = None
        self.branch_scores: dict[str, Scores] = {}
        self.classifier_learner = self._training_learner()
        pretraining = self._pretraining_learner() if pretrains else None
        self.learner = pretraining or self.classifier_learner

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the classes, in order."""
        return self.data.preprocessing.labels

    def set_calibration(self, calibration: Calibration) -> None:
        """Let the network predict with other numbers."""
        self.calibration = calibration
        self.network.calibration = calibration.of_logits()

    def restore(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Restore the training state that a learner captured.

        The network must have the weights of the same checkpoint.

        Raises:
            ValueError: If no learner of this run can have captured it.
        """
        phase = values.get("phase")
        if phase == "refit" and self.config.training.refit:
            self.classifier_learner = self._refit_learner(int(str(values.get("refit_epochs"))))
        if phase != "pretraining":
            self.learner = self.classifier_learner
        self.learner.restore(dict(tensors), dict(values))

    def copy_rank_zero(self) -> None:
        """Take over weights, optimizer and progress of rank 0."""
        if self.processes.size == 1:
            return
        tensors, values = self.learner.capture()
        received = self._tensors_of_rank_zero(tensors)
        values = json.loads(self.processes.broadcast(json.dumps(values).encode()))
        self.load_weights(self.network.state_dict())
        if not self.processes.is_first:
            self.restore(received, values)

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Load the weights that rank 0 has into the network of each process."""
        self.network.load_state_dict(self._tensors_of_rank_zero(weights))

    def load_best_weights(self) -> None:
        """Load the weights of the best epoch into the network of each process."""
        best = self.learner.best_weights
        self.load_weights(self.network.state_dict() if best is None else best)

    def weigh_examples(self, weights: Array) -> None:
        """Multiply the loss of each row of train by a weight, (N,)."""
        objective = self.classifier_learner.objective
        if isinstance(objective, Classification):
            objective.weigh(weights)

    def start_training(self) -> None:
        """Start training with the encoder that was pretrained."""
        self.learner = self.classifier_learner

    def start_refit(self) -> None:
        """Start again with initial weights, on train and validation together."""
        before = self.learner.progress
        self.network = initial_network(
            self.config, self.data, self.context.device, self.processes, self._refit_rows()
        )
        self.set_calibration(self.calibration)
        self.load_weights(self.network.state_dict())
        self.learner = self.classifier_learner = self._refit_learner(before.refit_epochs)
        for name in ("best_epoch", "best_value", "best_error", "refit_epochs"):
            setattr(self.learner.progress, name, getattr(before, name))

    def branch_logits(self, store: SequenceStore) -> list[Tensor]:
        """Return the logits of each branch, (B, C)."""
        return shared_logits(self.network, store, self.context.device, self.processes)

    def thresholds(self) -> list[float]:
        """Return the threshold of each class."""
        return self.calibration.thresholds or [0.5] * len(self.labels)

    def best_value(self) -> float:
        """Return the best monitored value, or NaN before the first."""
        value = self.learner.progress.best_value
        if value is None:
            return math.nan
        return -value if self.config.training.monitor == "loss" else value

    def nothing_left(self) -> str | None:
        """Return the reason why no epoch is left to train, or None if one is."""
        learner, progress = self.learner, self.learner.progress
        if progress.phase == "pretraining":
            return None
        if progress.phase == "refit":
            if progress.epoch < learner.last_epoch:
                return None
            done = f"the {progress.epoch} epochs of training.refit are done"
            return f"{done}, and none can follow; for another model start a new run"
        is_done = progress.epoch >= learner.stopping.epochs or learner.stopped_early
        if self.config.training.refit or not is_done:
            return None
        done = f"training ended after epoch {progress.epoch}, the best is {progress.best_epoch}"
        return f"{done}; to continue, raise training.max_epochs or training.patience"

    def advice(self) -> str | None:
        """Return advice on how to get a better model, or None."""
        learner, progress = self.learner, self.learner.progress
        stopping = learner.stopping
        if "validation" not in self.data.splits:
            return None
        if progress.best_value is not None and progress.best_value >= 1:
            return None
        monitor, baseline = self.config.training.monitor, max(0.0, stopping.baseline)
        # The baseline is known for accuracy only, but no metric of 0 beats it.
        if progress.best_value == 0.0 or not stopping.beats_baseline(progress, CLEAR_MARGIN):
            return (
                f"validation {monitor} {progress.best_value:.1%} is not clearly better than the "
                f"majority-class baseline ({baseline:.1%}). Check data.sequence and "
                "data.label (seqtrain data), or try another training.lr or more rows."
            )
        if learner.stopped_early and progress.loss_fell:
            return (
                f"training.patience ({stopping.patience} epochs) ended training while the "
                "validation loss still fell; more patience may help"
            )
        if 1 < progress.epoch == progress.best_epoch == stopping.epochs:
            return (
                f"the last epoch was the best; more than {stopping.epochs} may help: "
                "training.max_epochs"
            )
        return None

    def _pretraining_learner(self) -> Learner | None:
        settings, rows = self.config.pretraining, self.data.unlabelled
        if rows is None or settings.objective is None:
            return None
        model = OBJECTIVES[settings.objective](self.network, settings.dropout)
        model.initialize(self.config.seed)
        model.to(self.context.device)
        validation = self.data.splits.get("validation")
        return Learner(TokenPrediction(model, rows, validation, *self._settings()))

    def _training_learner(self) -> Learner:
        return Learner(
            Classification(
                self.network,
                self.data.splits["train"],
                self.data.splits.get("validation"),
                self.labels,
                *self._settings(),
            )
        )

    def _refit_learner(self, epochs: int) -> Learner:
        # With more rows, max_epochs: auto would give other epochs, and so another schedule.
        most = self.classifier_learner.stopping.epochs
        config = self.config.with_keys(training={"max_epochs": most})
        settings = config, self.context.device, self.processes
        rows = self._refit_rows()
        refit = Classification(self.network, rows, None, self.labels, *settings, refit=True)
        return Learner(refit, epochs)

    def _settings(self) -> tuple[Config, torch.device, Processes]:
        return self.config, self.context.device, self.processes

    def _refit_rows(self) -> SequenceStore:
        """Return train and validation together, without rows of labels that train lacks."""
        rows = joined_stores([self.data.splits[name] for name in ("train", "validation")])
        known = rows.labels.reshape(len(rows), -1).min(axis=1) >= 0
        return rows.selection(np.flatnonzero(known))

    def _tensors_of_rank_zero(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        if self.processes.size == 1:
            return tensors
        content = b""
        if self.processes.is_first:
            own = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
            content = safetensors.torch.save(own)
        return safetensors.torch.load(self.processes.broadcast(content))


def pretrain(session: TrainingSession) -> Iterator[TrainingEvent]:
    """Pretrain the encoder by the objective that the config names."""
    model = session.learner.objective.model
    if not isinstance(model, PretrainingModel):
        return
    yield from train(session.learner, session.must_settle)
    session.start_training()
    yield PretrainingEnd(model)


def train_classifier(session: TrainingSession) -> Iterator[TrainingEvent]:
    """Train the classifier, monitored on validation."""
    yield from train(session.learner, session.must_settle)
    yield TrainingEnd()


def calibrate(session: TrainingSession) -> Iterator[TrainingEvent]:
    """Choose temperature, thresholds and branch weights of the best model on validation."""
    settings, splits = session.config.training, session.data.splits
    if not session.learner.progress.is_best:
        session.load_best_weights()
    labels = torch.from_numpy(splits["train"].labels)
    shift = adjustment(settings.logit_adjustment, labels, len(session.labels))
    before = session.calibration.model_copy(
        update={"shift": shift, "branch_weights": session.network.default_branch_weights}
    )
    found, validation = before, splits.get("validation")
    if validation is not None and settings.calibration != "none":
        has_thresholds = settings.thresholds != "none"
        counts = class_counts(splits["train"].labels, len(session.labels))
        found = fit_calibration(
            session.branch_logits(validation),
            torch.from_numpy(validation.labels),
            before,
            one_threshold=settings.thresholds == "one",
            rare=rare_class(counts.tolist()) if has_thresholds else None,
        )
        if not has_thresholds:
            found = found.model_copy(update={"thresholds": []})
    if found is not before or shift:
        session.set_calibration(found)
        yield CalibrationEnd()


def refit(session: TrainingSession) -> Iterator[TrainingEvent]:
    """Train a new model on train and validation together, if ``training.refit`` is set."""
    if not session.config.training.refit:
        return
    if session.learner.progress.phase != "refit":
        session.start_refit()
    yield from train(session.learner, session.must_settle)
    yield TrainingEnd()


def score_test(session: TrainingSession) -> Iterator[TrainingEvent]:
    """Score the best model on test."""
    test = session.data.splits.get("test")
    if test is not None:
        branches = session.branch_logits(test)
        labels, thresholds = session.labels, session.thresholds()
        _, session.test_scores, session.branch_scores = score_branches(
            session.network, branches, test, labels, thresholds
        )
    yield from ()


PHASES: dict[str, Callable[[TrainingSession], Iterator[TrainingEvent]]] = {
    "pretraining": pretrain,
    "training": train_classifier,
    "calibration": calibrate,
    "refit": refit,
    "test": score_test,
}
"""The phases of a run, in order."""


def train_session(session: TrainingSession, *, finish: bool = True) -> Iterator[TrainingEvent]:
    """Yield the events of all phases that are left, from the learner's position on.

    Args:
        session: The run. It is up to date after every event.
        finish: If False, stop where the best epoch is known: without calibration, refit and scores
            of test.
    """
    names = list(PHASES)
    last = len(names) if finish else names.index("calibration")
    for name in names[names.index(session.learner.progress.phase) : last]:
        yield from PHASES[name](session)
