"""Inputs: where sequences come from, and the schema of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from seqtrain.errors import DataError
from seqtrain.sequences.labels import LabelReader, LabelSet
from seqtrain.sequences.schema import Schema
from seqtrain.tables.blocks import Dialect, Source
from seqtrain.tables.delimited import DELIMITERS
from seqtrain.tables.formats import MEMORY
from seqtrain.tables.join import joined_source
from seqtrain.tables.memory import TableSource
from seqtrain.tables.sources import holds_whole_files, open_source, stamps
from seqtrain.text import display_name

QUOTES = {"standard": True, "none": False, "auto": None}
"""Maps a value of data.quoting to `Dialect.quotes`."""


@dataclass(frozen=True)
class Input:
    """An input of sequences: a file, a folder or a table in memory, and the schema of its columns.

    Attributes:
        path: Path of the file or folder, "-" for standard input, or the name that `with_given_data`
            gave to a table.
        schema: Form and meaning of its columns.
        table: The table, or None for files.
        labelled: False if rows may lack a label, as in an input to predict.
        given_digest: SHA-256 that a table had when Python code gave it, or None to allow changes.
    """

    path: str
    schema: Schema
    table: TableSource | None = None
    labelled: bool = True
    given_digest: str | None = None

    @property
    def name(self) -> str:
        """Name for messages."""
        if self.table is None:
            return display_name(self.path)
        return self.table.name

    @cached_property
    def source(self) -> Source:
        """The source of the cells. It remembers the digest of the file that it read."""
        schema = self.schema
        source: Source | None = self.table
        if source is None:
            dialect = Dialect(
                format=schema.format,
                encoding=schema.encoding,
                delimiter=DELIMITERS.get(schema.delimiter),
                quotes=QUOTES[schema.quoting],
                header=schema.header,
                blank_lines=not self.labelled,
                sheet=schema.sheet,
            )
            source = open_source(
                self.path,
                dialect,
                pattern=schema.path,
                whole_files=schema.whole_files and not (self.labelled and self._has_classes),
                must_match=self.labelled,
                ids=() if self.labelled else schema.id_columns,
            )
        if not schema.join:
            return source
        needed = None
        if not (self.labelled or schema.is_wide):  # a prediction needs no labels
            needed = schema.roles(labelled=False).required
        return joined_source(source, schema.join, needed)

    @property
    def _has_classes(self) -> bool:
        """True if the labels of whole files are names of folders: their paths have no others."""
        return self.schema.path is None or holds_whole_files(self.path)

    def labels(self, known: LabelSet | None = None) -> LabelReader:
        """Return a reader of the labels of this input.

        Args:
            known: The classes of a model, or None.
        """
        if known is None:
            separator = self.schema.label_separator
        else:
            separator = known.separator
        return LabelReader(separator, may_be_blank=self.schema.id is not None, known=known)

    def digest(self) -> str:
        """Return the SHA-256 of the content. Files that were just read aren't read again.

        Raises:
            DataError: If a table in memory has changed since it was given.
        """
        if self.table is None:
            return self.source.digest()
        digest = self.table.digest(self.schema.roles(labelled=True).selection)
        if self.given_digest not in (None, digest):
            raise DataError(f"{self.name}: was changed since it was given; give it again")
        return digest

    def stamps(self) -> list[tuple[str, int, int]]:
        """Return path, size and modification time of each file; [] for a table."""
        if self.table is not None:
            return []
        return stamps(self.source)


def digests_of(inputs: Iterable[Input], known: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the SHA-256 of each input by its path.

    Args:
        inputs: The inputs.
        known: SHA-256 of files that were read before, by their paths, or None.

    Raises:
        DataError: If a table in memory has changed since it was given.
    """
    by_path = {each.path: each for each in inputs}
    return {path: (known or {}).get(path) or each.digest() for path, each in by_path.items()}


@contextmanager
def unchanged(inputs: Iterable[Input]) -> Iterator[None]:
    """Raise DataError at the end of the `with` statement if a file has changed since its start."""
    before = [(each, each.stamps()) for each in inputs]
    yield
    for each, stamped in before:
        if each.stamps() != stamped:
            raise was_changed(each)


def was_changed(source: Input) -> DataError:
    """Return the error for an input that has changed while it was read."""
    return DataError(
        f"{source.name}: was changed while it was read; start again once nothing writes to it"
    )


def table_source(data: Any, schema: Schema, name: str = "data", *, labelled: bool = True) -> Input:
    """Return an input of a table in memory.

    Raises:
        DataError: If `data` is no table.
    """
    return Input(f"{MEMORY}{name}", schema, TableSource(data, name), labelled)
