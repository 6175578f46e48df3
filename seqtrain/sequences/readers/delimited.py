"""Formats csv and tsv: rows of fields, with or without quotes as in RFC 4180."""

import csv
import io
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from seqtrain.errors import DataError
from seqtrain.sequences.examples import BadRow, Example, Numbered, RowProblems
from seqtrain.sequences.read_options import (
    Column,
    FileFormat,
    column_names,
    keeps_all,
    missing_name,
)
from seqtrain.sequences.readers.named_cells import read_cells
from seqtrain.sequences.readers.row_source import LINE_BYTES, RowSource, without_end
from seqtrain.sequences.readers.step_cells import Rows
from seqtrain.text import quote

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
"""Maps each name of a delimiter in the config to its character, the most common one first."""
EXCEL_HINT = re.compile(r"sep=(.)\r?$", re.MULTILINE)
"""First line in which Excel states the delimiter, such as ``sep=;``."""
SNIFFED_LINES = 20
QUOTED = re.compile(r'(?<![^,;\t|\n])"(?:[^"]|"")*("|\Z)')
"""A field in quotes. Its closing quote may be missing at the end of the text.

A quote in the middle of a field, such as the sign for inches, opens no quoted field.
"""
QUOTED_RECORD = re.compile(r'"[^"]*(?:""[^"]*)*"(?:\t"[^"]*(?:""[^"]*)*")*')
"""A record of a tsv file in which every field is in quotes."""
CSV_PROBLEMS = {
    "new-line character": "a field without quotes holds a carriage return; put it in quotes",
    "field limit": f"a quoted field is longer than {LINE_BYTES} characters",
    "unexpected end": "the quote that opens on this line is never closed",
}
"""Maps a part of an error message of the csv module to our message for this error."""
MOST_QUOTED_LINES = 100
"""Largest number of further lines over which a quoted record of a tsv file can extend."""


class _Columns:
    """The columns of a file, which can be found by index or by name.

    Args:
        problems: Collector of problems, for messages.
        line: Line number of the first record.
        first: Fields of the first record.
        named: True if the first record contains the names of the columns.

    Attributes:
        width: Number of columns.
        names: Maps each name to the index of its column.
        known: Maps each index and each name to the index of its column.
    """

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

    def find(self, columns: Iterable[Column]) -> list[int]:
        """Return the index of each column.

        Raises:
            DataError: If a column doesn't exist. The message names all missing columns.
        """
        columns = [*columns]
        missing = [column for column in dict.fromkeys(columns) if column not in self.known]
        if missing:
            self.problems.fail(self.line, *map(self._missing, missing))
        return [self.known[column] for column in columns]

    def _missing(self, column: Column) -> str:
        """Return the error message that there is no such column."""
        found = missing_name("column", str(column), map(str, self.names))
        if isinstance(column, int):
            found = f"no column {column}; the row has {self.width}, counted from 0"
        elif self.width == 1:
            first = str(next(iter(self.names), ""))
            marks = [mark for mark in DELIMITERS.values() if mark in first]
            if marks:
                found += f"; if {quote(marks[0])} separates columns, set data.delimiter"
        return found

    def getter(
        self, columns: list[Column | None], *, partial: bool = False
    ) -> Callable[[Any], Sequence[Any]]:
        """Return a function that selects some columns from the fields of a row.

        The function raises BadRow if a row has more or fewer fields than the first row.

        Args:
            columns: Names or indices of the columns to select. For a column None, the function
                returns None.
            partial: True to allow short rows. Each field that they lack is None.

        Raises:
            DataError: If there is no such column.
        """
        width = self.width
        indices = iter(self.find(x for x in columns if x is not None))
        places = [width if x is None else next(indices) for x in columns]
        take = itemgetter(*places)

        def get(fields: list[str]) -> Any:
            if len(fields) == width:
                return take((*fields, None))
            if partial:
                return [fields[place] if place < len(fields) else None for place in places]
            raise BadRow(f"expected {width} fields as in the first row, found {len(fields)}")

        return get


