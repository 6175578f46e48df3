"""The position of a run in its phases: all numbers that a checkpoint holds."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from seqtrain.files.saved import invalid
from seqtrain.training.events import Phase
from seqtrain.training.stopping import EpochResult, Signed, Sum

Count = Annotated[int, Field(ge=0, le=2**62)]


class Progress(BaseModel):
    """Position in a phase of a run, and the results of all epochs of training.

    Attributes:
        phase: Name of the current phase.
        history: Results of the complete epochs of training. Best epoch, early stopping and the
            number of epochs of a refit follow from them.
        other_epochs: Number of complete epochs of pretraining or of the refit, in these phases.
        updates: Number of updates in this phase.
        batches: Number of batches of the current epoch that were learned from.
        loss_sum: Sum of the losses in these batches, in nats.
        correct: Number of correct predictions in these batches.
        examples: Number of examples of these batches; in pretraining, of predicted tokens.
        time_steps: Number of time steps of these batches, without padding.
        seconds: Duration of the updates by these batches.
    """

    model_config = ConfigDict(strict=True, extra="forbid")

    phase: Phase = "training"
    history: list[EpochResult] = []
    other_epochs: Count = 0
    updates: Count = 0
    batches: Count = 0
    loss_sum: Signed = 0.0
    correct: Count = 0
    examples: Count = 0
    time_steps: Count = 0
    seconds: Sum = 0.0

    @model_validator(mode="after")
    def _check_proportions(self) -> Progress:
        """Raise ValueError if numbers contradict each other, as in a damaged file."""
        sums = self.examples, self.time_steps, self.seconds
        if (
            self.updates < self.batches
            or any(bool(value) != bool(self.batches) for value in sums)
            or self.correct > self.examples
            or (self.phase != "pretraining" and self.examples > self.time_steps)
            or (self.phase == "training" and self.other_epochs > 0)
            or (self.phase == "pretraining" and len(self.history) > 0)
            or (self.phase == "refit" and not self.history)
        ):
            raise ValueError("the counters contradict each other")
        return self

    @property
    def epoch(self) -> int:
        """Number of complete epochs of the phase: the number of the current one, from 0."""
        if self.phase == "training":
            return len(self.history)
        return self.other_epochs

    def begin_phase(self, phase: Phase) -> None:
        """Go to the beginning of a phase. The history of training stays."""
        self.phase = phase
        self.other_epochs = self.updates = 0
        self._begin_sums()

    def add_batch(self, loss: float, correct: int, examples: int, time_steps: int) -> None:
        """Add an update to the counters and sums of the current epoch.

        Args:
            loss: Mean loss of the batch in nats.
            correct: Number of correct predictions.
            examples: Number of examples; in pretraining, of predicted tokens.
            time_steps: Number of time steps of the batch, without padding.
        """
        self.updates += 1
        self.batches += 1
        self.loss_sum += loss * examples
        self.correct += correct
        self.examples += examples
        self.time_steps += time_steps

    def end_epoch(self, result: EpochResult | None) -> None:
        """Count the epoch, and begin the next one.

        Args:
            result: Result of an epoch of training, or None in the other phases.
        """
        if result is None:
            self.other_epochs += 1
        else:
            self.history.append(result)
        self._begin_sums()

    def _begin_sums(self) -> None:
        self.batches = self.correct = self.examples = self.time_steps = 0
        self.loss_sum = self.seconds = 0.0


def checked_progress(values: Any) -> Progress:
    """Return the progress whose values were read from a file.

    Args:
        values: Values of the attributes by name.

    Raises:
        ValueError: If an attribute is missing, unknown or invalid, or if two contradict each other.
    """
    if not isinstance(values, dict) or values.keys() != Progress.model_fields.keys():
        raise ValueError(f"progress: expected {', '.join(Progress.model_fields)}")
    try:
        return Progress.model_validate(values)
    except ValidationError as error:
        raise ValueError(f"progress: {invalid(error)}") from None
