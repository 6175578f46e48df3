"""Setups of the phases in which weights are learned: what a phase reads, and never changes.

B rows, C classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from seqtrain.config.schema import Config, TrainingConfig
from seqtrain.engines.schedule import learning_rate
from seqtrain.evaluation.logits import are_right
from seqtrain.model.branches.branch import ForwardContext
from seqtrain.model.carried import CarriedStates, carried_groups, forward_carried
from seqtrain.model.decoder import OBJECTIVES, PretrainingModel
from seqtrain.model.network import ClassifierNetwork
from seqtrain.model.randomness import RandomNumbers
from seqtrain.sequences.batch import Batch
from seqtrain.sequences.dataset import PreparedData
from seqtrain.sequences.plan import plan_epoch, plan_epoch_of_groups
from seqtrain.sequences.store import SequenceStore, split_sequences
from seqtrain.tables.blocks import Array, Ints
from seqtrain.training.events import Phase
from seqtrain.training.losses import Losses, example_losses
from seqtrain.training.progress import Progress
from seqtrain.training.row_weights import RowWeights, with_mean_of_1
from seqtrain.training.stopping import (
    History,
    StoppingRule,
    best_epoch,
    epochs_for_refit,
    plateaus,
    stopping_rule,
    stops_early,
)


@dataclass(frozen=True, eq=False)
class PhaseSetup:
    """Model, rows and settings of training or of a refit.

    Attributes:
        name: Name of the phase.
        config: The config.
        settings: Section of the config with the settings of the phase.
        network: The classifier.
        rows: Rows to learn from.
        weights: Weight of each of these rows in the loss, (B,), or None for equal weights.
        class_weights: Weight of each class of a multi-label task, (C,), or None.
        validation: Rows that are scored after each epoch, or None.
        groups: Group of each of the rows, (B,), or None if states aren't carried within groups.
        last_epoch: Number of epochs if the phase doesn't end early.
        total_updates: Number of updates after which the schedule of the learning rate ends. A refit
            with fewer epochs than training ends before.
        rule: Rule that ends training.
        selects_epoch: True if the best epoch is kept, False if the last epoch is kept.
    """

    name: Phase
    config: Config
    settings: TrainingConfig
    network: ClassifierNetwork
    rows: SequenceStore
    weights: Tensor | None
    class_weights: Tensor | None
    validation: SequenceStore | None
    groups: Ints | None
    last_epoch: int
    total_updates: int
    rule: StoppingRule
    selects_epoch: bool

    section: ClassVar[str] = "training"
    """Section of the config that has the learning rate."""

    @property
    def model(self) -> ClassifierNetwork | PretrainingModel:
        """Module that learns: the classifier, or a pretraining model around it."""
        return self.network

    @property
    def message_prefix(self) -> str:
        """Beginning of error messages: the name of the phase, except in training."""
        if self.selects_epoch:
            return ""
        return f"{self.name} "

    @property
    def sort(self) -> str:
        """Place where rows are sorted by length: "collate" or "module", as in batching.sort."""
        return self.config.batching.sort

    @property
    def keys_to_lower(self) -> str:
        """Names of config keys to lower if memory runs out."""
        if self.config.batching.max_tokens is None:
            size = "batch_size"
        else:
            size = "max_tokens"
        return f"batching.{size}, data.max_length or model.hidden_size"

    @property
    def frozen_epochs(self) -> float:
        """Number of first epochs in which the vectors of tokens are frozen, by model.freeze."""
        freeze = self.config.model.freeze
        if freeze is True:
            return math.inf
        return int(freeze)

    @property
    def every_weight_learns(self) -> bool:
        """True if every weight of the model gets a gradient in every update."""
        return not self.config.model.freeze

    @property
    def is_last(self) -> bool:
        """True if no other phase of learning follows."""
        return not (self.selects_epoch and self.config.training.refit)

    def plan(self, epoch: int) -> list[Ints]:
        """Return the batches of an epoch, as arrays of row numbers of `rows`.

        The result depends only on the config, the rows and the epoch.

        Args:
            epoch: Number of the epoch, from 0.
        """
        return plan_of_epoch(self.config, self.rows, self.groups, epoch)

    def learning_rate(self, update: int, history: History) -> float:
        """Return the learning rate after a number of updates of the phase.

        Args:
            update: Number of earlier updates.
            history: Results of the epochs of training.
        """
        return learning_rate(self.settings, update, self.total_updates, plateaus(history))

    def is_over(self, progress: Progress) -> bool:
        """Return True if no epoch is left."""
        if self.selects_epoch and stops_early(progress.history, self.rule):
            return True
        return progress.epoch >= self.last_epoch

    def epoch_to_keep(self, history: History) -> int:
        """Return the number of the epoch whose weights are kept, from 1, or 0 if none is."""
        if self.selects_epoch:
            return best_epoch(history, self.rule)
        return self.last_epoch

    def losses(
        self, batch: Batch, examples: Ints, numbers: RandomNumbers, carried: CarriedStates
    ) -> Losses:
        """Return the weighted losses of the examples of a batch by the branch that learns.

        Args:
            batch: Sequences, on the device.
            examples: Row number of each row of the batch, (B,).
            numbers: Random numbers of the update.
            carried: Last state of each group. They are updated if states are carried.
        """
        context = ForwardContext(numbers, bptt=self.settings.bptt)
        states = None if self.groups is None else carried
        (logits,) = forward_carried(
            self.network.branch_logits, self.network, batch, states, context
        )
        labels, weights, of_classes = batch.labels, None, None
        if self.weights is not None:
            weights = self.weights[examples].to(labels.device)
        if self.class_weights is not None:
            of_classes = self.class_weights.to(labels.device)
        each = example_losses(logits, labels, weights, self.settings, of_classes)
        return Losses(each, are_right(logits, labels).sum())


@dataclass(frozen=True, eq=False)
class PretrainingSetup(PhaseSetup):
    """Model, rows and settings of pretraining.

    Attributes:
        pretraining: The pretraining model around the classifier.
    """

    pretraining: PretrainingModel

    section: ClassVar[str] = "pretraining"

    @property
    def model(self) -> PretrainingModel:
        """The pretraining model."""
        return self.pretraining

    @property
    def sort(self) -> str:
        """Place where rows are sorted: "collate", for the decoder reads packed batches."""
        return "collate"

    @property
    def keys_to_lower(self) -> str:
        """Names of config keys to lower if memory runs out."""
        return "pretraining.max_length, batching.batch_size or model.hidden_size"

    @property
    def frozen_epochs(self) -> float:
        """Number of first epochs in which word vectors are frozen, by model.freeze."""
        if self.config.model.freeze and self.config.model.vectors:
            return math.inf
        return 0

    @property
    def every_weight_learns(self) -> bool:
        """False, because the objective doesn't use every weight of the classifier."""
        return False

    @property
    def is_last(self) -> bool:
        """False, because training follows."""
        return False

    def epoch_to_keep(self, history: History) -> int:
        """Return 0: no epoch of pretraining is kept."""
        return 0

    def losses(
        self, batch: Batch, examples: Ints, numbers: RandomNumbers, carried: CarriedStates
    ) -> Losses:
        """Return the losses of the predicted tokens. The arguments are as in `PhaseSetup`."""
        each: Tensor = self.pretraining(batch, numbers)
        return Losses(each, each.new_zeros(()))


