"""Formats csv and tsv: rows of fields, quoted as RFC 4180 has it or not at all."""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from operator import itemgetter
from typing import Any, cast

from seqtrain.data.examples import (
    BadRow,
    Column,
    Example,
    Numbered,
    ReadOptions,
    RowProblems,
    column_names,
    keeps_all,
    missing_name,
)
from seqtrain.data.readers.cells import Getter, read_cells
from seqtrain.data.readers.opening import LINE_BYTES, RowSource
from seqtrain.data.readers.time_steps import Rows
from seqtrain.errors import DataError
from seqtrain.text import quote

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
"""Names of the delimiters in the config, most usual first."""
EXCEL_HINT = re.compile(r"sep=(.)\r?$", re.MULTILINE)
"""First line by which Excel says what separates the fields."""
ARFF = re.compile(r"(?:\s*%.*\n)*\s*@relation\b", re.IGNORECASE)
SNIFFED_LINES = 20
QUOTED = re.compile(r'(?<![^,;\t|\n])"(?:[^"]|"")*("|\Z)')
"""A field in quotes, perhaps open at the end: a quote within a field, as of inches, opens none."""


class _Columns:
    """The columns of a file, by index and by name."""

    def __init__(self, problems: RowProblems, line: int, first: list[str], *, named: bool) -> None:
        self.problems, self.line, self.width = problems, line, len(first)
        self.names = dict[Column, int]()
        if named and "".join(first[:1]).lstrip().startswith('{"'):
            advice = "give --input-format jsonl (to train, data.format: jsonl)"
            problems.fail(line, f"expected names of columns, found an object of JSON; {advice}")
        for index, name in enumerate(first if named else ()):
            if name and name in self.names:
                problems.fail(line, f"column {quote(name)} occurs twice in the header")
            self.names.setdefault(name, index)
        self.known: dict[Any, int] = dict(enumerate(range(self.width))) | self.names

    def find(self, column: Column) -> int:
        """Return the index of a column."""
        if column in self.known:
            return self.known[column]
        found = missing_name("column", str(column), map(str, self.names))
        if isinstance(column, int):
            found = f"no column {column}; the row has {self.width}, counted from 0"
        elif self.width == 1:
            first = str(next(iter(self.names), ""))
            marks = [mark for mark in DELIMITERS.values() if mark in first]
            if marks:
                found += f"; is {quote(marks[0])} what separates them? see data.delimiter"
        return self.problems.fail(self.line, found)

    def cells_of(self, columns: list[Column | None]) -> Getter:
        """Return what takes the fields of some columns out of a row."""
        places = [self.width if x is None else self.find(x) for x in columns]
        width, take = self.width, cast("Getter", itemgetter(*places))

        def get(fields: list[str]) -> Sequence[Any]:
            if len(fields) != width:
                found = f"expected {width} fields as in the first row, found {len(fields)}"
                raise BadRow(found)
            return take((*fields, None))

        return get


def read_delimited(source: RowSource) -> Iterator[Example | Rows]:
    """Read rows parted by commas (csv) or tabs (tsv).

    A blank line is an empty sequence in a file of one column, is dropped at the end of any other
    file and is a bad row elsewhere.
    """
    options = source.options
    sequence, label = options.sequence_columns(), options.label_column(source.labelled)
    keep: list[Column] = [] if keeps_all(options.keep) else [*options.keep]
    static = column_names(options.static)
    named = [x for x in (*sequence, *static, label, options.group, *keep) if type(x) is str]
    if options.header is False and named:
        needs_names = options.steps is not None or static
        advice = "give the file a row of names" if needs_names else "give its index from 0"
        raise DataError(f"data.header: false, but column {quote(named[0])} is named; {advice}")
    records, columns = _first_row(source, has_header=options.header is True or bool(named))
    if not columns.width:
        return
    known = columns.known
    if not source.labelled and label not in known:
        label = None
    if not sequence:  # features: a column for each time step
        others = {known[x] for x in ("", label, options.group, *keep) if x in known}
        sequence = [index for index in range(columns.width) if index not in others]
    if not sequence:
        source.problems.fail(columns.line, "no column but the label's; expected a sequence")
    if options.steps is None:
        places = [*map(columns.find, sequence)]
        if label is not None and columns.find(label) in places:
            raise DataError(f"data.label: {label!r} is a column of data.sequence too")
        if len({*places}) < len(places):
            raise DataError(f"data.sequence: {sequence} names a column twice")
    if keeps_all(options.keep):
        keep = [*(columns.names or range(columns.width))]
    source = replace(source, options=replace(options, sequence=sequence, label=label, keep=keep))
    rows = source.good(records, blank_rows=columns.width == 1)
    yield from read_cells(source, rows, columns.cells_of)


