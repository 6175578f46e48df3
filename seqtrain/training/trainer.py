"""The trainer of a run: the state that a checkpoint holds, and the setup of the current phase."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqtrain.config.schema import Config
from seqtrain.engines.optimizer import Optimizer, check_tensors
from seqtrain.errors import RunError
from seqtrain.evaluation.calibration import Calibration
from seqtrain.evaluation.scores import Scores
from seqtrain.model.branches.recurrent import recurrent_branch
from seqtrain.model.carried import CarriedStates
from seqtrain.model.decoder import PretrainingModel
from seqtrain.model.network import ClassifierNetwork
from seqtrain.sequences.dataset import PreparedData
from seqtrain.sequences.store import SequenceStore
from seqtrain.tables.blocks import Array, Ints
from seqtrain.training.events import Phase
from seqtrain.training.initial_weights import initial_network
from seqtrain.training.processes import SINGLE, Processes
from seqtrain.training.progress import Progress, checked_progress
from seqtrain.training.row_weights import RowWeights
from seqtrain.training.setups import PhaseSetup, pretraining_setup, refit_setup, training_setup
from seqtrain.training.stopping import best_epoch, epochs_for_refit, stops_early

VALIDATION_LOGITS = "validation.logits"
"""Name, in a training state, of the logits on validation that calibrate a refit."""
DECODER_NAMES = "pretraining."
"""Prefix of the names, in a training state, of weights that the classifier doesn't have."""


