"""Objectives of training: the loss of a batch, and the scores of validation."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from seqtrain.config.schema import Config, TrainingConfig
from seqtrain.errors import ConfigError
from seqtrain.evaluation.logits import (
    EVALUATION_BATCHING,
    CarriedStates,
    are_right,
    branch_logits,
    carried_groups,
    forward_carried,
)
from seqtrain.evaluation.scores import Scores
from seqtrain.evaluation.scoring import score
from seqtrain.model.branches.branch import ForwardContext
from seqtrain.model.decoder import PretrainingModel
from seqtrain.model.network import ClassifierNetwork, combined
from seqtrain.model.randomness import RandomNumbers
from seqtrain.sequences.batch import Batch, augmented
from seqtrain.sequences.labels import class_counts, rare_class
from seqtrain.sequences.plan import plan_in_order_of_length
from seqtrain.sequences.store import Array, Ints, SequenceStore
from seqtrain.text import quote
from seqtrain.training.distributed import SINGLE, Processes
from seqtrain.training.events import Phase

KEPT_LOGITS = "validation.logits"
"""Name, in a checkpoint, of the logits on validation that calibrate a refit."""


class Losses(NamedTuple):
    """Losses of a batch.

    Attributes:
        each: Loss of each example, or of each predicted token, in nats, (B,).
        correct: Number of correct predictions, a scalar tensor.
    """

    each: Tensor
    correct: Tensor


class Objective:
    """Base of objectives: the model, the data and the loss of one phase of training.

    Args:
        model: The classifier, or a pretraining model around it.
        store: The sequences to train on.
        validation: The split to score after each epoch, or None.
        config: The config.
        settings: Section of the config with the settings of this phase.
        device: Device that trains.
        processes: The processes that train together.

    Attributes:
        phase: Phase of the run.
        classifier: The classifier that is trained or pretrained.
        groups: Number of the group of each sequence, or None if states aren't carried within
            groups.
        carried: Last state of each group, which its next sequence starts from.
        key: Name of the config's section with the learning rate.
        sort: Value of batching.sort: where the rows of a batch are sorted by length. In pretraining
            it is always "collate".
        lower: Names of config keys to lower if memory runs out.
        baseline: Accuracy of the majority-class baseline on validation, or -1 if the monitored
            values can't be compared with it.
        num_branches: Number of branches whose losses `losses` adds up.
        kept_logits: Logits of K branches on B rows of validation for C classes, (K, B, C), by which
            the model of a refit will be calibrated. They are computed after as many epochs as the
            refit will have. The tensor is empty before the first epoch, and without a calibrated
            refit.
    """

    phase: Phase = "training"
    baseline = -1.0
    num_branches = 1
    key = "training"
    sort = "collate"
    lower = ""

    def __init__(
        self,
        model: ClassifierNetwork | PretrainingModel,
        store: SequenceStore,
        validation: SequenceStore | None,
        config: Config,
        settings: TrainingConfig,
        device: torch.device,
        processes: Processes,
    ) -> None:
        self.model = model
        self.store = store
        self.validation = validation
        self.config = config
        self.settings = settings
        self.device = device
        self.processes = processes
        self.classifier = model.classifier if isinstance(model, PretrainingModel) else model
        self.groups: Ints | None = None
        self.carried = CarriedStates()
        self.kept_logits = torch.zeros(0, device="cpu")

    def freezes_embedding(self, epoch: int) -> bool:
        """Return True if the vectors of tokens are frozen in an epoch, from 0, by model.freeze."""
        freeze = self.config.model.freeze
        return freeze if isinstance(freeze, bool) else epoch < freeze

    def augment(self, rows: SequenceStore, epoch: int, number: int) -> SequenceStore:
        """Return the sequences of a batch, randomly changed if training.augment is set.

        Args:
            rows: The sequences.
            epoch: Number of the epoch, from 0.
            number: Number of the batch in the epoch.
        """
        amounts, config = self.settings.augment, self.config
        if amounts is None:
            return rows
        width = rows.values.shape[1]
        return augmented(
            rows,
            shift=amounts.get("shift", 0.0),
            slice=amounts.get("slice", 0.0),
            channels=width // {"error": 1, "mask": 2, "last": 3}[config.data.missing],
            seed=config.seed,
            epoch=epoch,
            batch=number,
        )

    def losses(self, batch: Batch, random: RandomNumbers) -> Losses:
        """Return the losses of a batch, with their computation graph for backward.

        Args:
            batch: The batch, on the device.
            random: Random numbers of the update.
        """
        raise NotImplementedError

    def score(self) -> tuple[float | None, Scores | None]:
        """Return the mean loss on validation in nats, and the scores.

        In pretraining, the scores are None. Without validation, both are None. All processes must
        call this function together.
        """
        raise NotImplementedError

    def monitored(self, loss: float, accuracy: float, scores: Scores | None) -> float | None:
        """Return the value by which epochs are compared, or None if they aren't compared.

        A greater value is better.

        Args:
            loss: Mean loss on train in the epoch, in nats, added up over the branches.
            accuracy: Accuracy on train in the epoch.
            scores: Scores of validation, or None.
        """
        return None

    def keep_logits(self) -> None:
        """Set `kept_logits` to the logits on validation of this epoch, if a refit may need them."""

    def tensors(self) -> dict[str, Tensor]:
        """Return the state that a checkpoint must contain, as tensors by name."""
        return {}

    def load(self, tensors: dict[str, Tensor], learned: Ints) -> None:
        """Restore the state that `tensors` returned. This base class has none, and does nothing.

        Args:
            tensors: Tensors of the checkpoint by name.
            learned: Row numbers that were trained on in the current epoch so far.

        Raises:
            ValueError: If the tensors don't fit the objective.
        """


class Classification(Objective):
    """The objective of training a classifier on labelled sequences.

    The monitored value is the value of training.monitor on validation. Without validation, it is
    the loss on train if training.monitor is loss, or else the accuracy on train. A refit has a
    fixed number of epochs and monitors nothing.

    Args:
        model: The classifier.
        train: The sequences to train on.
        validation: The split to score after each epoch, or None.
        names: Label of each class.
        config: The config.
        device: Device that trains.
        processes: The processes that train together.
        refit: True for a refit.

    Raises:
        ConfigError: If class weights name a label that train lacks, or leave out a label of train.
    """

    def __init__(
        self,
        model: ClassifierNetwork,
        train: SequenceStore,
        validation: SequenceStore | None,
        names: Sequence[str],
        config: Config,
        device: torch.device,
        processes: Processes = SINGLE,
        *,
        refit: bool = False,
    ) -> None:
        settings = config.training
        if refit:
            settings = settings.model_copy(update={"patience": None})
        super().__init__(model, train, validation, config, settings, device, processes)
        self.phase = "refit" if refit else "training"
        self.sort = config.batching.sort
        self.num_branches = len(model.branch_names)
        self.sample_weight: Tensor | None = None
        self._solved_logits: list[Tensor] = []
        self._epoch_logits: list[Tensor] = []
        self.names = names
        self.groups = carried_groups(model, train)
        size = "batch_size" if config.batching.max_tokens is None else "max_tokens"
        self.lower = f"batching.{size}, data.max_length or model.hidden_size"
        weights = class_weights(config.training, train.labels, names)
        self.class_weights = None if weights is None else weights.to(device)
        counts = class_counts(train.labels, len(names))
        is_telling = train.labels.ndim == 1 and rare_class(counts.tolist()) is None
        if validation is not None and settings.monitor == "accuracy" and is_telling:
            self.baseline = float((validation.labels == counts.argmax()).mean())

    def set_sample_weights(self, weights: Array) -> None:
        """Multiply the loss of each example by a weight, scaled so that the mean weight is 1.

        Args:
            weights: Weight of each example of the store, (N,).
        """
        self.sample_weight = torch.from_numpy(weights / weights.mean())

    def losses(self, batch: Batch, random: RandomNumbers) -> Losses:
        """Return the cross-entropy of each example, added up over the branches.

        The losses are multiplied by the weights of classes and of examples, if there are any.
        Correct predictions are counted by the mean of the branches' logits. If states are carried,
        the states after the batch are kept for the next sequences of the groups.
        """
        carried = None if self.groups is None else self.carried
        context = ForwardContext(random, bptt=self.settings.bptt)
        compute = self.classifier.branch_logits
        branches = forward_carried(compute, self.classifier, batch, carried, context)
        labels = torch.cat([batch.labels] * len(branches))
        each = example_losses(torch.cat(branches), labels, self.class_weights, self.settings)
        each = each.view(len(branches), -1).sum(0)
        if self.sample_weight is not None:
            each = each * self.sample_weight[batch.examples].to(each)
        return Losses(each, are_right(combined(branches), batch.labels).sum())

    def score(self) -> tuple[float | None, Scores | None]:
        """Return the loss and the scores of validation, or None for both without validation."""
        if self.validation is None:
            return None, None
        self._epoch_logits, rows = self._validation_logits(), self.validation
        logits = self.classifier.combine(self._epoch_logits)
        scores = score(logits, rows.labels, rows.lengths, self.names)
        return scores.loss, scores

    def _validation_logits(self) -> list[Tensor]:
        """Return the logits of each branch on validation, (B, C) each.

        Solved branches are computed only once.
        """
        assert self.validation is not None
        network, solved = self.classifier, self.classifier.solved_branches
        shared = network, self.validation, self.device, self.processes
        if solved and not self._solved_logits:
            self._solved_logits = shared_logits(*shared, names=solved)
        found = dict(zip(solved, self._solved_logits, strict=True))
        learning = [name for name in network.branch_names if name not in solved]
        found |= zip(learning, shared_logits(*shared, names=learning), strict=True)
        return [found[name] for name in network.branch_names]

    def monitored(self, loss: float, accuracy: float, scores: Scores | None) -> float | None:
        """Return the value of training.monitor on validation. In a refit, return None.

        Without validation, return the loss on train if training.monitor is loss, or else the
        accuracy on train. A loss is negated, so that a greater value is better.
        """
        if self.phase == "refit":
            return None
        if scores is not None:
            return scores.monitored(self.settings.monitor)
        return -loss if self.settings.monitor == "loss" else accuracy

    def keep_logits(self) -> None:
        """Set `kept_logits` to the logits of this epoch if a calibrated refit follows."""
        settings = self.settings
        if settings.refit and settings.calibration != "none" and self.phase == "training":
            self.kept_logits = torch.stack([logits.float() for logits in self._epoch_logits])

    def tensors(self) -> dict[str, Tensor]:
        """Return the state that a checkpoint must contain, as tensors by name.

        If states are carried, these are the states of the groups. Without carried states, it is
        `kept_logits`. The dict is empty if there are neither states nor logits.
        """
        if self.groups is not None:
            return self.carried.tensors(self.classifier)
        return {KEPT_LOGITS: self.kept_logits} if len(self.kept_logits) else {}

    def load(self, tensors: dict[str, Tensor], learned: Ints) -> None:
        """Restore the state that `tensors` returned.

        Args:
            tensors: Tensors of the checkpoint by name.
            learned: Row numbers that were trained on in the current epoch so far. If states are
                carried, the tensors must have the state of each group of these rows, and of no
                other group.

        Raises:
            ValueError: If the tensors don't fit the data.
        """
        if self.groups is None:
            self._load_logits(tensors.get(KEPT_LOGITS))
            return
        self.carried.load(tensors, self.classifier)
        groups = self.groups[learned]
        if {*tensors["carried.groups"].tolist()} != {*groups[groups >= 0].tolist()}:
            raise ValueError("carried.groups: not those of the epoch so far")

    def _load_logits(self, logits: Tensor | None) -> None:
        if logits is None or self.validation is None:
            return
        shape = self.num_branches, len(self.validation), len(self.names)
        if logits.shape != shape or logits.dtype != torch.float32 or not logits.isfinite().all():
            raise ValueError(f"{KEPT_LOGITS}: expected finite numbers, {shape}")
        self.kept_logits = logits


def shared_logits(
    model: ClassifierNetwork,
    store: SequenceStore,
    device: torch.device,
    processes: Processes,
    *,
    names: Collection[str] | None = None,
) -> list[Tensor]:
    """Return the logits of each branch on all rows of a store, (B, C) each, on the CPU.

    Rows have the order of the store, and branches have the order of the model.

    All processes must call this function together. They share the batches, and each gets the whole
    result. If states are carried, rank 0 computes all batches.

    Args:
        model: The classifier.
        store: The rows.
        device: Device that computes.
        processes: The processes that train together.
        names: Names of the branches to compute, or None for all.

    Raises:
        RunError: If memory ran out, or a process is lost.
        Interrupted: If a signal asked to stop.
    """
    groups, stop = carried_groups(model, store), processes.raise_if_stopped
    plan = plan_in_order_of_length(store.lengths, EVALUATION_BATCHING, groups)
    if groups is None:
        plan = processes.share(plan)
    elif not processes.is_first:  # a batch starts from the states of earlier ones
        plan = []
    branches = branch_logits(model, store, device, plan=plan, before_batch=stop, names=names)
    processes.broadcast()  # unlike a sum, it waits without end
    return processes.sum(*branches)


def example_losses(
    logits: Tensor, labels: Tensor, weights: Tensor | None, config: TrainingConfig
) -> Tensor:
    """Return the cross-entropy of each example in nats, times the weight of its class.

    In a multi-label task, the loss is the sum of the binary cross-entropies of all classes. The
    weight of a class then applies to examples that have the class.

    The loss of a batch is the plain mean of these losses. torch's weighted mean would depend on the
    other examples of the batch.

    Args:
        logits: Logits of each example, (B, C).
        labels: Encoded labels, (B,), or (B, C) in a multi-label task.
        weights: Weight of each class, (C,), or None for equal weights.
        config: Section of the config with label_smoothing.

    Returns:
        The losses, (B,) float32.
    """
    if labels.ndim == 2:
        smooth = config.label_smoothing
        return functional.binary_cross_entropy_with_logits(
            logits.float(),
            (labels > 0) * (1 - smooth) + smooth / 2,
            pos_weight=weights,
            reduction="none",
        ).sum(1)
    return cross_entropy(logits.float(), labels, weights, config.label_smoothing)


def cross_entropy(
    logits: Tensor, labels: Tensor, weights: Tensor | None, smoothing: float
) -> Tensor:
    """Return torch's cross-entropy of each example, (B,), without its threads.

    torch's log_softmax wakes all threads however small the batch is. On a busy machine this takes
    longer than the whole update.
    """
    losses = logits.logsumexp(1, keepdim=True) - logits
    if weights is not None:
        losses = losses * weights
    of_labels = losses.gather(1, labels.unsqueeze(1)).squeeze(1)
    return (1 - smoothing) * of_labels + smoothing * losses.mean(1)


def class_weights(config: TrainingConfig, labels: Array, names: Sequence[str]) -> Tensor | None:
    """Return the weight of each class in the loss, (C,) float32, or None for equal weights.

    Balanced weights are as in scikit-learn: number of examples / (number of classes * number of
    examples of the class). In a multi-label task they are the number of examples without the class
    / the number of examples with it.

    Args:
        config: Section of the config with class_weights.
        labels: Encoded labels of train, (B,) or (B, C).
        names: Names of the classes.

    Raises:
        ConfigError: If the config's weights name a label that `names` lacks, or leave out a label
            of `names`.
    """
    given = config.class_weights
    if given is None:
        return None
    if given == "balanced":
        counts = torch.tensor(class_counts(labels, len(names)), device="cpu")
        if labels.ndim == 2:
            return (len(labels) - counts) / counts.clamp(min=1).float()
        return counts.sum() / (len(names) * counts.clamp(min=1).float())
    weights = dict(given)
    allowed = ", ".join(quote(name) for name in names)
    problems = [
        f"training.class_weights: found label {quote(name)}; expected one of: {allowed}"
        for name in sorted(weights.keys() - set(names))
    ] + [
        f"training.class_weights: label {quote(name)} has no weight"
        for name in names
        if name not in weights
    ]
    if problems:
        raise ConfigError(*problems)
    return torch.tensor([weights[name] for name in names], dtype=torch.float32, device="cpu")
