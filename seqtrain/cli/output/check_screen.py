"""A check as a table: one row per way, one column per engine."""

from __future__ import annotations

from seqtrain.api.check import Check
from seqtrain.cli.output.console import note, say, stdout_console
from seqtrain.cli.output.table import TableColumn, print_table
from seqtrain.evaluation.invariance import SAMPLE_LENGTH


def show_sampled(result: Check) -> None:
    """Print on stderr what was compared."""
    line = f"run: {result.run}, data: {result.data}, {result.num_examples:,} sequences"
    if result.num_examples < result.available:
        which = "the first" if result.carried else "evenly spaced by length"
        line += f" of {result.available:,}, {which}"
    line += f", {result.steps:,} steps"
    if result.cut:
        line += f" ({result.cut:,} sequences cut at {SAMPLE_LENGTH:,})"
    note(line + (", states carried on in their groups" if result.carried else ""))


def show_check(result: Check) -> None:
    """Print on stdout the verdict, and the largest differences from one sequence at a time."""
    cells = {(each.way, each.variant): each for each in result.differences}
    ways = list(dict.fromkeys(way for way, _ in cells))
    verdict = "passed: predictions don't depend" if result.passed else "failed: predictions depend"
    largest = max(each.logits for each in result.differences)
    say(
        f"{verdict} on the batch (largest difference of logits: {largest:.1e}; rounding allows "
        f"{result.allowed:.1e})"
    )
    names = [*ways, "of probabilities, any way"]
    columns, figures = [TableColumn("difference of logits", "words")], []
    for rank, variant in enumerate(dict.fromkeys(variant for _, variant in cells)):
        found = [cells[way, variant] for way in ways]
        values = [each.logits for each in found] + [max(each.probabilities for each in found)]
        columns.append(TableColumn(variant, rank=rank))
        figures.append([f"{value:.1e}" for value in values])
    rows = zip(names, *figures, strict=True)
    print_table(stdout_console(), columns, rows, sections=[len(ways)])
