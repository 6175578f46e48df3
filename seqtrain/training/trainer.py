"""The trainer of a run: network, optimizer, progress, data and settings."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from seqtrain.config.schema import Config, TrainingConfig
from seqtrain.engines.optimizer import Optimizer, check_tensors
from seqtrain.evaluation.calibration import Calibration
from seqtrain.evaluation.logits import (
    EVALUATION_BATCHING,
    CarriedStates,
    branch_logits,
    carried_groups,
)
from seqtrain.evaluation.scores import Scores
from seqtrain.model.branches.recurrent import recurrent_branch
from seqtrain.model.decoder import OBJECTIVES, PretrainingModel
from seqtrain.model.network import ClassifierNetwork
from seqtrain.sequences.dataset import PreparedData
from seqtrain.sequences.labels import rare_class
from seqtrain.sequences.plan import plan_epoch, plan_epoch_of_groups, plan_in_order_of_length
from seqtrain.sequences.store import Array, Ints, SequenceStore
from seqtrain.training.events import Phase
from seqtrain.training.initial_weights import initial_network
from seqtrain.training.losses import (
    class_weights,
    example_weights,
    joined_rows,
    rows_with_weight,
    weighted_counts,
)
from seqtrain.training.processes import SINGLE, Processes
from seqtrain.training.progress import Progress, checked_progress
from seqtrain.training.stopping import (
    StoppingRule,
    best_epoch,
    epochs_for_refit,
    stopping_rule,
    stops_early,
)

VALIDATION_LOGITS = "validation.logits"
"""Name, in a training state, of the logits on validation that calibrate a refit."""
DECODER_NAMES = "pretraining."
"""Prefix of the names, in a training state, of weights that the classifier doesn't have."""


