"""Rows as they come, encoded chunk by chunk: those before a bad one first, then the complaint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice

from seqtrain.data.encoding import EncodingReport, number_groups
from seqtrain.data.examples import SHOWN_ROWS, Example
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.store import SequenceStore
from seqtrain.errors import DataError
from seqtrain.text import located

CHUNK_ROWS = 4096


def encoded_chunks(
    preprocessing: Preprocessing,
    bursts: Iterable[Iterable[Example]],
    source: str,
    report: EncodingReport | None = None,
    *,
    rows: int = CHUNK_ROWS,
) -> Iterator[tuple[list[Example], SequenceStore]]:
    """Encode examples chunk by chunk, as they come.

    Args:
        preprocessing: for prediction, so that no row is left out.
        bursts: examples, unlabelled or with labels that are ignored; those that come together are
            encoded together, without waiting for others.
        source: name for messages, such as the file's.
        report: counts up the rows, and those cut or empty.
        rows: how many at most a chunk.

    Yields:
        The examples of a chunk and their store, row for row; groups keep their numbers from
        chunk to chunk. Where an example has a problem, its row of the store means nothing.

    Raises:
        DataError: a row can't be read; the rows before it come first.
    """
    numbers: dict[str, int] = {}
    for chunk, reading_fault in chain.from_iterable(_chunks(burst, rows) for burst in bursts):
        store, counts, encoding_fault = _encode(preprocessing, chunk, source)
        if report is not None:
            report.rows += counts.rows
            report.truncated += counts.truncated
            report.filled += counts.filled
        good = chunk[: len(store)]
        for place, problem in counts.problems.items():
            good[place] = good[place]._replace(problem=problem, group=None)
        if report is not None:
            _note_unanswered(report, [good[place] for place in counts.problems], source)
        if len(store):
            groups = number_groups([example.group for example in good], numbers)
            yield good, replace(store, groups=groups)
        fault = encoding_fault or reading_fault
        if fault is not None:
            raise fault


def _note_unanswered(report: EncodingReport, rows: list[Example], source: str) -> None:
    """Count rows that keep their places without an answer, and tell the first."""
    shown = SHOWN_ROWS - len(report.unanswered_rows)
    report.unanswered += len(rows)
    report.unanswered_rows += [
        located(f"{row.file or source}:{row.line}", str(row.problem)) for row in rows[:shown]
    ]


def _chunks(
    examples: Iterable[Example], rows: int
) -> Iterator[tuple[list[Example], DataError | None]]:
    """Part examples into lists; where reading fails, the last list comes with the complaint."""
    iterator = iter(examples)
    while True:
        chunk: list[Example] = []
        try:
            chunk.extend(islice(iterator, rows))
        except DataError as fault:
            yield chunk, fault
            return
        if not chunk:
            return
        yield chunk, None


def _encode(
    preprocessing: Preprocessing, chunk: list[Example], source: str
) -> tuple[SequenceStore, EncodingReport, DataError | None]:
    """Encode a chunk; where a row is bad, the rows before it and the complaint."""
    encode = preprocessing.encode
    try:
        return *encode(chunk, source, stop_at_first=True), None
    except DataError:
        for good in range(len(chunk)):
            try:
                encode(chunk[good : good + 1], source, stop_at_first=True)
            except DataError as fault:
                return *encode(chunk[:good], source), fault
        raise
