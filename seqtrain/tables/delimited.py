"""Formats csv and tsv: rows of fields, with or without quotes as in RFC 4180."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, takewhile
from operator import itemgetter
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from seqtrain.tables.blocks import (
    REST,
    ROWS,
    Block,
    CellsByName,
    Dialect,
    Name,
    Reasons,
    Selection,
    UnreadableError,
    batched,
)
from seqtrain.tables.cells import is_number
from seqtrain.tables.conversions.forms import AdvisedConversion
from seqtrain.tables.opening import LINE_BYTES, TextLines, without_end
from seqtrain.text import counted, quote

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
"""Maps each name of a delimiter in the config to its character, the most common one first."""
EXCEL_HINT = re.compile(r"sep=(.)\r?\n?")
"""First line in which Excel states the delimiter, such as ``sep=;``."""
QUOTED = re.compile(r'(?<![^,;\t|\n])"(?:[^"]|"")*("|\Z)')
"""A field in quotes. A quote in the middle of a field, as for inches, opens no field."""
QUOTED_RECORD = re.compile(r'"[^"]*(?:""[^"]*)*"(?:\t"[^"]*(?:""[^"]*)*")*\r?\n?')
"""A record of tsv whose fields are all in quotes."""
DOUBLED_QUOTES = re.compile(r'"(?=.+"")(?:[^"]|"")+"')
"""A field in quotes with quotes within, which are doubled."""
PREDICTED = re.compile(r"(?:.*\t)?probability(?:_1)?(?:\t.*)?", re.DOTALL)
"""Header of a tsv file that `predict` wrote. A cell with a tab or a line break is in quotes."""
JSON_START = re.compile(r'\s*(\[\s*)?\{\s*"')
FOUND_JSON = (
    "expected names of columns, found JSON; give --input-format jsonl (to train, "
    "data.format: jsonl)"
)
HEADER_WORD = re.compile(r"[^\W\d][\w.()/%-]*|[0-9]+_[\w-]+")
"""A name of a column without blanks."""
PLAIN_NUMBER = re.compile(r"[-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?")
NO_DECIMAL_COMMA = re.compile(r"(?<![0-9]),|,(?![0-9]+(?:[^0-9.]|\Z))")
"""A comma that isn't the decimal mark of a number."""
BLANK_FIELDS = " \t\r\n" + "".join(DELIMITERS.values())
"""Characters of a line without any text."""
SNIFFED_LINES = 20
PLAIN_QUOTES = "; if quotes are plain characters, train with --set data.quoting=none"
REPEATED_HEADER = "the row holds the names of the columns once more, as of files that were joined"
CSV_PROBLEMS = {
    "new-line character": "a field without quotes holds a carriage return; put it in quotes",
    "field limit": f"a quoted field is longer than {LINE_BYTES} characters",
    "unexpected end": "the quote that opens on this line is never closed; close it, or leave "
    f"the line out{PLAIN_QUOTES}",
    "": f'a field goes on after its closing quote; write "" for a quote inside it{PLAIN_QUOTES}',
}
"""Maps a part of an error message of the csv module to our message for this error."""
KEY_AND_VALUE = re.compile(r"[^\W\d][^:,;|\t]{0,40}:(?!//)")
"""Beginning of a line above a table, such as ``Device: A7``."""
COMMENTS = ("#", "%", "//")
"""Beginnings of comments before the header, as recorders write them."""
Record: TypeAlias = tuple[int, list[str], str | None]
"""Line on which a record begins, its fields, and the reason why it can't be read, or None."""


@dataclass(frozen=True)
class Form:
    """Form of a csv or tsv file, as its first lines show it.

    Attributes:
        delimiter: Character between fields.
        quotes: True if a field may be in quotes.
        skipped: Number of lines before the first record: Excel's hint, comments, a title, or keys
            with values.
        has_comments: True if the file begins with comments.
        is_below_others: True if a title, or keys with values, are above the first record.
        end: Further character that ends most lines, or "" for none.
        blank_field: True if most rows have one blank field more than the first row.
        row_names: True if a header lacks a name for the first column, which has the names of rows.
    """

    delimiter: str = ","
    quotes: bool = True
    skipped: int = 0
    has_comments: bool = False
    is_below_others: bool = False
    end: str = ""
    blank_field: bool = False
    row_names: bool = False


