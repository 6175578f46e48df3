"""What `fit` shows on stderr: the data, a bar per epoch, a table of epochs, the scores."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev

from tqdm import tqdm

from seqtrain.api.repeats import Figure
from seqtrain.api.run_events import DataEvent, Event, Run, StartEvent, WarningEvent
from seqtrain.cli.output.console import note, stderr_console, warn
from seqtrain.cli.output.data_screen import padding_line, show_splits
from seqtrain.cli.output.progress import ProgressBar
from seqtrain.cli.output.score_screen import print_scores
from seqtrain.cli.output.table import (
    TableColumn,
    aligned,
    fitting,
    note_left_out,
    print_table,
)
from seqtrain.data.summary import unknown_share
from seqtrain.runs.destination import RUNS
from seqtrain.text import counted
from seqtrain.training.events import EpochEvent, UpdateEvent, perplexity

LEGEND = "*: the best epoch so far; F1: the mean of the classes' F1 on validation; s: seconds"
REFIT = (
    "now a new model is trained on train and validation together (training.refit); the validation "
    "scores above are of the first one"
)
EPOCH_COLUMNS = [
    TableColumn("epoch", "words", width=6),
    TableColumn("train loss", rank=5, width=10),
    TableColumn("acc.", rank=6, width=7),
    TableColumn("val. loss", rank=1, width=9),
    TableColumn("val. acc.", width=9),
    TableColumn("F1", rank=2, width=7),
    TableColumn("lr", rank=7, width=7),
    TableColumn("tokens/s", rank=4, width=9),
    TableColumn("s", rank=3, width=6),
]
"""77 characters in all, with a blank between two."""
LOSS_SMOOTHING = 0.98
MOST_CLASSES = 20
"""Classes that are all shown at the end; of more the worst, so that the epochs stay on screen."""


class FitScreen:
    """A listener of `fit`; enter it so that the bar is gone however the run ends.

    Args:
        quiet: show warnings alone.
        hints: say at the end which commands come next.

    Attributes:
        training: whether training has begun.
    """

    def __init__(self, *, quiet: bool, hints: bool = True) -> None:
        self.training = False
        self._quiet, self._hints = quiet, hints
        self._console = stderr_console()
        self._bar = ProgressBar()
        self._splits: set[str] = set()
        self._columns: list[TableColumn] = []
        self._refitting = False
        self._loss, self._tokens, self._epoch_began = 0.0, 0, 0.0
        self._began, self._first_update, self._last_update = 0.0, 0, 0

    def __enter__(self) -> FitScreen:
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        if not isinstance(event, UpdateEvent):
            self._bar.close()
        if isinstance(event, WarningEvent):
            warn(event.line)
        elif not self._quiet:
            self._show(event)
        if isinstance(event, DataEvent | StartEvent):
            self.training = isinstance(event, StartEvent)
            for line in event.warnings:
                warn(line)

    def _show(self, event: Event) -> None:
        if isinstance(event, DataEvent):
            self._show_data(event)
        elif isinstance(event, StartEvent):
            self._show_start(event)
        elif isinstance(event, UpdateEvent):
            self._show_update(event)
        elif isinstance(event, EpochEvent):
            self._show_epoch(event)
        elif isinstance(event, Run):
            self._show_end(event)

    def _show_data(self, event: DataEvent) -> None:
        self._splits = set(event.data.splits)
        show_splits(self._console, event.data.preprocessing, event.summaries)
        note(padding_line(event.padding))
        if event.data.vectors is not None:
            note(event.data.vectors.coverage.line())
        store = event.data.unlabelled
        if store is not None:
            note(
                f"to pretrain on: {len(store):,} sequences, {len(store.values):,} tokens "
                f"({unknown_share(store):.2%} unknown)"
            )
        cached = " from the cache" if event.data.from_cache else ""
        note(f"read in {event.seconds:.1f} s{cached}")

    def _show_start(self, event: StartEvent) -> None:
        phase = "pretraining " if event.pretraining else ""
        resumed = event.resumed_at and not event.nothing_left
        since = f", going on after {phase}step {event.resumed_at:,}" if resumed else ""
        note(
            f"{event.parameters:,} parameters on {event.device}, engine {event.engine} "
            f"({event.engine_reason}){since}"
        )
        if event.origin:
            note(event.origin)
        refit = ", then a new model (training.refit)" if event.config.training.refit else ""
        most = f"{counted(event.epochs, 'epoch')}, {counted(event.updates, 'update')}"
        note(f"at most {most}{refit}")
        if event.nothing_left:
            note(f"nothing is left to train: {event.nothing_left}")
        note(f"run directory: {event.run}")
        self._began = time.monotonic()
        self._first_update, self._last_update = event.resumed_at, event.updates

    def _show_update(self, event: UpdateEvent) -> None:
        if event.refit and not self._refitting:
            self._refitting = True
            note(REFIT)
        now = time.monotonic()
        if not self._epoch_began:
            self._epoch_began, self._loss, self._tokens = now, event.loss, 0
        else:
            self._tokens += event.time_steps
        self._loss += (1 - LOSS_SMOOTHING) * (event.loss - self._loss)
        speed = self._tokens / max(now - self._epoch_began, 1e-9)
        detail = f"loss {self._loss:.4f}, {speed:,.0f} tokens/s"
        made = event.update - self._first_update
        if made and not event.pretraining and not event.refit and event.update <= self._last_update:
            left = (now - self._began) * (self._last_update - event.update) / made
            detail += f", run <{tqdm.format_interval(left)}"
        phase = "pretraining" if event.pretraining else "refit" if event.refit else "epoch"
        self._bar(f"{phase} {event.epoch}", event.batch / event.num_batches, detail)

    def _show_epoch(self, event: EpochEvent) -> None:
        """Print a row of the table of epochs, or a line on an epoch of other training."""
        self._epoch_began = 0.0
        speed = f"{event.time_steps / event.seconds:,.0f}"
        if event.pretraining or event.refit:
            note(_other_epoch(event, speed))
            return
        if not self._columns:
            note(LEGEND)
            width = self._console.width
            self._columns = fitting(EPOCH_COLUMNS, width)
            note_left_out(EPOCH_COLUMNS, self._columns, width)
            self._print([column.name for column in self._columns])
        scores = event.validation
        cells = {
            "epoch": f"{event.epoch}{' *' if event.is_best else ''}",
            "train loss": f"{event.loss:.4f}",
            "acc.": f"{event.accuracy:.2%}",
            "val. loss": f"{scores.loss:.4f}" if scores else "-",
            "val. acc.": f"{scores.accuracy:.2%}" if scores else "-",
            "F1": f"{scores.macro_f1:.2%}" if scores else "-",
            "lr": f"{event.lr:.1e}",
            "tokens/s": speed,
            "s": f"{event.seconds:.1f}" if event.seconds < 1000 else f"{event.seconds:.0f}",
        }
        self._print([cells[column.name] for column in self._columns])

    def _print(self, cells: Sequence[str]) -> None:
        self._console.print(aligned(self._columns, cells), markup=False)

    def _show_end(self, run: Run) -> None:
        if run.refit:
            kept = f"the model of the refit is kept ({counted(run.epochs, 'epoch')})"
            self._console.print(f"best epoch {run.best_epoch}; {kept}")
        else:
            why = ", stopped early" if run.stopped_early else ""
            self._console.print(f"best epoch {run.best_epoch} of {run.epochs}{why}")
        if run.advice:
            note(run.advice)
        if run.test is not None:
            print_scores(self._console, run.test, "test", most=MOST_CLASSES)
        if self._hints:
            trained_on = {"train", "validation"} if run.refit else {"train"}
            scored = ("eval", "errors") if self._splits - trained_on else ()
            note_next(run.path, "predict FILE", *scored)


def _other_epoch(event: EpochEvent, speed: str) -> str:
    """Return a line on an epoch of pretraining or of the refit."""
    end = f"{speed} tokens/s, {event.seconds:.1f} s"
    if event.refit:
        return f"refit {event.epoch}: loss {event.loss:.4f}, accuracy {event.accuracy:.2%}, {end}"
    validation = ""
    if event.validation_loss is not None:
        validation = f", validation perplexity {perplexity(event.validation_loss):,.1f}"
    return (
        f"pretraining {event.epoch}: loss {event.loss:.4f} per token, perplexity "
        f"{perplexity(event.loss):,.1f}{validation}, {end}"
    )


def note_next(path: Path, *commands: str) -> None:
    """Say what can be done with a run; one under runs/ is the newest, which needs no name."""
    named = "" if path.parent == RUNS else f" {path}"
    note(f"next: {', '.join(f'seqtrain {command}{named}' for command in commands)}")


def score_text(name: str, value: float) -> str:
    """Write a score as tables do: a loss as a number, others in percent."""
    return f"{value:.4f}" if "loss" in name else f"{value:.2%}"


class EpochLines:
    """Says what runs that train at the same time do: a line per epoch, and each warning once.

    Args:
        monitor: the score that chooses the best epoch.
        quiet: warnings alone.
    """

    def __init__(self, monitor: str, *, quiet: bool) -> None:
        self._monitor, self._quiet = monitor, quiet
        self._warned: set[str] = set()

    def __call__(self, name: str, event: Event) -> None:
        """Print a line on stderr on an epoch, or a warning, of the run of this name."""
        if isinstance(event, WarningEvent):
            if event.line not in self._warned:
                warn(f"{name}: {event.line}")
            self._warned.add(event.line)
        elif isinstance(event, EpochEvent) and event.validation is not None and not self._quiet:
            score = score_text(self._monitor, getattr(event.validation, self._monitor))
            best = ", best so far" if event.is_best else ""
            note(f"{name}: epoch {event.epoch}, {self._monitor} {score}{best}")


def show_figures(figures: Sequence[Figure]) -> None:
    """Print the scores of several runs on stderr: mean, standard error, least and most."""
    columns = [TableColumn(f"{len(figures[0].values)} runs", "words"), TableColumn("mean")]
    columns += [TableColumn("standard error", rank=1)]
    columns += [TableColumn("least", rank=2), TableColumn("most", rank=2)]
    rows = []
    for name, values in figures:
        error = stdev(values) / len(values) ** 0.5
        shown = (fmean(values), error, min(values), max(values))
        rows.append((name, *(score_text(name, value) for value in shown)))
    print_table(stderr_console(), columns, rows)
