"""Predictions after every time step: rows of jsonl, or one coloured line per sequence."""

import codecs

from rich.padding import Padding
from rich.text import Text

from seqtrain.api.predict import StepPredictions
from seqtrain.cli.output.console import stdout_console
from seqtrain.data.tokenizers import ALPHABET
from seqtrain.text import json_line, printable, shorten

COLORS = ("cyan", "magenta", "green", "yellow", "blue", "red")
SURE, UNSURE = 0.9, 0.5
"""Probabilities from which a step is bold, and below which it is dim."""
BARS = "▁▂▃▄▅▆▇█"
SHOWN_STEPS = 100
"""Steps at each end of a long sequence that its line shows."""
LABEL_WIDTH = 32


def step_rows(index: int, prediction: StepPredictions, top_k: int | None) -> str:
    """Return a row of jsonl per step, with so many labels, the most probable ones; None: all."""
    labels, probabilities = prediction.labels, prediction.probabilities
    order = probabilities.argsort(dim=1, descending=True, stable=True)[:, :top_k].tolist()
    rows = []
    for step, (row, ranks) in enumerate(zip(probabilities.tolist(), order, strict=True)):
        ranked = {labels[i]: round(row[i], 6) for i in ranks}
        token = {} if prediction.tokens is None else {"token": prediction.tokens[step]}
        best = {"label": labels[ranks[0]], "probability": ranked[labels[ranks[0]]]}
        values = {"index": index, "step": step + 1, **token, **best, "probabilities": ranked}
        rows.append(json_line(values) + "\n")
    return "".join(rows)


def shown_steps(index: int, prediction: StepPredictions) -> str:
    """Return a sequence for people: its prediction, and below it its steps."""
    last, steps = prediction.predicted[-1], len(prediction.predicted)
    head = Text.assemble(
        (f"{index + 1}: ", "dim"),
        (printable(prediction.labels[last]), f"bold {COLORS[last % len(COLORS)]}"),
        f" {prediction.probabilities[-1, last]:.1%},",
        f" from step {prediction.decided:,} of {steps:,}",
    )
    console = stdout_console()
    with console.capture() as shown:
        console.print(head)
        console.print(Padding(step_line(prediction), (0, 0, 0, 2)))
    return shown.get()


def step_line(prediction: StepPredictions) -> Text:
    """Return the steps in the colour of the prediction after each: bold if sure, dim if unsure.

    Where the prediction turns, and at the beginning, stands the label with its probability there. A
    series of feature vectors shows bars, as high as the prediction is probable.
    """
    line, before = Text(), None
    pieces = _pieces(prediction)
    left_out = range(SHOWN_STEPS, max(SHOWN_STEPS, len(pieces) - SHOWN_STEPS))
    for step, (piece, label) in enumerate(zip(pieces, prediction.predicted, strict=True)):
        if step in left_out:
            if step == left_out.start:
                line.append(f"{_gap(line)}… {len(left_out):,} steps … ", style="italic")
            before = None
            continue
        sure, color = float(prediction.probabilities[step, label]), COLORS[label % len(COLORS)]
        if label != before:
            name = shorten(prediction.labels[label], LABEL_WIDTH)
            line.append(_gap(line)).append(f"[{name} {sure:.0%}]", style=f"reverse {color}")
            line.append(" ")
        weight = "bold " if sure >= SURE else "dim " if sure < UNSURE else ""
        line.append(piece, style=weight + color)
        before = label
    line.rstrip()
    return line


def _gap(line: Text) -> str:
    return " " if line.plain[-1:].strip() else ""


def _pieces(prediction: StepPredictions) -> list[str]:
    tokens = prediction.tokens
    if tokens is None:
        heights = prediction.probabilities.max(dim=1).values.mul(len(BARS)).long()
        return [BARS[height] for height in heights.clamp(max=len(BARS) - 1).tolist()]
    if prediction.tokenizer in ("byte", "bpe"):
        shown = ALPHABET if prediction.tokenizer == "bpe" else dict(enumerate(map(chr, range(256))))
        byte = {character: byte for byte, character in shown.items()}
        # A character of several bytes is shown at the step that completes it.
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        return [printable(decode(bytes(byte[c] for c in token))) for token in tokens]
    gap = "" if prediction.tokenizer == "char" else " "
    return [printable(token) + gap for token in tokens]
