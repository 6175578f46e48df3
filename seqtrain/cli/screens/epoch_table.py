"""Table of epochs that grows during training: a line per epoch."""

from __future__ import annotations

from rich.console import Console

from seqtrain.cli.screens.console import note
from seqtrain.config import Config
from seqtrain.evaluation.scores import Scores
from seqtrain.metrics import METRICS, perplexity
from seqtrain.training.events import EpochEvent

WIDTHS = {
    "epoch": 6,
    "train loss": 10,
    "acc.": 7,
    "val. loss": 9,
    "val. acc.": 9,
    "lr": 7,
    "tokens/s": 9,
    "s": 6,
}
"""Width of each column, without the column of the third metric on validation."""
LEFT_OUT_COLUMNS = ("lr", "acc.", "train loss", "tokens/s", "s")
"""Columns that a terminal which is too narrow doesn't show, the first ones first."""
EPOCH_LEGEND = "* the best epoch so far; train loss is measured during the epoch, with {}"


class EpochTable:
    """Table with a row for each epoch of training, and lines about pretraining and refit.

    Args:
        console: Console to print on.
        config: Config of the run.
    """

    def __init__(self, console: Console, config: Config) -> None:
        self._console = console
        self._training = config.training
        monitor = config.training.monitor
        if monitor in ("accuracy", "loss"):
            self._metric = "macro_f1"
        else:
            self._metric = monitor
        names = list(WIDTHS)
        names.insert(names.index("lr"), METRICS[self._metric].title)
        self._widths = {name: WIDTHS.get(name, max(7, len(name))) for name in names}
        for name in LEFT_OUT_COLUMNS:
            if sum(self._widths.values()) + len(self._widths) > console.width:
                del self._widths[name]
        self._has_heading = False

    def add(self, event: EpochEvent) -> None:
        """Print the line of an epoch. Before the first row, print the heading and its legend."""
        if event.phase != "training":
            note(_phase_line(event))
            return
        if not self._has_heading:
            self._has_heading = True
            note(self._legend())
            self._print({name: name for name in self._widths})
        values = event.validation
        self._print(
            {
                "epoch": f"{event.epoch}{' *' if event.is_best else ''}",
                "train loss": f"{event.loss:.4f}",
                "acc.": f"{event.accuracy:.2%}",
                "val. loss": _score(values, "loss"),
                "val. acc.": _score(values, "accuracy"),
                METRICS[self._metric].title: _score(values, self._metric),
                "lr": f"{event.lr:.1e}",
                "tokens/s": f"{event.time_steps / event.seconds:,.0f}",
                "s": f"{event.seconds:.1f}" if event.seconds < 1000 else f"{event.seconds:.0f}",
            }
        )

    def _print(self, cells: dict[str, str]) -> None:
        """Print the cells of the columns that have room. All but the first are right-aligned."""
        texts = [cells[name].rjust(width) for name, width in self._widths.items()]
        texts[0] = cells["epoch"].ljust(self._widths["epoch"])
        self._console.print(" ".join(texts).rstrip(), markup=False, soft_wrap=True)

    def _legend(self) -> str:
        """Return a line that explains the star, and how the losses of train and validation differ.

        The three differences are dropout, label smoothing and class weights.
        """
        differences = ["dropout"]
        if self._training.label_smoothing:
            differences.append("label smoothing")
        if self._training.class_weights:
            differences.append("class weights")
        return EPOCH_LEGEND.format(" and ".join(differences))


def _score(scores: Scores | None, metric: str) -> str:
    """Return a metric on validation as text, or a dash without validation."""
    return METRICS[metric].text(getattr(scores, metric, None))


def _phase_line(event: EpochEvent) -> str:
    """Return a line about an epoch of pretraining or of a refit."""
    parts = [f"loss {event.loss:.4f}", f"accuracy {event.accuracy:.2%}"]
    if event.phase == "pretraining":
        parts = [f"loss {event.loss:.4f} per token", f"perplexity {perplexity(event.loss):,.1f}"]
        if event.validation_loss is not None:
            parts.append(f"validation perplexity {perplexity(event.validation_loss):,.1f}")
    parts.append(f"{event.time_steps / event.seconds:,.0f} tokens/s")
    parts.append(f"{event.seconds:.1f} s")
    return f"{event.phase} {event.epoch}: {', '.join(parts)}"
