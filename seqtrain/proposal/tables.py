"""How a file of labelled sequences is read: its format, its encoding, its columns, its kind."""

import codecs
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from seqtrain.config.formats import (
    ENDINGS,
    OBJECT_FORMATS,
    advice,
    check_encoding,
    resolve_format,
)
from seqtrain.data.examples import EVERY_COLUMN, RowProblems, missing_name
from seqtrain.data.readers import Column, ReadOptions, read_rows
from seqtrain.data.readers.delimited import read_records
from seqtrain.data.readers.npz import FEW_SYMBOLS
from seqtrain.data.readers.opening import BUFFER, RowSource, open_input, utf_16
from seqtrain.data.readers.txt import list_folder
from seqtrain.errors import DataError
from seqtrain.files.reading import path_problem
from seqtrain.proposal.columns import (
    FEWEST_STEPS,
    ColumnFacts,
    Table,
    Wishes,
    choose_label,
    choose_sequence,
    flattened,
    gather,
    has_header,
    no_series,
)
from seqtrain.proposal.steps import find_steps
from seqtrain.text import display_name, quote

FIRST_ROWS = 4096
"""Rows of a file or folder that show what it is, at most."""
MOST_ACCENTS = 0.3
"""Share of letters beyond ASCII up to which a text may be Western European."""
NUMBERS_SHARE = 0.9
"""Share of a folder's files that hold nothing but numbers, from which on they are series."""
FASTA_NAME = re.compile(r"[\s|]([^\s|=]+)=[^\s|=]*\s*$")
"""What the last word of a record's first line is named, in `>id SV=1`."""


def data_format(path: str, given: str = "auto") -> str:
    """Return the format of a data file, or what --format says.

    Raises:
        DataError: its name says none; with what becomes of such a file.
    """
    format = resolve_format(path, given)
    if format is None:
        try:
            os.lstat(path)
        except (OSError, ValueError) as error:
            raise path_problem(path, error, DataError) from None
        unknown = f"its ending names no format; known are {', '.join(ENDINGS)}; or give --format"
        raise DataError(f"{display_name(path)}: {advice(path) or unknown}")
    return format


def find_columns(path: str, wishes: Wishes) -> Table:
    """Find how a data file, or a folder of text files, is read.

    Raises:
        DataError: it can't be read, or something that is needed isn't clear.
    """
    format = data_format(path, wishes.format)
    check_encoding(wishes.encoding)
    encoding, doubts = wishes.encoding or _encoding(path, format), list[str]()
    if encoding not in ("utf-8", "utf-16") and wishes.encoding is None:
        doubts.append(
            f"{display_name(path)} isn't UTF-8; it is read as {encoding} (Western European); if "
            "letters come out wrong, give --encoding, such as cp1251 or gbk"
        )
    reading = ReadOptions(format, delimiter=wishes.delimiter, encoding=encoding)
    if format == "txt" and not os.path.isdir(path):
        reading = replace(reading, format=_text_format(path, reading))
    reading = replace(reading, by_name=wishes.format == "auto" and reading.format == format)
    if reading.format in ("csv", "tsv"):
        table = _delimited(path, reading, wishes)
    elif reading.format in OBJECT_FORMATS:
        table = _table(_objects(path, reading), reading, wishes)
    else:
        for flag, value in (("--label", wishes.label), ("--sequence", wishes.sequence)):
            if value is not None:
                raise DataError(f"{flag}: format {format} has no columns to name; leave it out")
        label = _fasta_label(path, reading) if reading.format == "fasta" else None
        table = Table(replace(reading, kind=wishes.kind or _fixed_kind(path, reading)), label=label)
    return replace(table, doubts=[*doubts, *table.doubts])


def _fasta_label(path: str, reading: ReadOptions) -> str:
    """Return what the last word of a line such as `>id SV=1` is named, or where it stands."""
    first = next((line for line in _lines(path, reading) if line[:1] == ">"), "")
    name = FASTA_NAME.search(first)
    return name[1] if name else f"the last word of {quote(first, 40)}"


