"""The trainer: epochs and updates on an objective, as a generator of events.

It touches no file and prints nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqtrain.data.batch import Batch
from seqtrain.data.batches import map_batches
from seqtrain.data.plan import padding_fraction, plan_epoch, plan_epoch_of_groups
from seqtrain.data.store import Ints
from seqtrain.errors import RunError
from seqtrain.model.randomness import Noise
from seqtrain.text import listed
from seqtrain.training.budget import budget
from seqtrain.training.events import EpochEvent, UpdateEvent
from seqtrain.training.objectives import Objective
from seqtrain.training.optimizer import Optimizer
from seqtrain.training.schedule import lr_at
from seqtrain.training.state import (
    Progress,
    check_names,
    checked_progress,
)

SHOWN_LINES = 10


class Trainer:
    """Trains the model of an objective.

    Args:
        objective: what is learned, from what, how and where.
        epochs: to end after, with the learning rates that max_epochs has; None: max_epochs.

    Attributes:
        progress: where it stands; valid after every event.
        optimizer: with its moments.
        budget: when it ends, but for a run trained anew.
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

        Args:
            before_scoring: is called before each batch of validation, when `progress` stands after
                the last update; what it raises ends the work, and the scoring is still to be done.

        Raises:
            RunError: a loss or gradient isn't finite (nothing was updated), or memory ran out.
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
        """Whether too many epochs went by without progress."""
        patience = self.budget.patience
        return patience is not None and self.progress.epochs_without_better >= patience

    def update(self, batch: Batch, lr: float) -> float:
        """Learn from one batch.

        Args:
            batch: on the device.
            lr: learning rate of this update.

        Returns:
            The mean loss over the batch's examples (or predictions), in nats.

        Raises:
            RunError: the loss or a gradient isn't finite; nothing was updated.
        """
        objective, optimizer = self.objective, self.optimizer
        # Its rows are sorted by length: their numbers go along.
        examples = torch.from_numpy(batch.examples[batch.sorted_indices.cpu().numpy()])
        noise = Noise.of(objective.config.seed, self.progress.updates, examples)
        lowered = objective.settings.precision == "bfloat16"
        with (
            optimizer.reading(lr=lr),
            torch.autocast(objective.device.type, torch.bfloat16, enabled=lowered),
        ):
            losses, correct = objective.losses(batch, noise)
        mean_loss = losses.mean()
        norm = optimizer.gradient(mean_loss)
        # One copy from the device per update: each would wait for it.
        figures = torch.stack((mean_loss.detach(), norm, correct.to(mean_loss.dtype)))
        loss: float
        loss, norm_value, num_correct = figures.tolist()
        if not (math.isfinite(loss) and math.isfinite(norm_value)):
            what = "gradient" if math.isfinite(loss) else "loss"
            raise self._not_finite(what, objective.suspects(batch, losses))
        optimizer.step(lr=lr)
        self.progress.add_batch(loss, int(num_correct), len(losses), int(batch.lengths.sum()))
        return loss

    def settled(self) -> AbstractContextManager[None]:
        """While entered, the model's weights are such that it can be saved and used.

        `capture` within it, so that training goes on from the weights as they are.
        """
        return self.optimizer.settled(lr=self._lr_of_last_update())

    def capture(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return all that going on needs beside the classifier: named tensors, and JSON values."""
        tensors = self.optimizer.tensors() | self.objective.tensors()
        return tensors, vars(self.progress).copy()

    def restore(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Put back what `capture` returned; the classifier's weights are in place.

        Raises:
            ValueError: it isn't what `capture` returns for this run.
        """
        progress = checked_progress(values)
        check_names(tensors)
        phase = self.objective.pretraining
        if progress.pretraining != phase:
            raise ValueError(
                f"progress.pretraining: found {progress.pretraining}, expected {phase}"
            )
        if progress.refit != self.objective.refit:
            raise ValueError(
                f"progress.refit: found {progress.refit}, expected {self.objective.refit}"
            )
        self.optimizer.load(tensors, some=phase, begun=progress.updates > 0)
        done = self.plan(progress.epoch)[: progress.batches_done]
        self.objective.load(tensors, np.concatenate([np.zeros(0, np.int64), *done]))
        self.progress = progress

    def _learn(self, plan: list[Ints]) -> Iterator[UpdateEvent]:
        """Learn from what is left of an epoch, batch by batch."""
        objective, progress = self.objective, self.progress

        def learn(batch: Batch) -> tuple[float, float]:
            lr = self._lr_after(progress.updates)
            return lr, self.update(batch, lr)

        objective.model.train()
        began = time.perf_counter()
        for batch, (lr, loss) in map_batches(
            learn,
            objective.store,
            plan[progress.batches_done :],
            objective.device,
            collate=lambda rows: objective.collate(rows, progress.epoch, progress.batches_done),
            lower=objective.lower,
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
            )
            began = time.perf_counter()

    def _finish_epoch(self, plan: list[Ints], before_scoring: Callable[[], None]) -> EpochEvent:
        """Score validation, note whether this epoch is the best, and move on to the next."""
        objective, progress = self.objective, self.progress
        lr = self._lr_of_last_update()
        self.optimizer.settle(lr=lr)
        loss, accuracy = (
            part / progress.examples for part in (progress.loss_sum, progress.correct)
        )
        validation_loss, scores = objective.score(before_scoring)
        if validation_loss is not None and not math.isfinite(validation_loss):
            raise RunError(
                f"{self._phase}epoch {progress.epoch + 1}: the validation loss is "
                f"{validation_loss}; lower {objective.key}.lr; what was saved stays valid"
            )
        value = objective.monitored(loss, accuracy, scores)
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
            is_best=value is not None and progress.note_value(value, validation_loss),
        )
        progress.note_loss(validation_loss, counts=self.budget.progress == "value or loss")
        progress.begin_epoch(progress.epoch + 1)
        objective.begin_epoch()
        return event

    def _lr_after(self, updates: int) -> float:
        settings = self.objective.settings
        return lr_at(updates, self.total_updates, settings, self.progress.plateaus)

    def _lr_of_last_update(self) -> float:
        return self._lr_after(max(0, self.progress.updates - 1))

    @property
    def _phase(self) -> str:
        if self.objective.refit:
            return "refit "
        return "pretraining " if self.objective.pretraining else ""

    def _not_finite(self, what: str, lines: Ints | None) -> RunError:
        """Say what isn't finite, and where the examples stand that may be why."""
        where = hint = ""
        if lines is not None:
            shown = listed([str(line) for line in lines.tolist()], SHOWN_LINES)
            where = f" for train lines {shown} (of a folder: rows through its files)"
            hint = ", or look at these rows"
        return RunError(
            f"{self._phase}step {self.progress.updates + 1}: the {what} isn't finite{where}; "
            f"nothing was updated; lower {self.objective.key}.lr{hint}"
        )
