"""Output of predictions: a file or standard output, and the loop that writes the rows."""

import gzip
import io
import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from seqtrain.api.classifier import Classifier, one_model
from seqtrain.api.predict import predict, predict_steps
from seqtrain.cli.screens.console import note, show_warning
from seqtrain.cli.screens.rows import RowFormat
from seqtrain.errors import ConfigError, RunError
from seqtrain.files.reading import compression_of, import_zstd, path_problems
from seqtrain.sequences.encoder import EncodingReport
from seqtrain.sequences.schema import keeps_all
from seqtrain.text import counted

SLOW_STEPS = "every prefix is read again, so a sequence of T steps takes T (T + 1) / 2 steps"


def write_predictions(
    classifier: Classifier,
    rows: RowFormat,
    options: dict[str, Any],
    source: str,
    output: str | None,
) -> None:
    """Predict an input, write each row as soon as it is predicted, and then print warnings.

    The output is only opened after the first prediction, so that unreadable input leaves no output.
    If all columns are copied, it is opened after the first row whose columns are known.

    Args:
        classifier: Model to predict with.
        rows: Columns of the output.
        options: Keyword arguments of `predict` about the input.
        source: Path of the input, or "-" for standard input.
        output: Path of the output, or None for standard output.
    """
    report, unknown, undecided = EncodingReport(), 0, 0
    predictions = _predictions(classifier, rows, options, source, report)
    first = []
    for prediction in predictions:
        first.append(prediction)
        if not keeps_all(rows.keep) or prediction.example.kept is not None:
            break
    rows = rows.completed(first, whole_files=classifier.preprocessing.schema.whole_files)
    with open_output(output, line_by_line=source == "-") as file:
        lines_of = rows.begin(file)
        for index, prediction in enumerate(chain(first, predictions)):
            file.write(lines_of(index, prediction))
            unknown += prediction.unknown == 1.0
            undecided += rows.is_undecided(prediction)
        file.flush()
    if rows.threshold is not None:
        note(f"{undecided:,} of {counted(report.rows, 'row')} without a label")
    show_warning(*report.notices("input"))
    if not first:
        show_warning("the input has no rows")
    if unknown:
        of_all = counted(report.rows, "sequence")
        show_warning(f"{unknown:,} of {of_all} with no token that the model knows")


def _predictions(
    classifier: Classifier,
    rows: RowFormat,
    options: dict[str, Any],
    source: str,
    report: EncodingReport,
) -> Iterator[Any]:
    """Return an iterator over a `Prediction` per row, or `StepPredictions` with --steps."""
    arguments = {"report": report, **options}
    if not rows.steps:
        return predict(source, classifier, **arguments)
    slow = one_model(classifier, "--steps").network.whole_sequence_key
    if slow is not None:
        note(f"{slow}: {SLOW_STEPS}")
    del arguments["empty"], arguments["bad_rows"]  # --steps excludes these options
    return predict_steps(source, classifier, **arguments)


@contextmanager
def open_output(path: str | None, *, line_by_line: bool) -> Iterator[TextIO]:
    """Open the output for writing, as a context manager.

    Names that end in .gz or .zst are compressed. If the disk is full, an uncompressed file ends
    with a complete line.

    Args:
        path: Path of the file, or None for standard output.
        line_by_line: Write each row at once, because a program may be waiting for it.

    Raises:
        ConfigError: If the file can't be opened.
        RunError: If the file can't be written.
    """
    if path is None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(newline="", line_buffering=line_by_line)
        yield sys.stdout
        return
    compression = compression_of(path)
    zstd = import_zstd() if compression == ".zst" else None
    with path_problems(f"--output: {path}", ConfigError):
        raw = io.BufferedWriter(io.FileIO(path, "w"))
    packed: Any = zstd.ZstdFile(raw, "wb") if zstd else raw
    if compression == ".gz":
        packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0)  # equal rows, equal bytes
    text = io.TextIOWrapper(packed, encoding="utf-8", newline="", line_buffering=line_by_line)
    try:
        with raw, packed, text as file:
            yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        if compression:
            state = "its end is cut off"
        else:
            state = "it ends with a complete row"
            _cut_last_line(Path(path))
        raise RunError(
            f"--output: {path}: {error.strerror}; {state}; make room, and predict again with "
            "--force"
        ) from None


def _cut_last_line(path: Path) -> None:
    """Remove an incomplete line at the end of a file. A pipe is left as it is."""
    with suppress(OSError, ValueError), path.open("r+b") as file:
        with mmap.mmap(file.fileno(), 0) as content:
            complete = content.rfind(b"\n") + 1
        file.truncate(complete)