def read_delimited(source: RowSource) -> Iterator[Example | Rows]:
    """Yield the rows of a csv or tsv file.

    Blank lines are skipped. In a file of one column, they are empty sequences instead.

    Raises:
        DataError: If the config names a column of a file without header, or a column is missing.
    """
    records, format, schema = delimited_records(source), source.format, source.schema
    static = column_names(schema.static)
    named = [*schema.sequence_columns(), *static, *schema.label_columns, schema.group]
    named += [] if keeps_all(source.keep) else source.keep
    names = [name for name in named if isinstance(name, str)]
    if format.header is False and names:
        needs_names = schema.steps is not None or static
        advice = "give the file a row of names" if needs_names else "give its index from 0"
        raise DataError(f"data.header: false, but column {quote(names[0])} is named; {advice}")
    has_header = format.header is True or bool(names)
    return read_records(source, records, has_header=has_header)


def read_records(
    source: RowSource, records: Numbered, *, has_header: bool
) -> Iterator[Example | Rows]:
    """Yield the rows of an input whose rows are lists of fields, as `read_cells` does.

    If the schema names no sequence column, the sequence is in all columns without another meaning.
    Each of them is a time step.

    Args:
        source: Input to which the records belong.
        records: Line number and fields of each record.
        has_header: True if the first record contains the names of the columns.

    Raises:
        DataError: If a column is missing, or is named twice.
    """
    records, columns = _first_record(source, records, has_header=has_header)
    if not columns.width:
        return
    schema, known = source.schema, columns.known
    label = schema.label
    if not source.labelled and label not in known:
        label = None
    keep = [*source.keep]
    if keeps_all(keep):
        keep = [*(columns.names or range(columns.width))]
    sequence = schema.sequence_columns()
    if not sequence:  # every other column is a time step
        labels = [label, *(schema.one_hot or ())]
        others = {known[x] for x in ("", *labels, schema.group) if x in known}
        others |= {known[x] for x in source.keep if x in known}
        sequence = [index for index in range(columns.width) if index not in others]
    if not sequence:
        source.problems.fail(columns.line, "no column but the label's; expected a sequence")
    if schema.steps is None:
        schema = replace(schema, sequence=sequence)
        places = [known[x] for x in sequence if x in known]  # read_cells names missing columns
        if known.get(label) in places:
            raise DataError(f"data.label: {label!r} is also in data.sequence; remove it there")
        if len({*places}) < len(places):
            raise DataError(f"data.sequence: {sequence} names a column twice")
    source = replace(source, schema=replace(schema, label=label), keep=keep)
    rows = source.good(records, blank_rows=columns.width == 1)
    yield from read_cells(source, rows, columns.getter)


def delimited_records(source: RowSource) -> Numbered:
    """Yield the line number and the fields of each record of a csv or tsv file.

    The delimiter and the style of quotes come from `source.format` or are detected. Excel's line
    ``sep=;`` is skipped.
    """
    format, head = source.format, _head(source)
    csv.field_size_limit(LINE_BYTES)
    delimiter = find_delimiter(format, head)
    if format.quoting == "standard" or (format.quoting, format.name) == ("auto", "csv"):
        records = _quoted_records(source, delimiter)
    else:
        with_quoted = (format.quoting, format.name) == ("auto", "tsv")
        records = _bare_records(source, delimiter, with_quoted_records=with_quoted)
    has_hint = format.name == "csv" and EXCEL_HINT.match(head) is not None
    return islice(records, int(has_hint), None)


def _first_record(
    source: RowSource, records: Numbered, *, has_header: bool
) -> tuple[Numbered, _Columns]:
    """Return an iterator over the records that are rows, and the columns.

    The first record that is decodable and not blank determines the number of columns. With a
    header, this record also has their names, and the rows begin after it. Without a header, all
    records are rows.

    Raises:
        DataError: If `has_header` is true and the header, or a record before it, can't be decoded.
    """
    rows = list[tuple[int, Any]]()
    for row in records:
        rows.append(row)
        try:
            source.check(",".join(row[1]))
        except BadRow as bad:
            if has_header:
                source.problems.fail(row[0], str(bad))
        else:
            if row[1] != [""]:
                break
    line, first = rows[-1] if rows else (0, [])
    columns = _Columns(source.problems, line, first, named=has_header)
    return records if has_header else chain(rows, records), columns


