"""Event files for TensorBoard (`fit --log tensorboard`). If they fail, training continues."""

from typing import Any

from seqtrain.api.run_events import Event, Run, StartEvent
from seqtrain.cli.output.console import warn
from seqtrain.errors import missing_package
from seqtrain.runs.run_writer import UPDATES_PER_LINE
from seqtrain.training.events import EpochEvent, UpdateEvent

FOLDER = "tensorboard"


class EventLog:
    """A listener of `fit` that writes the figures of its events.

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
            cause = f"{type(error).__name__}: {error}"
            warn(f"--log: stopped by {cause}; training continues without it")

    def _write(self, event: Event) -> None:
        """Write the figures of an event; pretraining and a refit have separate names."""
        if isinstance(event, StartEvent):
            self._writer = self._make(str(event.run / FOLDER), purge_step=event.resumed_at)
            return
        at, figures, group = 0, dict[str, float](), "train"
        if isinstance(event, UpdateEvent | EpochEvent):
            at = event.update
            group = "pretraining" if event.pretraining else "refit" if event.refit else "train"
        if isinstance(event, UpdateEvent) and event.update % UPDATES_PER_LINE == 0:
            figures = {f"{group}/loss": event.loss, f"{group}/lr": event.lr}
        elif isinstance(event, EpochEvent):
            speed = event.time_steps / event.seconds
            figures = {f"{group}/epoch_loss": event.loss, f"{group}/tokens_per_second": speed}
            if event.validation is not None:
                figures[f"{group}/epoch_accuracy"] = event.accuracy
                scores = event.validation.figures()
                figures |= {f"validation/{name}": value for name, value in scores.items()}
        elif isinstance(event, Run) and event.test is not None:
            at, scores = event.epochs, event.test.figures()
            figures = {f"test/{name}": value for name, value in scores.items()}
        for name, value in figures.items():
            self._writer.add_scalar(name, value, at)
        if isinstance(event, Run):
            self._writer.close()
        elif figures:
            self._writer.flush()
