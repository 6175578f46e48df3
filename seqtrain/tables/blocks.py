"""Tables as streams of blocks: columns of cells, the line of each row, and unreadable rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from seqtrain.errors import DataError
from seqtrain.tables.conversions.forms import AdvisedConversion
from seqtrain.tables.formats import FILE as FILE
from seqtrain.tables.formats import FOLDER as FOLDER
from seqtrain.text import listed, nearest, quote

ROWS = 256
"""Largest number of rows of a block. With 4,096 rows, lists no longer fit the processor's cache."""
MOST_MISSING = 2
"""Largest number of missing columns of which each has a message."""
MOST_NAMES = 20
"""Largest number of names that a message lists."""


TEXT, LABEL = "text", "label"
"""Names of the columns of formats whose columns have no names."""
REST = "rest"
"""Name of the column of the fields that a selection doesn't name, in csv and tsv."""
SPLIT_NAMES = {
    "validation": {"valid", "validation", "val", "dev", "eval"},
    "test": {"test", "testing"},
    "train": {"train", "training"},
}
"""Maps each split to the words that name it, in files and in cells. The first match decides."""
SPLIT_VALUES = frozenset().union(*SPLIT_NAMES.values())
INPUT_WORDS = {"x", "features", "inputs", "input", "signals", "data", "sensors", "series"}
INPUT_WORDS |= {"text", "texts", "sentences"}
"""Words in the name of a file or an array that holds sequences without their labels."""
TARGET_WORDS = {"y", "label", "labels", "target", "targets", "classes", "gold"}
"""Words in the name of a file or an array that holds labels."""

Name: TypeAlias = str | int
"""Name of a column, or its index from 0."""
Array: TypeAlias = npt.NDArray[Any]
Mask: TypeAlias = npt.NDArray[np.bool_]
Codes: TypeAlias = npt.NDArray[np.int32]
Ints: TypeAlias = npt.NDArray[np.int64]
Float64s: TypeAlias = npt.NDArray[np.float64]
Float32s: TypeAlias = npt.NDArray[np.float32]
"""Types of arrays, by the type of their values."""
T = TypeVar("T")


@dataclass(frozen=True)
class Coded:
    """A column as codes into its distinct values.

    Attributes:
        codes: Index of each row's value, (N,) int32. It is -1 for a missing cell.
        values: The distinct values, as written.
    """

    codes: Codes
    values: list[Any]

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.cells())

    def __getitem__(self, rows: slice | Array) -> Coded:
        """Return the column of some rows, by their indices or by a mask."""
        return Coded(self.codes[rows], self.values)

    def value(self, row: int) -> Any:
        """Return the value of a row, or None if the cell is missing."""
        code = self.codes[row]
        if code >= 0:
            return self.values[code]
        return None

    def cells(self) -> list[Any]:
        """Return the value of each row. A missing cell is None."""
        values = [*self.values, None]
        return [values[code] for code in self.codes.tolist()]


Cells: TypeAlias = list[Any] | tuple[Any, ...] | Array | Coded
"""The cells of a column: as written, as an array with a type, or as codes."""
CellsByName: TypeAlias = dict[Name, Cells]
"""Maps columns to their cells."""
Reasons: TypeAlias = dict[int, str]
"""Maps the index of each row that can't be used to the reason."""


def cells_at(cells: Any, rows: Ints | slice) -> Any:
    """Return the cells of some rows, by their indices or as a slice."""
    if isinstance(cells, list | tuple):
        if isinstance(rows, slice):
            return cells[rows]
        return [cells[row] for row in rows.tolist()]
    return cells[rows]


def problems_at(problems: Reasons, rows: Ints) -> Reasons:
    """Return the problems of some rows, by the index that each row has among these."""
    if not problems:
        return {}
    return {new: problems[row] for new, row in enumerate(rows.tolist()) if row in problems}


def with_codes(cells: Cells) -> Cells:
    """Return an array of numbers as codes into its distinct ones, and other cells as they are."""
    if isinstance(cells, np.ndarray) and cells.ndim == 1 and cells.dtype.kind in "iufb":
        values, codes = np.unique(cells, return_inverse=True)
        return Coded(codes.astype(np.int32), values.tolist())
    return cells