def read_delimited(
    stream: BinaryIO, dialect: Dialect, selection: Selection, rows: int = ROWS
) -> Iterator[Block]:
    """Yield the rows of a csv or tsv file.

    A row with too many or too few fields can't be read. A blank line is no row, except in a file
    of one column, where it is an empty cell.

    Raises:
        UnreadableError: If a quoted field isn't valid, so that the rows after it can't be told
            apart, or if the file holds JSON.
    """
    form, records = open_records(stream, dialect)
    yield from blocks_of_records(records, selection, rows, dialect.header, form)


def open_records(stream: BinaryIO, dialect: Dialect) -> tuple[Form, Iterator[Record]]:
    """Return the form of a csv or tsv file, and its records.

    The first lines are read at once, and the others with the records.

    Raises:
        UnreadableError: As in `read_delimited`.
    """
    lines = TextLines(stream, dialect.encoding)
    blocks = lines.blocks()
    head = next(blocks, [])
    form = form_of(head, dialect)
    if dialect.header and any(map(JSON_START.match, head[form.skipped :][:1])):
        raise UnreadableError(form.skipped + 1, FOUND_JSON)
    texts: Iterator[str] = chain(head[form.skipped :], chain.from_iterable(blocks))
    if form.end:
        texts = (_without_mark(text, form.end) for text in texts)
    read = _quoted_records if form.quotes else _bare_records
    return form, read(lines, texts, form)


def blocks_of_records(
    records: Iterator[Record],
    selection: Selection,
    rows: int,
    header: bool,
    form: Form,
) -> Iterator[Block]:
    """Yield blocks of rows from records.

    Args:
        records: The records. The first one that isn't blank decides the number of fields.
        selection: Columns to read.
        rows: Largest number of rows of a block.
        header: True if the first record names the columns.
        form: Form of the file.
    """
    blanks = []
    first = next(records, None)
    while first is not None and is_blank(first, header=header):
        blanks.append(first)
        first = next(records, None)
    if first is None:
        return
    line, fields, problem = first
    if not header:
        records = chain(blanks, [first], records)
    elif problem is not None:
        raise UnreadableError(line, problem)
    if header and form.row_names:
        fields = ["", *fields]
    columns = _Columns(line, fields, selection, header=header, form=form)
    if columns.width > 1:
        records = (record for record in records if record[1] != [""] or record[2])
    if form.has_comments:
        records = (
            (line, fields, problem)
            for line, fields, problem in records
            if len(fields) == columns.width or not fields[0].startswith(COMMENTS)
        )
    yield from map(columns.block, batched(records, rows))


def is_blank(record: Record, *, header: bool) -> bool:
    """Return True for a blank line; above a header also for one of delimiters alone."""
    _, fields, problem = record
    return problem is None and (fields == [""] or (header and not any(map(str.strip, fields))))


