"""What `fit` shows on stderr: the data, one bar per epoch, a table of epochs, the scores."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from tqdm.auto import tqdm

from seqtrain.api.events import DataEvent, Event, Run, StartEvent, WarningEvent
from seqtrain.cli.output.columns import note_left_out, print_columns
from seqtrain.cli.output.console import in_notebook, note, stderr_console, warn
from seqtrain.cli.output.data_table import data_table, padding_line
from seqtrain.cli.output.epoch_rows import (
    CELLS,
    LEGEND,
    epoch_row,
    heading,
    pretraining_row,
    refit_row,
    shown_cells,
)
from seqtrain.cli.output.eval_screen import print_scores
from seqtrain.data.summary import unknown_share
from seqtrain.runs.destination import RUNS
from seqtrain.text import counted
from seqtrain.training.events import EpochEvent, UpdateEvent

REFIT = (
    "now a new model is trained on train and validation together (training.refit); the validation "
    "scores above are of the first one"
)
LOSS_SMOOTHING = 0.98
MOST_CLASSES = 20
"""Classes that are all shown at the end; of more the worst, for training not to scroll away."""


class Began(NamedTuple):
    """Where the updates of this process began, to tell how long they all take."""

    at: float = 0.0
    update: int = 0
    last: int = 0

    def left(self, update: int) -> str:
        """Say how long the rest of the run takes at most, after an update of it."""
        made = update - self.update
        if made < 1 or update > self.last:
            return ""
        seconds = (time.monotonic() - self.at) * (self.last - update) / made
        return f", run <{tqdm.format_interval(seconds)}"


class FitScreen:
    """A listener of `fit`; enter it so that bars are closed however the run ends.

    Args:
        quiet: show warnings alone.
        hints: say at the end which commands come next.

    Attributes:
        training: whether training has begun.
        refitting: whether training.refit has begun.
        splits: that the data has.
    """

    def __init__(self, *, quiet: bool, hints: bool = True) -> None:
        self.quiet, self.hints = quiet, hints
        self.console = stderr_console()
        self.bar: tqdm[Any] | None = None
        self.loss = 0.0
        self.tokens = 0
        self.header_shown = False
        self.began = Began()
        self.training = self.refitting = False
        self.splits: set[str] = set()

    def __enter__(self) -> FitScreen:
        return self

    def __exit__(self, *error: object) -> None:
        self._close_bar()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        if isinstance(event, WarningEvent):
            self._close_bar()
            warn(event.line)
        elif not self.quiet:
            self._show(event)
        if isinstance(event, DataEvent | StartEvent):
            self.training = isinstance(event, StartEvent)
            for line in event.warnings:
                warn(line)

    def _show(self, event: Event) -> None:
        if isinstance(event, DataEvent):
            self._show_data(event)
        elif isinstance(event, StartEvent):
            phase = "pretraining " if event.pretraining else ""
            step = f", going on after {phase}step {event.resumed_at:,}"
            resumed = step if event.resumed_at and not event.nothing_left else ""
            note(
                f"{event.parameters:,} parameters on {event.device}, engine {event.engine} "
                f"({event.engine_reason}){resumed}"
            )
            if event.origin:
                note(event.origin)
            anew = ", then a new model (training.refit)" if event.config.training.refit else ""
            most = f"{counted(event.epochs, 'epoch')}, {counted(event.updates, 'update')}"
            note(f"at most {most}{anew}")
            if event.nothing_left:
                note(f"nothing is left to train: {event.nothing_left}")
            note(f"run directory: {event.run}")
            self.began = Began(time.monotonic(), event.resumed_at, event.updates)
        elif isinstance(event, UpdateEvent):
            self._advance(event)
        elif isinstance(event, EpochEvent) and (event.pretraining or event.refit):
            self._close_bar()
            note(pretraining_row(event) if event.pretraining else refit_row(event))
        elif isinstance(event, EpochEvent):
            self._close_bar()
            self._show_epoch(event)
        elif isinstance(event, Run):
            self._show_end(event)

    def _show_data(self, event: DataEvent) -> None:
        self.splits = set(event.data.splits)
        print_columns(self.console, data_table(event.data.preprocessing, event.summaries))
        note(padding_line(event.padding))
        if event.data.vectors is not None:
            note(event.data.vectors.coverage.line())
        if event.data.unlabelled is not None:
            store = event.data.unlabelled
            note(
                f"to pretrain on: {len(store):,} sequences, {len(store.values):,} tokens "
                f"({unknown_share(store):.2%} unknown)"
            )
        cached = " from the cache" if event.data.from_cache else ""
        note(f"read in {event.seconds:.1f} s{cached}")

    def _show_epoch(self, event: EpochEvent) -> None:
        """Print one row of the table of epochs, which grows as they end."""
        shown = shown_cells(self.console.width)
        if not self.header_shown:
            note(LEGEND)
            note_left_out([name for name in CELLS if name not in shown], self.console.width)
            self.console.print(heading(shown))
            self.header_shown = True
        self.console.print(epoch_row(event, shown))

    def _advance(self, event: UpdateEvent) -> None:
        if event.refit and not self.refitting:
            self.refitting = True
            note(REFIT)
        if self.bar is None:
            phase = "pretraining" if event.pretraining else "refit" if event.refit else "epoch"
            self.loss, self.tokens = event.loss, 0
            self.bar = tqdm(
                total=event.num_batches,
                initial=event.batch - 1,
                desc=f"{phase} {event.epoch}",
                bar_format="{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}{postfix}]",
                file=sys.stderr,
                disable=not (sys.stderr.isatty() or in_notebook()),
                leave=False,
                dynamic_ncols=True,
            )
        self.loss = LOSS_SMOOTHING * self.loss + (1 - LOSS_SMOOTHING) * event.loss
        self.tokens += event.time_steps
        seconds = self.bar.format_dict["elapsed"] or 1e-9
        left = "" if event.pretraining or event.refit else self.began.left(event.update)
        self.bar.set_postfix_str(
            f"loss {self.loss:.4f}, {self.tokens / seconds:,.0f} tokens/s{left}", refresh=False
        )
        self.bar.update()

    def _close_bar(self) -> None:
        if self.bar is not None:
            self.bar.close()
            self.bar = None

    def _show_end(self, run: Run) -> None:
        why = ", stopped early" if run.stopped_early else ""
        if run.refit:
            kept = f"kept is the model trained anew for {counted(run.epochs, 'epoch')}"
            self.console.print(f"best epoch {run.best_epoch}; {kept}")
        else:
            self.console.print(f"best epoch {run.best_epoch} of {run.epochs}{why}")
        if run.advice:
            note(run.advice)
        if run.test is not None:
            print_scores(self.console, run.test, "test", most=MOST_CLASSES)
        if not self.hints:
            return
        learned = {"train", "validation"} if run.refit else {"train"}
        scored = ("eval", "errors") if self.splits - learned else ()
        note_next(run.path, "predict FILE", *scored)


def note_next(path: Path, *commands: str) -> None:
    """Say what can be done with a run; one under runs/ is the newest, which needs no name."""
    named = "" if path.parent == RUNS else f" {path}"
    note(f"next: {', '.join(f'seqtrain {command}{named}' for command in commands)}")