def _lines(path: str, reading: ReadOptions) -> Iterator[str]:
    with open_input(path, encoding=reading.encoding) as stream:
        for _, line in RowSource(stream, reading, RowProblems(display_name(path))).lines():
            yield line


def _encoding(path: str, format: str) -> str:
    """Return utf-8, utf-16, or cp1252 (latin-1, where a byte has no meaning in that)."""
    if format in ("npz", *OBJECT_FORMATS[1:]):
        return "utf-8"
    for file in list_folder(path) if os.path.isdir(path) else [path]:
        decoder = codecs.getincrementaldecoder("utf-8")()
        with open_input(file) as stream:
            try:
                block = stream.read(BUFFER)
                if utf_16(block[:4]):
                    return "utf-16"
                while block:
                    decoder.decode(block)
                    block = stream.read(BUFFER)
            except UnicodeDecodeError:
                if b"\0" in block:
                    return "utf-8"  # no text: the reader says so
                letters = [c for c in block.decode("latin-1") if c.isalpha()]
                if sum(not c.isascii() for c in letters) > MOST_ACCENTS * len(letters):
                    raise DataError(
                        f"{display_name(file)}: neither UTF-8 nor Western European; give its "
                        "--encoding, such as cp1251, gbk or shift_jis"
                    ) from None
                western = {0x81, 0x8D, 0x8F, 0x90, 0x9D}.isdisjoint(block)
                return "cp1252" if western else "latin-1"
            except OSError:  # the reader says where it is damaged
                return "utf-8"
    return "utf-8"


def _text_format(path: str, reading: ReadOptions) -> str:
    """Return fasttext where a .txt file begins so, else txt."""
    begin = [*islice(_lines(path, reading), FIRST_ROWS)]
    if begin and begin[0].startswith("__label__"):
        return "fasttext"
    if any(begin) and not any("\t" in line for line in begin):
        raise DataError(
            f"{display_name(path)}: no labels: no line has a tab; expected label<TAB>text, csv or "
            "jsonl with a column of labels, or a folder of texts for each class"
        )
    return "txt"


def _fixed_kind(path: str, reading: ReadOptions) -> str:
    """Return the kind of a file without columns, by its first rows."""
    if reading.format == "txt":
        rows = islice(read_rows(path, reading), FIRST_ROWS)
        (column,) = gather([(0, str(row.sequence))] for row in rows)
        numbers = column.kinds["series"] + column.kinds["whole"]
        return "features" if numbers > NUMBERS_SHARE * column.rows else "text"
    if reading.format != "npz":
        return "features" if reading.format == "ts" else "text"
    series = islice(read_rows(path, replace(reading, kind="features")), FIRST_ROWS)
    values = [np.asarray(row.sequence) for row in series if row.problem is None]
    whole = all(x.shape[1:] == (1,) and np.array_equal(x, np.rint(x)) for x in values)
    few = whole and len({number for x in values for number in x[:, 0].tolist()}) <= FEW_SYMBOLS
    return "tokens" if few else "features"


def _objects(path: str, reading: ReadOptions) -> list[ColumnFacts]:
    problems = RowProblems(display_name(path))

    def rows() -> Iterator[Iterator[tuple[Column, object]]]:
        keeping = replace(reading, keep=(EVERY_COLUMN,))
        for row in read_rows(path, keeping, problems, labelled=False):
            if row.problem is not None:
                problems.fail(row.line, row.problem)
            yield flattened(row.kept or {})

    columns = gather(rows())
    if not columns:
        raise DataError(f"{display_name(path)}: no rows; expected one JSON object per line")
    if all(column.rows == 1 for column in columns) and len(columns) > FEWEST_STEPS:
        raise DataError(
            f"{display_name(path)}: one object; expected one for each row, as pandas writes "
            "them with to_json(orient='records')"
        )
    return columns


