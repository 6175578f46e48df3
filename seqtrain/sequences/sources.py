"""Sources of data that a config names: files, patterns of files, and tables in memory."""

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from seqtrain.config import resolved_config
from seqtrain.config.document import flow
from seqtrain.config.schema import Config, DataConfig
from seqtrain.errors import DataError
from seqtrain.files.formats import MEMORY, columns_of_format, names_of
from seqtrain.files.reading import nearest_file
from seqtrain.sequences.examples import Example
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.read_options import EVERY_COLUMN, Column, FileFormat, Schema
from seqtrain.sequences.readers import (
    Digests,
    FileSource,
    Source,
    TableSource,
    read_rows,
    was_changed,
)
from seqtrain.sequences.readers.file_source import holds_whole_files
from seqtrain.sequences.readers.table_source import remember_table, table_named
from seqtrain.sequences.readers.times import DAY_FIRST, MONTH_FIRST, common_type, possible_types
from seqtrain.text import listed, quote

SPLITS = ("train", "validation", "test")


def data_sources(config: Config) -> list[tuple[str, Source]]:
    """Return each data file of a config as a pair of its config key and its source.

    Files of pretraining.data and model.vectors are included.

    Raises:
        DataError: As `files_of`.
    """
    return [
        (key, config_source(config.data, file))
        for key, value in _named(config)
        for file in files_of(key, value)
    ]


def config_source(data: DataConfig, path: str) -> Source:
    """Return a source that reads a file or table by the settings of a config.

    A missing file isn't noticed before it is read.

    Args:
        data: Section data of the config.
        path: Path of a file, or the name that `with_given_data` gave to a table.

    Raises:
        DataError: If there is no longer a table of this name.
    """
    format = FileFormat.from_config(data, path, whole_files=holds_whole_files(path))
    return source_of(path, format, Schema.from_config(data), data.bad_rows)


def split_sources(data: DataConfig, split: str) -> list[Source]:
    """Return the files or tables of a split: "train", "validation" or "test".

    The list is empty if the config has no such split, or holds its rows out of train.
    """
    paths = files_of(f"data.{split}", getattr(data, split))
    return [config_source(data, path) for path in paths]


def source_of(path: str, format: FileFormat, schema: Schema, bad_rows: str = "error") -> Source:
    """Return a source that reads a file or table.

    Args:
        path: Path of a file, or the name that `with_given_data` gave to a table.
        format: Format of the training files. `FileFormat.for_file` adapts it to the name of this
            file.
        schema: Schema of the rows.
        bad_rows: Policy for rows that can't be read: "error" or "drop".
    """
    if path.startswith(MEMORY):
        return table_named(path).with_schema(schema)
    return FileSource(path, format.for_file(path), schema, bad_rows=bad_rows)


def labelled_source(fitted: Preprocessing, path: str) -> Source:
    """Return a source that reads a labelled file as a model's training files were read.

    Args:
        fitted: Preprocessing of the model.
        path: Path of a file, or the name that `with_given_data` gave to a table.
    """
    return source_of(path, fitted.file_format, fitted.schema, fitted.bad_rows)


def with_given_data(
    config: Config | Mapping[str, Any] | str | PathLike[str], given: Mapping[str, Any]
) -> tuple[Config, tuple[TableSource, ...]]:
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
    schema = Schema.from_config(config.data)
    reading: Any = {"bad_rows": config.data.bad_rows, "decimal": config.data.decimal}
    found = [
        remember_table(TableSource(table, schema, name, **reading))
        for name, table in tables.items()
    ]
    return config.with_keys(data={table.name: table.path for table in found}), tuple(found)


def _config_value(given: Any) -> Any:
    """Convert a Python value to a value of data.train and similar keys. None if it is a table."""
    if isinstance(given, str | PathLike):
        return fspath(given)
    if isinstance(given, float | int) or (isinstance(given, dict) and {*given} == {"fold", "of"}):
        return given
    are_paths = isinstance(given, list | tuple) and all(
        isinstance(x, str | PathLike) for x in given
    )
    return [fspath(path) for path in given] if are_paths and given else None


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
            files = files_of(key, value)
        except DataError as error:
            problems += error.problems
        else:
            gone = (path for path in files if not path.startswith(MEMORY) and _is_missing(path))
            problems += [_missing(key, path, folder) for path in gone]
    if problems:
        raise DataError(*problems)


