"""The phases of a run: pretraining, training, calibration, refit, and scoring of test.

- Pretraining teaches the encoder without labels.
- Training learns from train; validation selects its best epoch.
- Calibration fits temperature, thresholds and branch weights of the best model on validation.
- A refit trains a new model on train and validation together.
- At last, test is scored.

Each phase is a generator of events that changes the `TrainingSession`. A run that resumes starts at
the phase of its progress.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqtrain.config.schema import Config
from seqtrain.evaluation.calibration import Calibration, adjustment, rare_thresholds
from seqtrain.evaluation.calibration import calibrate as fit_calibration
from seqtrain.evaluation.scores import Scores
from seqtrain.evaluation.scoring import score, score_branches
from seqtrain.model.decoder import OBJECTIVES, PretrainingModel
from seqtrain.model.network import ClassifierNetwork
from seqtrain.sequences.dataset import PreparedData, held_out_fractions
from seqtrain.sequences.labels import class_counts, rare_class
from seqtrain.sequences.store import Array, SequenceStore, joined_stores
from seqtrain.training.distributed import Processes
from seqtrain.training.events import (
    CalibrationEnd,
    PhaseEnd,
    TrainingEvent,
)
from seqtrain.training.initial_weights import initial_network
from seqtrain.training.learner import Learner
from seqtrain.training.loop import train
from seqtrain.training.objectives import Classification, shared_logits
from seqtrain.training.token_prediction import TokenPrediction

CLEAR_MARGIN = 2.0
"""Number of standard errors by which a model should beat the majority-class baseline."""


class TrainingSession:
    """A run in progress: the network, its calibration, and the learner of the current phase.

    Args:
        config: The config.
        data: Encoded splits and preprocessing.
        device: Device that computes.
        processes: Processes that train together.
        network: Classifier with the weights of a checkpoint, or None for initial weights.
        calibration: Calibration of the checkpoint, or None for the default.
        pretrains: True to start with pretraining if the config has it. False to skip it.

    Attributes:
        network: The classifier.
        calibration: Temperature, thresholds and branch weights of the classifier.
        learner: Learner of the current phase: pretraining, training or refit.
        classifier_learner: Learner of training, or of the refit once it has started. It differs
            from `learner` only in pretraining.
        must_settle: Function that is called with the number of each update. If it returns True, the
            learner can be saved after this update. If it returns False, the next update may have
            been queued already. See `train`.
        validation_scores: Scores on validation of the calibrated model of the best epoch, also
            after a refit. None before calibration, without validation, and if the run resumed in
            its refit.
        test_scores: Scores on test, or None before the last phase and without test.
        test_logits: Logits of each branch for test, (B, C); empty if `test_scores` is None.
        branch_scores: Maps the name of each branch to its scores on test; empty if there is only
            one branch, or `test_scores` is None.
    """

    def __init__(
        self,
        config: Config,
        data: PreparedData,
        device: torch.device,
        processes: Processes,
        network: ClassifierNetwork | None = None,
        calibration: Calibration | None = None,
        *,
        pretrains: bool = True,
    ) -> None:
        self.config, self.data, self.device, self.processes = config, data, device, processes
        network = network or initial_network(config, data, device, processes)
        self.network = network.to(device)
        # Without validation, nothing fits the branch weights.
        weights = None if "validation" in data.splits else network.default_branch_weights
        self.set_calibration(calibration or Calibration(branch_weights=weights))
        self.must_settle: Callable[[int], bool] = lambda update: True
        self.validation_scores: Scores | None = None
        self.test_scores: Scores | None = None
        self.test_logits: list[Tensor] = []
        self.branch_scores: dict[str, Scores] = {}
        self.sample_weights: Array | None = None
        splits = data.splits
        self.classifier_learner = self._classifier_learner(
            config, splits["train"], splits.get("validation")
        )
        pretraining = self._pretraining_learner() if pretrains else None
        self.learner = pretraining or self.classifier_learner

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the classes, in order."""
        return self.data.preprocessing.labels

    @property
    def thresholds(self) -> list[float]:
        """Threshold of each class, in the order of `labels`: 0.5 if calibration set none."""
        return self.calibration.class_thresholds(len(self.labels))

    @property
    def rare(self) -> int | None:
        """Index of the rare one of two classes of train, or None if no class is rare.

        A class can only be rare if there are two classes and the task isn't multi-label.
        """
        train = self.data.splits["train"].labels
        counts = class_counts(train, len(self.labels)).tolist()
        return rare_class(counts) if train.ndim == 1 else None

    def set_calibration(self, calibration: Calibration) -> None:
        """Set the calibration of the session and of its network."""
        self.calibration = calibration
        self.network.calibration = calibration.for_network()

    def restore(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Restore the training state that `Learner.capture` returned, and go to its phase.

        The network must already have the weights of the same checkpoint.

        Args:
            tensors: Tensors of the optimizer and the objective, by name.
            values: Attributes of the progress, by name.

        Raises:
            ValueError: If the state is invalid or doesn't fit this run.
        """
        phase = values.get("phase")
        if phase == "refit" and self.config.training.refit:
            self.classifier_learner = self._refit_learner(int(str(values.get("refit_epochs"))))
        if phase != "pretraining":
            self.learner = self.classifier_learner
        self.learner.restore(dict(tensors), dict(values))

    def copy_from_rank_zero(self) -> None:
        """Copy the weights, the optimizer and the progress of rank 0 to the other processes.

        Each process must call this.
        """
        tensors, values = self.learner.capture()
        received = self.processes.tensors_of_first(tensors)
        values = json.loads(self.processes.broadcast(json.dumps(values).encode()))
        self.load_weights(self.network.state_dict())
        if not self.processes.is_first:
            self.restore(received, values)

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Load the weights that rank 0 passes into the network of each process.

        Each process must call this.

        Args:
            weights: State of a network, by name. In other processes than rank 0 it is ignored.
        """
        self.network.load_state_dict(self.processes.tensors_of_first(weights))

    def set_sample_weights(self, weights: Array) -> None:
        """Multiply the loss of each example in training and in the refit by a weight.

        In the refit, rows of validation files have the mean weight of train.

        Args:
            weights: Weight of each row of a table in memory, (N,). Row i is the sequence whose
                `lines` entry in the store is i + 1.
        """
        self.sample_weights = weights
        self._set_weights_of_rows(self.classifier_learner)

    def _set_weights_of_rows(self, learner: Learner) -> None:
        """Set the weights of the rows that a learner trains on, if there are sample weights."""
        objective, weights = learner.objective, self.sample_weights
        if weights is None or not isinstance(objective, Classification):
            return
        own = weights[self.data.splits["train"].lines - 1]
        if objective.phase == "refit":
            validation = self.data.splits["validation"]
            lines = validation.lines[_has_known_labels(validation)]
            is_held_out = "validation" in held_out_fractions(self.config.data)
            added = weights[lines - 1] if is_held_out else np.full(len(lines), own.mean())
            own = np.concatenate([own, added])
        objective.set_sample_weights(own)

    def start_refit(self) -> None:
        """Begin the refit: a new network with initial weights, on train and validation together.

        The calibration is fitted to `Objective.kept_logits`. If these are empty, the calibration of
        the session is kept.
        """
        before = self.learner.progress
        self.network = initial_network(
            self.config, self.data, self.device, self.processes, self._refit_rows()
        )
        kept = [*self.learner.objective.kept_logits]
        self.set_calibration(self.fitted_calibration(kept) if kept else self.calibration)
        self.load_weights(self.network.state_dict())
        self.learner = self.classifier_learner = self._refit_learner(before.refit_epochs)
        for name in ("best_epoch", "best_value", "best_error", "refit_epochs"):
            setattr(self.learner.progress, name, getattr(before, name))

    def match_learned_rows(self) -> None:
        """Choose the threshold of a rare class on the rows that the current learner trains on.

        After a refit, these are train and validation. The calibration of the session is replaced.
        Without a rare class, or without thresholds, do nothing.

        The model of a refit needs this, because the mean probabilities of two models differ. With
        the threshold of the earlier model, it would predict the rare class too often or too seldom.
        """
        if self.rare is None or not self.calibration.thresholds:
            return
        rows = self.learner.objective.store
        logits = self.network.combine(self.branch_logits(rows))
        found = rare_thresholds(logits, torch.from_numpy(rows.labels), self.rare)
        self.set_calibration(self.calibration.model_copy(update={"thresholds": found}))

    def branch_logits(self, store: SequenceStore) -> list[Tensor]:
        """Return the logits of each branch for a store, (B, C) each, on the CPU.

        All processes must call this together. Each computes a share, and gets the whole result.
        """
        return shared_logits(self.network, store, self.device, self.processes)

    def fitted_calibration(self, branches: list[Tensor]) -> Calibration:
        """Return the calibration of a model, fitted to its logits for validation.

        The logit adjustment is fitted on train. With ``training.thresholds: none``, the result has
        no thresholds. The calibration of the session doesn't change.

        Args:
            branches: Logits of each branch for validation, (B, C). With an empty list, only the
                logit adjustment is fitted, and the branches get their default weights.
        """
        settings, splits = self.config.training, self.data.splits
        train = splits["train"].labels
        shift = adjustment(settings.logit_adjustment, torch.from_numpy(train), len(self.labels))
        weights = self.network.default_branch_weights
        before = self.calibration.model_copy(update={"shift": shift, "branch_weights": weights})
        if not branches:
            return before
        has_thresholds = settings.thresholds != "none"
        found = fit_calibration(
            branches,
            torch.from_numpy(splits["validation"].labels),
            before,
            one_threshold=settings.thresholds == "one",
            rare=self.rare if has_thresholds else None,
        )
        return found if has_thresholds else found.model_copy(update={"thresholds": []})

    def best_value(self) -> float:
        """Return the monitored value of the best epoch, or NaN before the first epoch ends.

        A monitored loss is returned as it is, not negated. In pretraining the result is NaN.
        """
        value = self.learner.progress.best_value
        if value is None:
            return math.nan
        return -value if self.config.training.monitor == "loss" else value

    def nothing_left(self) -> str | None:
        """Return the reason why no epoch is left to train, or None if an epoch is left.

        Epochs of pretraining, training and a refit are considered.
        """
        learner, progress = self.learner, self.learner.progress
        is_over = progress.epoch >= learner.last_epoch or learner.stopped_early
        has_refit = progress.phase == "training" and self.config.training.refit
        if progress.phase == "pretraining" or has_refit or not is_over:
            return None
        if progress.phase == "refit":
            done = f"the {progress.epoch} epochs of training.refit are done"
            return f"{done}, and none can follow; for another model start a new run"
        done = f"training ended after epoch {progress.epoch}, the best is {progress.best_epoch}"
        return f"{done}; to continue, raise training.max_epochs or training.patience"

    def advice(self) -> str | None:
        """Return advice to the user on how to get a better model, or None if there is none.

        There is advice in two cases:

        - The best epoch isn't clearly better than the majority-class baseline.
        - Training ran all of its epochs, and the last one was the best.

        Without validation, or with a perfect score, return None.
        """
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
        if 1 < progress.epoch == progress.best_epoch == stopping.epochs:
            return (
                f"the last epoch was the best; more than {stopping.epochs} may help: "
                "training.max_epochs"
            )
        return None

    def _pretraining_learner(self) -> Learner | None:
        """Return the learner of pretraining, or None if the config has no pretraining."""
        settings, rows = self.config.pretraining, self.data.unlabelled
        if rows is None or settings.objective is None:
            return None
        model = OBJECTIVES[settings.objective](self.network, settings.dropout)
        model.initialize(self.config.seed)
        model.to(self.device)
        validation = self.data.splits.get("validation")
        return Learner(
            TokenPrediction(model, rows, validation, self.config, self.device, self.processes)
        )

    def _refit_learner(self, epochs: int) -> Learner:
        """Return a learner of the refit that ends after `epochs` epochs.

        The schedule of the learning rate is as long as in training. A refit with fewer epochs ends
        before the schedule.
        """
        # With more rows, max_epochs: auto would mean another number of epochs.
        most = self.classifier_learner.stopping.epochs
        config = self.config.with_keys(training={"max_epochs": most})
        learner = self._classifier_learner(config, self._refit_rows(), None, epochs)
        self._set_weights_of_rows(learner)
        return learner

    def _classifier_learner(
        self,
        config: Config,
        rows: SequenceStore,
        validation: SequenceStore | None,
        refit_epochs: int | None = None,
    ) -> Learner:
        """Return a learner of the classifier.

        Args:
            config: The config.
            rows: Sequences to learn from.
            validation: Validation split, or None.
            refit_epochs: Number of epochs of a refit, or None for training.
        """
        return Learner(
            Classification(
                self.network,
                rows,
                validation,
                self.labels,
                config,
                self.device,
                self.processes,
                refit=refit_epochs is not None,
            ),
            refit_epochs,
        )

    def _refit_rows(self) -> SequenceStore:
        """Return train and validation together, without rows that have a label that train lacks."""
        rows = joined_stores([self.data.splits[name] for name in ("train", "validation")])
        return rows.selection(np.flatnonzero(_has_known_labels(rows)))


def _has_known_labels(rows: SequenceStore) -> Array:
    """Return True for each row whose labels are all known to train, (N,)."""
    known: Array = rows.labels.reshape(len(rows), -1).min(axis=1) >= 0
    return known


def pretrain(session: TrainingSession) -> Iterator[TrainingEvent]:
    """Pretrain the encoder, then make the learner of the classifier the current one.

    Without pretraining, do nothing.
    """
    model = session.learner.objective.model
    if not isinstance(model, PretrainingModel):
        return
    yield from train(session.learner, session.must_settle)
    session.learner = session.classifier_learner
    yield PhaseEnd(model)


def train_classifier(session: TrainingSession) -> Iterator[TrainingEvent]:
    """Train the classifier until its last epoch, or until training stops early.

    Training begins at the progress of the session's learner, which a resumed run has restored.
    """
    yield from train(session.learner, session.must_settle)
    yield PhaseEnd()


def calibrate(session: TrainingSession) -> Iterator[TrainingEvent]:
    """Load the best weights, fit the calibration of the model, and score it on validation.

    With ``training.calibration: none``, only the logit adjustment is fitted. Without validation,
    only the logit adjustment is fitted, and nothing is scored. If nothing was fitted, yield no
    event.
    """
    if not session.learner.progress.is_best:
        session.load_weights(session.learner.best_weights or session.network.state_dict())
    validation = session.data.splits.get("validation")
    logits = [] if validation is None else session.branch_logits(validation)
    fitted_to = [] if session.config.training.calibration == "none" else logits
    found = session.fitted_calibration(fitted_to)
    if fitted_to or found.shift:
        session.set_calibration(found)
        yield CalibrationEnd()
    if validation is not None:
        combined, facts = session.network.combine(logits), (validation.labels, validation.lengths)
        session.validation_scores = score(combined, *facts, session.labels, session.thresholds)


def refit(session: TrainingSession) -> Iterator[TrainingEvent]:
    """Train a new model on train and validation together. Without training.refit, do nothing.

    At the end, choose the threshold of a rare class for the new model.
    """
    if not session.config.training.refit:
        return
    if session.learner.progress.phase != "refit":
        session.start_refit()
    yield from train(session.learner, session.must_settle)
    session.match_learned_rows()
    yield PhaseEnd()


def score_test(session: TrainingSession) -> Iterator[TrainingEvent]:
    """Score the model and each of its branches on test, and set the results in the session.

    A single branch isn't scored separately. No event is yielded. Without test, do nothing.
    """
    test = session.data.splits.get("test")
    if test is not None:
        session.test_logits = session.branch_logits(test)
        _, session.test_scores, session.branch_scores = score_branches(
            session.network, session.test_logits, test, session.labels, session.thresholds
        )
    yield from ()


PHASES: dict[str, Callable[[TrainingSession], Iterator[TrainingEvent]]] = {
    "pretraining": pretrain,
    "training": train_classifier,
    "calibration": calibrate,
    "refit": refit,
    "test": score_test,
}
"""Maps the name of each phase to its function, in the order of a run."""


def train_session(session: TrainingSession, *, finish: bool = True) -> Iterator[TrainingEvent]:
    """Run all phases that are left, from the position of the learner on, and yield their events.

    Args:
        session: The run. It is changed, and is up to date at every event.
        finish: False to stop after training, without calibration, refit and scores of test. With
            False, a run that resumes in its refit does nothing.
    """
    names = list(PHASES)
    last = len(names) if finish else names.index("calibration")
    for name in names[names.index(session.learner.progress.phase) : last]:
        yield from PHASES[name](session)
