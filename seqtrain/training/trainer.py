"""The trainer: epochs and updates on an objective, as a generator of events.

It touches no file and prints nothing.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from seqtrain.data.batch import Batch, collate, map_batches
from seqtrain.data.plan import padding_fraction, plan_epoch, plan_epoch_of_groups
from seqtrain.data.splits import MANY_ROWS
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.errors import RunError
from seqtrain.model.randomness import RandomNumbers
from seqtrain.text import listed
from seqtrain.training.events import EpochEvent, UpdateEvent
from seqtrain.training.gradient import sum_gradients
from seqtrain.training.objectives import Losses, Objective
from seqtrain.training.optimizer import Optimizer
from seqtrain.training.schedule import budget, lr_at
from seqtrain.training.state import Progress, check_names, checked_progress

SHOWN_LINES, SHOWN_FILES = 10, 3


class Learned(NamedTuple):
    """What an update is made of, beside the gradient.

    The loss is the batch's mean in nats; `each` holds the losses row by row, or one per prediction.
    """

    loss: float
    correct: int
    num_losses: int
    each: Tensor


class Trainer:
    """Trains the model of an objective, until `epochs` (None: max_epochs) are over.

    Attributes:
        progress: where it stands; valid after every event.
        budget: when it ends, but for a refit.
        last_epoch: after which it ends, from 1.
        total_updates: of all epochs, as the learning rate's schedule counts them.
    """

    def __init__(self, objective: Objective, epochs: int | None = None) -> None:
        self.objective = objective
        self.optimizer = Optimizer(objective.model, objective.settings)
        updates_per_epoch = len(self.plan(0))
        self.budget = budget(objective.settings, updates_per_epoch)
        self.total_updates = self.budget.epochs * updates_per_epoch
        self.last_epoch = self.budget.epochs if epochs is None else epochs
        self.progress = Progress(pretraining=objective.pretraining, refit=objective.refit)

    def events(
        self, before_scoring: Callable[[], None] = lambda: None
    ) -> Iterator[UpdateEvent | EpochEvent]:
        """Train from where `progress` stands until the last epoch is over or patience runs out.

        `before_scoring` is called before each batch of validation; what it raises ends the work,
        and the scoring is still to be done.

        Raises:
            RunError: a loss or gradient isn't finite (nothing was updated), memory ran out, or a
                process is lost.
        """
        progress = self.progress
        while progress.epoch < self.last_epoch and not self.out_of_patience:
            plan = self.plan(progress.epoch)
            yield from self._learn(plan)
            yield self._finish_epoch(plan, before_scoring)

    def plan(self, epoch: int) -> list[Ints]:
        """Return the examples of each batch of an epoch, counted from 0."""
        lengths, groups = self.objective.store.lengths, self.objective.groups
        config = self.objective.config
        if groups is None:
            return plan_epoch(lengths, config.batching, seed=config.seed, epoch=epoch)
        return plan_epoch_of_groups(lengths, groups, config.batching, seed=config.seed, epoch=epoch)

    @property
    def out_of_patience(self) -> bool:
        """Whether too many epochs went by without progress, or without any beyond chance."""
        patience = self.budget.perfect if self.is_perfect else self.budget.patience
        waited = self.progress.epochs_without_better
        return self.is_hopeless or (patience is not None and waited >= patience)

    @property
    def is_perfect(self) -> bool:
        """Whether all of validation was right after an epoch: no chance where the rows are many."""
        best, rows = self.progress.best_value, self.objective.validation
        return rows is not None and len(rows) >= MANY_ROWS and best is not None and best >= 1

    @property
    def is_hopeless(self) -> bool:
        """Whether no epoch beat always the largest class, for half of training."""
        ends = self.budget.hopeless
        return ends is not None and self.progress.epoch >= ends and not self.beats_chance()

    def beats_chance(self, errors: float = 0.0) -> bool:
        """Whether an epoch beat always the largest class, by so many standard errors."""
        best, chance = self.progress.best_value, self.objective.chance
        rows = self.objective.validation
        error = 0.0 if rows is None else math.sqrt(max(0.0, chance * (1 - chance)) / len(rows))
        return best is None or best > chance + errors * error

    def capture(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return all that going on needs beside the classifier: named tensors, and JSON values."""
        tensors = self.optimizer.tensors() | self.objective.tensors()
        return tensors, vars(self.progress).copy()

    def restore(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Put back what `capture` returned; the classifier's weights are in place.

        Raises:
            ValueError: it isn't what `capture` returns for this run.
        """
        progress, objective = checked_progress(values), self.objective
        check_names(tensors)
        for name in ("pretraining", "refit"):
            found, expected = getattr(progress, name), getattr(objective, name)
            if found != expected:
                raise ValueError(f"progress.{name}: found {found}, expected {expected}")
        all_learn = not (objective.config.model.freeze or objective.pretraining)
        self.optimizer.load(tensors, some=not (all_learn and progress.updates))
        done = self.plan(progress.epoch)[: progress.batches_done]
        objective.load(tensors, np.concatenate([np.zeros(0, np.int64), *done]))
        self.progress = progress

    def update(self, batch: Batch, lr: float) -> float:
        """Learn from one batch, on the device; return the mean loss of its examples, in nats.

        Raises:
            RunError: the loss or a gradient isn't finite; nothing was updated.
        """
        objective, optimizer = self.objective, self.optimizer
        optimizer.forget_gradient()
        shared = objective.processes.size > 1
        learned = self._shared_gradient(batch) if shared else self._gradient(batch)
        loss, correct, count, each = learned
        if not math.isfinite(loss) or not math.isfinite(
            float(optimizer.step(lr=lr, examples=count))
        ):
            what = "gradient" if math.isfinite(loss) else "loss"
            raise self._not_finite(what, objective.suspects(batch, each))
        self.progress.add_batch(loss, correct, count, int(batch.lengths.sum()))
        return loss

    def _gradient(self, batch: Batch) -> Learned:
        losses, correct = self._losses(batch)
        mean_loss = losses.mean()
        torch.autograd.backward(mean_loss)
        return Learned(float(mean_loss.detach()), int(correct), len(losses), losses)

    def _shared_gradient(self, batch: Batch) -> Learned:
        """Compute it from this process's rows of the batch, and the sums of all processes."""
        objective, processes = self.objective, self.objective.processes
        lengths = batch.restore(batch.lengths)
        # The longest first, dealt in turn: two processes differ by at most the longest row.
        order = lengths.argsort(descending=True, stable=True)
        mine = order[processes.rank :: processes.size].sort().values.numpy()
        zero = torch.zeros((), device=objective.device)
        each, total, right, number = zero.new_zeros(len(lengths)), zero, zero, 0
        if len(mine):
            rows = self._changed(objective.store.__getitems__(batch.examples)).__getitems__(mine)
            part = collate(rows, objective.sort)
            part = replace(part, examples=batch.examples[mine]).to(objective.device)
            losses, right = self._losses(part)
            total, number = losses.sum(), len(losses)
            torch.autograd.backward(total)
            if number == len(mine):
                each[mine] = part.restore(losses.detach())
        figures = (zero + number, total.detach(), right.to(zero.dtype), each)
        ended = objective.ended(batch.examples, mine)
        weights = self.optimizer.weights
        count, total, right, each, ended = sum_gradients(
            processes, weights, self.optimizer.tables, *figures, ended
        )
        objective.take_ended(batch.examples, ended)
        loss = float(total / count)
        return Learned(loss, int(right), int(count), each[batch.sorted_indices])

    def _changed(self, rows: SequenceStore) -> SequenceStore:
        return self.objective.changed(rows, self.progress.epoch, self.progress.batches_done)

    def _losses(self, batch: Batch) -> Losses:
        objective = self.objective
        # Its rows are sorted by length: their numbers go along.
        examples = torch.from_numpy(batch.examples[batch.sorted_indices.cpu().numpy()])
        random = RandomNumbers.of(objective.config.seed, self.progress.updates, examples)
        lowered = objective.settings.precision == "bfloat16"
        with torch.autocast(objective.device.type, torch.bfloat16) if lowered else nullcontext():
            return objective.losses(batch, random)

    @property
    def _frozen_epochs(self) -> float:
        """Epochs in which the vectors of tokens stay as they are; in pretraining all or none."""
        model = self.objective.config.model
        if self.objective.pretraining:
            return math.inf if model.freeze and model.vectors else 0
        if isinstance(model.freeze, bool):
            return math.inf if model.freeze else 0
        return model.freeze

    def _learn(self, plan: list[Ints]) -> Iterator[UpdateEvent]:
        objective, progress = self.objective, self.progress

        def learn(batch: Batch) -> tuple[float, float]:
            lr = self._lr_after(progress.updates)
            return lr, self.update(batch, lr)

        self.optimizer.freeze(frozen=progress.epoch < self._frozen_epochs)
        objective.model.train()
        began = time.perf_counter()
        for batch, (lr, loss) in map_batches(
            learn,
            objective.store,
            plan[progress.batches_done :],
            objective.device,
            collate=lambda rows: collate(self._changed(rows), objective.sort),
            lower=objective.lower,
            tf32=objective.settings.precision == "tf32",
        ):
            progress.seconds += time.perf_counter() - began
            yield UpdateEvent(
                pretraining=objective.pretraining,
                epoch=progress.epoch + 1,
                update=progress.updates,
                batch=progress.batches_done,
                num_batches=len(plan),
                loss=loss,
                lr=lr,
                time_steps=int(batch.lengths.sum()),
                refit=objective.refit,
            )
            began = time.perf_counter()

    def _finish_epoch(self, plan: list[Ints], before_scoring: Callable[[], None]) -> EpochEvent:
        objective, progress = self.objective, self.progress
        lr = self._lr_after(max(0, progress.updates - 1))
        self._check_equal_weights()
        loss, accuracy = (x / progress.examples for x in (progress.loss_sum, progress.correct))
        validation_loss, scores = objective.score(before_scoring)
        if validation_loss is not None and not math.isfinite(validation_loss):
            raise self._error(
                f"epoch {progress.epoch + 1}: the validation loss is {validation_loss}; lower "
                f"{objective.key}.lr; what was saved stays valid"
            )
        value = objective.monitored(loss, accuracy, scores)
        deciding = loss if validation_loss is None else validation_loss
        error = 0.0 if scores is None else scores.standard_error(objective.settings.monitor)
        event = EpochEvent(
            pretraining=objective.pretraining,
            refit=objective.refit,
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
            is_best=value is not None and progress.note_value(value, deciding, error),
        )
        counts = self.budget.progress == "value or loss" and not self.is_perfect
        progress.note_loss(validation_loss, counts=counts)
        progress.begin_epoch(progress.epoch + 1)
        objective.begin_epoch()
        return event

    def _check_equal_weights(self) -> None:
        """Refuse to go on where a process has other weights than the first, by other hardware."""
        weights = self.objective.model.state_dict().values()
        content = (
            w.detach().cpu().contiguous().flatten().view(torch.uint8).numpy() for w in weights
        )
        others = self.objective.processes.unlike_first(content)
        if others:
            raise self._error(
                f"epoch {self.progress.epoch + 1}: other weights than those of rank 0 on {others}; "
                "what was saved after the epoch before stays valid; see whether their hardware and "
                "versions are equal"
            )

    def _lr_after(self, updates: int) -> float:
        settings = self.objective.settings
        return lr_at(updates, self.total_updates, settings, self.progress.plateaus)

    def _not_finite(self, what: str, examples: Ints) -> RunError:
        store, rows = self.objective.store, examples.tolist()
        if len(store.files) > 1:
            where = listed([store.place(row) for row in dict.fromkeys(rows)], SHOWN_FILES)
        else:
            shown = listed([str(store.lines[row]) for row in rows], SHOWN_LINES)
            where = f"train lines {shown} (of a folder: rows through its files)"
        return self._error(
            f"step {self.progress.updates + 1}: the {what} isn't finite for {where}; nothing was "
            f"updated; lower {self.objective.key}.lr, or look at these rows"
        )

    def _error(self, problem: str) -> RunError:
        phase = self.progress.phase
        line = f"{phase} {problem}" if phase else problem
        return RunError(*self.objective.processes.lines(line))