def files_of(key: str, value: object) -> list[str]:
    """Return the paths of the files that a config key names, in its order.

    A pattern is replaced by the files that match it, sorted by name.

    Args:
        key: Name of the key, for messages.
        value: Value of the key: a path, a pattern, or a list of these. The name that
            `with_given_data` gave to a table is returned as it is. Other values, such as a fraction
            or None, name no file.

    Raises:
        DataError: If a pattern matches no file, or a file is named twice.
    """
    if isinstance(value, str) and value.startswith(MEMORY):
        return [table_named(value, key).path]
    files: list[str] = []
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


def matching_files(name: str) -> list[str]:
    """Return the files that match a pattern, sorted by name.

    The name itself is returned if it has no wildcards, or if a file has this name. `**` matches any
    number of folders. It doesn't follow links, and doesn't match hidden files or folders.
    """
    if not glob.has_magic(name) or os.path.lexists(name):
        return [name]
    if "**" not in name:
        return sorted(glob.glob(name))
    parts, root = Path(name).parts, Path(Path(name).anchor)
    found = root.glob(os.path.relpath(name, root) if root.anchor else name)
    return sorted(
        str(path)
        for path in found
        if not any(part.startswith(".") for part in path.parts if part not in parts)
    )


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
    return value.removeprefix(MEMORY).rpartition("-")[0] if is_table else value


def completed_schema(sources: Sequence[Source]) -> Schema:
    """Return the schema of the training files, with the entries that depend on their rows.

    - `sequence`: If all columns of a csv file are time steps, their names come from the header of
      the first file.
    - `order_type`: If rows are sorted by a column, its first cell determines the type. If this cell
      can be read as day and month or as month and day, all rows of train decide.

    Args:
        sources: The training files or tables.

    Raises:
        DataError: If neither order of day and month fits all dates, or both do.
    """
    first = sources[0]
    schema, format = first.schema, first.format
    has_names = format.header is True or isinstance(next(iter(schema.label_columns), None), str)
    is_wide = schema.kind == "features" and schema.sequence is None and has_names
    is_wide = is_wide and columns_of_format(format.name) == "delimited"
    if is_wide:
        names: list[Column] = [
            name
            for name in _first_row(first, has_header=True)
            if name not in ("", *schema.label_columns, schema.group)
        ]
        return replace(schema, sequence=names or None)
    if schema.order is None:
        return schema
    has_header = True if isinstance(schema.order, str) else format.header
    column = str(schema.order)
    types = possible_types(_first_row(first, has_header=has_header).get(column))
    order_type = next(iter(sorted(types, reverse=True)), None)
    if types == {DAY_FIRST, MONTH_FIRST}:
        rows = (row for source in sources for row in _every_row(source, has_header=has_header))
        order_type = common_type((row.get(column) for row in rows), types)
        if order_type is None:
            raise DataError(
                f"{first.name}: {column}: its dates don't tell if the day or the month comes "
                "first; write ISO dates, such as 2024-12-31"
            )
    return replace(schema, order_type=order_type)


def numbered_rows(source: Source, start: int, digests: Digests) -> Iterator[tuple[int, Example]]:
    """Yield the rows of a file that was encoded before, each after its line number in the store.

    Args:
        source: The file.
        start: Number of lines of the files before it.
        digests: Maps the path of each file to its digest when it was encoded.

    Raises:
        DataError: If the file has changed since.
    """
    if source.digest() != digests[source.path]:
        raise was_changed(source)
    number = start
    for example in read_rows(source):
        number += example.problem is None
        yield (start + example.line if example.file is None else number), example


def _first_row(source: Source, *, has_header: Any) -> dict[str, Any]:
    """Return the cells of the first row that can be read, by column. {} without such a row.

    Args:
        source: The file or table.
        has_header: Value of `FileFormat.header` for reading.
    """
    return next(_every_row(source, has_header=has_header), {})


def _every_row(source: Source, *, has_header: Any) -> Iterator[dict[str, Any]]:
    """Yield a dict that maps columns to cells, for each row that can be read.

    Arguments are as in `_first_row`.
    """
    anything = Schema(sequence=[])
    if isinstance(source, TableSource):
        everything: Source = TableSource(source.data, anything, source.name, keep=[EVERY_COLUMN])
    else:
        assert isinstance(source, FileSource)
        format = replace(source.format, header=has_header)
        everything = replace(source, format=format, schema=anything, keep=[EVERY_COLUMN])
    for example in read_rows(everything, labelled=False):
        if example.problem is None:
            yield example.kept or {}


def _named(config: Config) -> list[tuple[str, object]]:
    values: list[tuple[str, object]] = [
        (f"data.{name}", getattr(config.data, name)) for name in SPLITS
    ]
    more = config.pretraining.data or []
    values += [(f"pretraining.data.{i}", path) for i, path in enumerate(more)]
    return [*values, ("model.vectors", config.model.vectors)]


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
