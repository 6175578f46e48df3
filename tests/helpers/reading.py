"""Helpers that read the rows of a file that can be used, and that damage files."""

import random
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from seqtrain.sequences.examples import Example, RowProblems
from seqtrain.sequences.read_options import FileFormat, Schema
from seqtrain.sequences.readers import FileSource, Source, read_rows


def file_source(path: str, format: str, kind: str = "text", **options: Any) -> FileSource:
    """Return a source whose options are fields of `FileSource`, `FileFormat` or `Schema`."""
    own = {key: options.pop(key) for key in ("keep", "bad_rows") if key in options}
    names = {field.name for field in fields(FileFormat)}
    written = FileFormat(format, **{key: options.pop(key) for key in {*options} & names})
    return FileSource(path, written, Schema(kind, **options), **own)


def read_examples(source: Source, *, labelled: bool = True) -> Iterator[Example]:
    """Yield the rows that can be used, as `read_rows` reads them.

    Raises:
        DataError: Also at the end, for all bad rows together. If the source drops bad rows, it is
            raised only if no row is left.
    """
    problems, rows = RowProblems(source.name), 0
    for example in read_rows(source, problems, labelled=labelled):
        if example.problem is None:
            rows += 1
            yield example
        else:
            problems.add(example.line, example.problem, example.file)
    if source.bad_rows == "error" or not rows:
        problems.raise_if_any()


def damaged_copies(content: bytes) -> Iterator[bytes]:
    """Yield the content 300 times with other bytes in one, two or eight places."""
    draw = random.Random(0)
    for _ in range(300):
        copy = bytearray(content)
        for _ in range(draw.choice([1, 2, 8])):
            copy[draw.randrange(len(copy))] = draw.randrange(256)
        yield bytes(copy)


def only_label(row: Example) -> str | None:
    """Return the label of a single-label example, or None."""
    if row.labels is None:
        return None
    (label,) = row.labels
    return label
