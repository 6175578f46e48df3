"""The learner: model, optimizer and progress, and the training loop as a generator of events.

Nothing here reads or writes a file, or prints.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
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
from seqtrain.training.events import EpochEvent, UpdateEvent
from seqtrain.training.gradient import sum_gradients
from seqtrain.training.objectives import Losses, Objective
from seqtrain.training.optimizer import Optimizer
from seqtrain.training.schedule import lr_at
from seqtrain.training.state import Progress, check_names, checked_progress
from seqtrain.training.stopping import StoppingRule, stopping_rule

SHOWN_LINES, SHOWN_FILES = 10, 3


class BatchResult(NamedTuple):
    """Result of the backward pass of one batch, over all processes.

    Attributes:
        loss: Mean loss of the batch, in nats.
        num_correct: Number of correct predictions.
        num_losses: Number of losses: examples, or predicted tokens in pretraining.
        losses: Loss of each row, or of each predicted token.
    """

    loss: float
    num_correct: int
    num_losses: int
    losses: Tensor


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

    def plan(self, epoch: int) -> list[Ints]:
        """Return the examples of each batch of an epoch, counted from 0."""
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
        """Return the training state without the classifier's weights: tensors, and JSON values."""
        tensors = self.optimizer.tensors() | self.objective.tensors()
        return tensors, vars(self.progress).copy()

    def restore(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Restore what `capture` returned. The classifier's weights must be restored before.

        Raises:
            ValueError: If `capture` can't have returned it for this run.
        """
        progress, objective = checked_progress(values), self.objective
        check_names(tensors)
        if progress.phase != objective.phase:
            raise ValueError(f"progress.phase: found {progress.phase}, expected {objective.phase}")
        all_learn = not (objective.config.model.freeze or objective.phase == "pretraining")
        self.optimizer.load(tensors, some=not (all_learn and progress.updates))
        learned = self.plan(progress.epoch)[: progress.batches_done]
        objective.load(tensors, np.concatenate([np.zeros(0, np.int64), *learned]))
        self.progress = progress

    def next_lr(self) -> float:
        """Return the learning rate of the next update."""
        return self.lr_after(self.progress.updates)

    def lr_after(self, updates: int) -> float:
        """Return the learning rate of the update that follows so many updates."""
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
        objective, optimizer = self.objective, self.optimizer
        optimizer.forget_gradient()
        is_shared = objective.processes.size > 1
        result = self._shared_backward(batch) if is_shared else self._backward(batch)
        if not math.isfinite(result.loss):
            raise self._not_finite("loss", objective.suspects(batch, result.losses))
        norm = float(optimizer.step(lr=lr, examples=result.num_losses))
        if not math.isfinite(norm):
            raise self._not_finite("gradient", objective.suspects(batch, result.losses))
        time_steps = int(batch.lengths.sum())
        self.progress.add_batch(result.loss, result.num_correct, result.num_losses, time_steps)
        return result.loss

    def changed_rows(self, rows: SequenceStore) -> SequenceStore:
        """Return the sequences of the next batch, augmented as the config says."""
        return self.objective.changed(rows, self.progress.epoch, self.progress.batches_done)

    def freeze_embedding(self) -> None:
        """Freeze the token vectors in the first epochs, or in all, as ``model.freeze`` says.

        In pretraining, vectors from a file are frozen in all epochs or in none.
        """
        model = self.objective.config.model
        epochs: float
        if self.objective.phase == "pretraining":
            epochs = math.inf if model.freeze and model.vectors else 0
        elif isinstance(model.freeze, bool):
            epochs = math.inf if model.freeze else 0
        else:
            epochs = model.freeze
        self.optimizer.freeze(frozen=self.progress.epoch < epochs)

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
        """Return the error of a problem, which only rank 0 prints."""
        phase = self.progress.phase
        line = problem if phase == "training" else f"{phase} {problem}"
        return RunError(*self.objective.processes.lines(line))

    def _backward(self, batch: Batch) -> BatchResult:
        losses, correct = self._losses(batch)
        mean_loss = losses.mean()
        torch.autograd.backward(mean_loss)
        return BatchResult(float(mean_loss.detach()), int(correct), len(losses), losses)

    def _shared_backward(self, batch: Batch) -> BatchResult:
        """Compute the gradient of this process's rows, and the sums over all processes."""
        objective, processes = self.objective, self.objective.processes
        lengths = batch.restore(batch.lengths)
        # Dealt in turn, longest first, so that two processes differ by at most the longest row.
        order = lengths.argsort(descending=True, stable=True)
        mine = processes.share(order).sort().values.numpy()
        zero = torch.zeros((), device=objective.device)
        losses, total, correct, number = zero.new_zeros(len(lengths)), zero, zero, 0
        if len(mine):
            rows = self.changed_rows(objective.store.__getitems__(batch.examples))
            part = collate(rows.__getitems__(mine), objective.sort)
            part = replace(part, examples=batch.examples[mine]).to(objective.device)
            own_losses, correct = self._losses(part)
            total, number = own_losses.sum(), len(own_losses)
            torch.autograd.backward(total)
            if number == len(mine):
                losses[mine] = part.restore(own_losses.detach())
        ended = objective.ended(batch.examples, mine)
        figures = (zero + number, total.detach(), correct.to(zero.dtype), losses, ended)
        weights, tables = self.optimizer.weights, self.optimizer.tables
        count, total, correct, losses, ended = sum_gradients(processes, weights, tables, *figures)
        objective.take_ended(batch.examples, ended)
        loss = float(total / count)
        return BatchResult(loss, int(correct), int(count), losses[batch.sorted_indices])

    def _losses(self, batch: Batch) -> Losses:
        objective = self.objective
        # The rows of a batch are sorted by length, and so are their numbers.
        examples = torch.from_numpy(batch.examples[batch.sorted_indices.cpu().numpy()])
        random = RandomNumbers.of(objective.config.seed, self.progress.updates, examples)
        is_lowered = objective.settings.precision == "bfloat16"
        device = objective.device.type
        with torch.autocast(device, torch.bfloat16) if is_lowered else nullcontext():
            return objective.losses(batch, random)

    def _not_finite(self, name: str, examples: Ints) -> RunError:
        store, rows = self.objective.store, examples.tolist()
        if len(store.files) > 1:
            where = listed([store.place(row) for row in dict.fromkeys(rows)], SHOWN_FILES)
        else:
            shown = listed([str(store.lines[row]) for row in rows], SHOWN_LINES)
            where = f"train lines {shown} (of a folder: rows through its files)"
        return self.error(
            f"step {self.progress.updates + 1}: the {name} isn't finite for {where}; nothing was "
            f"updated; lower {self.objective.key}.lr, or look at these rows"
        )


def train(learner: Learner) -> Iterator[UpdateEvent | EpochEvent]:
    """Train from the learner's position until its last epoch, or until its stopping rule ends it.

    Autograd is on here, even if the caller switched it off (``torch.no_grad()``).

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
        yield from _updates(learner, plan)
        yield _end_epoch(learner, plan)


def _updates(learner: Learner, plan: list[Ints]) -> Iterator[UpdateEvent]:
    """Make the updates of an epoch that are left."""
    objective, progress = learner.objective, learner.progress

    def update(batch: Batch) -> tuple[float, float]:
        lr = learner.next_lr()
        return lr, learner.update(batch, lr)

    learner.freeze_embedding()
    objective.model.train()
    began = time.perf_counter()
    for batch, (lr, loss) in map_batches(
        update,
        objective.store,
        plan[progress.batches_done :],
        objective.device,
        collate=lambda rows: collate(learner.changed_rows(rows), objective.sort),
        lower=objective.lower,
        tf32=objective.settings.precision == "tf32",
    ):
        progress.seconds += time.perf_counter() - began
        yield UpdateEvent(
            phase=objective.phase,
            epoch=progress.epoch + 1,
            update=progress.updates,
            batch=progress.batches_done,
            num_batches=len(plan),
            loss=loss,
            lr=lr,
            time_steps=int(batch.lengths.sum()),
        )
        began = time.perf_counter()


def _end_epoch(learner: Learner, plan: list[Ints]) -> EpochEvent:
    """Score validation, and note whether the epoch is the best."""
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
    is_best = False
    if value is not None:
        deciding = loss if validation_loss is None else validation_loss
        error = 0.0 if scores is None else scores.standard_error(objective.settings.monitor)
        is_best = progress.note_value(value, deciding, error)
    event = EpochEvent(
        phase=objective.phase,
        epoch=progress.epoch + 1,
        update=progress.updates,
        loss=loss,
        accuracy=accuracy,
        validation_loss=validation_loss,
        validation=scores,
        lr=lr,
        seconds=progress.seconds,
        time_steps=progress.time_steps,
        padding_fraction=padding_fraction(plan, objective.store.lengths),
        is_best=is_best,
    )
    progress.note_loss(validation_loss, counts=learner.stopping.loss_counts(progress))
    progress.begin_epoch(progress.epoch + 1)
    objective.begin_epoch()
    if progress.is_best and progress.phase != "pretraining":
        weights = objective.model.state_dict()
        learner.best_weights = {name: weight.clone() for name, weight in weights.items()}
    return event
