"""Predictions as rows of tsv, csv or jsonl; where they are written."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from seqtrain.cli.output.answer_columns import AnswerColumns, csv_cell, tsv_cell
from seqtrain.cli.output.answer_line import answer_heading, answer_line
from seqtrain.cli.output.console import stdout_console
from seqtrain.errors import ConfigError, RunError
from seqtrain.files.compressed import compression_of, import_zstd, uncompressed
from seqtrain.files.reading import path_problem
from seqtrain.text import json_line, one_of, printable, quote

if TYPE_CHECKING:
    from seqtrain.api.predictors import Prediction

Write: TypeAlias = "Callable[[int, Prediction], None]"


ENDINGS = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
"""Format of each ending of an output file; .gz or .zst after it compresses."""


def answer_format(chosen: str | None, path: str | None) -> str:
    """Return how answers are written: as chosen, or as the output file's ending says.

    Without both it is tsv; on a terminal it is lines for people.

    Raises:
        ConfigError: the ending names no format that can be written.
    """
    if chosen is not None:
        return chosen
    if path is None and sys.stdout.isatty():
        return "lines"
    ending = Path(uncompressed((path or "").lower())).suffix
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
        try:
            rest = memoryview(rows)
            while rest:  # an unbuffered file may take a part at a time
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
    columns: AnswerColumns,
    *,
    format: str,
) -> tuple[int, int]:
    """Write one row per prediction, as they come.

    Args:
        predictions: in input order.
        open_file: opens where to; called once the first is known, so that an input that can't be
            read leaves nothing behind.
        columns: what a row holds.
        format: tsv, csv, jsonl, or lines for people.

    Returns:
        How many rows had no known token, and how many stayed below the columns' threshold.
    """
    first = list(islice(predictions, 1))
    unknown = undecided = 0
    columns = columns.beside(first[0].example if first else None)
    with open_file() as file:
        write = WRITERS[format](file, columns)
        for index, prediction in enumerate(chain(first, predictions)):
            write(index, prediction)
            unknown += prediction.unknown == 1.0
            undecided += columns.is_undecided(prediction)
        file.flush()
    return unknown, undecided


def _jsonl_writer(file: TextIO, columns: AnswerColumns) -> Write:
    def write(index: int, prediction: Prediction) -> None:
        file.write(json_line({"index": index} | columns.values(prediction)) + "\n")

    return write


def _table_writer(
    file: TextIO, columns: AnswerColumns, quoted: Callable[[str], str], separator: str
) -> Write:
    """Write the header; return the function that writes a row."""
    shown: Callable[[str], str] = printable if file.isatty() else str

    def write_cells(cells: Sequence[str]) -> None:
        file.write(separator.join([shown(quoted(cell)) for cell in cells]) + "\n")

    write_cells(columns.names())
    return lambda index, prediction: write_cells(columns.cells(prediction))


def _line_writer(file: TextIO, columns: AnswerColumns) -> Write:
    """Write lines for people; return the function that writes one."""
    width = stdout_console().width
    file.write(answer_heading(columns, width) + "\n")
    return lambda index, prediction: print(answer_line(prediction, columns, width), file=file)


WRITERS: dict[str, Callable[[TextIO, AnswerColumns], Write]] = {
    "tsv": partial(_table_writer, quoted=tsv_cell, separator="\t"),
    "csv": partial(_table_writer, quoted=csv_cell, separator=","),
    "jsonl": _jsonl_writer,
    "lines": _line_writer,
}
