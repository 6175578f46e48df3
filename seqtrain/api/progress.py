"""Progress of `fit` in Python: lines on stderr, and a bar in a terminal or a notebook."""

import sys
from typing import Any

from seqtrain.api.named_runs import Run
from seqtrain.api.run_events import DataEvent, Event, StartEvent
from seqtrain.metrics import METRICS
from seqtrain.text import counted, printable
from seqtrain.training.events import EpochEvent, UpdateEvent

PROGRESS_METRICS = ("loss", "accuracy", "macro_f1")
"""Names of the metrics of validation that are shown for each epoch."""
WIDTH = 12
"""Width of a column of the epochs, in characters."""


class FitProgress:
    """Listener of `fit` that shows data, epochs and scores as lines, and a bar for each epoch.

    The bar is tqdm's. It isn't shown where stderr is a file.
    """

    def __init__(self) -> None:
        self._bar: Any = None
        self._headings: list[str] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, UpdateEvent):
            self._show_update(event)
            return
        self._close_bar()
        if isinstance(event, DataEvent):
            self._say(*_data_lines(event))
        elif isinstance(event, StartEvent):
            self._headings = []
            self._say(*start_lines(event))
        elif isinstance(event, EpochEvent):
            self._show_epoch(_epoch_row(event))
        elif isinstance(event, Run):
            self._say(*_end_lines(event))

    def _show_update(self, event: UpdateEvent) -> None:
        """Show the share of the epoch that is done, and the loss."""
        if self._bar is None:
            from tqdm.auto import tqdm  # slow to import, and the command line has its own bar

            self._bar = tqdm(
                desc=f"epoch {event.epoch}",
                total=event.num_batches,
                initial=event.batch - 1,
                file=sys.stderr,
                leave=False,
                disable=False if _in_notebook() else None,  # None: where stderr is no terminal
            )
        self._bar.set_postfix_str(f"loss {event.loss:.4f}", refresh=False)
        self._bar.update(event.batch - self._bar.n)

    def _close_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _say(self, *lines: str) -> None:
        print(*map(printable, lines), sep="\n", file=sys.stderr)

    def _show_epoch(self, row: dict[str, str]) -> None:
        """Show the row of an epoch. Its headings precede it if they are new."""
        if self._headings != [*row]:
            self._headings = [*row]
            self._say(" ".join(f"{heading:>{WIDTH}}" for heading in row))
        self._say(" ".join(f"{cell:>{WIDTH}}" for cell in row.values()))


def _data_lines(event: DataEvent) -> list[str]:
    """Return a line with the numbers of rows and classes."""
    rows = [f"{name} {summary.rows:,}" for name, summary in event.summaries.items()]
    classes = len(event.data.preprocessing.labels)
    return [f"rows: {', '.join(rows)}; classes: {classes:,}"]


def start_lines(event: StartEvent, *, verbose: bool = False) -> list[str]:
    """Return lines about the start of training.

    Args:
        event: The start.
        verbose: True to include the reason for the engine.
    """
    reason = f" ({event.engine_reason})" if verbose else ""
    line = f"{event.parameters:,} parameters on {event.device}, engine {event.engine}{reason}"
    if event.resumed_at and not event.nothing_left:
        phase = "pretraining step" if event.pretraining else "step"
        line += f", resumed after {phase} {event.resumed_at:,}"
    refit = ", then a new model (training.refit)" if event.config.training.refit else ""
    most = f"{counted(event.epochs, 'epoch')}, {counted(event.updates, 'update')}"
    lines = [line, event.origin or "", f"at most {most}{refit}"]
    if event.nothing_left:
        lines.append(f"nothing left to train: {event.nothing_left}")
    return [*filter(None, lines), f"run directory: {event.run}"]


def _epoch_row(event: EpochEvent) -> dict[str, str]:
    """Return the cells of an epoch's row by their headings."""
    phase = "" if event.phase == "training" else f"{event.phase} "
    row = {
        "epoch": f"{phase}{event.epoch}{' *' if event.is_best else ''}",
        "train loss": f"{event.loss:.4f}",
    }
    if event.validation is not None:
        for name in PROGRESS_METRICS:
            row[f"val. {METRICS[name].title}"] = event.validation.text(METRICS[name])
    return {**row, "seconds": f"{event.seconds:.1f}"}


def best_epoch_line(run: Run) -> str:
    """Return a line about the best epoch of a finished run.

    It mentions the refit or, without one, early stopping.
    """
    if run.refit:
        epochs = counted(run.epochs, "epoch")
        return f"best epoch {run.best_epoch}; the model of the refit is kept ({epochs})"
    reason = ", stopped early" if run.stopped_early else ""
    return f"best epoch {run.best_epoch} of {run.epochs}{reason}"


def _end_lines(run: Run) -> list[str]:
    """Return lines about the best epoch, the scores on test, and advice, if there is any."""
    lines = [best_epoch_line(run)]
    if run.test is not None:
        scores = [f"{name} {value}" for name, value in run.test.summary().items()]
        lines.append(f"test: {', '.join(scores)}")
    return lines + ([run.advice] if run.advice else [])


def _in_notebook() -> bool:
    """Return True in a Jupyter kernel, which shows rich output."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
