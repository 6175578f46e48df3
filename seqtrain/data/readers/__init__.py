"""Readers of labelled sequences: files, folders and tables from Python, as examples.

Each format has a function that reads an open file, named in `seqtrain.files.formats.FORMATS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias, cast

from seqtrain.data.examples import Example, RowProblems
from seqtrain.data.readers.file_source import FileSource
from seqtrain.data.readers.row_source import RowSource
from seqtrain.data.readers.table_source import TableSource
from seqtrain.data.readers.time_steps import AT_ONCE, SequenceBuilder, ids_are_scattered
from seqtrain.errors import DataError
from seqtrain.files.formats import FORMATS

__all__ = [
    "Digests",
    "FileSource",
    "Source",
    "SourceReader",
    "TableSource",
    "read_rows",
    "unchanged",
    "was_changed",
]

Digests: TypeAlias = dict[str, str]
"""SHA-256 of each source, by its path."""


Source: TypeAlias = FileSource | TableSource
"""An input of rows, with all that reading it needs."""


class SourceReader(Iterator[Example]):
    """Iterator of the examples of a source, which knows the digest of what it has read.

    Memory stays flat, except for JSON arrays, npz, UTF-16 and tables with scattered ids.

    Args:
        source: File or table.
        problems: Collector of problems so far, with which damage is reported; or None.
        labelled: True if every row must have a label.

    Raises:
        DataError: If the source can't be read further, or is labelled and has no rows.
    """

    def __init__(
        self, source: Source, problems: RowProblems | None = None, *, labelled: bool = True
    ) -> None:
        self.source, self.rows, self.labelled = source, 0, labelled
        self.problems = problems or RowProblems(source.name, source.schema.rows_are)
        self._digests: Digests = {}
        name = source.format.name
        if labelled and name in FORMATS and not FORMATS[name].labelled:
            raise DataError(f"format {name} holds no labels; it is for prediction only")
        source.schema.check_format(source.format.name, self.problems.name, source.keep)
        self._examples = self._read()

    def __next__(self) -> Example:
        example = next(self._examples, None)
        if example is None:
            if self.labelled and not self.rows:
                expected = "expected one labelled sequence per row"
                raise DataError(f"{self.problems.name}: no rows; {expected}")
            raise StopIteration
        self.rows += 1
        return example

    def digest(self) -> str:
        """Return the SHA-256 of the source, in hexadecimal.

        If all examples were read, most sources needn't be read again for it.
        """
        return self.source.digest(self._digests)

    def _read(self) -> Iterator[Example]:
        source, schema = self.source, self.source.schema
        is_complete = source.is_complete()
        request = RowSource(
            None,
            source.format,
            schema,
            self.problems,
            self.labelled,
            source.keep,
            source.bad_rows,
            AT_ONCE if is_complete else 1,
        )
        if schema.steps is None:
            return cast("Iterator[Example]", source.read(request, self._digests))
        scattered = None
        if is_complete and source.path != "-":
            ids = replace(schema, order=None, steps={}, static=None, label=None, group=None)
            only_ids = replace(
                request,
                schema=ids,
                problems=RowProblems(self.problems.name),
                labelled=False,
                keep=(),
            )
            scattered = ids_are_scattered(source.read(only_ids))
        return SequenceBuilder(request, scattered).build(source.read(request, self._digests))


def read_rows(
    source: Source, problems: RowProblems | None = None, *, labelled: bool = True
) -> SourceReader:
    """Return an iterator of the examples of a source, in order; see `SourceReader`."""
    return SourceReader(source, problems, labelled=labelled)


@contextmanager
def unchanged(sources: Iterable[Source]) -> Iterator[None]:
    """Raise DataError at the end of the block if a source has changed meanwhile."""
    before = [(source, source.stamps()) for source in sources]
    yield
    for source, stamps in before:
        if source.stamps() != stamps:
            raise was_changed(source)


def was_changed(source: Source) -> DataError:
    """Return the error for a source that has changed while it was read."""
    advice = "start again once nothing writes to it"
    return DataError(f"{source.name}: was changed while it was read; {advice}")
