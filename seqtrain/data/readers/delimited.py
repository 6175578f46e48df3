"""Formats csv and tsv: rows of fields, quoted as RFC 4180 has it or not at all."""

import csv
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain, count, islice
from operator import itemgetter
from typing import Any

from seqtrain.data.examples import (
    BadRow,
    Column,
    Example,
    Numbered,
    RowProblems,
    column_names,
    missing_name,
    parse_rows,
)
from seqtrain.data.readers.opening import LINE_BYTES, RowSource, without_end
from seqtrain.data.readers.sequences import features_from_fields
from seqtrain.data.readers.time_steps import AT_ONCE
from seqtrain.errors import DataError
from seqtrain.text import quote

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
"""Names of the delimiters in the config, most usual first."""
EXCEL_HINT = re.compile(r"sep=(.)")
"""First line by which Excel says what separates the fields."""
FRACTION = re.compile(r"-?[0-9]*\.[0-9]+([eE][-+]?[0-9]+)?")
ARFF = re.compile(r"(?:\s*%.*\n)*\s*@relation\b", re.IGNORECASE)
SNIFFED_LINES = 20
AS_JSONL = ", but an object of JSON; give --input-format jsonl (to train, data.format: jsonl)"
QUOTED = re.compile(r'(?<![^,;\t|\n])"(?:[^"]|"")*("|\Z)')
"""A field in quotes, perhaps open at the end: a quote within a field, as of inches, opens none."""


class _Columns:
    def __init__(self, line: int, first: list[str], names: dict[str, int]) -> None:
        self.line, self.width, self.names = line, len(first), names
        self.known: dict[Any, int] = {index: index for index in range(len(first))} | names

    def find(self, column: Column, problems: RowProblems) -> int:
        """Return the index of a column."""
        if column not in self.known:
            problems.fail(self.line, self._not_found(column))
        return self.known[column]

    def _not_found(self, column: Column) -> str:
        if isinstance(column, int):
            return f"no column {column}; the row has {self.width}, counted from 0"
        found = missing_name("column", column, self.names)
        if _begins_object(self.names):
            return f"no column {quote(str(column))}{AS_JSONL}"
        marks = [mark for mark in DELIMITERS.values() if mark in next(iter(self.names), "")]
        if self.width == 1 and marks:
            found += f"; is {quote(marks[0])} what separates them? see data.delimiter"
        return found


def read_delimited(source: RowSource) -> Iterator[Example]:
    """Read rows parted by commas (csv) or tabs (tsv).

    A blank line is an empty sequence in a file of one column, is dropped at the end of any other
    file and is a bad row elsewhere.
    """
    options, problems = source.options, source.problems
    sequence, label = options.sequence_columns(), options.label_column(source.labelled)
    keep: list[Column] = [] if options.keeps_all else [*options.keep]
    static = column_names(options.static)
    named = [x for x in (*sequence, *static, label, options.group, *keep) if type(x) is str]
    if options.header is False and named:
        raise DataError(
            f"data.header: false, but column {quote(named[0])} is named; give its index from 0"
        )
    records, columns = _first_row(source, has_header=options.header is True or bool(named))
    if not columns.width:
        return
    where = [columns.find(column, problems) for column in sequence]
    label_at: int | None = None
    if label is not None and (source.labelled or label in columns.known):
        label_at = columns.find(label, problems)
    if not sequence:  # features: a column for each time step
        if any(FRACTION.fullmatch(name) for name in columns.names):
            problems.fail(columns.line, "found numbers; expected names of columns as in training")
        beside = [columns.known.get(x) for x in ("", options.group, *keep)]
        others = {label_at, *beside}
        where = [index for index in range(columns.width) if index not in others]
    if not where:
        problems.fail(columns.line, "no column but the label's; expected a sequence")
    if label_at in where and options.steps is None:
        raise DataError(f"data.label: {label!r} is a column of data.sequence too")
    if len(set(where)) < len(where) and options.steps is None:
        raise DataError(f"data.sequence: {sequence} names a column twice")
    group_at = None if options.group is None else columns.find(options.group, problems)
    if options.keeps_all:
        keep = [*(columns.names or range(columns.width))]
    kept_at = {str(column): columns.find(column, problems) for column in keep}
    static_at = [columns.find(name, problems) for name in static]
    parse = _row_parser(source, columns.width, where, (label_at, group_at, static_at), kept_at)
    if options.steps is not None and source.stream.seekable():
        cells = [*where, *static_at]
        records = yield from _tables(
            source, records, columns.width, cells, label_at, group_at, kept_at
        )
    yield from parse_rows(records, parse, blank_rows=columns.width == 1)


