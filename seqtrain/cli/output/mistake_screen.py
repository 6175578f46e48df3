"""Predicted examples as tables and as JSON: mistakes, and rows where two runs differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.padding import Padding
from rich.text import Text

from seqtrain.api.diff import RunDifference
from seqtrain.cli.output.console import say, stdout_console
from seqtrain.cli.output.table import TableColumn, print_table
from seqtrain.report import PredictedExample
from seqtrain.text import printable, quote

FOR, AGAINST = "bold green", "bold red"
"""Styles of what speaks for a prediction and against it."""
SHOWN_TOKENS, STRONGEST = 200, 5
RIGHT = {"both": "both", "only_a": "only A", "only_b": "only B", "neither": "neither"}


def mistake_json(row: PredictedExample) -> dict[str, Any]:
    """Return a mistake as JSON has it; weights only where they were asked for."""
    values = {"answer" if k == "predicted" else k: v for k, v in asdict(row).items()}
    if row.weights is None:
        del values["weights"]
    return values


def show_errors(rows: Sequence[PredictedExample]) -> None:
    """Print mistakes on stdout, a line each, and which tokens they rest on, where that is known."""
    if not rows:  # a note says that none is wrong
        return
    words = [TableColumn("label", "words"), TableColumn("predicted", "words")]
    print_table(
        stdout_console(),
        [*_where(rows), TableColumn("probability"), *words, TableColumn("sequence", "text", 1)],
        [(*_at(r, rows), f"{r.probability:.2%}", r.label, r.predicted, r.text) for r in rows],
    )
    for row in rows:
        if row.weights is not None:
            _show_weights(row, row.weights)


def _where(rows: Sequence[PredictedExample]) -> list[TableColumn]:
    """Return the columns of where rows stand: their line, and their file if there are several."""
    files = any(row.file for row in rows)
    return [*[TableColumn("file", "words", 2)] * files, TableColumn("line")]


def _at(row: PredictedExample, rows: Sequence[PredictedExample]) -> list[str]:
    return [*[row.file or ""] * any(row.file for row in rows), f"{row.line}"]


def _show_weights(row: PredictedExample, weights: Sequence[tuple[str, float]]) -> None:
    """Print a mistake's tokens in the colour of what they speak for, then the strongest ones."""
    head = Text.assemble(
        (f"\nline {row.line}: ", "dim"),
        (printable(row.predicted), FOR),
        f" {row.probability:.2%}, label ",
        (printable(row.label), AGAINST),
    )
    largest = max((abs(weight) for _, weight in weights), default=0.0)
    gap = "" if all(len(token) == 1 for token, _ in weights) else " "  # of characters none
    line = Text()
    for token, weight in weights[:SHOWN_TOKENS]:
        style = FOR if weight > 0 else AGAINST
        line.append(printable(token), style if abs(weight) >= largest / 4 else "dim").append(gap)
    if len(weights) > SHOWN_TOKENS:
        line.append(f" … {len(weights) - SHOWN_TOKENS:,} more")
    times = Counter(token for token, _ in weights)
    steps = sorted(enumerate(weights, start=1), key=lambda step: -abs(step[1][1]))
    strongest = ", ".join(
        (quote(token) if token.isspace() else printable(token))
        + (f" (step {step})" if times[token] > 1 else "")
        + f" {weight:+.2f}"
        for step, (token, weight) in steps[:STRONGEST]
    )
    console = stdout_console()
    for text in (
        head,
        Padding(line, (0, 0, 0, 2)),
        Padding(Text(f"strongest: {strongest}"), (0, 0, 0, 2)),
    ):
        console.print(text)


def diff_json(found: RunDifference, top: int | None) -> dict[str, Any]:
    """Return what `diff --json` prints, with as many differing rows as `top` says."""
    rows = [
        {
            "line": a.line,
            "file": a.file,
            "text": a.text,
            "label": a.label,
            "a": {"answer": a.predicted, "probability": a.probability},
            "b": {"answer": b.predicted, "probability": b.probability},
        }
        for a, b in found.rows[:top]
    ]
    metrics = {each.metric: asdict(each) for each in found.metrics}
    return {
        "a": str(found.runs[0]),
        "b": str(found.runs[1]),
        "data": found.data,
        "num_examples": found.num_examples,
        "left_out": found.left_out,
        "metrics": {n: {k: v for k, v in m.items() if k != "metric"} for n, m in metrics.items()},
        "right": found.counts,
        "num_differing": len(found.rows),
        "rows": rows,
    }


def show_diff(found: RunDifference, top: int) -> None:
    """Print the metrics, who is right how often, and the first rows that differ."""
    console, metrics = stdout_console(), found.metrics
    print_table(
        console,
        [TableColumn("metric", "words"), "A", "B", "B - A", "95% interval"],
        [
            (
                m.metric.replace("_", " ").replace("f1", "F1"),
                *(f"{m.a:.2%}", f"{m.b:.2%}", f"{m.difference:+.2%}"),
                f"{m.low:+.1%} to {m.high:+.1%}",
            )
            for m in metrics
        ],
    )
    counts = [f"{count:,}" for count in (*found.counts.values(), found.num_examples)]
    rows = zip([*RIGHT.values(), "all"], counts, strict=True)
    print_table(console, [TableColumn("right", "words"), "examples"], rows)
    accuracy = metrics[0]
    if accuracy.low > 0 or accuracy.high < 0:
        better = "B" if accuracy.difference > 0 else "A"
        say(f"accuracy: {better} is better, by more than chance would explain")
    else:
        say("accuracy: the difference may be chance (its interval holds 0)")
    shown = found.rows[:top]
    if shown:
        every = [a for a, _ in shown]
        words = [TableColumn(name, "words") for name in ("label", "A", "B")]
        texts = [TableColumn("probabilities", rank=3), TableColumn("sequence", "text", 1)]
        print_table(
            console,
            [*_where(every), *words, *texts],
            [
                (
                    *(*_at(a, every), a.label, a.predicted, b.predicted),
                    *(f"{a.probability:.1%}, {b.probability:.1%}", a.text),
                )
                for a, b in shown
            ],
        )
    if len(found.rows) > top:
        say(f"{top} of {len(found.rows):,} predictions that differ")
