"""Answered examples as tables: mistakes, and rows where two runs differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.padding import Padding
from rich.text import Text

from seqtrain.cli.output.columns import Column, print_columns
from seqtrain.cli.output.console import stdout_console
from seqtrain.report import PredictedExample
from seqtrain.text import printable, quote

WEIGHTS = "weights"
FOR, AGAINST = "bold green", "bold red"
"""Styles of what speaks for an answer and against it."""
SHOWN_TOKENS, STRONGEST = 200, 5


def show_errors(rows: Sequence[PredictedExample]) -> None:
    """Print mistakes on stdout, a line each."""
    columns = [
        *place_columns(rows),
        Column("probability", [f"{row.probability:.2%}" for row in rows]),
        Column("label", [row.label for row in rows], "words"),
        Column("predicted", [row.predicted for row in rows], "words"),
        Column("sequence", [row.text for row in rows], "text", rank=1),
    ]
    if rows:  # else a note says that none is wrong
        print_columns(stdout_console(), columns)


def as_values(row: PredictedExample) -> dict[str, Any]:
    """Return a mistake as JSON has it; weights only where they were asked for."""
    values = {"answer" if k == "predicted" else k: v for k, v in asdict(row).items()}
    return values if row.weights is not None else {k: v for k, v in values.items() if k != WEIGHTS}


def show_weights(rows: Sequence[PredictedExample]) -> None:
    """Print on stdout, for each mistake, its tokens in the colour of what they speak for."""
    console = stdout_console()
    for row in rows:
        weights = row.weights or []
        console.print(
            Text.assemble(
                (f"\nline {row.line}: ", "dim"),
                (printable(row.predicted), FOR),
                f" {row.probability:.2%}, label ",
                (printable(row.label), AGAINST),
            )
        )
        largest = max((abs(weight) for _, weight in weights), default=0.0)
        line = Text()
        gap = "" if all(len(token) == 1 for token, _ in weights) else " "  # of characters none
        for token, weight in weights[:SHOWN_TOKENS]:
            style = FOR if weight > 0 else AGAINST
            strong = abs(weight) >= largest / 4
            line.append(printable(token), style if strong else "dim").append(gap)
        line.append(
            f" … {len(weights) - SHOWN_TOKENS:,} more" if len(weights) > SHOWN_TOKENS else ""
        )
        console.print(Padding(line, (0, 0, 0, 2)))
        times = Counter(token for token, _ in weights)
        steps = sorted(enumerate(weights, start=1), key=lambda step: -abs(step[1][1]))
        told = ", ".join(
            (quote(token) if token.isspace() else printable(token))
            + (f" (step {step})" if times[token] > 1 else "")
            + f" {weight:+.2f}"
            for step, (token, weight) in steps[:STRONGEST]
        )
        console.print(Padding(Text(f"strongest: {told}"), (0, 0, 0, 2)))


def place_columns(rows: Sequence[PredictedExample]) -> list[Column]:
    """Return where rows stand: their line, and their file where there are several."""
    lines = Column("line", [f"{row.line}" for row in rows])
    files = Column("file", [row.file or "" for row in rows], "words", rank=2)
    return [files, lines] if any(row.file for row in rows) else [lines]
