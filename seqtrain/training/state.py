"""Progress of a phase: counters and sums that an exact resume needs, and checks of saved ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import torch
from pydantic import Field, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass
from torch import Tensor

from seqtrain.training.events import Phase

MOST_SUMMED = 1e300
"""Largest sum or loss that is accepted from a file."""
Count = Annotated[int, Field(strict=True, ge=0, le=2**62)]
Sum = Annotated[float, Field(strict=True, ge=0, le=MOST_SUMMED)]
Signed = Annotated[float, Field(strict=True, ge=-MOST_SUMMED, le=MOST_SUMMED)]
"""Number of any sign, such as a monitored value."""


@dataclass
class Progress:
    """Position in a phase of a run, with the sums and results so far.

    Together with the weights and the state of the optimizer, it is the training state.

    Attributes:
        phase: Name of the phase.
        epoch: Number of complete epochs, which is the number of the current epoch, from 0.
        updates: Number of updates in this phase.
        batches_done: Number of batches of the current epoch that were learned from.
        loss_sum: Sum of the losses in these batches, in nats, added up over the branches.
        correct: Number of correct predictions in these batches.
        examples: Number of examples of these batches; in pretraining, of predicted tokens.
        time_steps: Number of time steps of these batches, without padding.
        seconds: Duration of the updates by these batches.
        best_value: Monitored value of the best epoch, negated if smaller is better. None before the
            first epoch ends.
        best_epoch: Number of the best epoch, from 1, or 0 before the first epoch ends.
        best_error: Standard error of the best value, or 0 if it is unknown.
        refit_epochs: Number of epochs for a refit by the epochs so far, see
            `StoppingRule.note_epoch`.
        epochs_without_better: Number of epochs since the last progress, see `StoppingRule`.
        plateaus: Number of epochs of this phase whose value wasn't a new maximum.
        best_loss: Validation loss of the best epoch in nats, or without validation its training
            loss. `MOST_SUMMED` before the first epoch ends.
        lowest_loss: Lowest validation loss in nats; decreases of at most `min_delta` don't count.
            `MOST_SUMMED` before the first epoch ends, and without validation.
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
        """Raise ValueError if counters contradict each other, as in a damaged file."""
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
        """True if the weights of this position are the model to keep.

        This is the case right after the best epoch, and at the end of a refit.
        """
        best = self.refit_epochs if self.phase == "refit" else self.best_epoch
        return self.batches_done == 0 and 0 < self.epoch == best

    def add_batch(self, loss: float, correct: int, examples: int, time_steps: int) -> None:
        """Add an update to the counters and sums of the current epoch.

        Args:
            loss: Mean loss of the batch in nats.
            correct: Number of correct predictions.
            examples: Number of examples; in pretraining, of predicted tokens.
            time_steps: Number of time steps of the batch, without padding.
        """
        self.updates += 1
        self.batches_done += 1
        self.loss_sum += loss * examples
        self.correct += correct
        self.examples += examples
        self.time_steps += time_steps

    def begin_epoch(self) -> None:
        """Begin the next epoch: its number is one larger, and its counters and sums are zero."""
        self.epoch, self.batches_done = self.epoch + 1, 0
        self.correct = self.examples = self.time_steps = 0
        self.loss_sum = self.seconds = 0.0


def checked_progress(values: dict[str, Any]) -> Progress:
    """Return the progress with attributes that were read from a file.

    Args:
        values: Values of the attributes by name.

    Raises:
        ValueError: If an attribute is missing, unknown or invalid, or if two contradict each other.
    """
    if values.keys() != vars(Progress()).keys():
        raise ValueError(f"progress: expected {', '.join(vars(Progress()))}")
    try:
        return TypeAdapter(Progress).validate_python(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(["progress", *map(str, first["loc"])])
        raise ValueError(f"{place}: {first['msg'].removeprefix('Value error, ')[:80]}") from None


def check_tensors(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Check that tensors from a file can replace the tensors of a model or optimizer.

    Args:
        found: Tensors from the file, by name.
        expected: Tensors of the model or optimizer, by name.

    Raises:
        ValueError: If the names, a shape or a type differ, or a value from the file isn't finite.
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
