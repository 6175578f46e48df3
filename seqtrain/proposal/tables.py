"""How a file of labelled sequences is read: its format, its encoding, its columns, its kind."""

import codecs
import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, islice

import numpy as np

from seqtrain.config.formats import (
    ENDINGS,
    FORMATS,
    IN_MEMORY,
    advice,
    check_encoding,
    columns_of_format,
    default_kind,
    resolve_format,
)
from seqtrain.data.read_options import EVERY_COLUMN, Column, FileFormat, Schema, missing_name
from seqtrain.data.readers import FileSource, Source, TableSource, read_rows
from seqtrain.data.readers.cells import BY_COLUMNS, is_by_columns
from seqtrain.data.readers.folders import class_folder
from seqtrain.data.readers.npz import FEW_SYMBOLS
from seqtrain.data.readers.opening import BUFFER, open_input, utf_16
from seqtrain.data.sources import source_of
from seqtrain.data.summary import separator_of
from seqtrain.errors import DataError
from seqtrain.files.reading import path_problem
from seqtrain.proposal.columns import (
    FEWEST_STEPS,
    ColumnFacts,
    Wishes,
    choose_label,
    choose_sequence,
    flattened,
    gather,
    has_header,
    no_series,
)
from seqtrain.proposal.contents import Facts, good_rows
from seqtrain.proposal.steps import find_steps
from seqtrain.text import display_name, quote

FIRST_ROWS = 4096
"""Rows of a file or folder that show what it is, at most."""
MOST_ACCENTS = 0.3
"""Share of letters beyond ASCII up to which a text may be Western European."""
READ_AS = {"series": "features", "symbols": "tokens"}
"""How columns of these are read; others as text."""


def data_format(path: str, given: str) -> str:
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


def inspect(files: Sequence[str], wishes: Wishes) -> Facts:
    """Read data files with the same columns; the first once more, for its columns."""
    facts, name = find_columns(files[0], wishes).of(files), display_name(files[0])
    separator = separator_of(facts.classes)
    if separator is not None and facts.schema.label is not None:
        facts = facts.of(files, label_separator=separator)
    if not facts.classes:
        raise DataError(f"{name}: all {facts.empty + facts.unlabelled} rows are empty")
    if len(facts.classes) < 2:
        label = quote(next(iter(facts.classes)))
        raise DataError(f"{name}: one label, {label}; expected two or more")
    facts.judge()
    return facts


def find_columns(path: str, wishes: Wishes) -> Facts:
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
    written = FileFormat(
        format, delimiter=wishes.delimiter, encoding=encoding, by_name=wishes.format == "auto"
    )
    if format == "txt" and os.path.isfile(path):
        lines = read_rows(
            FileSource(path, replace(written, name="lines"), Schema()), labelled=False
        )
        if any(str(line.sequence).startswith("__label__") for line in islice(lines, 1)):
            written = replace(written, name="fasttext", by_name=False)
    if columns_of_format(written.name) != "none":
        facts = _of_columns(_columns(path, written, wishes), written, wishes)
        return replace(facts, doubts=[*doubts, *facts.doubts])
    for flag, value in (("--label", wishes.label), ("--sequence", wishes.sequence)):
        if value is not None:
            raise DataError(f"{flag}: format {format} has no columns to name; leave it out")
    schema = Schema(kind=wishes.kind or _fixed_kind(path, written))
    return Facts(written, schema, doubts=doubts)


def _encoding(path: str, format: str) -> str:
    """Return utf-8, utf-16, or cp1252 (latin-1, where a byte has no meaning in that)."""
    if format == IN_MEMORY or FORMATS[format].binary:
        return "utf-8"
    for file in [x.path for x in class_folder(path)] if os.path.isdir(path) else [path]:
        decoder = codecs.getincrementaldecoder("utf-8")()
        with open_input(file) as stream:
            try:
                for number, block in enumerate(iter(lambda: stream.read(BUFFER), b"")):
                    if number == 0 and utf_16(block[:4]):
                        return "utf-16"
                    decoder.decode(block)
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


def _fixed_kind(path: str, format: FileFormat) -> str:
    """Return the kind of a file without columns, by its first rows."""
    if format.name == "txt":
        rows = islice(read_rows(FileSource(path, format, Schema())), FIRST_ROWS)
        (column,) = gather([(0, str(row.sequence))] for row in rows)
        return READ_AS.get(column.kind, "text")
    if format.name != "npz":
        return default_kind(format.name)
    series = islice(read_rows(FileSource(path, format, Schema("features"))), FIRST_ROWS)
    values = [np.asarray(row.sequence) for row in series if row.problem is None]
    whole = all(x.shape[1:] == (1,) and np.array_equal(x, np.rint(x)) for x in values)
    few = whole and len({number for x in values for number in x[:, 0].tolist()}) <= FEW_SYMBOLS
    return "tokens" if few else "features"


