"""Events for a listener of `fit`, in order: data, start, updates, epochs, and the run.

A listener ends training by returning `STOP`, or by raising an exception. The run is saved and can
be resumed, as after a signal.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Final, TypeAlias

from seqtrain.api.named_runs import Run
from seqtrain.config.schema import Config
from seqtrain.errors import warn
from seqtrain.sequences.dataset import PreparedData
from seqtrain.sequences.summary import SplitSummary, padding_shares, summarize, warnings
from seqtrain.training.events import EpochEvent, UpdateEvent


@dataclass(frozen=True)
class DataEvent:
    """The end of reading and encoding the data.

    Attributes:
        data: Encoded splits.
        config: Resolved config.
        seconds: Time that reading and encoding took.
    """

    data: PreparedData
    config: Config
    seconds: float

    @cached_property
    def summaries(self) -> dict[str, SplitSummary]:
        """Size, lengths and shares of each split, by its name."""
        return summarize(self.data)

    @cached_property
    def padding(self) -> tuple[float, float]:
        """Share of padding of train, in [0, 1): in random batches, and in batches by length."""
        return padding_shares(self.data, self.config.batching, self.config.seed)

    @cached_property
    def warnings(self) -> list[str]:
        """Warnings about the data, one line each."""
        return warnings(self.data, self.summaries, self.config)


@dataclass(frozen=True)
class StartEvent:
    """The start of a new run, or of a run that resumes.

    Attributes:
        run: Run directory.
        config: Resolved config.
        device: Name of the device.
        engine: Name of the engine of the recurrence.
        engine_reason: Reason why this engine is used.
        parameters: Number of weights of the model.
        epochs: Largest number of epochs of training.
        updates: Largest number of updates of training.
        resumed_at: Number of updates in the current phase before the resume, or 0.
        nothing_left: Reason why no epoch is left to train, or None if one is.
        pretraining: True if the current phase is pretraining.
        warnings: Damaged checkpoints, and reasons why the resume may not be exact to the bit; one
            line each.
        origin: Line on the weights that were copied from an earlier model, or None.
    """

    run: Path
    config: Config
    device: str
    engine: str
    engine_reason: str
    parameters: int
    epochs: int
    updates: int
    resumed_at: int
    nothing_left: str | None
    pretraining: bool
    warnings: list[str]
    origin: str | None = None


Event: TypeAlias = DataEvent | StartEvent | UpdateEvent | EpochEvent | Run
"""An event of `fit`. A finished `Run` is the last one."""
Listener: TypeAlias = Callable[[Event], object]
"""Function that `fit` calls with each event, on rank 0. Its result counts only if it is `STOP`."""


class Stop(Enum):
    """Type of `STOP`."""

    STOP = "stop"


STOP: Final = Stop.STOP
"""What a listener returns to end training."""


class StoppingListener:
    """Listener that issues warnings, shows progress and calls the user's listener.

    It keeps the wish of the user's listener to end training. After that wish, the user's listener
    isn't called any more.

    Args:
        listener: The user's listener.
        progress: Listener that shows progress, or None.

    Attributes:
        wants_stop: True if the user's listener returned `STOP` or raised an exception.
        error: The exception, or None.
    """

    def __init__(self, listener: Listener, progress: Listener | None) -> None:
        self.wants_stop = False
        self.error: Exception | None = None
        self._listener = listener
        self._progress = progress

    def __call__(self, event: Event) -> None:
        if self.wants_stop:
            return
        try:
            self.wants_stop = self.tell(event) is STOP
        except Exception as error:
            self.error = error
            self.wants_stop = True

    def tell(self, event: Event) -> object:
        """Pass an event on, and return the answer of the user's listener."""
        if isinstance(event, DataEvent | StartEvent | Run):
            warn(*event.warnings)
        if self._progress is not None:
            self._progress(event)
        return self._listener(event)
