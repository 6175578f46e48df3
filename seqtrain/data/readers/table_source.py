"""Tables that are given from Python, as sources of rows.

A table is a DataFrame (pandas, polars), a Dataset of Hugging Face, a table of pyarrow, a dict of
lists, or a list of dicts. None of these packages is imported. A table only needs to list the names
of its columns (`column_names`, `columns` or its keys), and to return a column by its name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from hashlib import sha256
from itertools import chain, islice
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from seqtrain.data.examples import Example, RowProblems
from seqtrain.data.read_options import Column, FileFormat, Schema, keeps_all, missing_name
from seqtrain.data.readers.cells import read_objects
from seqtrain.data.readers.row_source import RowSource
from seqtrain.data.readers.sequences import plain
from seqtrain.data.readers.step_cells import Rows
from seqtrain.data.readers.time_steps import AT_ONCE
from seqtrain.errors import DataError
from seqtrain.files.formats import IN_MEMORY, MEMORY

EXPECTED_TABLE = (
    "a DataFrame, a Dataset, a dict of lists, or a list of dicts, whose columns have the names "
    "that the config gives"
)
ROWS = 1024
"""Rows that become JSON values at a time."""
LABEL_TYPE_NAMES = {bool: "boolean", int: "integer", float: "integer"}
"""Names in `LABEL_TYPES` of the types of labels that aren't text.

Blank cells make integers floats in pandas; other floats are no labels.
"""
JSON_TYPES = {str, int, bool, type(None)}
"""Types of cells that JSON has, and that aren't missing."""


