"""Answers after every step: rows of jsonl, or on a terminal one coloured line per sequence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from seqtrain.cli.output.prediction_rows import ENDINGS
from seqtrain.errors import ConfigError
from seqtrain.files.compressed import uncompressed
from seqtrain.text import json_line

if TYPE_CHECKING:
    from seqtrain.api.predict_steps import StepPredictions

OpenFile = Callable[[], AbstractContextManager[TextIO]]


def check_format(format: str | None, output: str | None) -> None:
    """Refuse to write steps as a table of predictions, one row per input row.

    Raises:
        ConfigError: another format is asked for, by name or by the output file's ending.
    """
    if format not in (None, "jsonl"):
        raise ConfigError(f"--format: found {format}; --steps writes jsonl")
    bare = Path(uncompressed((output or "").lower()))
    if format is None and bare.suffix and ENDINGS.get(bare.suffix) != "jsonl":
        raise ConfigError(
            f"--output: found {output}; --steps writes jsonl; end the name with .jsonl"
        )


def write_steps(
    predictions: Iterator[StepPredictions],
    open_file: OpenFile,
    *,
    top_k: int | None,
    lines: bool,
) -> int:
    """Write the answers after every step, as they come.

    Args:
        predictions: in input order.
        open_file: opens where to; called once the first is known, so that an input that can't be
            read leaves nothing behind.
        top_k: how many labels per row of jsonl; None: all.
        lines: write one line per sequence, for people, instead of one row per step.

    Returns:
        How many sequences had no known token.
    """
    first = list(islice(predictions, 1))
    unknown = 0
    with open_file() as file:
        for index, prediction in enumerate(chain(first, predictions)):
            if lines:
                from seqtrain.cli.output.step_line import show_steps

                show_steps(index, prediction)
            else:
                file.writelines(_rows(index, prediction, top_k))
            unknown += prediction.unknown == 1.0
        file.flush()
    return unknown


def shown_as_lines(output: str | None, format: str | None, top_k: int | None) -> bool:
    """Return whether people read along: on a terminal, where nothing asks for jsonl."""
    return output is None and format is None and top_k is None and sys.stdout.isatty()


def _rows(index: int, prediction: StepPredictions, top_k: int | None) -> Iterator[str]:
    """Yield one row per step, with the keys of a plain prediction's row, its step and its token."""
    labels, probabilities = prediction.labels, prediction.probabilities
    order = probabilities.argsort(dim=1, descending=True, stable=True)[:, :top_k].tolist()
    rows = zip(probabilities.tolist(), order, strict=True)
    for step, (row, ranks) in enumerate(rows, start=1):
        tokens = prediction.tokens
        ranked = {labels[i]: round(row[i], 6) for i in ranks}
        values = {
            "index": index,
            "step": step,
            **({} if tokens is None else {"token": tokens[step - 1]}),
            "label": labels[ranks[0]],
            "probability": ranked[labels[ranks[0]]],
            "probabilities": ranked,
        }
        yield json_line(values) + "\n"
