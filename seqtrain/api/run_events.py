"""Events for a listener of `fit`, in order: data, start, updates, epochs, and the run."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from seqtrain.config.schema import Config
from seqtrain.data.dataset import PreparedData
from seqtrain.data.readers import TableSource
from seqtrain.data.summary import SplitSummary, padding_shares, summarize, warnings
from seqtrain.evaluation.scores import Scores
from seqtrain.text import Summarized
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


@dataclass(frozen=True, repr=False)
class Run(Summarized):
    """A finished run. `fit` returns it, and the listener receives it as the last event.

    Attributes:
        path: Run directory. Its folder `best` holds the model to predict with.
        epochs: Number of epochs of training, or of the refit if there was one.
        best_epoch: Epoch of training with the best monitored value, from 1.
        best_value: Monitored value of the best epoch, or NaN if nothing was monitored.
        stopped_early: True if the stopping rule ended training before the last epoch.
        test: Scores on test, or None without a test split.
        refit: True if a new model was trained on train and validation together. It is in `best`
            instead of the model of the best epoch.
        advice: Advice on how to get a better model, or None.
        branches: Score on test of each branch by name, by the metric of `compared_metric`.
        warnings: Warnings about the predictions, one line each.
        tables: Data in memory that the run was trained on. `evaluate` can score it again.
    """

    path: Path
    epochs: int
    best_epoch: int
    best_value: float
    stopped_early: bool
    test: Scores | None
    refit: bool = False
    advice: str | None = None
    branches: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    tables: tuple[TableSource, ...] = field(default=(), compare=False)

    def summary(self) -> dict[str, str]:
        """Return its path, its epochs, and the accuracy on test if there is one."""
        found = {"path": str(self.path), "best epoch": f"{self.best_epoch} of {self.epochs}"}
        if self.refit:
            found = {"path": str(self.path), "epochs of the refit": f"{self.epochs}"}
        return found | ({"test accuracy": f"{self.test.accuracy:.2%}"} if self.test else {})


Event: TypeAlias = DataEvent | StartEvent | UpdateEvent | EpochEvent | Run
Listener: TypeAlias = Callable[[Event], None]
