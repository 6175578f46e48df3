"""Screen of `fit`: sizes of the data, a progress bar, a table of epochs, and the scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev

from seqtrain.api.named_runs import Run
from seqtrain.api.progress import best_epoch_line, start_lines
from seqtrain.api.run_events import DataEvent, Event, Listener, StartEvent
from seqtrain.cli.screens.console import ProgressBar, note, show_warning, stderr_console
from seqtrain.cli.screens.data import padding_line, show_splits
from seqtrain.cli.screens.epoch_table import EpochTable
from seqtrain.cli.screens.scores import note_comparisons, print_scores
from seqtrain.cli.screens.tables import print_table
from seqtrain.config import Config
from seqtrain.metrics import METRICS
from seqtrain.runs.run_directory import RUNS
from seqtrain.sequences.summary import unknown_share
from seqtrain.training.events import EpochEvent, UpdateEvent

REFIT = (
    "training a new model on train and validation together (training.refit); the validation "
    "scores above are those of the first model"
)
LOSS_SMOOTHING = 0.98
"""Weight of earlier updates in the moving average of the loss that the bar shows."""


class FitScreen:
    """Listener of `fit` that shows one run, or several runs one after another, on stderr.

    Call `close` at the end to remove the progress bar.

    Args:
        quiet: Show warnings only.
        verbose: Also show padding, coverage of word vectors, and the reason for the engine.
        hints: Show at the end which commands use the run.
        also: Another listener to call with every event, or None.
    """

    def __init__(
        self,
        *,
        quiet: bool,
        verbose: bool = False,
        hints: bool = True,
        also: Listener | None = None,
    ) -> None:
        self.is_quiet, self._verbose, self._hints, self._also = quiet, verbose, hints, also
        self._bar = ProgressBar()
        self._splits: set[str] = set()
        self._loss, self._updates, self._monitor, self._calibrated = 0.0, 0, "accuracy", ""

    def close(self) -> None:
        """Remove the progress bar."""
        self._bar.close()

    def __call__(self, event: Event) -> None:
        if not isinstance(event, UpdateEvent):
            self._bar.close()
        if not self.is_quiet:
            self._show(event)
        if isinstance(event, DataEvent | StartEvent | Run):
            show_warning(*event.warnings)
        if self._also is not None:
            self._also(event)

    def _show(self, event: Event) -> None:
        if isinstance(event, DataEvent):
            self._show_data(event)
        elif isinstance(event, StartEvent):
            self._show_start(event)
        elif isinstance(event, UpdateEvent):
            self._show_update(event)
        elif isinstance(event, EpochEvent):
            self._epochs.add(event)
        else:
            self._show_end(event)

    def of_run(self, name: str) -> FitScreen:
        """Print the name of the run whose events come next (unless quiet). Return this screen."""
        if not self.is_quiet:
            note(f"{name}:")
        return self

    def _show_data(self, event: DataEvent) -> None:
        if self._splits:
            return  # the data of an earlier run
        self._splits = set(event.data.splits)
        show_splits(stderr_console(), event.data.preprocessing, event.summaries)
        store = event.data.unlabelled
        vectors = event.data.vectors
        if store is not None:
            note(
                f"data for pretraining: {len(store):,} sequences, {len(store.values):,} tokens "
                f"({unknown_share(store):.2%} unknown)"
            )
        if self._verbose:
            note(padding_line(event.padding))
            note(f"data read in {event.seconds:.1f} s")
            if vectors is not None:
                note(vectors.coverage.line())

    def _show_start(self, event: StartEvent) -> None:
        note(*start_lines(event, verbose=self._verbose))
        self._epochs = EpochTable(stderr_console(), event.config)
        self._updates = event.updates
        self._monitor = event.config.training.monitor
        is_calibrated = event.config.training.calibration != "none"
        self._calibrated = ", after calibration" if is_calibrated else ""

    def _show_update(self, event: UpdateEvent) -> None:
        """Update the progress bar.

        In training it shows the progress to the last epoch. In pretraining and in a refit it shows
        the progress in the current epoch.
        """
        if event.phase == "refit" and event.epoch == event.batch == 1:
            note(REFIT)
        if event.batch == 1:
            self._loss = event.loss
        self._loss += (1 - LOSS_SMOOTHING) * (event.loss - self._loss)
        phase: str = event.phase
        share = event.batch / event.num_batches
        if phase == "training":
            phase = "epoch"
            share = event.update / max(self._updates, event.update)
        self._bar(f"{phase} {event.epoch}", share, f"loss {self._loss:.4f}")

    def _show_end(self, run: Run) -> None:
        note(best_epoch_line(run))
        if run.validation is not None:
            summary = run.validation.summary()
            found = ", ".join(f"{name} {value}" for name, value in summary.items())
            note(f"validation at the best epoch{self._calibrated}: {found}")
        if run.advice:
            note(run.advice)
        if run.test is not None:
            print_scores(stderr_console(), run.test, "test")
            branches = run.branches if len(run.branches) > 1 else {}
            note_comparisons(run.test, branches, self._monitor)
        if self._hints:
            if run.refit:
                trained_on = {"train", "validation"}
            else:
                trained_on = {"train"}
            has_unseen_split = self._splits > trained_on
            note_next(run.path, "predict FILE", *["eval", "errors"] * has_unseen_split)


def note_next(path: Path, *commands: str) -> None:
    """Print commands that can use a run next.

    Args:
        path: Directory of the run. If it is in runs/, its name isn't printed, because commands use
            the newest run there.
        commands: Commands with their arguments, such as "predict FILE".
    """
    name = "" if path.parent == RUNS else f" {path}"
    note(f"next: {', '.join(f'seqtrain {command}{name}' for command in commands)}")


def score_text(name: str, value: float) -> str:
    """Return the value of a metric as text.

    Args:
        name: Name of the metric, or words that end with it, as in "test loss".
        value: The value.
    """
    return METRICS[name.rpartition(" ")[2]].text(value)


def show_repeats(runs: Sequence[Run], path: Path, config: Config, *, folds: bool) -> None:
    """Print statistics of the scores of several runs, and commands that can use the runs.

    The scores are the best monitored value, and those metrics on test that all runs have.

    Args:
        runs: The runs.
        path: Directory that holds them.
        config: Config without the seeds or folds.
        folds: True if the runs are the folds of a cross-validation.
    """
    scores = {f"best {config.training.monitor}": [run.best_value for run in runs]}
    tests = [run.test for run in runs if run.test is not None]
    for metric in tests[0].shown_metrics() if tests else ():
        values = [getattr(test, metric.name) for test in tests]
        if None not in values:
            scores[f"test {metric.name}"] = values
    show_scores(scores)
    data = config.data
    held_out = data.test or (None if config.training.refit else data.validation)
    # `eval` needs rows that all runs score and none was trained on, or the part of each fold.
    can_evaluate = folds or isinstance(held_out, str | list)
    commands = ["eval"] * can_evaluate + ["errors"] * folds
    note_next(path, "predict FILE", *commands)


def show_scores(scores: Mapping[str, Sequence[float]]) -> None:
    """Print mean, standard error, smallest and largest score of several runs on stderr.

    Args:
        scores: Maps each metric to its values, one per run. There are at least two runs.
    """
    count = len(next(iter(scores.values())))
    headings = [f"{count} runs", "mean", "standard error", "smallest", "largest"]
    rows = []
    for name, values in scores.items():
        error = stdev(values) / len(values) ** 0.5
        numbers = (fmean(values), error, min(values), max(values))
        rows.append((name, *(score_text(name, number) for number in numbers)))
    print_table(stderr_console(), headings, rows)
