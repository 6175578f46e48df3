"""The difference of two runs, as tables or as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from seqtrain.api.diff import RunDifference
from seqtrain.cli.output.answer_rows import place_columns
from seqtrain.cli.output.columns import Column, print_columns
from seqtrain.cli.output.console import stdout_console

RIGHT = {"both": "both", "only_a": "only A", "only_b": "only B", "neither": "neither"}


def diff_json(found: RunDifference, top: int | None) -> dict[str, Any]:
    """Return what `diff --json` prints, with as many differing rows as `top` says."""
    rows = [
        {
            "line": a.line,
            "file": a.file,
            "text": a.text,
            "label": a.label,
            **{
                name: {"answer": row.predicted, "probability": row.probability}
                for name, row in (("a", a), ("b", b))
            },
        }
        for a, b in found.rows[:top]
    ]
    return {
        "a": str(found.runs[0]),
        "b": str(found.runs[1]),
        "data": found.data,
        "num_examples": found.num_examples,
        "left_out": found.left_out,
        "metrics": {
            each.metric: {k: v for k, v in asdict(each).items() if k != "metric"}
            for each in found.metrics
        },
        "right": found.counts,
        "num_differing": len(found.rows),
        "rows": rows,
    }


def show_diff(found: RunDifference, top: int) -> None:
    """Print the metrics, who is right how often, and the first rows that differ."""
    console = stdout_console()
    metrics = found.metrics
    names = [each.metric.replace("_", " ").replace("f1", "F1") for each in metrics]
    print_columns(
        console,
        [
            Column("metric", names, "words"),
            Column("A", [f"{each.a:.2%}" for each in metrics]),
            Column("B", [f"{each.b:.2%}" for each in metrics]),
            Column("B - A", [f"{each.difference:+.2%}" for each in metrics]),
            Column("95% interval", [f"{m.low:+.1%} to {m.high:+.1%}" for m in metrics]),
        ],
    )
    shares = [f"{count:,}" for count in found.counts.values()]
    shares.append(f"{found.num_examples:,}")
    print_columns(
        console,
        [Column("right", [*RIGHT.values(), "all"], "words"), Column("examples", shares)],
    )
    console.print(_verdict(found), soft_wrap=True)
    rows = found.rows[:top]
    if rows:
        print_columns(
            console,
            [
                *place_columns([a for a, _ in rows]),
                Column("label", [a.label for a, _ in rows], "words"),
                Column("A", [a.predicted for a, _ in rows], "words"),
                Column("B", [b.predicted for _, b in rows], "words"),
                Column(
                    "probabilities",
                    [f"{a.probability:.1%}, {b.probability:.1%}" for a, b in rows],
                    rank=3,
                ),
                Column("sequence", [a.text for a, _ in rows], "text", rank=1),
            ],
        )
    if len(found.rows) > top:
        console.print(f"{top} of {len(found.rows):,} answers that differ", soft_wrap=True)


def _verdict(found: RunDifference) -> str:
    accuracy = found.metrics[0]
    if accuracy.low > 0 or accuracy.high < 0:
        better = "B" if accuracy.difference > 0 else "A"
        return f"accuracy: {better} is better, by more than chance would explain"
    return "accuracy: the difference may be chance (its interval holds 0)"
