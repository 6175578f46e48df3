"""Sources of data that a config names: files, patterns of files, and tables in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from seqtrain.config import resolved_config
from seqtrain.config.document import flow
from seqtrain.config.schema import Config, DataConfig
from seqtrain.errors import DataError, parameter
from seqtrain.files.reading import nearest_file
from seqtrain.sequences.examples import Example, numbered
from seqtrain.sequences.inputs import Input, table_source, was_changed
from seqtrain.sequences.labels import LabelSet
from seqtrain.sequences.pretrained import check_folder, used_files
from seqtrain.sequences.reading import SequenceReader
from seqtrain.sequences.schema import Column, Schema, saved_format
from seqtrain.sequences.vector_folder import vector_files
from seqtrain.tables.blocks import REST, Selection, as_list
from seqtrain.tables.cells import without_unit
from seqtrain.tables.formats import MEMORY, columns_of_format, names_of, resolve_format
from seqtrain.tables.sources import holds_whole_files, matching_files
from seqtrain.tables.time_column import common_type, possible_types
from seqtrain.tables.times import DATE, DAY_FIRST, DURATION, MONTH_FIRST, WEEKDAY
from seqtrain.text import listed, quote

SPLITS = ("train", "validation", "test")
Digests = dict[str, str]
"""SHA-256 of each input, by its path."""


def data_sources(config: Config) -> list[tuple[str, Input]]:
    """Return each data file of a config as a pair of its config key and its input.

    Files of pretraining.data and model.vectors are included.

    Raises:
        DataError: As `files_of`.
    """
    return [
        (key, config_source(config.data, file))
        for key, value in _named(config)
        for file in files_of(key, value)
    ]


def config_source(data: DataConfig, path: str) -> Input:
    """Return an input that is read by the settings of a config.

    A missing file isn't noticed before it is read.

    Args:
        data: Section data of the config.
        path: Path of a file, or the name that `with_given_data` gave to a table.

    Raises:
        DataError: If there is no longer a table of this name.
    """
    schema = Schema.from_config(data, path, whole_files=holds_whole_files(path))
    return source_of(path, schema)


def source_of(path: str, schema: Schema) -> Input:
    """Return an input that reads a labelled file or table by the schema of the training files.

    Args:
        path: Path of a file, or the name that `with_given_data` gave to a table.
        schema: The schema. Unless data.format set one format for all files, the ending of the path
            determines the format.
    """
    if path.startswith(MEMORY):
        return replace(table_named(path), schema=schema)
    if schema.by_name:
        format = resolve_format(path, "auto") or schema.format
        schema = replace(schema, format=saved_format(format))
    return Input(path, schema)


_TABLES: WeakValueDictionary[int, Input] = WeakValueDictionary()


def remember_table(table: Input, digest: str) -> Input:
    """Register a table, so that `table_named` finds it by its path, and return it with its path.

    Only a weak reference is kept: the table is unregistered once the caller drops it.

    Args:
        table: The table.
        digest: SHA-256 of its content, a part of the path.
    """
    assert table.table is not None
    named = replace(table, path=f"{MEMORY}{table.table.name}-{digest[:16]}")
    _TABLES[id(named)] = named
    return named


def table_named(path: str, key: str = "data", again: str | None = None) -> Input:
    """Return the table in memory that `remember_table` registered under a path.

    Of several equal tables, the last one is returned.

    Args:
        path: Path of the table, as the config contains it.
        key: Key of the config with this path, for the message.
        again: Advice of the message, or None to name the parameter of `evaluate`.

    Raises:
        DataError: If the table isn't in memory any more.
    """
    found = [table for table in _TABLES.values() if table.path == path]
    if not found:
        again = again or f"give the same data again, or a labelled file ({parameter('data')})"
        raise DataError(f"{key}: {path} was a table in Python that isn't in memory now; {again}")
    return found[-1]


def with_given_data(
    config: Config | Mapping[str, Any] | str | PathLike[str], given: Mapping[str, Any]
) -> tuple[Config, tuple[Input, ...]]:
    """Return a config that names data from Python, and the tables among these data.

    The config has a name in place of each table. The names work only as long as the caller keeps
    the returned tables.

    Args:
        config: A Config, a mapping of its sections, or the path of a YAML file.
        given: Maps names of splits ("train", "validation", "test") to data. Data is a table, or a
            value of the config's key, such as a path or a fraction. None keeps the config's value.

    Raises:
        DataError: If a value can't be used as a table, or a table lacks columns.
        ConfigError: If the config isn't valid.
    """
    given = {name: value for name, value in given.items() if value is not None}
    tables = {name: value for name, value in given.items() if _config_value(value) is None}
    values = {name: _config_value(x) or MEMORY + name for name, x in given.items()}
    overrides = [f"data.{name}={flow(value)}" for name, value in values.items()]
    config = resolved_config(config, overrides=overrides)
    found = []
    for name, table in tables.items():
        schema = Schema.from_config(config.data, MEMORY + name)
        source = table_source(table, schema, name)
        digest = source.digest()
        found.append(remember_table(replace(source, given_digest=digest), digest))
    named = {each.table.name: each.path for each in found if each.table is not None}
    return config.with_keys(data=named), tuple(found)


def _config_value(given: Any) -> Any:
    """Convert a Python value to a value of data.train and similar keys. None if it is a table."""
    if isinstance(given, str | PathLike):
        return fspath(given)
    if isinstance(given, float | int) or (isinstance(given, dict) and set(given) == {"fold", "of"}):
        return given
    are_paths = isinstance(given, list | tuple) and all(
        isinstance(x, str | PathLike) for x in given
    )
    if are_paths and given:
        return [fspath(path) for path in given]
    return None


def check_files(config: Config, folder: Path | None) -> None:
    """Check that all data files exist.

    Args:
        config: Config that names them.
        folder: Folder of the YAML file, or None. If a missing file exists relative to this folder,
            the message says so.

    Raises:
        DataError: If files are missing. The error has a line for each of them.
    """
    problems: list[str] = []
    for key, value in _named(config):
        try:
            files = files_of(
                key,
                value,
                f"give the table again in Python ({key.removeprefix('data.')}=), or name a file",
            )
        except DataError as error:
            problems += error.problems
        else:
            gone = (path for path in files if not path.startswith(MEMORY) and _is_missing(path))
            problems += [_missing(key, path, folder) for path in gone]
    if problems:
        raise DataError(*problems)


def files_of(key: str, value: object, again: str | None = None) -> list[str]:
    """Return the paths of the files that a config key names, in its order.

    A pattern is replaced by the files that match it, sorted by name.

    Args:
        key: Name of the key, for messages.
        value: Value of the key: a path, a pattern, or a list of these. The name that
            `with_given_data` gave to a table is returned as it is. Other values, such as a fraction
            or None, name no file.
        again: Advice about a table that isn't in memory any more, as for `table_named`.

    Raises:
        DataError: If a pattern matches no file, or a file is named twice.
    """
    if isinstance(value, str) and value.startswith(MEMORY):
        return [table_named(value, key, again).path]
    files = []
    for name in names_of(value):
        found = matching_files(name)
        if not found:
            looked = os.path.abspath(name)
            raise DataError(f"{key}: no file matches {quote(name)} (looked for {looked})")
        files += found
    known: dict[str, str] = {}
    for file in files:
        if len(files) > 1 and known.setdefault(os.path.realpath(file), file) is not file:
            raise DataError(f"{key}: names {quote(file)} twice; expected each file once")
    return files


def named_text(value: str | Sequence[str]) -> str:
    """Return a value of a key such as data.train as text for messages and screens.

    A table is shown by its name without digest, such as "train".

    Args:
        value: A path, a pattern, a list of these, or the name that `with_given_data` gave to a
            table.
    """
    if not isinstance(value, str):
        return listed(list(value))
    is_table = value.startswith(MEMORY)
    if is_table:
        return value.removeprefix(MEMORY).rpartition("-")[0]
    return value


def completed_schema(inputs: Sequence[Input]) -> Schema:
    """Return the schema of the training files, with the entries that depend on their rows.

    - `sequence`: If all columns of a csv file are time steps, their names come from the header of
      the first file.
    - `width`: If a column of the label is named by its index.
    - `order_type`: If rows are sorted by a column, its first readable cell tells the type. If it
      can be read as day and month or as month and day, or as a date or a time of day with
      points, all rows of train decide.

    Args:
        inputs: The training files or tables.

    Raises:
        DataError: If neither order of day and month fits all dates, or both do.
    """
    first = inputs[0]
    schema = first.schema
    _check_columns(first)
    if schema.is_wide and columns_of_format(schema.format) != "named" and schema.header:
        others = set(map(str, schema.columns_beside_series))
        names = [name for name in _columns_of(first) if name not in others]
        return replace(schema, sequence=tuple(names) or None)
    has_width = columns_of_format(schema.format) == "delimited" and schema.sequence != REST
    if has_width and not schema.header and isinstance(schema.label, int):
        schema = replace(schema, width=len(_columns_of(first)))
    types = tuple(_type_of_times(inputs, column) for column in schema.order_columns)
    if isinstance(schema.order, tuple):
        return replace(schema, order_type=types)
    return replace(schema, order_type=next(iter(types), None))


def _type_of_times(inputs: Sequence[Input], column: Column) -> str | None:
    """Return the type of the times in a column of the training files, or None without a row.

    Raises:
        DataError: If neither order of day and month fits all dates, or both do.
    """
    types = next(filter(None, map(possible_types, _cells_of(inputs[0], column))), set[str]())
    if types not in ({DAY_FIRST, MONTH_FIRST}, {DATE, WEEKDAY}, {DAY_FIRST, DURATION}):
        return max(types, default=None)
    every = (cell for each in inputs for cell in _cells_of(each, column))
    order_type = common_type(every, types)
    if order_type is None and DURATION in types:
        return DAY_FIRST
    if order_type is None and DAY_FIRST in types:
        raise DataError(
            f"{inputs[0].name}: {column}: its dates don't tell if the day or the month comes "
            "first; write ISO dates, such as 2024-12-31"
        )
    return order_type or WEEKDAY


def _check_columns(source: Input) -> None:
    """Raise DataError if an index can't name a column, or if two names are of the same column."""
    schema = source.schema
    indexes = [x for x in (*schema.sequence_columns, *schema.label_columns) if isinstance(x, int)]
    if not indexes or not schema.has_columns or source.table is not None:
        return
    if columns_of_format(schema.format) == "named":
        key = "label" if indexes[0] in schema.label_columns else "sequence"
        raise DataError(
            f"data.{key}: {indexes[0]} is an index; format {schema.format} needs a field's name"
        )
    header = _columns_of(source) if schema.header else []
    if not header:
        return
    names: dict[Column, Column] = dict(enumerate(header))
    own = [names.get(column, column) for column in schema.sequence_columns]
    labels = [names.get(column, column) for column in schema.label_columns]
    shared = [name for name in labels if name in own]
    if shared:
        raise DataError(f"data.label: {shared[0]!r} is also in data.sequence; remove it there")
    if len(set(own)) < len(own):
        raise DataError(f"data.sequence: {list(schema.sequence_columns)} names a column twice")


