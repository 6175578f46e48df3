"""The scores of several runs of one config: their mean, and how far they lie apart."""

from __future__ import annotations

from collections.abc import Sequence

from seqtrain.cli.output.columns import Column, print_columns
from seqtrain.cli.output.console import stderr_console
from seqtrain.workflows.several import Figure


def show_figures(figures: Sequence[Figure]) -> None:
    """Print a line for each figure on stderr."""
    forms = [".4f" if "loss" in figure.name else ".2%" for figure in figures]

    def column(name: str, numbers: Sequence[float], rank: int = 0) -> Column:
        cells = [format(number, form) for number, form in zip(numbers, forms, strict=True)]
        return Column(name, cells, rank=rank)

    columns = [
        Column(f"{len(figures[0].values)} runs", [figure.name for figure in figures], "words"),
        column("mean", [figure.mean for figure in figures]),
        column("standard error", [figure.standard_error for figure in figures], rank=1),
        column("least", [min(figure.values) for figure in figures], rank=2),
        column("most", [max(figure.values) for figure in figures], rank=2),
    ]
    print_columns(stderr_console(), columns)
