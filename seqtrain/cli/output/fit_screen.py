"""What `fit` shows on stderr: the data, a bar per epoch, a table of epochs, the scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from seqtrain.api.run_events import DataEvent, Event, Listener, Run, StartEvent
from seqtrain.cli.output.console import ProgressBar, note, stderr_console, warn
from seqtrain.cli.output.data_screen import padding_line, show_splits
from seqtrain.cli.output.score_screen import note_comparisons, print_scores
from seqtrain.cli.output.table import GrowingTable, TableColumn, figure, print_table
from seqtrain.config import Config
from seqtrain.data.summary import unknown_share
from seqtrain.metrics import METRICS
from seqtrain.runs.run_directory import RUNS
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
SMOOTHING = 0.98
"""Share of the bar's loss that an update leaves."""


class FitScreen:
    """A listener of `fit`, also of several runs; close it, so that no bar stays.

    With `quiet` it shows warnings alone; `verbose`: also padding, word vectors, and what computes;
    `hints`: at the end which commands come next. `also` is called with every event, too.
    """

    def __init__(
        self,
        *,
        quiet: bool,
        verbose: bool = False,
        hints: bool = True,
        also: Listener = lambda event: None,
    ) -> None:
        self._quiet, self._verbose, self._hints, self._also = quiet, verbose, hints, also
        self._console, self._bar = stderr_console(), ProgressBar()
        self._splits: set[str] = set()
        self._table: GrowingTable | None = None
        self._loss, self._updates = 0.0, 0
        self._shows: dict[type, Callable[[Any], None]] = {
            DataEvent: self._show_data,
            StartEvent: self._show_start,
            UpdateEvent: self._show_update,
            EpochEvent: self._show_epoch,
            Run: self._show_end,
        }

    def close(self) -> None:
        """Remove the bar."""
        self._bar.close()

    def __call__(self, event: Event) -> None:
        if not isinstance(event, UpdateEvent):
            self._bar.close()
        if not self._quiet and type(event) in self._shows:
            self._shows[type(event)](event)
        if isinstance(event, DataEvent | StartEvent | Run):
            warn(*event.warnings)
        self._also(event)

    def of_run(self, name: str) -> FitScreen:
        """Name the run that the next events are of."""
        if not self._quiet:
            note(f"{name}:")
        return self

    def _show_data(self, event: DataEvent) -> None:
        if self._splits:
            return  # of the run before, with the same data
        self._splits = set(event.data.splits)
        show_splits(self._console, event.data.preprocessing, event.summaries)
        store, vectors = event.data.unlabelled, event.data.vectors
        if store is not None:
            note(
                f"to pretrain on: {len(store):,} sequences, {len(store.values):,} tokens "
                f"({unknown_share(store):.2%} unknown)"
            )
        if self._verbose:
            note(padding_line(event.padding))
            cached = " from the cache" if event.data.from_cache else ""
            note(f"read in {event.seconds:.1f} s{cached}")
            if vectors is not None:
                note(vectors.coverage.line())

    def _show_start(self, event: StartEvent) -> None:
        why = f" ({event.engine_reason})" if self._verbose else ""
        line = f"{event.parameters:,} parameters on {event.device}, engine {event.engine}{why}"
        if event.resumed_at and not event.nothing_left:
            phase = "pretraining " if event.pretraining else ""
            line += f", going on after {phase}step {event.resumed_at:,}"
        note(line)
        if event.origin:
            note(event.origin)
        refit = ", then a new model (training.refit)" if event.config.training.refit else ""
        most = f"{counted(event.epochs, 'epoch')}, {counted(event.updates, 'update')}"
        note(f"at most {most}{refit}")
        if event.nothing_left:
            note(f"nothing is left to train: {event.nothing_left}")
        note(f"run directory: {event.run}")
        self._table, self._updates = None, event.updates

    def _show_update(self, event: UpdateEvent) -> None:
        """Move the bar: that of the run in training, else that of the epoch."""
        if event.refit and event.epoch == event.batch == 1:
            note(REFIT)
        if event.batch == 1:
            self._loss = event.loss
        self._loss += (1 - SMOOTHING) * (event.loss - self._loss)
        phase, share = "epoch", event.update / max(self._updates, event.update)
        if event.pretraining or event.refit:
            phase = "pretraining" if event.pretraining else "refit"
            share = event.batch / event.num_batches
        self._bar(f"{phase} {event.epoch}", share, f"loss {self._loss:.4f}")

    def _show_epoch(self, event: EpochEvent) -> None:
        """Print a row of the table of epochs, or a line on an epoch of other training."""
        speed = f"{event.time_steps / event.seconds:,.0f}"
        if event.pretraining or event.refit:
            note(_other_epoch(event, speed))
            return
        if self._table is None:
            note(LEGEND)
            self._table = GrowingTable(EPOCH_COLUMNS, self._console.width)
            self._console.print(self._table.heading, markup=False)
        forms = {"loss": ".4f", "accuracy": ".2%", "macro_f1": ".2%"}
        scores = event.validation
        validation = [figure(getattr(scores, x, None), form) for x, form in forms.items()]
        seconds = f"{event.seconds:.1f}" if event.seconds < 1000 else f"{event.seconds:.0f}"
        train = [f"{event.loss:.4f}", f"{event.accuracy:.2%}"]
        number = f"{event.epoch}{' *' if event.is_best else ''}"
        cells = [number, *train, *validation, f"{event.lr:.1e}", speed, seconds]
        self._console.print(self._table.row(cells), markup=False)

    def _show_end(self, run: Run) -> None:
        why = ", stopped early" if run.stopped_early else ""
        end = f" of {run.epochs}{why}"
        if run.refit:
            end = f"; the model of the refit is kept ({counted(run.epochs, 'epoch')})"
        self._console.print(f"best epoch {run.best_epoch}{end}")
        if run.advice:
            note(run.advice)
        if run.test is not None:
            print_scores(self._console, run.test, "test")
            note_comparisons(run.test, run.branches if len(run.branches) > 1 else {})
        if self._hints:
            trained_on = {"train", "validation"} if run.refit else {"train"}
            note_next(run.path, "predict FILE", *["eval", "errors"] * (self._splits > trained_on))


