"""Events for a listener of `fit`, in order: data, start, updates, epochs, and the run."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from seqtrain.api.named_runs import Run
from seqtrain.config.schema import Config
from seqtrain.data.dataset import PreparedData
from seqtrain.data.summary import SplitSummary, padding_shares, summarize, warnings
from seqtrain.training.events import EpochEvent, UpdateEvent


@dataclass(frozen=True)
class DataEvent:
    """The end of reading and encoding, with the seconds that it took."""

    data: PreparedData
    config: Config
    seconds: float

    @cached_property
    def summaries(self) -> dict[str, SplitSummary]:
        """Figures of each split."""
        return summarize(self.data)

    @cached_property
    def padding(self) -> tuple[float, float]:
        """Share of padding of train in random batches, and in buckets."""
        return padding_shares(self.data, self.config.batching, self.config.seed)

    @cached_property
    def warnings(self) -> list[str]:
        """Warnings about the data, one line each."""
        return warnings(self.data, self.summaries, self.config)


@dataclass(frozen=True)
class StartEvent:
    """The start of training, or its continuation after a resume.

    Attributes:
        config: Resolved config.
        epochs, updates: Limits of training.
        resumed_at: Number of updates before the resume, or 0.
        nothing_left: Reason why no epoch is left to train, or None if one is.
        warnings: Reasons why the resume may not be exact to the bit, one line each.
        origin: Summary of the weights that were kept of an earlier model, or None.
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
Listener: TypeAlias = Callable[[Event], None]
