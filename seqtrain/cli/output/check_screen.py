"""A check as a table: one row per way, one column per engine."""

from seqtrain.api.check import Check
from seqtrain.cli.output.console import note, say, stdout_console
from seqtrain.cli.output.table import TableColumn, print_table
from seqtrain.evaluation.invariance import SAMPLE_LENGTH


def show_check(result: Check, *, verdict: bool) -> None:
    """Say on stderr what was compared, and on stdout the differences from one by one."""
    line = f"run: {result.run}, data: {result.data}, {result.num_examples:,} sequences"
    if result.num_examples < result.available:
        which = "the first" if result.carried else "evenly spaced by length"
        line += f" of {result.available:,}, {which}"
    line += f", {result.steps:,} steps"
    if result.cut:
        line += f" ({result.cut:,} sequences cut at {SAMPLE_LENGTH:,})"
    note(line + (", states carried on in their groups" if result.carried else ""))
    if not verdict:
        return
    cells = {(each.way, each.variant): each for each in result.differences}
    largest = max(each.logits for each in result.differences)
    say(
        ("passed: predictions don't depend" if result.passed else "failed: predictions depend")
        + f" on the batch (largest difference of logits: {largest:.1e}; rounding allows "
        f"{result.allowed:.1e})"
    )
    ways, variants = (list(dict.fromkeys(names)) for names in zip(*cells, strict=True))
    columns = [TableColumn("difference of logits", "words")]
    columns += [TableColumn(variant, rank=rank) for rank, variant in enumerate(variants)]
    rows = [(way, *(f"{cells[way, name].logits:.1e}" for name in variants)) for way in ways]
    worst = (max(cells[way, name].probabilities for way in ways) for name in variants)
    rows.append(("of probabilities, any way", *(f"{value:.1e}" for value in worst)))
    print_table(stdout_console(), columns, rows, sections=[len(ways)])
