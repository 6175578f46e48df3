"""What the trainer reports: updates, and the ends of epochs."""

import math
from dataclasses import dataclass

from seqtrain.evaluation.scores import Scores


@dataclass(frozen=True)
class UpdateEvent:
    """One update was made.

    Attributes:
        epoch, update, batch: numbers from 1, and num_batches of the epoch.
        loss: mean over the batch's examples (in pretraining over predicted tokens), in nats.
        time_steps: of the batch's sequences, padding left out.
        refit: whether it retrains on train and validation together.
    """

    pretraining: bool
    epoch: int
    update: int
    batch: int
    num_batches: int
    loss: float
    lr: float
    time_steps: int
    refit: bool = False


@dataclass(frozen=True)
class EpochEvent:
    """One pass over the sequences to learn from is over, and validation is scored.

    Attributes:
        epoch, update: its number, from 1, and updates made so far.
        loss, accuracy: means over examples as they were learned, dropout on, the loss in nats; in
            pretraining over predicted tokens, and accuracy means nothing.
        validation_loss, validation: dropout off; None: no validation split; in pretraining there
            are no scores.
        lr: learning rate of the last update.
        seconds: time spent learning, evaluation left out.
        time_steps: learned from, padding left out.
        padding_fraction: share of padding in the padded form of the batches, in [0, 1).
        is_best: whether the monitored value is the best so far; never in pretraining.
        refit: whether it retrains on train and validation together.
    """

    pretraining: bool
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
    refit: bool = False


def perplexity(loss: float) -> float:
    """Return the perplexity of a mean loss in nats; at most 1e304, for larger ones overflow."""
    return math.exp(min(loss, 700.0))