def as_list(cells: Cells) -> list[Any]:
    """Return cells as a list of Python values. A missing cell of a coded column is None."""
    return cells.tolist() if isinstance(cells, np.ndarray) else list(cells)


@dataclass(frozen=True)
class Block:
    """Consecutive rows of a table.

    Attributes:
        columns: The cells of each column that was asked for. An optional column that the table
            lacks is left out.
        lines: Line on which each row begins, from 1, (N,). For binary formats, the row's number.
        problems: Maps the index of each row that can't be read to the reason. The cells of such a
            row hold what could be read of it, and are "" or None otherwise.
        file: Path of the file, as messages show it, or None for a table in memory.
        spilled: Lines of the rows with cells in columns without names at the end of the header.
    """

    columns: CellsByName
    lines: Ints
    problems: Reasons = field(default_factory=dict)
    file: str | None = None
    spilled: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.lines)

    def at(self, rows: Ints | slice) -> Block:
        """Return some rows of the block, by their indices or as a slice."""
        columns = {name: cells_at(cells, rows) for name, cells in self.columns.items()}
        problems = problems_at(self.problems, np.arange(len(self))[rows])
        return replace(self, columns=columns, lines=self.lines[rows], problems=problems)


@dataclass(frozen=True)
class Selection:
    """The columns to read from a table.

    Attributes:
        required: Columns that the table must have, or None to read every column.
        optional: Further columns to read if the table has them.
        rest: True to also read the fields of a row of csv or tsv after the selected ones, as a list
            in the column `REST`. Rows may then have different numbers of fields.
        keys: Maps columns to the keys of the config that name them, for messages.
        advice: Last line of the message about missing columns, or "".
        may_lack: Index of a column, and the number of columns with it, or None. A file without
            names that has one column fewer lacks this column, and the others keep their indices.
    """

    required: tuple[Name, ...] | None = None
    optional: tuple[Name, ...] = ()
    rest: bool = False
    keys: Mapping[Name, str] = field(default_factory=dict, compare=False)
    advice: str = field(default="", compare=False)
    may_lack: tuple[int, int] | None = None

    def indices(self, width: int) -> list[int]:
        """Return the index of each column of a file without names that has `width` columns."""
        if self.may_lack is None or width != self.may_lack[1] - 1:
            return list(range(width))
        return [index for index in range(width + 1) if index != self.may_lack[0]]

    def among(self, present: Iterable[Name]) -> list[Name]:
        """Return the selected columns of a table that has the columns `present`.

        Raises:
            UnreadableError: If a required column is missing. It names all of them.
        """
        present = dict.fromkeys(present)
        if self.required is None:
            return list(present)
        absent = [name for name in self.required if name not in present]
        if absent:
            lines = missing_columns(absent, present, self.keys)
            raise UnreadableError(None, *lines, *filter(None, [self.advice]))
        optional = [name for name in self.optional if name in present]
        return list(dict.fromkeys((*self.required, *optional)))


@dataclass(frozen=True)
class Dialect:
    """Form of a file: its format, and the options of its reader.

    Attributes:
        format: Name of the format, a key of `seqtrain.tables.formats.FORMATS`.
        encoding: Encoding of lines that aren't UTF-8, or "utf-16" for a whole file.
        delimiter: Character between the fields of csv and tsv, or None to detect it.
        quotes: True if a field may be in quotes, False if quotes are plain characters. None for the
            custom of the format: in csv True, in tsv True if its first lines show it.
        header: True if the first row of csv, tsv or a sheet names the columns.
        blank_lines: True if a blank line of txt, fasttext or lines is an empty text, as in an input
            to predict. False to skip it.
        sheet: Name of the sheet of a workbook, or None for the first one.
    """

    format: str
    encoding: str = "utf-8"
    delimiter: str | None = None
    quotes: bool | None = None
    header: bool = True
    blank_lines: bool = False
    sheet: str | None = None


