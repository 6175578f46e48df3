"""Helpers that read the sequences of a file or table, and that damage files."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from seqtrain.api.prediction_input import memory_parts
from seqtrain.sequences.encoder import encode_for_prediction
from seqtrain.sequences.examples import Example, RowProblems
from seqtrain.sequences.inputs import Input, table_source
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.reading import SequenceReader
from seqtrain.sequences.schema import Schema
from seqtrain.sequences.sources import completed_schema

NAMES = {field.name for field in fields(Schema)}


@dataclass(frozen=True)
class Given:
    """An input, and the columns to copy."""

    source: Input
    keep: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def schema(self) -> Schema:
        return self.source.schema

    def with_schema(self, schema: Schema) -> Given:
        return Given(replace(self.source, schema=schema), self.keep)


def schema_of(kind: Any = "text", **options: Any) -> Schema:
    """Return a schema whose header is as its columns say, unless it is given."""
    for name in ("sequence", "one_hot"):
        if isinstance(options.get(name), list):
            options[name] = tuple(options[name])
    header = options.pop("header", "auto")
    schema = Schema(kind=kind, **options)
    own = schema.names_columns if header == "auto" else header
    return Schema(**{**{name: getattr(schema, name) for name in NAMES}, "header": own})


def file_source(path: str, format: str, kind: str = "text", **options: Any) -> Given:
    """Return a file; the options are fields of `Schema`, and `keep`."""
    keep = tuple(options.pop("keep", ()))
    return Given(Input(path, schema_of(kind, format=format, **options)), keep)


def with_format(path: str, format: str, schema: Schema) -> Given:
    """Return a file of a format, which is read by a schema."""
    return Given(Input(path, replace(schema, format=format)))


def table_given(data: Any, schema: Schema, name: str = "data", keep: Any = ()) -> Given:
    """Return a table in memory."""
    return Given(table_source(data, schema, name), tuple(keep))


def read_rows(given: Given | Input, *, labelled: bool = True) -> Iterator[Example]:
    """Yield all sequences, also those with a problem."""
    source, keep = (given.source, given.keep) if isinstance(given, Given) else (given, ())
    source = replace(source, labelled=labelled)
    labels = source.labels() if labelled else None
    for part in SequenceReader(source, labels, keep).read():
        yield from map(part.example, range(len(part)))


def read_examples(given: Given | Input, *, labelled: bool = True) -> Iterator[Example]:
    """Yield the rows that can be used.

    Raises:
        DataError: Also at the end, for all bad rows together. If the source drops bad rows, it is
            raised only if no row is left.
    """
    source = given.source if isinstance(given, Given) else given
    problems, rows = RowProblems(source.name), 0
    for example in read_rows(given, labelled=labelled):
        if example.problem is None:
            rows += 1
            yield example
        else:
            problems.add(example.line, example.problem, example.file)
    if source.schema.bad_rows == "error" or not rows:
        problems.raise_if_any()


def completed(given: Given | Input) -> Schema:
    """Return the schema with the entries that depend on the rows."""
    return completed_schema([given.source if isinstance(given, Given) else given])


def damaged_copies(content: bytes) -> Iterator[bytes]:
    """Yield the content 300 times with other bytes in one, two or eight places."""
    draw = random.Random(0)
    for _ in range(300):
        copy = bytearray(content)
        for _ in range(draw.choice([1, 2, 8])):
            copy[draw.randrange(len(copy))] = draw.randrange(256)
        yield bytes(copy)


def only_label(row: Example) -> str | None:
    """Return the label of a single-label example, or None."""
    if row.labels is None:
        return None
    (label,) = row.labels
    return label


def encoded(rules: Preprocessing, sequences: list[Any], groups: list[str] | None = None) -> Any:
    """Return sequences as a store, as `predict` encodes them."""
    ((_, store),) = encode_for_prediction(rules, *memory_parts(sequences, rules, groups))
    return store
