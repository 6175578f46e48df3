"""Classifying the rows of a file or of standard input, as they come."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace

from seqtrain.data.chunks import CHUNK_ROWS
from seqtrain.data.encoding import EncodingReport
from seqtrain.data.examples import Example
from seqtrain.data.readers import ReadOptions, read_examples
from seqtrain.errors import RunError
from seqtrain.text import display_name
from seqtrain.workflows.classifier import Classifier, Prediction, load
from seqtrain.workflows.events import RunLike

STDIN = "-"
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
) -> Iterator[Prediction]:
    """Classify every row of a file, or of standard input.

    A .txt file and standard input hold one sequence a line (for a model of feature vectors a JSON
    list of vectors); other files are read as the model's training file was.

    Args:
        source: path of a file, or "-" for standard input.
        run: a run directory, a model folder, or what `fit` returned; None: the newest run.
        device: auto, cpu, cuda, cuda:N or mps.
        classifier: a loaded one, in place of run and device.
        report: counts up the rows, and those cut or empty.
        ranks: how many labels, the most probable ones, have their probability told; None: all.

    Yields:
        One prediction a row, in input order, as soon as they are known.

    Raises:
        DataError: a row can't be read; the predictions of the rows before it come first.
    """
    classifier = classifier or load(run, device=device)
    for examples in arrivals(source, classifier):
        yield from classifier.predict_examples(examples, display_name(source), report, ranks)


def arrivals(source: str, classifier: Classifier) -> Iterator[Iterator[Example]]:
    """Yield the examples of a file at once, those of standard input as they come in.

    Args:
        source: path of a file, or "-" for standard input.
        classifier: whose rows they are.
    """
    options = input_options(classifier.preprocessing.reading, source)
    examples = read_examples(source, options, labelled=False, stop_at_first=True)
    if source == STDIN:
        # A chunk is what has arrived meanwhile: an answer waits for no later row.
        yield from _arriving(examples)
    else:
        yield examples


def input_options(reading: ReadOptions, source: str) -> ReadOptions:
    """Return how rows are read: standard input and .txt as lines, else as in training.

    A model trained on lines of label<TAB>text reads a .txt file so, where a line has a tab.
    """
    options = reading.for_file(source)
    if source == STDIN or (options.format == "txt" and reading.format != "txt"):
        return replace(options, format="lines")
    return options


def _arriving(examples: Iterator[Example]) -> Iterator[Iterator[Example]]:
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
