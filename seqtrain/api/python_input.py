"""Input from Python for a classifier: sequences or tables in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from seqtrain.errors import DataError
from seqtrain.sequences.content import ContentReader
from seqtrain.sequences.examples import Sequences, chunked
from seqtrain.sequences.inputs import table_source
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.reading import CHUNK_ROWS
from seqtrain.sequences.schema import Column, column_names
from seqtrain.tables.blocks import TEXT, Coded
from seqtrain.tables.cells import BadCellError, CodedColumn
from seqtrain.tables.memory import columns_of
from seqtrain.tables.python_values import plain
from seqtrain.text import listed


def sequences_of(
    given: Any,
    preprocessing: Preprocessing,
    groups: Iterable[str | None] | None = None,
    keep: Sequence[Column] = (),
) -> Iterator[Sequences]:
    """Return sequences, or the rows of a table, as a reader of files returns them.

    The rows of a table are read while the result is iterated over. Their errors are raised then.

    Args:
        given: Sequences or a table, as for `Classifier.predict`.
        preprocessing: Preprocessing of the classifier.
        groups: Group of each sequence, or None. It must be None for a table, because a table has
            its own column of groups.
        keep: Columns of a table whose cells are copied to `Example.kept`.

    Raises:
        DataError: If a sequence can't be read, if the model needs a table, or if `groups` isn't a
            string or None for each sequence.
    """
    schema = preprocessing.schema
    if columns_of(given) is not None:
        if groups is not None:
            raise DataError("groups: a table has its own, in the column of data.group")
        if not (schema.sequence_columns or schema.is_wide or keep):
            advice = "give a list, such as list(data['text'])"
            raise DataError(f"data: the model has no column names; {advice}")
        table = table_source(given, schema)
        return table.reader(table.labels(labelled=False), keep).chunks()
    given = as_list(given)
    if given and preprocessing.reads_tables:
        own = [*map(str, schema.sequence_columns), *column_names(schema.static)]
        columns = f"the model reads the columns {listed(own)}"
        raise DataError(f"sequences: {columns}; give a table")
    names = [None] * len(given) if groups is None else list(groups)
    if len(names) != len(given):
        raise DataError(f"groups: found {len(names)}; expected one for each sequence")
    if not all(name is None or isinstance(name, str) for name in names):
        raise DataError("groups: expected a string or None for each sequence")
    if not given:
        return iter([])
    problems, cells = dict[int, str](), list[Any]()
    for index, each in enumerate(given):
        try:
            cells.append(cell_of(each, preprocessing.kind))
        except BadCellError as error:
            raise DataError(f"sequence {index + 1}: {error}") from None
    content = ContentReader(preprocessing.kind, schema.decimal, named=False).read(
        {TEXT: cells}, len(cells), problems
    )
    if problems:
        first = min(problems)
        raise DataError(f"sequence {first + 1}: {problems[first]}")
    found = Sequences(
        content=content,
        lines=np.arange(1, len(cells) + 1),
        labels=Coded(np.full(len(cells), -1, np.int32), []),
    )
    if groups is not None:
        column = CodedColumn(str)
        codes, _ = column.codes_of([name or "" for name in names])
        found.groups = Coded(codes, column.known.names)
    return chunked(found, CHUNK_ROWS)


def cell_of(sequence: Any, kind: str) -> Any:
    """Return a sequence as a cell of a table.

    Raises:
        BadCellError: If it is a set, which has no order, or bytes.
    """
    if isinstance(sequence, set | frozenset | bytes):
        raise BadCellError(
            f"found a {type(sequence).__name__}; expected a text, a list or an array"
        )
    return sequence if kind == "features" else plain(sequence)


def as_list(sequences: Any) -> list[Any]:
    """Return an iterable of sequences as a list.

    Raises:
        DataError: If `sequences` is no iterable, or if it is a single text.
    """
    try:
        if not isinstance(sequences, str | bytes):
            return list(sequences)
    except TypeError:
        pass
    found = f"found one {type(sequences).__name__}"
    raise DataError(f"sequences: {found}; expected a list of sequences")