def _first_row(source: RowSource, *, has_header: bool) -> tuple[Numbered, _Columns]:
    records, rows = read_records(source), list[tuple[int, Any]]()
    for row in records:
        rows.append(row)
        try:
            source.check(",".join(row[1]))
        except BadRow as bad:
            if has_header:
                source.problems.fail(row[0], str(bad))
        else:
            if has_header or row[1] != [""]:
                break
    line, first = rows[-1] if rows else (0, [])
    columns = _Columns(source.problems, line, first, named=has_header)
    return records if has_header else chain(rows, records), columns


def read_records(source: RowSource) -> Numbered:
    """Yield the fields of each row and the line where it begins."""
    options, head = source.options, peeked(source)
    csv.field_size_limit(LINE_BYTES)
    if options.format == "csv" and ARFF.match(head):
        return _arff_records(source)
    delimiter = find_delimiter(options, head)
    quoted = options.quoting == "standard" or (options.quoting, options.format) == ("auto", "csv")
    records: Numbered = ((line, text.split(delimiter)) for line, text in source.lines())
    records = _quoted_records(source, delimiter) if quoted else records
    return islice(records, int(options.format == "csv" and bool(EXCEL_HINT.match(head))), None)


def _arff_records(source: RowSource) -> Numbered:
    """Yield the names of the attributes, then the rows, as of a csv file with a header."""
    names, in_data = list[str](), False
    for line, text in source.lines():
        if in_data and text.strip() and not text.startswith("%"):
            yield line, _fields(source, line, text, ",")
        elif not in_data and text.lower().startswith("@attribute"):
            names += _fields(source, line, text[10:].strip(), " ")[:1]
        elif text.lower().strip() == "@data":
            in_data = True
            yield line, names


def _fields(source: RowSource, line: int, text: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=delimiter, quotechar="'", skipinitialspace=True))
    except csv.Error as error:
        source.problems.fail(line, _csv_problem(str(error)))


def _quoted_records(source: RowSource, delimiter: str) -> Numbered:
    lines = chain.from_iterable(source.blocks())
    reader, line = csv.reader(lines, delimiter=delimiter, strict=True), 1
    try:
        for fields in reader:
            yield line, fields or [""]
            line = reader.line_num + 1
    except csv.Error as error:
        source.problems.fail(line, _csv_problem(str(error)))


def _csv_problem(error: str) -> str:
    """Say what is wrong in a row."""
    if "new-line character" in error:
        return "a field without quotes holds a carriage return; put it in quotes"
    if "field limit" in error:
        return f"a quoted field is longer than {LINE_BYTES} characters"
    if "unexpected end" in error:
        return "the quote that opens on this line is never closed"
    return 'a field goes on after its closing quote; write "" for a quote inside it'


def peeked(source: RowSource) -> str:
    """Return what stands at the beginning of a file, which stays there."""
    peek = getattr(source.stream, "peek", lambda: b"")
    try:
        return str(peek().decode("utf-8-sig", "replace"))
    except OSError as error:
        source.problems.fail(1, error.strerror or str(error))


def find_delimiter(options: ReadOptions, head: str) -> str:
    """Return the character that separates the fields of a file, by how it begins.

    It is the config's; a tab in tsv; that of Excel's first line `sep=;`; else the first of comma,
    semicolon, tab and pipe that stands equally often in each of the first lines.
    """
    if options.delimiter != "auto":
        return DELIMITERS[options.delimiter]
    if options.format == "tsv":
        return DELIMITERS["tab"]
    hint = EXCEL_HINT.match(head)
    if hint:
        return hint[1]
    *whole, rest = head.split("\n")
    lines = [line.removesuffix("\r") for line in (whole or [rest])[:SNIFFED_LINES]]
    text = "\n".join(lines)
    bare = [line for line in QUOTED.sub("", text).split("\n") if line]
    if any(not found[1] for found in QUOTED.finditer(text)) and len(bare) > 1:
        bare.pop()  # the row goes on, in quotes, behind the first lines
    for delimiter in DELIMITERS.values():
        counts = {line.count(delimiter) for line in bare}
        if len(counts) == 1 and counts != {0}:
            return delimiter
    return DELIMITERS["comma"]
