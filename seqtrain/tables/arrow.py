"""Arrow tables: parquet and Arrow files, DataFrames, and datasets of Hugging Face."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np

from seqtrain.errors import missing_package
from seqtrain.tables.blocks import (
    ROWS,
    Array,
    Block,
    Cells,
    Coded,
    Dialect,
    Name,
    Selection,
    UnreadableError,
    as_list,
)
from seqtrain.tables.opening import BOMB_FREE_BYTES, BOMB_RATIO, refuse_bomb
from seqtrain.tables.python_values import PER_SECOND, duration_text, time_text
from seqtrain.text import one_line, quote

ARROW_ROWS = 1 << 16
"""Largest number of rows of a block. Columns of Arrow need no small blocks, as lists do."""
LIST_ROWS = 1 << 10
"""Largest number of rows of a block with nested columns, whose cells are Python lists."""
NUMBER_BYTES = 8
ALL_COLUMNS = "the columns"


def read_parquet(
    stream: BinaryIO, dialect: Dialect, selection: Selection, rows: int = ROWS
) -> Iterator[Block]:
    """Yield the rows of a parquet file. Only the selected columns are read.

    Raises:
        UnreadableError: If the file is damaged, or expands so much that it may be a bomb.
    """
    arrow = import_arrow()
    try:
        file = arrow.parquet.ParquetFile(stream)
        size = stream.seek(0, os.SEEK_END)
        schema = file.schema_arrow
        names = {path[0] for path in _selected(selection, schema).values()}
        at_once = min(_rows_at_once(schema, names), _rows_that_fit(file, names, size))
        batches = file.iter_batches(at_once, columns=sorted(names))
        yield from blocks_of_batches(_measured(batches, size), selection, schema)
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise UnreadableError(None, f"not a sound parquet file ({one_line(str(error))})") from None


def read_arrow(
    stream: BinaryIO, dialect: Dialect, selection: Selection, rows: int = ROWS
) -> Iterator[Block]:
    """Yield the rows of a file or a stream of Arrow.

    Raises:
        UnreadableError: If the file is damaged, or expands so much that it may be a bomb.
    """
    arrow = import_arrow()
    try:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        is_file = stream.read(6) == b"ARROW1"
        stream.seek(0)
        if is_file:
            file = arrow.ipc.open_file(stream)
            batches: Any = map(file.get_batch, range(file.num_record_batches))
        else:
            file = batches = arrow.ipc.open_stream(stream)
        yield from blocks_of_batches(_measured(batches, size), selection, file.schema)
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise UnreadableError(None, f"not a sound arrow file ({one_line(str(error))})") from None


def read_frame(frame: Any, selection: Selection) -> Iterator[Block]:
    """Yield the rows of a table of polars, pyarrow, DuckDB or Hugging Face.

    Args:
        frame: Object with the PyCapsule interface of Arrow.
        selection: Columns to read.
    """
    table = import_arrow().table(frame)
    names = {path[0] for path in _selected(selection, table.schema).values()}
    at_once = _rows_at_once(table.schema, names)
    yield from blocks_of_batches(table.to_batches(at_once), selection, table.schema)


def blocks_of_batches(batches: Iterable[Any], selection: Selection, schema: Any) -> Iterator[Block]:
    """Yield a block for each batch of Arrow, with the numbers of its rows as lines."""
    paths, classes, end = _selected(selection, schema), _class_names(schema), 0
    for batch in batches:
        first = end
        end = end + batch.num_rows
        columns = {}
        for name, (outer, *inner) in paths.items():
            column = batch.column(batch.schema.get_field_index(outer))
            if inner:
                column = import_arrow().compute.struct_field(column, inner)
            columns[name] = cells_of(column)
            if name in classes:
                columns[name] = named_classes(columns[name], classes[name])
        yield Block(columns, np.arange(first + 1, end + 1))


def cells_of(column: Any) -> Cells:
    """Return a column of Arrow as an array of numbers, as codes, or as a list of Python values.

    Dates and times become ISO text: Python's types for them have no nanoseconds.
    """
    arrow = import_arrow()
    types = arrow.types
    kind = column.type
    if types.is_dictionary(kind):
        values = cells_of(column.dictionary)
        if isinstance(values, Coded):
            texts = values.cells()
        else:
            texts = list(values)
        return Coded(_indices(column), texts)
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        try:
            column = column.cast("large_string")  # some programs mark no text as text
        except arrow.ArrowInvalid:
            return list(column.to_pylist())
    if types.is_string_view(kind):
        column = column.cast("large_string")
    if types.is_duration(kind):
        unit = PER_SECOND[kind.unit]
        return _coded(column.cast("int64"), lambda count: duration_text(count, unit))
    if types.is_temporal(kind) and not types.is_interval(kind):
        return _coded(column.cast("string"), time_text)
    if types.is_string(column.type) or types.is_large_string(column.type):
        return _coded(column)
    if types.is_boolean(kind):
        codes = column.cast("int32").fill_null(-1).to_numpy(zero_copy_only=False)
        return Coded(codes, [False, True])
    is_number = types.is_floating(kind) or (types.is_integer(kind) and not column.null_count)
    if is_number:
        numbers: Array = column.to_numpy(zero_copy_only=False)
        return numbers
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _lists(column)
    return list(column.to_pylist())


def _lists(column: Any) -> list[Any]:
    """Return a column of lists. Lists of numbers without gaps are arrays."""
    arrow = import_arrow()
    inner = column.type.value_type
    is_number = arrow.types.is_floating(inner) or arrow.types.is_integer(inner)
    if not is_number or column.null_count or column.flatten().null_count:
        return list(column.to_pylist())
    values = column.flatten().to_numpy(zero_copy_only=False)
    lengths = arrow.compute.list_value_length(column).to_numpy(zero_copy_only=False)
    if len(lengths):
        return np.split(values, np.cumsum(lengths)[:-1])
    return []


def import_arrow() -> Any:
    """Return the module pyarrow.

    Raises:
        ConfigError: If it isn't installed.
    """
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise missing_package("format parquet", "pyarrow", "parquet") from None
    return pyarrow


def _rows_at_once(schema: Any, names: Iterable[str]) -> int:
    """Return the largest number of rows of a block, by the types of the columns."""
    types = import_arrow().types
    is_nested = any(types.is_nested(schema.field(name).type) for name in names)
    if is_nested:
        return LIST_ROWS
    return ARROW_ROWS


def _rows_that_fit(file: Any, names: set[str], size: int) -> int:
    """Return the number of rows of parquet whose columns can't be a bomb.

    A text that is stored once may occur in many rows, so each may be as large as its column.

    Raises:
        OSError: If the file may be a bomb.
    """
    groups = [file.metadata.row_group(index) for index in range(file.num_row_groups)]
    chunks = [group.column(index) for group in groups for index in range(group.num_columns)]
    read = [chunk for chunk in chunks if chunk.path_in_schema.partition(".")[0] in names]
    refuse_bomb(ALL_COLUMNS, NUMBER_BYTES * sum(chunk.num_values for chunk in read), size)
    largest = 1
    for chunk in read:
        if chunk.physical_type == "BYTE_ARRAY":
            largest = max(largest, chunk.total_uncompressed_size * chunk.num_values)
    allowed: int = max(BOMB_FREE_BYTES, BOMB_RATIO * size) * file.metadata.num_rows
    return max(1, allowed // largest)


def _measured(batches: Iterable[Any], size: int) -> Iterator[Any]:
    """Yield the batches of a file.

    Args:
        batches: The batches.
        size: Size of the file in bytes.

    Raises:
        OSError: If the batches are so much larger than the file that it may be a bomb.
    """
    content = 0
    for batch in batches:
        for column in batch.columns:
            content += _expanded_size(column)
        refuse_bomb(ALL_COLUMNS, content, size)
        yield batch


def _expanded_size(column: Any) -> int:
    """Return the size of a column in bytes. A row of a dictionary counts as its mean value."""
    if not import_arrow().types.is_dictionary(column.type):
        size: int = column.nbytes
        return size
    values = column.dictionary
    mean = values.nbytes / max(1, len(values))
    return int(column.indices.nbytes + mean * len(column))


def _class_names(schema: Any) -> dict[Any, list[str]]:
    """Return the names of the classes of each column that Hugging Face's datasets saved."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        names = {name: each.get("names") for name, each in features.items()}
    except (LookupError, TypeError, ValueError, AttributeError):
        return {}
    lists = {name: each for name, each in names.items() if isinstance(each, list) and each}
    return {name: each for name, each in lists.items() if set(map(type, each)) == {str}}