def _columns_of(source: Input) -> list[Column]:
    """Return the names of all columns of an input, or [] if it has no rows."""
    block = next(source.source.blocks(Selection()), None)
    if block is None:
        return []
    return list(block.columns)


def _cells_of(source: Input, column: Column) -> Iterator[Any]:
    """Yield the cells of a column in the rows that can be read, without its unit."""
    unit = (source.schema.units or {}).get(str(column), "")
    for block in source.source.blocks(Selection((column,), keys=source.schema.keys_of_columns)):
        cells = block.columns[column]
        if unit:
            cells = without_unit(cells, unit)
        for row, cell in enumerate(as_list(cells)):
            if row not in block.problems:
                yield cell


def numbered_sequences(
    source: Input, start: int, digests: Digests, known: LabelSet
) -> Iterator[tuple[int, Example]]:
    """Yield the rows of an input that was encoded before, each after its line in the store.

    Args:
        source: The input.
        start: Number of lines of the files before it.
        digests: Maps the path of each file to its digest when it was encoded.
        known: The classes of the model.

    Raises:
        DataError: If the file has changed since.
    """
    if source.digest() != digests[source.path]:
        raise was_changed(source)
    for lines, part in numbered(SequenceReader(source, source.labels(known)).read(), start):
        for index, line in enumerate(lines.tolist()):
            yield line, part.example(index)