class _Columns:
    """The selected columns of a file.

    Args:
        line: Line of the first record.
        first: Fields of the first record.
        selection: Columns to read.
        header: True if the first record names the columns.
        form: Form of the file.

    Attributes:
        width: Number of columns.
        least: Smallest number of fields of a row. The last fields of the first record may be blank:
            columns without names, or missing cells. Other rows may lack them.
        places: Index of each selected column.
        may_repeat: True if a row that equals the first one is a header of files that were joined.
    """

    def __init__(
        self, line: int, first: list[str], selection: Selection, *, header: bool, form: Form
    ) -> None:
        self.form = form
        self.keeps_rest = selection.rest
        self.width = len(first)
        self.header = header
        self.first = first
        self.may_repeat = header and len(first) > 1 and not all(map(is_number, first))
        filled = [index for index, field in enumerate(first) if field.strip()]
        self.least = max(filled, default=0) + 1
        names = names_in(line, first) if header else {}
        # Keys of data.steps are texts, also those of columns without names.
        indices = list(range(self.width)) if header else selection.indices(self.width)
        known: dict[Name, int] = {index: place for place, index in enumerate(indices)}
        own: dict[Name, int] = names if header else dict(known)
        known.update(names if header else {str(index): place for index, place in own.items()})
        try:
            if selection.required is None:
                chosen = list(own)
            else:
                chosen = selection.among(known)
            self.places = {name: known[name] for name in chosen}
        except UnreadableError as error:
            are_indexes = all(isinstance(each, int) for each in selection.required or ())
            advice = _advice(first, header=header, are_indexes=are_indexes)
            raise UnreadableError(line, *error.problems, *filter(None, [advice])) from None
        if self.keeps_rest and REST in names:  # the file's own column goes before
            self.keeps_rest, self.places[REST] = False, names[REST]
        if self.keeps_rest:
            self.least = max(self.places.values(), default=0) + 1

    def block(self, records: list[Record]) -> Block:
        """Return the block of some records."""
        lines, rows, reasons = zip(*records, strict=True)
        problems = {row: reason for row, reason in enumerate(reasons) if reason}
        if problems or set(map(len, rows)) != {self.width}:
            rows = tuple(self._fitted(row, fields, problems) for row, fields in enumerate(rows))
        if self.may_repeat and self.first in rows:  # the row keeps its cells: it is of no other id
            again = (row for row, fields in enumerate(rows) if fields == self.first)
            problems |= dict.fromkeys(again, REPEATED_HEADER)
        columns: CellsByName = {}
        if 2 * len(self.places) > self.width and not self.keeps_rest:  # rows have equal lengths
            fields = list(zip(*rows, strict=True))
            columns = {name: fields[index] for name, index in self.places.items()}
        else:
            for name, index in self.places.items():
                columns[name] = list(map(itemgetter(index), rows))
        if self.keeps_rest:
            columns[REST] = [self._others(fields) for fields in rows]
        spilled = ()
        if self.header and self.least < self.width and not self.keeps_rest:
            ends = (any(map(str.strip, fields[self.least :])) for fields in rows)
            spilled = tuple(line for line, is_filled in zip(lines, ends, strict=True) if is_filled)
        return Block(columns, np.array(lines, np.int64), problems, spilled=spilled)

    def _fitted(self, row: int, fields: list[str], problems: Reasons) -> list[str]:
        """Return the fields of a row, cut or filled up, and note if they are too many or too few.

        A row that can't be decoded is blank: its id isn't known either.
        """
        if row in problems:
            return [""] * self.width
        count = len(fields)
        if self.form.blank_field and count == self.width + 1 and not fields[-1]:
            return fields[:-1]
        padding = [""] * (self.width - count)
        if self.keeps_rest:
            if count < self.least:
                problems[row] = f"expected {counted(self.least, 'field')} or more, found {count}"
            return fields + padding
        if not self.least <= count <= self.width:
            expected = counted(self.width, "field")
            problems[row] = f"expected {expected} as in the first row, found {count}"
            if not self.form.quotes and fields[0].startswith('"'):
                problems[row] += (
                    "; if fields are in quotes, name the file .csv (or to train, set "
                    "data.quoting: standard)"
                )
        return fields[: self.width] + padding

    def _others(self, fields: list[str]) -> list[str]:
        """Return the fields of a row after those that are selected, without blank ones at the end.

        Fields before these, such as the id of a row whose label follows, are no items of a list.
        """
        found = fields[max(self.places.values(), default=-1) + 1 :]
        while found and not found[-1]:
            found.pop()
        return found


def plain_names(header: list[str]) -> list[str]:
    """Return the names of columns without the blanks around them, unless two would be equal so."""
    written = [header[0].removeprefix("# "), *header[1:]]
    plain = [name.strip() for name in written]
    if len(set(plain) - {""}) == len({name for name in written if name.strip()}):
        return plain
    return written


def names_in(line: int, header: list[str]) -> dict[Name, int]:
    """Return the index of each column that has a name, which isn't blank.

    Args:
        line: Line of the header.
        header: The names.

    Raises:
        UnreadableError: If the header has a name twice.
    """
    names: dict[Name, int] = {}
    for index, name in enumerate(plain_names(header)):
        if name in names:
            raise UnreadableError(
                line,
                f"column {quote(name)} occurs twice in the header; rename one of them",
                conversion=AdvisedConversion("named"),
            )
        if name.strip():
            names[name] = index
    return names


