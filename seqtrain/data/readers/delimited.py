"""Formats csv and tsv: rows of fields, quoted as RFC 4180 has it or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from operator import itemgetter
from typing import BinaryIO, NoReturn, TypeAlias

from seqtrain.data.examples import Example, RowProblems
from seqtrain.data.readers.lines import LINE_BYTES, read_lines, without_end
from seqtrain.data.readers.options import Column, ReadOptions, missing_name
from seqtrain.data.readers.rows import Parsed, checked_label, parse_rows, without_blank_rows
from seqtrain.data.readers.sequences import sequence_from_text
from seqtrain.errors import DataError
from seqtrain.text import quote

Lines: TypeAlias = Iterator[tuple[int, str]]
Record: TypeAlias = tuple[int, list[str]]

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
"""Names of the delimiters in the config, most usual first."""
EXCEL_HINT = re.compile(r"sep=(.)")
"""First line by which Excel says what separates the fields."""
SNIFFED_LINES = 20
QUOTED = re.compile(r'(?<![^,;\t|\n])"(?:[^"]|"")*("|\Z)')
"""A field in quotes, perhaps open at the end: a quote within a field, as of inches, opens none."""

_INSIDE_QUOTES = re.compile(r'(?:[^"]+|"")*')


def read_delimited(
    stream: BinaryIO, options: ReadOptions, problems: RowProblems, labelled: bool
) -> Iterator[Example]:
    """Read rows parted by commas (csv) or tabs (tsv).

    A blank line is an empty sequence in a file of one column, is dropped at the end of any other
    file and is a bad row elsewhere.

    Args:
        stream: the file's bytes.
        options: columns, header, quoting and kind.
        problems: where rows are complained about.
        labelled: whether the label's column must be there.
    """
    columns = options.sequence_columns()
    label_column = options.label_column(labelled)
    records = read_records(stream, options, problems)
    first = next(records, None)
    if first is None:
        return
    named = [*columns, label_column, options.group, *options.keep]
    names = _header(first, options, named, problems)
    if names is None:
        records = chain([first], records)
    line, width = first[0], len(first[1])
    where = [_position(column, names, width, line, problems) for column in columns]
    label_at: int | None = None
    if label_column is not None and (labelled or _is_present(label_column, names, width)):
        label_at = _position(label_column, names, width, line, problems)
    if label_at in where:
        raise DataError(f"data.label: {label_column!r} is a column of data.sequence too")
    if len(set(where)) < len(where):
        raise DataError(f"data.sequence: {columns} names a column twice")

    group_at: int | None = None
    if options.group is not None:
        group_at = _position(options.group, names, width, line, problems)
    kept_at = {str(name): _position(name, names, width, line, problems) for name in options.keep}

    text_of = itemgetter(*where)
    is_text, is_one = options.kind == "text", len(where) == 1

    def parse(fields: list[str]) -> Parsed:
        text = text_of(fields) if is_one else " ".join(text_of(fields))
        label = None if label_at is None else checked_label(fields[label_at], labelled)
        group = None if group_at is None else checked_label(fields[group_at], labelled=False)
        kept = {name: fields[at] for name, at in kept_at.items()} if kept_at else None
        return text if is_text else sequence_from_text(text, options.kind), label, group, kept

    yield from parse_rows(_even_rows(records, width, problems), parse, problems)


def read_records(stream: BinaryIO, options: ReadOptions, problems: RowProblems) -> Iterator[Record]:
    """Return the fields of each row and the line where it begins."""
    quoted = options.quoting == "standard" or (options.quoting, options.format) == ("auto", "csv")
    delimiter = delimiter_of(stream, options, problems)
    lines = read_lines(stream, problems, keep_ends=quoted)
    if options.format == "csv":
        lines = _without_hint(lines)
    if quoted:
        return _quoted_records(lines, delimiter, problems)
    return ((line, text.split(delimiter)) for line, text in lines)


def delimiter_of(stream: BinaryIO, options: ReadOptions, problems: RowProblems) -> str:
    """Tell what separates the fields of a file, which stays where it is.

    Args:
        stream: buffered bytes, at their start.
        options: delimiter and format.
        problems: where damage is reported.

    Returns:
        The character: of the config; a tab in tsv; of Excel's first line `sep=;`; else the first of
        comma, semicolon, tab and pipe that stands equally often, at least once, in each of the
        first lines outside quotes; a comma where none does.
    """
    if options.delimiter != "auto":
        return DELIMITERS[options.delimiter]
    if options.format == "tsv":
        return DELIMITERS["tab"]
    peek = getattr(stream, "peek", lambda: b"")
    try:
        *whole, rest = peek().decode("utf-8-sig", "replace").split("\n")
    except OSError as error:
        problems.fail(1, error.strerror or str(error))
    lines = [line.removesuffix("\r") for line in (whole or [rest])[:SNIFFED_LINES]]
    hint = EXCEL_HINT.fullmatch(lines[0])
    if hint:
        return hint[1]
    text = "\n".join(lines)
    bare = [line for line in QUOTED.sub("", text).split("\n") if line]
    if any(not found[1] for found in QUOTED.finditer(text)) and len(bare) > 1:
        bare.pop()  # the row goes on, in quotes, behind the first lines
    for delimiter in DELIMITERS.values():
        counts = {line.count(delimiter) for line in bare}
        if len(counts) == 1 and counts != {0}:
            return delimiter
    return DELIMITERS["comma"]


def _without_hint(lines: Lines) -> Lines:
    """Drop Excel's line `sep=;` where it comes first."""
    for line, text in lines:
        if line > 1 or not EXCEL_HINT.fullmatch(without_end(text)):
            yield line, text


