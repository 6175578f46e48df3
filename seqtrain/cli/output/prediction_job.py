"""Predicting one input, or each file of many, and where the rows are written."""

import gzip
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

from seqtrain.api.input_files import matching, output_paths, shard_of
from seqtrain.api.predict import predict, predict_steps, reading_doubts, reading_note
from seqtrain.api.predictors import Predictor, one_model
from seqtrain.cli.output.console import note, warn
from seqtrain.cli.output.prediction_rows import PredictionColumns, write_predictions
from seqtrain.cli.output.step_rows import write_steps
from seqtrain.data.encoding import EncodingReport
from seqtrain.errors import ConfigError, RunError
from seqtrain.files.reading import compression_of, import_zstd, path_problem
from seqtrain.files.writing import replacing
from seqtrain.text import counted

SLOW_STEPS = "every prefix is read again, so a sequence of T steps takes T (T + 1) / 2 steps"


@dataclass(frozen=True)
class PredictionJob:
    """How inputs are read, and how their predictions are written."""

    classifier: Predictor
    columns: PredictionColumns
    input_format: str | None
    delimiter: str | None
    encoding: str | None
    empty: str | None
    bad_rows: str

    def write(self, source: str, open_file: Callable[[], Any], name: str = "input") -> None:
        """Write a row per prediction; say what became of the rows."""
        report, columns = EncodingReport(), self.columns
        reading = self.classifier.preprocessing.reading
        predictions = predict(
            source,
            self.classifier,
            report=report,
            ranks=columns.read_ranks,
            input_format=self.input_format,
            delimiter=self.delimiter,
            encoding=self.encoding,
            keep=columns.keep,
            empty=self.empty,
            bad_rows=self.bad_rows,
        )
        first = list(islice(predictions, 1))
        row = first[0].example if first else None
        warn(*reading_doubts(source, row, reading, self.input_format))
        unknown, undecided = write_predictions(chain(first, predictions), open_file, columns)
        if columns.threshold is not None:
            note(f"{undecided:,} of {counted(report.rows, 'row')} without a label")
        self._warn(report, name, unknown, reading.format if source == "-" else "")

    def write_steps(self, source: str, open_file: Callable[[], Any]) -> None:
        """Write the predictions after every step; say what became of the rows."""
        report, columns = EncodingReport(), self.columns
        network = one_model(self.classifier, "--steps").network
        if network.why_it_looks_ahead is not None:
            note(f"{network.why_it_looks_ahead}: {SLOW_STEPS}")
        predictions = predict_steps(
            source,
            self.classifier,
            report=report,
            input_format=self.input_format,
            delimiter=self.delimiter,
            encoding=self.encoding,
        )
        lines = columns.format == "lines"
        unknown = write_steps(predictions, open_file, top_k=columns.top_k, lines=lines)
        self._warn(report, "input", unknown)

    def _warn(self, report: EncodingReport, name: str, unknown: int, form: str = "") -> None:
        warn(*report.notices(name))
        if unknown:
            where = "" if name == "input" else f"{name}: "
            advice = ""
            if unknown == report.rows and not self.input_format and form in STREAMED:
                advice = f"; each line was read as one; if it is {form}: --input-format {form}"
            rows = counted(report.rows, "sequence")
            warn(f"{where}{unknown:,} of {rows} with no token that the model knows{advice}")


STREAMED = ("csv", "tsv", "jsonl", "fasttext")
"""Formats that standard input may have."""


def predict_one(source: str, output: str | None, job: PredictionJob, *, steps: bool) -> None:
    """Predict one input into a file or to standard output."""
    note(*reading_note(source, job.classifier.preprocessing.reading, job.input_format))
    open_file = partial(open_output, output, line_by_line=source == "-")
    (job.write_steps if steps else job.write)(source, open_file)


def predict_files(
    source: str, output_dir: str, shard: str | None, job: PredictionJob, *, force: bool
) -> None:
    """Predict each file into a file of its own, whole or not at all, but those done before."""
    files = matching(source)
    own = shard_of(files, shard)
    every = output_paths(files, Path(output_dir), job.columns.format)
    left = {file: every[file] for file in own if force or not every[file].exists()}
    for file, path in left.items():
        with replacing(path) as unfinished:
            job.write(file, partial(open_output, str(unfinished), line_by_line=False), file)
    note(f"{counted(len(left), 'file')} predicted, {len(own) - len(left):,} predicted before")


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
    """Open the file to write to, or standard output (None).

    With `line_by_line` each row is written at once, because a program may be waiting for it.

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
    packed: Any = zstd.ZstdFile(raw, "wb") if zstd else None
    if compression == ".gz":
        packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0)  # equal rows, equal bytes
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
