"""Wrong predictions as a table and as JSON, with the weights of their tokens."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.padding import Padding
from rich.text import Text

from seqtrain.cli.screens.console import stdout_console
from seqtrain.cli.screens.tables import print_records
from seqtrain.evaluation.predicted_example import PredictedExample
from seqtrain.text import printable, quote, shorten

FOR, AGAINST = "bold green", "bold red"
"""Styles of tokens that support the prediction, and of tokens that contradict it."""
SHOWN_CHARACTERS = 200
"""Largest number of characters shown of a sequence in a table."""
SHOWN_TOKENS, STRONGEST = 200, 5
"""Largest number of tokens shown of a sequence, and of strongest tokens that are listed."""


def error_json(row: PredictedExample) -> dict[str, Any]:
    """Return the JSON object of a wrong prediction. It has `weights` only if they were computed."""
    names = ("line", "text", "label", "predicted", "probability", "length", "file")
    values = {name: getattr(row, name) for name in names}
    if row.weights is None:
        return values
    return {**values, "weights": row.weights}


def show_errors(rows: Sequence[PredictedExample]) -> None:
    """Print a table of wrong predictions, and then the weights of tokens that were computed."""
    cells = [
        {"probability": f"{row.probability:.2%}", "label": row.label, "predicted": row.predicted}
        for row in rows
    ]
    print_predictions(rows, cells)
    for row in rows:
        if row.weights is not None:
            _show_weights(row, row.weights)


def print_predictions(rows: Sequence[PredictedExample], cells: Sequence[Mapping[str, str]]) -> None:
    """Print a table of predictions, with their file and line first and their sequence last.

    The column of files is left out if no prediction has a file. Nothing is printed for no
    predictions.

    Args:
        rows: The predictions.
        cells: For each prediction, the cells in between by their heading.
    """
    records = []
    in_several_files = any(row.file for row in rows)
    for row, own in zip(rows, cells, strict=True):
        place = {"file": row.file or ""} if in_several_files else {}
        text = shorten(row.text, SHOWN_CHARACTERS)
        records.append({**place, "line": f"{row.line}", **own, "sequence": text})
    print_records(stdout_console(), records)


def _show_weights(row: PredictedExample, weights: Sequence[tuple[str, float]]) -> None:
    """Print the tokens of a wrong prediction, coloured by their weights, and the strongest ones.

    At most `SHOWN_TOKENS` are printed.

    Args:
        row: The prediction.
        weights: Each token and its weight for the prediction.
    """
    head = Text.assemble(
        (f"\nline {row.line}: ", "dim"),
        (printable(row.predicted), FOR),
        f" {row.probability:.2%}, label ",
        (printable(row.label), AGAINST),
    )
    tokens = [token for token, _ in weights]
    # Symbols of one letter are shown with spaces; they are the words of the row's text.
    are_symbols = set(tokens) <= set(row.text.split())
    are_characters = all(len(token) == 1 for token in tokens) and not are_symbols
    gap = "" if are_characters else " "
    largest = max((abs(weight) for _, weight in weights), default=0.0)
    line = Text()
    for token, weight in weights[:SHOWN_TOKENS]:
        style = FOR if weight > 0 else AGAINST
        line.append(printable(token), style if abs(weight) >= largest / 4 else "dim").append(gap)
    if len(weights) > SHOWN_TOKENS:
        line.append(f" … {len(weights) - SHOWN_TOKENS:,} more")
    console = stdout_console()
    console.print(head, markup=False)
    for text in (line, f"strongest: {_strongest(weights)}"):
        console.print(Padding(text, (0, 0, 0, 2)), markup=False)


def _strongest(weights: Sequence[tuple[str, float]]) -> str:
    """Return a text with the `STRONGEST` tokens whose weights are largest in absolute value.

    A token that occurs repeatedly is followed by its time step.
    """
    occurrences = Counter(token for token, _ in weights)
    steps = sorted(enumerate(weights, start=1), key=lambda step: -abs(step[1][1]))
    parts = []
    for step, (token, weight) in steps[:STRONGEST]:
        name = quote(token) if token.isspace() else printable(token)
        place = f" (step {step})" if occurrences[token] > 1 else ""
        parts.append(f"{name}{place} {weight:+.2f}")
    return ", ".join(parts)
