"""`fit --log tensorboard`: the run's figures as event files. A log that fails stops no training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seqtrain.api.recorder import UPDATES_PER_LINE
from seqtrain.api.run_events import Event, Run, StartEvent
from seqtrain.cli.output.console import warn
from seqtrain.errors import ConfigError
from seqtrain.evaluation.metrics import OF_AN_EPOCH
from seqtrain.training.events import EpochEvent, UpdateEvent

if TYPE_CHECKING:
    from seqtrain.api.run_events import Listener

FOLDER = "tensorboard"


class EventLog:
    """A listener of `fit` that passes events on, and writes their figures beside.

    Args:
        listener: hears of each event first.

    Raises:
        ConfigError: the package tensorboard isn't installed.
    """

    def __init__(self, listener: Listener) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise ConfigError(
                "--log tensorboard needs the package tensorboard; "
                "install it with: pip install 'seqtrain[tensorboard]'"
            ) from None
        self._make: Any = SummaryWriter
        self._writer: Any = None
        self._listener = listener
        self._failed = False

    def __call__(self, event: Event) -> None:
        """Pass an event on, then write it down."""
        self._listener(event)
        if self._failed:
            return
        try:
            self._write(event)
        except Exception as error:  # whatever a tracker does, training goes on
            self._failed = True
            warn(f"--log: stopped by {type(error).__name__}: {error}; training goes on without it")

    def _write(self, event: Event) -> None:
        if isinstance(event, StartEvent):
            folder = event.run / FOLDER
            if folder.is_symlink():
                raise ConfigError(f"{folder}: is a link; expected a folder of the run's own")
            self._writer = self._make(str(folder), purge_step=event.resumed_at)
        elif isinstance(event, UpdateEvent) and event.update % UPDATES_PER_LINE == 0:
            self._add(event, {"loss": event.loss, "lr": event.lr})
        elif isinstance(event, EpochEvent):
            speed = event.time_steps / event.seconds
            self._add(event, {"epoch_loss": event.loss, "tokens_per_second": speed})
            if event.validation is not None:
                self._add(event, {"epoch_accuracy": event.accuracy})
                self._add(event, event.validation.figures(OF_AN_EPOCH), "validation")
        elif isinstance(event, Run):
            for name, value in event.test.figures().items() if event.test is not None else ():
                self._writer.add_scalar(f"test/{name}", value, event.epochs)
            self._writer.close()

    def _add(
        self, event: UpdateEvent | EpochEvent, figures: dict[str, float], group: str = "train"
    ) -> None:
        """Add figures at the update's number; other trainings' have names of their own."""
        group = "pretraining" if event.pretraining else "refit" if event.refit else group
        for name, value in figures.items():
            self._writer.add_scalar(f"{group}/{name}", value, event.update)
        self._writer.flush()
