"""Event files for TensorBoard (`fit --log tensorboard`)."""

from collections.abc import Mapping
from typing import Any

from seqtrain.api.named_runs import Run
from seqtrain.api.run_events import Event, StartEvent
from seqtrain.cli.screens.console import show_warning
from seqtrain.errors import missing_package
from seqtrain.runs.run_writer import UPDATES_PER_LINE, metrics_line
from seqtrain.training.events import EpochEvent, UpdateEvent

LOG_FOLDER = "tensorboard"
"""Folder of the event files in a run directory."""


class EventLog:
    """Listener of `fit` that writes the scores of its events to event files.

    Only every `UPDATES_PER_LINE`-th update is written. If writing fails, a warning is printed, and
    training continues without the log.

    Raises:
        ConfigError: If the package tensorboard isn't installed.
    """

    def __init__(self) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise missing_package("--log tensorboard", "tensorboard", "tensorboard") from None
        self._make: Any = SummaryWriter
        self._writer: Any = None
        self._failed = False

    def __call__(self, event: Event) -> None:
        try:
            if not self._failed:
                self._write(event)
        except Exception as error:  # no error of the log may stop training
            self._failed = True
            show_warning(
                f"--log: stopped by {type(error).__name__}: {error}; training continues without it"
            )

    def _write(self, event: Event) -> None:
        if isinstance(event, StartEvent):
            self._writer = self._make(str(event.run / LOG_FOLDER), purge_step=event.resumed_at)
        elif isinstance(event, UpdateEvent | EpochEvent):
            if isinstance(event, EpochEvent) or event.update % UPDATES_PER_LINE == 0:
                line = metrics_line(event)
                self._add(line["event"], line, event.update)
        elif isinstance(event, Run):
            self._add("test", event.test.metric_values() if event.test else {}, event.epochs)
            self._writer.close()

    def _add(self, group: str, scores: Mapping[str, Any], at: int) -> None:
        """Write scores with names such as "test/loss", "train/loss" or "refit/train/loss".

        Args:
            group: First part of the names. The group "epoch" is left out before the name of a
                split.
            scores: Maps the name of a score to its value, or the name of a split to a mapping of
                scores. Values that aren't floats are ignored.
            at: Number of the update. For the group "test", number of the epoch.
        """
        for name, value in scores.items():
            if isinstance(value, Mapping):
                self._add(name if group == "epoch" else f"{group}/{name}", value, at)
            elif isinstance(value, float):
                self._writer.add_scalar(f"{group}/{name}", value, at)
        self._writer.flush()
