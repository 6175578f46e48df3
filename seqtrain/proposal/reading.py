"""Reading of data files by `seqtrain init`: format, encoding, header, and all columns."""

import os
import re
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seqtrain.errors import DataError
from seqtrain.files.reading import path_problem
from seqtrain.proposal.header import has_header
from seqtrain.proposal.options import COLUMN_OPTIONS, FileLayout, InitOptions
from seqtrain.proposal.profile import LONGEST_LABEL, ColumnProfile
from seqtrain.proposal.ragged import (
    RAGGED,
    has_label_last,
    labels_at,
    list_start,
    names_ragged_rows,
)
from seqtrain.proposal.shell import rewriting
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
    Coded,
    Codes,
    Dialect,
    Name,
    Selection,
    as_list,
    cells_at,
)
from seqtrain.tables.cells import BadCellError, is_number, text_of
from seqtrain.tables.delimited import DELIMITERS, find_delimiter, index_of_names
from seqtrain.tables.formats import (
    ENDINGS,
    FORMATS,
    IN_MEMORY,
    MEMORY,
    advice,
    check_encoding,
    columns_of_format,
    resolve_format,
)
from seqtrain.tables.join import joined_source
from seqtrain.tables.json_lines import BY_COLUMNS
from seqtrain.tables.opening import guess_encoding, open_input, utf_16
from seqtrain.tables.sources import FileSource, holds_whole_files, matching_files, open_source
from seqtrain.tables.xlsx import FIRST_ROWS, sheet_names
from seqtrain.text import display_name, listed, one_of, quote

MOST_FILES = 4096
"""Largest number of files that are read, if the name or the folder of a file is its label."""
FEWEST_LINES_OF_LABEL = 4
"""Fewest lines per first word, on average, if the first words of lines may be labels."""
FIRST_FILES = 100
"""Number of first files of a folder that tell the encoding."""
FEWEST_BLOCKS = 3
"""Fewest blank lines that divide a file into blocks."""
FIRST_LINES = 4096
"""Number of first lines that tell the form of a text file without columns."""
HEAD_ROWS, HEAD_CELLS = 16, 100_000
"""Rows of csv and tsv that are read at once to find a header, and about how many cells suffice."""
NOT_UTF_8, BINARY = "is not UTF-8", "is NUL"
"""Parts of the reason of a row that can't be decoded."""
PROFILED_ROWS = 1024
"""Number of rows of a block."""
MOST_LISTS = 4
"""Largest number of lists for which a message has a command."""
MANY_COLUMNS = 8
"""Number of columns of a single row from which on a JSON object may hold a table by columns."""
NUMBERS_BETWEEN_BLANKS = re.compile(r" *[-+0-9.eE]+(?: +[-+0-9.eE]+)+ *")
"""Line of a text file with a table whose columns are separated by blanks."""
KEPT, KEPT_EVERY, PIECE = 200_000, 16, 200
"""Of more long texts than the first number, one in so many is kept whole. The others are cut."""
NAME_OF_CLASS = re.compile(r"[-+\w]+[:)]?")
"""First word of a line that may be its label."""
FIRST_SECONDS = 1.0
"""Seconds between reports about a step."""
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