def plan_of_epoch(
    config: Config, rows: SequenceStore, groups: Ints | None, epoch: int
) -> list[Ints]:
    """Return the batches of an epoch, as in `PhaseSetup.plan`."""
    lengths, batching, seed = rows.lengths, config.batching, config.seed
    if groups is None:
        return plan_epoch(lengths, batching, seed=seed, epoch=epoch)
    return plan_epoch_of_groups(lengths, groups, batching, seed=seed, epoch=epoch)


def training_setup(
    config: Config, data: PreparedData, network: ClassifierNetwork, weights: RowWeights
) -> PhaseSetup:
    """Return the setup of training on train, with the rule by which training ends.

    Raises:
        DataError: If all rows of train have the weight 0.
    """
    rows, own = weights.rows_of_train(data)
    groups = carried_groups(network, rows)
    validation = data.splits.get("validation")
    updates = len(plan_of_epoch(config, rows, groups, 0))
    rule = _rule(config.training, validation, weights, updates)
    return PhaseSetup(
        name="training",
        config=config,
        settings=config.training,
        network=network,
        rows=rows,
        weights=with_mean_of_1(own),
        class_weights=weights.of_labels,
        validation=validation,
        groups=groups,
        last_epoch=rule.epochs,
        total_updates=rule.epochs * updates,
        rule=rule,
        selects_epoch=True,
    )


