"""What `fit` shows on stderr: the data, one bar per epoch, a table of epochs, the scores."""

from __future__ import annotations

import sys
from typing import Any, Literal

from rich.table import Table
from tqdm import tqdm

from seqtrain.cli.output.console import note, stderr_console, warn
from seqtrain.cli.output.data_table import data_table, padding_line
from seqtrain.cli.output.eval_screen import score_tables
from seqtrain.data.summary import unknown_share
from seqtrain.training.events import EpochEvent, UpdateEvent, perplexity
from seqtrain.workflows.events import DataEvent, Event, Run, StartEvent, WarningEvent

LOSS_SMOOTHING = 0.98


class FitScreen:
    """A listener of `fit`; enter it so that bars are closed however the run ends.

    Args:
        quiet: show warnings alone.
    """

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.console = stderr_console()
        self.bar: tqdm[Any] | None = None
        self.loss = 0.0
        self.tokens = 0
        self.header_shown = False

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
            note(f"at most {event.epochs:,} epochs, {event.updates:,} updates")
            if event.nothing_left:
                note(f"nothing is left to train: {event.nothing_left}; raise it to go on")
            note(f"run directory: {event.run}")
        elif isinstance(event, UpdateEvent):
            self._advance(event)
        elif isinstance(event, EpochEvent) and (event.pretraining or event.refit):
            self._close_bar()
            note(pretraining_row(event) if event.pretraining else refit_row(event))
        elif isinstance(event, EpochEvent):
            self._close_bar()
            self.console.print(epoch_row(event, header=not self.header_shown))
            self.header_shown = True
        elif isinstance(event, Run):
            self._show_end(event)

    def _show_data(self, event: DataEvent) -> None:
        self.console.print(data_table(event.data.preprocessing, event.summaries))
        self.console.print(padding_line(event.padding), soft_wrap=True)
        if event.data.unlabelled is not None:
            store = event.data.unlabelled
            note(
                f"to pretrain on: {len(store):,} sequences, {len(store.values):,} tokens "
                f"({unknown_share(store):.2%} unknown)"
            )
        cached = " from the cache" if event.data.from_cache else ""
        note(f"read in {event.seconds:.1f} s{cached}")

    def _advance(self, event: UpdateEvent) -> None:
        if self.bar is None:
            phase = "pretraining" if event.pretraining else "epoch"
            self.loss, self.tokens = event.loss, 0
            self.bar = tqdm(
                total=event.num_batches,
                initial=event.batch - 1,
                desc=f"{phase} {event.epoch}",
                bar_format="{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}{postfix}]",
                file=sys.stderr,
                disable=not sys.stderr.isatty(),
                leave=False,
                dynamic_ncols=True,
            )
        self.loss = LOSS_SMOOTHING * self.loss + (1 - LOSS_SMOOTHING) * event.loss
        self.tokens += event.time_steps
        seconds = self.bar.format_dict["elapsed"] or 1e-9
        self.bar.set_postfix_str(
            f"loss {self.loss:.4f}, {self.tokens / seconds:,.0f} tokens/s", refresh=False
        )
        self.bar.update()

    def _close_bar(self) -> None:
        if self.bar is not None:
            self.bar.close()
            self.bar = None

    def _show_end(self, run: Run) -> None:
        why = ", stopped early" if run.stopped_early else ""
        if run.refit:
            self.console.print(f"trained anew on train and validation: {run.epochs} epochs")
        else:
            self.console.print(f"best epoch {run.best_epoch} of {run.epochs}{why}")
        if run.advice:
            note(run.advice)
        if run.test is not None:
            for table in score_tables(run.test, "test"):
                self.console.print(table)


def pretraining_row(event: EpochEvent) -> str:
    """Return one line on an epoch of pretraining."""
    validation = ""
    if event.validation_loss is not None:
        validation = f", validation perplexity {perplexity(event.validation_loss):,.1f}"
    return (
        f"pretraining {event.epoch}: loss {event.loss:.4f} per token, perplexity "
        f"{perplexity(event.loss):,.1f}{validation}, "
        f"{event.time_steps / event.seconds:,.0f} tokens/s, {event.seconds:.1f} s"
    )


def refit_row(event: EpochEvent) -> str:
    """Return one line on an epoch of training anew on train and validation."""
    return (
        f"refit {event.epoch}: loss {event.loss:.4f}, accuracy {event.accuracy:.2%}, "
        f"{event.time_steps / event.seconds:,.0f} tokens/s, {event.seconds:.1f} s"
    )


def epoch_row(event: EpochEvent, *, header: bool) -> Table:
    """Return one row of the table of epochs, which grows as they end; 77 columns wide."""
    table = Table(box=None, show_header=header, pad_edge=False, padding=(0, 1, 0, 0))
    scores = event.validation
    cells = {
        "epoch": (6, f"{event.epoch}{' *' if event.is_best else ''}"),
        "train loss": (10, f"{event.loss:.4f}"),
        "acc.": (7, f"{event.accuracy:.2%}"),
        "val. loss": (9, f"{scores.loss:.4f}" if scores else "-"),
        "val. acc.": (9, f"{scores.accuracy:.2%}" if scores else "-"),
        "F1": (7, f"{scores.macro_f1:.2%}" if scores else "-"),
        "lr": (7, f"{event.lr:.1e}"),
        "tokens/s": (9, f"{event.time_steps / event.seconds:,.0f}"),
        "s": (6, f"{event.seconds:.1f}"),
    }
    for name, (width, _) in cells.items():
        justify: Literal["left", "right"] = "left" if name == "epoch" else "right"
        table.add_column(name, justify=justify, width=width, no_wrap=True)
    table.add_row(*(cell for _, cell in cells.values()))
    return table
