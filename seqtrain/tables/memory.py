"""Tables in memory, passed from Python: DataFrames, datasets, dicts of columns, lists of dicts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.util import find_spec
from itertools import chain
from typing import Any

import numpy as np

from seqtrain.errors import DataError
from seqtrain.tables.arrow import named_classes, read_frame
from seqtrain.tables.blocks import (
    EVERYTHING,
    Block,
    Cells,
    Coded,
    Selection,
    Source,
    UnreadableError,
    as_list,
    cells_at,
    located,
)
from seqtrain.tables.json_lines import field_of
from seqtrain.tables.python_values import array_of, cells_of_values

MEMORY_ROWS = 1 << 12
"""Largest number of rows of a block of a table in memory."""
EXPECTED_TABLE = (
    "a DataFrame, a Dataset, a dict of lists, or a list of dicts, whose columns have the names "
    "that the config gives"
)


class TableSource(Source):
    """A table in memory as a source of rows. The line of a row is its number, from 1.

    None of the packages whose tables are read is imported. A table has the PyCapsule interface of
    Arrow, or it lists the names of its columns (`column_names`, `columns` or its keys) and returns
    a column by its name.

    Args:
        data: The table.
        name: Name for messages.

    Raises:
        DataError: If `data` is no table, or two columns have one name.
    """

    def __init__(self, data: Any, name: str = "data") -> None:
        names = columns_of(data)
        if names is None:
            raise DataError(
                f"{name}: found an object of type {type(data).__name__}; expected a file, or "
                f"{EXPECTED_TABLE}"
            )
        self.data = data
        self.name = name
        self.columns = dict[str, Any]()
        for each in names:
            if str(each) in self.columns:
                raise DataError(f"{name}: the column {each} occurs twice; name each column once")
            self.columns[str(each)] = each

    def blocks(self, selection: Selection = EVERYTHING, rows: int | None = None) -> Iterator[Block]:
        """Yield the rows of the table.

        Args:
            selection: Columns to read.
            rows: Largest number of rows of a block, or None for `MEMORY_ROWS`.

        Raises:
            DataError: If a column is missing, isn't a list of cells, or has another length.
        """
        try:
            if _is_arrow(self.data):
                yield from read_frame(self.data, selection)
                return
            named = (*(selection.required or ()), *selection.optional)
            present = [*self.columns, *(name for name in named if self._has(str(name)))]
            chosen = selection.among(self.columns if selection.required is None else present)
            columns = {name: self._cells(str(name)) for name in chosen}
        except UnreadableError as error:
            raise located(self.name, error) from None
        sizes = {name: len(cells) for name, cells in columns.items()}
        if len(set(sizes.values())) > 1:
            found = ", ".join(f"{size} values of {name}" for name, size in sizes.items())
            raise DataError(f"{self.name}: found {found}; expected equally many of each column")
        total = next(iter(sizes.values()), 0)
        size = rows or MEMORY_ROWS
        for start in range(0, total, size):
            some = np.arange(start, min(start + size, total))
            yield Block({name: cells_at(x, some) for name, x in columns.items()}, some + 1)

    def digest(self, selection: Selection = EVERYTHING) -> str:
        """Return a SHA-256 of the cells of the selected columns."""
        digest = sha256()
        for block in self.blocks(selection):
            for name, cells in block.columns.items():
                digest.update(str(name).encode())
                digest.update(_bytes_of(cells))
        return digest.hexdigest()

    def _has(self, name: str) -> bool:
        """Return True if there may be a column, or a field `a.b` of the objects in a column."""
        return name in self.columns or ("." in name and name.partition(".")[0] in self.columns)

    def _cells(self, name: str) -> Cells:
        """Return the cells of a column, or of a field `a.b` of objects."""
        if name not in self.columns:
            first, _, rest = name.partition(".")
            fields = []
            for each in as_list(self._cells(first)):
                try:
                    fields.append(field_of(each or {}, rest))
                except LookupError:
                    fields.append(None)
            return fields
        cells = cells_of_values(self._values(name))
        features = getattr(self.data, "features", None)
        if isinstance(features, dict):  # of a Dataset of Hugging Face
            classes = getattr(features.get(name), "names", None)
            cells = named_classes(cells, classes) if classes else cells
        return cells

    def _values(self, name: str) -> Any:
        """Return a column as the table gives it.

        Raises:
            DataError: If the column isn't a list of cells.
        """
        key = self.columns[name]
        if isinstance(self.data, list | tuple):
            return [row.get(key) for row in self.data]
        if hasattr(self.data, "with_format"):  # a Dataset: by columns of Arrow, not row by row
            blocks = read_frame(self.data.with_format("arrow")[:], Selection((key,)))
            return list(chain.from_iterable(as_list(block.columns[key]) for block in blocks))
        values = self.data[key]
        is_one = isinstance(values, str | Mapping) or getattr(values, "ndim", 1) == 0
        if is_one or not hasattr(values, "__len__"):
            if isinstance(self.data, Mapping):
                row = "; for one row give a list of it: [row]"
            else:
                row = ""
            raise DataError(
                f"{self.name}: the column {name} is a {type(values).__name__}; expected its "
                f"values{row}"
            )
        return values


def columns_of(data: Any) -> list[Any] | None:
    """Return the names of a table's columns, or None if `data` is no table.

    Raises:
        DataError: If `data` is a dict of tables, such as the splits of a Dataset.
    """
    if isinstance(data, list | tuple):
        is_table = bool(data) and all(isinstance(row, Mapping) for row in data)
        if is_table:
            return list(dict.fromkeys(chain.from_iterable(data)))
        return None
    if not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
        return None
    keys = data.keys() if isinstance(data, Mapping) else None
    names = getattr(data, "column_names", getattr(data, "columns", keys))
    if isinstance(names, Mapping):
        one = next(iter(names), "train")
        raise DataError(f"data: found several tables: {', '.join(names)}; give one: data['{one}']")
    if names is None:
        return None
    return list(names)


def _is_arrow(data: Any) -> bool:
    """Return True if a table is read by the PyCapsule interface of Arrow.

    DataFrames of pandas are read column by column: their columns may mix types, or hold tensors.
    """
    is_pandas = type(data).__module__.partition(".")[0] == "pandas"
    has_interface = hasattr(data, "__arrow_c_stream__") and not is_pandas
    return has_interface and find_spec("pyarrow") is not None


def _bytes_of(cells: Cells) -> bytes:
    if isinstance(cells, Coded):
        return np.ascontiguousarray(cells.codes).tobytes() + _bytes_of(cells.values)
    if isinstance(cells, np.ndarray):
        return f"{cells.dtype}{cells.shape}".encode() + np.ascontiguousarray(cells).tobytes()
    return json.dumps(cells, default=_described).encode()


def _described(value: Any) -> Any:
    """Convert a value that JSON can't represent to its text, or to the digest of an array."""
    array = array_of(value) if getattr(value, "ndim", 0) else None
    if array is None:
        return str(value)
    digest = sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return [str(array.dtype), array.shape, digest]