@dataclass
class Table:
    """All columns of data files, and how the files are written.

    Attributes:
        path: The first file, or the folder.
        unread: Number of sequences of each label in files that weren't read, as there are many.
        layout: Place of the labels, and options of the user.
        dialect: Form of the files.
        columns: The columns.
        lines: Line of each row that can be read, (rows,).
        problems: Place and reason of rows that can't be read, a text each.
        bad_cells: Maps each column to its cells in these rows.
        header: True if the first row of csv or tsv names the columns, None for other formats.
        warnings: Doubts about how the files are read.
        notices: Lines about the rows that were read.
        leaves_out: True if files that aren't UTF-8 are left out.
        sheets: Names of the sheets of a workbook, if the user named none.
        step_columns: Names of the columns of arrays whose rows are time steps, a sequence per file.
    """

    path: str
    layout: FileLayout
    dialect: Dialect
    columns: list[ColumnProfile] = field(default_factory=list)
    lines: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    problems: list[str] = field(default_factory=list)
    bad_cells: dict[Name, list[Any]] = field(default_factory=dict)
    header: bool | None = None
    warnings: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    leaves_out: bool = False
    sheets: list[str] = field(default_factory=list)
    step_columns: list[str] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)

    @property
    def name(self) -> str:
        """Name of the file or folder for messages."""
        return display_name(self.path)

    @property
    def rows(self) -> int:
        """Number of rows that can be read."""
        return len(self.lines)

    @property
    def has_columns(self) -> bool:
        """True if the columns have names or indices that a config can name."""
        return columns_of_format(self.dialect.format) != "none" or bool(self.step_columns)

    def column(self, name: Name | None) -> ColumnProfile | None:
        """Return the column with a name, or None."""
        return next((column for column in self.columns if column.name == name), None)


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
    format = data_format(path, options.get("format", "auto"))
    check_encoding(options.get("encoding"))
    encoding = options.get("encoding") or ("utf-16" if _is_utf_16(path, format) else "utf-8")
    delimiter = DELIMITERS.get(options.get("delimiter", "auto"))
    quotes, sheet = QUOTES.get(options.get("quoting", "auto")), options.get("sheet")
    dialect = Dialect(format, encoding, delimiter, quotes=quotes, sheet=sheet)
    table = Table(path, layout, dialect)
    if is_train and format in ("txt", "csv", "tsv") and os.path.isfile(path):
        _refuse_blocks(path, dialect, options)
    if format == "txt" and os.path.isfile(path):
        table.dialect = replace(table.dialect, format=_format_of_lines(table))
    first = list[str]()
    if table.dialect.format in ("csv", "tsv"):
        first = _find_header(table, is_train=is_train and not layout.joins)
    if format == "npz" and options.named("id") == [FILE]:
        table.step_columns = step_columns(open_source(path, dialect).files()[0])
    _read(table, files, progress, is_train=is_train)
    undecodable = _undecodable(table)
    are_guessed = any(NOT_UTF_8 in problem for problem in undecodable)
    if undecodable and not _leave_out(table, undecodable) and are_guessed:
        _guess_encoding(table)
        _read(table, files, progress, is_train=is_train)
    if format == "xlsx" and sheet is None:
        table.sheets = sheet_names(path)
    missing = options.get("na_values") or {}
    for at, column in enumerate(table.columns):
        own = list(missing.get(str(column.name), ()))
        if EVERY in missing and column.is_measured:  # the column of the label isn't known yet
            own += missing.get(EVERY, ())
        if own:
            table.columns[at] = column.without(own)
    if is_train and table.header is None:
        _check_shape(table, [])
    if first and not layout.joins and (is_train or REST in options.named("sequence")):
        _read_ragged(table, files, first)
    return table


def source_for(files: Sequence[str], dialect: Dialect, layout: FileLayout) -> Any:
    """Return the source of files, of a folder, or of a table in memory."""
    if files[0].startswith(MEMORY):
        return table_named(files[0]).table
    paths = files[0] if len(files) == 1 else files
    return joined_source(open_source(paths, dialect, pattern=layout.pattern), layout.joins)


def _is_utf_16(path: str, format: str) -> bool:
    """Return True if a file begins as UTF-16 does. A damaged file is refused when it is read."""
    if format == IN_MEMORY or FORMATS[format].binary:
        return False
    for file in open_source(path, Dialect(format)).files()[:FIRST_FILES]:
        with open_input(file) as stream, suppress(OSError):
            if utf_16(stream.read(4)) is not None:
                return True
    return False


def _format_of_lines(table: Table) -> str:
    """Return the format of a .txt file by its lines: fastText, tsv, csv, or txt."""
    lines = first_lines(table.path, table.dialect)
    if lines and lines[0].startswith("__label__"):
        return "fasttext"
    fields = [line.split("\t") for line in lines]
    if lines and all(len(line) == 2 for line in fields):
        first, last = (set(column) for column in zip(*fields, strict=True))
        if len(last) < len(first) or _has_names(table):
            return "tsv"
        return "txt"
    if any("\t" in line for line in lines):
        if table.layout.options.get("header"):
            return "tsv"
        return "txt"
    for mark in ";,|":
        counts = {line.count(mark) for line in lines}
        is_table = len(counts) == 1 and counts != {0} and len(lines) > 1
        for side in (0, 2):  # the label is first or last
            if is_table and len({_ends(line, mark)[side] for line in lines}) <= len(lines) / 2:
                return "csv"
    return "txt"


