"""Format parquet: one row per sequence; texts, lists of strings, or lists of vectors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from seqtrain.data.examples import Example, RowProblems
from seqtrain.data.readers.jsonl import object_parser
from seqtrain.data.readers.options import ReadOptions
from seqtrain.data.readers.rows import parse_rows
from seqtrain.errors import ConfigError, DataError
from seqtrain.text import one_line

ROWS = 1024
"""Rows in memory at a time."""


def read_parquet(
    stream: BinaryIO, options: ReadOptions, problems: RowProblems, labelled: bool
) -> Iterator[Example]:
    """Read the rows of a parquet file; the line is the row, from 1.

    A label of a file from Hugging Face's datasets has the name that the file gives its number.

    Args:
        stream: the file's bytes.
        options: names of the columns, and kind.
        problems: where rows are complained about.
        labelled: whether the label's column must be there.

    Raises:
        ConfigError: pyarrow isn't installed.
        DataError: it is no parquet file, or lacks a column.
    """
    arrow, parquet = _import()
    parse = object_parser(options, labelled)
    try:
        file = parquet.ParquetFile(stream)
        schema = file.schema_arrow
        names = _class_names(schema.metadata or {}, options.label)
        wanted = [*options.sequence_columns(), options.label, options.group, *options.keep]
        found = {str(column).partition(".")[0] for column in wanted} & {*schema.names}
        rows = _rows(file, sorted(found), options.label, names)
        yield from parse_rows(rows, parse, problems)
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise DataError(
            f"{problems.name}: not a sound parquet file ({one_line(str(error))})"
        ) from None


def _rows(
    file: Any, columns: list[str], label: object, names: list[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield number and values of each row; numbers of classes become their names."""
    number = 0
    for batch in file.iter_batches(ROWS, columns=columns):
        for row in batch.to_pylist():
            number += 1
            place = row.get(label)
            if names and type(place) is int:
                row[label] = names[place] if 0 <= place < len(names) else None
            yield number, row


def _class_names(metadata: dict[bytes, bytes], label: object) -> list[str]:
    """Return the names of the label's classes, where Hugging Face's datasets wrote them."""
    try:
        features = json.loads(metadata[b"huggingface"])["info"]["features"]
        names = features[label]["names"]
    except (LookupError, TypeError, ValueError):
        return []
    return names if isinstance(names, list) and all(isinstance(n, str) for n in names) else []


def _import() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ConfigError(
            "format parquet needs the package pyarrow; "
            "install it with: pip install 'seqtrain[parquet]'"
        ) from None
    return pyarrow, pyarrow.parquet
