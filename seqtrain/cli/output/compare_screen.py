"""A comparison as a table and as a picture: speeds, differences, and the variant to take."""

from itertools import accumulate

from seqtrain.cli.output.console import say, stdout_console
from seqtrain.cli.output.table import TableColumn, print_table
from seqtrain.comparison.results import Comparison, Speed, VariantResult, thousands
from seqtrain.report.page import templates
from seqtrain.text import counted, shorten

NOTHING = "·"
HEADINGS = {
    ("engine",): "engines (model.engine)",
    ("option",): "options of seqtrain (model.unroll, batching.sort, batching.bucketing)",
    ("recipe",): "plain torch scripts, {cell} (sorted: by like length; mask: finds the last step)",
    ("wrong", "pooling"): "mistakes: padding read as data; -valid: the same pooling done right",
}
"""Of the rows of some kinds, in the order in which they stand."""
COLOURS = {"training": "#2f81c7", "prediction": "#d08a1d"}
LEFT, LONGEST_BAR, TITLE = 150, 420, 40
"""Of the picture: where bars begin, the length of the longest, characters of its title at most."""


def _sections(comparison: Comparison) -> list[tuple[str, list[VariantResult]]]:
    cell = f"nn.{comparison.rnn.upper()}"
    sections = [
        (heading.format(cell=cell), [row for row in comparison.candidates if row.kind in kinds])
        for kinds, heading in HEADINGS.items()
    ]
    return [(heading, rows) for heading, rows in sections if rows]


def show_comparison(comparison: Comparison) -> None:
    """Print the table on stdout, what it was measured on, and at last a recommendation."""
    sections = _sections(comparison)
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
            *(*_speeds(row.training), *_speeds(row.prediction), f"{row.padding:.0%}"),
            NOTHING if row.largest_difference is None else f"{row.largest_difference:.0e}",
            NOTHING if row.accuracy is None else f"{row.accuracy:.1%}",
        )
        for row in found
    ]
    ends = list(accumulate(len(members) for _, members in sections))
    print_table(stdout_console(), columns, rows, sections=ends[:-1])
    say(*(f"part {number}: {heading}" for number, (heading, _) in enumerate(sections, start=1)))
    legend = ["training, prediction: thousand tokens/s", "turns: the slowest and the fastest"]
    legend += ["error: largest difference of logits"]
    legend += ["*: recommended"] * ("*" in marks.values()) + ["!: wrong"] * ("!" in marks.values())
    legend += [f"{NOTHING}: not measured"] * any(NOTHING in row for row in rows)
    say("; ".join(legend), _measured(comparison), _recommended(comparison))


def _speeds(speed: Speed | None) -> tuple[str, str]:
    if speed is None:
        return NOTHING, NOTHING
    return thousands(speed.tokens_per_second), speed.spread.removeprefix("turns ")


def _measured(comparison: Comparison) -> str:
    turns = sorted(row.training.turns for row in comparison.candidates if row.training) or [0]
    counts = f"{turns[0]} to {turns[-1]}" if turns[0] < turns[-1] else str(turns[0])
    accuracy = (
        f"after {comparison.passes:.3g} passes over these, on {comparison.held_out:,} sequences "
        "held out; variants with equal logits and batches are one model, trained once"
    )
    if not comparison.passes:
        accuracy = "there was no time to train; allow more seconds"
    if not comparison.held_out:
        accuracy = "no rows to hold out; give data.validation"
    return (
        f"real tokens, no padding; {comparison.rows:,} sequences of {comparison.tokens:,} tokens "
        f"of train; {comparison.device}, {counted(comparison.threads, 'thread')}; "
        f"turns of training: {counts}; accuracy: {accuracy}"
    )


def _recommended(comparison: Comparison) -> str:
    for row in comparison.candidates:
        if row.name == comparison.recommended:
            script = f"a plain torch script as in {row.name}"
            setting = row.setting or (script if row.kind == "recipe" else "the config as it is")
            return f"recommended: {setting}. {comparison.reason}"
    return comparison.reason


def draw_speeds(comparison: Comparison, title: str) -> str:
    """Return an SVG of tokens per second in training and prediction, and of accuracies.

    Variants without figures are left out.
    """
    speeds = [speed for row in comparison.candidates for speed in (row.training, row.prediction)]
    scale = LONGEST_BAR / max((speed.fastest for speed in speeds if speed), default=1.0)
    headings, rows, top = [], [], 64
    for heading, members in _sections(comparison):
        headings.append((top + 12, heading))
        top += 24
        for row in members:
            if row.training or row.prediction:
                rows.append((top, row, _bars(row, top, scale)))
                top += 38
    given = {"headings": headings, "rows": rows, "height": top + 8, "colours": COLOURS}
    return (
        templates("seqtrain.cli.output")
        .get_template("speed.svg")
        .render(title=shorten(title, TITLE), **given)
    )


def _bars(row: VariantResult, top: int, scale: float) -> list[tuple[object, ...]]:
    """Return top, length, slowest, fastest, colour and figure of each bar of a variant."""
    bars = []
    for speed, colour in zip((row.training, row.prediction), COLOURS.values(), strict=True):
        if speed:
            length = round(max(speed.tokens_per_second * scale, 1), 1)
            ends = [round(LEFT + each * scale, 1) for each in (speed.slowest, speed.fastest)]
            bars.append((top, length, *ends, colour, thousands(speed.tokens_per_second)))
        top += 14
    return bars
