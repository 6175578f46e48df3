"""Predictions as rows of tsv, csv or jsonl."""

from __future__ import annotations

import gzip
import io
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from seqtrain.errors import ConfigError, RunError
from seqtrain.files.atomic import write_all
from seqtrain.text import json_line, one_of, printable, quote

if TYPE_CHECKING:
    from seqtrain.workflows.classifier import Prediction

Write: TypeAlias = "Callable[[int, Prediction], None]"

NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
BREAKING = re.compile(r"[\t\r\n]")
"""What would break a row of a table into two."""
FORMULA_MARKS = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a csv cell that a spreadsheet runs as a formula (CWE-1236)."""


ENDINGS = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
"""Format of each ending of an output file; .gz after it compresses."""


def format_of(path: str | None) -> str:
    """Return the format that an output file's ending names; tsv where it has no ending.

    Raises:
        ConfigError: the ending names no format that can be written.
    """
    ending = Path((path or "").lower().removesuffix(".gz")).suffix
    if ending and ending not in ENDINGS:
        raise ConfigError(
            f"--output: found {quote(str(path))}; expected an ending {one_of(list(ENDINGS))} "
            "(and .gz after it, to compress), or give --format"
        )
    return ENDINGS.get(ending, "tsv")


def check_one_threshold(
    min_probability: float | None, precision: float | None, *, steps: bool
) -> None:
    """Refuse two thresholds, and one for answers after every step.

    Raises:
        ConfigError: as said.
    """
    if min_probability is not None and precision is not None:
        raise ConfigError("--precision: chooses --min-probability; give one of them")
    if steps and (min_probability, precision) != (None, None):
        name = "--precision" if min_probability is None else "--min-probability"
        raise ConfigError(f"{name}: --steps writes every answer; give one of them")


class _WholeRows(io.FileIO):
    """A new file of whole rows: of what the disk can't hold all of, nothing stays.

    A text stream hands on what it gathered since, so each row has to be one text to it.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, "w")
        self._length = 0

    def write(self, rows: Any) -> int:
        """Write all of it, or nothing."""
        try:
            write_all(super().write, rows)
        except OSError:
            with suppress(OSError):  # a pipe or device can't be cut
                self.truncate(self._length)
            raise
        self._length += len(rows)
        return len(rows)


@contextmanager
def open_output(path: str | None, *, line_by_line: bool) -> Iterator[TextIO]:
    """Open the file to write to, or standard output.

    Args:
        path: the file; None: standard output.
        line_by_line: write each row at once, because a program may be waiting for it.

    Raises:
        ConfigError: it can't be opened.
        RunError: the disk is full.
    """
    if path is None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(newline="", line_buffering=line_by_line)
        yield sys.stdout
        return
    try:
        raw = _WholeRows(path)
    except OSError as error:
        raise ConfigError(f"--output: {path}: {error.strerror}") from None
    packed = None
    if path.lower().endswith(".gz"):
        packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0)  # equal rows, equal bytes
    try:
        with (
            raw,
            packed or nullcontext(),
            io.TextIOWrapper(
                packed or raw, encoding="utf-8", newline="", line_buffering=line_by_line
            ) as file,
        ):
            yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        held = "it is cut off there" if packed else "it holds whole rows up to there"
        raise RunError(
            f"--output: {path}: {error.strerror}; {held}; make room, and predict anew with --force"
        ) from None


def write_predictions(
    predictions: Iterator[Prediction],
    open_file: Callable[[], AbstractContextManager[TextIO]],
    *,
    labels: Sequence[str],
    format: str,
    top_k: int | None,
    threshold: float | None = None,
) -> tuple[int, int]:
    """Write one row per prediction, as they come.

    Args:
        predictions: in input order.
        open_file: opens where to; called once the first is known, so that an input that can't be
            read leaves nothing behind.
        labels: of the model.
        format: tsv, csv or jsonl.
        top_k: how many labels per row, most probable first; None: one, in jsonl all.
        threshold: probability from which on a label is written; below it the label is empty. The
            best guess stands beside it in every row, as `guess`. None: every label is written.

    Returns:
        How many rows had no known token, and how many stayed without a label.
    """
    first = list(islice(predictions, 1))
    unknown = undecided = 0
    with open_file() as file:
        if format == "jsonl":
            write = _jsonl_writer(file, top_k, threshold)
        else:
            ranks = min(top_k or 1, len(labels))
            numbered = top_k is not None
            write = _table_writer(file, ranks, format, threshold, numbered=numbered)
        for index, prediction in enumerate(chain(first, predictions)):
            write(index, prediction)
            unknown += prediction.unknown == 1.0
            undecided += threshold is not None and prediction.probability < threshold
        file.flush()
    return unknown, undecided


def _table_writer(
    file: TextIO, ranks: int, format: str, threshold: float | None, *, numbered: bool
) -> Write:
    """Write the header; return the function that writes a row."""
    quote = _tsv_cell if format == "tsv" else _csv_cell
    separator = "\t" if format == "tsv" else ","
    suffixes = [f"_{rank + 1}" if numbered else "" for rank in range(ranks)]
    names = [name + suffix for suffix in suffixes for name in ("label", "probability")]
    names += [] if threshold is None else ["guess"]
    file.write(separator.join(names) + "\n")

    shown: Callable[[str], str] = printable if file.isatty() else str

    def write(index: int, prediction: Prediction) -> None:
        cells: list[str] = []
        for label, probability in islice(prediction.probabilities.items(), ranks):
            cells += [shown(quote(label)), f"{probability:.6f}"]
        if threshold is not None:
            cells.append(cells[0])
            cells[0] = cells[0] if prediction.probability >= threshold else ""
        file.write(separator.join(cells) + "\n")

    return write


def _jsonl_writer(file: TextIO, ranks: int | None, threshold: float | None) -> Write:
    def write(index: int, prediction: Prediction) -> None:
        ranked = islice(prediction.probabilities.items(), ranks)
        guess = {} if threshold is None else {"guess": prediction.label}
        decided = threshold is None or prediction.probability >= threshold
        row = {
            "index": index,
            "label": prediction.label if decided else "",
            **guess,
            "probability": round(prediction.probability, 6),
            "probabilities": {label: round(p, 6) for label, p in ranked},
        }
        file.write(json_line(row) + "\n")

    return write


def _tsv_cell(label: str) -> str:
    """Leave a label as it is, as tsv files do; only one that would break the row is quoted."""
    return _quoted(label) if BREAKING.search(label) else label


def _csv_cell(label: str) -> str:
    """Quote a label where csv needs it; put a ' before what a spreadsheet takes for a formula."""
    if label.startswith(FORMULA_MARKS) and not NUMBER.fullmatch(label):
        label = f"'{label}"
    return _quoted(label) if BREAKING.search(label) or "," in label or '"' in label else label


def _quoted(label: str) -> str:
    return '"' + label.replace('"', '""') + '"'
