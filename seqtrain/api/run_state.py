"""What a run is while it goes on: the model and its trainers, new or put back from a checkpoint."""

import json

import numpy as np
import safetensors.torch
import torch

from seqtrain.api.environment import Setting, check_held_out
from seqtrain.api.start import Origin, ResumePoint, check_unchanged, take_weights
from seqtrain.data.batch import memory_errors
from seqtrain.data.store import SequenceStore, joined_stores
from seqtrain.errors import CheckpointError
from seqtrain.evaluation.calibration import UNCALIBRATED, Calibration
from seqtrain.model.decoder import OBJECTIVES
from seqtrain.model.initialization import take_vectors
from seqtrain.runs.checkpoint import STATE
from seqtrain.runs.model_folder import Model, new_network
from seqtrain.training.objectives import Classification
from seqtrain.training.token_prediction import TokenPrediction
from seqtrain.training.trainer import Trainer

OF_MODEL = "model."
"""Before the name of a weight that the first process sends to the others."""


class RunState:
    """A run under way: its trainer, and its pretrainer until pretraining is done."""

    def __init__(self, setting: Setting, model: Model, *, pretrains: bool = True) -> None:
        self.setting, self.config, self.data = setting, setting.config, setting.data
        self.processes, self.model = setting.processes, model
        self.kept: str | None = None  # of an old model, in words
        splits, given = self.data.splits, (self.config, setting.device, setting.processes)
        validation, names = splits.get("validation"), model.preprocessing.labels
        network = model.network.to(setting.device)
        self.trainer = Trainer(Classification(network, splits["train"], validation, names, *given))
        self.pretrainer: Trainer | None = None
        settings, rows = self.config.pretraining, self.data.unlabelled
        if pretrains and rows is not None and settings.objective is not None:
            predictor = OBJECTIVES[settings.objective](network, settings.dropout)
            predictor.initialize(self.config.seed)
            predictor.to(setting.device)
            self.pretrainer = Trainer(TokenPrediction(predictor, rows, validation, *given))

    @property
    def learner(self) -> Trainer:
        """What learns now."""
        return self.pretrainer or self.trainer

    def begin_refit(self) -> None:
        """Begin with initial weights on train and validation together, for as long as it helped."""
        before, calibration, rows = self.trainer.progress, self.model.calibration, self._all_rows()
        self.model = new_model(self.setting, rows).calibrated(calibration)
        self.take(None)
        self._use_refitter(rows, before.refit_epochs)
        for name in ("best_epoch", "best_value", "best_error", "refit_epochs"):
            setattr(self.trainer.progress, name, getattr(before, name))

    def put_back(self, tensors: dict[str, torch.Tensor], values: dict[str, object]) -> None:
        """Go on from what a trainer captured; ValueError where this run captures no such thing."""
        if not values.get("pretraining"):
            self.pretrainer = None
        if values.get("refit") is True and self.config.training.refit:
            self._use_refitter(self._all_rows(), int(str(values.get("refit_epochs"))))
        self.learner.restore(tensors, values)

    def follow_first(self) -> None:
        """Take over where the first process stands: weights, optimizer, counters."""
        if self.processes.size > 1:
            tensors, values = self.learner.capture()
            values = json.loads(self.processes.broadcast(json.dumps(values).encode()))
            tensors = self._broadcast_weights(tensors)
            if not self.processes.is_first:
                self.put_back(tensors, values)

    def take(self, weights: dict[str, torch.Tensor] | None) -> None:
        """Let the network have other weights, which the first process gives."""
        if weights is not None:
            self.model.network.load_state_dict(weights)
        if self.processes.size > 1:
            self._broadcast_weights({})

    def _broadcast_weights(self, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        network = self.model.network
        own = {OF_MODEL + name: weight for name, weight in network.state_dict().items()}
        sent = {name: t.detach().cpu().contiguous() for name, t in {**tensors, **own}.items()}
        content = safetensors.torch.save(sent) if self.processes.is_first else b""
        received = safetensors.torch.load(self.processes.broadcast(content))
        network.load_state_dict({name.removeprefix(OF_MODEL): received.pop(name) for name in own})
        return received

    def _all_rows(self) -> SequenceStore:
        """Return train and validation together, but for rows with labels that train lacks."""
        rows = joined_stores([self.data.splits[name] for name in ("train", "validation")])
        return rows.selection(np.flatnonzero(rows.labels.reshape(len(rows), -1).min(axis=1) >= 0))

    def _use_refitter(self, rows: SequenceStore, epochs: int) -> None:
        # auto would count other epochs, of more rows
        config = self.config.with_keys(training={"max_epochs": self.trainer.budget.epochs})
        given = (self.model.preprocessing.labels, config, self.setting.device, self.processes)
        refit = Classification(self.model.network, rows, None, *given, refit=True)
        self.trainer = Trainer(refit, epochs)

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
            if self.trainer.is_perfect:
                return f"all of validation is right, and {since}"
            if self.trainer.is_hopeless:
                return "no epoch was better than always the largest class; set training.patience"
            return f"training.patience is {budget.patience}, and {since}; raise it to go on"
        return None


def new_model(setting: Setting, rows: SequenceStore) -> Model:
    """Return a model with initial weights: drawn, of a file of word vectors, or fitted on rows.

    What is fitted is so in the first process alone, which sends it to the others.
    """
    data = setting.data
    network = new_network(setting.config.model, data.preprocessing)
    network.initialize(setting.config.seed)
    if data.vectors is not None and isinstance(network.embedding, torch.nn.Embedding):
        take_vectors(network.embedding, data.vectors)
    network.to(setting.device)
    if network.kernels is not None and setting.processes.is_first:
        with memory_errors(rows.lengths, "data.max_length, or set model.kernels: false"):
            network.kernels.fit(rows, setting.config.seed)
    alone = network.kernels is not None and "validation" not in data.splits
    shares = UNCALIBRATED if alone else None
    return Model(network, data.preprocessing).calibrated(Calibration(shares=shares))


def begin(setting: Setting, origin: Origin | None) -> RunState:
    """Return a new run, with initial weights or those of an old model."""
    model = new_model(setting, setting.data.splits["train"])
    kept = None if origin is None else take_weights(origin.model, model, setting.data.vectors)
    state = RunState(setting, model)
    state.kept = kept
    return state


def resume(setting: Setting, point: ResumePoint) -> RunState:
    """Put back weights, optimizer and position of a run; refuse what doesn't fit."""
    config, data, checkpoint = setting.config, setting.data, point.checkpoint
    check_unchanged(point, config, data.digests, data.preprocessing)
    check_held_out(config, data, point.recorded, point.run.path)
    state = RunState(setting, checkpoint.model, pretrains=checkpoint.pretraining)
    try:
        state.put_back(checkpoint.tensors, checkpoint.progress)
    except ValueError as error:
        raise CheckpointError(f"{point.folder / STATE}: not a training state ({error})") from None
    return state
