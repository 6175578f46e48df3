"""The difference of two runs, as tables and as JSON."""

from dataclasses import asdict
from typing import Any

from seqtrain.api.diff import RunDifference
from seqtrain.cli.screens.console import note, say, stdout_console
from seqtrain.cli.screens.errors import print_predictions
from seqtrain.cli.screens.tables import print_records

CALIBRATED = "scores: after calibration, as in eval; seqtrain runs shows validation before it"
WHO_IS_RIGHT = ("both", "only A", "only B", "neither")
"""Which runs predict an example right, in the order of `RunDifference.counts`."""


def diff_json(found: RunDifference, top: int | None) -> dict[str, Any]:
    """Return the object that ``diff --json`` prints.

    Args:
        found: The difference of two runs.
        top: Largest number of differing rows to include, or None for all.
    """
    rows = []
    for a, b in found.rows[:top]:
        row = {name: getattr(a, name) for name in ("line", "file", "text", "label")}
        for name, own in (("a", a), ("b", b)):
            row[name] = {"predicted": own.predicted, "probability": own.probability}
        rows.append(row)
    metrics = [asdict(each) for each in found.metrics]
    return {
        "a": str(found.runs[0]),
        "b": str(found.runs[1]),
        "data": found.data,
        "num_examples": found.num_examples,
        "left_out": found.left_out,
        "metrics": {each.pop("metric"): each for each in metrics},
        "right": found.counts,
        "num_differing": len(found.rows),
        "rows": rows,
    }


def show_diff(found: RunDifference, top: int) -> None:
    """Print the metrics of both runs, how often each run is right, and differing predictions.

    `top` is the largest number of differing predictions to print.
    """
    metrics = [
        {
            "metric": each.metric.replace("_", " ").replace("f1", "F1"),
            "A": f"{each.a:.2%}",
            "B": f"{each.b:.2%}",
            "B - A": f"{each.difference:+.2%}",
            "95% interval": f"{each.low:+.1%} to {each.high:+.1%}",
        }
        for each in found.metrics
    ]
    print_records(stdout_console(), metrics)
    right = [
        f"{who} {count:,}" for who, count in zip(WHO_IS_RIGHT, found.counts.values(), strict=True)
    ]
    say(f"right: {', '.join(right)}; of {found.num_examples:,} examples")
    accuracy = found.metrics[0]
    better = "B" if accuracy.difference > 0 else "A"
    verdict = f"{better} is better; the 95% interval excludes 0"
    if accuracy.low <= 0 <= accuracy.high:
        verdict = "no clear difference; the 95% interval includes 0"
    say(f"accuracy: {verdict}")
    note(CALIBRATED)
    shown = found.rows[:top]
    cells = [
        {
            "label": a.label,
            "A": a.predicted,
            "B": b.predicted,
            "probabilities": f"{a.probability:.1%}, {b.probability:.1%}",
        }
        for a, b in shown
    ]
    print_predictions([a for a, _ in shown], cells)
    if len(found.rows) > top:
        say(f"{top} of {len(found.rows):,} predictions that differ")
