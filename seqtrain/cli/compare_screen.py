"""A comparison as a table: speeds, memory, differences, and the one to take."""

from __future__ import annotations

from itertools import zip_longest

from rich.table import Table

from seqtrain.cli.console import small_table, stdout_console
from seqtrain.workflows.compare import Comparison, Row, Speed

NOTHING = "·"


def show_comparison(comparison: Comparison) -> None:
    """Print the table on stdout, what it was measured on, and as the last line a recommendation."""
    console = stdout_console()
    console.print(_table(comparison))
    for line in (
        f"real tokens, no padding; {comparison.rows:,} sequences of {comparison.tokens:,} tokens "
        f"of train; {comparison.device}, {comparison.threads} threads",
        _peak(comparison),
        _accuracies(comparison),
        recommendation(comparison),
    ):
        console.print(line, soft_wrap=True, markup=False)


def _peak(comparison: Comparison) -> str:
    """Return the line that says how near the machine's limit the recommended way comes."""
    flops = comparison.flops_a_token
    line = (
        f"peak: {comparison.peak_flops / 1e9:,.0f} GFLOP/s in float32 matrix products; a token "
        f"needs {flops['training'] / 1e3:,.0f} kFLOP in training, "
        f"{flops['prediction'] / 1e3:,.0f} in prediction"
    )
    row = recommended_row(comparison)
    if row is None or row.training is None:
        return line
    return f"{line}; {row.name} trains at {row.training.share_of_peak:.0%} of it"


def _accuracies(comparison: Comparison) -> str:
    """Return the line that says what accuracies are of."""
    if not comparison.held_out:
        return "accuracy: no rows to hold out; give data.validation"
    if not comparison.passes:
        return "accuracy: there was no time to train; allow more seconds"
    seeds = f"the mean of {comparison.seeds} seeds" if comparison.seeds > 1 else "one seed"
    return (
        f"accuracy: after {comparison.passes:.3g} passes over these, on {comparison.held_out:,} "
        f"sequences held out, {seeds}; where logits are equal, one trained for all"
    )


def recommendation(comparison: Comparison) -> str:
    """Return the last line: what to take, how, and why."""
    row = recommended_row(comparison)
    if row is None:
        return comparison.reason
    return f"recommended: {row.setting or f'torch alone as in {row.name}'}, {comparison.reason}"


def recommended_row(comparison: Comparison) -> Row | None:
    """Return the row of the recommended way."""
    rows = (row for row in comparison.candidates if row.name == comparison.recommended)
    return next(rows, None)


def _table(comparison: Comparison) -> Table:
    table = small_table(
        "",
        "training\ntokens/s",
        "\nmemory",
        "\npadding",
        "prediction\ntokens/s",
        "logits\ndiffer",
        "\naccuracy",
    )
    for row, following in zip_longest(comparison.candidates, comparison.candidates[1:]):
        style = "bold" if row.name == comparison.recommended else None
        memory = None if row.training is None else row.training.peak_memory_bytes
        table.add_row(
            f"{row.name} *" if style else row.name,
            _rate(row.training),
            NOTHING if memory is None else f"{memory / 1e6:,.0f} MB",
            f"{row.padding:.0%}",
            _rate(row.prediction),
            NOTHING if row.largest_difference is None else f"{row.largest_difference:.0e}",
            NOTHING if row.accuracy is None else f"{row.accuracy:.1%}",
            style=style,
            end_section=following is not None and _section(row) != _section(following),
        )
    return table


def _section(row: Row) -> str:
    """Return the kinds that stand together: each wrong way beside what it should have been."""
    return "wrong" if row.kind == "pooling" else row.kind


def _rate(speed: Speed | None) -> str:
    return NOTHING if speed is None else f"{speed.tokens_per_second:,.0f}"