def _other_epoch(event: EpochEvent, speed: str) -> str:
    phase, figures = "refit", [f"loss {event.loss:.4f}", f"accuracy {event.accuracy:.2%}"]
    if event.pretraining:
        own = f"perplexity {perplexity(event.loss):,.1f}"
        phase, figures = "pretraining", [f"loss {event.loss:.4f} per token", own]
        if event.validation_loss is not None:
            figures.append(f"validation perplexity {perplexity(event.validation_loss):,.1f}")
    figures += [f"{speed} tokens/s", f"{event.seconds:.1f} s"]
    return f"{phase} {event.epoch}: {', '.join(figures)}"


def note_next(path: Path, *commands: str) -> None:
    """Say what can be done with a run; one under runs/ is the newest, which needs no name."""
    named = "" if path.parent == RUNS else f" {path}"
    note(f"next: {', '.join(f'seqtrain {command}{named}' for command in commands)}")


def score_text(name: str, value: float) -> str:
    """Return a metric as tables show it; its name may follow a word, as in "test loss"."""
    return METRICS[name.rpartition(" ")[2]].text(value)


def show_line(monitor: str, quiet: bool, name: str, event: Event) -> None:
    """Print a line on an epoch, or on what is odd, of one of the runs that train at once."""
    if isinstance(event, DataEvent | StartEvent | Run):
        warn(*(f"{name}: {line}" for line in event.warnings))
    elif isinstance(event, EpochEvent) and event.validation is not None and not quiet:
        score = score_text(monitor, getattr(event.validation, monitor))
        best = ", best so far" if event.is_best else ""
        note(f"{name}: epoch {event.epoch}, {monitor} {score}{best}")


def show_repeats(runs: Sequence[Run], path: Path, config: Config, *, folds: bool) -> None:
    """Show the mean scores of several runs of a directory, and which commands come next."""
    figures = {f"best {config.training.monitor}": [run.best_value for run in runs]}
    tests = [run.test for run in runs if run.test is not None]
    for metric in tests[0].shown_metrics() if tests else ():
        figures[f"test {metric.name}"] = [getattr(test, metric.name) for test in tests]
    show_figures(figures)
    data = config.data
    named = data.test or (None if config.training.refit else data.validation)
    # Rows that all runs score, or each its own fold, and none of them was trained on.
    alike = folds or isinstance(named, str | list)
    note_next(path, "predict FILE", *["eval"] * alike)


def show_figures(figures: Mapping[str, Sequence[float]]) -> None:
    """Print the scores of several runs on stderr: mean, standard error, least and most."""
    count = len(next(iter(figures.values())))
    columns = [TableColumn(f"{count} runs", "words"), TableColumn("mean")]
    columns += [TableColumn("standard error", rank=1)]
    columns += [TableColumn("least", rank=2), TableColumn("most", rank=2)]
    shown = [
        (name, (fmean(values), stdev(values) / len(values) ** 0.5, min(values), max(values)))
        for name, values in figures.items()
    ]
    rows = [(name, *(score_text(name, value) for value in values)) for name, values in shown]
    print_table(stderr_console(), columns, rows)
