"""Inputs: where sequences come from, and the schema of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from seqtrain.errors import DataError
from seqtrain.sequences.labels import LabelReader, LabelSet
from seqtrain.sequences.reading import SequenceReader
from seqtrain.sequences.schema import Column, Schema
from seqtrain.tables.formats import MEMORY
from seqtrain.tables.join import joined_source
from seqtrain.tables.memory import TableSource
from seqtrain.tables.sources import open_source, stamps
from seqtrain.text import display_name


@dataclass(frozen=True)
class Input:
    """An input of sequences: a file, a folder or a table in memory, and the schema of its columns.

    Attributes:
        path: Path of the file or folder, "-" for standard input, or the name that `with_given_data`
            gave to a table.
        schema: Form and meaning of its columns.
        table: The table, or None for files.
    """

    path: str
    schema: Schema
    table: TableSource | None = None

    def __post_init__(self) -> None:
        # A source remembers the digest of the file that it read.
        object.__setattr__(self, "_sources", dict[bool, Any]())

    @property
    def name(self) -> str:
        """Name for messages."""
        return display_name(self.path) if self.table is None else self.table.name

    def source(self, *, labelled: bool = True) -> Any:
        """Return the source of the cells.

        Args:
            labelled: False if rows may lack a label, as in an input to predict.
        """
        sources: dict[bool, Any] = self.__dict__["_sources"]
        if labelled not in sources:
            source: Any = self.table
            if source is None:
                source = open_source(
                    self.path,
                    self.schema.dialect(labelled=labelled),
                    pattern=self.schema.path,
                    whole_files=self.schema.whole_files and not labelled,
                )
            sources[labelled] = joined_source(source, self.schema.join)
        return sources[labelled]

    def reader(self, labels: LabelReader, keep: Sequence[Column] = ()) -> SequenceReader:
        """Return a reader of the sequences."""
        return SequenceReader(self.source(labelled=labels.labelled), self.schema, labels, keep)

    def labels(self, known: LabelSet | None = None, *, labelled: bool = True) -> LabelReader:
        """Return a reader of the labels of this input.

        Args:
            known: The classes of a model, or None.
            labelled: True if every row must have a label.
        """
        return LabelReader(
            self.schema.label_separator,
            labelled=labelled,
            may_be_blank=self.schema.id is not None,
            known=known,
        )

    def with_schema(self, schema: Schema) -> Input:
        """Return the same input with another schema."""
        other = replace(self, schema=schema)
        same = (schema.dialect(), schema.path, schema.join)
        if same == (self.schema.dialect(), self.schema.path, self.schema.join):
            object.__setattr__(other, "_sources", self.__dict__["_sources"])
        return other

    def digest(self) -> str:
        """Return the SHA-256 of the content. Files that were just read aren't read again."""
        if self.table is not None:
            return self.table.digest(self.schema.selection(labelled=True))
        return self.source().digest()  # type: ignore[no-any-return]

    def check_unchanged(self, digest: str) -> None:
        """Raise DataError if this is a table whose content has changed since it got its path.

        Args:
            digest: Digest of the content now.
        """
        given = self.path.rpartition("-")[2]
        is_named = self.table is not None and self.path.endswith(f"{self.name}-{given}")
        if is_named and given != digest[: len(given)]:
            raise DataError(f"{self.name}: was changed since it was given; give it again")

    def stamps(self) -> list[tuple[str, int, int]]:
        """Return path, size and modification time of each file; [] for a table."""
        return [] if self.table is not None else stamps(self.source())


def digests_of(inputs: Iterable[Input], known: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the SHA-256 of each input by its path.

    Args:
        inputs: The inputs.
        known: SHA-256 of files that were read before, by their paths, or None.

    Raises:
        DataError: If a table in memory has changed since it was given.
    """
    by_path = {each.path: each for each in inputs}
    found = {path: (known or {}).get(path) or each.digest() for path, each in by_path.items()}
    for path, each in by_path.items():
        each.check_unchanged(found[path])
    return found


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
    advice = "start again once nothing writes to it"
    return DataError(f"{source.name}: was changed while it was read; {advice}")


def table_source(data: Any, schema: Schema, name: str = "data") -> Input:
    """Return an input of a table in memory.

    Raises:
        DataError: If `data` is no table.
    """
    return Input(f"{MEMORY}{name}", schema, TableSource(data, name))
