"""Tables in memory, passed from Python, as sources of rows.

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

from seqtrain.errors import DataError
from seqtrain.files.formats import IN_MEMORY, MEMORY
from seqtrain.sequences.examples import Example, RowProblems
from seqtrain.sequences.read_options import Column, FileFormat, Schema, keeps_all, missing_name
from seqtrain.sequences.readers.named_cells import read_objects
from seqtrain.sequences.readers.row_source import RowSource
from seqtrain.sequences.readers.sequences import PER_SECOND, duration_text, plain, time_text
from seqtrain.sequences.readers.step_cells import Rows
from seqtrain.sequences.readers.time_steps import AT_ONCE

EXPECTED_TABLE = (
    "a DataFrame, a Dataset, a dict of lists, or a list of dicts, whose columns have the names "
    "that the config gives"
)
ROWS = 1024
"""Number of rows that are converted to JSON values at a time."""
LABEL_TYPE_NAMES = {bool: "boolean", int: "integer", float: "integer"}
"""Maps each Python type of labels to its name in `LABEL_TYPES`. Other types are text.

Floats are integers, because pandas converts integers to floats if a cell is blank.
"""
JSON_TYPES = {str, int, bool, type(None)}
"""Types of cells that are JSON values already."""


class TableSource:
    """A table in memory as a source of rows.

    Attributes:
        name: Name of the table in messages.
        path: Name by which a config refers to the table. It is also the table's key in `Digests`.
        format: File format whose name is `IN_MEMORY`, with the decimal mark of numbers in texts.
        schema: Meaning of the columns: sequence, label, group, and so on.
        keep: Columns whose cells are copied to `Example.kept`.
        bad_rows: ``"error"``, ``"drop"`` or ``"blank"``.
        columns: Maps the name of each column, as text, to its name in the table, of any type.
        values: Maps the name of each column that is read, as text, to its cells.

    Args:
        data: The table.
        decimal: Decimal mark of numbers in texts: ``"."`` or ``","``.

    Raises:
        DataError: If `data` is no table, two columns have one name, or the lengths of the columns
            differ.
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
            found = f"found an object of type {type(data).__name__}"
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
        """Name by which a config refers to the table. It contains a digest of the content."""
        return f"{MEMORY}{self.name}-{self.digest()[:16]}"

    def digest(self) -> str:
        """Return the SHA-256 of the columns that are read."""
        if self._digest is None:
            for _ in self._rows():
                pass
        assert self._digest is not None
        return self._digest

    def opened(self, problems: RowProblems, *, labelled: bool) -> RowSource:
        """Return the options of one reading, as an argument of `read`.

        Args:
            problems: Collector of the problems with rows.
            labelled: True if every row must have a label.
        """
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
        """Yield the table's rows: examples, or blocks of rows if rows are time steps.

        The line number of a row is its number, from 1.

        Args:
            opened: The options of this reading, as `self.opened(…)` returns them.

        Raises:
            DataError: If the table lacks a column, or has changed since its digest was computed.
        """
        schema, name = opened.schema, self.name
        sequence: list[Column] = schema.sequence_columns()
        if not sequence and schema.kind == "features":
            others = {*map(str, [*schema.label_columns, schema.group])}
            sequence = [x for x in self.values if x not in others]
        elif not sequence and not keeps_all(opened.keep):
            raise DataError(
                f"{name}: the model has no column names; give a list, such as list(data['text'])"
            )
        named = map(str, [*sequence, *(schema.label_columns if opened.labelled else ())])
        missing = [x for x in named if not {x, x.partition(".")[0]} & self.values.keys()]
        if missing:
            raise DataError(
                *(f"{name}: {missing_name('column', x, self.columns)}" for x in missing)
            )
        if schema.steps is None:
            opened = replace(opened, schema=replace(schema, sequence=sequence))
        total = max(map(len, self.values.values()), default=0)
        numbered = enumerate(self._rows(), start=1)
        rows = (row for row in numbered if opened.is_read(row[0] - 1, total))
        return read_objects(opened, rows, with_indexes=True)

    def label_type(self) -> str:
        """Return the name of the labels' type, a key of `LABEL_TYPES`.

        It is "text" if labels have different types. Cells without a label are ignored.
        """
        cells = self.values.get(str(self.schema.label), ())
        rows = (cell if type(cell) is list else [cell] for cell in cells)
        examples = {type(label): label for label in chain.from_iterable(rows)}
        found = {type(plain(example)) for example in examples.values()} - {type(None)}
        return LABEL_TYPE_NAMES.get(found.pop(), "text") if len(found) == 1 else "text"

    def with_schema(self, schema: Schema) -> TableSource:
        """Return a copy of the source that reads the same columns with another schema."""
        other = copy(self)
        other.schema = schema
        return other

    def _rows(self) -> Iterator[dict[str, Any]]:
        """Yield each row as a dict that maps column names to JSON values.

        Arrays in a single sequence column of kind features stay arrays. The digest of the content
        is computed at the end.

        Raises:
            DataError: After the last row, if the content doesn't match the digest of an earlier
                reading.
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
        """Return the cells of a column.

        In a Dataset of Hugging Face, class indices are replaced by the names of the classes.

        Args:
            name: Name of the column in the table.

        Raises:
            DataError: If the column isn't a list of cells.
        """
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
            from seqtrain.sequences.readers.parquet import cells_of_column

            values = cells_of_column(values)
        if hasattr(values, "to_physical"):  # a column of polars
            values = _with_nanoseconds(values)
        features = getattr(self.data, "features", None)
        feature = features.get(name) if isinstance(features, dict) else None
        classes = dict(enumerate(getattr(feature, "names", None) or ()))
        if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind not in "mM":
            return values.tolist()
        return [classes.get(x) if type(x) is int else x for x in values] if classes else values


def _with_nanoseconds(column: Any) -> Any:
    """Return a polars column. If it may have times with nanoseconds, they are converted to texts.

    Python's types for times have no nanoseconds.
    """
    kind, unit = type(column.dtype).__name__, getattr(column.dtype, "time_unit", "ns")
    if unit != "ns" or kind not in ("Datetime", "Time", "Duration"):
        return column
    if kind == "Duration":
        numbers = column.to_physical()
        return [None if x is None else duration_text(x, PER_SECOND[unit]) for x in numbers]
    return [None if x is None else time_text(x) for x in column.dt.to_string("iso")]


def columns_of(data: Any) -> list[Any] | None:
    """Return the names of a table's columns, or None if `data` is no table.

    Raises:
        DataError: If `data` is a dict of tables, such as the splits of a Dataset.
    """
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
    """Register a table, so that `table_named` finds it by its path, and return the table.

    Only a weak reference is kept: the table is unregistered once the caller drops it.
    """
    _TABLES[id(table)] = table
    return table


def table_named(path: str, key: str = "data") -> TableSource:
    """Return the table in memory that `remember_table` registered under a path.

    Of several equal tables, the last one is returned.

    Args:
        path: `TableSource.path` of the table, as the config contains it.
        key: Key of the config with this path, for the message.

    Raises:
        DataError: If the table isn't in memory any more.
    """
    found = [table for table in _TABLES.values() if table.path == path]
    if not found:
        again = f"pass it again ({key.removeprefix('data.')}=…), or score a labelled file (--data)"
        raise DataError(f"{key}: {path} was a table in Python that isn't in memory now; {again}")
    return found[-1]


def _described(value: Any) -> Any:
    """Convert a value that JSON can't represent, for the digest of a table.

    An array becomes its dtype, shape and SHA-256. Any other value becomes its text.
    """
    if getattr(value, "ndim", 0):
        array = np.ascontiguousarray(value.detach().cpu() if hasattr(value, "detach") else value)
        return [str(array.dtype), array.shape, sha256(array.tobytes()).hexdigest()]
    return str(value)