def _first_blocks(path: str, dialect: Dialect, rows: int = PROFILED_ROWS) -> Iterator[Block]:
    """Yield the first rows of a file in blocks of `rows`, about `FIRST_LINES` in all."""
    count = 0
    for block in open_source(path, dialect).blocks(Selection(), rows):
        yield block
        count += len(block)
        if count >= FIRST_LINES:
            return


def _has_names(table: Table) -> bool:
    """Return True if the first line of label<TAB>text names the columns, as in tsv.

    A label that comes again is none of the names.
    """
    tsv = Table(table.path, table.layout, replace(table.dialect, format="tsv"))
    options, (head, first) = table.layout.options, _head_of(tsv)
    comes_again = head.rows > 0 and first[0].strip() in head.columns[0].values
    if "header" in options.given or not head.rows or comes_again:
        return bool(options.get("header"))
    with suppress(DataError):  # it isn't clear
        return has_header(table.name, first, head.columns, options)
    return False


def first_lines(path: str, dialect: Dialect) -> list[str]:
    """Return the first lines of a text file without line ends, about `FIRST_LINES`."""
    blocks = _first_blocks(path, replace(dialect, format="lines"))
    return [line for block in blocks for line in as_list(block.columns[TEXT])]


def _refuse_blocks(path: str, dialect: Dialect, options: InitOptions) -> None:
    """Raise a DataError if blank lines divide lines of a few words each, as in CoNLL files.

    A user who names a column wants rows as they are.
    """
    lines = first_lines(path, replace(dialect, blank_lines=True))
    lines = "\n".join(line for line in lines if not line.startswith("#")).strip().split("\n")
    rows = [line.split() for line in lines if line.strip()]
    blanks, has_commas = len(lines) - len(rows), 2 * sum("," in line for line in lines) > len(rows)
    are_blocks = FEWEST_BLOCKS <= blanks < len(rows) / 2 and len(set(map(len, rows))) == 1
    if not are_blocks or has_commas or len(rows[0]) < 2 or all(map(is_number, rows[0])):
        return
    if any(options.named(option) for option in COLUMN_OPTIONS):
        return
    name, code = display_name(path), "/^#/ {next} NF {$1 = $1; print n + 1, $0; next} {n++}"
    command, target = rewriting(["awk", "-v", r"OFS=\t", code], path, "blocks", ".tsv")
    raise DataError(
        f"{name}: blank lines divide its lines into blocks, as in CoNLL files, which have a tag "
        "per token; seqtrain learns a label per sequence",
        f"{name}: if the lines of a block have one label, number the blocks by these commands:",
        f"  {command}",
        f"  seqtrain init {target} --id 0",
    )


def _ends(line: str, mark: str) -> tuple[str, str, str]:
    """Return the first field of a line, the others but the last one, and the last field."""
    first, _, rest = line.partition(mark)
    middle, _, last = rest.rpartition(mark)
    return first, middle, last


def _undecodable(table: Table) -> list[str]:
    """Return the places and reasons of rows that can't be decoded, if no encoding is given."""
    if "encoding" in table.layout.options.given:
        return []
    return [x for x in table.problems if NOT_UTF_8 in x or BINARY in x]


def _find_header(table: Table, *, is_train: bool) -> list[str]:
    """Decide if the first row of csv or tsv names the columns, and return its cells.

    Raises:
        DataError: If it isn't clear. Of train, also if there are no rows, or only one column.
    """
    head, first = _head_of(table)
    if any(NOT_UTF_8 in problem for problem in _undecodable(head)):
        _guess_encoding(table)
        head, first = _head_of(table)
    if is_train and _is_ragged(head):
        is_list, table.header = _is_list(table)
        table.dialect = replace(table.dialect, header=bool(table.header))
        if is_list:
            return first
    if is_train:
        _check_shape(head, first)
    filled = [cell for cell in first if cell.strip()]
    has_title = len(filled) == 1 and len(first) > 2
    if is_train and has_title and table.layout.options.get("header") is not False:
        _refuse_title(table, first)
    if first:
        table.header = has_header(table.name, first, head.columns, table.layout.options)
        table.dialect = replace(table.dialect, header=table.header)
    return first


