"""Reading of data files by `seqtrain init`: format, encoding, header, and all columns."""

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from seqtrain.errors import DataError, parameter
from seqtrain.files.reading import path_problem
from seqtrain.proposal.chat_lines import refuse_chats
from seqtrain.proposal.divisions import (
    command_for_unknown,
    refuse_blanks,
    refuse_blocks,
    refuse_frames,
)
from seqtrain.proposal.first_lines import PROFILED_ROWS, first_lines
from seqtrain.proposal.lines_above import refuse_lines_above
from seqtrain.proposal.options import FileLayout
from seqtrain.proposal.ragged import has_label_last, labels_at, list_start
from seqtrain.proposal.shell import converting, init_line, mark_name
from seqtrain.proposal.table import Table, TableBuilder
from seqtrain.proposal.text_forms import (
    NOT_UTF_8,
    check_shape,
    delimiter_of,
    find_header,
    form_of_file,
    format_of_lines,
    is_ragged,
    set_likely_encoding,
    undecodable_rows,
)
from seqtrain.sequences.inputs import QUOTES
from seqtrain.sequences.schema import EVERY
from seqtrain.sequences.sources import table_named
from seqtrain.tables.arrays import step_columns
from seqtrain.tables.blocks import (
    FILE,
    FOLDER,
    LABEL,
    REST,
    TEXT,
    Block,
    Cells,
    Dialect,
    Name,
    Selection,
    as_list,
)
from seqtrain.tables.delimited import DELIMITERS, DOUBLED_QUOTES
from seqtrain.tables.formats import (
    FORMATS,
    IN_MEMORY,
    MEMORY,
    TRAINING_FORMATS,
    check_encoding,
    columns_of_format,
    resolve_format,
)
from seqtrain.tables.join import joined_source
from seqtrain.tables.opening import STDIN, is_pipe, open_input, utf_16
from seqtrain.tables.other_programs import refuse_unreadable
from seqtrain.tables.sources import FileSource, open_source
from seqtrain.tables.xlsx import sheet_names
from seqtrain.text import display_name, one_of

MOST_FILES = 4096
"""Largest number of files that are read, if the name or the folder of a file is its label."""
FIRST_FILES = 100
"""Number of first files of a folder that tell the encoding."""
FIRST_SECONDS = 1.0
"""Seconds between reports about a step."""
NO_LAYOUT = FileLayout({})
"""Layout of a file that is read alone."""
TEXT_FORMATS = ("csv", "tsv", "jsonl", "txt", "fasttext", "lines")
"""Formats of which the characters of cells tell about which share of a file was read."""


ReadingReport: TypeAlias = Callable[[str, int, float], None]
"""Receives the name of a step, the number of rows so far, and about which share was read, or 0."""