def index_of_names(rows: Sequence[Sequence[Any]]) -> int:
    """Return the index of the row with the names of the columns, among the first rows of a table.

    It is the first row with cells in more than half of the columns, so that a title is none. If it
    has names of groups of columns, as merged cells have, the next row has the names: texts in the
    gaps, too, that don't come again, above a number.
    """
    filled = [[index for index, cell in enumerate(row) if cell not in (None, "")] for row in rows]
    most = max(map(len, filled))
    found = next(index for index, own in enumerate(filled) if len(own) > most / 2)
    if found + 2 >= len(rows) or len(filled[found]) >= len(filled[found + 1]):
        return found
    names = [rows[found + 1][index] for index in filled[found + 1]]
    below = [cell for row in rows[found + 2 :] for cell in row if cell not in (None, "")]
    are_texts = all(isinstance(name, str) and not is_number(name) for name in names)
    has_numbers = any(not isinstance(cell, str) or is_number(cell) for cell in below)
    are_names = are_texts and len(set(names)) == len(names) and set(names).isdisjoint(below)
    if are_names and has_numbers:
        return found + 1
    return found


def _advice(first: list[str], *, header: bool, are_indexes: bool) -> str:
    """Return advice for a column that isn't there."""
    if not header and are_indexes and len(first) == 1:
        return "if each line is a whole sequence without a label, predict with --input-format lines"
    if not header and are_indexes:
        return "expected the columns of train in their order; one that isn't known may be blank"
    if not header:
        return "the first row holds no names (data.header is false): give an index from 0"
    for name, mark in DELIMITERS.items():
        if len(first) == 1 and mark in first[0]:
            return f"if {quote(mark)} separates columns, set data.delimiter (--delimiter): {name}"
    return ""


def form_of(head: list[str], dialect: Dialect) -> Form:
    """Return the form of a file.

    Args:
        head: First lines of the file, with line ends.
        dialect: Delimiter and quotes, if they are known.
    """
    lines = head[:SNIFFED_LINES]
    skipped = 0
    delimiter = dialect.delimiter
    quotes = dialect.quotes
    if dialect.format == "csv":
        hint = EXCEL_HINT.fullmatch("".join(lines[:1]))
        if hint is not None:
            skipped = 1
            delimiter = delimiter or hint[1]
        quotes = quotes is not False
    else:
        delimiter = delimiter or "\t"
        if quotes is None:
            quotes = _has_quoted_fields(head, delimiter)
    if delimiter is None:
        delimiter = find_delimiter(
            [line for line in lines if not line.startswith(COMMENTS)] or lines
        )
    num_comments = num_above = 0
    if lines[skipped:] and lines[skipped].startswith(COMMENTS):
        num_comments = _num_comments(lines[skipped:], delimiter, quotes=quotes)
    elif not skipped:
        skipped = num_above = _num_lines_above(lines, dialect.delimiter)
        if num_above:
            delimiter = dialect.delimiter or find_delimiter(lines[num_above:])
    following = [line.rstrip("\r\n") for line in lines[skipped + num_comments :] if line.strip()]
    end, blank_field = _odd_ends(following, delimiter)
    return Form(
        delimiter=delimiter,
        quotes=quotes,
        skipped=skipped + num_comments,
        has_comments=num_comments > 0,
        is_below_others=num_above > 0,
        end=end,
        blank_field=blank_field,
        row_names=not (end or blank_field) and _have_row_names(following, delimiter),
    )


def _has_quoted_fields(head: list[str], delimiter: str) -> bool:
    """Return True if fields of a tsv file are in quotes, as they may be in csv.

    Either the first line shows it: all of its fields are in quotes, or `predict` wrote it. Or all
    quotes that open a field are closed, and one such field has doubled quotes within, or the rows
    have equally many fields only so.

    Args:
        head: First lines of the file.
        delimiter: Character between fields.
    """
    first = without_end("".join(head[:1]))
    if QUOTED_RECORD.fullmatch(first) or PREDICTED.fullmatch(first):
        return True
    if not any(line.startswith('"') or f'{delimiter}"' in line for line in head):
        return False
    csv.field_size_limit(LINE_BYTES)
    reader = csv.reader(head, delimiter=delimiter, strict=True)
    widths, end = set[int](), 0
    try:
        for fields in reader:
            widths.add(len(fields))
            end = reader.line_num
    except csv.Error as error:
        has_open_record = "unexpected end" in str(error)  # it goes on after the first lines
        if not has_open_record or head[end].count(delimiter) + 1 in widths:
            return False
    own = (field for line in head[:end] for field in without_end(line).split(delimiter))
    if any(DOUBLED_QUOTES.fullmatch(field) for field in own):
        return True
    bare_widths = {line.count(delimiter) + 1 for line in head[:end] if line.strip()}
    return len(widths - {0}) == 1 and len(bare_widths) > 1