def _is_list(table: Table) -> tuple[bool, bool]:
    """Return if the first rows of csv or tsv are ragged lists, and if a header is above them."""
    file = open_source(table.path, Dialect(table.dialect.format)).files()[0]
    blocks = open_source(file, replace(table.dialect, header=False)).blocks(
        Selection((), rest=True), FIRST_LINES
    )
    rows = as_list(next(blocks).columns[REST])
    header = bool(table.layout.options.get("header", names_ragged_rows(rows[0], rows[1:])))
    own = rows[1:] if header else rows
    return bool(own) and list_start(own, rows[0] if header else None) is not None, header


def _refuse_title(table: Table, first: Sequence[str]) -> None:
    """Raise a DataError with the command that removes a title above a table of csv or tsv.

    Args:
        table: The table.
        first: Cells of its first row, of which one has a text.
    """
    dialect = replace(table.dialect, header=False)
    file = open_source(table.path, dialect).files()[0]
    block = next(_first_blocks(file, dialect, FIRST_ROWS))
    rows = list(zip(*map(as_list, block.columns.values()), strict=True))
    line = int(block.lines[index_of_names(rows)])
    if line == 1:
        return
    path = matching_files(table.path)[0]
    command, _ = rewriting(["tail", "-n", f"+{line}"], path, "table")
    title = quote("".join(first).strip(), 40)
    found = f"one cell of {len(first)} has a text, {title}, as a title has"
    raise DataError(
        f"{table.name}:1: {found}; the names of the columns seem to be on line {line}; to remove "
        "what is above:",
        f"  {command}",
    )


def _head_of(table: Table) -> tuple[Table, list[str]]:
    """Return the first rows of csv or tsv without the first one, and the cells of the first one."""
    head = Table(table.path, table.layout, replace(table.dialect, header=False))
    builder, first = _TableBuilder(head), list[str]()
    file = open_source(table.path, head.dialect).files()[0]
    for block in _first_blocks(file, head.dialect, HEAD_ROWS):
        if not first:
            row, block = block.at(slice(1)), block.at(slice(1, None))
            first = [str(as_list(cells)[0]) for cells in row.columns.values()]
            if row.problems:
                builder.add(row)
        builder.add(block)
        if builder.rows * len(first) >= HEAD_CELLS:
            break
    builder.finalize()
    return head, first


def _read(table: Table, files: Sequence[str], progress: ReadingProgress, *, is_train: bool) -> None:
    """Read the rows of files into the columns of a table."""
    layout, dialect = table.layout, table.dialect
    size = 0
    if dialect.format in TEXT_FORMATS and all(map(os.path.isfile, files)):
        size = sum(map(os.path.getsize, files))
    progress.step(f"reading {table.name}", size)
    columns = columns_of_format(dialect.format)
    selection = Selection()
    if FILE in layout.options.named("id"):
        selection = Selection(optional=(FILE, FOLDER))
    if table.step_columns:
        own = [*re.compile(layout.pattern or "").groupindex, *layout.options.named("label")]
        own += layout.facts
        selection = replace(selection, required=(*table.step_columns, *dict.fromkeys(own)))
    elif is_train and columns == "none" and not layout.joins:
        selection = replace(selection, required=(TEXT, LABEL))
    builder = _TableBuilder(table, is_nested=columns != "delimited")
    source = source_for(files, dialect, layout)
    if isinstance(source, FileSource) and len(source.parts) > MOST_FILES:
        source = _sample_of_files(source, table)
    for block in progress.blocks(source.blocks(selection, PROFILED_ROWS)):
        builder.add(block)
    builder.finalize()
    table.notices = source.notices()


