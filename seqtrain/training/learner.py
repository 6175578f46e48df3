"""The learner: model, optimizer and progress of a phase, and the update of weights by a batch."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from seqtrain.errors import RunError
from seqtrain.model.randomness import RandomNumbers
from seqtrain.sequences.batch import Batch, collate
from seqtrain.sequences.plan import plan_epoch, plan_epoch_of_groups
from seqtrain.sequences.store import Ints
from seqtrain.text import listed
from seqtrain.training.distributed import sum_gradients
from seqtrain.training.objectives import Losses, Objective
from seqtrain.training.optimizer import Optimizer, lr_at
from seqtrain.training.state import Progress, checked_progress
from seqtrain.training.stopping import StoppingRule, stopping_rule

SHOWN_LINES, SHOWN_FILES = 10, 3
"""Largest numbers of rows that an error names: in one file, and in several files."""


class QueuedUpdate(NamedTuple):
    """An update whose computation is queued on the device. The host may not know its loss yet.

    Attributes:
        batch: Batch of the update.
        lr: Learning rate.
        losses: Losses of the batch, computed by all processes.
        num_losses: Number of losses: of examples, or of predicted tokens in pretraining.
        numbers: Mean loss in nats, number of correct predictions, and norm of the gradients, (3,),
            on the CPU. On CUDA they are valid once the device has reached `copied`. Elsewhere, the
            norm is NaN if the loss isn't finite.
        copied: Event on the device after the numbers were copied, or None without CUDA.
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
        objective: Training task with its model and data.
        epochs: Number of epochs, or None for ``max_epochs`` of the objective's settings.

    Attributes:
        objective: The same training task.
        optimizer: Optimizer of the model.
        progress: Position in the phase. It is up to date at every event of `train`.
        stopping: Rule that ends training early.
        last_epoch: Number of epochs if training doesn't end early.
        total_updates: Number of updates after which the schedule of the learning rate ends.
        best_weights: Copy of the model's state after its best epoch, or at the end of a refit, by
            name, on its device. None in pretraining, and if no epoch was the best since training
            started or resumed.
        queued: Updates that `queue_update` began and `finish_update` hasn't finished, the oldest
            first.
    """

    def __init__(self, objective: Objective, epochs: int | None = None) -> None:
        self.objective = objective
        self.optimizer = Optimizer(objective.model, objective.settings)
        updates_per_epoch = len(self.plan(0))
        self.stopping: StoppingRule = stopping_rule(
            objective.settings, updates_per_epoch, objective.validation, objective.baseline
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
        """Return the batches of an epoch, as arrays of row indices of the objective's store.

        The result depends only on the config, the data and the epoch, so it is the same after a
        resume.

        Args:
            epoch: Number of the epoch, from 0.
        """
        lengths, groups = self.objective.store.lengths, self.objective.groups
        config = self.objective.config
        if groups is None:
            return plan_epoch(lengths, config.batching, seed=config.seed, epoch=epoch)
        return plan_epoch_of_groups(lengths, groups, config.batching, seed=config.seed, epoch=epoch)

    @property
    def stopped_early(self) -> bool:
        """True if the stopping rule ends training after the epochs so far."""
        return self.stopping.is_over(self.progress)

    def capture(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the training state, except the weights of the classifier. No update may be queued.

        Returns:
            Two dicts: the tensors of the optimizer and the objective by name, and the attributes of
            the progress by name. Tensors on the CPU aren't copied, so later updates may change
            them.
        """
        assert self.is_settled, "weights and progress don't belong together"
        return self.optimizer.tensors() | self.objective.tensors(), vars(self.progress).copy()

    def restore(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Restore the training state that `capture` returned.

        The classifier must already have the weights of the same checkpoint.

        Args:
            tensors: Tensors of the optimizer and the objective by name.
            values: Attributes of the progress by name.

        Raises:
            ValueError: If the state is invalid or doesn't fit the objective. The learner may then
                be changed in part.
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
        """Return the learning rate of an update, by the schedule and the plateaus so far.

        Args:
            updates: Number of earlier updates in this phase.
        """
        return lr_at(updates, self.total_updates, self.objective.settings, self.progress.plateaus)

    def update(self, batch: Batch, lr: float) -> float:
        """Update the weights by the gradient of one batch, and return the batch's loss in nats.

        The loss is averaged over examples and added up over the branches of the model. The update
        is counted in `progress`. No other update may be queued.

        Args:
            batch: Sequences, on the device of the model.
            lr: Learning rate.

        Raises:
            RunError: If the loss or a gradient isn't finite. No weight is changed in this case.
        """
        self.queue_update(batch, lr)
        return self.finish_update()[1]

    def queue_update(self, batch: Batch, lr: float | None = None) -> None:
        """Begin an update, and append it to `queued`. Call `finish_update` to finish it.

        On CUDA, the computation may still be running on the device when this returns. If the loss
        or a gradient isn't finite, no weight is changed.

        Args:
            batch: Sequences, on the device of the model.
            lr: Learning rate, or None for the learning rate of the schedule.

        Raises:
            RunError: If another process is lost.
        """
        if lr is None:
            lr = self.lr_after(self.progress.updates + len(self.queued))
        self.optimizer.forget_gradient()
        is_shared = self.objective.processes.size > 1
        loss, losses, count = (self._shared_backward if is_shared else self._backward)(batch)
        norm: float | Tensor = math.nan
        if self.optimizer.is_fused or math.isfinite(float(loss)):
            norm = self.optimizer.step(lr=lr, loss=loss)
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
        """Wait for the oldest queued update, remove it from `queued`, and count it in `progress`.

        Returns:
            The update, and its loss in nats: the mean over examples, the sum over branches.

        Raises:
            RunError: If the loss or a gradient isn't finite. This update and all later queued
                updates then change no weight.
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
        """Compare the weights of all processes, each of which must call this.

        Raises:
            RunError: If a weight of a process differs from rank 0 in any bit. Different hardware or
                versions may be the cause.
        """
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
        """Return a RunError. It has the message on rank 0, and no message on other ranks.

        Args:
            problem: Message. The name of the phase is put before it, except in training.
        """
        prefix = "" if self.progress.phase == "training" else f"{self.progress.phase} "
        return RunError(*self.objective.processes.lines(prefix + problem))

    def _backward(self, batch: Batch) -> tuple[Tensor, Losses, int]:
        """Compute the gradients of the mean loss of a batch, and store them in ``weight.grad``.

        Returns:
            The mean loss, the loss of each example or predicted token, and the number of losses.
        """
        losses = self._losses(batch)
        mean_loss = losses.each.mean()
        torch.autograd.backward(mean_loss)
        return mean_loss.detach(), losses, len(losses.each)

    def _shared_backward(self, batch: Batch) -> tuple[Tensor, Losses, int]:
        """Compute the gradients of the mean loss of a batch together with the other processes.

        Each process computes the loss and its gradient for a share of the rows. Then gradients and
        losses are summed over all processes. The gradients are stored in ``grad`` of the weights.

        Returns:
            The mean loss, the losses of all rows, and the number of losses, the same in each
            process. In pretraining, the losses of rows are zeros, because each loss belongs to a
            token.
        """
        objective, processes = self.objective, self.objective.processes
        lengths = batch.restore(batch.lengths)
        # Dealt in turn, longest first, so that two processes differ by at most the longest row.
        order = lengths.argsort(descending=True, stable=True)
        mine = processes.share(order).sort().values.numpy()
        zero = torch.zeros((), device=objective.device)
        losses, total, correct, number = zero.new_zeros(len(lengths)), zero, zero, 0
        if len(mine):
            rows = objective.store.__getitems__(batch.examples)
            rows = objective.augment(rows, self.progress.epoch, self.progress.batches_done)
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
        """Return the losses of a batch, with the random numbers and the precision of training."""
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
        """Return the error for a loss or a gradient that isn't finite.

        The error names the rows whose losses aren't finite. If no such row is known, it names all
        rows of the batch.

        Args:
            name: "loss" or "gradient".
            update: The update.
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
