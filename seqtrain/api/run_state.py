"""What a run is while it goes on: the model and its trainers, new or put back from a checkpoint."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import safetensors.torch
import torch
from torch import Tensor

from seqtrain.api.environment import check_held_out
from seqtrain.api.origin import Origin, take_weights
from seqtrain.api.start import ResumePoint, check_data_unchanged, check_model_unchanged
from seqtrain.config.schema import Config
from seqtrain.data.dataset import PreparedData
from seqtrain.data.store import joined_stores
from seqtrain.errors import CheckpointError
from seqtrain.model.decoder import OBJECTIVES
from seqtrain.model.initialization import take_vectors
from seqtrain.runs.checkpoint import STATE
from seqtrain.runs.model_folder import Model, new_network
from seqtrain.runs.run_directory import RunDirectory
from seqtrain.training.distributed import ALONE, Processes
from seqtrain.training.objectives import Classification
from seqtrain.training.token_prediction import TokenPrediction
from seqtrain.training.trainer import Trainer

OF_MODEL = "model."
"""Before the name of a weight that the first process sends to the others."""


@dataclass
class RunState:
    """A run under way.

    Attributes:
        config: resolved.
        data: prepared.
        device: where to compute.
        processes: that train together.
        model: what is trained, with its preprocessing.
        trainer: of the classifier.
        pretrainer: what trains its encoder before; None where nothing does, or it is done.
    """

    config: Config
    data: PreparedData
    device: torch.device
    processes: Processes
    model: Model
    trainer: Trainer
    pretrainer: Trainer | None = None

    @property
    def learner(self) -> Trainer:
        """What learns now."""
        return self.pretrainer or self.trainer

    def begin_refit(self) -> None:
        """Begin with initial weights on train and validation together, for as long as it helped."""
        before, calibration = self.trainer.progress, self.model.calibration
        self.model = new_model(self.config, self.data, self.device).calibrated(calibration)
        self.trainer = _refitter(self, before.refit_epochs)
        for name in ("best_epoch", "best_value", "best_error", "refit_epochs"):
            setattr(self.trainer.progress, name, getattr(before, name))

    def follow_first(self) -> None:
        """Take over where the first process stands: weights, optimizer, counters.

        Raises:
            RunError: a process is lost.
        """
        processes = self.processes
        if processes.size == 1:
            return
        state, values = self.learner.capture()
        values = json.loads(processes.broadcast(json.dumps(values).encode()))
        state = self.broadcast({**state, **self._weights()})
        if processes.is_first:
            return
        if not values["pretraining"]:
            self.pretrainer = None
        if values["refit"]:
            self.trainer = _refitter(self, values["refit_epochs"])
        self.load_weights(state)
        own = {name: t for name, t in state.items() if not name.startswith(OF_MODEL)}
        self.learner.restore(own, values)

    def broadcast(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the tensors of the first process, on the CPU.

        Raises:
            RunError: a process is lost.
        """
        copies = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
        content = safetensors.torch.save(copies) if self.processes.is_first else b""
        return safetensors.torch.load(self.processes.broadcast(content))

    def load_weights(self, tensors: dict[str, Tensor]) -> None:
        """Let the network have weights that `_weights` names, among others."""
        names = self.model.network.state_dict()
        self.model.network.load_state_dict({name: tensors[OF_MODEL + name] for name in names})

    def _weights(self) -> dict[str, Tensor]:
        return {OF_MODEL + name: t for name, t in self.model.network.state_dict().items()}

    def take(self, model: Model | None) -> None:
        """Let the network have the weights of another model of its architecture.

        Args:
            model: in the first process.

        Raises:
            RunError: a process is lost.
        """
        if model is not None:
            self.model.network.load_state_dict(model.network.state_dict())
        if self.processes.size > 1:
            self.load_weights(self.broadcast(self._weights()))

    @property
    def nothing_left(self) -> str | None:
        """Why nothing is left to train; None where something is."""
        settings, progress = self.config.training, self.trainer.progress
        budget = self.trainer.budget
        if settings.refit and (not progress.refit or progress.epoch < self.trainer.last_epoch):
            return None
        if progress.refit:
            done = f"the {progress.epoch} epochs of training.refit are done"
            return f"{done}, and none can follow; for another model start a new run"
        if progress.epoch >= budget.epochs:
            return f"all {budget.epochs} epochs of training.max_epochs are done; raise it to go on"
        if self.trainer.out_of_patience:
            since = f"no epoch was better since epoch {progress.best_epoch}"
            return f"training.patience is {budget.patience}, and {since}; raise it to go on"
        return None


