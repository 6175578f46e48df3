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


class FitProgress:
    """Listener of `fit` that shows data, epochs and scores as lines, and a bar for each epoch.

    The bar is tqdm's. It isn't shown where stderr is a file.
    """

    def __init__(self) -> None:
        self._bar: Any = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, UpdateEvent):
            self._show_update(event)
            return
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        print(*map(printable, _lines(event)), sep="\n", file=sys.stderr)

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


def _lines(event: DataEvent | StartEvent | EpochEvent | Run) -> list[str]:
    """Return lines about an event."""
    if isinstance(event, DataEvent):
        rows = [f"{name} {summary.rows:,}" for name, summary in event.summaries.items()]
        return [f"rows: {', '.join(rows)}; classes: {len(event.data.preprocessing.labels):,}"]
    if isinstance(event, StartEvent):
        return start_lines(event)
    if isinstance(event, EpochEvent):
        return [_epoch_line(event)]
    lines = [best_epoch_line(event)]
    if event.test is not None:
        scores = [f"{name} {value}" for name, value in event.test.summary().items()]
        lines.append(f"test: {', '.join(scores)}")
    if event.advice:
        lines.append(event.advice)
    return lines


def _epoch_line(event: EpochEvent) -> str:
    """Return a line about an epoch. A star marks the best epoch so far."""
    phase = "" if event.phase == "training" else f"{event.phase}, "
    mark = " *" if event.is_best else ""
    parts = [f"{phase}epoch {event.epoch}{mark}: train loss {event.loss:.4f}"]
    if event.validation is not None:
        for name in PROGRESS_METRICS:
            metric = METRICS[name]
            parts.append(f"val. {metric.title} {event.validation.text(metric)}")
    return ", ".join([*parts, f"{event.seconds:.1f} s"])


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
    if event.config.training.refit:
        refit = ", then a new model (training.refit)"
    else:
        refit = ""
    lines = [
        line,
        event.origin or "",
        f"at most {counted(event.epochs, 'epoch')}, {counted(event.updates, 'update')}{refit}",
    ]
    if event.nothing_left:
        lines.append(f"nothing left to train: {event.nothing_left}")
    return [*filter(None, lines), f"run directory: {event.run}"]


def best_epoch_line(run: Run) -> str:
    """Return a line about the best epoch of a finished run.

    It mentions the refit or, without one, early stopping.
    """
    if run.refit:
        epochs = counted(run.epochs, "epoch")
        return f"best epoch {run.best_epoch}; the model of the refit is kept ({epochs})"
    reason = ", stopped early" if run.stopped_early else ""
    return f"best epoch {run.best_epoch} of {run.epochs}{reason}"


def _in_notebook() -> bool:
    """Return True in a Jupyter kernel, which shows rich output."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