def _named(config: Config) -> list[tuple[str, object]]:
    values = [(f"data.{name}", getattr(config.data, name)) for name in SPLITS]
    more = config.pretraining.data or []
    values += [(f"pretraining.data.{i}", path) for i, path in enumerate(more)]
    vectors = config.model.vectors
    if vectors is not None and os.path.isdir(vectors):
        values.append(("model.vectors", [str(file) for file in vector_files(Path(vectors))]))
    else:
        values.append(("model.vectors", vectors))
    if config.model.pretrained is not None:
        folder = Path(config.model.pretrained)
        check_folder(folder)
        values.append(("model.pretrained", [str(folder / name) for name in used_files(folder)]))
    return values


def _missing(key: str, path: str, folder: Path | None) -> str:
    problem = f"{key}: no file {quote(path)} (looked for {os.path.abspath(path)})"
    if folder is not None and os.path.exists(folder / path):
        return problem + f"; paths are relative to the current directory: write {folder / path}"
    near = nearest_file(path)
    return problem + (f"; did you mean {near}?" if near else "")


def _is_missing(path: str) -> bool:
    """Return True if no file or folder has this path.

    If permission to look is lacking, the path doesn't count as missing.
    """
    try:
        os.lstat(path)
    except PermissionError:
        return False
    except (OSError, ValueError):
        return True
    return False
