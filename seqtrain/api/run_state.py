"""What a run is while it goes on: model and trainers, begun anew or put back from a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from seqtrain.api.environment import check_held_out, environment
from seqtrain.api.origin import Origin, take_weights
from seqtrain.api.resume_point import (
    ResumePoint,
    check_data_unchanged,
    check_model_unchanged,
    inexact,
)
from seqtrain.config.schema import Config
from seqtrain.data.dataset import PreparedData
from seqtrain.data.store import joined_stores
from seqtrain.errors import CheckpointError
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.decoder import OBJECTIVES
from seqtrain.model.initialization import take_vectors
from seqtrain.processes.group import ALONE, Group
from seqtrain.runs.checkpoint import STATE
from seqtrain.runs.model_folder import Model, new_network
from seqtrain.runs.run_directory import RunDirectory
from seqtrain.training.objectives import Classification, Refit
from seqtrain.training.token_prediction import TokenPrediction
from seqtrain.training.trainer import Trainer


@dataclass
class RunState:
    """A run under way.

    Attributes:
        config: resolved.
        data: prepared.
        device: where to compute.
        model: what is trained, with its preprocessing.
        trainer: of the classifier.
        pretrainer: what trains its encoder before; None where nothing does, or it is done.
        metrics_length: bytes of metrics.jsonl that belong to it.
        group: the processes that train together.
        last_is_whole: whether the folder last/ holds a sound checkpoint (or there is none yet).
        warnings: what a user should know about going on, a line each.
        lineage: the models that it goes back to, as environment.json has them.
        origin: what was kept of the nearest of them; None where there is none, or it was said.
    """

    config: Config
    data: PreparedData
    device: torch.device
    model: Model
    trainer: Trainer
    pretrainer: Trainer | None = None
    metrics_length: int = 0
    group: Group = ALONE
    last_is_whole: bool = True
    warnings: list[str] = field(default_factory=list)
    lineage: list[dict[str, str]] = field(default_factory=list)
    origin: str | None = None

    @property
    def learner(self) -> Trainer:
        """What learns now."""
        return self.pretrainer or self.trainer

    def begin_refit(self) -> None:
        """Begin anew on train and validation together, as long as it helped."""
        before = self.trainer.progress
        network = _initialized(self.config, self.data)
        self.model = Model(network.to(self.device), self.data.preprocessing)
        self.trainer = _refitter(self, before.refit_epochs)
        progress = self.trainer.progress
        for name in ("best_epoch", "best_value", "best_error", "refit_epochs"):
            setattr(progress, name, getattr(before, name))

    def follow_first(self) -> None:
        """Take over where the first process stands: weights, optimizer, counters.

        Raises:
            RunError: a process is lost.
        """
        group = self.group
        if group.size == 1:
            return
        tensors, values = self.learner.capture()
        forms = {name: [str(t.dtype), list(t.shape)] for name, t in tensors.items()}
        values, forms = group.tell([values, forms])[0]
        if not group.is_first:
            tensors = {
                name: torch.empty(
                    shape, dtype=getattr(torch, kind.removeprefix("torch.")), device="cpu"
                )
                for name, (kind, shape) in forms.items()
            }
            if not values["pretraining"]:
                self.pretrainer = None
            if values["refit"]:
                self.trainer = _refitter(self, values["refit_epochs"])
        group.send_from_first([*self.model.network.state_dict().values(), *tensors.values()])
        if not group.is_first:
            self.learner.restore(tensors, values)

    @property
    def nothing_left(self) -> str | None:
        """Why nothing is left to train; None where something is."""
        settings, progress = self.config.training, self.trainer.progress
        budget = self.trainer.budget
        if settings.refit and (not progress.refit or progress.epoch < self.trainer.last_epoch):
            return None
        if progress.refit:
            done = f"the {progress.epoch} epochs of training.refit are done"
            return f"{done}, and none can follow; for another model begin a new run"
        if progress.epoch >= budget.epochs:
            return f"all {budget.epochs} epochs of training.max_epochs are done; raise it to go on"
        if self.trainer.out_of_patience:
            since = f"no epoch was better since epoch {progress.best_epoch}"
            return f"training.patience is {budget.patience}, and {since}; raise it to go on"
        return None


def begin(
    config: Config,
    data: PreparedData,
    device: torch.device,
    origin: Origin | None = None,
    group: Group = ALONE,
) -> RunState:
    """Draw the initial weights of a run, from its seed; or take those of an old model.

    Args:
        config: resolved.
        data: prepared; its preprocessing grew from the old model's, if there is one.
        device: where to compute.
        origin: the old model, or None.
        group: the processes that train together.
    """
    model = Model(_initialized(config, data), data.preprocessing)
    kept = None if origin is None else take_weights(origin.model, model, data.vectors)
    state = _state(config, data, device, model, group, pretraining=data.unlabelled is not None)
    if origin is not None:
        state.lineage, state.origin = origin.lineage, kept
    return state


def resume(
    config: Config,
    data: PreparedData,
    device: torch.device,
    run: RunDirectory,
    point: ResumePoint,
    group: Group = ALONE,
) -> RunState:
    """Put back weights, optimizer, generators and position of a run.

    Args:
        config: resolved; the run's own, but for what may change.
        data: prepared.
        device: where to compute.
        run: locked.
        point: what it goes on from.
        group: the processes that train together.

    Raises:
        CheckpointError: it doesn't fit, or the data changed since.
    """
    checkpoint = point.checkpoint
    check_data_unchanged(config, data.digests, point.recorded, run)
    check_held_out(config, data, point.recorded, run.path)
    check_model_unchanged(checkpoint.model, config, data.preprocessing, point.folder)
    pretraining = checkpoint.pretraining and data.unlabelled is not None
    state = _state(config, data, device, checkpoint.model, group, pretraining=pretraining)
    if config.training.refit and checkpoint.progress.get("refit") is True:
        state.trainer = _refitter(state, int(checkpoint.progress.get("refit_epochs") or 0))
    try:
        state.learner.restore(checkpoint.tensors, checkpoint.progress)
    except ValueError as error:
        raise CheckpointError(f"{point.folder / STATE}: not a training state ({error})") from None
    state.metrics_length = checkpoint.metrics_length
    state.last_is_whole = point.folder == run.last
    state.warnings = point.warnings + inexact(
        point.recorded, environment(data, device, group.place)
    )
    return state


def _initialized(config: Config, data: PreparedData) -> SequenceClassifier:
    """Return a network with initial weights: drawn, and of a file of word vectors."""
    network = new_network(config.model, data.preprocessing)
    network.initialize(config.seed)
    if data.vectors is not None and isinstance(network.embedding, torch.nn.Embedding):
        take_vectors(network.embedding, data.vectors)
    return network


def _state(
    config: Config,
    data: PreparedData,
    device: torch.device,
    model: Model,
    group: Group,
    *,
    pretraining: bool,
) -> RunState:
    """Build the trainers of a model."""
    network, splits = model.network.to(device), data.splits
    validation, names = splits.get("validation"), model.preprocessing.labels
    objective = Classification(network, splits["train"], validation, names, config, device, group)
    state = RunState(config, data, device, model, Trainer(objective), group=group)
    if pretraining:
        state.pretrainer = _pretrainer(network, data, config, device, group)
    return state


def _refitter(state: RunState, epochs: int) -> Trainer:
    """Return what trains on train and validation together."""
    together = joined_stores([state.data.splits[name] for name in ("train", "validation")])
    known = np.flatnonzero(together.labels >= 0)
    if len(known) < len(together):
        together = together.selection(known)
    model, names = state.model, state.model.preprocessing.labels
    epochs_before = {"max_epochs": state.trainer.budget.epochs}  # auto would count anew
    training = state.config.training.model_copy(update=epochs_before)
    config = state.config.model_copy(update={"training": training})
    refit = Refit(model.network, together, names, config, state.device, state.group)
    return Trainer(refit, epochs)


def _pretrainer(
    classifier: SequenceClassifier,
    data: PreparedData,
    config: Config,
    device: torch.device,
    group: Group,
) -> Trainer:
    """Return what trains the classifier's own embedding and encoder beforehand."""
    settings = config.pretraining
    assert data.unlabelled is not None, "read where the config has an objective"
    assert settings.objective is not None
    model = OBJECTIVES[settings.objective](classifier, settings.dropout)
    model.initialize(config.seed)
    model.to(device)
    validation = data.splits.get("validation")
    return Trainer(TokenPrediction(model, data.unlabelled, validation, config, device, group))