def _columns(path: str, format: FileFormat, wishes: Wishes) -> list[ColumnFacts]:
    """Describe every column of a table; without names they are numbered."""
    delimited = columns_of_format(format.name) == "delimited"
    found = source_of(
        path, replace(format, header=False), Schema(sequence=0 if delimited else None)
    )
    everything: Source
    if isinstance(found, TableSource):
        everything = TableSource(found.data, found.schema, found.name, keep=[EVERY_COLUMN])
    else:
        everything = replace(found, keep=[EVERY_COLUMN])
    name = everything.name
    rows = (row.kept or {} for row in good_rows(everything, labelled=False))
    first = [str(cell) for cell in next(rows, {}).values()] if delimited else []
    some = [*islice(rows, 2)]
    every = chain(some, rows)
    columns = gather(enumerate(row.values()) if delimited else flattened(row) for row in every)
    if not columns:
        number = "one row" if any(first) else "no rows"
        raise DataError(f"{name}: {number}; expected one labelled sequence per row")
    if len(first) == 1:
        raise DataError(
            f"{name}: one column, {quote(first[0])}; expected a label and a sequence per row, "
            "separated by a comma, semicolon, tab or |; or give --delimiter"
        )
    is_one = len(some) == 1 and not delimited
    if is_one and (is_by_columns(some[0]) or len(columns) > FEWEST_STEPS):
        raise DataError(f"{name}: {BY_COLUMNS}")
    header = wishes.header
    if delimited and header is None:
        header = has_header(name, first, columns)
    for column, title in zip(columns, first, strict=delimited):
        if header:
            column.column = title
        else:
            column.add(title)
        column.judge()
    return columns


def _of_columns(columns: Sequence[ColumnFacts], format: FileFormat, wishes: Wishes) -> Facts:
    named = _named(wishes, columns)
    facts = find_steps(columns, named, wishes.kind, format)
    if facts is not None:
        return facts
    (label,) = named["label"] or [choose_label(columns)]
    chosen = named["sequence"] or choose_sequence(columns, label)
    kinds = {READ_AS.get(column.kind, "text") for column in chosen}
    is_wide = len(chosen) > 1 and all(column.kind == "number" for column in chosen)
    if is_wide and len(chosen) < FEWEST_STEPS:
        raise DataError(no_series(chosen))
    found = "features" if is_wide else kinds.pop() if len(kinds) == 1 else "text"
    odd = [c for c in chosen if c.kind == "number" and c.odd]
    if odd and found == "features":
        raise DataError(f"--sequence: {odd[0].oddness}")
    kind, doubts = wishes.kind or found, list[str]()
    if wishes.kind is None and any(column.kinds["whole"] for column in chosen):
        what, name = ("symbols", "tokens") if found == "features" else ("measurements", "features")
        other = f"{what}: --set data.kind={name}"
        doubts.append(f"the sequences are whole numbers, read as {kind}; if they are {other}")
    ignored = [c for c in columns if c is not label and c not in chosen]
    sequence: list[Column] | Column | None = [column.column for column in chosen]
    if (
        is_wide
        and columns_of_format(format.name) == "delimited"
        and all(c.column == "" for c in ignored)
    ):
        sequence = None
    elif len(chosen) == 1:
        sequence = chosen[0].column
    schema = Schema(kind, sequence=sequence, label=label.column)
    return Facts(format, schema, [column.describe() for column in ignored], doubts)


def _named(wishes: Wishes, columns: Sequence[ColumnFacts]) -> dict[str, list[ColumnFacts]]:
    """Return the columns that the user names or counts, each of which there is, by option."""
    known = {key: column for i, column in enumerate(columns) for key in (i, str(i))}
    known |= {column.column: column for column in columns}
    named = dict[str, list[ColumnFacts]]()
    for flag in ("label", "sequence", "id", "order", "steps"):
        given = getattr(wishes, flag)
        some = given if isinstance(given, list) else [] if given is None else [given]
        for wanted in (name for name in some if name not in known):
            has_names = isinstance(columns[0].column, str)
            hint = "" if has_names else "; without names (--header, if the first row has some)"
            present = [str(column.column) for column in columns]
            raise DataError(f"--{flag}: {missing_name('column', str(wanted), present)}{hint}")
        named[flag] = [known[wanted] for wanted in some]
    return named
