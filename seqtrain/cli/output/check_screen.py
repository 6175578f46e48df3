"""A check as a table: one row per way, one column per engine."""

from __future__ import annotations

from seqtrain.api.check import Check
from seqtrain.cli.output.columns import Column, print_columns
from seqtrain.cli.output.console import note, stdout_console
from seqtrain.evaluation.invariance import SAMPLE_LENGTH


def show_sampled(sampled: Check) -> None:
    """Print on stderr what was compared."""
    line = f"run: {sampled.run}, data: {sampled.data}, {sampled.num_examples:,} sequences"
    if sampled.num_examples < sampled.available:
        which = "the first" if sampled.carried else "evenly spaced by length"
        line += f" of {sampled.available:,}, {which}"
    line += f", {sampled.steps:,} steps"
    if sampled.cut:
        line += f" ({sampled.cut:,} sequences cut at {SAMPLE_LENGTH:,})"
    note(line + (", states carried on in their groups" if sampled.carried else ""))


def show_check(result: Check) -> None:
    """Print on stdout the verdict, and the largest differences from one sequence at a time."""
    cells = {(each.way, each.variant): each for each in result.differences}
    ways = list(dict.fromkeys(way for way, _ in cells))
    variants = list(dict.fromkeys(variant for _, variant in cells))
    console = stdout_console()
    largest = max(each.logits for each in result.differences)
    verdict = "passed: predictions don't depend" if result.passed else "failed: predictions depend"
    console.print(
        f"{verdict} on the batch (largest difference of logits: {largest:.1e}; rounding allows "
        f"{result.allowed:.1e})",
        soft_wrap=True,
    )
    columns = [Column("difference of logits", [*ways, "of probabilities, any way"], "words")]
    for rank, variant in enumerate(variants):
        found = [cells[way, variant] for way in ways]
        values = [each.logits for each in found] + [max(each.probabilities for each in found)]
        columns.append(Column(variant, [f"{value:.1e}" for value in values], rank=rank))
    print_columns(console, columns, sections=1)
