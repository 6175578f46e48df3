"""How a file of labelled sequences is read: its format, its columns, its kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from os.path import isdir
from typing import TypeAlias

import numpy as np

from seqtrain.config.formats import ENDINGS, resolve_format
from seqtrain.data.examples import RowProblems, is_blank
from seqtrain.data.readers import Column, ReadOptions, read_examples
from seqtrain.data.readers.delimited import DELIMITERS, find_delimiter, read_records
from seqtrain.data.readers.npz import FEW_SYMBOLS
from seqtrain.data.readers.opening import RowSource, open_input
from seqtrain.data.readers.sequences import parse_json
from seqtrain.errors import DataError
from seqtrain.proposal.columns import (
    ColumnFacts,
    choose_label,
    choose_sequence,
    flattened,
    gather,
    has_header,
)
from seqtrain.text import display_name, quote

FIRST_LINES = 4096
"""Lines of a text file that show what it is, at most."""

Fields: TypeAlias = Iterable[tuple[Column, object]]
"""The columns of a row with their values."""


@dataclass(frozen=True)
class Wishes:
    """What the user says of a data file's columns and first row; None where it is to be found."""

    label: Column | None = None
    sequence: list[Column] | None = None
    header: bool | None = None


def find_columns(path: str, wishes: Wishes) -> ReadOptions:
    """Find how a data file, or a folder of text files, is read.

    Raises:
        DataError: it can't be read, or something that is needed isn't clear.
    """
    format = _format(path)
    if format in ("csv", "tsv"):
        return _delimited(path, format, wishes)
    if format == "jsonl":
        columns = gather(_json_rows(path))
        if not columns:
            raise DataError(f"{display_name(path)}: no rows; expected one JSON object per line")
        label, sequence = _chosen(columns, wishes)
        facts = next(column for column in columns if column.column == sequence[0])
        kind = "features" if facts.vectors else "tokens" if facts.symbols else "text"
        return ReadOptions(format, kind=kind, sequence=_one_or_all(sequence), label=label)
    for flag, value in (("--label", wishes.label), ("--sequence", wishes.sequence)):
        if value is not None:
            raise DataError(f"{flag}: format {format} has no columns to name; leave it out")
    return ReadOptions(format, kind=_fixed_kind(path, format))


def _format(path: str) -> str:
    format, name = resolve_format(path, "auto"), display_name(path)
    if format == "parquet":
        raise DataError(
            f"{name}: init doesn't look into parquet files; write the config yourself: data: "
            "{train: FILE, sequence: COLUMN, label: COLUMN, validation: 0.1}"
        )
    if format is None:
        raise DataError(f"{name}: its ending names no format; known are {', '.join(ENDINGS)}")
    if format == "txt" and not isdir(path):
        with open_input(path) as stream:
            lines = RowSource(stream, ReadOptions(format), RowProblems(name)).lines()
            begin = [line for _, line in islice(lines, FIRST_LINES)]
        if begin and begin[0].startswith("__label__"):
            return "fasttext"
        if any(begin) and not any("\t" in line for line in begin):
            raise DataError(
                f"{name}: no labels: no line has a tab; expected label<TAB>text, csv or jsonl "
                "with a column of labels, or a folder of texts for each class"
            )
    return format


def _fixed_kind(path: str, format: str) -> str:
    """Return what a format without columns holds."""
    if format == "ts":
        return "features"
    if format != "npz":
        return "text"
    distinct: set[float] = set()
    for example in read_examples(path, ReadOptions("npz", kind="features")):
        values = np.asarray(example.sequence)
        if values.shape[1:] != (1,) or not np.array_equal(values, np.rint(values)):
            return "features"
        distinct.update(np.unique(values).tolist())
        if len(distinct) > FEW_SYMBOLS:
            return "features"
    return "tokens"


def _json_rows(path: str) -> Iterator[Fields]:
    problems = RowProblems(display_name(path))
    with open_input(path) as stream:
        for line, text in RowSource(stream, ReadOptions("jsonl"), problems).lines():
            if is_blank(text):
                continue
            try:
                row = parse_json(text)
            except ValueError as bad:
                problems.fail(line, str(bad))
            if not isinstance(row, dict):
                problems.fail(line, "expected a JSON object")
            yield flattened(row)


def _records(path: str, format: str) -> Iterator[list[str]]:
    problems = RowProblems(display_name(path))
    with open_input(path) as stream:
        for _, fields in read_records(RowSource(stream, ReadOptions(format), problems)):
            yield fields
    problems.raise_if_any()


def _delimited(path: str, format: str, wishes: Wishes) -> ReadOptions:
    """Find header, delimiter, label and sequence of a csv or tsv file."""
    name, records = display_name(path), _records(path, format)
    first = next(records, None)
    if first is None or first == [""]:
        raise DataError(f"{name}: no rows; expected one labelled sequence per row")
    width = len(first)
    if width < 2:
        raise DataError(
            f"{name}: one column, {quote(first[0])}; expected a label and a sequence per row, "
            "separated by a comma, semicolon, tab or |"
        )
    columns = gather(enumerate(fields) for fields in records if len(fields) == width)
    if not columns:
        raise DataError(f"{name}: one row; expected a labelled sequence per row")
    header = wishes.header if wishes.header is not None else has_header(first, columns)
    if header is None:
        raise DataError(
            f"{name}: it isn't clear whether {quote(', '.join(first[:4]))} are the names of the "
            "columns; give --header or --no-header"
        )
    for column, title in zip(columns, first, strict=True):
        if header:
            column.column = title
        else:
            column.add(title)
    label, sequence = _chosen(columns, wishes)
    names_a_column = any(isinstance(column, str) for column in [label, *sequence])
    return ReadOptions(
        format,
        header="auto" if header == names_a_column else header,
        delimiter=_delimiter(path) if format == "csv" else "auto",
        sequence=_one_or_all(sequence),
        label=label,
    )


def _delimiter(path: str) -> str:
    """Return the name of a csv file's delimiter; auto for the comma, and for what has no name."""
    with open_input(path) as stream:
        found = find_delimiter(
            RowSource(stream, ReadOptions("csv"), RowProblems(display_name(path)))
        )
    names = {mark: name for name, mark in DELIMITERS.items() if name != "comma"}
    return names.get(found, "auto")


def _chosen(columns: Sequence[ColumnFacts], wishes: Wishes) -> tuple[Column, list[Column]]:
    """Return the columns of the label and of the sequence."""
    label = wishes.label
    label = choose_label(columns) if label is None else _named(label, columns, "--label")
    if wishes.sequence is None:
        return label, choose_sequence(columns, label)
    return label, [_named(column, columns, "--sequence") for column in wishes.sequence]


def _named(wanted: Column, columns: Sequence[ColumnFacts], flag: str) -> Column:
    """Return a column that the user named, or refuse it."""
    names = [column.column for column in columns]
    if wanted in names:
        return wanted
    if str(wanted).isascii() and str(wanted).isdigit() and int(wanted) < len(names):
        return names[int(wanted)]
    found = f"{len(names)} columns, counted from 0, without names"
    if isinstance(names[0], str):
        found = ", ".join(map(str, names))
    raise DataError(f"{flag}: no column {quote(str(wanted))}; found {quote(found)}")


def _one_or_all(columns: list[Column]) -> Column | list[Column]:
    return columns[0] if len(columns) == 1 else columns
