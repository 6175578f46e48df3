"""Binary formats: arrays of NumPy (npz, npy), parquet, arrow and xlsx.

An npz file contains either

- `values` (N,) or (N, C); `offsets` (B + 1,), the borders of the sequences, or `lengths` (B,); and
  `labels` (B,), integers or strings; or
- `X` (B, T) or (B, T, C), and `y` (B,). Missing values at the end of a row are no time steps.

Kind features takes numbers of any type. Kind tokens takes integers of shape (N,). A .npy file
contains `X`; its labels are in another file: y.npy next to X.npy, y_train.npy next to X_train.npy.
"""

import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from seqtrain.data.examples import Example
from seqtrain.data.readers.cells import read_objects
from seqtrain.data.readers.opening import BOMB_FREE_BYTES, BOMB_RATIO, refuse_bomb
from seqtrain.data.readers.row_source import RowSource
from seqtrain.data.readers.sequences import duration_text, features_from_array, plain
from seqtrain.data.readers.step_cells import Rows
from seqtrain.data.store import Array
from seqtrain.errors import ConfigError, DataError, SeqtrainError, missing_package
from seqtrain.text import one_line, quote

FLAT = ("values", "offsets", "lengths", "labels")
NAMES = {
    **dict.fromkeys(("X", "x", "X_train", "x_train"), "X"),
    **dict.fromkeys(("y", "Y", "y_train"), "labels"),
    **{name: name for name in FLAT},
}
"""Meaning of the names of arrays. Of several names for the same, the first one counts."""
NPY = b"\x93NUMPY"
DAMAGE = (OSError, ValueError, EOFError, KeyError, NotImplementedError, RuntimeError)
ROWS = 1024
"""Largest number of rows in memory at a time."""
NUMBER_BYTES = 8
COLUMNS = "the columns"
Opened: TypeAlias = tuple[Any, Callable[[list[str]], Iterable[Any]]]
"""Schema of a file, and a function that yields batches of certain columns."""
FEW_SYMBOLS = 1000
"""Largest number of distinct whole numbers of one channel that may be symbols."""


def read_npz(source: RowSource) -> Iterator[Example]:
    """Read sequences from arrays, which are held in memory. The line is the row, from 1."""
    name, is_tokens = source.problems.name, source.schema.kind == "tokens"
    arrays = _load(source.stream, name)
    values, borders = _rectangle(arrays, name) if "X" in arrays else _flat(arrays, name)
    if is_tokens and (values.ndim > 1 or values.dtype.kind == "f"):
        raise _unfit(name, "values", "integers (N,)", values)
    labels = None
    if source.labelled or "labels" in arrays:
        labels = _labels(_array(arrays, "labels", name), len(borders) - 1, name)

    def parse(row: int) -> tuple[Any, ...]:
        piece = values[borders[row] : borders[row + 1]]
        label = None if labels is None else source.labels(labels[row])
        if is_tokens:
            return [str(symbol) for symbol in piece.tolist()], label
        return features_from_array(piece if piece.ndim == 2 else piece[:, None]), label

    return source.examples(enumerate(range(len(borders) - 1), start=1), parse)


def labels_file(path: str) -> str:
    """Return the path of the labels of a .npy file, or an empty text if there is none."""
    folder, name = os.path.split(path)
    found = os.path.join(folder, re.sub("(?<![a-zA-Z])[xX](?![a-zA-Z])", "y", name))
    return found if found != path and name.endswith(".npy") and os.path.isfile(found) else ""


def _load(stream: BinaryIO, name: str) -> dict[str, Array]:
    """Return the known arrays of a file. numpy refuses objects, which would run code."""
    try:
        if not stream.seekable():  # as a compressed one isn't
            stream = io.BytesIO(stream.read())
        is_one = stream.read(6) == NPY
        stream.seek(0)
        if is_one:
            labels = labels_file(getattr(stream, "name", ""))
            files: dict[str, Any] = {"X": stream, **({"labels": labels} if labels else {})}
            return {key: np.load(file, allow_pickle=False) for key, file in files.items()}
        with zipfile.ZipFile(stream) as archive:
            entries = archive.infolist()
        packed = sum(entry.compress_size for entry in entries)
        refuse_bomb("the arrays", sum(entry.file_size for entry in entries), packed)
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as loaded:
            names = FLAT if "values" in loaded.files else NAMES
            known = [key for key in names if key in loaded.files]
            return {NAMES[key]: np.asarray(loaded[key]) for key in reversed(known)}
    except MemoryError:
        raise DataError(f"{name}: the arrays do not fit into memory") from None
    except (*DAMAGE, zipfile.BadZipFile, zlib.error) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{name}: not a sound npz file of plain arrays ({reason})") from None