def _quoted_records(source: RowSource, delimiter: str) -> Numbered:
    lines = chain.from_iterable(source.blocks())
    reader, line = csv.reader(lines, delimiter=delimiter, strict=True), 1
    try:
        for fields in reader:
            yield line, fields or [""]
            line = reader.line_num + 1
    except csv.Error as error:
        known = (problem for part, problem in CSV_PROBLEMS.items() if part in str(error))
        otherwise = 'a field goes on after its closing quote; write "" for a quote inside it'
        source.problems.fail(line, next(known, otherwise))


def _bare_records(source: RowSource, delimiter: str, *, with_quoted_records: bool) -> Numbered:
    """Yield the line number and the fields of each line. Quotes are ordinary characters.

    With `with_quoted_records`, a record whose fields are all in quotes is read as in csv.
    `seqtrain predict` writes such records, which may contain line breaks. A record may be read as
    plain lines if its number of fields differs from the first record's.

    Args:
        source: Input whose lines are read.
        delimiter: Character between fields.
        with_quoted_records: True to recognize records whose fields are all in quotes.
    """
    lines = enumerate(chain.from_iterable(source.blocks()), start=1)
    width, is_quoted = 0, False
    for line, text in lines:
        if not (with_quoted_records and text.startswith('"')):
            fields = without_end(text).split(delimiter)
            width = width or len(fields)
            yield line, fields
            continue
        waiting = deque([(line, text)])
        while waiting:
            line, record = waiting.popleft()
            taken = list[tuple[int, str]]()
            if record.startswith('"'):
                while record.count('"') % 2 and len(taken) < MOST_QUOTED_LINES:
                    following = waiting.popleft() if waiting else next(lines, None)
                    if following is None:
                        break
                    taken.append(following)
                    record += following[1]
            fields = list[str]()
            if QUOTED_RECORD.fullmatch(without_end(record)):
                row = io.StringIO(without_end(record), newline="")
                fields = next(csv.reader(row, delimiter=delimiter))
            is_quoted = is_quoted if width else bool(fields)
            if not fields or len(fields) != (width or len(fields)):
                waiting.extendleft(reversed(taken))
                record = record[: len(record) - sum(len(each) for _, each in taken)]
                bare = without_end(record).split(delimiter)
                is_bare = taken or not fields or (len(bare) == width and not is_quoted)
                fields = bare if is_bare else fields
            width = width or len(fields)
            yield line, fields


def _head(source: RowSource) -> str:
    """Return the buffered beginning of a file as text, without consuming it.

    Undecodable bytes become replacement characters.
    """
    try:
        return str(source.stream.peek().decode("utf-8-sig", "replace"))
    except OSError as error:
        source.problems.fail(1, error.strerror or str(error))


def find_delimiter(format: FileFormat, head: str) -> str:
    """Return the character that separates the fields of a file.

    The first rule that applies decides:

    1. The delimiter that the config sets.
    2. A tab for format tsv.
    3. The character in Excel's first line ``sep=;``.
    4. Comma, semicolon, tab or pipe, if most of the first lines contain it equally often. The one
       with the most such lines is chosen.
    5. The comma.

    Args:
        format: Format of the file.
        head: Beginning of the file.
    """
    if format.delimiter != "auto":
        return DELIMITERS[format.delimiter]
    if format.name == "tsv":
        return DELIMITERS["tab"]
    hint = EXCEL_HINT.match(head)
    if hint:
        return hint[1]
    *whole, rest = head.split("\n")
    lines = [line.removesuffix("\r") for line in (whole or [rest])[:SNIFFED_LINES]]
    text = "\n".join(lines)
    bare = [line for line in QUOTED.sub("", text).split("\n") if line]
    if any(not found[1] for found in QUOTED.finditer(text)) and len(bare) > 1:
        bare.pop()  # the record continues, in quotes, after the first lines
    agreeing = {
        delimiter: sum(line.count(delimiter) == bare[0].count(delimiter) for line in bare)
        for delimiter in DELIMITERS.values()
        if bare and delimiter in bare[0]
    }
    found = max(agreeing, key=agreeing.__getitem__, default="")
    return found if 2 * agreeing.get(found, 0) > len(bare) else DELIMITERS["comma"]
