"""A comparison as a table: speeds, memory, differences, and the variant to take."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from rich.text import Text

from seqtrain.cli.output.console import stdout_console
from seqtrain.comparison.results import Comparison, Speed, VariantResult, thousands
from seqtrain.text import counted

NOTHING = "·"
Value = TypeVar("Value")
HEADINGS = {
    ("engine",): "engines (model.engine)",
    ("option",): "options of seqtrain (model.unroll, batching.sort, batching.bucketing)",
    ("recipe",): "plain torch scripts, {cell} (sorted: by like length; mask: finds the last step)",
    (
        "wrong",
        "pooling",
    ): "mistakes: padding is read as data; -valid: the same pooling done right",
}
"""Of the rows of some kinds."""


class Column(NamedTuple):
    """Two lines of heading, the cells, and how early it goes where the table is too wide."""

    head: tuple[str, str]
    cell: Callable[[VariantResult], str]
    drop: int = 0


def sections(comparison: Comparison) -> list[tuple[str, list[VariantResult]]]:
    """Return the heading and the rows of each section, in the table and in the chart."""
    found = []
    for kinds, heading in HEADINGS.items():
        rows = [row for row in comparison.candidates if row.kind in kinds]
        found.append((heading.format(cell=f"nn.{comparison.rnn.upper()}"), rows))
    return [(heading, rows) for heading, rows in found if rows]


def show_comparison(comparison: Comparison) -> None:
    """Print the table on stdout, what it was measured on, and at last a recommendation."""
    console = stdout_console()
    for line in _table(comparison, console.width):
        console.print(line, soft_wrap=True)
    for text in (
        _measured(comparison),
        _accuracies(comparison),
        recommendation(comparison),
    ):
        console.print(text, soft_wrap=not console.is_terminal, markup=False)


def _shown(value: Value | None, how: Callable[[Value], str]) -> str:
    return NOTHING if value is None else how(value)


def _rate(speed: Speed) -> str:
    return thousands(speed.tokens_per_second)


def _spread(speed: Speed) -> str:
    return speed.spread.removeprefix("turns ")


COLUMNS = [
    Column(("training", "k tokens/s"), lambda row: _shown(row.training, _rate)),
    Column(("slowest-", "fastest"), lambda row: _shown(row.training, _spread), drop=2),
    Column(("prediction", "k tokens/s"), lambda row: _shown(row.prediction, _rate), drop=1),
    Column(("slowest-", "fastest"), lambda row: _shown(row.prediction, _spread), drop=5),
    Column(("", "padding"), lambda row: f"{row.padding:.0%}", drop=3),
    Column(("logits", "differ"), lambda row: _shown(row.largest_difference, "{:.0e}".format)),
    Column(("", "accuracy"), lambda row: _shown(row.accuracy, "{:.1%}".format)),
]


def _table(comparison: Comparison, width: int) -> list[Text]:
    """Return the lines of the table; columns are dropped until it fits."""
    rows = comparison.candidates
    names = max(len(row.name) for row in rows)
    cells = [[column.cell(row) for row in rows] for column in COLUMNS]
    widths = [
        max(map(len, [*column.head, *below])) for column, below in zip(COLUMNS, cells, strict=True)
    ]
    shown = list(range(len(COLUMNS)))
    while 2 + names + sum(2 + widths[place] for place in shown) > width:
        worst = max(shown, key=lambda place: COLUMNS[place].drop)
        if not COLUMNS[worst].drop:
            break
        shown.remove(worst)

    def line(mark: str, name: str, texts: list[str]) -> str:
        columns = [f"{texts[place]:>{widths[place]}}" for place in shown]
        return "  ".join([f"{mark:1} {name:{names}}", *columns])

    lines = [Text(line("", "", [column.head[half] for column in COLUMNS])) for half in (0, 1)]
    for heading, members in sections(comparison):
        lines.append(Text(f"\n{heading}", style="dim"))
        for row in members:
            best = row.name == comparison.recommended
            mark = "*" if best else "!" if row.kind == "wrong" else ""
            texts = [below[rows.index(row)] for below in cells]
            lines.append(Text(line(mark, row.name, texts), style="bold" if best else ""))
    legend = ["*: recommended"] if comparison.recommended else []
    if any(row.kind == "wrong" for row in rows):
        legend.append("!: wrong")
    if any(NOTHING in cells[place] for place in shown):
        legend.append(f"{NOTHING}: not measured")
    legend.append("slowest-fastest: turns")
    return [*lines, Text("\n" + ", ".join(legend))]


def _measured(comparison: Comparison) -> str:
    """Return the line that says what speeds are of."""
    turns = sorted(row.training.turns for row in comparison.candidates if row.training) or [0]
    counts = f"{turns[0]} to {turns[-1]}" if turns[0] < turns[-1] else str(turns[0])
    return (
        f"real tokens, no padding; {comparison.rows:,} sequences of {comparison.tokens:,} tokens "
        f"of train; {comparison.device}, {counted(comparison.threads, 'thread')}; "
        f"turns of training: {counts}"
    )


def _accuracies(comparison: Comparison) -> str:
    """Return the line that says what accuracies are of."""
    if not comparison.held_out:
        return "accuracy: no rows to hold out; give data.validation"
    if not comparison.passes:
        return "accuracy: there was no time to train; allow more seconds"
    return (
        f"accuracy: after {comparison.passes:.3g} passes over these, on {comparison.held_out:,} "
        f"sequences held out; variants with equal logits and equal batches are one "
        "model, trained once"
    )


def recommendation(comparison: Comparison) -> str:
    """Return the last line: what to take, how, and why."""
    row = _recommended_row(comparison)
    if row is None:
        return comparison.reason
    script = f"a plain torch script as in {row.name}"
    setting = row.setting or (script if row.kind == "recipe" else "the config as it is")
    return f"recommended: {setting}. {comparison.reason}"


def _recommended_row(comparison: Comparison) -> VariantResult | None:
    rows = (row for row in comparison.candidates if row.name == comparison.recommended)
    return next(rows, None)
