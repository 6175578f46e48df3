"""Predictions for people: a line for each, its text beside the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from seqtrain.cli.output.answer_columns import AnswerColumns
from seqtrain.cli.output.columns import cut

if TYPE_CHECKING:
    from seqtrain.api.predictors import Prediction

NARROW_LABEL, WIDEST_LABEL, PROBABILITY, GAP = 6, 24, len("probability"), 2
READ = 2000
"""Characters of a sequence that a line is made of at most."""


def answer_heading(columns: AnswerColumns, width: int) -> str:
    """Return the line above the answers."""
    ranks, wide = _room(columns, width)
    return _line([_padded("label", wide), "probability"] * ranks, "sequence", width)


def answer_line(prediction: Prediction, columns: AnswerColumns, width: int) -> str:
    """Return an answer as a line: its labels, and what of the input there is room for.

    Args:
        prediction: with its example.
        columns: of which `ranks`, `keep` and `file` count.
        width: of the terminal, in cells; figures are never cut.
    """
    from seqtrain.api.predictions import sequence_text

    example = prediction.example
    assert example is not None, "api.predict tells what was classified"
    ranks, wide = _room(columns, width)
    pairs: list[str] = []
    for label, probability in list(prediction.probabilities.items())[:ranks]:
        doubt = "?" if not pairs and columns.is_undecided(prediction) else ""
        pairs += [_padded(doubt + label, wide), f"{probability:>{PROBABILITY}.2%}"]
    if prediction.problem is not None:
        return _line([_padded("-", wide), " " * PROBABILITY], prediction.problem, width)
    texts = [example.file or "", *map(str, (example.kept or {}).values())]
    sequence = example.sequence
    texts.append(sequence[:READ] if isinstance(sequence, str) else sequence_text(sequence)[:READ])
    return _line(pairs, "  ".join(text for text in texts if text), width)


def _room(columns: AnswerColumns, width: int) -> tuple[int, int]:
    """Return how many labels a line has room for, and the width of each."""
    ranks = max(1, min(columns.ranks, (width + GAP) // (NARROW_LABEL + PROBABILITY + 2 * GAP)))
    widest = min(WIDEST_LABEL, max(map(cell_len, [*columns.labels, "label"])))
    return ranks, max(NARROW_LABEL, min(widest, (width + GAP) // ranks - PROBABILITY - 2 * GAP))


def _padded(text: str, width: int) -> str:
    shown = cut(text, width)
    return shown + " " * (width - cell_len(shown))


def _line(pairs: Sequence[str], text: str, width: int) -> str:
    """Join an answer and its text, cut to the room that is left."""
    answer = (" " * GAP).join(pairs)
    room = width - cell_len(answer) - GAP
    return answer if room < len("sequence") else f"{answer}  {cut(' '.join(text.split()), room)}"
