"""A comparison as a table: speeds, memory, differences, and the one to take."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from seqtrain.cli.compare_sections import sections
from seqtrain.cli.output.console import stdout_console
from seqtrain.workflows.compare import Comparison
from seqtrain.workflows.recommendation import Row, Speed

NOTHING = "·"
HEAD = (
    ["training", "memory", "", "prediction", "logits", ""],
    ["tokens/s", "MB", "padding", "tokens/s", "differ", "accuracy"],
)


def show_comparison(comparison: Comparison) -> None:
    """Print the table on stdout, what it was measured on, and as the last line a recommendation."""
    console = stdout_console()
    for line in _table(comparison):
        console.print(line, soft_wrap=True)
    for text in (
        _measured(comparison),
        _peak(comparison),
        _accuracies(comparison),
        recommendation(comparison),
    ):
        console.print(text, soft_wrap=not console.is_terminal, markup=False)


def _table(comparison: Comparison) -> Iterator[Text]:
    """Yield the lines of the table, 80 columns wide unless speeds have ten digits."""
    rows = comparison.candidates
    cells = {row.name: _cells(row) for row in rows}
    widths = [max(map(len, column)) for column in zip(*HEAD, *cells.values(), strict=True)]
    names = max(len(row.name) for row in rows)

    def line(mark: str, name: str, cells: list[str]) -> str:
        columns = [f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)]
        return "  ".join([f"{mark:1} {name:{names}}", *columns])

    for head in HEAD:
        yield Text(line("", "", head))
    for heading, members in sections(comparison):
        yield Text(f"\n{heading}", style="dim")
        for row in members:
            best = row.name == comparison.recommended
            mark = "*" if best else "!" if row.kind == "wrong" else ""
            yield Text(line(mark, row.name, cells[row.name]), style="bold" if best else "")
    legend = ["*: recommended"] if comparison.recommended else []
    if any(NOTHING in row for row in cells.values()):
        legend.append(f"{NOTHING}: not measured")
    yield Text("\n" + ", ".join(legend))


def _cells(row: Row) -> list[str]:
    memory = None if row.training is None else row.training.peak_memory_bytes
    return [
        _rate(row.training),
        NOTHING if memory is None else f"{memory / 1e6:,.0f}",
        f"{row.padding:.0%}",
        _rate(row.prediction),
        NOTHING if row.largest_difference is None else f"{row.largest_difference:.0e}",
        NOTHING if row.accuracy is None else f"{row.accuracy:.1%}",
    ]


def _rate(speed: Speed | None) -> str:
    return NOTHING if speed is None else f"{speed.tokens_per_second:,.0f}"


def _measured(comparison: Comparison) -> str:
    """Return the line that says what speeds are of."""
    turns = {row.training.turns for row in comparison.candidates if row.training} or {0}
    threads = "1 thread" if comparison.threads == 1 else f"{comparison.threads} threads"
    return (
        f"real tokens, no padding; {comparison.rows:,} sequences of {comparison.tokens:,} tokens "
        f"of train; {comparison.device}, {threads}; turns of training: "
        + " to ".join(str(count) for count in sorted({min(turns), max(turns)}))
    )


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
    hint = ""
    if comparison.better_pooling:
        hint = f"; model.pooling: {comparison.better_pooling} was better here"
    seeds = f"the mean of {comparison.seeds} seeds" if comparison.seeds > 1 else "one seed"
    return (
        f"accuracy: after {comparison.passes:.3g} passes over these, on {comparison.held_out:,} "
        f"sequences held out, {seeds}; ways with equal logits and equal batches learn once{hint}"
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
