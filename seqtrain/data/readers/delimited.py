"""Formats csv and tsv: rows of fields, quoted as RFC 4180 has it or not at all."""

import csv
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from seqtrain.data.examples import (
    BadRow,
    Column,
    Example,
    Numbered,
    RowProblems,
    column_names,
    keeps_all,
    missing_name,
    parse_rows,
)
from seqtrain.data.readers.opening import LINE_BYTES, RowSource
from seqtrain.data.readers.sequences import sequence_from_cells
from seqtrain.data.readers.time_steps import AT_ONCE
from seqtrain.errors import DataError
from seqtrain.text import quote

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
"""Names of the delimiters in the config, most usual first."""
EXCEL_HINT = re.compile(r"sep=(.)")
"""First line by which Excel says what separates the fields."""
ARFF = re.compile(r"(?:\s*%.*\n)*\s*@relation\b", re.IGNORECASE)
SNIFFED_LINES = 20
QUOTED = re.compile(r'(?<![^,;\t|\n])"(?:[^"]|"")*("|\Z)')
"""A field in quotes, perhaps open at the end: a quote within a field, as of inches, opens none."""


class _Columns:
    """The columns of a file, by index and by name."""

    def __init__(self, problems: RowProblems, line: int, first: list[str], *, named: bool) -> None:
        self.problems, self.line, self.width = problems, line, len(first)
        self.names = dict[str, int]()
        if named and "".join(first[:1]).lstrip().startswith('{"'):
            advice = "give --input-format jsonl (to train, data.format: jsonl)"
            problems.fail(line, f"expected names of columns, found an object of JSON; {advice}")
        for index, name in enumerate(first if named else ()):
            if name and name in self.names:
                problems.fail(line, f"column {quote(name)} occurs twice in the header")
            self.names.setdefault(name, index)
        self.known: dict[Any, int] = {index: index for index in range(len(first))} | self.names

    def find(self, column: Column) -> int:
        """Return the index of a column."""
        if column in self.known:
            return self.known[column]
        found = missing_name("column", str(column), self.names)
        if isinstance(column, int):
            found = f"no column {column}; the row has {self.width}, counted from 0"
        elif self.width == 1:
            marks = [mark for mark in DELIMITERS.values() if mark in next(iter(self.names), "")]
            if marks:
                found += f"; is {quote(marks[0])} what separates them? see data.delimiter"
        return self.problems.fail(self.line, found)


class _Wanted(NamedTuple):
    """Where the columns stand that are read."""

    width: int
    sequence: list[int]
    label: int | None
    group: int | None
    static: list[int]
    kept: dict[str, int]

    def kept_of(self, fields: Sequence[str]) -> dict[str, str] | None:
        return {name: fields[at] for name, at in self.kept.items()} if self.kept else None

    def group_of(self, fields: Sequence[str]) -> str | None:
        group = "" if self.group is None else fields[self.group]
        return None if not group or group.isspace() else group


def read_delimited(source: RowSource) -> Iterator[Example]:
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
    where, label_at = [*map(columns.find, sequence)], None
    if label is not None and (source.labelled or label in columns.known):
        label_at = columns.find(label)
    if not sequence:  # features: a column for each time step
        others = {label_at, *map(columns.known.get, ("", options.group, *keep))}
        where = [index for index in range(columns.width) if index not in others]
    if not where:
        source.problems.fail(columns.line, "no column but the label's; expected a sequence")
    if label_at in where and options.steps is None:
        raise DataError(f"data.label: {label!r} is a column of data.sequence too")
    if len({*where}) < len(where) and options.steps is None:
        raise DataError(f"data.sequence: {sequence} names a column twice")
    if keeps_all(options.keep):
        keep = [*(columns.names or range(columns.width))]
    wanted = _Wanted(
        columns.width,
        where,
        label_at,
        group=None if options.group is None else columns.find(options.group),
        static=[*map(columns.find, static)],
        kept={str(column): columns.find(column) for column in keep},
    )
    if options.steps is not None and source.stream.seekable():
        records = yield from _tables(source, records, wanted)
    yield from parse_rows(records, _row_parser(source, wanted), blank_rows=columns.width == 1)


def _tables(
    source: RowSource, records: Numbered, wanted: _Wanted
) -> Generator[Any, None, Numbered]:
    """Yield rows that are time steps, many at once; return those from a bad one on."""
    while some := [*islice(records, AT_ONCE)]:
        lines, rows = zip(*some, strict=True)
        if {*map(type, rows)} != {list} or {*map(len, rows)} != {wanted.width}:
            return chain(some, records)
        columns, nothing = [*zip(*rows, strict=True)], (None,) * len(rows)
        given = nothing if wanted.label is None else columns[wanted.label]
        labels = {cell: None if cell is None else source.label(cell) for cell in {*given}}
        groups = nothing if wanted.group is None else [*map(wanted.group_of, rows)]
        kept = [*map(wanted.kept_of, rows)] if wanted.kept else nothing
        cells = (columns[at] for at in (*wanted.sequence, *wanted.static))
        yield [lines, [*map(labels.__getitem__, given)], groups, kept, *cells]
    return records


