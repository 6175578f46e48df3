"""Format memory: the rows of a table given from Python.

A table is a DataFrame (pandas, polars), a Dataset of Hugging Face, a table of pyarrow, a dict of
lists, or a list of dicts. None of these packages is imported: a table lists the names of its
columns (`column_names`, `columns` or its keys), and gives a column by its name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from itertools import chain, islice
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from seqtrain.config.formats import MEMORY
from seqtrain.data.examples import Column, Example, ReadOptions, keeps_all, missing_name
from seqtrain.data.readers.cells import read_objects
from seqtrain.data.readers.opening import RowSource
from seqtrain.data.readers.sequences import plain
from seqtrain.data.readers.time_steps import Rows
from seqtrain.errors import DataError

TABLES = (
    "a DataFrame, a Dataset, a dict of lists, or a list of dicts, whose columns have the names "
    "that the config gives"
)
HELD: WeakValueDictionary[int, MemoryTable] = WeakValueDictionary()
"""Tables that a config may name while anybody holds them, in the order in which they were given."""
ROWS = 1024
"""Rows that become JSON at a time."""
JSON_TYPES = {str, int, bool, type(None)}
"""Types of cells that JSON has, and that aren't missing."""


class MemoryTable:
    """Rows in memory, read as a file's are.

    Attributes:
        columns: by their names as text, as they are named.
        values: of the columns that are read, by name.
        digest: SHA-256 of what is read, once it is held.
        path: what a config says in place of a file, once it is held.
    """

    digest = path = ""

    def __init__(self, data: Any, options: ReadOptions, name: str = "data") -> None:
        names = columns_of(data)
        self.data, self.options, self.name = data, options, name
        if names is None:
            raise DataError(f"{name}: found a {type(data).__name__}; expected a file, or {TABLES}")
        twice = next((each for each in names if names.count(each) > 1), None)
        if twice is not None:
            raise DataError(f"{name}: the column {twice} occurs twice; name each column once")
        self.columns = {str(each): each for each in names}
        read = options.columns_of([*self.columns])
        self.values = {column: self._column(self.columns[column]) for column in read}
        sizes = {column: len(values) for column, values in self.values.items()}
        if len({*sizes.values()}) > 1:
            found = ", ".join(f"{size} values of {column}" for column, size in sizes.items())
            raise DataError(f"{name}: found {found}; expected equally many of each column")

    def hold(self) -> MemoryTable:
        """Make the table readable under its path, for as long as it lives."""
        for _ in self.rows():
            pass
        self.path = f"{MEMORY}{self.name}-{self.digest[:16]}"
        HELD[id(self)] = self
        return self

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each row as JSON has it (arrays of numbers stay some, where they are a sequence).

        Raises:
            DataError: at the end, if other rows were there when it was held.
        """
        digest = sha256()
        columns = {name: iter(values) for name, values in self.values.items()}
        for _ in range(0, max(map(len, self.values.values()), default=0), ROWS):
            some = {name: self._plain(name, [*islice(x, ROWS)]) for name, x in columns.items()}
            digest.update(json.dumps(some, sort_keys=True, default=_described).encode())
            for cells in zip(*some.values(), strict=True):
                yield dict(zip(columns, cells, strict=True))
        if self.digest not in ("", digest.hexdigest()):
            raise DataError(f"{self.name}: was changed since it was given; give it again")
        self.digest = digest.hexdigest()

    def _plain(self, name: str, cells: list[Any]) -> list[Any]:
        options, kinds = self.options, {*map(type, cells)}
        if options.kind == "features" and [*map(str, options.sequence_columns())] == [name]:
            return [x if getattr(x, "ndim", 0) and hasattr(x, "dtype") else plain(x) for x in cells]
        if kinds <= {*JSON_TYPES, float}:
            return [None if x != x else x for x in cells] if float in kinds else cells
        return [*map(plain, cells)]

    def _column(self, name: Any) -> Any:
        """Return the values of a column; the names of classes in place of their numbers."""
        if isinstance(self.data, list | tuple):
            return [row.get(name) for row in self.data]
        values: Any = self.data[name]
        if isinstance(values, str | Mapping) or not hasattr(values, "__len__"):
            row = "; for one row give a list of it: [row]" if isinstance(self.data, Mapping) else ""
            found = f"{self.name}: the column {name} is a {type(values).__name__}"
            raise DataError(f"{found}; expected its values{row}")
        features = getattr(self.data, "features", None)
        feature = features.get(name) if isinstance(features, dict) else None
        classes = dict(enumerate(getattr(feature, "names", None) or ()))
        if isinstance(values, np.ndarray) and values.ndim == 1:
            return values.tolist()
        return [classes.get(x) if type(x) is int else x for x in values] if classes else values


def columns_of(data: Any) -> list[Any] | None:
    """Return the names of a table's columns; None: it is no table."""
    if isinstance(data, list | tuple):
        is_table = bool(data) and all(isinstance(row, Mapping) for row in data)
        return list(dict.fromkeys(chain.from_iterable(data))) if is_table else None
    if not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
        return None
    keys = data.keys() if isinstance(data, Mapping) else None
    names = getattr(data, "column_names", getattr(data, "columns", keys))
    if isinstance(names, Mapping):
        one = next(iter(names), "train")
        raise DataError(f"data: found several tables: {', '.join(names)}; give one: data['{one}']")
    return None if names is None else list(names)


def held_table(path: str, key: str = "data") -> MemoryTable:
    """Return the table that a config names, given last; a DataError where nobody holds it."""
    found = [table for table in HELD.values() if table.path == path]
    if not found:
        again = f"give it again there ({key.removeprefix('data.')}=…), or a labelled file (--data)"
        raise DataError(f"{key}: {path} was given from Python, and isn't in memory now; {again}")
    return found[-1]


def read_memory(source: RowSource) -> Iterator[Example | Rows]:
    """Read the rows of a table; the line is the row, from 1."""
    table, name, options = source.stream, source.problems.name, source.options
    assert isinstance(table, MemoryTable)
    own: list[Column] = options.sequence_columns()
    if not own and options.kind == "features":
        own = [x for x in table.values if x not in (str(options.label), str(options.group))]
    elif not own and not keeps_all(options.keep):
        raise DataError(f"{name}: the model names no columns; give sequences: list(data['text'])")
    for column in map(str, [*own, *([options.label] * source.labelled)]):
        if not {column, column.partition(".")[0]} & table.values.keys():
            raise DataError(f"{name}: {missing_name('column', column, table.columns)}")
    source = replace(source, options=replace(options, sequence=own))
    return read_objects(source, enumerate(table.rows(), start=1))


def _described(value: Any) -> Any:
    """Return what a digest has for an array, or another value that JSON doesn't have."""
    if getattr(value, "ndim", 0):
        array = np.ascontiguousarray(value.detach().cpu() if hasattr(value, "detach") else value)
        return [str(array.dtype), array.shape, sha256(array.tobytes()).hexdigest()]
    return str(value)