def _rectangle(arrays: dict[str, Array], name: str) -> tuple[Array, list[int]]:
    """Return the steps of X (B, T) or (B, T, C), one after another, and their B + 1 borders."""
    x = arrays["X"]
    if x.ndim not in (2, 3) or x.dtype.kind not in "iuf" or 0 in x.shape[1:]:
        raise _unfit(name, "X", "numbers (B, T) or (B, T, C), a series per row", x)
    known = np.ones(x.shape[:2], dtype=bool)
    if x.dtype.kind == "f":
        missing = np.asarray(np.isnan(x).reshape(*x.shape[:2], -1).all(axis=2))
        known = np.cumsum(~missing[:, ::-1], axis=1)[:, ::-1] > 0
    return x[known], [0, *known.sum(axis=1).cumsum().tolist()]


def _flat(arrays: dict[str, Array], name: str) -> tuple[Array, list[int]]:
    """Return the values, and the B + 1 borders of the sequences in them."""
    values, key = _array(arrays, "values", name), "offsets" if "offsets" in arrays else "lengths"
    if values.ndim not in (1, 2) or values.dtype.kind not in "iuf" or 0 in values.shape[1:]:
        raise _unfit(name, "values", "numbers (N,) or (N, C), the steps of all sequences", values)
    if "offsets" in arrays and "lengths" in arrays:
        raise DataError(f"{name}: expected exactly one of the arrays offsets and lengths")
    found = _array(arrays, key, name)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise _unfit(name, key, "integers (B,)", found)
    borders = found.tolist() if key == "offsets" else [0, *accumulate(found.tolist())]
    if borders[:1] != [0] or borders[-1] != len(values) or (np.diff(borders) < 0).any():
        expected = f"expected to cover 0 to {len(values)}, the values, row by row"
        raise DataError(f"{name}: {key}: {expected}; found {borders[:1]} to {borders[-1:]}")
    return values, borders


def _labels(labels: Array, rows: int, name: str) -> list[str]:
    if labels.dtype.kind == "f" and np.array_equal(labels, np.rint(labels)):
        labels = labels.astype(np.int64)
    if labels.size != rows or labels.dtype.kind not in "iuU":
        raise _unfit(name, "labels", f"integers or strings ({rows},)", labels)
    try:  # numpy itself fails with a SystemError on numbers that no character has
        found = [str(label) for label in labels.ravel().tolist()]
        "".join(found).encode()
    except (SystemError, ValueError):
        raise DataError(f"{name}: labels: a string holds what is no character") from None
    return found


def _array(arrays: dict[str, Array], key: str, name: str) -> Array:
    if key not in arrays:
        found = ", ".join(arrays) or "none"
        expected = "values, offsets or lengths, labels"
        other = "or X and y: numpy.savez('data.npz', X=X, y=y), or y.npy next to X.npy"
        raise DataError(f"{name}: no array {key}; found {found}; expected {expected}; {other}")
    return arrays[key]


def _unfit(name: str, key: str, expected: str, array: Array) -> DataError:
    found = f"{array.dtype} {array.shape}"
    return DataError(f"{name}: {key}: expected {expected}, found {found}")


def read_arrow(source: RowSource) -> Iterator[Example | Rows]:
    """Read the rows of a parquet file, or of a file or stream of Arrow.

    The line is the row, from 1.

    Raises:
        ConfigError: If pyarrow isn't installed.
        DataError: If the file isn't sound, lacks a column, or expands like a bomb.
    """
    arrow, schema, name = _pyarrow(), source.schema, source.problems.name
    try:
        size = source.stream.seek(0, os.SEEK_END)
        source.stream.seek(0)
        opened = _open_parquet if source.format.name == "parquet" else _open_arrow
        file_schema, batches = opened(source.stream, size)
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

        rows = _rows(batches(schema.columns_read(columns, source.keep)), size)
        yield from read_objects(source, enumerate(rows, start=1), with_class_name)
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise DataError(
            f"{name}: not a sound {source.format.name} file ({one_line(str(error))})"
        ) from None


