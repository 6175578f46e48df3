"""A comparison as a table: speeds, differences, and the variant to take."""

from seqtrain.cli.output.console import say, stdout_console
from seqtrain.cli.output.table import Record, TableColumn, figure, print_records
from seqtrain.comparison.results import Comparison, VariantResult, thousands
from seqtrain.text import counted

KINDS = {
    "engine": "model.engine",
    "option": "of seqtrain: model.unroll, batching.sort, batching.bucketing",
    "recipe": "a plain torch script (sorted: by like length; mask: finds the last step)",
    "wrong": "padding read as data",
    "pooling": "that of a wrong one, done right",
}
LEGEND = (
    "training, prediction: thousand tokens/s",
    "turns: the slowest and the fastest",
    "error: largest difference of logits",
    "*: recommended",
    "-: not measured",
)


def show_comparison(comparison: Comparison) -> None:
    """Print the table on stdout, what it was measured on, and at last a recommendation."""
    print_records(stdout_console(), (_record(row, comparison) for row in comparison.candidates))
    kinds = dict.fromkeys(row.kind for row in comparison.candidates)
    say(*(f"{kind}: {KINDS[kind]}" for kind in kinds), "; ".join(LEGEND))
    say(_measured(comparison), _recommended(comparison))


def _record(row: VariantResult, comparison: Comparison) -> Record:
    mark = "*" if row.name == comparison.recommended else " "
    learned, used = row.training, row.prediction
    return {
        TableColumn("  variant", "name"): f"{mark} {row.name}",
        TableColumn("kind", "words", rank=4): row.kind,
        "training": thousands(learned.tokens_per_second) if learned else "-",
        TableColumn("turns", rank=2): learned.spread if learned else "-",
        TableColumn("prediction", rank=1): thousands(used.tokens_per_second) if used else "-",
        TableColumn("turns", rank=5): used.spread if used else "-",
        TableColumn("padding", rank=3): f"{row.padding:.0%}",
        "error": figure(row.largest_difference, ".0e"),
        "accuracy": figure(row.accuracy, ".1%"),
    }


def _measured(comparison: Comparison) -> str:
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
        f"accuracy: {accuracy}"
    )


def _recommended(comparison: Comparison) -> str:
    for row in comparison.candidates:
        if row.name == comparison.recommended:
            script = f"a plain torch script as in {row.name}"
            setting = row.setting or (script if row.kind == "recipe" else "the config as it is")
            return f"recommended: {setting}. {comparison.reason}"
    return comparison.reason
