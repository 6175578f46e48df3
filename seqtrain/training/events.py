"""Events that training yields: updates, ends of epochs, and ends of phases.

The phases of a run are described in `training.phases`.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from seqtrain.evaluation.scores import Scores
from seqtrain.model.decoder import PretrainingModel

Phase: TypeAlias = Literal["pretraining", "training", "refit"]
"""Name of a phase in which weights are learned. A refit trains on train and validation together."""


@dataclass(frozen=True)
class UpdateEvent:
    """Event after each update of the weights, which learns from one batch.

    Attributes:
        phase: Phase of the run.
        epoch: Number of the epoch, from 1.
        update: Number of the update in this phase, from 1.
        batch: Number of the batch in its epoch, from 1.
        num_batches: Number of batches of the epoch.
        loss: Training loss in nats. It is the mean over the examples of the batch, or in
            pretraining over the predicted tokens.
        lr: Learning rate of the update.
        time_steps: Number of time steps of the batch's sequences, without padding.
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
    """Event at the end of each epoch, after the validation split was scored.

    An epoch is one pass over the training sequences.

    Attributes:
        phase: Phase of the run.
        epoch: Number of the epoch, from 1.
        update: Number of updates in this phase so far.
        loss: Training loss in nats, computed with dropout during the epoch. It is the mean over
            examples, or in pretraining over predicted tokens.
        accuracy: Training accuracy in [0, 1], computed in the same way. In pretraining it is 0.
        validation_loss: Mean loss of the whole model on validation in nats, without dropout, or
            None without validation. In pretraining it is the mean over predicted tokens.
        validation: Scores on validation, or None without validation and in pretraining.
        lr: Learning rate of the last update of the epoch.
        seconds: Duration of the updates, without the scoring.
        time_steps: Number of time steps that were learned from, without padding.
        padding_fraction: Share of padding if all batches of the epoch are padded, in [0, 1).
        is_best: True if the epoch is the best so far by the monitored value. If two values are
            equal, the lower loss decides. It is always False in pretraining and in a refit.
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
    """Event at the end of pretraining, of training, and of a refit.

    Attributes:
        pretrained: The pretrained model, whose encoder the classifier shares. None at the end of
            training and of a refit.
    """

    pretrained: PretrainingModel | None = None


@dataclass(frozen=True)
class CalibrationEnd:
    """Event after calibration, which may have changed the predictions of the best model.

    The trainer then has the scores of this model on validation. If calibration fitted and scored
    nothing, it yields no event.
    """


TrainingEvent: TypeAlias = UpdateEvent | EpochEvent | PhaseEnd | CalibrationEnd
"""Any event of training."""
