"""Formats parquet and arrow: tables of texts, lists of strings, lists of vectors, or steps."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO, TypeAlias

from seqtrain.errors import DataError, missing_package
from seqtrain.sequences.examples import Example, Numbered
from seqtrain.sequences.readers.named_cells import read_objects
from seqtrain.sequences.readers.opening import BOMB_FREE_BYTES, BOMB_RATIO, refuse_bomb
from seqtrain.sequences.readers.row_source import RowSource
from seqtrain.sequences.readers.sequences import PER_SECOND, duration_text, time_text
from seqtrain.sequences.readers.step_cells import Rows
from seqtrain.text import one_line, quote

ROWS = 1024
"""Largest number of rows in memory at a time."""
NUMBER_BYTES = 8
COLUMNS = "the columns"
Opened: TypeAlias = tuple[Any, int, Callable[[list[str]], Iterable[Any]]]
"""An open file as a tuple (schema, number of rows, function).

The number is 0 if it isn't known beforehand. The function takes names of columns and returns an
iterable of batches of rows with these columns.
"""


def read_arrow(source: RowSource) -> Iterator[Example | Rows]:
    """Yield the rows of a parquet file, or of a file or stream of Arrow.

    The line number of a row is its number, from 1.

    Raises:
        ConfigError: If pyarrow isn't installed.
        DataError: If the file is damaged, has two columns of one name, or expands so much that it
            may be a bomb.
    """
    arrow, schema, name = _import(), source.schema, source.problems.name
    try:
        size = source.stream.seek(0, os.SEEK_END)
        source.stream.seek(0)
        opened = _open_parquet if source.format.name == "parquet" else _open_arrow
        file_schema, total, batches = opened(source.stream, size)
        columns = file_schema.names
        twice = next((column for column in columns if columns.count(column) > 1), None)
        if twice is not None:
            raise DataError(f"{name}: column {quote(twice)} occurs twice; name each column once")
        classes = _class_names(file_schema.metadata or {}, schema.label)

        def with_class_name(row: dict[Any, Any]) -> dict[Any, Any]:
            index = row.get(schema.label)
            if classes and type(index) is int:
                row[schema.label] = classes[index] if 0 <= index < len(classes) else None
            return row

        rows = _rows(batches(schema.columns_read(columns, source.keep)), size, source, total)
        yield from read_objects(source, rows, with_class_name)
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise DataError(
            f"{name}: not a sound {source.format.name} file ({one_line(str(error))})"
        ) from None


def cells_of_column(column: Any) -> list[Any]:
    """Return the cells of an Arrow column as Python values, with None for each null.

    Dates and times become ISO text, and durations text such as ``PT1.5S``, because Python's types
    for them have no nanoseconds.
    """
    types = _import().types
    if types.is_binary(column.type) or types.is_large_binary(column.type):
        with suppress(_import().ArrowInvalid):  # some programs mark no column as text
            column = column.cast(_import().large_string())
    if types.is_temporal(column.type) and not types.is_interval(column.type):
        if types.is_duration(column.type):
            unit = PER_SECOND[column.type.unit]
            numbers = column.cast(_import().int64()).to_pylist()
            return [None if x is None else duration_text(x, unit) for x in numbers]
        texts = column.cast(_import().string()).to_pylist()
        return [None if x is None else time_text(x) for x in texts]
    cells: list[Any] = column.to_pylist()
    return cells


def _open_arrow(stream: BinaryIO, size: int) -> Opened:
    is_stream = stream.read(6) != b"ARROW1"
    stream.seek(0)
    file = _import().ipc.open_stream(stream) if is_stream else _import().ipc.open_file(stream)
    batches = file if is_stream else map(file.get_batch, range(file.num_record_batches))
    return file.schema, 0, lambda columns: (batch.select(columns) for batch in batches)


def _open_parquet(stream: BinaryIO, size: int) -> Opened:
    file = _import().parquet.ParquetFile(stream)
    groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
    every = [group.column(i) for group in groups for i in range(group.num_columns)]

    def batches(columns: list[str]) -> Any:
        # A text stored once may occur in many rows, so each may be as large as its column.
        chunks = [chunk for chunk in every if chunk.path_in_schema.partition(".")[0] in columns]
        refuse_bomb(COLUMNS, NUMBER_BYTES * sum(chunk.num_values for chunk in chunks), size)
        texts = [chunk for chunk in chunks if chunk.physical_type == "BYTE_ARRAY"]
        largest = max((x.total_uncompressed_size * x.num_values for x in texts), default=0)
        at_once = max(BOMB_FREE_BYTES, BOMB_RATIO * size) * file.metadata.num_rows
        return file.iter_batches(min(ROWS, max(1, at_once // max(1, largest))), columns=columns)

    return file.schema_arrow, file.metadata.num_rows, batches


def _rows(batches: Iterable[Any], size: int, source: RowSource, total: int) -> Numbered:
    content = end = 0
    for batch in batches:
        first, end = end, end + batch.num_rows
        if not source.is_read(first, total, batch.num_rows):
            continue
        decoded = [getattr(x, "dictionary_decode", lambda x=x: x)() for x in batch.columns]
        content += sum(column.nbytes for column in decoded)
        refuse_bomb(COLUMNS, content, size)
        columns = zip(*map(cells_of_column, decoded), strict=True)
        for number, cells in enumerate(columns, first + 1):
            yield number, dict(zip(batch.schema.names, cells, strict=True))


def _class_names(metadata: dict[bytes, bytes], label: object) -> list[str]:
    """Return the class names that Hugging Face's datasets saved in a file, or an empty list.

    Args:
        metadata: Metadata of the file's schema.
        label: Name of the label column.
    """
    try:
        features = json.loads(metadata[b"huggingface"])["info"]["features"]
        names = features[label]["names"]
    except (LookupError, TypeError, ValueError):
        return []
    return names if isinstance(names, list) and all(isinstance(n, str) for n in names) else []


def _import() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise missing_package("format parquet", "pyarrow", "parquet") from None
    return pyarrow
