"""Classifying the rows of a file or of standard input, as they come."""

from __future__ import annotations

import os
import queue
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from seqtrain.api.classifier import Classifier, Prediction
from seqtrain.api.events import RunLike
from seqtrain.api.loading import load
from seqtrain.data.chunks import CHUNK_ROWS
from seqtrain.data.encoding import EncodingReport
from seqtrain.data.examples import Example
from seqtrain.data.readers import Column, ReadOptions, read_examples
from seqtrain.errors import ConfigError, DataError, RunError
from seqtrain.text import display_name, one_of, quote

STDIN = "-"
WITH_COLUMNS = ("csv", "tsv", "jsonl")
"""Formats whose columns can be copied to the answers."""
READ_AHEAD = 1024
"""Rows of standard input read while others are classified: memory stays flat."""


def predict(
    source: str,
    run: RunLike = None,
    *,
    device: str = "auto",
    classifier: Classifier | None = None,
    report: EncodingReport | None = None,
    ranks: int | None = None,
    input_format: str | None = None,
    keep: Sequence[str] = (),
    empty: str | None = None,
    bad_rows: str = "error",
) -> Iterator[Prediction]:
    """Classify every row of a file or a folder, or of standard input.

    A .txt file and standard input hold one sequence per line (for a model of feature vectors a JSON
    list of vectors); other files are read as the model's training file was. Where each of train's
    files was a sequence, so is a .txt file, and each file of a folder.

    Args:
        source: path of a file or folder, or "-" for standard input.
        run: a run directory, a model folder, or what `fit` returned; None: the newest run.
        device: auto, cpu, cuda, cuda:N or mps.
        classifier: a loaded one, in place of run and device.
        report: counts up the rows, and those cut, empty or unanswered.
        ranks: how many labels, the most probable ones, have their probability told; None: all.
        input_format: csv, tsv, jsonl, fasttext, txt or lines; None: by the name of the source.
        keep: columns whose cells come with the answers, as `Prediction.example.kept`.
        empty: what happens to empty sequences: error, unk (an unknown token is read) or blank (no
            answer, in its place); None: as in training, and blank where that refused them.
        bad_rows: what happens to rows that can't be used: error or blank.

    Returns:
        One prediction per row, in input order, as soon as they are known.

    Raises:
        ConfigError: columns are to be kept of a format that has none.
        DataError: a row can't be read; the predictions of the rows before it come first.
    """
    classifier = classifier or load(run, device=device)
    fitted = classifier.preprocessing
    if empty is None and fitted.lengths.empty == "error":
        empty = "blank"
    rules = fitted.for_prediction(empty=empty, bad_rows=bad_rows)
    options = input_options(rules.reading, source, input_format)
    options = replace(options, keep=_columns(keep, options))
    if keep and options.format not in WITH_COLUMNS:
        raise ConfigError(
            f"--keep: input of format {options.format} has no columns; "
            f"expected {one_of(WITH_COLUMNS)}"
        )
    return classifier.predict_examples(
        arrivals(source, options), display_name(source), report, ranks, rules
    )


def how_read(source: str, classifier: Classifier, format: str | None = None) -> list[str]:
    """Say what a row is where a model trained on whole files reads one file, or lines."""
    reading = classifier.preprocessing.reading
    if not reading.whole_files or format is not None or os.path.isdir(source):
        return []
    if source == STDIN:
        return ["each line of stdin is one sequence, though in training each file was one"]
    if input_options(reading, source).format != "files":
        return []
    return [
        f"{display_name(source)}: one sequence, as each file was in training; its lines one by "
        "one: --input-format lines"
    ]


def read_otherwise(source: str, classifier: Classifier, format: str | None = None) -> str:
    """Return what to try where standard input, read line by line, holds nothing that is known."""
    trained = classifier.preprocessing.reading.format
    if source != STDIN or format is not None or trained not in ("csv", "tsv", "jsonl", "fasttext"):
        return ""
    return f"; each line was read as one; if it is {trained}: --input-format {trained}"


