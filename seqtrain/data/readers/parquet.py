"""Formats parquet and arrow: a row per sequence of texts, lists of strings, or lists of vectors."""

import glob
import json
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, TypeAlias

from seqtrain.data.examples import Example
from seqtrain.data.readers.cells import read_objects
from seqtrain.data.readers.opening import BOMB_FREE_BYTES, BOMB_RATIO, RowSource, refuse_bomb
from seqtrain.data.readers.time_steps import Rows
from seqtrain.data.readers.txt import Parts
from seqtrain.errors import DataError, missing_package
from seqtrain.text import display_name, one_line, quote

ROWS = 1024
"""Rows in memory at a time, at most."""
NUMBER_BYTES = 8
COLUMNS = "the columns"
Opened: TypeAlias = tuple[Any, Callable[[list[str]], Iterable[Any]]]
"""The schema of a file, and what yields the batches of some columns."""


def read_arrow(source: RowSource) -> Iterator[Example | Rows]:
    """Read the rows of a parquet file, of one of arrow's own, or of a stream of these in a file.

    The line is the row, from 1.

    Raises:
        ConfigError: pyarrow isn't installed.
        DataError: it is no such file, lacks a column, or holds far more than its size tells.
    """
    arrow, options, name = _import(), source.options, source.problems.name
    try:
        size = source.stream.seek(0, os.SEEK_END)
        source.stream.seek(0)
        opened = _open_parquet if options.format == "parquet" else _open_arrow
        schema, batches = opened(source.stream, size)
        columns = schema.names
        twice = next((column for column in columns if columns.count(column) > 1), None)
        if twice is not None:
            raise DataError(f"{name}: column {quote(twice)} occurs twice; name each column once")
        classes = _class_names(schema.metadata or {}, options.label)

        def named(row: dict[Any, Any]) -> dict[Any, Any]:
            index = row.get(options.label)
            if classes and type(index) is int:
                row[options.label] = classes[index] if 0 <= index < len(classes) else None
            return row

        rows = _rows(batches(options.columns_of(columns)), size)
        yield from read_objects(source, enumerate(rows, start=1), named)
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise DataError(
            f"{name}: not a sound {options.format} file ({one_line(str(error))})"
        ) from None


def arrow_files(folder: str) -> Parts:
    """Return the files that Hugging Face's save_to_disk wrote; refuse several sets."""
    files = sorted(glob.glob(os.path.join(glob.escape(folder), "*.arrow")))
    if not files:
        sets = sorted(x for x in os.listdir(folder) if os.path.isdir(os.path.join(folder, x)))
        given = f"; give one of these: {', '.join(sets)}" if sets else ""
        raise DataError(f"{display_name(folder)}: holds no file .arrow{given}")
    return dict.fromkeys(files, ("arrow", None))


def _open_arrow(stream: BinaryIO, size: int) -> Opened:
    is_stream = stream.read(6) != b"ARROW1"
    stream.seek(0)
    file = _import().ipc.open_stream(stream) if is_stream else _import().ipc.open_file(stream)
    batches = file if is_stream else map(file.get_batch, range(file.num_record_batches))
    return file.schema, lambda columns: (batch.select(columns) for batch in batches)


def _open_parquet(stream: BinaryIO, size: int) -> Opened:
    file = _import().parquet.ParquetFile(stream)
    groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
    every = [group.column(i) for group in groups for i in range(group.num_columns)]

    def batches(columns: list[str]) -> Any:
        """A value stored once may stand in many rows, so a text may be as large as its column."""
        chunks = [chunk for chunk in every if chunk.path_in_schema.partition(".")[0] in columns]
        refuse_bomb(COLUMNS, NUMBER_BYTES * sum(chunk.num_values for chunk in chunks), size)
        texts = [chunk for chunk in chunks if chunk.physical_type == "BYTE_ARRAY"]
        largest = max((x.total_uncompressed_size * x.num_values for x in texts), default=0)
        at_once = max(BOMB_FREE_BYTES, BOMB_RATIO * size) * file.metadata.num_rows
        return file.iter_batches(min(ROWS, max(1, at_once // max(1, largest))), columns=columns)

    return file.schema_arrow, batches


def _rows(batches: Iterable[Any], size: int) -> Iterator[dict[str, Any]]:
    content = 0
    for batch in batches:
        columns = [getattr(x, "dictionary_decode", lambda x=x: x)() for x in batch.columns]
        content += sum(column.nbytes for column in columns)
        refuse_bomb(COLUMNS, content, size)
        for cells in zip(*(column.to_pylist() for column in columns), strict=True):
            yield dict(zip(batch.schema.names, cells, strict=True))


def _class_names(metadata: dict[bytes, bytes], label: object) -> list[str]:
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