class Trainer:
    """A run in progress: all that a checkpoint holds, and what the phases share.

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
        network: The classifier.
        calibration: Temperature, thresholds and branch weights of the classifier.
        progress: Position in the run. It is up to date at every event.
        rule: Rule that ends training.
        training_updates: Number of updates of training if it doesn't end early.
        class_counts: Number of rows of train of each class, (C,), counted by their sample weights.
        class_weights: Weight of each class, (C,), or None for equal weights.
        row_weights: Maps "train" and "validation" to the weight of each row, (B,), or None.
        model: Module that learns in the current phase: the network, or a pretraining model around
            it.
        store: Rows to learn from in the current phase.
        store_weights: Weight of each of these rows in the loss, (B,), or None for equal weights.
        validation: Rows that are scored after each epoch, or None.
        settings: Section of the config with the settings of the current phase.
        optimizer: Optimizer of the weights that learn.
        carried: Last state of each group, which its next sequence starts from.
        best: Weights of the network after its best epoch, or at the end of a refit, by name. None
            if no epoch was the best since training started or resumed.
        kept_logits: Logits of K branches on validation, (K, B, C), by which the model of a refit
            will be calibrated. They are computed after as many epochs as the refit will have.
        notes: Lines for the user about the calibration.
        validation_scores: Scores on validation of the calibrated model of the best epoch, also
            after a refit. None before calibration, without validation, and if the run resumed in
            its refit.
        test_scores: Scores on test, or None before the last phase and without test.
        branch_scores: Maps the name of each branch to its scores on test. Empty if there is only
            one branch, or `test_scores` is None.
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
        train = data.splits["train"]
        splits = data.splits.keys() & {"train", "validation"}
        own = {name: data.splits[name].weights for name in splits}
        self.class_counts = weighted_counts(train.labels, len(self.labels), own["train"])
        total: float | None = None
        if train.labels.ndim == 2:
            total = len(train)
            if own["train"] is not None:
                total = float(own["train"].sum())
        self.class_weights = class_weights(
            config.training, self.class_counts, self.labels, total=total
        )
        self.row_weights: dict[str, Array | None] = {}
        for name, weights in own.items():
            labels = data.splits[name].labels
            self.row_weights[name] = example_weights(labels, weights, self.class_weights)
        self.progress = Progress()
        self.best: dict[str, Tensor] | None = None
        self.kept_logits = torch.zeros(0, device="cpu")
        self.notes: list[str] = []
        self.validation_scores: Scores | None = None
        self.test_scores: Scores | None = None
        self.branch_scores: dict[str, Scores] = {}
        self._fixed_logits: dict[str, Tensor] = {}
        self._epoch_logits: list[Tensor] = []
        network = network or self.new_network(train, self.row_weights["train"])
        # Without validation, nothing fits the branch weights.
        branch_weights = None
        if "validation" not in data.splits:
            branch_weights = network.default_branch_weights
        self.calibration = calibration or Calibration(branch_weights=branch_weights)
        self._set_network(network)
        self._set_phase("training")
        self.rule = self._stopping_rule()
        self.training_updates = self.total_updates
        if config.pretraining.objective is not None and data.unlabelled is not None:
            self.begin("pretraining")

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the classes, in order."""
        return self.data.preprocessing.labels

    @property
    def rare(self) -> int | None:
        """Index of the rare one of two classes of train, or None if no class is rare.

        A class can only be rare if there are two classes and the task isn't multi-label.
        """
        is_single = self.data.splits["train"].labels.ndim == 1
        if is_single:
            return rare_class(self.class_counts.tolist())
        return None

    @property
    def thresholds(self) -> list[float]:
        """Threshold of each class, in the order of `labels`: 0.5 if calibration set none."""
        return self.calibration.thresholds or [0.5] * len(self.labels)

    @property
    def trained_branches(self) -> list[str]:
        """Names of the branches that learn by gradients, in the order of their logits."""
        fixed = self.network.solved_branches
        return [name for name in self.network.branch_names if name not in fixed]

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
        return stops_early(self.progress.history, self.rule)

    @property
    def last_epoch(self) -> int:
        """Number of epochs of the current phase if it doesn't end early."""
        if self.progress.phase == "pretraining":
            return self.config.pretraining.max_epochs
        if self.progress.phase == "refit":
            return self.refit_epochs
        return self.rule.epochs

    @property
    def is_over(self) -> bool:
        """True if no epoch is left in the current phase."""
        if self.progress.phase == "training" and self.stopped_early:
            return True
        return self.progress.epoch >= self.last_epoch

    @property
    def total_updates(self) -> int:
        """Number of updates after which the schedule of the learning rate ends.

        A refit with fewer epochs than training ends before its schedule.
        """
        if self.progress.phase == "pretraining":
            epochs = self.last_epoch
        else:
            epochs = self.rule.epochs
        return epochs * self._updates_per_epoch

    @property
    def holds_model_to_keep(self) -> bool:
        """True right after the best epoch, and at the end of a refit."""
        progress = self.progress
        if progress.phase == "pretraining" or progress.batches or not progress.epoch:
            return False
        if progress.phase == "training":
            best = self.best_epoch
        else:
            best = self.refit_epochs
        return progress.epoch == best

    def begin(self, phase: Phase) -> None:
        """Begin a phase: its rows, its settings, and a new optimizer.

        A refit begins with a new network. Every process must call this.
        """
        if phase == "refit":
            network = self.new_network(*self._refit_rows())
            network.load_state_dict(self.processes.tensors_of_first(network.state_dict()))
            self._set_network(network)
        self.progress.begin_phase(phase)
        self._set_phase(phase)

    def new_network(self, rows: SequenceStore, weights: Array | None) -> ClassifierNetwork:
        """Return a network with initial weights. On rank 0, branches without gradients are solved.

        Args:
            rows: Rows to solve these branches on.
            weights: Weight of each row, (B,), or None.
        """
        solved = self.processes.is_first
        return initial_network(
            self.config, self.data, self.device, *rows_with_weight(rows, weights), solve=solved
        )

    def set_calibration(self, calibration: Calibration) -> None:
        """Set the calibration of the run and of its network."""
        self.calibration = calibration
        self.network.calibration = calibration

    def plan(self, epoch: int) -> list[Ints]:
        """Return the batches of an epoch, as arrays of row numbers of `store`.

        The result depends only on the config, the rows and the epoch.

        Args:
            epoch: Number of the epoch, from 0.
        """
        lengths, groups, config = self.store.lengths, self.groups, self.config
        if groups is None:
            return plan_epoch(lengths, config.batching, seed=config.seed, epoch=epoch)
        return plan_epoch_of_groups(lengths, groups, config.batching, seed=config.seed, epoch=epoch)

    @property
    def groups(self) -> Ints | None:
        """Group of each row of `store`, (B,), or None if states aren't carried within groups."""
        if self.progress.phase == "pretraining":
            return None
        return carried_groups(self.network, self.store)

    def shared_logits(
        self, store: SequenceStore, names: Collection[str] | None = None
    ) -> list[Tensor]:
        """Return the logits of each branch on all rows of a store, (B, C) each, on the CPU.

        All processes must call this together. They share the batches, and each gets the whole
        result. If states are carried, rank 0 computes all batches.

        Args:
            store: The rows.
            names: Names of the branches to compute, or None for all.

        Raises:
            RunError: If memory ran out, or a process is lost.
            Interrupted: If a signal asked to stop.
        """
        groups, processes = carried_groups(self.network, store), self.processes
        plan = plan_in_order_of_length(store.lengths, EVALUATION_BATCHING, groups)
        if groups is None:
            plan = processes.share(plan)
        elif not processes.is_first:  # a batch starts from the states of earlier ones
            plan = []
        stop = processes.raise_if_stopped
        found = branch_logits(
            self.network, store, self.device, plan=plan, before_batch=stop, names=names
        )
        processes.broadcast()  # unlike a sum, it waits without end
        return processes.sum(*found)

    def validation_logits(self) -> list[Tensor]:
        """Return the logits of each branch on validation. Solved branches are computed once."""
        assert self.validation is not None
        fixed = self.network.solved_branches
        if fixed and not self._fixed_logits:
            logits = self.shared_logits(self.validation, fixed)
            self._fixed_logits = dict(zip(fixed, logits, strict=True))
        trained = self.trained_branches
        logits = self.shared_logits(self.validation, trained)
        found = self._fixed_logits | dict(zip(trained, logits, strict=True))
        self._epoch_logits = [found[name] for name in self.network.branch_names]
        return list(self._epoch_logits)

    def keep_logits(self) -> None:
        """Set `kept_logits` to the logits of this epoch, if a calibrated refit may have as many."""
        settings = self.config.training
        is_calibrated = settings.refit and settings.calibration != "none"
        is_training = self.progress.phase == "training"
        if is_calibrated and is_training and self.refit_epochs == self.progress.epoch:
            self.kept_logits = torch.stack([logits.float() for logits in self._epoch_logits])

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

    def state_dict(self) -> dict[str, Any]:
        """Return all that a checkpoint holds. Tensors on the CPU aren't copied.

        Returns:
            - "network": the weights of the classifier by name.
            - "training": the tensors of the optimizer and the phase by name.
            - "progress": the progress as JSON values.
        """
        tensors = {f"optimizer.{name}": t for name, t in self.optimizer.state_dict().items()}
        tensors |= self._decoder_weights()
        if self.groups is not None:
            tensors |= self.carried.tensors(self.network)
        elif self.progress.phase == "training" and len(self.kept_logits):
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
        self._check_phase(progress.phase)
        self.progress = progress
        self._set_phase(progress.phase)
        plan = self.plan(progress.epoch)
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
        all_learn = not (self.config.model.freeze or progress.phase == "pretraining")
        complete = all_learn and progress.updates > 0
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

    def _set_network(self, network: ClassifierNetwork) -> None:
        """Replace the network, and forget what was computed by the one before."""
        self.network = network.to(self.device)
        self.set_calibration(self.calibration)
        self._fixed_logits.clear()
        self._epoch_logits.clear()

    def _set_phase(self, phase: Phase) -> None:
        """Set all that belongs to the current phase."""
        splits = self.data.splits
        self.settings: TrainingConfig = self.config.training
        self.model: ClassifierNetwork | PretrainingModel = self.network
        self.validation = splits.get("validation")
        weights: Array | None = None
        if phase == "pretraining":
            self._set_pretraining()
        elif phase == "refit":
            self.validation = None
            self.store, weights = rows_with_weight(*self._refit_rows())
        else:
            self.store, weights = rows_with_weight(splits["train"], self.row_weights["train"])
        self.store_weights: Tensor | None = None
        if weights is not None:
            # With a mean weight of 1, the learning rate suits them as it suits equal weights.
            self.store_weights = torch.from_numpy(weights / weights.mean()).float()
        sparse = self.settings.sparse_embedding and self.settings.optimizer != "sgd"
        # MPS has no sparse tensors, and torch's SGD has no momentum for them.
        tables = self.network.set_sparse_gradients(sparse and self.device.type != "mps")
        self.freeze_embedding(frozen=False)
        self.optimizer = Optimizer(self.model, tables, self.settings)
        self.carried = CarriedStates()
        self._updates_per_epoch = len(self.plan(0))

    def _set_pretraining(self) -> None:
        own, validation = self.config.pretraining, self.validation
        assert own.objective is not None
        assert self.data.unlabelled is not None
        keys = {"lr": own.lr, "max_epochs": own.max_epochs, "augment": None}
        self.settings = self.config.training.model_copy(update=keys)
        model = OBJECTIVES[own.objective](self.network, own.dropout)
        model.initialize(self.config.seed)
        self.model = model.to(self.device)
        self.store = split_sequences(self.data.unlabelled, own.max_length)
        if validation is not None:
            self.validation = split_sequences(validation, own.max_length)

    def _refit_rows(self) -> tuple[SequenceStore, Array | None]:
        """Return the rows with known labels of train and validation, and their weights."""
        stores = [self.data.splits[name] for name in ("train", "validation")]
        return joined_rows(stores, self.class_weights)

    def freeze_embedding(self, *, frozen: bool) -> None:
        """Freeze the vectors of tokens if `frozen` is True; let them learn if it is False.

        Only an embedding of single tokens can be frozen. Any other input layer, such as that of
        numbers, always learns.
        """
        embedding = recurrent_branch(self.network).embedding
        if isinstance(embedding, nn.Embedding):
            embedding.weight.requires_grad_(not frozen)

    def _stopping_rule(self) -> StoppingRule:
        settings, validation = self.config.training, self.validation
        if validation is None:
            return stopping_rule(settings, self._updates_per_epoch)
        baseline = -1.0
        is_telling = validation.labels.ndim == 1 and self.rare is None
        if settings.monitor == "accuracy" and is_telling:
            baseline = float((validation.labels == self.class_counts.argmax()).mean())
        return stopping_rule(settings, self._updates_per_epoch, len(validation), baseline)

    def _check_phase(self, phase: Phase) -> None:
        """Raise ValueError if the config has no such phase."""
        has_pretraining = self.config.pretraining.objective is not None
        if phase == "pretraining" and not (has_pretraining and self.data.unlabelled is not None):
            raise ValueError("progress.phase: found pretraining, which the config doesn't have")
        if phase == "refit" and not self.config.training.refit:
            raise ValueError("progress.phase: found refit, which the config doesn't have")

    def _decoder_weights(self) -> dict[str, Tensor]:
        """Return the weights that the classifier doesn't have, by name. They aren't copies."""
        if not isinstance(self.model, PretrainingModel):
            return {}
        return {DECODER_NAMES + name: tensor for name, tensor in self.model.own_state().items()}

    def _load_decoder(self, tensors: dict[str, Tensor]) -> None:
        own = self._decoder_weights()
        check_tensors({DECODER_NAMES + name: tensor for name, tensor in tensors.items()}, own)
        for name, tensor in own.items():
            tensor.copy_(tensors[name.removeprefix(DECODER_NAMES)])

    def _load_carried(self, tensors: dict[str, Tensor], learned: list[Ints]) -> None:
        """Restore the states of groups, which must be the groups of the learned rows."""
        if self.groups is None:
            if tensors:
                raise ValueError("carried: found states, but none are carried")
            return
        self.carried.load({f"carried.{name}": t for name, t in tensors.items()}, self.network)
        rows = np.concatenate([np.zeros(0, np.int64), *learned])
        groups = self.groups[rows]
        if set(tensors["groups"].tolist()) != set(groups[groups >= 0].tolist()):
            raise ValueError("carried.groups: not those of the epoch so far")

    def _load_logits(self, logits: Tensor | None) -> None:
        """Restore the logits that calibrate a refit."""
        if logits is None or self.validation is None:
            return
        shape = len(self.network.branch_names), len(self.validation), len(self.labels)
        if logits.shape != shape or logits.dtype != torch.float32 or not logits.isfinite().all():
            raise ValueError(f"{VALIDATION_LOGITS}: expected finite numbers, {shape}")
        self.kept_logits = logits


def split_sequences(store: SequenceStore, steps: int | None) -> SequenceStore:
    """Return a store in which long sequences are split into shorter ones of about equal length.

    Each piece has the label and the line number of its sequence. The time steps aren't copied.

    Args:
        store: The sequences.
        steps: Largest number of time steps of a sequence, or None to return `store` itself.
    """
    if steps is None:
        return store
    pieces = -(-store.lengths // steps)
    row = np.arange(len(store)).repeat(pieces)
    number = np.arange(len(row)) - (pieces.cumsum() - pieces)[row]
    starts = store.offsets[row] + number * store.lengths[row] // pieces[row]
    offsets = np.append(starts, store.offsets[-1])
    return SequenceStore(
        store.values,
        offsets,
        store.labels[row],
        store.lines[row],
        files=store.files,
        spellings=store.spellings,
        words=store.words,
    )