class TableSource:
    """A table in memory as a source of rows.

    Attributes:
        name: Name for messages.
        path: Name by which a config refers to the table, and a key of digests.
        format: `IN_MEMORY`, with the other fields as in a file of text.
        schema: Which columns mean what.
        keep: Columns that are copied to `Example.kept`.
        bad_rows: ``"error"``, ``"drop"`` or ``"blank"``.
        columns: The table's own names of its columns, by their names as text.
        values: The columns that are read, by name.

    Args:
        data: The table.

    Raises:
        DataError: If `data` is no table, or its columns aren't equally long.
    """

    def __init__(
        self,
        data: Any,
        schema: Schema,
        name: str = "data",
        *,
        keep: Sequence[Column] = (),
        bad_rows: str = "error",
        decimal: str = ".",
    ) -> None:
        names = columns_of(data)
        self.data, self.schema, self.name = data, schema, name
        self.keep, self.bad_rows = keep, bad_rows
        self.format = FileFormat(IN_MEMORY, decimal=decimal)
        if names is None:
            found = f"found a {type(data).__name__}"
            raise DataError(f"{name}: {found}; expected a file, or {EXPECTED_TABLE}")
        twice = next((each for each in names if names.count(each) > 1), None)
        if twice is not None:
            raise DataError(f"{name}: the column {twice} occurs twice; name each column once")
        self.columns = {str(each): each for each in names}
        read = schema.columns_read([*self.columns], keep)
        self.values = {column: self._column(self.columns[column]) for column in read}
        sizes = {column: len(values) for column, values in self.values.items()}
        if len({*sizes.values()}) > 1:
            found = ", ".join(f"{size} values of {column}" for column, size in sizes.items())
            raise DataError(f"{name}: found {found}; expected equally many of each column")
        self._digest: str | None = None

    @property
    def path(self) -> str:
        """Name by which a config refers to the table: it changes with the content."""
        return f"{MEMORY}{self.name}-{self.digest()[:16]}"

    def digest(self) -> str:
        """Return the SHA-256 of the columns that are read."""
        if self._digest is None:
            for _ in self._rows():
                pass
        assert self._digest is not None
        return self._digest

    def opened(self, problems: RowProblems, *, labelled: bool) -> RowSource:
        """Return the source as it is read once; see `FileSource.opened`."""
        return RowSource(
            self.name,
            self.format,
            self.schema,
            self.keep,
            self.bad_rows,
            problems=problems,
            labelled=labelled,
            at_once=AT_ONCE,
        )

    def read(self, opened: RowSource) -> Iterator[Example | Rows]:
        """Yield the rows. The line is the row, from 1."""
        schema, name = opened.schema, self.name
        sequence: list[Column] = schema.sequence_columns()
        if not sequence and schema.kind == "features":
            others = {*map(str, [*schema.label_columns, schema.group])}
            sequence = [x for x in self.values if x not in others]
        elif not sequence and not keeps_all(opened.keep):
            raise DataError(
                f"{name}: the model has no column names; give a list, such as list(data['text'])"
            )
        for column in map(str, [*sequence, *(schema.label_columns if opened.labelled else ())]):
            if not {column, column.partition(".")[0]} & self.values.keys():
                raise DataError(f"{name}: {missing_name('column', column, self.columns)}")
        if schema.steps is None:
            opened = replace(opened, schema=replace(schema, sequence=sequence))
        return read_objects(opened, enumerate(self._rows(), start=1), with_indexes=True)

    def label_type(self) -> str:
        """Return the name of the type of the labels, a key of `LABEL_TYPES`.

        Labels of several types are text. Cells without a label are ignored.
        """
        cells = self.values.get(str(self.schema.label), ())
        rows = (cell if type(cell) is list else [cell] for cell in cells)
        examples = {type(label): label for label in chain.from_iterable(rows)}
        found = {type(plain(example)) for example in examples.values()} - {type(None)}
        return LABEL_TYPE_NAMES.get(found.pop(), "text") if len(found) == 1 else "text"

    def with_schema(self, schema: Schema) -> TableSource:
        """Return the same table, read by another schema of the same columns."""
        other = copy(self)
        other.schema = schema
        return other

    def _rows(self) -> Iterator[dict[str, Any]]:
        """Yield each row as JSON values. Arrays of numbers are kept in columns of sequences.

        Raises:
            DataError: At the end, if the table has changed since the digest was first computed.
        """
        digest = sha256()
        columns = {name: iter(values) for name, values in self.values.items()}
        for _ in range(0, max(map(len, self.values.values()), default=0), ROWS):
            part = {name: self._plain(name, [*islice(x, ROWS)]) for name, x in columns.items()}
            digest.update(json.dumps(part, sort_keys=True, default=_described).encode())
            for cells in zip(*part.values(), strict=True):
                yield dict(zip(columns, cells, strict=True))
        if self._digest not in (None, digest.hexdigest()):
            raise DataError(f"{self.name}: was changed since it was given; give it again")
        self._digest = digest.hexdigest()

    def _plain(self, name: str, cells: list[Any]) -> list[Any]:
        schema, kinds = self.schema, {*map(type, cells)}
        if schema.kind == "features" and [*map(str, schema.sequence_columns())] == [name]:
            return [x if getattr(x, "ndim", 0) and hasattr(x, "dtype") else plain(x) for x in cells]
        if kinds <= {*JSON_TYPES, float}:
            return [None if x != x else x for x in cells] if float in kinds else cells
        return [*map(plain, cells)]

    def _column(self, name: Any) -> Any:
        """Return the values of a column, with the names of classes in place of their numbers."""
        if isinstance(self.data, list | tuple):
            return [row.get(name) for row in self.data]
        if hasattr(self.data, "with_format"):  # a Dataset: by Arrow columns, not row by row
            values: Any = self.data.with_format("arrow")[:][name]
        else:
            values = self.data[name]
        if isinstance(values, str | Mapping) or not hasattr(values, "__len__"):
            row = "; for one row give a list of it: [row]" if isinstance(self.data, Mapping) else ""
            found = f"{self.name}: the column {name} is a {type(values).__name__}"
            raise DataError(f"{found}; expected its values{row}")
        if hasattr(values, "combine_chunks"):  # a column of pyarrow
            from seqtrain.data.readers.parquet import cells_of_column

            values = cells_of_column(values)
        features = getattr(self.data, "features", None)
        feature = features.get(name) if isinstance(features, dict) else None
        classes = dict(enumerate(getattr(feature, "names", None) or ()))
        if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind not in "mM":
            return values.tolist()
        return [classes.get(x) if type(x) is int else x for x in values] if classes else values


def columns_of(data: Any) -> list[Any] | None:
    """Return the names of a table's columns, or None if `data` is no table."""
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


_TABLES: WeakValueDictionary[int, TableSource] = WeakValueDictionary()


def remember_table(table: TableSource) -> TableSource:
    """Make a table known by its path to configs, for as long as something else holds it."""
    _TABLES[id(table)] = table
    return table


def table_named(path: str, key: str = "data") -> TableSource:
    """Return the table to which a config refers, the last one of several equal tables.

    Raises:
        DataError: If the table isn't in memory any more.
    """
    found = [table for table in _TABLES.values() if table.path == path]
    if not found:
        again = f"pass it again ({key.removeprefix('data.')}=…), or score a labelled file (--data)"
        raise DataError(f"{key}: {path} was a table in Python that isn't in memory now; {again}")
    return found[-1]


def _described(value: Any) -> Any:
    """Return what the digest of a row contains for a value that JSON doesn't have."""
    if getattr(value, "ndim", 0):
        array = np.ascontiguousarray(value.detach().cpu() if hasattr(value, "detach") else value)
        return [str(array.dtype), array.shape, sha256(array.tobytes()).hexdigest()]
    return str(value)