class ReadingProgress:
    """Reports steps that take more than a second.

    Call `step` at the beginning of each step. Reports are only made while `blocks` is iterated.

    Args:
        emit: Receives each report, or None to report nothing.
    """

    def __init__(self, emit: ReadingReport | None = None) -> None:
        self._emit = emit
        self._step, self._size, self._next = "", 0, 0.0

    def step(self, text: str, size: int = 0) -> None:
        """Set the name of the current step, such as "reading a.csv", and restart its clock.

        Args:
            text: The name.
            size: Number of bytes to read, or 0 if it isn't known.
        """
        self._step, self._size = text, size
        self._next = time.monotonic() + FIRST_SECONDS

    def blocks(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Yield blocks of rows unchanged, and report the number of rows so far."""
        rows = 0
        for block in blocks:
            if self._emit is not None and rows and time.monotonic() >= self._next:
                self._emit(self._step, rows, self._share(rows, block))
                self._next = time.monotonic() + FIRST_SECONDS
            rows += len(block)
            yield block

    def _share(self, rows: int, block: Block) -> float:
        """Return about which share of the file was read, if its rows are like those of a block."""
        if not self._size or not len(block):
            return 0.0
        characters = sum(
            len(str(x)) + 1 for cells in block.columns.values() for x in as_list(cells)
        )
        return min(0.99, rows / len(block) * characters / self._size)


def data_format(path: str, given: str, layout: FileLayout = NO_LAYOUT) -> str:
    """Return the format of a data file.

    Args:
        path: The file.
        given: Format that the user names, or "auto" to choose it by the file's name.
        layout: Layout of all files.

    Raises:
        DataError: If the format is "auto", and the file's name tells no format; or if the file is a
            pipe. A config names files that `fit` reads again.
    """
    if path == STDIN or is_pipe(path):
        raise DataError(
            f"{path}: can be read only once, but a config names a file; write it to one, such as "
            "by … > data.csv, and give this file:",
            init_line("data.csv"),
        )
    format = resolve_format(path, given)
    if format is None:
        try:
            os.lstat(path)
        except (OSError, ValueError) as error:
            raise path_problem(path, error, DataError) from None
        refuse_unreadable(path)
        known = one_of(TRAINING_FORMATS)
        unknown = f"its ending names no format; give {parameter('format')}, one of {known}"
        raise DataError(f"{display_name(path)}: {unknown}", *command_for_unknown(path, layout))
    return format


def read_table(
    files: Sequence[str], layout: FileLayout, progress: ReadingProgress, *, is_train: bool = True
) -> Table:
    """Read all columns of data files. The first file tells the form of all of them.

    Args:
        files: The files, which have equal columns; or a folder.
        layout: Place of the labels, and options of the user.
        progress: Reports the number of rows.
        is_train: False for files of validation or test, which may lack rows or labels.

    Raises:
        ConfigError: If the user names an unknown encoding.
        DataError: If the files can't be read, or it isn't clear if they have a header.
    """
    path, options = files[0], layout.options
    format = data_format(path, options.get("format", "auto"), layout)
    check_encoding(options.get("encoding"))
    encoding = options.get("encoding") or ("utf-16" if _is_utf_16(path, format) else "utf-8")
    delimiter = DELIMITERS.get(options.get("delimiter", "auto"))
    quotes, sheet = QUOTES.get(options.get("quoting", "auto")), options.get("sheet")
    dialect = Dialect(format, encoding, delimiter, quotes=quotes, sheet=sheet)
    table = Table(path, layout, dialect)
    if is_train and format in ("txt", "csv", "tsv") and os.path.isfile(path):
        if format == "txt":
            refuse_chats(path, first_lines(path, dialect), layout)
        refuse_blocks(path, dialect, layout)
        refuse_frames(path, dialect, layout)
        refuse_lines_above(path, dialect, layout)
    elif is_train and format in ("csv", "tsv") and os.path.isdir(path):
        first_file = source_for(files, dialect, layout).files()[0]
        refuse_lines_above(first_file, dialect, layout)
    if format == "txt" and os.path.isfile(path):
        if is_train and not layout.joins:
            refuse_blanks(path, dialect, layout)
        table.dialect = replace(table.dialect, format=format_of_lines(table))
    first = list[str]()
    if table.dialect.format == "tsv" and quotes is None:
        form = form_of_file(open_source(path, table.dialect).files()[0], table.dialect)
        table.dialect = replace(table.dialect, quotes=form.quotes or None)
    if table.is_delimited:
        first = find_header(table, is_train=is_train and not layout.joins)
    if format == "npz":
        first_file, *others = source_for(files, dialect, layout).files()
        if others or options.named("id") == [FILE]:  # such files lack labels
            table.step_columns = step_columns(first_file)
    _read(table, files, progress, is_train=is_train)
    undecodable = undecodable_rows(table)
    are_guessed = any(NOT_UTF_8 in problem for problem in undecodable)
    if undecodable and not _leave_out(table, undecodable) and are_guessed:
        set_likely_encoding(table, files)
        _read(table, files, progress, is_train=is_train)
    if table.dialect.format == "tsv" and table.dialect.quotes is None:
        table = _in_quotes(table, files, progress, is_train=is_train)
    if format == "xlsx" and sheet is None:
        table.sheets = sheet_names(path)
    missing = options.get("na_values") or {}
    for at, column in enumerate(table.columns):
        own = list(missing.get(column.name_text, ()))
        if EVERY in missing and column.is_measured:  # the column of the label isn't known yet
            own += missing.get(EVERY, ())
        if own:
            table.columns[at] = column.without(own)
    if is_train and table.header is None:
        check_shape(table, [])
    if first and not layout.joins and (is_train or REST in options.named("sequence")):
        _read_ragged(table, files, first)
    return table


def read_alone(path: str, progress: ReadingProgress) -> Table:
    """Read all columns of a file without options of the user, to look what is in it.

    A file whose ending names no format is read as csv.
    """
    layout = NO_LAYOUT
    if not path.startswith(MEMORY) and resolve_format(path, "auto") is None:
        layout = replace(layout, options=layout.options.with_given(format="csv"))
    return read_table([path], layout, progress, is_train=False)


def source_for(files: Sequence[str], dialect: Dialect, layout: FileLayout) -> Any:
    """Return the source of files, of a folder, or of a table in memory."""
    if files[0].startswith(MEMORY):
        return table_named(files[0]).table
    paths = files[0] if len(files) == 1 else files
    whole_files = dialect.format == "txt" and layout.options.named("id") == [FILE]
    source = open_source(paths, dialect, pattern=layout.pattern, whole_files=whole_files)
    return joined_source(source, layout.joins)


def _is_utf_16(path: str, format: str) -> bool:
    """Return True if a file begins as UTF-16 does. A damaged file is refused when it is read."""
    if format == IN_MEMORY or FORMATS[format].binary:
        return False
    for file in open_source(path, Dialect(format)).files()[:FIRST_FILES]:
        with open_input(file) as stream, suppress(OSError):
            if utf_16(stream.read(4)) is not None:
                return True
    return False


def _read(table: Table, files: Sequence[str], progress: ReadingProgress, *, is_train: bool) -> None:
    """Read the rows of files into the columns of a table."""
    layout, dialect, options = table.layout, table.dialect, table.layout.options
    size = 0
    if dialect.format in TEXT_FORMATS and all(map(os.path.isfile, files)):
        size = sum(map(os.path.getsize, files))
    progress.step(f"reading {table.name}", size)
    columns = columns_of_format(dialect.format)
    selection = Selection()
    ids = options.named("id")
    if {FILE, FOLDER}.intersection(ids):
        is_named = FOLDER in (*ids, *options.named("label"), *options.used_otherwise)
        outside = re.sub(r"\[[^]]*\]", "", layout.pattern or "")  # [^/] names no folder
        names_folder = "/" in outside and not is_named  # as another column
        selection = Selection(optional=(FILE,) if names_folder else (FILE, FOLDER))
    if table.step_columns:
        own = [*re.compile(layout.pattern or "").groupindex, *layout.options.named("label")]
        own += layout.label_columns
        selection = replace(selection, required=(*table.step_columns, *dict.fromkeys(own)))
    elif is_train and columns == "none" and not layout.joins:
        selection = replace(selection, required=(TEXT, LABEL))
    builder = TableBuilder(table, is_nested=columns != "delimited")
    source = source_for(files, dialect, layout)
    if isinstance(source, FileSource) and len(source.parts) > MOST_FILES:
        source = _sample_of_files(source, table)
    for block in progress.blocks(source.blocks(selection, PROFILED_ROWS)):
        builder.add(block)
    builder.finalize()
    table.notices = source.notices()


def _in_quotes(
    table: Table, files: Sequence[str], progress: ReadingProgress, *, is_train: bool
) -> Table:
    """Return a table of tsv, read with cells in quotes if late lines show them.

    It is returned unchanged if a quote isn't closed, or if fewer rows can be read so.
    """
    values = (value for column in table.columns for value in column.values)
    bad_cells = (str(cell) for cells in table.bad_cells.values() for cell in cells)
    has_quotes = any(isinstance(value, str) and DOUBLED_QUOTES.fullmatch(value) for value in values)
    if not has_quotes and not any(cell.startswith('"') for cell in bad_cells):
        return table
    quoted = replace(table, dialect=replace(table.dialect, quotes=True))
    with suppress(DataError):
        _read(quoted, files, progress, is_train=is_train)
        if len(quoted.problems) < len(table.problems) + has_quotes:
            return quoted
    return table


def _read_ragged(table: Table, files: Sequence[str], first: Sequence[str]) -> None:
    """Read rows of different lengths as a few columns and a list: the fields after them.

    Nothing changes if nearly all rows have equally many fields, unless the user gives `REST` as the
    sequence.

    Args:
        table: The table.
        files: Its files.
        first: Cells of its first row.

    Raises:
        DataError: If no column before the list holds labels, and the user names none.
    """
    options = table.options
    is_named = REST in options.named("sequence")
    if table.layout.pattern or (not is_ragged(table) and not is_named):
        return
    blocks = list(source_for(files, table.dialect, table.layout).blocks(Selection((), rest=True)))
    blocks = [block.at(np.delete(np.arange(len(block)), [*block.problems])) for block in blocks]
    rows = [fields for block in blocks for fields in as_list(block.columns[REST])]
    start = list_start(rows, first if table.header else None) if rows else None
    names: list[Name] = list(first) if table.header else list(range(len(first)))
    given = [names.index(x) for x in options.named("label") if x in names[:-1]]
    if start is None and not (given and is_named):
        return
    if given or start is None:
        start = max(start or 0, 1 + max(given))
    else:
        start = _with_label(table, rows, start)
    ragged = Table(table.path, table.layout, table.dialect)
    builder = TableBuilder(ragged)
    for block in blocks:
        own, columns = as_list(block.columns[REST]), dict[Name, Cells]()
        for place in range(start):
            columns[names[place]] = ["".join(fields[place : place + 1]) for fields in own]
        columns[REST] = [_numbers_or_texts(fields[start:]) for fields in own]
        builder.add(replace(block, columns=columns))
    builder.finalize()
    table.columns, table.lines, table.problems = ragged.columns, ragged.lines, []
    labels = [column for column in ragged.columns[:start] if column.can_be_label]
    last = ragged.columns[start - 1]
    if len(labels) == 1 and last not in labels and not given:  # else it would be in the list
        table.layout = replace(table.layout, group=last.name)


def _with_label(table: Table, rows: Sequence[Sequence[str]], start: int) -> int:
    """Return the number of columns before a list, one of which holds the labels.

    Raises:
        DataError: If none does, with a command for labels at the end.
    """
    if any(labels_at(rows, place) for place in range(start)) and not has_label_last(rows):
        return start
    mark = mark_name(delimiter_of(table))
    moving = ["if the last field of a row is its label, move it to the front:"]
    moving += converting("moved", table.layout, table.path, mark=mark)
    found = f"{table.name}: rows have different lengths, as lists have"
    if has_label_last(rows):
        raise DataError(f"{found}; only the last fields repeat as labels do", *moving)
    own, items = labels_at(rows, start), {cell for row in rows for cell in row[start + 1 :]}
    if not own or len(own) >= len(items):
        raise DataError(
            f"{found}; no field has values of its own that repeat as labels do",
            f"if field {start} is the label:",
            init_line(table.path, "--label", str(start), "--sequence", REST),
            *moving,
        )
    return start + 1


def _numbers_or_texts(fields: Sequence[str]) -> Any:
    """Return fields as numbers if they are numbers, whole ones as integers."""
    try:
        numbers = [float(field) for field in fields]
    except ValueError:
        return list(fields)
    if all(x.is_integer() for x in numbers):
        return [int(x) for x in numbers]
    return numbers


def _sample_of_files(source: FileSource, table: Table) -> FileSource:
    """Return a source of whole files, spread over very many, and count the labels of the others.

    Nothing changes if the label of a file isn't in its name or its folder.
    """
    labels = [part.fixed.get(LABEL) for part in source.parts]
    if None in labels:
        return source
    step = -(-len(labels) // MOST_FILES)
    table.unread = Counter(map(str, labels)) - Counter(map(str, labels[::step]))
    return replace(source, parts=source.parts[::step])


def _leave_out(table: Table, undecodable: Sequence[str]) -> bool:
    """Leave out a few files of a folder with a file per sequence that aren't UTF-8.

    Args:
        table: The table.
        undecodable: Places and reasons of rows that can't be decoded.

    Returns:
        False if the files must be read in another way.
    """
    if not table.has_whole_files or len(undecodable) >= table.rows:
        return False
    if len(undecodable) > 1:
        more = f" and {len(undecodable) - 1:,} more"
    else:
        more = ""
    place = undecodable[0].partition(":")[0]
    table.warnings.append(f"{place}{more}: not UTF-8, as other files of the folder are; left out")
    table.leaves_out = True
    return True
