"""Readers of labelled sequences: files, folders and tables from Python, as examples.

Each format has a function that reads an open file, named in `seqtrain.files.formats.FORMATS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

from seqtrain.errors import DataError
from seqtrain.files.formats import FORMATS
from seqtrain.sequences.examples import Example, RowProblems
from seqtrain.sequences.read_options import STDIN
from seqtrain.sequences.readers.file_source import FileSource
from seqtrain.sequences.readers.row_source import RowSample
from seqtrain.sequences.readers.table_source import TableSource
from seqtrain.sequences.readers.time_steps import SequenceBuilder, ids_are_scattered

__all__ = [
    "Digests",
    "FileSource",
    "RowSample",
    "Source",
    "TableSource",
    "read_column_blocks",
    "read_rows",
    "unchanged",
    "was_changed",
]

Digests: TypeAlias = dict[str, str]
"""SHA-256 of each source, by its path."""


CELLS_AT_ONCE = 4096
"""Largest number of rows of a block of `read_column_blocks`."""
Source: TypeAlias = FileSource | TableSource
"""An input of rows: a file, a folder or a table in memory."""


def read_rows(
    source: Source,
    problems: RowProblems | None = None,
    *,
    labelled: bool = True,
    sample: RowSample | None = None,
) -> Iterator[Example]:
    """Yield the examples of a source, in order.

    An example that can't be used has the reason in `Example.problem`.

    Rows are read in blocks. The whole input is in memory only for JSON arrays, npz, UTF-16, and
    tables of time steps whose ids are scattered.

    Args:
        source: File, folder or table.
        problems: Collector of earlier problems, or None. They are added to a DataError that ends
            the reading. The collector isn't changed.
        labelled: True if every row must have a label.
        sample: Sample of the rows to read, or None to read all. It has no effect on formats that
            don't know their number of rows beforehand.

    Raises:
        DataError: If reading can't continue. If `labelled` is true, also if there are no rows or
            the format has no labels.
    """
    schema, format = source.schema, source.format.name
    problems = problems or RowProblems(source.name)
    if labelled and format in FORMATS and not FORMATS[format].labelled:
        raise DataError(f"format {format} holds no labels; it is for prediction only")
    schema.check_format(format, problems.name, source.keep)
    opened = replace(source.opened(problems, labelled=labelled), sample=sample)
    rows: Iterator[Any] = source.read(opened)
    if schema.steps is not None:
        scattered = None
        if opened.at_once > 1 and source.path != STDIN:
            ids = replace(schema, order=None, steps={}, static=None, label=None, group=None)
            only_ids = source.with_schema(ids).opened(RowProblems(problems.name), labelled=False)
            found: Iterator[Any] = source.read(replace(only_ids, keep=(), sample=sample))
            try:
                scattered = ids_are_scattered(found)
            except DataError:
                next(rows, None)  # if columns are missing, this error names all of them
                raise
        rows = SequenceBuilder(opened, scattered).build(rows)
    is_empty = True
    for example in rows:
        is_empty = False
        yield example
    if labelled and is_empty:
        raise DataError(f"{problems.name}: no rows; expected one labelled sequence per row")


def read_column_blocks(
    source: Source,
    problems: RowProblems,
    *,
    drop_bad_rows: bool = False,
    sample: RowSample | None = None,
) -> Iterator[list[Any]]:
    """Yield the cells of the columns `source.keep` of a table as they are read, without conversion.

    Args:
        source: The table.
        problems: Collector to which the problems of unusable rows are added.
        drop_bad_rows: True to leave out unusable rows without adding their problems.
        sample: Sample of the rows to read, or None to read all.

    Yields:
        A list for each block of rows: for each column, the list of its cells. If `source.keep` asks
        for all columns of JSON objects, there is one column, whose cells are the objects.
    """
    opened = source.opened(problems, labelled=False)
    opened = replace(opened, at_once=CELLS_AT_ONCE, as_cells=True, sample=sample)
    found: Iterator[Any] = source.read(opened)
    for lines, bad, *columns in found:
        if columns:
            yield columns
        elif not drop_bad_rows:
            problems.add(lines[0], bad[0])


@contextmanager
def unchanged(sources: Iterable[Source]) -> Iterator[None]:
    """Raise DataError at the end of the `with` statement if a file has changed since its start.

    Tables in memory aren't checked: `TableSource.read` does this.
    """
    before = [(x, x.stamps()) for x in sources if isinstance(x, FileSource)]
    yield
    for source, stamps in before:
        if source.stamps() != stamps:
            raise was_changed(source)


def was_changed(source: Source) -> DataError:
    """Return the error for a source that has changed while it was read."""
    advice = "start again once nothing writes to it"
    return DataError(f"{source.name}: was changed while it was read; {advice}")