def _records(path: str, reading: ReadOptions) -> Iterator[list[str]]:
    problems = RowProblems(display_name(path))
    with open_input(path, encoding=reading.encoding) as stream:
        for _, fields in read_records(RowSource(stream, reading, problems)):
            yield fields
    problems.raise_if_any()


def _delimited(path: str, reading: ReadOptions, wishes: Wishes) -> Table:
    name, records = display_name(path), _records(path, reading)
    first = next(records, [""])
    if first == [""]:
        raise DataError(f"{name}: no rows; expected one labelled sequence per row")
    if len(first) < 2:
        raise DataError(
            f"{name}: one column, {quote(first[0])}; expected a label and a sequence per row, "
            "separated by a comma, semicolon, tab or |; or give --delimiter"
        )
    columns = gather(enumerate(fields) for fields in records if len(fields) == len(first))
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
        column.judge()
    table = _table(columns, reading, wishes)
    found = table.reading
    names_a_column = any(isinstance(x, str) for x in (found.label, *found.sequence_columns()))
    if header != names_a_column:
        found = replace(found, header=header)
    return replace(table, reading=found)


def _table(columns: Sequence[ColumnFacts], reading: ReadOptions, wishes: Wishes) -> Table:
    wishes = _resolved(wishes, columns)
    table = find_steps(columns, wishes, reading)
    if table is not None:
        return table
    label = choose_label(columns).column if wishes.label is None else wishes.label
    if wishes.sequence is None:
        chosen = choose_sequence(columns, label)
    else:
        chosen = [column for name in wishes.sequence for column in columns if column.column == name]
    kinds = {column.kind for column in chosen}
    if kinds == {"number"} and 1 < len(chosen) < FEWEST_STEPS:
        raise DataError(no_series(chosen))
    is_wide = kinds == {"number"} and len(chosen) > 1
    of_numbers = is_wide or kinds == {"series"}
    odd = [c for c in chosen if c.kind == "number" and c.kinds["odd"]]
    if of_numbers and odd:
        raise DataError(f"--sequence: {odd[0].oddness}")
    found = "features" if of_numbers else "tokens" if kinds == {"symbols"} else "text"
    kind, doubts = wishes.kind or found, list[str]()
    if wishes.kind is None and any(column.kinds["whole"] for column in chosen):
        other = "symbols: --set data.kind=tokens"
        if not of_numbers:
            other = "measurements: --set data.kind=features"
        doubts.append(f"the sequences are whole numbers, read as {kind}; if they are {other}")
    ignored = [c for c in columns if c.column != label and c not in chosen]
    sequence: list[Column] | Column | None = [column.column for column in chosen]
    if is_wide and reading.format in ("csv", "tsv") and all(c.column == "" for c in ignored):
        sequence = None
    elif len(chosen) == 1:
        sequence = chosen[0].column
    reading = replace(reading, kind=kind, sequence=sequence, label=label)
    return Table(reading, [column.describe() for column in ignored], doubts)


def _resolved(wishes: Wishes, columns: Sequence[ColumnFacts]) -> Wishes:
    """Return what the user says with the names of columns, each of which there is."""
    names = [column.column for column in columns]

    def name(flag: str, wanted: Column) -> Column:
        if wanted in names:
            return wanted
        if str(wanted).isascii() and str(wanted).isdigit() and int(wanted) < len(names):
            return names[int(wanted)]
        if isinstance(names[0], str):
            raise DataError(f"--{flag}: {missing_name('column', str(wanted), map(str, names))}")
        raise DataError(
            f"--{flag}: no column {quote(str(wanted))}; found {len(names)} columns, counted from "
            "0, without names (--header, if the first row has some)"
        )

    known: dict[str, Any] = {}
    for flag in ("label", "sequence", "id", "order", "steps"):
        given = getattr(wishes, flag)
        if given is not None:
            some = [name(flag, x) for x in (given if isinstance(given, list) else [given])]
            known[flag] = some if isinstance(given, list) else some[0]
    return replace(wishes, **known)
