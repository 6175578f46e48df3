"""Inspection of data files: format, encoding, columns, and kind of the sequences."""

import codecs
import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np

from seqtrain.errors import DataError
from seqtrain.files.formats import (
    ENDINGS,
    FORMATS,
    IN_MEMORY,
    advice,
    check_encoding,
    columns_of_format,
    default_kind,
    resolve_format,
)
from seqtrain.files.reading import path_problem
from seqtrain.proposal.columns import ColumnProfile, columns_named, flattened, profile_blocks
from seqtrain.proposal.data_profile import DataProfile, refuse_problems
from seqtrain.proposal.header import has_header
from seqtrain.proposal.label_column import choose_label, with_one_label
from seqtrain.proposal.options import COLUMN_OPTIONS, InitOptions
from seqtrain.proposal.reading_progress import ReadingProgress
from seqtrain.proposal.sampling import row_sample, sampled
from seqtrain.proposal.sequence_columns import FEWEST_STEPS, choose_sequence, no_series_problem
from seqtrain.proposal.step_table import find_step_table
from seqtrain.sequences.examples import RowProblems
from seqtrain.sequences.read_options import EVERY_COLUMN, Column, FileFormat, Schema, missing_name
from seqtrain.sequences.readers import (
    FileSource,
    RowSample,
    Source,
    TableSource,
    read_column_blocks,
    read_rows,
)
from seqtrain.sequences.readers.file_source import class_folder, holds_whole_files
from seqtrain.sequences.readers.named_cells import BY_COLUMNS, is_by_columns
from seqtrain.sequences.readers.npz import FEW_SYMBOLS
from seqtrain.sequences.readers.opening import BUFFER, open_input, utf_16
from seqtrain.sequences.sources import source_of
from seqtrain.sequences.summary import separator_of
from seqtrain.text import display_name, quote

FIRST_ROWS = 4096
"""Number of first rows that tell the kind of a file without columns."""
MOST_ACCENTS = 0.3
"""Largest share of letters beyond ASCII in a text that can be Western European."""
NOT_WESTERN = {0x81, 0x8D, 0x8F, 0x90, 0x9D}
"""Bytes without a meaning in cp1252."""
LIST_KINDS = {"series": "features", "symbols": "tokens"}
"""Maps a kind of column to the kind of its sequences. Other columns hold texts."""
FEWEST_OWNERS = 10
"""Fewest distinct values of a column that names the owner of each row, such as a customer."""
MANY_COLUMNS = 3000
"""Number of columns from which on looking at a table takes long."""


