"""Events of training: updates, ends of epochs, and ends of phases."""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from seqtrain.evaluation.scores import Scores
from seqtrain.model.decoder import PretrainingModel

Phase: TypeAlias = Literal["pretraining", "training", "refit"]
"""A phase in which weights are learned. A refit trains on train and validation together."""


@dataclass(frozen=True)
class UpdateEvent:
    """An update of the weights.

    Attributes:
        phase: Phase of the run.
        epoch: Number of the epoch, from 1.
        update: Number of the update in this phase, from 1.
        batch: Number of the batch in its epoch, from 1.
        num_batches: Number of batches of the epoch.
        loss: Mean over the batch's examples (in pretraining over predicted tokens) and over the
            branches, in nats.
        lr: Learning rate.
        time_steps: Time steps of the batch's sequences, without padding.
    """

    phase: Phase
    epoch: int
    update: int
    batch: int
    num_batches: int
    loss: float
    lr: float
    time_steps: int


@dataclass(frozen=True)
class EpochEvent:
    """The end of an epoch: a pass over the training sequences, and the scores of validation.

    Attributes:
        phase: Phase of the run.
        epoch: Number of the epoch, from 1.
        update: Number of updates in this phase so far.
        loss: Mean training loss in nats, with dropout on: over examples and branches, or over
            predicted tokens in pretraining.
        accuracy: Training accuracy, with dropout on. It means nothing in pretraining.
        validation_loss: Loss with dropout off, or None without a validation split.
        validation: Scores of validation, or None without the split and in pretraining.
        lr: Learning rate of the last update.
        seconds: Time of the updates, without evaluation.
        time_steps: Time steps learned from, without padding.
        padding_fraction: Share of padding in the padded form of the batches, in [0, 1).
        is_best: True if the monitored value is the best so far. Never true in pretraining.
    """

    phase: Phase
    epoch: int
    update: int
    loss: float
    accuracy: float
    validation_loss: float | None
    validation: Scores | None
    lr: float
    seconds: float
    time_steps: int
    padding_fraction: float
    is_best: bool


@dataclass(frozen=True)
class PhaseEnd:
    """The end of pretraining, training, or a refit.

    Attributes:
        pretrained: Model of pretraining with the encoder that training starts with, or None after
            another phase.
    """

    pretrained: PretrainingModel | None = None


@dataclass(frozen=True)
class CalibrationEnd:
    """The end of calibration. It changed how the best model predicts."""


TrainingEvent: TypeAlias = UpdateEvent | EpochEvent | PhaseEnd | CalibrationEnd


def perplexity(loss: float) -> float:
    """Return the perplexity of a mean loss in nats, at most 1e304 to avoid an overflow."""
    return math.exp(min(loss, 700.0))
