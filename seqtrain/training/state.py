"""Where a run stands: all that the loop needs to go on with the same bits."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

MOST_COUNTED = 2**62
"""Largest count that is believed."""
MOST_SUMMED = 1e300
"""Largest sum that is believed."""
TENSOR = re.compile(
    r"optimizer\.[0-9]{1,9}\.[a-z_]+|unsettled\.weight"
    r"|carried\.(groups|states)|pretraining\..+"
)
"""Names of the tensors of a saved state."""


@dataclass
class Progress:
    """Counters and sums of a run; with weights and optimizer its whole state.

    Attributes:
        epoch: number of the epoch under way, from 0.
        updates: made so far.
        batches_done: batches of this epoch already learned from.
        pretraining: whether it stands before training; its examples are the predicted tokens.
        refit: whether it is of the training anew after the best epoch was found; the best values
            are those that were found before.
        loss_sum, correct, examples, time_steps: of this epoch so far.
        seconds: spent in this epoch so far.
        best_value: best monitored value so far, greater is better; None before the first.
        best_epoch: the epoch that had it, from 1.
        best_error: standard error of the best value; 0 where it has none.
        refit_epochs: epochs of a refit: up to the last one that is within that of the best.
        epochs_without_better: since then, or since the loss last fell where that counts.
        plateaus: epochs without a better value in the whole run.
        best_loss: of validation, or of train where there is none, in the best epoch, in nats.
        lowest_loss: the same so far.
        loss_fell: whether it is that of the last epoch.
    """

    pretraining: bool = False
    refit: bool = False
    epoch: int = 0
    updates: int = 0
    batches_done: int = 0
    loss_sum: float = 0.0
    correct: int = 0
    examples: int = 0
    time_steps: int = 0
    seconds: float = 0.0
    best_value: float | None = None
    best_epoch: int = 0
    best_error: float = 0.0
    refit_epochs: int = 0
    epochs_without_better: int = 0
    plateaus: int = 0
    best_loss: float = MOST_SUMMED
    lowest_loss: float = MOST_SUMMED
    loss_fell: bool = False

    def add_batch(self, loss: float, correct: int, examples: int, time_steps: int) -> None:
        """Count one update.

        Args:
            loss: mean over the batch's examples.
            correct: examples whose label was answered.
            examples: of the batch.
            time_steps: of its sequences.
        """
        self.updates += 1
        self.batches_done += 1
        self.loss_sum += loss * examples
        self.correct += correct
        self.examples += examples
        self.time_steps += time_steps

    def note_value(self, value: float, loss: float | None = None, error: float = 0.0) -> bool:
        """Compare an epoch's monitored value; say whether it is the best.

        Args:
            value: greater is better.
            loss: of validation, or of train where there is none, in nats; of epochs with equal
                values the one with the lowest loss is the best, though no better for patience and
                plateaus.
            error: the value's standard error; 0 where it has none. A refit goes on to the last
                epoch within that of the best one, so that few rows of validation don't end
                it early.

        Reference:
            Breiman et al. 1984, Classification and Regression Trees, section 3.4.3 (the rule of one
            standard error).
        """
        better = self.best_value is None or value > self.best_value
        if better:
            self.epochs_without_better = 0
        else:
            self.epochs_without_better += 1
            self.plateaus += 1
        lower = value == self.best_value and loss is not None and loss < self.best_loss
        if better or lower:
            self.best_value, self.best_epoch = value, self.epoch + 1
            self.best_loss, self.best_error = MOST_SUMMED if loss is None else loss, error
        if self.best_value is not None and value >= self.best_value - self.best_error:
            self.refit_epochs = self.epoch + 1
        return better or lower

    def note_loss(self, loss: float | None, *, counts: bool) -> None:
        """Compare an epoch's validation loss with the lowest so far.

        Args:
            loss: in nats, where there is a validation split.
            counts: whether a lower one is progress that patience begins anew from.
        """
        self.loss_fell = loss is not None and loss < self.lowest_loss
        if loss is not None and self.loss_fell:
            self.lowest_loss = loss
            self.epochs_without_better *= not counts

    def begin_epoch(self, epoch: int) -> None:
        """Set the sums back for a new epoch."""
        self.epoch, self.batches_done = epoch, 0
        self.loss_sum, self.correct, self.examples, self.time_steps = 0.0, 0, 0, 0
        self.seconds = 0.0


def checked_progress(values: dict[str, Any]) -> Progress:
    """Return counters that a run can have had: whole numbers from 0, finite sums, in proportion.

    Raises:
        ValueError: a run can't have had these.
    """
    wanted = asdict(Progress())
    if values.keys() != wanted.keys():
        raise ValueError(f"progress: expected {', '.join(wanted)}")
    for name, value in values.items():
        if isinstance(wanted[name], bool):
            if type(value) is not bool:
                raise ValueError(f"progress.{name}: expected true or false")
            continue
        whole = isinstance(wanted[name], int)
        if name == "best_value" and value is None:
            continue
        most = MOST_COUNTED if whole else MOST_SUMMED
        least = -most if name in ("best_value", "loss_sum") else 0
        if type(value) not in ((int,) if whole else (int, float)) or not least <= value <= most:
            kind = "a whole number" if whole else "a number"
            raise ValueError(
                f"progress.{name}: found {shown(value)}; expected {kind} from {least:g} to {most:g}"
            )
    progress = Progress(**values)
    sums = progress.examples, progress.time_steps, progress.seconds
    if not (
        progress.updates >= progress.batches_done
        and all(bool(value) == bool(progress.batches_done) for value in sums)
        and progress.correct <= progress.examples
        and (progress.pretraining or progress.examples <= progress.time_steps)
        and progress.best_epoch <= progress.refit_epochs
        and (progress.refit or progress.refit_epochs <= progress.epoch)
        and not (
            progress.refit and (progress.pretraining or progress.epoch > progress.refit_epochs)
        )
        and (progress.best_value is None) == (progress.best_epoch == 0)
    ):
        raise ValueError("progress: the counters contradict each other")
    return progress


def shown(value: object) -> str:
    """Return a value for a message, of a long one the beginning."""
    return f"{value!r:.40}"


def check_names(tensors: dict[str, Tensor]) -> None:
    """Refuse a saved state with a tensor that no training has.

    Raises:
        ValueError: names it.
    """
    for key in tensors:
        if not TENSOR.fullmatch(key):
            raise ValueError(f"{key[:80]}: no tensor of a state")


def check_tensor(name: str, tensor: Tensor, shape: torch.Size, kind: torch.dtype) -> None:
    """Refuse a saved tensor of another shape or type, or with values that aren't finite.

    Raises:
        ValueError: as said.
    """
    if tensor.shape != shape or tensor.dtype != kind:
        raise ValueError(
            f"{name}: found {tensor.dtype} {list(tensor.shape)}, expected {kind} {list(shape)}"
        )
    if not bool(torch.isfinite(tensor).all()):
        raise ValueError(f"{name}: holds values that aren't finite")
