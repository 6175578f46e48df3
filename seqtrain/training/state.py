"""Progress of a phase: the counters and sums that an exact resume needs, and their checks."""

from __future__ import annotations

import re
from typing import Annotated, Any

import torch
from pydantic import Field, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass
from torch import Tensor

from seqtrain.training.events import Phase

MOST_SUMMED = 1e300
"""Largest sum that is accepted from a file."""
Count = Annotated[int, Field(strict=True, ge=0, le=2**62)]
Sum = Annotated[float, Field(strict=True, ge=0, le=MOST_SUMMED)]
Signed = Annotated[float, Field(strict=True, ge=-MOST_SUMMED, le=MOST_SUMMED)]
Flag = Annotated[bool, Field(strict=True)]
TENSOR = re.compile(r"optimizer\.[0-9]{1,9}\.[a-z_]+|carried\.(groups|states)|pretraining\..+")
"""Names of the tensors of a saved training state."""


@dataclass
class Progress:
    """Counters and sums of a phase. With weights and optimizer they are the training state.

    Attributes:
        phase: The phase of the run.
        epoch: Number of the current epoch, from 0.
        updates: Number of updates in this phase.
        batches_done: Number of batches of this epoch that were learned from.
        loss_sum: Sum of the losses of this epoch, in nats.
        correct: Number of correct predictions in this epoch.
        examples: Number of examples in this epoch; in pretraining, of predicted tokens.
        time_steps: Number of time steps in this epoch.
        seconds: Time of the updates of this epoch.
        best_value: Best monitored value so far (greater is better), or None before the first.
        best_epoch: Its epoch, from 1, or 0 before the first.
        best_error: Standard error of the best value, or 0 if it has none.
        refit_epochs: Number of epochs of a refit.
        epochs_without_better: Number of epochs since the last progress.
        plateaus: Number of epochs without a better value in the whole phase.
        best_loss: Loss of the best epoch in nats: of validation, or of train without validation.
        lowest_loss: Validation loss after its last improvement.
        loss_fell: True if the last epoch improved the validation loss.
    """

    phase: Phase = "training"
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
        """Raise ValueError if counters contradict each other."""
        sums = self.examples, self.time_steps, self.seconds
        if self.phase == "refit":
            epochs_fit = self.epoch <= self.refit_epochs
        else:
            epochs_fit = self.refit_epochs <= self.epoch
        if not (
            self.updates >= self.batches_done
            and all(bool(value) == bool(self.batches_done) for value in sums)
            and self.correct <= self.examples
            and (self.phase == "pretraining" or self.examples <= self.time_steps)
            and self.best_epoch <= self.refit_epochs
            and epochs_fit
            and (self.best_value is None) == (self.best_epoch == 0)
        ):
            raise ValueError("the counters contradict each other")
        return self

    @property
    def is_best(self) -> bool:
        """True at the end of the best epoch, or of the last epoch of a refit."""
        best = self.refit_epochs if self.phase == "refit" else self.best_epoch
        return self.batches_done == 0 and 0 < self.epoch == best

    def add_batch(self, loss: float, correct: int, examples: int, time_steps: int) -> None:
        """Count an update and what it learned from."""
        self.updates += 1
        self.batches_done += 1
        self.loss_sum += loss * examples
        self.correct += correct
        self.examples += examples
        self.time_steps += time_steps

    def note_value(
        self, value: float, loss: float | None = None, error: float = 0.0, min_delta: float = 0.0
    ) -> bool:
        """Compare an epoch's monitored value with the best; return True if it is better.

        Of epochs with equal values, the one with the lowest loss is the best. It is no progress for
        patience and plateaus. A refit has as many epochs as there are up to the last one within a
        standard error of the best, so that few validation rows don't make it too short. Of epochs
        in which all of validation was right, only those with a lower loss count.

        Args:
            value: Monitored value; greater is better.
            loss: Loss in nats, or None if it doesn't matter.
            error: Standard error of the value.
            min_delta: Smallest decrease of the loss that counts.

        Reference:
            Breiman et al. 1984, Classification and Regression Trees, section 3.4.3.
        """
        better = self.best_value is None or value > self.best_value
        if better:
            self.epochs_without_better = 0
        else:
            self.epochs_without_better += 1
            self.plateaus += 1
        lower = value == self.best_value and loss is not None and loss < self.best_loss - min_delta
        if better or lower:
            self.best_value, self.best_epoch = value, self.epoch + 1
            self.best_loss, self.best_error = MOST_SUMMED if loss is None else loss, error
        is_near = self.best_value is not None and value >= self.best_value - self.best_error
        if better or lower or (is_near and value < 1):
            self.refit_epochs = self.epoch + 1
        return better or lower

    def note_loss(self, loss: float | None, *, counts: bool, min_delta: float = 0.0) -> None:
        """Compare a validation loss with the lowest. If it `counts`, a lower one is progress."""
        self.loss_fell = loss is not None and loss < self.lowest_loss - min_delta
        if loss is not None and self.loss_fell:
            self.lowest_loss = loss
            self.epochs_without_better *= not counts

    def begin_epoch(self, epoch: int) -> None:
        """Start an epoch, counted from 0, with all its sums at zero."""
        self.epoch, self.batches_done = epoch, 0
        self.correct = self.examples = self.time_steps = 0
        self.loss_sum = self.seconds = 0.0


def checked_progress(values: dict[str, Any]) -> Progress:
    """Return the progress that was saved; raise ValueError if no run can have had it."""
    if values.keys() != vars(Progress()).keys():
        raise ValueError(f"progress: expected {', '.join(vars(Progress()))}")
    try:
        return TypeAdapter(Progress).validate_python(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(["progress", *map(str, first["loc"])])
        raise ValueError(f"{place}: {first['msg'].removeprefix('Value error, ')[:80]}") from None


def check_names(tensors: dict[str, Tensor]) -> None:
    """Raise ValueError if a saved training state has a tensor of an unknown name."""
    for key in tensors:
        if not TENSOR.fullmatch(key):
            raise ValueError(f"{key[:80]}: no tensor of a state")


def check_tensor(name: str, tensor: Tensor, shape: torch.Size, kind: torch.dtype) -> None:
    """Raise ValueError if a saved tensor has another shape or type, or isn't finite."""
    if tensor.shape != shape or tensor.dtype != kind:
        raise ValueError(
            f"{name}: found {tensor.dtype} {list(tensor.shape)}, expected {kind} {list(shape)}"
        )
    if not bool(torch.isfinite(tensor).all()):
        raise ValueError(f"{name}: holds values that aren't finite")