def first_row_doubts(
    source: str, first: Sequence[Example | None], classifier: Classifier, format: str | None = None
) -> list[str]:
    """Say where the first of lines that are read as sequences names columns, or is jsonl."""
    reading = classifier.preprocessing.reading
    row = first[0].sequence if first and first[0] is not None else None
    lines = format is None and input_options(reading, source).format == "lines"
    if not lines or not isinstance(row, str | list):
        return []
    text = row if isinstance(row, str) else " ".join(row)
    own = reading.sequence if isinstance(reading.sequence, list) else [reading.sequence]
    cells = {cell.strip(' "') for cell in re.split("[,;\t|]", text)}
    is_header = reading.format in ("csv", "tsv") and {*own} <= cells
    if not is_header and not (reading.format == "jsonl" and text.startswith("{")):
        return []
    what = "names columns" if is_header else "is an object"
    return [
        f"{display_name(source)}: each line is read as a sequence, but the first one {what}: "
        f"{quote(text, 40)}; to read {reading.format}: --input-format {reading.format}"
    ]


def _columns(names: Sequence[str], reading: ReadOptions) -> list[Column]:
    """Return columns as the model's config names its own: by name, or by index from 0."""
    own = reading.sequence if isinstance(reading.sequence, list) else [reading.sequence]
    if not all(isinstance(column, int) for column in own):
        return list(names)
    return [int(name) if name.isdecimal() and len(name) < 5 else name for name in names]


def arrivals(source: str, options: ReadOptions) -> Iterator[Iterable[Example]]:
    """Yield the examples of a file at once, those of standard input as they come in.

    Args:
        source: path of a file, or "-" for standard input.
        options: how it is read.
    """
    examples = read_examples(source, options, labelled=False, stop_at_first=True)
    if source == STDIN:
        # A chunk is what has arrived meanwhile: an answer waits for no later row.
        yield from _arriving(examples)
    else:
        yield examples


def input_options(reading: ReadOptions, source: str, format: str | None = None) -> ReadOptions:
    """Return how rows are read: standard input and .txt as lines, else as in training.

    A model trained on lines of label<TAB>text reads a .txt file so, where a line has a tab; one
    trained on files reads it, and each file of a folder, as one sequence.

    Args:
        reading: the model's.
        source: path of a file, or "-".
        format: in place of what the name tells.

    Raises:
        DataError: it is a folder, and the model's rows weren't in one; or a config.
    """
    if format is not None:
        return replace(reading, format=format)
    if source.lower().endswith((".yaml", ".yml")):
        name = display_name(source)
        raise DataError(
            f"{name}: is a config by its name; expected sequences; to train it: seqtrain fit {name}"
        )
    options = reading.for_file(source)
    if source == STDIN:
        return replace(options, format="lines")
    if options.format == "txt" and reading.whole_files:
        return replace(options, format="files")
    if options.format == "txt" and reading.format != "txt":
        if os.path.isdir(source):
            raise DataError(
                f"{display_name(source)}: is a folder; the model was trained on the rows of a "
                "file, so give a file"
            )
        return replace(options, format="lines")
    return options


def _arriving(examples: Iterator[Example]) -> Iterator[Iterable[Example]]:
    """Read on a second thread; yield what has arrived, again and again, then any complaint."""
    arrived: queue.Queue[Example | BaseException | None] = queue.Queue(READ_AHEAD)

    def read() -> None:
        # While this frame holds it, shutdown can't close the stream that a read waits on: to
        # close it then would abort the process.
        stream = sys.stdin
        try:
            for example in examples:
                arrived.put(example)
            arrived.put(None)
        except BaseException as error:
            arrived.put(error)
        del stream

    try:
        threading.Thread(target=read, daemon=True).start()
    except RuntimeError as error:
        raise RunError(f"stdin: {error} to read it; give a file, or see ulimit -u") from None
    while True:
        first = arrived.get()
        chunk: list[Example] = []
        while isinstance(first, Example):
            chunk.append(first)
            if len(chunk) == CHUNK_ROWS:
                break
            try:
                first = arrived.get_nowait()
            except queue.Empty:
                break
        yield iter(chunk)
        if first is None:
            return
        if isinstance(first, BaseException):
            raise first
