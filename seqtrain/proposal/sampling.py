"""Samples of large data files: blocks of lines or rows, spread evenly over the file."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from seqtrain.errors import DataError
from seqtrain.files.reading import uncompressed
from seqtrain.proposal.reading_progress import ReadingProgress
from seqtrain.sequences.readers.opening import BUFFER, open_input
from seqtrain.sequences.readers.row_source import NUM_BLOCKS, RowSample

MOST_ROWS = 100_000
"""Number of rows up to which a file is read completely, and about that of a sample."""
MOST_BYTES = 2**27
"""Size up to which a file is read completely, and about that of a sample, in bytes of text."""
LINE_FORMATS = ("csv", "tsv", "arff", "jsonl", "fasttext", "txt", "ts")
"""Formats whose files can be sampled by lines."""


@dataclass(frozen=True)
class Sample:
    """A file that is read instead of a data file.

    Attributes:
        path: The sample, or the data file itself if all of it is read.
        scale: Rows of the data file per row of the sample, estimated from their bytes.
        note: Description of the sample, or None if the whole file is read.
    """

    path: str
    scale: float = 1.0
    note: str | None = None


def row_sample() -> RowSample:
    """Return a new sample of about `MOST_ROWS` rows, to be passed to the reader of a file.

    It has no effect on formats that don't know their number of rows beforehand.
    """
    return RowSample(MOST_ROWS)


@contextmanager
def sampled(path: str, format: str, encoding: str, progress: ReadingProgress) -> Iterator[Sample]:
    """Yield a sample of a data file, or the file itself if it is small or can't be sampled.

    A file is sampled if it has more than `MOST_ROWS` rows or `MOST_BYTES` bytes, and its format is
    one of `LINE_FORMATS`. A folder and a file in UTF-16 are never sampled.

    The sample is a temporary file, which is deleted at the end of the block. It has the name of the
    data file, without an ending such as .gz. A `DataError` from the block names the data file.

    Args:
        path: The data file.
        format: Name of its format.
        encoding: Name of its encoding.
        progress: Reports long steps.
    """
    lines = 0
    is_text = format in LINE_FORMATS and os.path.isfile(path) and encoding != "utf-16"
    if is_text:
        lines, size = _count(path, progress)
    # One line may be the header.
    if lines - 1 <= MOST_ROWS and (not is_text or size <= MOST_BYTES):
        yield Sample(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, os.path.basename(uncompressed(path)))
        kept_bytes = _write_sample(path, Path(target), lines, size)
        kept = int(lines * kept_bytes / size)
        note = f"looked at about {kept:,} of {lines:,} lines, in {NUM_BLOCKS} blocks"
        try:
            yield Sample(target, size / kept_bytes, note)
        except DataError as error:
            problems = (problem.replace(target, path) for problem in error.problems)
            raise DataError(*problems) from None


def _count(path: str, progress: ReadingProgress) -> tuple[int, int]:
    """Return the number of lines of a file and its size in bytes, decompressed."""
    lines = size = 0
    with open_input(path) as stream:
        while block := stream.read(BUFFER):
            progress.report()
            lines += block.count(b"\n")
            size += len(block)
    return lines, size


def _write_sample(path: str, target: Path, lines: int, size: int) -> int:
    """Write `NUM_BLOCKS` evenly spread blocks of lines to a file, and return the bytes written.

    Lines with an odd number of quotes are left out, except in the first block: they may belong to a
    field of several lines.

    Args:
        path: The data file, perhaps compressed.
        target: The file to write, decompressed.
        lines: Number of lines of the data file.
        size: Size of the data file in bytes, decompressed.
    """
    share = min(MOST_ROWS / lines, MOST_BYTES / size)
    period, number, kept = -(-lines // NUM_BLOCKS), 0, 0
    length = max(1, int(share * period))
    with open_input(path) as stream, open(target, "wb") as file:
        for number, line in enumerate(stream):
            if number % period < length and (number < length or line.count(b'"') % 2 == 0):
                file.write(line)
                kept += len(line)
    return kept
