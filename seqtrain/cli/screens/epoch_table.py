"""Table of epochs that grows during training."""

from __future__ import annotations

from rich.console import Console
from rich.control import Control
from rich.segment import ControlType

from seqtrain.cli.screens.console import note
from seqtrain.cli.screens.tables import format_number
from seqtrain.config import Config
from seqtrain.metrics import METRICS
from seqtrain.text import shorten
from seqtrain.training.events import EpochEvent, perplexity

WIDTHS = {
    "epoch": 8,
    "train loss": 10,
    "acc.": 7,
    "val. loss": 9,
    "val. acc.": 9,
    "lr": 7,
    "tokens/s": 9,
    "s": 6,
}
"""Width of each column. With the third metric of validation, a row has 79 characters."""
LEFT_OUT_COLUMNS = ("lr", "acc.", "train loss", "tokens/s", "s")
"""Columns that a terminal which is too narrow doesn't show, the first ones first."""
COLUMN_METRICS = ("accuracy", "loss", "macro_f1")
ERASE_LINE = Control(
    ControlType.CARRIAGE_RETURN, (ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2)
)


class EpochTable:
    """Table of the epochs of training, with lines about the epochs of pretraining and of a refit.

    In a file, and without colours, each epoch has a line. On a terminal with colours, epochs share
    lines:

    - An epoch that doesn't improve the monitored score, as it is shown, shares the row of the epoch
      before it.
    - A shared row has the values of its best epoch, or of its newest if none was the best so far.
    - All epochs of pretraining share one line.
    - All epochs of a refit share one line.

    Args:
        console: Console to print on.
        config: Config of the run.
    """

    def __init__(self, console: Console, config: Config) -> None:
        self._console, self._training = console, config.training
        # Without colours, such as on a dumb terminal, no line is erased either.
        self._can_erase = console.is_terminal and console.color_system is not None
        self._widths: dict[str, int] = {}
        self._group: list[EpochEvent] = []

    def add(self, event: EpochEvent) -> None:
        """Print the line of an epoch, or replace the last line by one that includes the epoch."""
        is_folded = self._can_erase and self._group and self._shares_line(event)
        self._group = [*self._group, event] if is_folded else [event]
        is_row = event.phase == "training"
        line = self._row() if is_row else self._phase_line()
        if is_folded:
            self._console.control(ERASE_LINE)
        if self._can_erase:  # a line that wraps could not be erased
            line = shorten(line, self._console.width)
        self._console.print(line, style="" if is_row else "dim", markup=False, soft_wrap=True)

    def _shares_line(self, event: EpochEvent) -> bool:
        """Return True if an epoch can share the last line.

        The epoch must be of the same phase. In training with validation, its score, as it is shown,
        must also not be better than the scores of the line.
        """
        last = self._group[-1]
        if event.phase != last.phase:
            return False
        if event.phase != "training" or event.validation is None:
            return True
        monitor = self._training.monitor
        shown, *before = (
            METRICS[monitor].text(getattr(each.validation, monitor))
            for each in (event, *self._group)
        )
        return not event.is_best or shown in before

    def _number(self) -> str:
        """Return the number or range of the epochs in the last line, such as "3" or "9-14"."""
        first, last = self._group[0].epoch, self._group[-1].epoch
        return f"{first}" if first == last else f"{first}-{last}"

    def _row(self) -> str:
        """Return the row of the last epochs, with the values of the best or the newest epoch.

        Before the first row, print the legend and the heading.
        """
        if not self._widths:
            note(self._legend())
            self._widths = self._fitting_widths()
            self._console.print(self._line({name: name for name in self._widths}), markup=False)
        best = [event for event in self._group if event.is_best]
        event = best[-1] if best else self._group[-1]
        seconds = sum(each.seconds for each in self._group)
        mark = " *" if best else ""
        loss, accuracy, third = self._metrics()
        cells = {
            "epoch": f"{self._number()}{mark}",
            "train loss": f"{event.loss:.4f}",
            "acc.": f"{event.accuracy:.2%}",
            "val. loss": self._score(event, loss),
            "val. acc.": self._score(event, accuracy),
            self._heading(third): self._score(event, third),
            "lr": f"{event.lr:.1e}",
            "tokens/s": f"{event.time_steps / event.seconds:,.0f}",
            "s": f"{seconds:.1f}" if seconds < 1000 else f"{seconds:.0f}",
        }
        return self._line(cells)

    def _line(self, cells: dict[str, str]) -> str:
        """Return a line with the cells of the columns that are shown."""
        texts = [cells[name].rjust(width) for name, width in self._widths.items()]
        texts[0] = cells["epoch"].ljust(self._widths["epoch"])
        return " ".join(texts).rstrip()

    def _fitting_widths(self) -> dict[str, int]:
        """Return the widths of the columns that the console has room for, in their order."""
        third = self._heading(self._metrics()[-1])
        names = [*WIDTHS]
        names.insert(names.index("lr"), third)
        widths = {name: WIDTHS.get(name, max(7, len(name))) for name in names}
        for name in LEFT_OUT_COLUMNS:
            if sum(widths.values()) + len(widths) - 1 > self._console.width:
                del widths[name]
        return widths

    @staticmethod
    def _score(event: EpochEvent, metric: str) -> str:
        """Return a metric on validation as text, or a dash without validation."""
        return format_number(getattr(event.validation, metric, None), METRICS[metric].form)

    @staticmethod
    def _heading(metric: str) -> str:
        """Return the heading of the third metric on validation."""
        return METRICS[metric].title.removeprefix("macro ")

    def _metrics(self) -> list[str]:
        """Return the names of the metrics on validation that are shown.

        They are loss, accuracy, and the monitored metric. If loss or accuracy is monitored, macro
        F1 is shown as the third.
        """
        monitor = self._training.monitor
        return ["loss", "accuracy", "macro_f1" if monitor in COLUMN_METRICS else monitor]

    def _legend(self) -> str:
        """Return a line that explains the columns, and how the two losses differ."""
        extras = ["dropout"]
        if self._training.label_smoothing:
            extras.append("label smoothing")
        if self._training.class_weights:
            extras.append("class weights")
        shared = "; 9-14: these epochs share a row, with the values of the best or the last one"
        return (
            f"*: best epoch so far{shared if self._can_erase else ''}; F1: macro F1 on validation; "
            "s: seconds; train loss: mean loss of the model's branches during the epoch, "
            f"with {' and '.join(extras)}"
        )

    def _phase_line(self) -> str:
        """Return a line about the last epochs of pretraining or of a refit.

        It has the range of the epochs, the scores of the newest epoch, and the total time.
        """
        event = self._group[-1]
        parts = [f"loss {event.loss:.4f}", f"accuracy {event.accuracy:.2%}"]
        if event.phase == "pretraining":
            parts = [f"loss {event.loss:.4f} per token"]
            parts.append(f"perplexity {perplexity(event.loss):,.1f}")
            if event.validation_loss is not None:
                parts.append(f"validation perplexity {perplexity(event.validation_loss):,.1f}")
        parts.append(f"{event.time_steps / event.seconds:,.0f} tokens/s")
        parts.append(f"{sum(each.seconds for each in self._group):.1f} s")
        return f"{event.phase} {self._number()}: {', '.join(parts)}"