def _tables(
    source: RowSource,
    records: Numbered,
    width: int,
    cells: list[int],
    label_at: int | None,
    group_at: int | None,
    kept_at: dict[str, int],
) -> Generator[Any, None, Numbered]:
    """Yield rows that are time steps, many at once; return those from a bad one on."""
    while some := [*islice(records, AT_ONCE)]:
        lines, rows = zip(*some, strict=True)
        if {*map(type, rows)} != {list} or {*map(len, rows)} != {width}:
            return chain(some, records)
        columns = [*zip(*rows, strict=True)]
        labels: Any = (None,) * len(rows)
        groups = kept = labels
        if label_at is not None:
            names = {cell: source.label(cell) for cell in {*columns[label_at]}}
            labels = [*map(names.__getitem__, columns[label_at])]
        if group_at is not None:
            groups = [x if x and not x.isspace() else None for x in columns[group_at]]
        if kept_at:
            kept = [{name: row[at] for name, at in kept_at.items()} for row in rows]
        yield [lines, labels, groups, kept, *(columns[at] for at in cells)]
    return records


def _row_parser(
    source: RowSource,
    width: int,
    where: list[int],
    others: tuple[int | None, int | None, list[int]],
    kept_at: dict[str, int],
) -> Callable[[list[str]], tuple[Any, ...]]:
    label_at, group_at, static_at = others
    is_text, is_one = source.options.kind == "text", len(where) == 1
    text_of, is_series = itemgetter(*where), source.options.kind == "features" and not is_one
    is_step = source.options.kind == "steps"

    def parse(fields: list[str]) -> tuple[Any, ...]:
        if len(fields) != width:
            raise BadRow(f"expected {width} fields as in the first row, found {len(fields)}")
        label = None if label_at is None else source.label(fields[label_at])
        group = None if group_at is None or fields[group_at].isspace() else fields[group_at] or None
        kept = {name: fields[at] for name, at in kept_at.items()} if kept_at else None
        static = tuple(fields[at] for at in static_at) if static_at else None
        if is_step:
            sequence = (text_of(fields),) if is_one else text_of(fields)
        elif is_series:
            sequence = features_from_fields([*text_of(fields)])
        else:
            sequence = text_of(fields) if is_one else " ".join(text_of(fields))
            sequence = sequence if is_text else source.sequence(sequence)
        return sequence, label, group, kept, None, static

    return parse


def _begins_object(names: Iterable[str]) -> bool:
    """Whether what should name columns is the first row of jsonl."""
    return next(iter(names), "").lstrip().startswith('{"')


def _first_row(source: RowSource, *, has_header: bool) -> tuple[Numbered, _Columns]:
    records, rows, names = read_records(source), list[tuple[int, Any]](), dict[str, int]()
    for row in records:
        rows.append(row)
        if has_header or not (row[1] == [""] or isinstance(row[1], BadRow)):
            break
    line, first = rows[-1] if rows else (0, [])
    if has_header:
        rows.clear()
        if isinstance(first, BadRow):
            source.problems.fail(line, str(first))
        for index, name in enumerate(first):
            if name and name in names:
                twice = f"column {quote(name)} occurs twice in the header"
                hint = AS_JSONL if _begins_object(first) else ""
                source.problems.fail(line, twice + hint)
            names.setdefault(name, index)
    first = [""] if isinstance(first, BadRow) else first
    return chain(rows, records), _Columns(line, first, names)


def read_records(source: RowSource) -> Numbered:
    """Yield the fields of each row and the line where it begins; a BadRow for a bad line."""
    options = source.options
    if options.format == "csv" and ARFF.match(peeked(source)):
        return _arff_records(source)
    delimiter = find_delimiter(source)
    quoted = options.quoting == "standard" or (options.quoting, options.format) == ("auto", "csv")
    records = _records(source, delimiter, quoted=quoted)
    first = next(records, None) if options.format == "csv" else None
    if first is None or (type(first[1]) is list and EXCEL_HINT.fullmatch(delimiter.join(first[1]))):
        return records
    return chain([first], records)


def _records(source: RowSource, mark: str, *, quoted: bool) -> Numbered:
    csv.field_size_limit(LINE_BYTES)
    blocks, number = source.blocks(), 1
    for block in blocks:
        line, number = number, number + len(block)
        if not quoted:
            rows: Any = (x if isinstance(x, BadRow) else without_end(x).split(mark) for x in block)
        elif (parsed := _parsed(block, mark)) is not None:
            rows = (row or [""] for row in parsed)
        else:
            rest = chain(block, chain.from_iterable(blocks))
            yield from _careful_records(source.problems, rest, line, mark)
            return
        yield from zip(count(line), rows)


def _parsed(block: list[Any], mark: str) -> list[list[str]] | None:
    """Return the rows of lines that may be in quotes; None: some need a closer look."""
    if BadRow in {*map(type, block)}:
        return None
    try:
        rows = list(csv.reader(block, delimiter=mark, strict=True))
    except csv.Error:
        return None
    return rows if len(rows) == len(block) else None


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


def _careful_records(
    problems: RowProblems, given: Iterator[Any], first: int, delimiter: str
) -> Numbered:
    """Read lines from a number on, whose fields may be in quotes or damaged."""
    read: list[str] = []  # the lines of the record under way
    bad = first - 1  # lines that the csv reader didn't see

    def take(text: Any) -> str:
        if isinstance(text, BadRow):
            raise text
        read.append(text)
        return str(text)

    reader = csv.reader(map(take, given), delimiter=delimiter, strict=True)
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