class _TableBuilder:
    """The columns of a table, which grow block by block. Bad rows are left out, and noted.

    Args:
        table: The table.
        is_nested: True if cells may be objects, whose fields are columns.
    """

    def __init__(self, table: Table, *, is_nested: bool = False) -> None:
        self.table, self.is_nested, self.rows = table, is_nested, 0
        self._columns = dict[Name, _GrowingColumn]()
        self._lines = list[npt.NDArray[np.int64]]()
        table.problems, table.bad_cells = [], {}

    def add(self, block: Block) -> None:
        """Append the rows of a block."""
        if block.problems:
            place = block.file or self.table.name
            for row, reason in block.problems.items():
                self.table.problems.append(f"{place}:{block.lines[row]}: {reason}")
            bad = np.array(list(block.problems))
            for name, cells in block.columns.items():
                self.table.bad_cells.setdefault(name, []).extend(as_list(cells_at(cells, bad)))
            block = block.at(np.delete(np.arange(len(block)), [*block.problems]))
        columns = _flattened(block.columns) if self.is_nested else block.columns.items()
        for name, cells in columns:
            column = self._columns.setdefault(name, _GrowingColumn())
            column.fill(self.rows)
            column.add(cells)
        self._lines.append(block.lines)
        self.rows += len(block)

    def finalize(self) -> None:
        """Set the columns of the table, without those of paths that have one value."""
        columns = []
        for name, column in self._columns.items():
            column.fill(self.rows)
            if name not in (FILE, FOLDER) or len(column.distinct) > 1:
                columns.append(ColumnProfile(name, column.distinct, column.codes()).by_value())
        self.table.columns = columns
        self.table.lines = np.concatenate([np.zeros(0, np.int64), *self._lines])


class _GrowingColumn(dict[Any, int]):
    """Codes of the cells of a column, which grows block by block.

    As a dict, it maps each cell to the code of its value, in the order of first appearance.

    Attributes:
        distinct: The value of each code.
        rows: Number of cells so far.
    """

    def __init__(self) -> None:
        self.distinct, self.rows = list[Any](), 0
        self._parts = list[Codes]()

    def fill(self, rows: int) -> None:
        """Append missing cells until the column has so many rows."""
        if rows > self.rows:
            self._append_codes(np.full(rows - self.rows, self[""], dtype=np.int32))

    def add(self, cells: Cells) -> None:
        """Append cells."""
        if isinstance(cells, np.ndarray) and cells.ndim == 1 and cells.dtype.kind in "iufb":
            values, places = np.unique(cells, return_inverse=True)
            cells = Coded(places.astype(np.int32), values.tolist())
        if isinstance(cells, Coded):
            table = [*map(self.code, cells.values), self[""] if -1 in cells.codes else 0]
            self._append_codes(np.array(table, dtype=np.int32)[cells.codes])
            return
        try:
            if not self:
                self.learn(cells)
            codes = np.fromiter(map(self.__getitem__, cells), np.int32, len(cells))
        except TypeError:  # lists aren't hashable
            codes = np.array([self.code(cell) for cell in cells], dtype=np.int32)
        self._append_codes(codes)

    def codes(self) -> Codes:
        """Return the codes so far."""
        return np.concatenate([np.zeros(0, np.int32), *self._parts])

    def _append_codes(self, codes: Codes) -> None:
        self._parts.append(codes)
        self.rows += len(codes)

    def __missing__(self, cell: Any) -> int:
        if type(cell) is not str:
            value = _value_of(cell)
            if isinstance(value, str):
                return self[value]
            return self._append(value)
        value = cell.strip()
        if len(value) > LONGEST_LABEL:
            return self._code_of_long(value)
        if value != cell:
            code = self[cell] = self[value]
            return code
        code = self[cell] = self._append(cell)
        return code

    def learn(self, cells: Any) -> None:
        """Give codes to the first cells of a column, all at once, if all are plain.

        Plain cells are short texts without blanks. Tables of many columns and few rows need this.
        """
        values = list(dict.fromkeys(cells))
        if set(map(type, values)) != {str}:
            return
        text = "".join(values)
        if text.split() == [text] and max(map(len, values)) <= LONGEST_LABEL:
            self.distinct = values
            self.update(zip(values, range(len(values)), strict=True))

    def code(self, cell: Any) -> int:
        """Return the code of a cell, which may be a list."""
        if isinstance(cell, str):
            return self[cell]
        return self.__missing__(cell)

    def _code_of_long(self, text: str) -> int:
        """Return the code of a long text. Its hash stands for it, for a text needs much memory."""
        key, new = (LONGEST_LABEL, hash(text)), len(self.distinct)
        code = self.get(key)
        if code is None:
            is_cut = new >= KEPT and new % KEPT_EVERY > 0
            code = self[key] = self._append(text[:PIECE] if is_cut else text)
        return code

    def _append(self, value: Any) -> int:
        self.distinct.append(value)
        return len(self.distinct) - 1