def refit_setup(
    training: PhaseSetup,
    network: ClassifierNetwork,
    rows: SequenceStore,
    weights: Array | None,
    history: History,
) -> PhaseSetup:
    """Return the setup of a refit, without rows to score.

    Args:
        training: The setup of training.
        network: A new classifier.
        rows: Rows of train and validation.
        weights: Weight of each of these rows, (B,), or None for equal weights.
        history: Results of the epochs of training, from which the number of epochs follows.
    """
    groups = carried_groups(network, rows)
    rule = training.rule
    updates = len(plan_of_epoch(training.config, rows, groups, 0))
    return replace(
        training,
        name="refit",
        network=network,
        rows=rows,
        weights=with_mean_of_1(weights),
        validation=None,
        groups=groups,
        last_epoch=epochs_for_refit(history, rule),
        total_updates=rule.epochs * updates,
        selects_epoch=False,
    )


def pretraining_setup(
    training: PhaseSetup, data: PreparedData, device: torch.device
) -> PretrainingSetup:
    """Return the setup of pretraining on sequences without labels.

    Args:
        training: The setup of training.
        data: Encoded splits, with the sequences without labels.
        device: Device of the decoder.
    """
    config, own, validation = training.config, training.config.pretraining, training.validation
    assert own.objective is not None
    assert data.unlabelled is not None
    model = OBJECTIVES[own.objective](training.network, own.dropout)
    model.initialize(config.seed)
    rows = split_sequences(data.unlabelled, own.max_length)
    if validation is not None:
        validation = split_sequences(validation, own.max_length)
    keys = {"lr": own.lr, "max_epochs": own.max_epochs, "augment": None}
    changed = {
        "name": "pretraining",
        "settings": config.training.model_copy(update=keys),
        "rows": rows,
        "weights": None,
        "validation": validation,
        "groups": None,
        "last_epoch": own.max_epochs,
        "total_updates": own.max_epochs * len(plan_of_epoch(config, rows, None, 0)),
        "selects_epoch": False,
        "pretraining": model.to(device),
    }
    return PretrainingSetup(**vars(training) | changed)


def _rule(
    settings: TrainingConfig, validation: SequenceStore | None, weights: RowWeights, updates: int
) -> StoppingRule:
    """Return the rule by which training ends.

    Args:
        settings: Section of the config with the number of epochs and the patience.
        validation: Rows that are scored after each epoch, or None.
        weights: Weights of the rows.
        updates: Number of updates in an epoch.
    """
    if validation is None:
        return stopping_rule(settings, updates)
    baseline = -1.0
    is_telling = validation.labels.ndim == 1 and weights.rare is None
    if settings.monitor == "accuracy" and is_telling:
        baseline = float((validation.labels == weights.class_counts.argmax()).mean())
    return stopping_rule(settings, updates, len(validation), baseline)
