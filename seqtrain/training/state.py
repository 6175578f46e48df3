"""Where a run stands: all that the loop needs to go on with the same bits."""

from __future__ import annotations

import re
from typing import Annotated, Any

import torch
from pydantic import Field, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass
from torch import Tensor

MOST_SUMMED = 1e300
"""Largest sum that is believed."""
Count = Annotated[int, Field(strict=True, ge=0, le=2**62)]
Sum = Annotated[float, Field(strict=True, ge=0, le=MOST_SUMMED)]
Signed = Annotated[float, Field(strict=True, ge=-MOST_SUMMED, le=MOST_SUMMED)]
Flag = Annotated[bool, Field(strict=True)]
TENSOR = re.compile(r"optimizer\.[0-9]{1,9}\.[a-z_]+|carried\.(groups|states)|pretraining\..+")
"""Names of the tensors of a saved state."""


@dataclass
class Progress:
    """Counters and sums of a run; with weights and optimizer its whole state.

    Attributes:
        epoch: number of the epoch under way, from 0.
        loss_sum, correct, examples, time_steps, seconds: of this epoch so far; examples of
            pretraining are the predicted tokens.
        best_value, best_epoch: best monitored value, greater is better, and its epoch, from 1.
        best_error: standard error of the best value; 0 where it has none.
        refit_epochs: epochs of a refit: up to the last one that is within that of the best.
        epochs_without_better: since then, or since the loss last fell where that counts.
        plateaus: epochs without a better value in the whole run.
        best_loss: of validation, or of train where there is none, in the best epoch, in nats.
        loss_fell: whether lowest_loss is that of the last epoch.
    """

    pretraining: Flag = False
    refit: Flag = False
    epoch: Count = 0
    updates: Count = 0
    batches_done: Count = 0
    loss_sum: Signed = 0.0
    correct: Count = 0
    examples: Count = 0
    time_steps: Count = 0
    seconds: Sum = 0.0
    best_value: Signed | None = None
    best_epoch: Count = 0
    best_error: Sum = 0.0
    refit_epochs: Count = 0
    epochs_without_better: Count = 0
    plateaus: Count = 0
    best_loss: Sum = MOST_SUMMED
    lowest_loss: Sum = MOST_SUMMED
    loss_fell: Flag = False

    @model_validator(mode="after")
    def check_proportions(self) -> Progress:
        """Refuse counters that contradict each other."""
        sums = self.examples, self.time_steps, self.seconds
        refitted = self.pretraining or self.epoch > self.refit_epochs
        if not (
            self.updates >= self.batches_done
            and all(bool(value) == bool(self.batches_done) for value in sums)
            and self.correct <= self.examples
            and (self.pretraining or self.examples <= self.time_steps)
            and self.best_epoch <= self.refit_epochs
            and (not refitted if self.refit else self.refit_epochs <= self.epoch)
            and (self.best_value is None) == (self.best_epoch == 0)
        ):
            raise ValueError("the counters contradict each other")
        return self

    @property
    def phase(self) -> str:
        """Where it stands, in a word; nothing in training itself."""
        return "pretraining" if self.pretraining else "refit" if self.refit else ""

    @property
    def is_best(self) -> bool:
        """Whether its model is the best: at the end of the best epoch, or of the refit."""
        best = self.refit_epochs if self.refit else self.best_epoch
        return self.batches_done == 0 and 0 < self.epoch == best

    def add_batch(self, loss: float, correct: int, examples: int, time_steps: int) -> None:
        """Count one update, and what it learned from."""
        self.updates += 1
        self.batches_done += 1
        self.loss_sum += loss * examples
        self.correct += correct
        self.examples += examples
        self.time_steps += time_steps

    def note_value(self, value: float, loss: float | None = None, error: float = 0.0) -> bool:
        """Compare an epoch's monitored value; say whether it is the best.

        Of epochs with equal values the one with the lowest loss is the best, though no better for
        patience and plateaus. A refit goes on to the last epoch within the standard error of the
        best one, so that few rows of validation don't end it early.

        Reference:
            Breiman et al. 1984, Classification and Regression Trees, section 3.4.3.
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
        """Compare a validation loss with the lowest; if it `counts`, patience starts again."""
        self.loss_fell = loss is not None and loss < self.lowest_loss
        if loss is not None and self.loss_fell:
            self.lowest_loss = loss
            self.epochs_without_better *= not counts

    def begin_epoch(self, epoch: int) -> None:
        """Set the sums back for a new epoch."""
        self.epoch, self.batches_done = epoch, 0
        self.correct = self.examples = self.time_steps = 0
        self.loss_sum = self.seconds = 0.0


def checked_progress(values: dict[str, Any]) -> Progress:
    """Return counters that a run can have had, else raise ValueError."""
    if values.keys() != vars(Progress()).keys():
        raise ValueError(f"progress: expected {', '.join(vars(Progress()))}")
    try:
        return TypeAdapter(Progress).validate_python(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(["progress", *map(str, first["loc"])])
        raise ValueError(f"{place}: {first['msg'].removeprefix('Value error, ')[:80]}") from None


def check_names(tensors: dict[str, Tensor]) -> None:
    """Refuse, by ValueError, a saved state with a tensor that no training has."""
    for key in tensors:
        if not TENSOR.fullmatch(key):
            raise ValueError(f"{key[:80]}: no tensor of a state")


def check_tensor(name: str, tensor: Tensor, shape: torch.Size, kind: torch.dtype) -> None:
    """Refuse, by ValueError, a saved tensor of another shape or type, or not finite."""
    if tensor.shape != shape or tensor.dtype != kind:
        raise ValueError(
            f"{name}: found {tensor.dtype} {list(tensor.shape)}, expected {kind} {list(shape)}"
        )
    if not bool(torch.isfinite(tensor).all()):
        raise ValueError(f"{name}: holds values that aren't finite")
