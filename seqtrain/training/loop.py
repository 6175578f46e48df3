"""The training loop: a generator of events that makes the updates and epochs of a phase.

The loop doesn't read or write files, and doesn't print. `RunWriter` writes files at the events.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from itertools import count

from seqtrain.sequences.batch import Batch, collate, map_batches
from seqtrain.sequences.plan import padding_fraction
from seqtrain.sequences.store import Ints, SequenceStore
from seqtrain.training.events import EpochEvent, UpdateEvent
from seqtrain.training.learner import Learner


def train(
    learner: Learner, must_settle: Callable[[int], bool] = lambda update: True
) -> Iterator[UpdateEvent | EpochEvent]:
    """Train from the position of the learner until its last epoch, or until training stops early.

    Args:
        learner: The learner. It is changed.
        must_settle: Function that is called with the number of each update in this phase, from 1.
            If it returns True, the caller can save the learner at the event of this update. If it
            returns False, the next update may already be queued, so that a GPU doesn't wait for the
            host.

    Yields:
        An `UpdateEvent` after each update, and an `EpochEvent` at the end of each epoch.

    Raises:
        RunError: If a loss or a gradient isn't finite, if memory ran out, or if a process is lost.
        Interrupted: If a signal came while the validation split was scored.
    """
    progress = learner.progress
    while progress.epoch < learner.last_epoch and not learner.stopped_early:
        plan = learner.plan(progress.epoch)
        yield from _updates(learner, plan, must_settle)
        yield _end_epoch(learner, plan)


def _updates(
    learner: Learner, plan: list[Ints], must_settle: Callable[[int], bool]
) -> Iterator[UpdateEvent]:
    """Make the remaining updates of the current epoch, and yield an event after each.

    Args:
        learner: The learner.
        plan: Row indices of each batch of the whole epoch.
        must_settle: See `train`.
    """
    objective, progress = learner.objective, learner.progress
    numbers = count(progress.batches_done)
    may_queue = learner.optimizer.is_fused and objective.processes.size == 1
    began = time.perf_counter()

    def prepare(rows: SequenceStore) -> Batch:
        rows = objective.augment(rows, progress.epoch, next(numbers))
        return collate(rows, objective.sort)

    def finish(left: int) -> Iterator[UpdateEvent]:
        nonlocal began
        while len(learner.queued) > left:
            update, loss = learner.finish_update()
            progress.seconds += time.perf_counter() - began
            yield UpdateEvent(
                phase=objective.phase,
                epoch=progress.epoch + 1,
                update=progress.updates,
                batch=progress.batches_done,
                num_batches=len(plan),
                loss=loss / objective.num_branches,
                lr=update.lr,
                time_steps=int(update.batch.lengths.sum()),
            )
            began = time.perf_counter()

    learner.optimizer.freeze(frozen=objective.freezes_embedding(progress.epoch))
    objective.model.train()
    for _ in map_batches(
        learner.queue_update,
        objective.store,
        plan[progress.batches_done :],
        objective.device,
        collate=prepare,
        lower=objective.lower,
        tf32=objective.settings.precision == "tf32",
    ):
        settles = not may_queue or must_settle(progress.updates + len(learner.queued))
        yield from finish(0 if settles else 1)
    yield from finish(0)


def _end_epoch(learner: Learner, plan: list[Ints]) -> EpochEvent:
    """Score the validation split, begin the next epoch in the progress, and return the event.

    If the epoch is the best so far, or the last one of a refit, copy the weights to `best_weights`.
    Forget carried states.

    Args:
        learner: The learner, after the last update of the epoch. It is changed.
        plan: Row indices of each batch of the epoch.

    Raises:
        RunError: If the validation loss isn't finite, if weights differ between the processes, or
            as `train` describes.
    """
    objective, progress = learner.objective, learner.progress
    lr = learner.lr_after(max(0, progress.updates - 1))
    learner.check_equal_weights()
    loss = progress.loss_sum / progress.examples
    accuracy = progress.correct / progress.examples
    validation_loss, scores = objective.score()
    if validation_loss is not None and not math.isfinite(validation_loss):
        raise learner.error(
            f"epoch {progress.epoch + 1}: the validation loss is {validation_loss}; lower "
            f"{objective.key}.lr; what was saved stays valid"
        )
    value = objective.monitored(loss, accuracy, scores)
    error = 0.0 if scores is None else scores.standard_error(objective.settings.monitor)
    is_best = learner.stopping.note_epoch(progress, value, loss, validation_loss, error)
    if progress.refit_epochs == progress.epoch + 1:
        objective.keep_logits()
    event = EpochEvent(
        phase=objective.phase,
        epoch=progress.epoch + 1,
        update=progress.updates,
        loss=loss / objective.num_branches,
        accuracy=accuracy,
        validation_loss=validation_loss,
        validation=scores,
        lr=lr,
        seconds=progress.seconds,
        time_steps=progress.time_steps,
        padding_fraction=padding_fraction(plan, objective.store.lengths),
        is_best=is_best,
    )
    progress.begin_epoch()
    objective.carried.forget()
    if progress.is_best and progress.phase != "pretraining":
        weights = objective.model.state_dict()
        learner.best_weights = {name: weight.clone() for name, weight in weights.items()}
    return event
