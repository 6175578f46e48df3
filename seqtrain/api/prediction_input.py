"""Input of predictions: files, standard input, sequences or a table, as parts that are encoded."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike, fspath
from typing import Any

import numpy as np

from seqtrain.errors import ConfigError, DataError, RunError, parameter
from seqtrain.sequences.content import read_content
from seqtrain.sequences.examples import CHUNK_ROWS, Sequences, chunked, in_chunks
from seqtrain.sequences.input_checks import input_check
from seqtrain.sequences.inputs import Input, table_source
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.reading import SequenceReader, coded
from seqtrain.sequences.schema import Column, Schema, column_names
from seqtrain.tables.blocks import TEXT, BadCellError, Reasons
from seqtrain.tables.cells import CodedColumn
from seqtrain.tables.formats import check_encoding, formats_with
from seqtrain.tables.memory import columns_of
from seqtrain.tables.opening import STDIN
from seqtrain.tables.python_values import python_value
from seqtrain.text import listed, one_of

WITH_COLUMNS = (*formats_with("delimited"), *formats_with("named"))
"""Formats whose columns can be copied to the predictions."""
READ_AHEAD = 1024
"""Largest number of parts of standard input that wait in memory for their predictions."""


def input_parts(
    given: Any,
    fitted: Preprocessing,
    input_format: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    keep: Sequence[Column] = (),
    remarks: list[str] | None = None,
) -> tuple[Iterator[Sequences], str]:
    """Return the parts of an input as they arrive, and its name for messages.

    Rows are read while the parts are iterated over. Their errors are raised then.

    Args:
        given: Path of a file or folder, or "-" for standard input; sequences, or a table.
        fitted: Preprocessing of the model.
        input_format: Name of the format, or None to go by the file's name.
        delimiter: Delimiter of a csv file, or None for the one of training.
        encoding: Encoding of a file, or None for the one of training.
        keep: Columns to copy to the predictions.
        remarks: List that receives lines for the user about how the rows are read, or None.

    Raises:
        ConfigError: If there is no such encoding, or columns are to be kept of a format without
            columns.
        DataError: If the input can't be read as the model reads inputs.
    """
    if encoding is not None:
        check_encoding(encoding)
    if not isinstance(given, str | PathLike):
        return memory_parts(given, fitted, keep=keep)
    path = fspath(given)
    schema = fitted.schema.for_input(
        path, input_format=input_format, delimiter=delimiter, encoding=encoding
    )
    if keep:
        if schema.format not in WITH_COLUMNS and schema.steps is None:
            raise ConfigError(
                f"{parameter('keep')}: columns of {schema.format} can't be copied; expected "
                f"{one_of(WITH_COLUMNS)}"
            )
        keep = _by_index(keep, schema)
    remarks = [] if remarks is None else remarks
    check = input_check(path, schema, fitted, input_format, remarks)
    reader = SequenceReader(Input(path, schema, labelled=False), keep=keep, check=check)
    if path == STDIN:
        parts = _arrivals(reader)
    else:
        parts = in_chunks(reader.read())
    return parts, reader.source.name


def missing_borders(schema: Schema) -> list[str]:
    """Return a line if the model's windows end where the label changes, which isn't read."""
    window = schema.window or {}
    if window.get("label") != "constant":
        return []
    if "steps" in window:
        return [
            "the windows of train also end where the label changes; labels aren't read here, so "
            f"that a window ends after {window['steps']} steps only"
        ]
    return [
        "the model learned windows that end where the label changes; labels aren't read here, so "
        "that each id has one prediction; to predict parts of an id, fit with steps in "
        "data.window, too: {steps: 16, label: constant}"
    ]


def _by_index(keep: Sequence[Column], schema: Schema) -> list[Column]:
    """Return the columns to keep, with indexes where the model names its columns by index."""
    numbers = {str(name): name for name in schema.id_columns}
    if all(isinstance(column, int) for column in schema.sequence_columns):
        numbers |= {name: int(name) for name in map(str, keep) if name.isdecimal()}
    return [numbers.get(str(name), name) for name in keep]


def memory_parts(
    given: Any,
    fitted: Preprocessing,
    groups: Iterable[str | None] | None = None,
    keep: Sequence[Column] = (),
) -> tuple[Iterator[Sequences], str]:
    """Return the parts of sequences or of a table, and the name for messages.

    Args:
        given: Sequences or a table, as for `Classifier.predict`.
        fitted: Preprocessing of the model.
        groups: Group of each sequence, or None. It must be None for a table, because a table has
            its own column of groups.
        keep: Columns of a table to copy to the predictions.

    Raises:
        DataError: If a sequence can't be read, if the model needs a table, or if `groups` isn't a
            string or None for each sequence.
    """
    if columns_of(given) is not None:
        return _table_parts(given, fitted.schema, groups, keep), "data"
    sequences = listed_sequences(given)
    schema = fitted.schema
    names = _group_names(groups, len(sequences))
    if sequences and schema.reads_tables:
        own = [*map(str, schema.sequence_columns), *column_names(schema.static)]
        raise DataError(f"sequences: the model reads the columns {listed(own)}; give a table")
    problems = Reasons()
    cells = list[Any]()
    for row, each in enumerate(sequences):
        try:
            cells.append(given_cell(each, fitted.kind))
        except BadCellError as error:
            raise DataError(f"sequence {row + 1}: {error}") from None
    content = read_content(
        {TEXT: cells},
        problems,
        kind=fitted.kind,
        decimal=schema.decimal,
        separator=schema.symbol_separator,
        named=False,
    )
    if problems:
        first = min(problems)
        raise DataError(f"sequence {first + 1}: {problems[first]}")
    found = Sequences(content, np.arange(1, len(cells) + 1))
    if names is not None:
        found.groups = coded(CodedColumn(str), "groups", names, {})
    return chunked(found, CHUNK_ROWS), "sequences"


def _table_parts(
    table: Any, schema: Schema, groups: Iterable[str | None] | None, keep: Sequence[Column]
) -> Iterator[Sequences]:
    """Return the parts of a table in memory.

    Raises:
        DataError: If `groups` is given, or the model has no names of columns.
    """
    if groups is not None:
        raise DataError("groups: a table has its own, in the column of data.group")
    if not (schema.sequence_columns or schema.is_wide or keep):
        raise DataError(
            "data: the model has no column names; give a list, such as list(data['text'])"
        )
    reader = SequenceReader(table_source(table, schema, labelled=False), keep=keep)
    return in_chunks(reader.read())


def _group_names(groups: Iterable[str | None] | None, count: int) -> list[str] | None:
    """Return the name of each sequence's group, "" for none; or None without groups.

    Raises:
        DataError: If there isn't a string or None for each of the `count` sequences.
    """
    if groups is None:
        return None
    names = list(groups)
    if len(names) != count:
        raise DataError(f"groups: found {len(names)}; expected one for each sequence")
    if not all(name is None or isinstance(name, str) for name in names):
        raise DataError("groups: expected a string or None for each sequence")
    return [name or "" for name in names]


def given_cell(sequence: Any, kind: str) -> Any:
    """Return a sequence as a cell of a table.

    Raises:
        BadCellError: If it is a set, which has no order, or bytes.
    """
    if isinstance(sequence, set | frozenset | bytes):
        found = type(sequence).__name__
        raise BadCellError(f"found a {found}; expected a text, a list or an array")
    if kind == "features":
        return sequence
    return python_value(sequence)


def listed_sequences(sequences: Any) -> list[Any]:
    """Return an iterable of sequences as a list.

    Raises:
        DataError: If `sequences` is no iterable, or if it is a single text.
    """
    try:
        if not isinstance(sequences, str | bytes):
            return list(sequences)
    except TypeError:
        pass
    raise DataError(
        f"sequences: found one {type(sequences).__name__}; expected a list of sequences"
    )


def _arrivals(reader: SequenceReader) -> Iterator[Sequences]:
    """Yield the sequences of standard input in parts that are available at the same time.

    Standard input is read by a second thread, and each part has the sequences that arrived
    meanwhile, about `CHUNK_ROWS` at most. An error is raised after the sequences before it.

    Raises:
        DataError: If the input can't be read.
        RunError: If the thread can't be started.
    """
    arrived: queue.Queue[Sequences | BaseException | None] = queue.Queue(READ_AHEAD)

    def read() -> None:
        # While this frame holds it, shutdown can't close the stream that a read waits on: to
        # close it then would abort the process.
        stream = sys.stdin
        try:
            for part in reader.read():
                arrived.put(part)
            arrived.put(None)
        except BaseException as error:
            arrived.put(error)
        del stream

    try:
        threading.Thread(target=read, daemon=True).start()
    except RuntimeError as error:
        raise RunError(
            f"stdin: {error} to read it; give a file, or allow more processes (ulimit -u)"
        ) from None
    parts: Iterator[Sequences | BaseException] = iter(arrived.get, None)

    def received() -> Iterator[Sequences]:
        for part in parts:
            if isinstance(part, BaseException):
                raise part
            yield part

    yield from in_chunks(received(), arrived.empty)
