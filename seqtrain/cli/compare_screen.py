"""A comparison as a table: speeds, memory, differences, and the one to take."""

from __future__ import annotations

from rich.table import Table

from seqtrain.cli.console import small_table, stdout_console
from seqtrain.workflows.compare import Comparison, Speed

NOTHING = "·"


def show_comparison(comparison: Comparison) -> None:
    """Print the table on stdout, what it was measured on, and as the last line a recommendation."""
    console = stdout_console()
    console.print(_table(comparison))
    flops = comparison.flops_a_token
    for line in (
        f"real tokens, no padding; {comparison.rows:,} sequences of {comparison.tokens:,} tokens "
        f"of train; {comparison.device}, {comparison.threads} threads",
        f"peak: {comparison.peak_flops / 1e9:,.0f} GFLOP/s in float32 matrix products; a token "
        f"needs {flops['training'] / 1e3:,.0f} kFLOP in training, "
        f"{flops['prediction'] / 1e3:,.0f} in prediction",
        recommendation(comparison),
    ):
        console.print(line, soft_wrap=True, markup=False)


def recommendation(comparison: Comparison) -> str:
    """Return the last line: what to take, how, and why."""
    if comparison.recommended is None:
        return comparison.reason
    row = next(row for row in comparison.candidates if row.name == comparison.recommended)
    what = f"model.engine: {row.name}" if row.kind == "engine" else f"nn.GRU, {row.name}"
    return f"recommended: {what}, {comparison.reason}"


def _table(comparison: Comparison) -> Table:
    training = ("training\ntokens/s", "of\npeak", "\nmemory", "\nbatches")
    prediction = ("prediction\ntokens/s", "of\npeak")
    table = small_table("", *training, *prediction, "logits\ndiffer")
    for row in comparison.candidates:
        style = "bold" if row.name == comparison.recommended else None
        table.add_row(
            f"{row.name} *" if style else row.name,
            *_training(row.training),
            *_rate(row.prediction),
            NOTHING if row.largest_difference is None else f"{row.largest_difference:.0e}",
            style=style,
        )
    return table


def _training(speed: Speed | None) -> tuple[str, ...]:
    if speed is None:
        return (NOTHING,) * 4
    memory = speed.peak_memory_bytes
    return (
        *_rate(speed),
        NOTHING if memory is None else f"{memory / 1e6:,.0f} MB",
        f"{speed.batches:,}",
    )


def _rate(speed: Speed | None) -> tuple[str, str]:
    if speed is None:
        return NOTHING, NOTHING
    return f"{speed.tokens_per_second:,.0f}", f"{speed.share_of_peak:.0%}"
