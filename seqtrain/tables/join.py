"""Joins: columns of further files, by a key or row by row."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.errors import DataError
from seqtrain.tables.blocks import (
    TEXT,
    Block,
    Dialect,
    Name,
    Selection,
    Source,
    as_list,
    concatenated,
)
from seqtrain.tables.cells import CodedColumn
from seqtrain.tables.formats import resolve_format
from seqtrain.tables.sources import EVERYTHING, open_source
from seqtrain.text import counted, listed, quote

ROW = "row"
"""Value of `on` of a join of files that are aligned row by row."""
SPLIT_WORDS = r"(?<![a-z])(?:train(?:ing)?|test(?:ing)?|valid(?:ation)?|val|dev|eval)(?![a-z])"
SPLIT_WORD = re.compile(SPLIT_WORDS, re.IGNORECASE)
"""Word in a path that names a split."""
NUMBER_LINE = re.compile(rb"\s*[-+]?[0-9.]+\s*\Z")
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Join:
    """A further file whose columns are joined.

    Attributes:
        source: The file.
        left: Column of the joined table that holds the key, or None to join row by row.
        right: Column of the file that holds the key, or None.
        column: New name of the column `text` of a file without names, or None.
    """

    source: Source
    left: Name | None = None
    right: Name | None = None
    column: str | None = None


class JoinedSource:
    """A source whose rows have the columns of further files, too.

    A column that both have is the source's. A row whose key such a file lacks, or has with
    different rows, can't be read if one of the file's columns is required. Columns that are only
    optional aren't joined.

    Args:
        source: The source.
        joins: The further files.
    """

    def __init__(self, source: Source, joins: Sequence[Join]) -> None:
        self.source, self.joins = source, tuple(joins)
        self._notices = list[str]()

    @property
    def name(self) -> str:
        """Name for messages."""
        return self.source.name

    @property
    def has_files(self) -> bool:
        """True if the source consists of several files, so that `Block.file` matters."""
        return self.source.has_files

    @property
    def path(self) -> str:
        """Path of the source, or "" for a table in memory."""
        return str(getattr(self.source, "path", ""))

    def blocks(self, selection: Selection = EVERYTHING, rows: int | None = None) -> Iterator[Block]:
        """Yield the rows of the source with the columns of the further files.

        A further file that can't be read is an error only if the source lacks a required column.

        Args:
            selection: Columns to read.
            rows: Largest number of rows of a block, as for the source.

        Raises:
            DataError: If a file can't be read, a file that is joined row by row has another number
                of rows, or a required column is nowhere.
        """
        tables, unreadable = list[JoinedTable](), list[DataError]()
        for join in self.joins:
            try:
                tables.append(JoinedTable(join, selection))
            except DataError as error:
                unreadable.append(error)
        inner, start = _without(selection, tables), 0
        try:
            for block in self.source.blocks(inner, rows):
                yield _with_columns(block, tables, selection, start)
                start += len(block)
        except DataError:
            if unreadable and not start:
                raise unreadable[0] from None
            raise
        self._notices = [line for table in tables for line in table.notices(start)]

    def files(self) -> list[str]:
        """Return the paths of the files that are read."""
        files = self.source.files()
        for join in self.joins:
            files += join.source.files()
        return files

    def digest(self, selection: Selection = EVERYTHING) -> str:
        """Return a SHA-256 of the content of all files."""
        digests = [self.source.digest(selection)]
        digests += [join.source.digest() for join in self.joins]
        return sha256("".join(digests).encode()).hexdigest()

    def notices(self) -> list[str]:
        """Return lines about keys that have no row, or several, after all rows were read."""
        return [*self.source.notices(), *self._notices]


class JoinedTable:
    """The rows of a further file, in memory.

    Args:
        join: The file.
        selection: Columns to read. Those that the file lacks are left out.

    Attributes:
        columns: Cells of each column but the key, and None after the last row.
        lines: Line of each row.

    Raises:
        DataError: If the file or a row of it can't be read.
    """

    def __init__(self, join: Join, selection: Selection) -> None:
        self.join, self.name = join, join.source.name
        key = join.right
        if selection.required is not None:
            wanted = tuple(name for name in selection.required if name != key)
            if join.column in wanted:
                wanted = (TEXT,)
            selection = Selection(() if key is None else (key,), wanted)
        blocks = list(join.source.blocks(selection))
        for block in blocks:
            for row, reason in block.problems.items():
                raise DataError(f"{self.name}:{block.lines[row]}: {reason}")
        self.lines = np.concatenate([block.lines for block in blocks] or [np.zeros(0, np.int64)])
        self.columns: dict[Name, list[Any]] = {}
        names = blocks[0].columns if blocks else {}
        for name in names:
            if all(name in block.columns for block in blocks):
                cells = concatenated([block.columns[name] for block in blocks])
                self.columns[name] = [*as_list(cells), None]
        if join.column is not None and TEXT in self.columns:
            self.columns = {join.column: self.columns[TEXT]}
        self._used = np.zeros(len(self.lines), bool)
        if key is not None:
            self._index(self.columns.pop(key, [None])[:-1])

    def rows_of(self, block: Block, start: int) -> tuple[Rows, dict[int, str]]:
        """Return the row of this table for each row of a block, -1 for none, and the reasons.

        Args:
            block: The block.
            start: Number of rows before the block.
        """
        if self.join.left is None:
            return self._aligned(block, start), {}
        codes, problems = self._keys.codes_of(block.columns[self.join.left])
        known = np.array([*self._row_of, -1], np.int64)
        rows = known[np.minimum(codes, len(self._row_of))]
        names = self._keys.known.spellings
        for row in np.flatnonzero(rows < 0).tolist():
            key = quote(names[codes[row]])
            problems.setdefault(row, f"no row of {self.name} has {self.join.right} {key}")
        for row in np.flatnonzero(np.isin(codes, list(self._repeated))).tolist():
            lines = listed([str(line) for line in self._repeated[int(codes[row])]])
            found = f"{self.join.right} {quote(names[codes[row]])} has different rows"
            problems.setdefault(row, f"{found} in {self.name}, lines {lines}")
        self._used[rows[rows >= 0]] = True
        return rows, problems

    def notices(self, total: int) -> list[str]:
        """Return lines about keys, after all rows were joined.

        Args:
            total: Number of rows of the source.

        Raises:
            DataError: If the file is joined row by row and has further rows.
        """
        join = self.join
        if not self._used.any():
            return []
        if join.left is None:
            if total < len(self.lines):
                rows = counted(len(self.lines), "row")
                raise DataError(
                    f"{self.name}: found {rows}; expected {total:,}, as it is joined by row"
                )
            return []
        names, known = self._keys.known.spellings, len(self._row_of)
        unused = [names[code] for code in range(known) if not self._used[self._row_of[code]]]
        repeated = [names[code] for code in self._repeated]
        lines = list[str]()
        for keys, found in (
            (unused, f"of {join.right} in no row"),
            (names[known:], f"of {join.left} without a row there"),
            (repeated, f"of {join.right} with different rows"),
        ):
            if keys:
                shown = listed([quote(key) for key in keys])
                lines.append(f"{self.name}: {counted(len(keys), 'key')} {found}: {shown}")
        return lines

    def _index(self, keys: list[Any]) -> None:
        """Find the row of each key. Of repeated keys whose rows are equal, the first row counts."""
        self._keys = CodedColumn()
        codes, problems = self._keys.codes_of(keys)
        for row, reason in problems.items():
            raise DataError(f"{self.name}:{self.lines[row]}: {reason}")
        self._row_of = [-1] * len(self._keys.known.names)
        self._repeated = dict[int, list[int]]()
        columns = list(self.columns.values())
        for row, code in enumerate(codes.tolist()):
            first = self._row_of[code]
            if first < 0:
                self._row_of[code] = row
            elif any(cells[row] != cells[first] for cells in columns):
                lines = self._repeated.setdefault(code, [int(self.lines[first])])
                lines.append(int(self.lines[row]))

    def _aligned(self, block: Block, start: int) -> Rows:
        rows, count = np.arange(start, start + len(block)), len(self.lines)
        if start + len(block) > count:
            place = f"{block.file or 'data'}:{block.lines[max(0, count - start)]}"
            found = f"found {counted(count, 'row')} in {self.name}, which is joined row by row"
            raise DataError(f"{place}: has no row there; {found}")
        self._used[rows] = True
        return rows


def joined_source(source: Source, joins: Sequence[Mapping[str, Any]]) -> Source:
    """Return a source with the files of data.join.

    If a file names its split, as y_train.txt, and the source another one, as X_test.txt, the file
    of this split is joined, y_test.txt, if there is one.

    Args:
        source: The source.
        joins: Value of data.join: mappings with the keys `file` and `on`. `on` is a column, the
            columns ``{left, right}``, or "row".
    """
    found = list[Join]()
    for each in joins:
        path, on = for_split(str(each["file"]), str(getattr(source, "path", ""))), each["on"]
        if on == ROW:
            found.append(_by_row(path))
        elif isinstance(on, str):
            found.append(Join(_open(path), on, on))
        else:
            found.append(Join(_open(path), on["left"], on["right"]))
    return JoinedSource(source, found) if found else source


def for_split(file: str, path: str) -> str:
    """Return the file that belongs to the split of a path, such as y_test.txt for X_test.txt.

    Args:
        file: The file of one split, such as y_train.txt, or of all.
        path: Path of the split.
    """
    words = SPLIT_WORD.findall(path)
    if not words:
        return file
    folder, name = os.path.split(file)
    for other in (
        SPLIT_WORD.sub(words[-1], file),
        os.path.join(folder, SPLIT_WORD.sub(words[-1], name)),
    ):
        if os.path.exists(other):
            return other
    return file


def column_of(path: str) -> str:
    """Return the name of the column of a file without names: y for y_train.txt."""
    stem = Path(path).name.partition(".")[0]
    return re.sub(rf"[_-]?{SPLIT_WORDS}[_-]?", "", stem, flags=re.IGNORECASE) or stem


def _without(selection: Selection, tables: Sequence[JoinedTable]) -> Selection:
    """Return the columns that the source must have: the keys, and what no further file has."""
    if selection.required is None:
        return selection
    own, optional = list[Name](selection.required), list[Name](selection.optional)
    for table in tables:
        joined = [name for name in own if name in table.columns]
        own = [name for name in own if name not in joined]
        optional += joined
        if joined and table.join.left is not None:
            own.append(table.join.left)
    return replace(selection, required=tuple(dict.fromkeys(own)), optional=tuple(optional))


def _with_columns(
    block: Block, tables: Sequence[JoinedTable], selection: Selection, start: int
) -> Block:
    """Return a block with the columns of further files, and with those that are selected alone."""
    columns, problems = dict(block.columns), dict(block.problems)
    for table in tables:
        names = [name for name in table.columns if name not in block.columns]
        if not names or (table.join.left is not None and table.join.left not in block.columns):
            continue
        rows, reasons = table.rows_of(block, start)
        for name in names:
            cells = table.columns[name]
            columns[name] = [cells[row] for row in rows.tolist()]
        for row, reason in reasons.items():
            problems.setdefault(row, reason)
    if selection.required is not None:
        wanted = (*selection.required, *selection.optional)
        columns = {name: columns[name] for name in wanted if name in columns}
    return replace(block, columns=columns, problems=problems)


def _open(path: str) -> Source:
    return open_source(path, Dialect(resolve_format(path, "auto") or "csv"))


def _by_row(path: str) -> Join:
    """Return the join of a file whose rows are aligned with the source's."""
    format = resolve_format(path, "auto") or "csv"
    if format == "txt" or (format in ("csv", "tsv") and _begins_with_number(path)):
        source = open_source(path, Dialect("lines", blank_lines=True))
        return Join(source, column=column_of(path))
    return Join(open_source(path, Dialect(format)))


def _begins_with_number(path: str) -> bool:
    """Return True if the first line of a file is one number, so that it has no header."""
    try:
        with open(path, "rb") as file:
            return NUMBER_LINE.match(file.readline(100)) is not None
    except OSError:
        return False