def _quoted_records(lines: Lines, delimiter: str, problems: RowProblems) -> Iterator[Record]:
    """Split lines into fields where a field in quotes may hold delimiters and line ends."""
    for first, text in lines:
        if '"' not in text:
            yield first, without_end(text).split(delimiter)
            continue
        fields: list[str] = []
        line, at, end = first, 0, len(without_end(text))
        while at <= end:
            if text.startswith('"', at):
                opened = line
                field, line, text, at = _quoted_field(line, text, at + 1, lines, problems)
                end = len(without_end(text))
                if at < end and text[at] != delimiter:
                    _fail_behind_quote(opened, line, text[at:end], problems)
            else:
                stop = text.find(delimiter, at, end)
                stop = end if stop < 0 else stop
                field, at = text[at:stop], stop
            fields.append(field)
            at += 1
        yield first, fields


def _quoted_field(
    opened: int, text: str, at: int, lines: Lines, problems: RowProblems
) -> tuple[str, int, str, int]:
    """Read on from behind an opening quote; return field, and line, text and place behind it."""
    parts: list[str] = []
    size, line = 0, opened
    while True:
        match = _INSIDE_QUOTES.match(text, at)
        end = match.end() if match else at
        parts.append(text[at:end])
        if end < len(text):
            return "".join(parts).replace('""', '"'), line, text, end + 1
        size += end - at
        noted = problems.count
        line, text = next(lines, (line, ""))
        if problems.count > noted:
            problems.fail(opened, "the quoted field that opens here can't be read to its end")
        at = 0
        if not text:
            problems.fail(opened, "the quote that opens on this line is never closed")
        if size > LINE_BYTES:
            problems.fail(opened, f"the quoted field is longer than {LINE_BYTES} characters")


def _fail_behind_quote(opened: int, line: int, rest: str, problems: RowProblems) -> NoReturn:
    """Complain about text behind a closing quote, under the line where the quote opens."""
    where = "" if line == opened else f" on line {line}"
    problems.fail(
        opened,
        f"the quoted field that opens here ends{where} before {quote(rest)}; "
        'write "" for a quote inside it',
    )


def _header(
    first: Record, options: ReadOptions, columns: list[Column | None], problems: RowProblems
) -> dict[str, int] | None:
    """Return the index of each column's name where the first row holds names."""
    named = [column for column in columns if isinstance(column, str)]
    if options.header is False and named:
        raise DataError(
            f"data.header: false, but column {quote(named[0])} is named; give its index from 0"
        )
    if options.header is False or (options.header == "auto" and not named):
        return None
    line, names = first
    places: dict[str, int] = {}
    for place, name in enumerate(names):
        if name and name in places:
            problems.fail(line, f"column {quote(name)} occurs twice in the header")
        places.setdefault(name, place)
    return places


def _is_present(column: Column, names: dict[str, int] | None, width: int) -> bool:
    """Tell whether the file has the column."""
    return column < width if isinstance(column, int) else column in (names or ())


def _position(
    column: Column, names: dict[str, int] | None, width: int, line: int, problems: RowProblems
) -> int:
    """Return the index of a column, which must be there."""
    if not _is_present(column, names, width):
        if isinstance(column, int):
            problems.fail(line, f"no column {column}; the row has {width}, counted from 0")
        found = missing_name("column", column, names or ())
        only = next(iter(names or ()), "")
        split = next((mark for mark in DELIMITERS.values() if mark in only), None)
        if width == 1 and split is not None:
            found += f"; is {quote(split)} what separates them? see data.delimiter"
        problems.fail(line, found)
    return column if isinstance(column, int) else (names or {})[column]


def _even_rows(records: Iterator[Record], width: int, problems: RowProblems) -> Iterator[Record]:
    """Pass on the rows that have as many fields as the first."""
    if width > 1:
        records = without_blank_rows(records, lambda fields: fields == [""], problems)
    for line, fields in records:
        if len(fields) == width:
            yield line, fields
        else:
            problems.add(line, f"expected {width} fields as in the first row, found {len(fields)}")
