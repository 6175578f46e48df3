"""Several runs of one config: their epochs, where they train together, and their scores."""

from __future__ import annotations

from collections.abc import Sequence

from seqtrain.api.several import Figure
from seqtrain.api.training_process import EpochReport
from seqtrain.cli.output.columns import Column, print_columns
from seqtrain.cli.output.console import note, stderr_console, warn
from seqtrain.cli.output.epoch_rows import score_text


class EpochLines:
    """Tells of the epochs of runs that train at the same time, and of each warning once.

    Args:
        monitor: the score that chooses the best epoch.
        quiet: warnings alone.
    """

    def __init__(self, monitor: str, *, quiet: bool) -> None:
        self._monitor, self._quiet = monitor, quiet
        self._warned: set[str] = set()

    def __call__(self, name: str, report: EpochReport | str) -> None:
        """Print a line on stderr on an epoch, or a warning, of the run of this name."""
        if isinstance(report, str):
            if report not in self._warned:
                warn(f"{name}: {report}")
            self._warned.add(report)
        elif not self._quiet:
            score = f"{self._monitor} {score_text(self._monitor, report.value)}"
            best = ", best so far" if report.is_best else ""
            note(f"{name}: epoch {report.epoch}, {score}{best}")


def show_figures(figures: Sequence[Figure]) -> None:
    """Print a line for each figure on stderr."""
    names = [figure.name for figure in figures]

    def column(name: str, values: Sequence[float], rank: int = 0) -> Column:
        return Column(name, list(map(score_text, names, values)), rank=rank)

    columns = [
        Column(f"{len(figures[0].values)} runs", names, "words"),
        column("mean", [figure.mean for figure in figures]),
        column("standard error", [figure.standard_error for figure in figures], rank=1),
        column("least", [min(figure.values) for figure in figures], rank=2),
        column("most", [max(figure.values) for figure in figures], rank=2),
    ]
    print_columns(stderr_console(), columns)
