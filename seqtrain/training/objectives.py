"""What is learned: labels of sequences; what comes before that stands in `token_prediction.py`.

An objective gives the losses of a batch, the scores of a split, and its own state. Everything else
about training is the trainer's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from seqtrain.config.schema import Config, TrainingConfig
from seqtrain.data.augmentation import augmented
from seqtrain.data.batch import Batch, collate
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.evaluation.carried import CarriedStates
from seqtrain.evaluation.logits import Combine, carried_groups, classify, predict_logits
from seqtrain.evaluation.metrics import Scores, score_logits
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.decoder import PretrainingModel
from seqtrain.model.ngrams import combined
from seqtrain.model.randomness import RandomNumbers
from seqtrain.processes.group import ALONE, Group
from seqtrain.training.loss import class_weights, example_losses


class Losses(NamedTuple):
    """The loss of each example (or predicted token) in nats, and how many were answered rightly.

    Shape:
        each: (B,), row by row of the batch, or one per prediction. correct: ().
    """

    each: Tensor
    correct: Tensor


class Objective(Protocol):
    """What a trainer asks of what it trains.

    Attributes:
        model: what learns, on the device.
        device: where to compute.
        store: the sequences to learn from.
        groups: group of each of them, where states are carried on in groups; else None.
        config: the whole config; seed and batching are the trainer's.
        settings: how to train.
        group: the processes that train together.
        pretraining: whether it comes before training.
        refit: whether it comes after training, as `Refit` does.
        key: the config's section where its learning rate stands.
        lower: keys to lower where memory runs out.
    """

    model: SequenceClassifier | PretrainingModel
    device: torch.device
    store: SequenceStore
    groups: Ints | None
    config: Config
    settings: TrainingConfig
    group: Group
    pretraining: bool
    refit: bool
    key: str
    lower: str

    def collate(self, rows: SequenceStore, epoch: int, number: int) -> Batch:
        """Put the sequences of a batch together; it has this number in its epoch, both from 0."""

    def losses(self, batch: Batch, random: RandomNumbers) -> Losses:
        """Return the losses of a batch, with the random numbers of the update."""

    def score(self, before_batch: Callable[[], None]) -> tuple[float | None, Scores | None]:
        """Return the mean loss of the validation split and its scores, where there are any."""

    def monitored(self, loss: float, accuracy: float, scores: Scores | None) -> float | None:
        """Return the value of an epoch, greater is better; None: every epoch is as good."""

    def suspects(self, batch: Batch, losses: Tensor) -> Ints:
        """Return the examples whose losses aren't finite; all where it is unknown."""

    def share_carried(self, batch: Batch, rows: Tensor) -> None:
        """Learn from the other processes where their rows of a batch ended.

        Args:
            batch: on the device.
            rows: of the batch that this process computed.
        """

    def begin_epoch(self) -> None:
        """Forget what was carried through the epoch before."""

    def tensors(self) -> dict[str, Tensor]:
        """Return its own state, by name."""

    def load(self, tensors: dict[str, Tensor], learned: Ints) -> None:
        """Put back its own state.

        Args:
            tensors: what `tensors` returned, among others.
            learned: examples of the epoch under way that were learned from.

        Raises:
            ValueError: it doesn't fit.
        """


