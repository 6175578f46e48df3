"""A comparison of variants as a table: speeds, differences of logits, and the recommendation."""

from seqtrain.api.compare import Comparison, Speed, VariantResult
from seqtrain.cli.screens.console import say, stdout_console
from seqtrain.cli.screens.tables import format_number, print_records
from seqtrain.text import counted

VARIANT = "  variant"
"""Heading of the names, with room for the star before them."""
LEGEND = (
    "training, prediction: thousand tokens/s",
    "error: largest difference of logits",
    "turns: slowest and fastest turn of training",
    "*: recommended",
    "-: not measured",
)


def show_comparison(comparison: Comparison) -> None:
    """Print a comparison on stdout: a table, a legend, the conditions, and the recommendation."""
    records = [_record(row, comparison) for row in comparison.candidates]
    print_records(stdout_console(), records, whole=[VARIANT])
    say("; ".join(LEGEND))
    say(_conditions(comparison))
    say(_recommendation(comparison))


def _record(row: VariantResult, comparison: Comparison) -> dict[str, str]:
    """Return the cells of a variant in the table, with a dash for what wasn't measured."""
    mark = "*" if row.name == comparison.recommended else " "
    training = row.training
    prediction = row.prediction
    return {
        VARIANT: f"{mark} {row.name}",
        "training": _thousands(training.tokens_per_second) if training else "-",
        "prediction": _thousands(prediction.tokens_per_second) if prediction else "-",
        "padding": f"{row.padding:.0%}",
        "error": format_number(row.largest_difference, ".0e"),
        "accuracy": format_number(row.accuracy, ".1%"),
        "turns": _turns(training) if training else "-",
    }


def _thousands(tokens_per_second: float) -> str:
    """Return a speed in thousands of tokens per second as text, such as "5.1"."""
    return f"{tokens_per_second / 1e3:,.1f}"


def _turns(speed: Speed) -> str:
    """Return the speeds of the slowest and the fastest turn as text, such as "5.1-6.2"."""
    return f"{_thousands(speed.slowest)}-{_thousands(speed.fastest)}"


def _conditions(comparison: Comparison) -> str:
    """Return a line about the rows, the device, and how accuracies were measured."""
    if not comparison.held_out:
        accuracy = "not measured, because no rows are held out; set data.validation"
    else:
        accuracy = (
            f"after {comparison.passes:.3g} passes over these rows, on {comparison.held_out:,} "
            "held-out sequences; variants with equal logits and batches are trained once"
        )
    return (
        f"tokens are real tokens, not padding; {comparison.rows:,} sequences of "
        f"{comparison.tokens:,} tokens of train; {comparison.device}, "
        f"{counted(comparison.threads, 'thread')}; accuracy: {accuracy}"
    )


def _recommendation(comparison: Comparison) -> str:
    """Return a line with the recommended setting and the reason, or why there is none."""
    for row in comparison.candidates:
        if row.name == comparison.recommended:
            return f"recommended: {row.setting}. {comparison.reason}"
    return comparison.reason
