"""Progress of `fit` in Python: lines on stderr, or one updating table in a notebook."""

import sys
import time
from html import escape
from importlib import import_module
from typing import Any

from seqtrain.api.named_runs import Run
from seqtrain.api.run_events import DataEvent, Event, StartEvent
from seqtrain.metrics import METRICS
from seqtrain.text import counted, printable
from seqtrain.training.events import EpochEvent, UpdateEvent

SHOWN = ("loss", "accuracy", "macro_f1")
"""Names of the metrics of validation that are shown for each epoch."""
WIDTH = 12
"""Width of a column on stderr, in characters."""
SECONDS_BETWEEN = 0.5
"""Least number of seconds between two updates of a notebook's table within an epoch."""


class Progress:
    """Listener of `fit` that shows data, epochs and scores.

    Outside a notebook it prints lines on stderr, one of them for each epoch. In a notebook it shows
    one table and updates it. A saved notebook then has the last state of the table only.
    """

    def __init__(self) -> None:
        self._is_notebook = _in_notebook()
        self._lines: list[str] = []
        self._rows: list[dict[str, str]] = []
        self._display: Any = None
        self._shown_at = 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, DataEvent):
            self._say(*_data_lines(event))
        elif isinstance(event, StartEvent):
            self._rows = []
            self._say(*start_lines(event))
        elif isinstance(event, EpochEvent):
            self._add_row(_epoch_row(event))
        elif isinstance(event, UpdateEvent):
            now = time.monotonic()
            if self._is_notebook and now - self._shown_at > SECONDS_BETWEEN:
                share = event.batch / event.num_batches
                self._show(f"epoch {event.epoch}: {share:.0%}, loss {event.loss:.4f}")
        elif isinstance(event, Run):
            self._say(*_end_lines(event))

    def _say(self, *lines: str) -> None:
        """Show lines of text: above the table in a notebook, or else on stderr."""
        self._lines += lines
        if self._is_notebook:
            self._show()
        else:
            print(*map(printable, lines), sep="\n", file=sys.stderr)

    def _add_row(self, row: dict[str, str]) -> None:
        """Show the row of an epoch. On stderr, its headings precede it if they are new."""
        is_first = not self._rows or self._rows[-1].keys() != row.keys()
        self._rows.append(row)
        if self._is_notebook:
            self._show()
            return
        for cells in ([*row], [*row.values()]) if is_first else ([*row.values()],):
            print(*(f"{cell:>{WIDTH}}" for cell in cells), sep=" ", file=sys.stderr)

    def _show(self, status: str = "") -> None:
        """Show all lines and rows in the notebook, in place of what was shown before.

        Args:
            status: Line about the current epoch, or "".
        """
        display = import_module("IPython.display")
        lines = "<br>".join(escape(printable(line)) for line in [*self._lines, status] if line)
        headings = list(dict.fromkeys(name for row in self._rows for name in row))
        head = "".join(f"<th>{escape(name)}</th>" for name in headings)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(row.get(name, ''))}</td>" for name in headings) + "</tr>"
            for row in self._rows
        )
        page = display.HTML(f"<p>{lines}</p><table><tr>{head}</tr>{body}</table>")
        if self._display is None:
            self._display = display.display(page, display_id=True)
        else:
            self._display.update(page)
        self._shown_at = time.monotonic()


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
        for name in SHOWN:
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
