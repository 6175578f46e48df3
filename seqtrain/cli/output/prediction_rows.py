"""Predictions as rows of tsv, csv or jsonl, or as lines for people; where they are written."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from rich.cells import cell_len

from seqtrain.cli.output.console import stdout_console
from seqtrain.cli.output.prediction_columns import PredictionColumns, csv_cell, tsv_cell
from seqtrain.cli.output.table import TableColumn, aligned
from seqtrain.errors import ConfigError, RunError
from seqtrain.files.compressed import compression_of, import_zstd, uncompressed
from seqtrain.files.reading import path_problem
from seqtrain.text import json_line, one_of, printable, quote

if TYPE_CHECKING:
    from seqtrain.api.predictors import Prediction

OpenFile: TypeAlias = Callable[[], AbstractContextManager[TextIO]]
"""Opens where to write; called once the first row is known, so that an input that can't be read
leaves nothing behind."""
ENDINGS = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
"""Format of each ending of an output file; .gz or .zst after it compresses."""
WIDEST_LABEL, NARROWEST_LABEL, PROBABILITY, GAP = 24, 6, len("probability"), 2
READ = 2000
"""Most characters of a sequence that a line for people is made of."""


def row_format(chosen: str | None, path: str | None, *, steps: bool = False) -> str:
    """Return how predictions are written: as chosen, or as the output file's ending says.

    Without both it is tsv (of steps jsonl); on a terminal it is lines for people.

    Raises:
        ConfigError: the ending names no format that can be written, or steps can't be written so.
    """
    if path is None and chosen is None and sys.stdout.isatty():
        return "lines"
    ending = Path(uncompressed((path or "").lower())).suffix
    if steps:
        if chosen not in (None, "jsonl"):
            raise ConfigError(f"--format: found {chosen}; --steps writes jsonl")
        if chosen is None and ending and ENDINGS.get(ending) != "jsonl":
            found = f"--output: found {path}; --steps writes jsonl"
            raise ConfigError(f"{found}; end the name with .jsonl")
        return "jsonl"
    if chosen is not None:
        return chosen
    if ending and ending not in ENDINGS:
        raise ConfigError(
            f"--output: found {quote(str(path))}; expected an ending {one_of(list(ENDINGS))} "
            "(and .gz or .zst after it, to compress), or give --format"
        )
    return ENDINGS.get(ending, "tsv")


class _WholeRows(io.FileIO):
    """A new file of whole rows: of what the disk can't hold all of, nothing stays.

    A text stream hands on what it gathered since, so each row has to be one text to it.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, "w")
        self._length = 0

    def write(self, rows: Any) -> int:
        """Write all of it, or nothing."""
        rest = memoryview(rows)
        try:
            while rest:
                rest = rest[super().write(rest) :]
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
        ConfigError: it can't be opened, or the package that writes .zst isn't installed.
        RunError: the disk is full.
    """
    if path is None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(newline="", line_buffering=line_by_line)
        yield sys.stdout
        return
    compression = compression_of(path)
    zstd = import_zstd() if compression == ".zst" else None
    try:
        raw = _WholeRows(path)
    except OSError as error:
        raise path_problem(f"--output: {path}", error, ConfigError) from None
    packed: Any = None
    if compression == ".gz":
        packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0)  # equal rows, equal bytes
    elif zstd:
        packed = zstd.ZstdFile(raw, "wb")
    text = io.TextIOWrapper(
        packed or raw, encoding="utf-8", newline="", line_buffering=line_by_line
    )
    try:
        with raw, packed or nullcontext(), text as file:
            yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        held = "it is cut off there" if packed else "it holds whole rows up to there"
        advice = "make room, and predict again with --force"
        raise RunError(f"--output: {path}: {error.strerror}; {held}; {advice}") from None


def write_predictions(
    predictions: Iterator[Prediction],
    open_file: OpenFile,
    columns: PredictionColumns,
    *,
    format: str,
) -> tuple[int, int]:
    """Write one row per prediction, as they come.

    Args:
        predictions: in input order.
        open_file: opens where to.
        columns: what a row holds.
        format: tsv, csv, jsonl, or lines for people.

    Returns:
        How many rows had no known token, and how many stayed below the columns' threshold.
    """
    first = list(islice(predictions, 1))
    unknown = undecided = 0
    of_files = bool(first and first[0].example and first[0].example.file is not None)
    columns = replace(columns, file=of_files)
    with open_file() as file:
        row = {"jsonl": _json_rows, "lines": _lines}.get(format, _table_rows)(file, columns, format)
        for index, prediction in enumerate(chain(first, predictions)):
            file.write(row(index, prediction) + "\n")
            unknown += prediction.unknown == 1.0
            undecided += columns.is_undecided(prediction)
        file.flush()
    return unknown, undecided


Row: TypeAlias = "Callable[[int, Prediction], str]"
"""Makes the row of a prediction and its index, without its end."""


def _json_rows(file: TextIO, columns: PredictionColumns, format: str) -> Row:
    return lambda index, prediction: json_line({"index": index} | columns.values(prediction))


def _table_rows(file: TextIO, columns: PredictionColumns, format: str) -> Row:
    """Write the header of tsv or csv."""
    safe, is_csv, shown = columns.spreadsheet_safe, format == "csv", file.isatty()

    def joined(cells: Sequence[str]) -> str:
        quoted = [csv_cell(c, spreadsheet_safe=safe) if is_csv else tsv_cell(c) for c in cells]
        return ("," if is_csv else "\t").join(map(printable, quoted) if shown else quoted)

    file.write(joined(columns.names()) + "\n")
    return lambda index, prediction: joined(columns.cells(prediction))


def _lines(file: TextIO, columns: PredictionColumns, format: str) -> Row:
    """Write the heading of lines for people: labels, probabilities, and the text beside them."""
    width = stdout_console().width
    wide = min(WIDEST_LABEL, max(map(cell_len, [*columns.labels, "label"])))
    ranks = max(1, min(columns.ranks, (width + GAP) // (wide + PROBABILITY + 2 * GAP)))
    wide = max(NARROWEST_LABEL, min(wide, width - PROBABILITY - GAP))
    pair = [
        TableColumn("label", "words", width=wide),
        TableColumn("probability", width=PROBABILITY),
    ]
    left = width - ranks * (wide + PROBABILITY + 2 * GAP)
    text = [TableColumn("sequence", "text", width=left)] * (left >= len("sequence"))
    shown = [*pair * ranks, *text]

    def line(cells: list[str]) -> str:
        return aligned(shown, cells[: len(shown)], GAP)

    def row(index: int, prediction: Prediction) -> str:
        if prediction.problem is not None:
            return line(["-", "", *[""] * (2 * ranks - 2), prediction.problem])
        cells: list[str] = []
        for label, probability in list(prediction.probabilities.items())[:ranks]:
            doubt = "?" if not cells and columns.is_undecided(prediction) else ""
            cells += [doubt + label, f"{probability:.2%}"]
        return line([*cells, _beside_text(prediction)])

    file.write(line([*["label", "probability"] * ranks, "sequence"]) + "\n")
    return row


def _beside_text(prediction: Prediction) -> str:
    """Return what stands beside a prediction: its file, the columns kept, the sequence."""
    from seqtrain.api.predictions import sequence_text

    example = prediction.example
    assert example is not None, "api.predict says what was classified"
    sequence = example.sequence
    read = sequence[:READ] if isinstance(sequence, str) else sequence_text(sequence)[:READ]
    texts = [example.file or "", *map(str, (example.kept or {}).values()), read]
    return " ".join("  ".join(text for text in texts if text).split())
