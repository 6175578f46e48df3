"""Formats parquet and arrow: a row per sequence of texts, lists of strings, or lists of vectors."""

import glob
import json
import os
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TypeAlias

from seqtrain.data.examples import Example, parse_rows
from seqtrain.data.readers.jsonl import object_parser
from seqtrain.data.readers.opening import BOMB_FREE_BYTES, BOMB_RATIO, RowSource, is_bomb
from seqtrain.errors import DataError, missing_package
from seqtrain.text import display_name, one_line, quote

ROWS = 1024
"""Rows in memory at a time, at most."""
NUMBER_BYTES = 8
Opened: TypeAlias = tuple[Any, Callable[[list[str]], Iterator[dict[str, Any]]]]
"""The schema of a file, and what yields the rows of some columns."""


def read_parquet(source: RowSource) -> Iterator[Example]:
    """Read the rows of a parquet file; the line is the row, from 1.

    Raises:
        ConfigError: pyarrow isn't installed.
        DataError: it is no parquet file, lacks a column, or holds far more than its size tells.
    """

    def opened(stream: BinaryIO, name: str) -> Opened:
        file = _import().parquet.ParquetFile(stream)
        return file.schema_arrow, lambda columns: _rows(stream, file, columns, name)

    return _read(source, opened)


def read_arrow(source: RowSource) -> Iterator[Example]:
    """Read the rows of one of arrow's own files, or of a stream in a file; as `read_parquet`."""

    def opened(stream: BinaryIO, name: str) -> Opened:
        size, is_stream = stream.seek(0, os.SEEK_END), stream.seek(0) or stream.read(6) != b"ARROW1"
        stream.seek(0)
        file = _import().ipc.open_stream(stream) if is_stream else _import().ipc.open_file(stream)

        def rows(columns: list[str]) -> Iterator[dict[str, Any]]:
            content = 0
            for batch in file if is_stream else map(file.get_batch, range(file.num_record_batches)):
                content += batch.nbytes
                _refuse_bomb(name, content, size)
                yield from batch.select(columns).to_pylist()

        return file.schema, rows

    return _read(source, opened)


def arrow_files(folder: str) -> list[str]:
    """Return the files of a folder that Hugging Face's save_to_disk wrote; refuse several sets."""
    files = sorted(glob.glob(os.path.join(glob.escape(folder), "*.arrow")))
    if not files:
        sets = sorted(x for x in os.listdir(folder) if os.path.isdir(os.path.join(folder, x)))
        given = f"; give one of these: {', '.join(sets)}" if sets else ""
        raise DataError(f"{display_name(folder)}: holds no file .arrow{given}")
    return files


def _read(source: RowSource, opened: Callable[[BinaryIO, str], Opened]) -> Iterator[Example]:
    arrow = _import()
    options, name = source.options, source.problems.name
    parse = object_parser(source)
    try:
        schema, rows = opened(source.stream, name)
        columns = schema.names
        twice = next((column for column in columns if columns.count(column) > 1), None)
        if twice is not None:
            raise DataError(f"{name}: column {quote(twice)} occurs twice; name each column once")
        classes = _class_names(schema.metadata or {}, options.label)

        def parse_row(row: dict[Any, Any]) -> tuple[Any, ...]:
            index = row.get(options.label)
            if classes and type(index) is int:
                row[options.label] = classes[index] if 0 <= index < len(classes) else None
            return parse(row)

        numbered = enumerate(rows(options.columns_of(columns)), start=1)
        yield from parse_rows(numbered, parse_row)
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise DataError(
            f"{name}: not a sound {options.format} file ({one_line(str(error))})"
        ) from None


def _rows(stream: BinaryIO, file: Any, columns: list[str], name: str) -> Iterator[dict[str, Any]]:
    """Yield the values of each row, in bounded memory.

    A value stored once may stand in many rows, so a text is taken to be as large as its column;
    lists of texts are first read as numbers of the distinct ones.
    """
    size, metadata, plain = stream.seek(0, os.SEEK_END), file.metadata, file.schema_arrow
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    chunks = [group.column(i) for group in groups for i in range(group.num_columns)]
    chunks = [chunk for chunk in chunks if chunk.path_in_schema.partition(".")[0] in columns]
    texts = [chunk for chunk in chunks if chunk.physical_type == "BYTE_ARRAY"]
    largest = max((chunk.total_uncompressed_size for chunk in texts), default=0)
    at_once = max(BOMB_FREE_BYTES, BOMB_RATIO * size) // max(1, largest)
    nested = sorted({text.path_in_schema for text in texts} - {*columns})
    file = _import().parquet.ParquetFile(stream, read_dictionary=nested, metadata=metadata)
    content = NUMBER_BYTES * sum(chunk.num_values for chunk in chunks)
    _refuse_bomb(name, content, size)
    content = 0
    for batch in file.iter_batches(min(ROWS, max(1, at_once)), columns=columns):
        content += sum(map(_content, batch.columns))
        _refuse_bomb(name, content, size)
        values = [
            column.cast(plain.field(field.name).type).to_pylist()
            for field, column in zip(batch.schema, batch.columns, strict=True)
        ]
        for row in zip(*values, strict=True):
            yield dict(zip(batch.schema.names, row, strict=True))


def _refuse_bomb(name: str, content: int, size: int) -> None:
    if is_bomb(content, size):
        raise DataError(
            f"{name}: the columns expand more than {BOMB_RATIO} times; refused as a bomb"
        )


def _content(array: Any) -> int:
    """Return the bytes of an array's values, each counted wherever it stands."""
    arrow = _import()
    if arrow.types.is_dictionary(array.type):
        lengths = arrow.compute.binary_length(array.dictionary)
        return arrow.compute.sum(lengths.take(array.indices)).as_py() or 0
    if arrow.types.is_list(array.type) or arrow.types.is_large_list(array.type):
        return _content(array.flatten())
    if arrow.types.is_struct(array.type):
        return sum(map(_content, array.flatten()))
    return int(array.nbytes)


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
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise missing_package("format parquet", "pyarrow", "parquet") from None
    return pyarrow