def cells_of_column(column: Any) -> list[Any]:
    """Return the cells of an Arrow column as values of Python.

    Dates and times become text, and durations seconds as text: Python's own types have no
    nanoseconds.
    """
    types = _pyarrow().types
    if types.is_temporal(column.type) and not types.is_interval(column.type):
        if types.is_duration(column.type):
            unit = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[column.type.unit]
            numbers = column.cast(_pyarrow().int64()).to_pylist()
            return [None if x is None else duration_text(x, unit) for x in numbers]
        column = column.cast(_pyarrow().string())
    cells: list[Any] = column.to_pylist()
    return cells


def _open_arrow(stream: BinaryIO, size: int) -> Opened:
    is_stream = stream.read(6) != b"ARROW1"
    stream.seek(0)
    file = _pyarrow().ipc.open_stream(stream) if is_stream else _pyarrow().ipc.open_file(stream)
    batches = file if is_stream else map(file.get_batch, range(file.num_record_batches))
    return file.schema, lambda columns: (batch.select(columns) for batch in batches)


def _open_parquet(stream: BinaryIO, size: int) -> Opened:
    file = _pyarrow().parquet.ParquetFile(stream)
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

    return file.schema_arrow, batches


def _rows(batches: Iterable[Any], size: int) -> Iterator[dict[str, Any]]:
    content = 0
    for batch in batches:
        decoded = [getattr(x, "dictionary_decode", lambda x=x: x)() for x in batch.columns]
        content += sum(column.nbytes for column in decoded)
        refuse_bomb(COLUMNS, content, size)
        for cells in zip(*map(cells_of_column, decoded), strict=True):
            yield dict(zip(batch.schema.names, cells, strict=True))


def _class_names(metadata: dict[bytes, bytes], label: object) -> list[str]:
    """Return the class names that Hugging Face's datasets keep in a file, or none."""
    try:
        features = json.loads(metadata[b"huggingface"])["info"]["features"]
        names = features[label]["names"]
    except (LookupError, TypeError, ValueError):
        return []
    return names if isinstance(names, list) and all(isinstance(n, str) for n in names) else []


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise missing_package("format parquet", "pyarrow", "parquet") from None
    return pyarrow


def read_xlsx(source: RowSource) -> Iterator[Example | Rows]:
    """Read the rows of the first sheet, whose first row names the columns.

    Blank rows are skipped. The line is the row of the sheet, from 1.

    Raises:
        ConfigError: If openpyxl isn't installed.
        DataError: If the file isn't a sound workbook, or a column has no name or that of another.
    """
    name = source.problems.name
    try:
        import openpyxl
    except ImportError:
        (problem,) = missing_package("format xlsx", "openpyxl", "excel").problems
        raise ConfigError(f"{problem}; or save the sheet as csv") from None
    content = source.stream.read()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            sizes = sum(entry.file_size for entry in archive.infolist())
        refuse_bomb("the sheets", sizes, len(content))
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        rows = book.worksheets[0].iter_rows(values_only=True)
        line, names = next(
            ((i, x) for i, x in enumerate(rows, 1) if any(map(_is_there, x))), (0, ())
        )
        while names and not _is_there(names[-1]):
            names = names[:-1]
        titles = ["" if title is None else str(title) for title in names]
        twice = next((title for title in titles if title and titles.count(title) > 1), None)
        if twice is not None:
            source.problems.fail(line, f"column {quote(twice)} occurs twice in the first row")
        table = (
            (
                number,
                {title: plain(cell) for title, cell in zip(titles, row, strict=False) if title},
            )
            for number, row in enumerate(rows, line + 1)
            if any(map(_is_there, row))
        )
        yield from read_objects(source, table)
    except SeqtrainError:
        raise
    except Exception as error:  # openpyxl raises errors of many classes for a damaged file
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{name}: not a sound xlsx file ({reason})") from None


def _is_there(cell: Any) -> bool:
    return cell is not None and cell != ""