def _row_parser(source: RowSource, wanted: _Wanted) -> Callable[[list[str]], tuple[Any, ...]]:
    kind = source.options.kind

    def parse(fields: list[str]) -> tuple[Any, ...]:
        if len(fields) != wanted.width:
            found = f"expected {wanted.width} fields as in the first row, found {len(fields)}"
            raise BadRow(found)
        label = None if wanted.label is None else source.label(fields[wanted.label])
        static = source.static([fields[at] for at in wanted.static])
        cells = [fields[at] for at in wanted.sequence]
        sequence = " ".join(cells) if kind == "text" else sequence_from_cells(cells, kind)
        return sequence, label, wanted.group_of(fields), wanted.kept_of(fields), None, static

    return parse


def _first_row(source: RowSource, *, has_header: bool) -> tuple[Numbered, _Columns]:
    records, rows = read_records(source), list[tuple[int, Any]]()
    for row in records:
        rows.append(row)
        if has_header or not (row[1] == [""] or isinstance(row[1], BadRow)):
            break
    line, first = rows[-1] if rows else (0, [])
    if has_header and isinstance(first, BadRow):
        source.problems.fail(line, str(first))
    first = [""] if isinstance(first, BadRow) else first
    columns = _Columns(source.problems, line, first, named=has_header)
    return records if has_header else chain(rows, records), columns


def read_records(source: RowSource) -> Numbered:
    """Yield the fields of each row and the line where it begins; a BadRow for a bad line."""
    options = source.options
    if options.format == "csv" and ARFF.match(peeked(source)):
        return _arff_records(source)
    delimiter = find_delimiter(source)
    quoted = options.quoting == "standard" or (options.quoting, options.format) == ("auto", "csv")
    records: Numbered = (
        (line, text if isinstance(text, BadRow) else text.split(delimiter))
        for line, text in source.lines()
    )
    records = _quoted_records(source, delimiter) if quoted else records
    first = next(records, None) if options.format == "csv" else None
    if first is None or (type(first[1]) is list and EXCEL_HINT.fullmatch(delimiter.join(first[1]))):
        return records
    return chain([first], records)


def _arff_records(source: RowSource) -> Numbered:
    """Yield the names of the attributes, then the rows, as of a csv file with a header."""
    names, in_data = list[str](), False
    for line, text in source.lines():
        if isinstance(text, BadRow):
            yield line, text
        elif in_data and text.strip() and not text.startswith("%"):
            yield line, next(csv.reader([text], quotechar="'", skipinitialspace=True))
        elif not in_data and text.lower().startswith("@attribute"):
            words = csv.reader([text[10:].strip()], delimiter=" ", quotechar="'")
            names += next(words)[:1]
        elif text.lower().strip() == "@data":
            in_data = True
            yield line, names


def _quoted_records(source: RowSource, delimiter: str) -> Numbered:
    csv.field_size_limit(LINE_BYTES)
    problems = source.problems
    read: list[str] = []  # the lines of the record under way
    bad = 0  # lines that the csv reader didn't see

    def take(text: Any) -> str:
        if isinstance(text, BadRow):
            raise text
        read.append(text)
        return str(text)

    reader = csv.reader(
        map(take, chain.from_iterable(source.blocks())), delimiter=delimiter, strict=True
    )
    while True:
        line = reader.line_num + bad + 1
        read.clear()
        try:
            yield line, next(reader) or [""]
        except StopIteration:
            return
        except BadRow as problem:
            if read:
                problems.fail(line, "the quoted field that opens here can't be read to its end")
            bad += 1
            yield line, problem
        except csv.Error as error:
            problems.fail(*_csv_problem(str(error), line, "".join(read), delimiter))


def _csv_problem(error: str, line: int, text: str, delimiter: str) -> tuple[int, str]:
    """Say on which line what is wrong begins in a record, given as text from a line on."""
    if "new-line character" in error:
        return line, "a field without quotes holds a carriage return; put it in quotes"
    for field in QUOTED.finditer(text):
        opens = line + text.count("\n", 0, field.start())
        if not field[1] and "field limit" in error:
            return opens, f"the quoted field is longer than {LINE_BYTES} characters"
        if not field[1]:
            return opens, "the quote that opens on this line is never closed"
        rest = text[field.end() :].partition("\n")[0].rstrip("\r")
        if rest and not rest.startswith(delimiter):
            ends = f"the quoted field that opens here ends before {quote(rest)}"
            return opens, f'{ends}; write "" for a quote inside it'
    return line, error


def peeked(source: RowSource) -> str:
    """Return what stands at the beginning of a file, which stays there."""
    peek = getattr(source.stream, "peek", lambda: b"")
    try:
        return str(peek().decode("utf-8-sig", "replace"))
    except OSError as error:
        source.problems.fail(1, error.strerror or str(error))


def find_delimiter(source: RowSource) -> str:
    """Return the character that separates the fields of a file, which stays at its beginning.

    It is the config's; a tab in tsv; that of Excel's first line `sep=;`; else the first of comma,
    semicolon, tab and pipe that stands equally often in each of the first lines.
    """
    if source.options.delimiter != "auto":
        return DELIMITERS[source.options.delimiter]
    if source.options.format == "tsv":
        return DELIMITERS["tab"]
    *whole, rest = peeked(source).split("\n")
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
