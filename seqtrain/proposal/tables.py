"""How a file of labelled sequences is read: its format, its encoding, its columns, its kind."""

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from os.path import isdir

import numpy as np

from seqtrain.config.formats import ENDINGS, OBJECT_FORMATS, check_encoding, resolve_format
from seqtrain.data.examples import EVERY_COLUMN, RowProblems
from seqtrain.data.readers import Column, ReadOptions, read_examples, read_rows
from seqtrain.data.readers.delimited import read_records
from seqtrain.data.readers.npz import FEW_SYMBOLS
from seqtrain.data.readers.opening import BUFFER, RowSource, open_input, utf_16
from seqtrain.data.readers.txt import list_folder
from seqtrain.errors import DataError
from seqtrain.proposal.columns import (
    FEWEST_STEPS,
    ColumnFacts,
    Wishes,
    choose_label,
    choose_sequence,
    flattened,
    gather,
    has_header,
    is_series,
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


@dataclass(frozen=True)
class Table:
    """How a data file is read, the columns that are left out and why, and what isn't sure.

    Attributes:
        label: what was taken as the label, where no column is.
    """

    reading: ReadOptions
    ignored: Sequence[str] = ()
    doubts: Sequence[str] = ()
    label: str | None = None


def find_columns(path: str, wishes: Wishes) -> Table:
    """Find how a data file, or a folder of text files, is read.

    Raises:
        DataError: it can't be read, or something that is needed isn't clear.
    """
    format = resolve_format(path, wishes.format)
    if format is None:
        raise DataError(
            f"{display_name(path)}: its ending names no format; known are {', '.join(ENDINGS)}; "
            "or give --format"
        )
    check_encoding(wishes.encoding)
    encoding, doubts = wishes.encoding or _encoding(path, format), list[str]()
    if encoding not in ("utf-8", "utf-16") and wishes.encoding is None:
        doubts.append(
            f"{display_name(path)} isn't UTF-8; it is read as {encoding} (Western European); if "
            "letters come out wrong, give --encoding, such as cp1251 or gbk"
        )
    found = _text_format(path, format, encoding)
    by_name = wishes.format == "auto" and found == format
    reading = ReadOptions(found, delimiter=wishes.delimiter, encoding=encoding, by_name=by_name)
    if reading.format in ("csv", "tsv"):
        return _delimited(path, reading, wishes, doubts)
    if reading.format in OBJECT_FORMATS:
        columns = gather(_objects(path, reading))
        if not columns:
            raise DataError(f"{display_name(path)}: no rows; expected one JSON object per line")
        if all(column.rows == 1 for column in columns) and len(columns) > FEWEST_STEPS:
            raise DataError(
                f"{display_name(path)}: one object; expected one for each row, as pandas writes "
                "them with to_json(orient='records')"
            )
        return _table(columns, _objects(path, reading), reading, wishes, doubts)
    for flag, value in (("--label", wishes.label), ("--sequence", wishes.sequence)):
        if value is not None:
            raise DataError(f"{flag}: format {format} has no columns to name; leave it out")
    kind = wishes.kind or _fixed_kind(path, reading)
    named = _fasta_label(path, reading) if reading.format == "fasta" else None
    return Table(replace(reading, kind=kind), doubts=doubts, label=named)


def _fasta_label(path: str, reading: ReadOptions) -> str:
    """Return what the last word of a line such as `>id SV=1` is named, or where it stands."""
    with open_input(path, encoding=reading.encoding) as stream:
        lines = RowSource(stream, reading, RowProblems(display_name(path))).lines()
        first = next((line for _, line in lines if line[:1] == ">"), "")
    name = FASTA_NAME.search(first)
    return name[1] if name else f"the last word of {quote(first, 40)}"


def _encoding(path: str, format: str) -> str:
    """Return utf-8, utf-16, or cp1252 (latin-1, where a byte has no meaning in that)."""
    if format in ("npz", *OBJECT_FORMATS[1:]):
        return "utf-8"
    for file in [file for file, _, _ in list_folder(path)] if isdir(path) else [path]:
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


def _text_format(path: str, format: str, encoding: str) -> str:
    """Return the format; of a .txt file fasttext, where it begins so."""
    if format != "txt" or isdir(path):
        return format
    name, options = display_name(path), ReadOptions(format, encoding=encoding)
    with open_input(path, encoding=encoding) as stream:
        lines = RowSource(stream, options, RowProblems(name)).lines()
        begin = [line for _, line in islice(lines, FIRST_ROWS)]
    if begin and begin[0].startswith("__label__"):
        return "fasttext"
    if any(begin) and not any("\t" in line for line in begin):
        raise DataError(
            f"{name}: no labels: no line has a tab; expected label<TAB>text, csv or jsonl "
            "with a column of labels, or a folder of texts for each class"
        )
    return format


def _fixed_kind(path: str, reading: ReadOptions) -> str:
    if reading.format == "ts":
        return "features"
    if reading.format == "txt":
        rows = list(islice(read_rows(path, reading), FIRST_ROWS))
        numbers = sum(is_series(str(row.sequence)) for row in rows)
        return "features" if numbers > NUMBERS_SHARE * len(rows) else "text"
    if reading.format != "npz":
        return "text"
    distinct: set[float] = set()
    for example in read_examples(path, replace(reading, kind="features")):
        values = np.asarray(example.sequence)
        if values.shape[1:] != (1,) or not np.array_equal(values, np.rint(values)):
            return "features"
        distinct.update(np.unique(values).tolist())
        if len(distinct) > FEW_SYMBOLS:
            return "features"
    return "tokens"


def _objects(path: str, reading: ReadOptions) -> Iterator[Iterator[tuple[Column, object]]]:
    problems = RowProblems(display_name(path))
    for row in read_rows(path, replace(reading, keep=(EVERY_COLUMN,)), problems, labelled=False):
        if row.problem is not None:
            problems.fail(row.line, row.problem)
        yield flattened(row.kept or {})


def _records(path: str, reading: ReadOptions) -> Iterator[list[str]]:
    problems = RowProblems(display_name(path))
    with open_input(path, encoding=reading.encoding) as stream:
        for _, fields in read_records(RowSource(stream, reading, problems)):
            yield fields
    problems.raise_if_any()


def _delimited(path: str, reading: ReadOptions, wishes: Wishes, doubts: list[str]) -> Table:
    name, records = display_name(path), _records(path, reading)
    first = next(records, None)
    if first is None or first == [""]:
        raise DataError(f"{name}: no rows; expected one labelled sequence per row")
    width = len(first)
    if width < 2:
        raise DataError(
            f"{name}: one column, {quote(first[0])}; expected a label and a sequence per row, "
            "separated by a comma, semicolon, tab or |; or give --delimiter"
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
    rows = (zip(first, fields, strict=False) for fields in islice(_records(path, reading), 1, None))
    table = _table(columns, rows if header else (), reading, wishes, doubts)
    found = table.reading
    named = found.sequence if isinstance(found.sequence, list) else [found.sequence]
    names_a_column = any(isinstance(column, str) for column in (found.label, *named))
    if header != names_a_column:
        found = replace(found, header=header)
    return replace(table, reading=found)


def _table(
    columns: Sequence[ColumnFacts],
    rows: Iterable[Iterable[tuple[Column, object]]],
    reading: ReadOptions,
    wishes: Wishes,
    doubts: list[str],
) -> Table:
    wishes = _resolved(wishes, columns)
    table = find_steps(rows, columns, wishes)
    if table is not None:
        reading = replace(reading, kind="steps", id=table.id, order=table.order, label=table.label)
        reading = replace(reading, steps=table.steps)
        return Table(reading, table.ignored, [*doubts, *table.doubts])
    label = choose_label(columns) if wishes.label is None else wishes.label
    if wishes.sequence is None:
        chosen = choose_sequence(columns, label)
    else:
        chosen = [column for name in wishes.sequence for column in columns if column.column == name]
    kinds = {column.kind for column in chosen}
    if kinds == {"number"} and 1 < len(chosen) < FEWEST_STEPS:
        raise DataError(no_series(chosen))
    of_numbers = kinds == {"series"} or (kinds == {"number"} and len(chosen) > 1)
    decimal = [c for c in chosen if c.kind == "number" and c.kinds["decimal"]]
    if of_numbers and decimal:
        raise DataError(f"--sequence: {decimal[0].decimal_comma}")
    found = "features" if of_numbers else "tokens" if kinds == {"symbols"} else "text"
    kind = wishes.kind or found
    if wishes.kind is None and any(column.kinds["whole"] for column in chosen):
        other = (
            "symbols: --set data.kind=tokens"
            if of_numbers
            else ("measurements: --set data.kind=features")
        )
        doubts.append(f"the sequences are whole numbers, read as {kind}; if they are {other}")
    sequence: list[Column] | Column | None = [column.column for column in chosen]
    ignored = [c for c in columns if c.column != label and c not in chosen]
    is_wide = of_numbers and kinds == {"number"} and reading.format in ("csv", "tsv")
    if is_wide and all(column.column == "" for column in ignored):
        sequence = None
    elif len(chosen) == 1:
        sequence = chosen[0].column
    reading = replace(reading, kind=kind, sequence=sequence, label=label)
    return Table(reading, [column.describe() for column in ignored], doubts)


def _resolved(wishes: Wishes, columns: Sequence[ColumnFacts]) -> Wishes:
    """Return what the user says with the names of columns, each of which there is."""

    def name(flag: str, wanted: Column | None) -> Column | None:
        return None if wanted is None else _named(wanted, columns, flag)

    def names(flag: str, wanted: Sequence[Column] | None) -> list[Column] | None:
        return None if wanted is None else [_named(each, columns, flag) for each in wanted]

    return replace(
        wishes,
        label=name("--label", wishes.label),
        sequence=names("--sequence", wishes.sequence),
        id=name("--id", wishes.id),
        order=name("--order", wishes.order),
        steps=names("--steps", wishes.steps),
    )


def _named(wanted: Column, columns: Sequence[ColumnFacts], flag: str) -> Column:
    names = [column.column for column in columns]
    if wanted in names:
        return wanted
    if str(wanted).isascii() and str(wanted).isdigit() and int(wanted) < len(names):
        return names[int(wanted)]
    found = (
        f"{len(names)} columns, counted from 0, without names (--header, if the first row has some)"
    )
    if isinstance(names[0], str):
        found = ", ".join(map(str, names))
    raise DataError(f"{flag}: no column {quote(str(wanted))}; found {quote(found)}")