def data_format(path: str, given: str) -> str:
    """Return the format of a data file.

    Args:
        path: The file.
        given: Format that the user names, or "auto" to choose it by the file's name.

    Raises:
        DataError: If the format is "auto", and the file's name tells no format.
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


def inspect(files: Sequence[str], options: InitOptions, progress: ReadingProgress) -> DataProfile:
    """Return the profile of data files, which all have the columns of the first file.

    The first file tells the format, the encoding and the roles of the columns for all of them. If
    it is large, only a sample of it is read.

    Args:
        files: The files, or folders of text files.
        options: Options of the user about the files.
        progress: Reports long steps.

    Raises:
        ConfigError: If the user names an unknown encoding.
        DataError: If files can't be read, have only one label or only empty rows, or have ambiguous
            columns.
    """
    path, name = files[0], display_name(files[0])
    format = data_format(path, options.get("format", "auto"))
    check_encoding(options.get("encoding"))
    progress.step(f"reading {name}")
    encoding, undecodable = options.get("encoding"), list[str]()
    if encoding is None:
        encoding, undecodable = _encoding(path, format, progress)
    with sampled(path, format, encoding, progress) as sample:
        found = find_columns(sample.path, format, encoding, options, progress)
        progress.step(f"counting the rows of {name}")
        read = [sample.path, *files[1:]]
        drop = options.drops_bad_rows or bool(undecodable)
        counted = None if len(files) > 1 or drop else found.count_columns()
        profile = counted or found.count_files(read, progress, drop_bad_rows=drop)
        separator = separator_of(profile.classes)
        if separator is not None and profile.schema.label_columns:
            profile = found.count_files(
                read, progress, drop_bad_rows=drop, label_separator=separator
            )
        profile.owner = found.owner
        if sample.note is not None:
            profile.scale, profile.note = sample.scale, sample.note
    if not profile.classes:
        raise DataError(f"{name}: all {profile.empty + profile.unlabelled} rows are empty")
    if len(profile.classes) < 2:
        label = quote(next(iter(profile.classes)))
        raise DataError(f"{name}: one label, {label}; expected two or more")
    if undecodable:
        first = display_name(undecodable[0])
        more = f" and {len(undecodable) - 1:,} more" if len(undecodable) > 1 else ""
        left_out = f"{first}{more}: not UTF-8, as other files of the folder are; left out"
        profile.warnings = [*profile.warnings, left_out]
    profile.conclude(options.get("tokenizer"))
    return profile


def find_columns(
    path: str,
    format: str,
    encoding: str,
    options: InitOptions,
    progress: ReadingProgress,
) -> DataProfile:
    """Return a profile with the format and schema of a file or folder, but without counts.

    A txt file may turn out to be fasttext or tsv. The profile then has this format.

    Args:
        path: The data file, or the folder of text files.
        format: Name of its format.
        encoding: Name of its encoding.
        options: Options of the user about the file.
        progress: Reports long steps.

    Raises:
        DataError: If the file can't be read, or if its columns are ambiguous. Also if the file has
            no column that the user names.
    """
    warnings = list[str]()
    if encoding not in ("utf-8", "utf-16") and "encoding" not in options.given:
        warnings.append(
            f"{display_name(path)} isn't UTF-8; it is read as {encoding} (Western European); if "
            "letters come out wrong, give --encoding, such as cp1251 or gbk"
        )
    written = FileFormat(
        format,
        delimiter=options.get("delimiter", "auto"),
        encoding=encoding,
        by_name="format" not in options.given,
    )
    if format == "txt" and os.path.isfile(path):
        source = FileSource(path, replace(written, name="lines"), Schema())
        rows = islice(read_rows(source, labelled=False), FIRST_ROWS)
        lines = [str(row.sequence) for row in rows]
        if any(line.startswith("__label__") for line in lines[:1]):
            written = replace(written, name="fasttext", by_name=False)
        elif _has_labels_last(lines):
            written = replace(written, name="tsv", by_name=False)
    if columns_of_format(written.name) != "none":
        sample = row_sample()
        columns = _read_columns(path, written, options, progress, sample)
        profile = _assign_columns(columns, written, options)
        profile.read = (sample.read, sample.total)
        return replace(profile, warnings=[*warnings, *profile.warnings])
    for option in ("label", "sequence"):
        if options.named(option):
            raise DataError(f"--{option}: format {format} has no columns to name; leave it out")
    kind = options.kind or _kind_without_columns(path, written)
    return DataProfile(written, Schema(kind), warnings=warnings)


def _has_labels_last(lines: Sequence[str]) -> bool:
    """Return True if all lines are text<TAB>label.

    They must have two fields. The last field must have fewer distinct values than the first.
    """
    fields = [line.split("\t") for line in lines]
    if any(len(line) != 2 for line in fields):
        return False
    return len({last for _, last in fields}) < len({first for first, _ in fields})


def _encoding(path: str, format: str, progress: ReadingProgress) -> tuple[str, list[str]]:
    """Return the encoding of a file or folder, and the paths of files with another encoding.

    The encoding is utf-8, utf-16, cp1252, or latin-1. Binary formats count as utf-8. A folder is
    utf-16 if any of its files is.

    A folder with a file per row may be utf-8 although some files aren't. The list has the paths of
    these files, and is empty in all other cases. Such a folder is utf-8 if most of its files beyond
    ASCII are, or if all other files are binary.

    Raises:
        DataError: If the text is neither in Unicode nor Western European.
    """
    if format == IN_MEMORY or FORMATS[format].binary:
        return "utf-8", []
    files = [x.path for x in class_folder(path)] if os.path.isdir(path) else [path]
    others, num_utf_8 = dict[str, bytes](), 0
    for file in files:
        encoding, block = _start_of_encoding(file, progress)
        if encoding == "utf-16":
            return "utf-16", []
        num_utf_8 += encoding == "utf-8"
        if encoding == "other":
            others[file] = block
    if not others:
        return "utf-8", []
    texts = {file: block for file, block in others.items() if b"\0" not in block}
    if holds_whole_files(path) and (num_utf_8 > len(others) or not texts):
        return "utf-8", [*others]
    return _western(*next(iter((texts or others).items()))), []


def _start_of_encoding(file: str, progress: ReadingProgress) -> tuple[str, bytes]:
    """Return "ascii", "utf-8", "utf-16" or "other" for a file, and the last block of it read.

    Reading ends at the first block that shows UTF-16 or isn't UTF-8. All other files are read to
    their end. A damaged compressed file counts as "utf-8", with an empty block.
    """
    decoder, encoding, block = codecs.getincrementaldecoder("utf-8")(), "ascii", b""
    with open_input(file) as stream:
        try:
            for number, block in enumerate(iter(lambda: stream.read(BUFFER), b"")):
                if number == 0 and utf_16(block[:4]):
                    return "utf-16", block
                decoder.decode(block)
                progress.report()
                if not block.isascii():
                    encoding = "utf-8"
        except UnicodeDecodeError:
            return "other", block
        except OSError:  # the reader reports the damage
            return "utf-8", b""
    return encoding, block


def _western(file: str, block: bytes) -> str:
    """Return "cp1252" or "latin-1" as the encoding of bytes that are not UTF-8.

    For bytes with zeros, which are no text, the result is "utf-8". The reader then reports them.

    Raises:
        DataError: If more than `MOST_ACCENTS` of the letters are beyond ASCII, as in other scripts.
    """
    if b"\0" in block:
        return "utf-8"  # the reader reports that it isn't a text
    letters = [c for c in block.decode("latin-1") if c.isalpha()]
    if sum(not c.isascii() for c in letters) > MOST_ACCENTS * len(letters):
        raise DataError(
            f"{display_name(file)}: neither UTF-8 nor Western European; give its --encoding, such "
            "as cp1251, gbk or shift_jis"
        )
    return "cp1252" if NOT_WESTERN.isdisjoint(block) else "latin-1"


def _kind_without_columns(path: str, format: FileFormat) -> str:
    """Return the kind of the sequences (text, tokens, features) of a file without columns.

    The first `FIRST_ROWS` rows of txt and npz decide. In npz, whole numbers of one channel with at
    most `FEW_SYMBOLS` distinct values are tokens. Other formats have one kind.
    """
    if format.name == "txt":
        source = FileSource(path, format, Schema(), bad_rows="drop")
        rows = islice(read_rows(source), FIRST_ROWS)
        (column,) = profile_blocks([{0: [str(row.sequence) for row in rows]}])
        return LIST_KINDS.get(column.kind, "text")
    if format.name != "npz":
        return default_kind(format.name)
    series = islice(read_rows(FileSource(path, format, Schema("features"))), FIRST_ROWS)
    values = [np.asarray(row.sequence) for row in series if row.problem is None]
    is_whole = all(x.shape[1:] == (1,) and np.array_equal(x, np.rint(x)) for x in values)
    distinct = {number for x in values for number in x[:, 0].tolist()} if is_whole else set()
    return "tokens" if is_whole and len(distinct) <= FEW_SYMBOLS else "features"


def _read_columns(
    path: str,
    format: FileFormat,
    options: InitOptions,
    progress: ReadingProgress,
    sample: RowSample,
) -> list[ColumnProfile]:
    """Return the profiles of all columns of a table, named by the header or by their indexes.

    Columns of JSON objects are named by their fields.

    Args:
        path: The data file.
        format: How it is written.
        options: Options of the user about the file.
        progress: Reports long steps.
        sample: Sample of the rows to read. The reader sets its numbers of rows.

    Raises:
        DataError: If the file can't be read, or isn't a table of rows. Also if it isn't clear
            whether the first row is a header.
    """
    is_delimited = columns_of_format(format.name) == "delimited"
    schema = Schema(sequence=0 if is_delimited else None)
    source: Source = source_of(path, replace(format, header=False), schema)
    if isinstance(source, TableSource):
        source = TableSource(source.data, source.schema, source.name, keep=[EVERY_COLUMN])
    else:
        source = replace(source, keep=[EVERY_COLUMN])
    name, problems = source.name, RowProblems(source.name)
    drop = options.drops_bad_rows
    cells = read_column_blocks(source, problems, drop_bad_rows=drop, sample=sample)
    head = next(cells, list[Any]())
    first = [str(column[0]) for column in head] if is_delimited else []
    if len(first) > MANY_COLUMNS:
        progress.step(f"reading {name}, which has {len(first):,} columns")
    rest = [column[1:] for column in head] if is_delimited else head
    blocks = progress.blocks(chain([rest] if head else [], cells))
    columns = profile_blocks(
        dict(enumerate(block)) if is_delimited else flattened(block[0]) for block in blocks
    )
    refuse_problems(problems, source, any_good=True)
    only = head[0][0] if head and not is_delimited and columns[0].rows == 1 else None
    _check_shape(name, first, only, columns)
    has_names = is_delimited and has_header(name, first, columns, options)
    for column, title in zip(columns, first, strict=is_delimited):
        if has_names:
            column.column = title
        else:
            column.add([title], before=True)
    return columns


def _check_shape(
    name: str,
    first: Sequence[str],
    only: dict[str, Any] | None,
    columns: Sequence[ColumnProfile],
) -> None:
    """Raise a DataError if a table has no rows, one column, or JSON lists by column.

    Args:
        name: Name of the file, for messages.
        first: Cells of the first row. It is empty for a table of objects.
        only: The object of a table of one object, or None.
        columns: Profiles of all columns. They don't include `first`.
    """
    if not columns or not columns[0].rows:
        found = "one row" if any(first) else "no rows"
        raise DataError(f"{name}: {found}; expected one labelled sequence per row")
    if len(first) == 1:
        raise DataError(
            f"{name}: one column, {quote(first[0])}; expected a label and a sequence per row, "
            "separated by a comma, semicolon, tab or |; or give --delimiter"
        )
    if only is not None and (is_by_columns(only) or len(columns) > FEWEST_STEPS):
        raise DataError(f"{name}: {BY_COLUMNS}")


def _assign_columns(
    columns: Sequence[ColumnProfile], format: FileFormat, options: InitOptions
) -> DataProfile:
    """Return a profile whose schema has the roles of the columns, but without counts.

    The table may have a row per sequence or a row per time step.

    Raises:
        DataError: If the roles aren't clear, or the table lacks a column that the user names.
    """
    _check_names(columns, options)
    columns, options = with_one_label(columns, options)
    profile = find_step_table(columns, options, format)
    if profile is not None:
        return profile
    named = columns_named(columns, options, "label")
    label = named[0] if named else choose_label(columns)
    chosen = columns_named(columns, options, "sequence") or choose_sequence(columns, label)
    found, warnings = _kind_of(chosen), list[str]()
    kind = options.kind or found
    if options.kind is None and any(column.kinds["whole"] for column in chosen):
        names = ("symbols", "tokens") if found == "features" else ("measurements", "features")
        other = "{}: --set data.kind={}".format(*names)
        warnings.append(f"the sequences are whole numbers, read as {kind}; if they are {other}")
    ignored = [column for column in columns if column is not label and column not in chosen]
    sequence: list[Column] | Column | None = [column.column for column in chosen]
    is_wide = len(chosen) > 1 and all(column.kind == "number" for column in chosen)
    is_delimited = columns_of_format(format.name) == "delimited"
    if is_wide and is_delimited and all(column.column == "" for column in ignored):
        sequence = None
    elif len(chosen) == 1:
        sequence = chosen[0].column
    if kind == "features" and any(
        column.has_decimal_commas or column.decimal_series for column in chosen
    ):
        format = replace(format, decimal=",")
    schema = Schema(kind, sequence=sequence, **label.as_label)
    profile = DataProfile(format, schema, [column.describe() for column in ignored], warnings)
    profile.owner, profile.columns = _owner(ignored), (label, *chosen)
    return profile


def _kind_of(chosen: Sequence[ColumnProfile]) -> str:
    """Return the kind of the sequence in the chosen columns: text, tokens or features.

    Several columns of single numbers are features. Columns of different kinds are text.

    Raises:
        DataError: If several columns of single numbers have units, or are fewer than
            `FEWEST_STEPS`.
    """
    kinds = {LIST_KINDS.get(column.kind, "text") for column in chosen}
    if not (len(chosen) > 1 and all(column.kind == "number" for column in chosen)):
        kind = kinds.pop() if len(kinds) == 1 else "text"
    elif len(chosen) < FEWEST_STEPS:
        raise DataError(no_series_problem(chosen))
    else:
        kind = "features"
    numbers = [column for column in chosen if column.kind == "number"]
    with_units = [column for column in numbers if column.units and not column.has_decimal_commas]
    if with_units and kind == "features":
        raise DataError(f"--sequence: {with_units[0].unit_problem()}")
    return kind


def _owner(columns: Sequence[ColumnProfile]) -> str | None:
    """Return the name of the first column that seems to name the owner of each row, or None.

    The column is named like codes or owners. It has at least `FEWEST_OWNERS` distinct texts or
    whole numbers, and at most half as many as rows.
    """
    for column in columns:
        is_named = column.is_code or column.names_owner
        is_value = column.kind in ("text", "number") and not column.has_no_labels
        if is_named and is_value and FEWEST_OWNERS <= len(column.values) <= column.rows / 2:
            return str(column.column)
    return None


def _check_names(columns: Sequence[ColumnProfile], options: InitOptions) -> None:
    """Raise a DataError if the table lacks columns in the options. The error lists all of them."""
    present = [str(column.column) for column in columns]
    known = {*present, *map(str, range(len(columns)))}
    has_names = isinstance(columns[0].column, str)
    hint = "" if has_names else "; the table has no names (--header, if the first row has some)"
    problems = [
        f"--{option}: {missing_name('column', str(name), present)}{hint}"
        for option in COLUMN_OPTIONS
        for name in options.named(option)
        if str(name) not in known
    ]
    if problems:
        raise DataError(*problems)