def _value_of(cell: Any) -> Any:
    """Return a cell that isn't a text as a value of `Column.values`."""
    if isinstance(cell, list | tuple | np.ndarray):
        if len(cell):
            return cell
        return "[]"
    try:
        return text_of(cell)
    except BadCellError:
        return str(cell)


def _flattened(columns: Mapping[Any, Any]) -> Iterator[tuple[Name, Any]]:
    """Yield each field of JSON objects with its cells. An inner field is named ``outer.inner``.

    A field that only holds objects is left out itself.
    """
    for name, cells in columns.items():
        if not isinstance(cells, list) or dict not in set(map(type, cells)):
            yield name, cells
            continue
        rows = [cell if isinstance(cell, dict) else {} for cell in cells]
        inner = dict.fromkeys(field for each in rows for field in each)
        yield from _flattened({f"{name}.{x}": [row.get(x) for row in rows] for x in inner})
        others = [None if isinstance(cell, dict) else cell for cell in cells]
        if any(cell is not None for cell in others):
            yield name, others


def _check_shape(table: Table, first: Sequence[str]) -> None:
    """Raise a DataError if the table has no rows, or only one column.

    Args:
        table: The table without its first row.
        first: Cells of the first row of csv or tsv, or [].
    """
    name = table.name
    if table.dialect.format == "txt" and table.problems and not table.rows:
        if os.path.isfile(table.path):
            lines = first_lines(table.path, table.dialect)
        else:
            lines = []
        if lines and all(map(NUMBERS_BETWEEN_BLANKS.fullmatch, lines)):
            edit = ["sed", "-E", "-e", "s/^ +//", "-e", "s/ +/,/g"]
            command, _ = rewriting(edit, table.path, "table", ".csv")
            raise DataError(
                f"{name}: numbers between blanks; write commas there, such as by:", f"  {command}"
            )
        refuse_labels_before_blanks(table)
        raise DataError(
            f"{name}: {NO_LABELS}; if commas, semicolons or | separate columns, give --format csv"
        )
    if not table.rows:
        if table.problems:
            raise DataError(*table.problems[:10])
        found = "one row" if any(first) else "no rows"
        raise DataError(f"{name}: {found}; expected one labelled sequence per row")
    is_object = table.dialect.format == "jsonl" and not table.layout.joins
    if not first and table.rows == 1 and (is_object or len(table.columns) > MANY_COLUMNS):
        raise DataError(f"{name}: {BY_COLUMNS}", *_commands_for_lists(table))
    if len(first) == 1 and table.layout.pattern is None:  # else the path has the label
        refuse_labels_before_blanks(table)
        marks = [mark for mark, text in DELIMITERS.items() if text in first[0]] or [*DELIMITERS]
        raise DataError(
            f"{name}: one column, {quote(first[0])}; expected a label and a sequence per row, "
            f"separated by a comma, semicolon, tab or |; or give --delimiter {one_of(marks)}"
        )


def _commands_for_lists(table: Table) -> list[str]:
    """Return lines with a command for each list of objects in the only row of a table."""
    lists = [column.name for column in table.columns if column.kind in ("turns", "events")]
    if not lists:
        return []
    lines = ["or, if each of its lists is a table, write them to files:"]
    for name in lists[:MOST_LISTS]:
        code = "import json, sys; json.dump(json.load(sys.stdin)[sys.argv[1]], sys.stdout)"
        command = shlex.join(["python3", "-c", code, str(name)])
        lines.append(f"  {command} < {shlex.quote(table.path)} > {shlex.quote(f'{name}.json')}")
    return lines


def refuse_labels_before_blanks(table: Table) -> None:
    """Raise a DataError with a command if the first word of each line may be its label."""
    if not os.path.isfile(table.path):
        return
    lines = [line for line in first_lines(table.path, table.dialect) if line.strip()]
    words = Counter(line.split()[0] for line in lines)
    have_texts = all(len(line.split()) > 1 for line in lines)
    if not all(map(NAME_OF_CLASS.fullmatch, words)):  # such as the dates or addresses of a log
        return
    if not have_texts or not 2 <= len(words) <= len(lines) / FEWEST_LINES_OF_LABEL:
        return
    code = r'{label = $1; sub(/^[ \t]*[^ \t]+[ \t]+/, ""); print label "\t" $0}'
    command, target = rewriting(["awk", code], table.path, "labelled", ".txt")
    shown = listed([quote(word) for word, _ in words.most_common()])
    raise DataError(
        f"{table.name}: no tab or comma is between labels and texts; if the first word of a line "
        f"is its label ({shown}):",
        f"  {command}",
        f"  seqtrain init {target}",
    )