class BadCellError(ValueError):
    """Error: a cell can't be read. The text of the exception is the reason."""


class UnreadableError(Exception):
    """Error: the rest of a table can't be read.

    Args:
        line: Line of the problem, or None if it is the file as a whole.
        problems: The reasons, at least one.
        conversion: How to convert the file to one that can be read, or None.
    """

    def __init__(
        self, line: int | None, *problems: str, conversion: AdvisedConversion | None = None
    ) -> None:
        super().__init__(*problems)
        self.line, self.problems, self.conversion = line, problems, conversion


EVERYTHING = Selection()
"""Selection of every column."""


class Source:
    """An input of rows: a file, several files, or a table in memory.

    Attributes:
        name: Name for messages.
        path: Path of the input, or "" for a table in memory.
        has_files: True if the source consists of several files, so that `Block.file` matters.
    """

    name: str
    path: str = ""
    has_files: bool = False

    def blocks(self, selection: Selection = EVERYTHING, rows: int | None = None) -> Iterator[Block]:
        """Yield the rows of the selected columns, at most `rows` at a time.

        Raises:
            DataError: If the rest of the input can't be read.
        """
        raise NotImplementedError

    def digest(self, selection: Selection = EVERYTHING) -> str:
        """Return a SHA-256 of the content; of a table in memory, that of the selected columns."""
        raise NotImplementedError

    def files(self) -> list[str]:
        """Return the paths of the files that are read."""
        return []

    def notices(self) -> list[str]:
        """Return lines about the rows that were read, such as cells below blank names."""
        return []


def located(name: str, error: UnreadableError) -> DataError:
    """Return the error for the user, with the place in every line."""
    place = name if error.line is None else f"{name}:{error.line}"
    problems = [f"{place}: {problem}" for problem in error.problems]
    if error.conversion is not None and os.path.exists(name):  # neither a pipe nor a table
        problems += error.conversion.lines(name)
    return DataError(*problems)


def batched(rows: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of at most `size` rows.

    If reading fails, the rows before the failure are yielded first: a prediction that was read is
    also written.
    """
    part = []
    try:
        for row in rows:
            part.append(row)
            if len(part) == size:
                yield part
                part = []
    except UnreadableError:
        if part:
            yield part
        raise
    if part:
        yield part


def missing_columns(
    absent: Sequence[Name], present: Iterable[Name], keys: Mapping[Name, str]
) -> list[str]:
    """Return the messages that columns are missing: one each, or if many are, the first and a list.

    Args:
        absent: The columns that are missing.
        present: The columns that there are.
        keys: Maps columns to the keys of the config that name them.
    """
    present = list(present)
    if len(absent) <= MOST_MISSING:
        return [missing_name("column", x, present, keys) for x in absent]
    others = listed([quote(str(x)) for x in absent[1:]], MOST_NAMES)
    first = missing_name("column", absent[0], present, keys)
    return [first, f"further missing columns: {others}"]


def missing_name(
    what: str, name: Name, present: Iterable[Name], keys: Mapping[Name, str] | None = None
) -> str:
    """Return the message that a column or field is missing, with the nearest name there is.

    The nearest name is one that the config doesn't use: W9 isn't a misspelt W10.

    Args:
        what: "column" or "field".
        name: The name that is missing, or an index.
        present: The names that there are.
        keys: Maps names to the keys of the config that name them, or None.
    """
    present = list(present)
    key = keys.get(name) if keys else None
    names = [each for each in present if isinstance(each, str)]
    near = None
    if isinstance(name, int):
        count = max(len(names), len(present) - len(names))
        message = f"no {what} {name}; the row has {count}, counted from 0"
    else:
        found = listed([quote(each) for each in names], MOST_NAMES) or "none"
        message = f"no {what} {quote(name)}; found {found}"
        near = nearest(name, [each for each in names if not keys or each not in keys])
    if key is not None:
        message += f"; {key} names it"
    if near:
        message += f"; did you mean {quote(near)}?"
    if near and key is not None:
        message += f" Rename the {what}, or change {key}"
    return message