def named_classes(cells: Cells, names: list[str]) -> Cells:
    """Return class indices as codes of their names. Other cells are returned unchanged.

    A missing label has the index -1.
    """
    indices = as_list(cells)
    if isinstance(cells, Coded) or not set(map(type, indices)) <= {int, type(None)}:
        return cells
    known = [-1 if index is None or index >= len(names) else max(index, -1) for index in indices]
    return Coded(np.array(known, np.int32), names)


def _selected(selection: Selection, schema: Any) -> dict[Name, list[str]]:
    """Return the path of each selected column of a table: its name, then those of inner fields.

    The name `a.b` means the field b of a column a.
    """
    present: list[str] = schema.names
    for each in present:
        if present.count(each) > 1:
            raise UnreadableError(None, f"column {quote(each)} occurs twice; name each column once")
    paths: dict[Name, list[str]] = {name: [name] for name in present}
    for name in (*(selection.required or ()), *selection.optional):
        path = str(name).split(".")
        if str(name) in present:
            paths[name] = [str(name)]
        elif path[0] in present and _holds(schema.field(path[0]).type, path[1:]):
            paths[name] = path
    chosen = present if selection.required is None else selection.among(paths)
    return {name: paths[name] for name in chosen}


def _holds(kind: Any, fields: list[str]) -> bool:
    """Return True if a type has a field inside its fields, such as b of struct<a: struct<b>>."""
    for field in fields:
        if not import_arrow().types.is_struct(kind) or kind.get_field_index(field) < 0:
            return False
        kind = kind.field(field).type
    return True


def _coded(column: Any, convert: Callable[[Any], Any] | None = None) -> Coded:
    column = column.dictionary_encode()
    values = column.dictionary.to_pylist()
    if convert is not None:
        values = [convert(value) for value in values]
    return Coded(_indices(column), values)


def _indices(column: Any) -> Any:
    # Those of polars are unsigned, and a missing cell is -1.
    return column.indices.cast("int32").fill_null(-1).to_numpy(zero_copy_only=False)
