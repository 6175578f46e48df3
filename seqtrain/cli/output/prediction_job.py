"""Predictions for one input or for many files, written to output files."""

import gzip
import io
import mmap
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from seqtrain.api.predict import format_warnings, predict, predict_steps
from seqtrain.api.predictors import Classifier, one_model
from seqtrain.cli.output.console import note, warn
from seqtrain.cli.output.prediction_rows import PredictionColumns
from seqtrain.errors import ConfigError, DataError, RunError
from seqtrain.files.reading import compression_of, import_zstd, path_problems
from seqtrain.files.writing import replacing
from seqtrain.sequences.encoding import EncodingReport
from seqtrain.sequences.read_options import PredictionOptions, keeps_all
from seqtrain.sequences.sources import matching_files
from seqtrain.text import counted, display_name
from seqtrain.training.processes import launched

SLOW_STEPS = "every prefix is read again, so a sequence of T steps takes T (T + 1) / 2 steps"


def write_predictions(
    classifier: Classifier,
    columns: PredictionColumns,
    options: PredictionOptions,
    source: str,
    open_file: Callable[[], AbstractContextManager[TextIO]],
    name: str = "input",
) -> None:
    """Predict an input, write each row as soon as it is predicted, and then print warnings.

    The output is only opened after the first prediction, so that unreadable input leaves no output.
    If all columns are copied, it is opened after the first row whose columns are known.

    Args:
        classifier: Model to predict with.
        columns: Columns of the output.
        options: Format of the input, and columns to copy.
        source: Path of the input, or "-" for standard input.
        open_file: Function that opens the output.
        name: Name of the input in warnings.
    """
    report, unknown, undecided = EncodingReport(), 0, 0
    arguments: dict[str, Any] = {"report": report, **vars(options)}
    predictions: Iterator[Any]
    if columns.steps:
        slow = one_model(classifier, "--steps").network.whole_sequence_key
        if slow is not None:
            note(f"{slow}: {SLOW_STEPS}")
        del arguments["empty"], arguments["bad_rows"]  # --steps excludes these options
        predictions = predict_steps(source, classifier, **arguments)
    else:
        predictions = predict(source, classifier, ranks=columns.read_ranks, **arguments)
    first = list[Any]()
    for prediction in predictions:
        first.append(prediction)
        if not keeps_all(columns.keep) or prediction.example.kept is not None:
            break
    fitted, row = classifier.preprocessing, first[0].example if first else None
    warn(*format_warnings(source, row, fitted, options.input_format))
    columns = columns.completed(first, whole_files=fitted.file_format.whole_files)
    with open_file() as file:
        made = columns.begin(file)
        for index, prediction in enumerate(chain(first, predictions)):
            file.write(made(index, prediction))
            unknown += prediction.unknown == 1.0
            undecided += columns.is_undecided(prediction)
        file.flush()
    if columns.threshold is not None:
        note(f"{undecided:,} of {counted(report.rows, 'row')} without a label")
    warn(*report.notices(name))
    if unknown:
        where = "" if name == "input" else f"{name}: "
        rows = counted(report.rows, "sequence")
        warn(f"{where}{unknown:,} of {rows} with no token that the model knows")


def predict_files(
    source: str, folder: Path, ending: str, write: Callable[..., None], *, force: bool
) -> None:
    """Predict each input file into a separate output file.

    Inputs whose output file exists are skipped, unless `force` is True.

    An output file gets its name when it is complete. If a launcher such as torchrun set RANK and
    WORLD_SIZE, this process predicts every WORLD_SIZE-th file.

    Args:
        source: File, folder, or pattern of several files.
        folder: Folder to write into; it is created.
        ending: Ending of the output files, without a dot.
        write: Function that predicts one file. Its arguments are the last three of
            `write_predictions`.
        force: Also predict files whose output file exists, and replace it.

    Raises:
        DataError: If there is no input file.
        ConfigError: If two output files would have one name, or `folder` contains input files or
            can't be created.
    """
    files = [path for path in matching_files(source) if os.path.isfile(path)]
    if not files:
        raise DataError(
            f"{display_name(source)}: no such file (looked in {os.path.abspath(os.curdir)}); "
            "expected a file, or a pattern in quotes such as 'in/*.jsonl'"
        )
    every = dict[Path, str]()
    for file in files:
        path = folder / f"{os.path.basename(file)}.{ending}"
        other = every.setdefault(path, file)
        if other != file:
            raise ConfigError(f"--output-dir: {other} and {file} would both be written to {path}")
        if os.path.realpath(os.path.dirname(file) or ".") == os.path.realpath(folder):
            raise ConfigError(f"--output-dir: {folder} holds {file}; choose another folder")
    with path_problems(f"--output-dir: {folder}", ConfigError):
        folder.mkdir(parents=True, exist_ok=True)
    own = launched().share([*every.items()])
    left = [(path, file) for path, file in own if force or not path.exists()]
    for path, file in left:
        with replacing(path) as unfinished:
            write(file, partial(open_output, str(unfinished), line_by_line=False), file)
    note(f"{counted(len(left), 'file')} predicted, {len(own) - len(left):,} predicted before")


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
        state = "its end is cut off" if compression else "it ends with a complete row"
        if not compression:
            with suppress(OSError, ValueError), Path(path).open("r+b") as cut:  # no pipe can be
                with mmap.mmap(cut.fileno(), 0) as content:
                    whole = content.rfind(b"\n") + 1
                cut.truncate(whole)
        advice = "make room, and predict again with --force"
        raise RunError(f"--output: {path}: {error.strerror}; {state}; {advice}") from None
