"""Progress of a phase: the counters and sums that an exact resume needs, and their checks."""

from __future__ import annotations

from collections.abc import Mapping
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

    def begin_epoch(self) -> None:
        """Start the next epoch, with all its sums at zero."""
        self.epoch, self.batches_done = self.epoch + 1, 0
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


def check_tensors(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Check saved tensors against tensors of the same names.

    Raises:
        ValueError: If a name, a shape or a type differs, or a saved number isn't finite.
    """
    for name in sorted(found.keys() ^ expected.keys()):
        raise ValueError(f"tensor {name[:80]}: {'missing' if name in expected else 'unknown'}")
    for name, tensor in found.items():
        like = expected[name]
        if tensor.shape != like.shape or tensor.dtype != like.dtype:
            shapes = f"{tensor.dtype} {[*tensor.shape]}, expected {like.dtype} {[*like.shape]}"
            raise ValueError(f"tensor {name}: found {shapes}; of another version? train it again")
        if not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"tensor {name}: holds values that aren't finite")
