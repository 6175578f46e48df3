"""The learner: model, optimizer and progress, and the training loop as a generator of events.

Nothing here reads or writes a file, or prints.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from seqtrain.data.batch import Batch, collate, map_batches
from seqtrain.data.plan import padding_fraction, plan_epoch, plan_epoch_of_groups
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.errors import RunError
from seqtrain.model.randomness import RandomNumbers
from seqtrain.text import listed
from seqtrain.training.distributed import sum_gradients
from seqtrain.training.events import EpochEvent, UpdateEvent
from seqtrain.training.objectives import Losses, Objective
from seqtrain.training.optimizer import Optimizer, lr_at
from seqtrain.training.state import Progress, checked_progress
from seqtrain.training.stopping import StoppingRule, stopping_rule

SHOWN_LINES, SHOWN_FILES = 10, 3


class QueuedUpdate(NamedTuple):
    """An update whose work is queued on the device. The host doesn't know its loss yet.

    Attributes:
        batch: Batch of the update.
        lr: Learning rate.
        losses: Losses of all its examples, or predicted tokens, over all processes.
        num_losses: Number of losses.
        numbers: Loss, number of correct predictions, and norm of the gradient, on the CPU. They are
            valid after `copied`.
        copied: Event that the device reaches after the copy of the numbers, or None without CUDA.
    """

    batch: Batch
    lr: float
    losses: Losses
    num_losses: int
    numbers: Tensor
    copied: torch.cuda.Event | None


class Learner:
    """Model, optimizer and progress of one phase of a run: all that a checkpoint holds.

    Args:
        objective: What is learned, with its model and data.
        epochs: Number of epochs, or None for ``max_epochs``.

    Attributes:
        progress: Position in the phase. It is valid after every event.
        stopping: When training ends.
        last_epoch: Number of epochs, unless training stops early.
        total_updates: Updates of all epochs, as the learning rate's schedule counts them.
        best_weights: State of the model after the best epoch, on its device, or None if no epoch
            was the best since training started or resumed.
        queued: Updates whose loss isn't known yet, the oldest first.
    """

    def __init__(self, objective: Objective, epochs: int | None = None) -> None:
        self.objective = objective
        self.optimizer = Optimizer(objective.model, objective.settings)
        updates_per_epoch = len(self.plan(0))
        self.stopping: StoppingRule = stopping_rule(
            objective.settings, updates_per_epoch, objective.validation, objective.chance
        )
        self.total_updates = self.stopping.epochs * updates_per_epoch
        self.last_epoch = self.stopping.epochs if epochs is None else epochs
        self.progress = Progress(phase=objective.phase)
        self.best_weights: dict[str, Tensor] | None = None
        self.queued: list[QueuedUpdate] = []

    @property
    def is_settled(self) -> bool:
        """True if no update is queued, so that weights and progress belong together."""
        return not self.queued

    def plan(self, epoch: int) -> list[Ints]:
        """Return the row numbers of each batch of an epoch, which is counted from 0."""
        lengths, groups = self.objective.store.lengths, self.objective.groups
        config = self.objective.config
        if groups is None:
            return plan_epoch(lengths, config.batching, seed=config.seed, epoch=epoch)
        return plan_epoch_of_groups(lengths, groups, config.batching, seed=config.seed, epoch=epoch)

    @property
    def stopped_early(self) -> bool:
        """True if the stopping rule ends training at this position."""
        return self.stopping.is_over(self.progress)

    def capture(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the training state, except the classifier's weights.

        The learner must be settled.

        Returns:
            Tensors of the optimizer and the objective by name, and the progress as JSON values.
        """
        assert self.is_settled, "weights and progress don't belong together"
        tensors = self.optimizer.tensors() | self.objective.tensors()
        return tensors, vars(self.progress).copy()

    def restore(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Restore the training state that `capture` returned, after the classifier's weights.

        Raises:
            ValueError: If the state isn't one of this run.
        """
        progress, objective = checked_progress(values), self.objective
        if progress.phase != objective.phase:
            raise ValueError(f"progress.phase: found {progress.phase}, expected {objective.phase}")
        all_learn = not (objective.config.model.freeze or objective.phase == "pretraining")
        self.optimizer.load(tensors, some=not (all_learn and progress.updates))
        learned = self.plan(progress.epoch)[: progress.batches_done]
        objective.load(tensors, np.concatenate([np.zeros(0, np.int64), *learned]))
        for name in tensors.keys() - self.capture()[0].keys():
            raise ValueError(f"{name[:80]}: no tensor of a state")
        self.progress = progress

    def lr_after(self, updates: int) -> float:
        """Return the learning rate of the update after this number of updates."""
        settings = self.objective.settings
        return lr_at(updates, self.total_updates, settings, self.progress.plateaus)

    def update(self, batch: Batch, lr: float) -> float:
        """Update the weights by the gradient of one batch; return its mean loss, in nats.

        Args:
            batch: Sequences, on the device.
            lr: Learning rate.

        Raises:
            RunError: If the loss or a gradient isn't finite. No weight was changed then.
        """
        self.queue_update(batch, lr)
        return self.finish_update()[1]

    def queue_update(self, batch: Batch, lr: float | None = None) -> None:
        """Queue the work of an update, without waiting for the device on CUDA.

        The optimizer changes no weight if the loss or a gradient isn't finite.

        Args:
            batch: Sequences, on the device.
            lr: Learning rate, or None for that of the schedule.
        """
        if lr is None:
            lr = self.lr_after(self.progress.updates + len(self.queued))
        self.optimizer.forget_gradient()
        is_shared = self.objective.processes.size > 1
        loss, losses, count = (self._shared_backward if is_shared else self._backward)(batch)
        norm: float | Tensor = math.nan
        if self.optimizer.is_fused or math.isfinite(float(loss)):
            norm = self.optimizer.step(lr=lr, examples=count, loss=loss)
        copied = None
        if isinstance(norm, Tensor):
            stacked = torch.stack([loss.float(), losses.correct.float(), norm])
            numbers = stacked.to("cpu", non_blocking=True)
            copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            copied.record()
        else:
            correct = float(losses.correct)
            numbers = torch.tensor([float(loss), correct, norm], dtype=torch.double, device="cpu")
        self.queued.append(QueuedUpdate(batch, lr, losses, count, numbers, copied))

    def finish_update(self) -> tuple[QueuedUpdate, float]:
        """Wait for the oldest queued update, and count it in the progress.

        Returns:
            The update, and its mean loss.

        Raises:
            RunError: If the loss or a gradient isn't finite. No weight was changed then, nor by
                the update that is queued after it.
        """
        update = self.queued.pop(0)
        if update.copied is not None:
            update.copied.synchronize()
        loss, correct, norm = update.numbers.tolist()
        for name, value in (("loss", loss), ("gradient", norm)):
            if not math.isfinite(value):
                raise self._not_finite(name, update)
        time_steps = int(update.batch.lengths.sum())
        self.progress.add_batch(loss, int(correct), update.num_losses, time_steps)
        return update, float(loss)

    def check_equal_weights(self) -> None:
        """Raise RunError if another process has other weights, as on other hardware."""
        weights = self.objective.model.state_dict().values()
        content = (
            weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
            for weight in weights
        )
        others = self.objective.processes.unlike_first(content)
        if others:
            raise self.error(
                f"epoch {self.progress.epoch + 1}: weights differ between rank 0 and {others}; "
                "what was saved after the epoch before stays valid; check that their hardware and "
                "versions are equal"
            )

    def error(self, problem: str) -> RunError:
        """Return a RunError that names the phase and the problem. Only rank 0 prints it."""
        phase = self.progress.phase
        line = problem if phase == "training" else f"{phase} {problem}"
        return RunError(*self.objective.processes.lines(line))

    def _backward(self, batch: Batch) -> tuple[Tensor, Losses, int]:
        """Compute the gradient of the mean loss; return it, all losses, and their number."""
        losses = self._losses(batch)
        mean_loss = losses.each.mean()
        torch.autograd.backward(mean_loss)
        return mean_loss.detach(), losses, len(losses.each)

    def _shared_backward(self, batch: Batch) -> tuple[Tensor, Losses, int]:
        """Compute the gradient of this process's rows, and the sums over all processes."""
        objective, processes = self.objective, self.objective.processes
        lengths = batch.restore(batch.lengths)
        # Dealt in turn, longest first, so that two processes differ by at most the longest row.
        order = lengths.argsort(descending=True, stable=True)
        mine = processes.share(order).sort().values.numpy()
        zero = torch.zeros((), device=objective.device)
        losses, total, correct, number = zero.new_zeros(len(lengths)), zero, zero, 0
        if len(mine):
            rows = objective.store.__getitems__(batch.examples)
            rows = objective.changed(rows, self.progress.epoch, self.progress.batches_done)
            part = collate(rows.__getitems__(mine), objective.sort)
            part = replace(part, examples=batch.examples[mine]).to(objective.device)
            own, correct = self._losses(part)
            total, number = own.sum(), len(own)
            torch.autograd.backward(total)
            if number == len(mine):
                losses[mine] = part.restore(own.detach())
        groups = None if objective.groups is None else objective.groups[batch.examples]
        states = objective.carried.starts(groups, objective.classifier)
        ended = zero.new_zeros(0 if states is None else states.shape)
        if states is not None:
            ended[:, :, mine] = states[:, :, mine]
        sums = (zero + number, total.detach(), correct.to(zero.dtype), losses, ended)
        weights, tables = self.optimizer.weights, self.optimizer.tables
        count, total, correct, losses, ended = sum_gradients(processes, weights, tables, *sums)
        objective.carried.keep(groups, ended)
        return total / count, Losses(losses[batch.sorted_indices], correct), int(count)

    def _losses(self, batch: Batch) -> Losses:
        objective = self.objective
        # The rows of a batch are sorted by length, and so are their numbers.
        examples = torch.from_numpy(batch.examples[batch.sorted_indices.cpu().numpy()])
        number = self.progress.updates + len(self.queued)
        random = RandomNumbers.of(objective.config.seed, number, examples)
        is_lowered = objective.settings.precision == "bfloat16"
        device = objective.device.type
        with torch.autocast(device, torch.bfloat16) if is_lowered else nullcontext():
            return objective.losses(batch, random)

    def _not_finite(self, name: str, update: QueuedUpdate) -> RunError:
        """Return the error for a loss or gradient (`name`) that isn't finite.

        It names the rows whose own loss isn't finite, or else all rows of the batch.
        """
        store, batch, losses = self.objective.store, update.batch, update.losses.each.detach().cpu()
        rows = batch.examples.tolist()
        if len(losses) == len(rows) and not bool(losses.isfinite().all()):
            rows = batch.examples[~batch.restore(losses).isfinite().numpy()].tolist()
        if len(store.files) > 1:
            where = listed([store.place(row) for row in dict.fromkeys(rows)], SHOWN_FILES)
        else:
            shown = listed([str(store.lines[row]) for row in rows], SHOWN_LINES)
            where = f"train lines {shown} (of a folder: rows through its files)"
        return self.error(
            f"step {self.progress.updates + 1}: the {name} isn't finite for {where}; nothing was "
            f"updated; lower {self.objective.key}.lr, or look at these rows"
        )


def train(
    learner: Learner, must_settle: Callable[[int], bool] = lambda update: True
) -> Iterator[UpdateEvent | EpochEvent]:
    """Train from the learner's position until its last epoch, or until its stopping rule ends it.

    Autograd is on here, even if the caller switched it off (``torch.no_grad()``).

    Args:
        learner: What is trained.
        must_settle: Is called with the number of each update, from 1. If it returns True, the
            learner is settled at the event of this update. Otherwise, on CUDA, the next update may
            be queued already, so that the device doesn't wait for the host.

    Yields:
        One event per update, and one at the end of each epoch, after validation was scored.

    Raises:
        RunError: If a loss or gradient isn't finite (no weight was changed), if memory ran out, or
            if a process was lost.
        Interrupted: If a signal came before a batch of validation. That epoch's scoring is left.
    """
    progress = learner.progress
    while progress.epoch < learner.last_epoch and not learner.stopped_early:
        plan = learner.plan(progress.epoch)
        yield from _updates(learner, plan, must_settle)
        yield _end_epoch(learner, plan)


def _updates(
    learner: Learner, plan: list[Ints], must_settle: Callable[[int], bool]
) -> Iterator[UpdateEvent]:
    """Make the remaining updates of an epoch, and yield their events."""
    objective, progress = learner.objective, learner.progress
    numbers = count(progress.batches_done)
    may_queue = learner.optimizer.is_fused and objective.processes.size == 1
    began = time.perf_counter()

    def prepare(rows: SequenceStore) -> Batch:
        rows = objective.changed(rows, progress.epoch, next(numbers))
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
    """Score validation at the end of an epoch, and start the next epoch; return the event."""
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
        objective.keep_epoch()
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