@dataclass
class RunResult:
    """Scores of a run, which the last phases set.

    Attributes:
        validation: Scores on validation of the calibrated model of the best epoch, also after a
            refit. None before calibration, without validation, and if the run resumed in its refit.
        test: Scores on test, or None before the last phase and without test.
        branches: Maps the name of each branch to its scores on test. Empty if there is only one
            branch, or `test` is None.
        notes: Lines for the user about the calibration.
    """

    validation: Scores | None = None
    test: Scores | None = None
    branches: dict[str, Scores] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class Trainer:
    """A run in progress: all that a checkpoint holds, and the setup of the current phase.

    A new trainer is at the beginning of pretraining, or of training without pretraining. Nothing
    random is saved: batches follow from seed and epoch, dropout from seed, update and example, the
    learning rate from the number of the update.

    Args:
        config: The config.
        data: Encoded splits and preprocessing.
        device: Device that computes.
        processes: Processes that train together.
        network: Classifier with the weights of a checkpoint, or None for initial weights.
        calibration: Calibration of the checkpoint, or None for the default.

    Raises:
        ConfigError: If class weights name a label that train lacks, or leave out a label of train.
        RunError: If memory runs out while a branch is solved.

    Attributes:
        weights: Weights of classes and rows.
        rule: Rule that ends training.
        training_updates: Number of updates of training if it doesn't end early.
        setup: Model, rows and settings of the current phase, which don't change.
        network: The classifier.
        calibration: Temperature, thresholds and branch weights of the classifier.
        optimizer: Optimizer of the weights that learn.
        progress: Position in the run. It is up to date at every event.
        carried: Last state of each group, which its next sequence starts from.
        best: Weights of the network after its best epoch, or at the end of a refit, by name. None
            if no epoch was the best since training started or resumed.
        kept_logits: Logits of K branches on validation, (K, B, C), by which the model of a refit
            will be calibrated. They are computed after as many epochs as the refit will have.
        solved_logits: Logits of the solved branches on validation, which are computed once. Empty
            before.
        result: Scores of the run.
    """

    def __init__(
        self,
        config: Config,
        data: PreparedData,
        device: torch.device,
        processes: Processes = SINGLE,
        network: ClassifierNetwork | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        self.config, self.data, self.device, self.processes = config, data, device, processes
        self.weights = RowWeights.of(config.training, data)
        self.progress = Progress()
        self.best: dict[str, Tensor] | None = None
        self.kept_logits = torch.zeros(0, device="cpu")
        self.result = RunResult()
        network = network or self._new_network(*self.weights.rows_of_train(data))
        # Without validation, nothing fits the branch weights.
        branch_weights = None
        if "validation" not in data.splits:
            branch_weights = network.default_branch_weights
        self.calibration = calibration or Calibration(branch_weights=branch_weights)
        self._set_network(network)
        setup = training_setup(config, data, self.network, self.weights)
        self.rule = setup.rule
        self.training_updates = setup.total_updates
        self._enter(setup)
        if config.pretraining.objective is not None and data.unlabelled is not None:
            self.begin("pretraining")

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the classes, in order."""
        return self.data.preprocessing.labels

    @property
    def thresholds(self) -> list[float]:
        """Threshold of each class, in the order of `labels`: 0.5 if calibration set none."""
        return self.calibration.thresholds or [0.5] * len(self.labels)

    @property
    def best_epoch(self) -> int:
        """Number of the best epoch of training, from 1, or 0 before the first epoch ends."""
        return best_epoch(self.progress.history, self.rule)

    @property
    def refit_epochs(self) -> int:
        """Number of epochs of a refit by the epochs of training so far."""
        return epochs_for_refit(self.progress.history, self.rule)

    @property
    def stopped_early(self) -> bool:
        """True if training ended before its last epoch."""
        history = self.progress.history
        return len(history) < self.rule.epochs and stops_early(history, self.rule)

    @property
    def is_over(self) -> bool:
        """True if no epoch is left in the current phase."""
        return self.setup.is_over(self.progress)

    @property
    def holds_model_to_keep(self) -> bool:
        """True right after the best epoch, and at the end of a refit."""
        progress = self.progress
        if progress.batches or not progress.epoch:
            return False
        return progress.epoch == self.setup.epoch_to_keep(progress.history)

    def best_value(self) -> float:
        """Return the monitored value of the model after the best epoch, or NaN before any epoch.

        A monitored loss is returned as it is, not negated.
        """
        if not self.progress.history:
            return math.nan
        value = self.progress.history[self.best_epoch - 1].model_value
        if self.config.training.monitor == "loss":
            return -value
        return value

    def begin(self, phase: Phase) -> None:
        """Begin a phase: its rows, its settings, and a new optimizer."""
        self.progress.begin_phase(phase)
        self._enter(self._setup_of(self.progress))

    def begin_refit(self) -> None:
        """Begin a refit with a new network. Every process must call this."""
        network = self._new_network(*self.weights.rows_of_refit(self.data))
        network.load_state_dict(self.processes.tensors_of_first(network.state_dict()))
        self._set_network(network)
        self.begin("refit")

    def set_calibration(self, calibration: Calibration) -> None:
        """Set the calibration of the run and of its network."""
        self.calibration = calibration
        self.network.calibration = calibration

    def keep_best(self) -> None:
        """Set `best` to a copy of the weights. Arrays of solved branches don't change."""
        solved = tuple(f"{name}." for name in self.network.solved_branches)
        self.best = {}
        for name, weight in self.network.state_dict().items():
            if name.startswith(solved):
                self.best[name] = weight
            else:
                self.best[name] = weight.clone()

    def load_best(self) -> None:
        """Load the weights of the best epoch of rank 0 into the network of each process."""
        weights = self.best or self.network.state_dict()
        self.network.load_state_dict(self.processes.tensors_of_first(weights))

    def error(self, problem: str) -> RunError:
        """Return a RunError. It has the message on rank 0, and no message on other ranks.

        Args:
            problem: Message. The name of the phase is put before it, except in training.
        """
        return RunError(*self.processes.lines(self.setup.message_prefix + problem))

    def state_dict(self) -> dict[str, Any]:
        """Return all that a checkpoint holds. Tensors on the CPU aren't copied.

        Returns:
            - "network": the weights of the classifier by name.
            - "training": the tensors of the optimizer and the phase by name.
            - "progress": the progress as JSON values.
        """
        tensors = {f"optimizer.{name}": t for name, t in self.optimizer.state_dict().items()}
        tensors |= self._decoder_weights()
        if self.setup.groups is not None:
            tensors |= self.carried.tensors(self.network)
        elif self.setup.selects_epoch and len(self.kept_logits):
            tensors[VALIDATION_LOGITS] = self.kept_logits
        network = self.network.state_dict()
        return {"network": network, "training": tensors, "progress": self.progress.model_dump()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned, and continue at the same update.

        Raises:
            ValueError: If the state is invalid or doesn't fit this run. The trainer may then be
                changed in part.
        """
        progress = checked_progress(state["progress"])
        setup = self._setup_of(progress)
        self.progress = progress
        self._enter(setup)
        plan = setup.plan(progress.epoch)
        if progress.batches > len(plan):
            raise ValueError(f"progress.batches: found {progress.batches}, expected {len(plan)}")
        self.network.load_state_dict(state["network"])
        groups: dict[str, dict[str, Tensor]] = {
            "optimizer.": {},
            DECODER_NAMES: {},
            "carried.": {},
        }
        rest = dict(state["training"])
        for name in list(rest):
            for prefix, own in groups.items():
                if name.startswith(prefix):
                    own[name.removeprefix(prefix)] = rest.pop(name)
        complete = setup.every_weight_learns and progress.updates > 0
        self.optimizer.load_state_dict(groups["optimizer."], complete=complete)
        self._load_decoder(groups[DECODER_NAMES])
        self._load_carried(groups["carried."], plan[: progress.batches])
        self._load_logits(rest.pop(VALIDATION_LOGITS, None))
        for name in rest:
            raise ValueError(f"{name[:80]}: no tensor of a state")

    def copy_from_rank_zero(self) -> None:
        """Copy the state of rank 0 to the other processes. Each process must call this."""
        state = self.state_dict()
        network = self.processes.tensors_of_first(state["network"])
        training = self.processes.tensors_of_first(state["training"])
        progress = json.loads(self.processes.broadcast(json.dumps(state["progress"]).encode()))
        if not self.processes.is_first:
            self.load_state_dict({"network": network, "training": training, "progress": progress})

    def _new_network(self, rows: SequenceStore, weights: Array | None) -> ClassifierNetwork:
        """Return a network with initial weights. On rank 0, branches without gradients are solved.

        Args:
            rows: Rows to solve these branches on.
            weights: Weight of each row, (B,), greater than 0, or None.
        """
        solve = self.processes.is_first
        return initial_network(self.config, self.data, self.device, rows, weights, solve=solve)

    def _set_network(self, network: ClassifierNetwork) -> None:
        """Replace the network, and forget what was computed by the one before."""
        self.network = network.to(self.device)
        self.set_calibration(self.calibration)
        self.solved_logits: list[Tensor] = []

    def _setup_of(self, progress: Progress) -> PhaseSetup:
        """Return the setup of the phase of a position in the run.

        Raises:
            ValueError: If the config has no such phase.
        """
        phase = progress.phase
        config = self.config
        if phase == "refit":
            if not config.training.refit:
                raise ValueError("progress.phase: found refit, which the config doesn't have")
            rows, weights = self.weights.rows_of_refit(self.data)
            return refit_setup(self.setup, self.network, rows, weights, progress.history)
        if phase == self.setup.name:
            return self.setup
        if phase == "training":
            return training_setup(config, self.data, self.network, self.weights)
        if config.pretraining.objective is None or self.data.unlabelled is None:
            raise ValueError("progress.phase: found pretraining, which the config doesn't have")
        return pretraining_setup(self.setup, self.data, self.device)

    def _enter(self, setup: PhaseSetup) -> None:
        """Set the setup of a phase, with a new optimizer, and carry no states yet."""
        settings = setup.settings
        sparse = settings.sparse_embedding and settings.optimizer != "sgd"
        # MPS has no sparse tensors, and torch's SGD has no momentum for them.
        tables = self.network.set_sparse_gradients(sparse and self.device.type != "mps")
        recurrent_branch(self.network).freeze_embedding(frozen=False)
        self.setup = setup
        self.optimizer = Optimizer(setup.model, tables, settings)
        self.carried = CarriedStates()

    def _decoder_weights(self) -> dict[str, Tensor]:
        """Return the weights that the classifier doesn't have, by name. They aren't copies."""
        model = self.setup.model
        if not isinstance(model, PretrainingModel):
            return {}
        return {DECODER_NAMES + name: tensor for name, tensor in model.own_state().items()}

    def _load_decoder(self, tensors: dict[str, Tensor]) -> None:
        own = self._decoder_weights()
        check_tensors({DECODER_NAMES + name: tensor for name, tensor in tensors.items()}, own)
        for name, tensor in own.items():
            tensor.copy_(tensors[name.removeprefix(DECODER_NAMES)])

    def _load_carried(self, tensors: dict[str, Tensor], learned: list[Ints]) -> None:
        """Restore the states of groups, which must be the groups of the learned rows."""
        every_group = self.setup.groups
        if every_group is None:
            if tensors:
                raise ValueError("carried: found states, but none are carried")
            return
        self.carried.load({f"carried.{name}": t for name, t in tensors.items()}, self.network)
        rows = np.concatenate([np.zeros(0, np.int64), *learned])
        groups = every_group[rows]
        if set(tensors["groups"].tolist()) != set(groups[groups >= 0].tolist()):
            raise ValueError("carried.groups: not those of the epoch so far")

    def _load_logits(self, logits: Tensor | None) -> None:
        """Restore the logits that calibrate a refit."""
        validation = self.setup.validation
        if logits is None or validation is None:
            return
        shape = len(self.network.branch_names), len(validation), len(self.labels)
        if logits.shape != shape or logits.dtype != torch.float32 or not logits.isfinite().all():
            raise ValueError(f"{VALIDATION_LOGITS}: expected finite numbers, {shape}")
        self.kept_logits = logits
