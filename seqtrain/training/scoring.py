"""Scores at the end of an epoch, which processes compute together.

K branches, B rows, C classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import NamedTuple

import torch
from torch import Tensor

from seqtrain.evaluation.logits import EVALUATION_BATCHING, branch_logits
from seqtrain.evaluation.scores import Scores
from seqtrain.evaluation.scoring import score
from seqtrain.model.branches.recurrent import RecurrentBranch
from seqtrain.model.carried import carried_groups
from seqtrain.sequences.batch import map_batches
from seqtrain.sequences.plan import plan_in_order_of_length
from seqtrain.sequences.store import SequenceStore
from seqtrain.training.events import Phase
from seqtrain.training.stopping import EpochResult
from seqtrain.training.trainer import Trainer


class EpochScores(NamedTuple):
    """Scores at the end of an epoch.

    Attributes:
        loss: Loss on validation in nats, or None without validation.
        scores: Scores of the whole model on validation, or None without validation.
        result: Result by which epochs of training are compared, or None in other phases.
        logits: Logits of each branch on validation, (B, C) each. Empty without validation.
    """

    loss: float | None = None
    scores: Scores | None = None
    result: EpochResult | None = None
    logits: tuple[Tensor, ...] = ()


def shared_logits(
    trainer: Trainer, store: SequenceStore, names: Collection[str] | None = None
) -> list[Tensor]:
    """Return the logits of each branch on all rows of a store, (B, C) each, on the CPU.

    All processes must call this together. They share the batches, and each gets the whole
    result. If states are carried, rank 0 computes all batches.

    Args:
        trainer: The trainer.
        store: The rows.
        names: Names of the branches to compute, or None for all.

    Raises:
        RunError: If memory ran out, or a process is lost.
        Interrupted: If a signal asked to stop.
    """
    groups = carried_groups(trainer.network, store)
    processes = trainer.processes
    plan = plan_in_order_of_length(store.lengths, EVALUATION_BATCHING, groups)
    if groups is None:
        plan = processes.share(plan)
    elif not processes.is_first:  # a batch starts from the states of earlier ones
        plan = []
    stop = processes.raise_if_stopped
    found = branch_logits(
        trainer.network, store, trainer.device, plan=plan, before_batch=stop, names=names
    )
    processes.broadcast()  # unlike a sum, it waits without end
    return processes.sum(*found)


def classification_scores(trainer: Trainer, loss: float, accuracy: float) -> EpochScores:
    """Return the scores of the model on validation, if there is one, and the result of the epoch.

    Epochs are compared by the recurrent branch, the only one that learns. The solved ones don't
    change, and where they are good, they would hide whether it still learns.

    Args:
        trainer: The trainer, after the last update of the epoch.
        loss: Training loss in nats.
        accuracy: Training accuracy.

    Raises:
        RunError: If the loss on validation isn't finite.
    """
    settings = trainer.setup.settings
    rows = trainer.setup.validation
    if rows is None:
        value = -loss if settings.monitor == "loss" else accuracy
        result = EpochResult(
            value=value,
            error=0.0,
            loss=loss,
            train_loss=loss,
            train_accuracy=accuracy,
            model_value=value,
        )
        return EpochScores(result=result)
    logits = _validation_logits(trainer, rows)
    known = rows.labels, rows.lengths, trainer.labels
    scores = score(trainer.network.combine(logits), *known)
    own = scores
    if len(logits) > 1:
        own = score(logits[0], *known)
    _check_finite_loss(trainer, own.loss + scores.loss)
    result = EpochResult(
        value=own.monitored(settings.monitor),
        error=own.standard_error(settings.monitor),
        loss=own.loss,
        train_loss=loss,
        train_accuracy=accuracy,
        model_value=scores.monitored(settings.monitor),
    )
    return EpochScores(scores.loss, scores, result, tuple(logits))


def _validation_logits(trainer: Trainer, rows: SequenceStore) -> list[Tensor]:
    """Return the logits of each branch on validation. Those of solved branches are kept.

    The recurrent branch is the first one.
    """
    solved = trainer.network.solved_branches
    if solved and not trainer.solved_logits:
        trainer.solved_logits = shared_logits(trainer, rows, solved)
    return shared_logits(trainer, rows, [RecurrentBranch.name]) + trainer.solved_logits


@torch.no_grad()
def token_scores(trainer: Trainer, loss: float, accuracy: float) -> EpochScores:
    """Return the mean loss per predicted token on validation in nats, if there is one.

    All processes must call this together.
    """
    rows = trainer.setup.validation
    model = trainer.setup.model
    if rows is None:
        return EpochScores()
    model.eval()
    sums = torch.zeros(2, dtype=torch.float64, device="cpu")
    plan = plan_in_order_of_length(rows.lengths, EVALUATION_BATCHING)
    for _, losses in map_batches(
        model,
        rows,
        trainer.processes.share(plan),
        trainer.device,
        lower=trainer.setup.keys_to_lower,
        before_batch=trainer.processes.raise_if_stopped,
    ):
        sums += sums.new_tensor([float(losses.sum()), len(losses)])
    total, number = trainer.processes.sum(sums)[0].tolist()
    _check_finite_loss(trainer, total / number)
    return EpochScores(float(total / number))


def no_scores(trainer: Trainer, loss: float, accuracy: float) -> EpochScores:
    """Return nothing: a refit learns from the rows that could be scored."""
    return EpochScores()


SCORES: dict[Phase, Callable[[Trainer, float, float], EpochScores]] = {
    "pretraining": token_scores,
    "training": classification_scores,
    "refit": no_scores,
}
"""Maps each phase to the function that scores its epochs, from training loss and accuracy."""


def _check_finite_loss(trainer: Trainer, loss: float) -> None:
    """Raise RunError if the validation loss of the current epoch isn't finite."""
    if not math.isfinite(loss):
        raise trainer.error(
            f"epoch {trainer.progress.epoch + 1}: the validation loss is {loss}; lower "
            f"{trainer.setup.section}.lr; what was saved stays valid"
        )
