"""One sequence for people: its steps in the colour of the answer after each, its turns marked."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

from rich.padding import Padding
from rich.text import Text

from seqtrain.api.predict_steps import StepPredictions
from seqtrain.cli.output.console import stdout_console
from seqtrain.text import printable, shorten

COLORS = ("cyan", "magenta", "green", "yellow", "blue", "red")
SURE, UNSURE = 0.9, 0.5
"""Probabilities from which a step is bold, and below which it is dim."""
BARS = "▁▂▃▄▅▆▇█"
SHOWN_STEPS, SHOWN_STRETCHES = 12, 10
"""Steps at each end of a stretch, and stretches at each end of a line, that a long one shows."""
LABEL_WIDTH = 32

Items = TypeVar("Items", bound=Sequence[object])


def show_steps(index: int, prediction: StepPredictions) -> None:
    """Print one sequence on stdout: the answer and since when, then its steps."""
    answer, steps = prediction.predicted[-1], len(prediction.predicted)
    head = Text.assemble(
        (f"{index + 1}: ", "dim"),
        (printable(prediction.labels[answer]), f"bold {_color(answer)}"),
        f" {prediction.probabilities[-1, answer]:.1%},",
        f" from step {prediction.decided:,} of {steps:,}",
    )
    console = stdout_console()
    console.print(head)
    console.print(Padding(step_line(prediction), (0, 0, 0, 2)))


def step_line(prediction: StepPredictions) -> Text:
    """Return the steps in the colour of the answer after each: bold if sure, dim if unsure.

    Where the answer turns, and at the beginning, stands the label with its probability there.
    A series of feature vectors shows bars, as high as the answer is probable.
    """
    pieces = _pieces(prediction)
    bounds = [0, *(step - 1 for step in prediction.turns), len(pieces)]
    stretches = [range(begin, end) for begin, end in pairwise(bounds)]
    head, left_out, tail = _ends(stretches, SHOWN_STRETCHES)
    line = Text()
    for stretch in head:
        _append_stretch(line, prediction, stretch, pieces)
    if left_out:
        steps = sum(map(len, left_out))
        line.append(f"… {len(left_out):,} more turns in {steps:,} steps … ", style="italic")
    for stretch in tail:
        _append_stretch(line, prediction, stretch, pieces)
    line.rstrip()
    return line


def _append_stretch(
    line: Text, prediction: StepPredictions, stretch: range, pieces: list[str]
) -> None:
    """Add steps with one answer: its label, then their pieces, the middle left out if long."""
    answer = prediction.predicted[stretch[0]]
    color, label = _color(answer), shorten(prediction.labels[answer], LABEL_WIDTH)
    probabilities = prediction.probabilities[:, answer]
    line.append(f"[{label} {probabilities[stretch[0]]:.0%}]", style=f"reverse {color}")
    line.append(" ")
    head, left_out, tail = _ends(stretch, SHOWN_STEPS)
    for step in head:
        line.append(pieces[step], style=_weight(float(probabilities[step])) + color)
    if left_out:
        gap = "" if line.plain.endswith(" ") else " "
        line.append(f"{gap}… {len(left_out):,} steps … ", style="italic")
    for step in tail:
        line.append(pieces[step], style=_weight(float(probabilities[step])) + color)
    if not line.plain.endswith(" "):
        line.append(" ")


def _ends(items: Items, shown: int) -> tuple[Items, Items, Items]:
    """Part a long sequence into its first items, those left out, and its last ones."""
    stop = len(items) if len(items) <= 2 * shown + 1 else shown
    rest = max(stop, len(items) - shown)
    return items[:stop], items[stop:rest], items[rest:]  # type: ignore[return-value]


def _pieces(prediction: StepPredictions) -> list[str]:
    """Return what is shown of each step, blanks between words included."""
    tokens = prediction.tokens
    if tokens is None:
        heights = prediction.probabilities.max(dim=1).values.mul(len(BARS)).long()
        return [BARS[height] for height in heights.clamp(max=len(BARS) - 1).tolist()]
    if prediction.tokenizer in ("byte", "bpe"):
        byte = _bytes_by_character(prediction.tokenizer)
        # A character of several bytes is shown at the step that completes it.
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        return [printable(decode(bytes(byte[c] for c in token))) for token in tokens]
    gap = "" if prediction.tokenizer == "char" else " "
    return [printable(token) + gap for token in tokens]


def _bytes_by_character(tokenizer: str) -> dict[str, int]:
    """Return the byte that a character of a token stands for.

    In bpe a byte that is no visible character of latin-1 has one from 256 on (Radford et al. 2019,
    "Language Models are Unsupervised Multitask Learners").
    """
    if tokenizer == "byte":
        return {chr(byte): byte for byte in range(256)}
    visible = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {
        chr(256 + place): byte for place, byte in enumerate(hidden)
    }


def _weight(probability: float) -> str:
    return "bold " if probability >= SURE else "dim " if probability < UNSURE else ""


def _color(answer: int) -> str:
    return COLORS[answer % len(COLORS)]