NO_LABELS = (
    "no labels: no line has a tab; expected label<TAB>text, csv, jsonl, or a folder for each class"
)
"""Message about a text file without labels."""


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
    options = table.layout.options
    is_named = REST in options.named("sequence")
    if not _is_ragged(table) and not is_named:
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
    builder = _TableBuilder(ragged)
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
    mark = _delimiter_of(table)
    code = f'{{sub(/\\r$/, ""); label = $NF; sub(/[{mark}][^{mark}]*$/, ""); print label FS $0}}'
    command, target = rewriting(["awk", "-F", mark, code], table.path, "labelled")
    moving = ["if the last field of a row is its label, move it to the front:", f"  {command}"]
    moving.append(f"  seqtrain init {target}")
    found = f"{table.name}: rows have different lengths, as lists have"
    if has_label_last(rows):
        raise DataError(f"{found}; only the last fields repeat as labels do", *moving)
    own, items = labels_at(rows, start), {cell for row in rows for cell in row[start + 1 :]}
    if not own or len(own) >= len(items):
        command = f"seqtrain init {shlex.quote(table.path)} --label {start} --sequence {REST}"
        raise DataError(
            f"{found}; no field has values of its own that repeat as labels do",
            f"if field {start} is the label:",
            f"  {command}",
            *moving,
        )
    return start + 1


def _delimiter_of(table: Table) -> str:
    if table.dialect.delimiter is None and table.dialect.format == "csv":
        return find_delimiter(first_lines(table.path, table.dialect))
    return table.dialect.delimiter or "\t"


def _is_ragged(table: Table) -> bool:
    """Return True if many rows of a table have another number of fields than the first one."""
    return len(table.problems) > RAGGED * (table.rows + len(table.problems))


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
    if not holds_whole_files(table.path) or len(undecodable) >= table.rows:
        return False
    if len(undecodable) > 1:
        more = f" and {len(undecodable) - 1:,} more"
    else:
        more = ""
    place = undecodable[0].partition(":")[0]
    table.warnings.append(f"{place}{more}: not UTF-8, as other files of the folder are; left out")
    table.leaves_out = True
    return True


def _guess_encoding(table: Table) -> None:
    """Set the likeliest encoding of files that aren't UTF-8.

    Raises:
        DataError: If there is no likely encoding.
    """
    name, file = table.name, open_source(table.path, Dialect(table.dialect.format)).files()[0]
    encoding = guess_encoding(file)
    if encoding is None:
        raise DataError(f"{name}: not UTF-8; give its --encoding, such as cp1251, gbk or shift_jis")
    table.dialect = replace(table.dialect, encoding=encoding)
    table.warnings.append(
        f"{name} isn't UTF-8; it is read as {encoding}; if letters come out wrong, give "
        "--encoding, such as cp1251 or gbk"
    )


def better_reading(table: Table) -> str:
    """Return advice on a table many of whose rows can't be read: a reading that fits better."""
    total = table.rows + len(table.problems)
    advice = f"{len(table.problems):,} of {total:,} rows can't be read in this form"
    if table.dialect.format not in ("csv", "tsv"):
        return f"{advice}; correct them, or give another --format"
    for delimiter, mark in DELIMITERS.items():
        for quotes in (None, False):
            dialect = replace(table.dialect, format="csv", delimiter=mark, quotes=quotes)
            if _can_be_read(table.path, dialect):
                options = f"--format csv --delimiter {delimiter}"
                options += " --set data.quoting=none" if quotes is False else ""
                return f"{advice}; nearly all can with {options}"
    return f"{advice}; if all after the first fields is one text, quote it, or write it as .tsv"


def _can_be_read(path: str, dialect: Dialect) -> bool:
    """Return True if nearly all of the first rows of a csv file have equally many fields."""
    rows = bad = width = 0
    try:
        for block in _first_blocks(path, dialect):
            rows, bad, width = rows + len(block), bad + len(block.problems), len(block.columns)
    except DataError:
        return False
    return width > 1 and bad <= RAGGED * rows
