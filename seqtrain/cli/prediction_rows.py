"""Predictions as rows of tsv, csv or jsonl."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TextIO, TypeAlias

from seqtrain.errors import ConfigError
from seqtrain.workflows.classifier import Prediction

Write: TypeAlias = Callable[[int, Prediction], None]

FORMULA = re.compile(r"[=+@\t\r-](?![0-9.]+$)")
"""Beginning of a csv cell that a spreadsheet would run as a formula (CWE-1236); not a number."""


@contextmanager
def open_output(path: str | None, source: str, *, force: bool) -> Iterator[TextIO]:
    """Open the file to write to, or standard output.

    Raises:
        ConfigError: it exists and isn't forced, is the input itself, or can't be written.
    """
    if path is None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            # Answers to standard input leave at once: who asks may be waiting for them.
            sys.stdout.reconfigure(encoding="utf-8", newline="", line_buffering=source == "-")
        yield sys.stdout
        return
    target = Path(path)
    if target.exists() and source != "-" and Path(source).exists() and target.samefile(source):
        raise ConfigError(f"--output: {path} is the input; choose another file")
    if target.exists() and not force:
        raise ConfigError(f"--output: {path} exists; replace it with --force")
    try:
        target.touch()
    except OSError as error:
        raise ConfigError(f"--output: {path}: {error.strerror}") from None
    with open(target, "w", encoding="utf-8", newline="") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def write_predictions(
    predictions: Iterable[Prediction],
    file: TextIO,
    *,
    labels: Sequence[str],
    format: str,
    top_k: int | None,
) -> tuple[int, int]:
    """Write one row a prediction, as they come.

    Args:
        predictions: in input order.
        file: where to.
        labels: of the model.
        format: tsv, csv or jsonl.
        top_k: how many labels a row, most probable first; None: one, in jsonl all.

    Returns:
        Rows written, and how many of them had no known token.
    """
    rows = unknown = 0
    if format == "jsonl":
        write = _jsonl_writer(file, top_k)
    else:
        ranks = min(top_k or 1, len(labels))
        write = _table_writer(file, ranks, format, numbered=top_k is not None)
    for prediction in predictions:
        write(rows, prediction)
        rows += 1
        unknown += prediction.unknown == 1.0
    return rows, unknown


def _table_writer(file: TextIO, ranks: int, format: str, *, numbered: bool) -> Write:
    """Write the header; return the function that writes a row."""
    writer = csv.writer(file, delimiter="\t" if format == "tsv" else ",", lineterminator="\n")
    suffixes = [f"_{rank + 1}" if numbered else "" for rank in range(ranks)]
    writer.writerow([name + suffix for suffix in suffixes for name in ("label", "probability")])

    def write(index: int, prediction: Prediction) -> None:
        cells: list[str] = []
        for label, probability in islice(prediction.probabilities.items(), ranks):
            cells += [safe_cell(label) if format == "csv" else label, f"{probability:.6f}"]
        writer.writerow(cells)

    return write


def _jsonl_writer(file: TextIO, ranks: int | None) -> Write:
    def write(index: int, prediction: Prediction) -> None:
        ranked = islice(prediction.probabilities.items(), ranks)
        row = {
            "index": index,
            "label": prediction.label,
            "probability": round(prediction.probability, 6),
            "probabilities": {label: round(p, 6) for label, p in ranked},
        }
        file.write(json.dumps(row, ensure_ascii=False) + "\n")

    return write


def safe_cell(label: str) -> str:
    """Put a ' before a label that a spreadsheet would run as a formula."""
    return f"'{label}" if FORMULA.match(label) else label
