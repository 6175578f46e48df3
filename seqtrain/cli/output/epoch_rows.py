"""Epochs as rows: of training, pretraining, and training anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text

from seqtrain.training.events import EpochEvent, perplexity

LEGEND = "*: the best epoch so far; F1: the mean of the classes' F1 on validation; s: seconds"


def score_text(name: str, value: float) -> str:
    """Write a score as tables do: a loss as a number, others in percent."""
    return f"{value:.4f}" if "loss" in name else f"{value:.2%}"


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


CELLS = {
    "epoch": (6, 0),
    "train loss": (10, 5),
    "acc.": (7, 6),
    "val. loss": (9, 1),
    "val. acc.": (9, 0),
    "F1": (7, 2),
    "lr": (7, 7),
    "tokens/s": (9, 4),
    "s": (6, 3),
}
"""Width of each cell of an epoch's row, 77 in all; those of the highest rank are left out first."""


def shown_cells(width: int) -> list[str]:
    """Return the cells of an epoch's row that a terminal of this width has room for."""
    shown = list(CELLS)
    while sum(CELLS[name][0] + 1 for name in shown) > width + 1:
        last = max(shown, key=lambda name: CELLS[name][1])
        if not CELLS[last][1]:
            break
        shown.remove(last)
    return shown


def _cells(event: EpochEvent) -> dict[str, str]:
    """Return what an epoch's row holds."""
    scores = event.validation
    return {
        "epoch": f"{event.epoch}{' *' if event.is_best else ''}",
        "train loss": f"{event.loss:.4f}",
        "acc.": f"{event.accuracy:.2%}",
        "val. loss": f"{scores.loss:.4f}" if scores else "-",
        "val. acc.": f"{scores.accuracy:.2%}" if scores else "-",
        "F1": f"{scores.macro_f1:.2%}" if scores else "-",
        "lr": f"{event.lr:.1e}",
        "tokens/s": f"{event.time_steps / event.seconds:,.0f}",
        "s": f"{event.seconds:.1f}" if event.seconds < 1000 else f"{event.seconds:.0f}",
    }


def heading(shown: Sequence[str]) -> Text:
    """Return the line above the rows of epochs."""
    return _joined({name: name for name in shown})


def epoch_row(event: EpochEvent, shown: Sequence[str]) -> Text:
    """Return the row of an epoch, of the cells that there is room for."""
    cells = _cells(event)
    return _joined({name: cells[name] for name in shown})


def _joined(cells: Mapping[str, str]) -> Text:
    """Return cells side by side, the first to the left, numbers to the right."""
    widths = [CELLS[name][0] for name in cells]
    first, *rest = (
        f"{cell:>{width}}" if place else f"{cell:<{width}}"
        for place, (cell, width) in enumerate(zip(cells.values(), widths, strict=True))
    )
    return Text(" ".join([first, *rest]))