def find_delimiter(head: list[str]) -> str:
    """Return the delimiter that most of the first lines contain equally often, or the comma.

    Delimiters in quoted fields don't count, and decimal commas don't if another delimiter is as
    good. If rows have different lengths, as lists have, it is a delimiter that is in every line.

    Args:
        head: First lines of the file.
    """
    text = "".join(line.replace("\r\n", "\n") for line in head[:SNIFFED_LINES])
    lines = [line for line in QUOTED.sub("x", text).split("\n") if line.strip(BLANK_FIELDS)]
    is_open = any(not found[1] for found in QUOTED.finditer(text))
    if is_open and len(lines) > 1:
        lines.pop()  # the record goes on after the first lines
    first = lines[0] if lines else ""
    marks = list(DELIMITERS.values())
    if NO_DECIMAL_COMMA.search("\n".join(lines)) is None:
        marks.append(marks.pop(0))
    at_ends = [mark for mark in marks if all(x.find(mark) == len(x) - 1 for x in lines)]
    marks.sort(key=at_ends.__contains__)  # a mark that only ends each line divides no fields
    agreeing = {}
    for mark in marks:
        counts = _counts_in_header(first, mark) - {0}
        agreeing[mark] = sum(line.count(mark) in counts for line in lines)
    best = max(agreeing, key=lambda mark: agreeing[mark])  # the first of several
    if agreeing[best] > len(lines) / 2:
        return best
    in_all = (mark for mark in marks if lines and all(mark in line for line in lines))
    return next(in_all, ",")


def _counts_in_header(header: str, delimiter: str) -> set[int]:
    """Return the numbers of delimiters of a header with and without blank names at its end.

    The rows may lack the blank cells below such names.
    """
    return {header.count(delimiter), header.rstrip(f"{delimiter} ").count(delimiter)}


def _num_lines_above(lines: list[str], delimiter: str | None) -> int:
    """Return the number of lines above the names of the columns, with blank ones, or 0.

    They are a title, whose other fields are blank, or keys with values, as of ``Device: A7``. All
    names are texts that don't come again below.

    Args:
        lines: First lines of the file.
        delimiter: Character between fields, or None to detect it from the lines below.
    """
    filled = [index for index, line in enumerate(lines) if line.strip(BLANK_FIELDS)]
    keys = list(takewhile(lambda index: KEY_AND_VALUE.match(lines[index]), filled))
    at = max(1, len(keys))
    if len(filled) < at + 3 or filled[0] > 0:
        return 0
    start = filled[at]
    title = without_end(lines[0])
    below = lines[start:]
    mark = delimiter or find_delimiter(below)
    records = [fields for fields in _fields_of(below, mark) if any(fields)]
    if len(records) < 3:
        return 0
    names, rows = [name.strip() for name in records[0]], records[1:]
    if not (keys and any(map(is_number, chain(*rows)))):  # numbers show that names are above them
        for each in DELIMITERS.values():  # names of columns, above numbers with decimal commas
            counts = _counts_in_header(title, each)
            if 0 not in counts and below[0].count(each) in counts:
                return 0
    if not keys:
        has_blanks = len(title.split(mark)) in (1, len(names)) or start > 1
        is_title = not any(map(str.strip, title.split(mark)[1:])) and title.strip(BLANK_FIELDS)
        is_sentence = names != records[0]  # a blank after its comma
        if '"' in title + below[0] or not (is_title and has_blanks) or is_sentence:
            return 0
    are_texts = all(name and not is_number(name) for name in names)
    if len(names) < 2 or not are_texts or len(set(names)) < len(names):
        return 0
    if any(len(row) != len(names) for row in rows[:-1]):
        return 0
    if any(name in map(str.strip, own) for name, *own in zip(names, *rows, strict=False)):
        return 0
    return start


def _fields_of(lines: list[str], delimiter: str) -> list[list[str]]:
    """Return the fields of each record in lines, or [] if they can't be read."""
    try:
        return list(csv.reader(lines, delimiter=delimiter))
    except csv.Error:
        return []