def begin(
    config: Config, data: PreparedData, device: torch.device, processes: Processes = ALONE,
    origin: Origin | None = None,
) -> tuple[RunState, str | None]:  # fmt: skip
    """Draw the initial weights of a run from its seed, or take those of an old model.

    Args:
        config: resolved.
        data: prepared; its preprocessing grew from the old model's, if there is one.
        device: where to compute.
        processes: that train together.
        origin: the old model, or None.

    Returns:
        The run's state, and what was kept of the old model.

    Raises:
        ConfigError: class weights don't fit the labels of train.
    """
    model = new_model(config, data, device)
    kept = None if origin is None else take_weights(origin.model, model, data.vectors)
    return _state(config, data, device, processes, model), kept


def resume(
    config: Config,
    data: PreparedData,
    device: torch.device,
    processes: Processes,
    run: RunDirectory,
    point: ResumePoint,
) -> RunState:
    """Put back weights, optimizer and position of a run.

    Args:
        config: resolved; the run's own, but for what may change.
        data: prepared.
        device: where to compute.
        processes: that train together.
        run: locked.
        point: what it goes on from.

    Raises:
        CheckpointError: it doesn't fit, or the data changed since.
    """
    checkpoint = point.checkpoint
    check_data_unchanged(config, data.digests, point.recorded, run)
    check_held_out(config, data, point.recorded, run.path)
    check_model_unchanged(point, config, data.preprocessing)
    model = checkpoint.model
    model.network.to(device)
    state = _state(config, data, device, processes, model, pretrains=checkpoint.pretraining)
    if config.training.refit and checkpoint.progress.get("refit") is True:
        state.trainer = _refitter(state, int(checkpoint.progress.get("refit_epochs") or 0))
    try:
        state.learner.restore(checkpoint.tensors, checkpoint.progress)
    except ValueError as error:
        raise CheckpointError(f"{point.folder / STATE}: not a training state ({error})") from None
    return state


def new_model(config: Config, data: PreparedData, device: torch.device) -> Model:
    """Return a model with initial weights: drawn, and of a file of word vectors."""
    network = new_network(config.model, data.preprocessing)
    network.initialize(config.seed)
    if data.vectors is not None and isinstance(network.embedding, torch.nn.Embedding):
        take_vectors(network.embedding, data.vectors)
    return Model(network.to(device), data.preprocessing)


def _state(
    config: Config,
    data: PreparedData,
    device: torch.device,
    processes: Processes,
    model: Model,
    *,
    pretrains: bool = True,
) -> RunState:
    """Build the trainers of a model."""
    splits, names = data.splits, model.preprocessing.labels
    train, validation = splits["train"], splits.get("validation")
    network = model.network
    objective = Classification(network, train, validation, names, config, device, processes)
    state = RunState(config, data, device, processes, model, Trainer(objective))
    settings = config.pretraining
    if pretrains and data.unlabelled is not None and settings.objective is not None:
        predictor = OBJECTIVES[settings.objective](network, settings.dropout)
        predictor.initialize(config.seed)
        predictor.to(device)
        pretraining = TokenPrediction(
            predictor, data.unlabelled, validation, config, device, processes
        )
        state.pretrainer = Trainer(pretraining)
    return state


def _refitter(state: RunState, epochs: int) -> Trainer:
    """Return what trains on train and validation together."""
    rows = joined_stores([state.data.splits[name] for name in ("train", "validation")])
    labelled = np.flatnonzero(rows.labels >= 0)
    if len(labelled) < len(rows):
        rows = rows.selection(labelled)
    # auto would count other epochs, of more rows
    training = state.config.training.model_copy(update={"max_epochs": state.trainer.budget.epochs})
    config = state.config.model_copy(update={"training": training})
    names, network = state.model.preprocessing.labels, state.model.network
    refit = Classification(
        network, rows, None, names, config, state.device, state.processes, refit=True
    )
    return Trainer(refit, epochs)
