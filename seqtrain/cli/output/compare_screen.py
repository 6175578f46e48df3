"""A comparison as a table: speeds, memory, differences, and the variant to take."""

from __future__ import annotations

from itertools import accumulate

from seqtrain.cli.output.console import say, stdout_console
from seqtrain.cli.output.table import TableColumn, print_table
from seqtrain.comparison.results import Comparison, Speed, VariantResult, thousands
from seqtrain.text import counted

NOTHING = "·"
HEADINGS = {
    ("engine",): "engines (model.engine)",
    ("option",): "options of seqtrain (model.unroll, batching.sort, batching.bucketing)",
    ("recipe",): "plain torch scripts, {cell} (sorted: by like length; mask: finds the last step)",
    (
        "wrong",
        "pooling",
    ): "mistakes: padding is read as data; -valid: the same pooling done right",
}
"""Of the rows of some kinds, in the order in which they stand."""


def in_sections(comparison: Comparison) -> list[tuple[str, list[VariantResult]]]:
    """Return the heading and the rows of each section, in the table and in the chart."""
    cell = f"nn.{comparison.rnn.upper()}"
    sections = [
        (heading.format(cell=cell), [row for row in comparison.candidates if row.kind in kinds])
        for kinds, heading in HEADINGS.items()
    ]
    return [(heading, rows) for heading, rows in sections if rows]


def show_comparison(comparison: Comparison) -> None:
    """Print the table on stdout, what it was measured on, and at last a recommendation."""
    sections = in_sections(comparison)
    found = [row for _, members in sections for row in members]
    columns = [
        TableColumn("  variant", "name"),
        TableColumn("training"),
        TableColumn("turns", rank=2),
        TableColumn("prediction", rank=1),
        TableColumn("turns", rank=5),
        TableColumn("padding", rank=3),
        TableColumn("error"),
        TableColumn("accuracy"),
    ]
    marks = {comparison.recommended: "*"} | {row.name: "!" for row in found if row.kind == "wrong"}
    rows = [
        (
            f"{marks.get(row.name, ' ')} {row.name}",
            *_speeds(row.training),
            *_speeds(row.prediction),
            f"{row.padding:.0%}",
            NOTHING if row.largest_difference is None else f"{row.largest_difference:.0e}",
            NOTHING if row.accuracy is None else f"{row.accuracy:.1%}",
        )
        for row in found
    ]
    ends = list(accumulate(len(members) for _, members in sections))
    print_table(stdout_console(), columns, rows, sections=ends[:-1])
    for number, (heading, _) in enumerate(sections, start=1):
        say(f"part {number}: {heading}")
    legend = ["training, prediction: thousand tokens/s", "turns: the slowest and the fastest"]
    legend += ["error: largest difference of logits"]
    legend += ["*: recommended"] * ("*" in marks.values()) + ["!: wrong"] * ("!" in marks.values())
    legend += [f"{NOTHING}: not measured"] * any(NOTHING in row for row in rows)
    say("; ".join(legend))
    say(_measured(comparison))
    say(_accuracies(comparison))
    say(recommendation(comparison))


def _speeds(speed: Speed | None) -> tuple[str, str]:
    """Return a speed, and the slowest and the fastest turn."""
    if speed is None:
        return NOTHING, NOTHING
    return thousands(speed.tokens_per_second), speed.spread.removeprefix("turns ")


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
        f"sequences held out; variants with equal logits and equal batches are one model, trained "
        "once"
    )


def recommendation(comparison: Comparison) -> str:
    """Return the last line: what to take, how, and why."""
    row = _recommended(comparison)
    if row is None:
        return comparison.reason
    script = f"a plain torch script as in {row.name}"
    setting = row.setting or (script if row.kind == "recipe" else "the config as it is")
    return f"recommended: {setting}. {comparison.reason}"


def _recommended(comparison: Comparison) -> VariantResult | None:
    rows = (row for row in comparison.candidates if row.name == comparison.recommended)
    return next(rows, None)