class Classification:
    """A classifier learns the labels of sequences; attributes as `Objective` says.

    Args:
        model: on the device.
        train: what to learn from.
        validation: what to monitor, or None (then train's own running scores are monitored).
        names: label of each class index.
        config: the whole config.
        device: where to compute.
        group: the processes that train together.

    Raises:
        ConfigError: class weights name a label that train lacks, or leave one out.
    """

    pretraining = False
    refit = False
    key = "training"

    def __init__(
        self,
        model: SequenceClassifier,
        train: SequenceStore,
        validation: SequenceStore | None,
        names: Sequence[str],
        config: Config,
        device: torch.device,
        group: Group = ALONE,
    ) -> None:
        self.group = group
        self.model: SequenceClassifier | PretrainingModel = model
        self.classifier = model
        self.store = train
        self.validation = validation
        self.names = names
        self.config = config
        self.settings = config.training
        self.device = device
        self.groups = carried_groups(model, train)
        self.carried = CarriedStates()
        size = "batch_size" if config.batching.max_tokens is None else "max_tokens"
        self.lower = f"batching.{size}, data.max_length or model.hidden_size"
        weights = class_weights(config.training, train.labels, names)
        self.class_weights = None if weights is None else weights.to(device)

    def collate(self, rows: SequenceStore, epoch: int, number: int) -> Batch:
        """Put the sequences of a batch together, changed as training.augment has it."""
        amounts, config = self.settings.augment, self.config
        if amounts is not None:
            width = rows.values.shape[1]
            rows = augmented(
                rows,
                shift=amounts.get("shift", 0.0),
                slice=amounts.get("slice", 0.0),
                channels=width // 2 if config.data.missing == "mask" else width,
                seed=config.seed,
                epoch=epoch,
                batch=number,
            )
        return collate(rows, config.batching.sort)

    def losses(self, batch: Batch, random: RandomNumbers) -> Losses:
        """Return the cross-entropy of each example, row by row of the batch; of all parts' sum."""
        carried = None if self.groups is None else self.carried
        parts = classify(self.classifier, batch, carried, bptt=self.settings.bptt, random=random)
        each, *others = [
            example_losses(p, batch.labels, self.class_weights, self.settings) for p in parts
        ]
        for losses in others:
            each = each + losses
        return Losses(each, (combined(parts).argmax(1) == batch.labels).sum())

    def score(self, before_batch: Callable[[], None]) -> tuple[float | None, Scores | None]:
        """Score the validation split."""
        if self.validation is None:
            return None, None
        logits = shared_logits(
            self.classifier, self.validation, self.device, self.group, before_batch
        )
        scores = score_logits(logits, self.validation, self.names)
        return scores.loss, scores

    def monitored(self, loss: float, accuracy: float, scores: Scores | None) -> float | None:
        """Return validation's monitored value; without validation train's own."""
        if scores is not None:
            return scores.monitored(self.settings.monitor)
        return -loss if self.settings.monitor == "loss" else accuracy

    def suspects(self, batch: Batch, losses: Tensor) -> Ints:
        """Return the examples whose own loss isn't finite, or those of the whole batch."""
        bad = ~torch.isfinite(batch.restore(losses.detach().cpu())).numpy()
        return batch.examples[bad] if bad.any() else batch.examples

    def share_carried(self, batch: Batch, rows: Tensor) -> None:
        """Learn the states that the other processes' rows ended in: one process alone has each."""
        if self.groups is None or self.group.size == 1:
            return
        own = self.carried.starts(batch.groups, self.classifier)
        assert own is not None
        ended, rows = torch.zeros_like(own), rows.to(own.device)
        ended[:, :, rows] = own[:, :, rows]
        self.carried.keep(batch.groups, self.group.sum(ended))

    def begin_epoch(self) -> None:
        """Every group starts from zeros."""
        self.carried.forget()

    def tensors(self) -> dict[str, Tensor]:
        """Return the states that groups ended in."""
        return {} if self.groups is None else self.carried.tensors(self.classifier)

    def load(self, tensors: dict[str, Tensor], learned: Ints) -> None:
        """Put back the states that groups ended in: of every group learned from, and no other."""
        if self.groups is None:
            return
        self.carried.load(tensors, self.classifier)
        groups = self.groups[learned]
        if {*tensors["carried.groups"].tolist()} != {*groups[groups >= 0].tolist()}:
            raise ValueError("carried.groups: not those of the epoch so far")


def shared_logits(
    model: SequenceClassifier,
    store: SequenceStore,
    device: torch.device,
    group: Group,
    before_batch: Callable[[], None],
    combine: Combine | None = None,
) -> Tensor:
    """Return the logits of all rows, which the processes compute together; signals reach all.

    Arguments, shape and errors are those of `predict_logits`.
    """
    share = group.rank, group.size
    logits = predict_logits(
        model, store, device, before_batch=before_batch, combine=combine, share=share
    )
    if group.size == 1:
        return logits
    if carried_groups(model, store) is not None:
        group.tell(None, patiently=True)  # while the first computes alone
    asked = logits.new_tensor(group.asked_to_stop())
    both = group.sum(torch.cat((logits.flatten(), asked)).to(device)).cpu()
    flat, came = both.split_with_sizes([logits.numel(), len(asked)])
    group.heed(came.tolist())
    return flat.view_as(logits)


class Refit(Classification):
    """A new classifier learns from train and validation together, which nothing monitors.

    Args:
        model: on the device, with its initial weights.
        train: train and validation.
        names: label of each class index.
        config: the whole config.
        device: where to compute.
        group: the processes that train together.
    """

    refit = True

    def __init__(
        self,
        model: SequenceClassifier,
        train: SequenceStore,
        names: Sequence[str],
        config: Config,
        device: torch.device,
        group: Group = ALONE,
    ) -> None:
        super().__init__(model, train, None, names, config, device, group)
        self.settings = config.training.model_copy(update={"patience": None})

    def monitored(self, loss: float, accuracy: float, scores: Scores | None) -> float | None:
        """Return nothing: how many epochs it takes is known."""
        return None
