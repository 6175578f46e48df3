"""The training loop: updates and epochs, as a generator of events.

The loop doesn't read or write files, and doesn't print. At every event, the trainer is up to date
and can be saved.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from itertools import count

import torch
from torch import Tensor

from seqtrain.errors import RunError
from seqtrain.model.branches.recurrent import recurrent_branch
from seqtrain.sequences.batch import Batch, collate, map_batches
from seqtrain.sequences.plan import padding_fraction
from seqtrain.sequences.store import SequenceStore
from seqtrain.tables.blocks import Ints
from seqtrain.text import listed
from seqtrain.training.events import EpochEvent, UpdateEvent
from seqtrain.training.gradients import changed_rows, compute_gradients
from seqtrain.training.scoring import SCORES
from seqtrain.training.trainer import Trainer

SHOWN_LINES, SHOWN_FILES = 10, 3
"""Largest numbers of rows that an error names: in one file, and in several files."""


def train_epochs(trainer: Trainer) -> Iterator[UpdateEvent | EpochEvent]:
    """Train from the trainer's position to the end of the current phase.

    Yields:
        An `UpdateEvent` after each update, and an `EpochEvent` at the end of each epoch.

    Raises:
        RunError: If a loss or a gradient isn't finite, if memory ran out, or if a process is lost.
        Interrupted: If a signal came while the validation split was scored.
    """
    while not trainer.is_over:
        plan = trainer.setup.plan(trainer.progress.epoch)
        yield from _updates(trainer, plan)
        yield end_epoch(trainer, plan)


def _updates(trainer: Trainer, plan: list[Ints]) -> Iterator[UpdateEvent]:
    """Make the remaining updates of the current epoch, and yield an event after each."""
    progress = trainer.progress
    numbers = count(progress.batches)

    def prepare(rows: SequenceStore) -> Batch:
        return collate(changed_rows(trainer, rows, next(numbers)), trainer.setup.sort)

    is_frozen = progress.epoch < trainer.setup.frozen_epochs
    recurrent_branch(trainer.network).freeze_embedding(frozen=is_frozen)
    trainer.setup.model.train()
    began = time.perf_counter()
    for _, event in map_batches(
        lambda batch: update(trainer, batch, len(plan)),
        trainer.setup.rows,
        plan[progress.batches :],
        trainer.device,
        collate=prepare,
        lower=trainer.setup.keys_to_lower,
        tf32=trainer.setup.settings.precision == "tf32",
    ):
        progress.seconds += time.perf_counter() - began
        yield event
        began = time.perf_counter()


def update(
    trainer: Trainer, batch: Batch, num_batches: int = 1, lr: float | None = None
) -> UpdateEvent:
    """Update the weights by the gradient of the mean loss of a batch.

    Args:
        trainer: The trainer. Its progress counts the update.
        batch: Sequences, on the device.
        num_batches: Number of batches of the epoch, for the event.
        lr: Learning rate, or None for that of the schedule.

    Raises:
        RunError: If the loss or a gradient isn't finite: then no weight has changed. Also if
            another process is lost.
    """
    progress = trainer.progress
    optimizer = trainer.optimizer
    if lr is None:
        lr = trainer.setup.learning_rate(progress.updates, progress.history)
    optimizer.forget_gradients()
    total, losses, number = compute_gradients(trainer, batch)
    loss, correct, norm = optimizer.step(lr, total / number, losses.correct)
    for name, value in (("loss", loss), ("gradient", norm)):
        if not math.isfinite(value):
            raise _not_finite(trainer, name, batch, losses.each)
    time_steps = int(batch.lengths.sum())
    progress.add_batch(loss, int(correct), number, time_steps)
    return UpdateEvent(
        phase=progress.phase,
        epoch=progress.epoch + 1,
        update=progress.updates,
        batch=progress.batches,
        num_batches=num_batches,
        loss=loss,
        lr=lr,
        time_steps=time_steps,
    )


def end_epoch(trainer: Trainer, plan: list[Ints]) -> EpochEvent:
    """Score the validation split, begin the next epoch, and return the event.

    If the epoch is the best so far, or the last one of a refit, keep the weights. Forget carried
    states.

    Args:
        trainer: The trainer, after the last update of the epoch. It is changed.
        plan: Row numbers of each batch of the epoch.

    Raises:
        RunError: If the validation loss isn't finite, or if weights differ between the processes.
    """
    progress = trainer.progress
    setup = trainer.setup
    lr = setup.learning_rate(max(0, progress.updates - 1), progress.history)
    check_equal_weights(trainer)
    loss = progress.loss_sum / progress.examples
    accuracy = progress.correct / progress.examples
    found = SCORES[setup.name](trainer, loss, accuracy)
    time_steps = progress.time_steps
    seconds = progress.seconds
    progress.end_epoch(found.result)
    if trainer.holds_model_to_keep:
        trainer.keep_best()
    if _calibrates_refit(trainer):
        trainer.kept_logits = torch.stack([logits.float() for logits in found.logits])
    trainer.carried.forget()
    return EpochEvent(
        phase=progress.phase,
        epoch=progress.epoch,
        update=progress.updates,
        loss=loss,
        accuracy=accuracy,
        validation_loss=found.loss,
        validation=found.scores,
        lr=lr,
        seconds=seconds,
        time_steps=time_steps,
        padding_fraction=padding_fraction(plan, setup.rows.lengths),
        is_best=setup.selects_epoch and trainer.best_epoch == progress.epoch,
    )


def _calibrates_refit(trainer: Trainer) -> bool:
    """Return True if the logits of this epoch calibrate a refit, which may have as many epochs."""
    settings = trainer.config.training
    is_calibrated = settings.refit and settings.calibration != "none"
    is_last = trainer.refit_epochs == trainer.progress.epoch
    return is_calibrated and trainer.setup.selects_epoch and is_last


def check_equal_weights(trainer: Trainer) -> None:
    """Compare the weights of all processes, each of which must call this.

    Raises:
        RunError: If a weight of a process differs from rank 0 in any bit. Different hardware or
            versions may be the cause.
    """
    content = (
        weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
        for weight in trainer.setup.model.state_dict().values()
    )
    others = trainer.processes.unlike_first(content)
    if others:
        raise trainer.error(
            f"epoch {trainer.progress.epoch + 1}: weights differ between rank 0 and {others}; "
            "what was saved after the epoch before stays valid; check that their hardware and "
            "versions are equal",
        )


def _not_finite(trainer: Trainer, name: str, batch: Batch, losses: Tensor) -> RunError:
    """Return the error for a loss or a gradient that isn't finite.

    The error names the rows whose losses aren't finite. If no such row is known, it names all rows
    of the batch.

    Args:
        trainer: The trainer.
        name: "loss" or "gradient".
        batch: The batch.
        losses: Losses of the batch's rows, or of tokens.
    """
    store = trainer.setup.rows
    losses = losses.cpu()
    rows = batch.examples
    if len(losses) == len(rows) and not bool(losses.isfinite().all()):
        rows = rows[~batch.restore(losses).isfinite().numpy()]
    if len(store.files) > 1:
        places = dict.fromkeys(store.place(row) for row in rows.tolist())
        where = listed(list(places), SHOWN_FILES)
    else:
        shown = listed([str(store.lines[row]) for row in rows.tolist()], SHOWN_LINES)
        where = f"train lines {shown} (of a folder: rows through its files)"
    return trainer.error(
        f"update {trainer.progress.updates + 1}: the {name} isn't finite for {where}; nothing was "
        f"updated; lower {trainer.setup.section}.lr, or look at these rows",
    )