def _num_comments(lines: list[str], delimiter: str, *, quotes: bool) -> int:
    """Return the number of lines at the beginning that are comments.

    Such a line begins with ``#``, ``%`` or ``//``. The last one is the header if it has as many
    fields as the next line, and this has a number: numpy writes a header so. It is the header, too,
    if it has words alone, and the next line doesn't: its texts have blanks, or come again. The
    header may also name its first column ``#``. Lines with a text that comes again are rows.
    """
    count = 0
    while count < len(lines) and lines[count].startswith(COMMENTS):
        count += 1
    if count == len(lines):
        return 0
    above = [without_end(line).split(delimiter) for line in lines[:count]]
    below = _fields_of(lines[count:], delimiter) if quotes else []
    below = below or [without_end(line).split(delimiter) for line in lines[count:]]
    width, others = len(below[0]), below[1:]  # the first one may be names, as in a comment
    while above and len(above[-1]) == width and _come_again(above[-1], others):
        above.pop()
    if above and len(above) == count and len(above[-1]) == width:
        is_name = above[-1][0].strip('" ') in COMMENTS
        has_number = any(PLAIN_NUMBER.fullmatch(field.strip()) for field in below[0])
        names = [name.lstrip("#%/").strip() for name in above[-1]]
        are_words = all(map(HEADER_WORD.fullmatch, names)) and len(set(names)) == width > 1
        is_row = any(" " in field.strip() for field in below[0]) or _come_again(below[0], others)
        if is_name or has_number or (are_words and is_row):
            above.pop()
    return len(above)


def _come_again(fields: list[str], rows: list[list[str]]) -> bool:
    """Return True if a text after the first field of a row comes again in its column."""
    for column, field in enumerate(fields):
        others = {row[column] for row in rows if column < len(row)}
        if column and field in others and field.strip() and not is_number(field):
            return True
    return False


def _odd_ends(lines: list[str], delimiter: str) -> tuple[str, bool]:
    """Return how most lines end.

    Returns:
        The character that ends most lines and occurs nowhere else in them, or "". Then True if most
        rows end with a delimiter that the first row lacks.
    """
    first, rows, end = "".join(lines[:1]), lines[1:], ""
    for mark in DELIMITERS.values():
        ended = [line for line in lines if line.endswith(mark) and line.count(mark) == 1]
        if mark != delimiter and rows and len(ended) > len(lines) / 2:
            end = mark
    count = first.count(delimiter) + 1
    longer = [line for line in rows if line.endswith(delimiter) and line.count(delimiter) == count]
    return end, len(longer) > len(rows) / 2


def _have_row_names(lines: list[str], delimiter: str) -> bool:
    """Return True if rows have one field more than the header: a name before the others.

    R writes tables so. The names are numbers that count up by one, or all of them are in quotes.
    """
    records = _fields_of(lines, delimiter)
    rows = records[1:]
    if not rows or any(map(is_number, records[0])):
        return False
    if any(len(row) != len(records[0]) + 1 for row in rows[:-1] or rows):  # the last may be cut
        return False
    first = [row[0] for row in rows]
    if not all(map(str.isdecimal, first)):
        return len(rows) > 1 and len(set(first)) == len(first) and all(x[:1] == '"' for x in lines)
    return all(int(b) - int(a) == 1 for a, b in pairwise(first))


def _without_mark(line: str, mark: str) -> str:
    text = without_end(line)
    return text.removesuffix(mark) + line[len(text) :]


def _quoted_records(lines: TextLines, texts: Iterator[str], form: Form) -> Iterator[Record]:
    csv.field_size_limit(LINE_BYTES)
    reader = csv.reader(texts, delimiter=form.delimiter, strict=True)
    line = form.skipped + 1
    try:
        for fields in reader:
            end = form.skipped + reader.line_num
            yield line, fields or [""], lines.problem(line, end) if lines.problems else None
            line = end + 1
    except csv.Error as error:
        for part, reason in CSV_PROBLEMS.items():
            if part in str(error):
                conversion = None
                if part == "unexpected end":  # its quote may be a plain character
                    conversion = AdvisedConversion("shortened", {"line": line})
                raise UnreadableError(line, reason, conversion=conversion) from None


def _bare_records(lines: TextLines, texts: Iterator[str], form: Form) -> Iterator[Record]:
    for line, text in enumerate(texts, form.skipped + 1):
        yield line, without_end(text).split(form.delimiter), lines.problem(line, line)
