"""How a file of labelled sequences is read: its format, its columns, its kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from os.path import isdir

import numpy as np

from seqtrain.config.formats import ENDINGS, advice, resolve_format
from seqtrain.data.examples import RowProblems
from seqtrain.data.readers import Column, ReadOptions, read_examples
from seqtrain.data.readers.delimited import DELIMITERS, delimiter_of, read_records
from seqtrain.data.readers.files import open_input
from seqtrain.data.readers.lines import read_lines
from seqtrain.data.readers.npz import FEW_SYMBOLS
from seqtrain.data.readers.rows import is_blank_line
from seqtrain.data.readers.strict_json import parse_json
from seqtrain.errors import DataError
from seqtrain.proposal.columns import (
    choose_label,
    choose_sequence,
    find_group,
    flattened,
    gather,
    has_header,
)
from seqtrain.text import display_name, quote

FIRST_LINES = 4096
"""Lines of a text file that tell what it is, at most."""


@dataclass(frozen=True)
class Wishes:
    """What the user says of a data file, each None where it is to be found.

    Attributes:
        label, sequence, group: columns.
        header: whether the first row names the columns.
        kind: text, tokens or features.
    """

    label: Column | None = None
    sequence: list[Column] | None = None
    group: Column | None = None
    header: bool | None = None
    kind: str | None = None


@dataclass
class Table:
    """Columns as found, and how they are read."""

    reading: ReadOptions
    header: bool | None = None
    delimiter: str | None = None
    group: Column | None = None


def find_table(path: str, wishes: Wishes) -> Table:
    """Find the columns of a data file, in one reading.

    Args:
        path: a file, or a folder of text files.
        wishes: what the user says of it.

    Raises:
        DataError: it can't be read, or what is needed can't be told from it.
    """
    format = _format(path)
    if format in ("csv", "tsv"):
        return _delimited_table(path, format, wishes)
    if format == "jsonl":
        return _json_table(path, wishes)
    _refuse_columns(wishes, format)
    return Table(ReadOptions(format, kind=wishes.kind or _fixed_kind(path, format)))


def _format(path: str) -> str:
    format = resolve_format(path, "auto")
    how = advice(path)
    if format is None and how is not None:
        raise DataError(f"{display_name(path)}: can't be read as it is; {how}")
    if format == "parquet":
        raise DataError(
            f"{display_name(path)}: of parquet no config is proposed; write one: data: "
            "{train: FILE, sequence: COLUMN, label: COLUMN, validation: 0.1}"
        )
    if format is None:
        raise DataError(
            f"{display_name(path)}: its ending names no format; known are {', '.join(ENDINGS)}"
        )
    if format == "txt" and not isdir(path):
        with open_input(path, pipes=False) as stream:
            lines = read_lines(stream, RowProblems(display_name(path)))
            begin = [line for _, line in islice(lines, FIRST_LINES)]
        if begin and begin[0].startswith("__label__"):
            return "fasttext"
        if any(begin) and not any("\t" in line for line in begin):
            raise DataError(
                f"{display_name(path)}: no labels: no line has a tab; expected label<TAB>text, "
                "csv or jsonl with a column of labels, or a folder of texts for each class"
            )
    return format


def _refuse_columns(wishes: Wishes, format: str) -> None:
    """Refuse columns of a format that has none."""
    named = {"--label": wishes.label, "--sequence": wishes.sequence, "--group": wishes.group}
    for flag, value in named.items():
        if value is not None:
            raise DataError(f"{flag}: format {format} has no columns to name; leave it out")


def _fixed_kind(path: str, format: str) -> str:
    """Tell what a format without columns holds."""
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


def _delimited_table(path: str, format: str, wishes: Wishes) -> Table:
    """Find header, label and sequence of a csv or tsv file."""
    options = ReadOptions(format)
    name = display_name(path)

    def rows() -> Iterator[list[str]]:
        problems = RowProblems(name)
        with open_input(path, pipes=False) as stream:
            for _, fields in read_records(stream, options, problems):
                yield fields
        problems.raise_if_any()

    first = next(rows(), None)
    if first is None or first == [""]:
        raise DataError(f"{name}: no rows; expected one labelled sequence per row")
    width = len(first)
    if width < 2:
        raise DataError(
            f"{name}: one column, {quote(first[0])}; expected a label and a sequence per row, "
            "separated by a comma, semicolon, tab or |"
        )

    def body() -> Iterator[list[tuple[Column, object]]]:
        others = rows()
        next(others)
        for fields in others:
            if len(fields) == width:
                yield list(enumerate(fields))

    columns = list(gather(body()).values())
    if not columns:
        raise DataError(f"{name}: one row; expected a labelled sequence per row")
    header = wishes.header if wishes.header is not None else has_header(first, columns)
    if header is None:
        raise DataError(
            f"{name}: can't tell whether {quote(', '.join(first[:4]))} are the columns' names; "
            "give --header or --no-header"
        )
    for column, title in zip(columns, first, strict=True):
        if header:
            column.column = title
        else:
            column.add(title)
    named = [name for name in first if header]
    label = _column(wishes.label, named, width, "--label")
    label = choose_label(columns).column if label is None else label
    sequence = (
        choose_sequence(columns, label)
        if wishes.sequence is None
        else [_known(_column(c, named, width, "--sequence")) for c in wishes.sequence]
    )
    kind = wishes.kind or "text"
    used = sequence[0] if len(sequence) == 1 else sequence
    header_key = header if header != any(isinstance(c, str) for c in [label, *sequence]) else None
    reading = ReadOptions(
        format, kind=kind, header="auto" if header_key is None else header_key,
        sequence=used, label=label, group=wishes.group,
    )  # fmt: skip
    group = find_group(columns, [label, *sequence])
    return Table(reading, header_key, _delimiter(path, format), group)


def _delimiter(path: str, format: str) -> str | None:
    """Return the name of a delimiter that isn't the format's own."""
    if format != "csv":
        return None
    with open_input(path, pipes=False) as stream:
        found = delimiter_of(stream, ReadOptions(format), RowProblems(display_name(path)))
    name = next((name for name, mark in DELIMITERS.items() if mark == found), repr(found))
    return None if name == "comma" else name


def _known(column: Column | None) -> Column:
    assert column is not None
    return column


def _column(wanted: Column | None, names: list[str], width: int, flag: str) -> Column | None:
    """Return a column that the user named, as the config names it.

    Raises:
        DataError: the file has no such column.
    """
    if wanted is None or wanted in names:
        return wanted
    index = int(wanted) if str(wanted).isascii() and str(wanted).isdigit() else width
    if index < width:
        return names[index] if names else index
    found = ", ".join(names) if names else f"{width} columns, counted from 0, without names"
    raise DataError(f"{flag}: no column {quote(str(wanted))}; found {quote(found)}")


def _json_table(path: str, wishes: Wishes) -> Table:
    """Find label and sequence of a jsonl file."""
    name = display_name(path)

    def rows() -> Iterator[Iterable[tuple[Column, object]]]:
        problems = RowProblems(name)
        with open_input(path, pipes=False) as stream:
            for line, text in read_lines(stream, problems):
                if is_blank_line(text):
                    continue
                try:
                    row = parse_json(text)
                except ValueError as bad:
                    problems.fail(line, str(bad))
                if not isinstance(row, dict):
                    problems.fail(line, "expected a JSON object")
                yield flattened(row)

    columns = list(gather(rows()).values())
    if not columns:
        raise DataError(f"{name}: no rows; expected one JSON object per line")
    names = [str(column.column) for column in columns]
    label = _column(wishes.label, names, 0, "--label")
    label = choose_label(columns).column if label is None else label
    sequence = (
        choose_sequence(columns, label)
        if wishes.sequence is None
        else [_known(_column(c, names, 0, "--sequence")) for c in wishes.sequence]
    )
    facts = next(column for column in columns if column.column == sequence[0])
    kind = "features" if facts.vectors else "tokens" if facts.symbols else "text"
    used = sequence[0] if len(sequence) == 1 else sequence
    reading = ReadOptions(
        "jsonl", kind=wishes.kind or kind, sequence=used, label=label, group=wishes.group
    )
    return Table(reading, group=find_group(columns, [label, *sequence]))
