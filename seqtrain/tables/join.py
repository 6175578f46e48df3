"""Joins: columns of further files, by a key or row by row."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.errors import DataError
from seqtrain.tables.blocks import (
    TEXT,
    Block,
    Cells,
    Dialect,
    Name,
    Selection,
    Source,
    as_list,
    concatenated,
)
from seqtrain.tables.cells import CodedColumn
from seqtrain.tables.formats import resolve_format
from seqtrain.tables.sources import EVERYTHING, FileSource, open_source
from seqtrain.text import counted, listed, quote

ROW = "row"
"""Value of `on` of a join of files that are aligned row by row."""
SPLIT_WORDS = r"train(?:ing)?|test(?:ing)?|valid(?:ation)?|val|dev|eval"
SPLIT_WORD = re.compile(rf"(?<![a-z])(?:{SPLIT_WORDS})(?![a-z])", re.IGNORECASE)
"""Word in a path that names a split."""
ALL_NUMBERS = re.compile(rb"\s*[-+]?[0-9.]+\s*\Z")


@dataclass(frozen=True)
class Join:
    """A further file whose columns are joined.

    Attributes:
        source: The file.
        left: Column of the joined table that holds the key, or None to join row by row.
        right: Column of the file that holds the key.
        column: New name of the column `text` of a file without names, or None.
    """

    source: Source
    left: Name | None = None
    right: Name | None = None
    column: str | None = None


@dataclass
class _Right:
    """The rows of a joined file.

    Attributes:
        columns: Cells of each column that is needed, and None after the last row.
        lines: Line of each row.
        keys: Codes of the keys, empty if the join is by row.
        row_of: Row of each code of `keys`.
        repeated: Lines of each key whose rows differ.
        used: True for each row that was joined.
    """

    join: Join
    columns: dict[Name, list[Any]]
    lines: npt.NDArray[np.int64]
    keys: CodedColumn = field(default_factory=CodedColumn)
    row_of: list[int] = field(default_factory=list)
    repeated: dict[int, list[int]] = field(default_factory=dict)
    used: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))


class JoinedSource:
    """A source whose rows have the columns of further files, too.

    A row whose key no row of such a file has, or several that differ, can't be read if one of the
    file's columns is required. A column that both have is the source's.

    Args:
        source: The source.
        joins: The further files.
    """

    def __init__(self, source: Source, joins: Sequence[Join]) -> None:
        self.source, self.joins = source, list(joins)
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

        Args:
            selection: Columns to read.
            rows: Largest number of rows of a block, as for the source.

        Raises:
            DataError: If a file can't be read, a file that is joined row by row has another number
                of rows, or a required column is nowhere.
        """
        tables = [_read(join, selection) for join in self.joins]
        keys = [join.left for join in self.joins if join.left is not None]
        joined = {name for table in tables for name in table.columns}
        inner = selection
        if selection.required is not None:
            own = [name for name in selection.required if name not in joined]
            others = [name for name in selection.required if name in joined]
            inner = replace(
                selection,
                required=tuple(dict.fromkeys([*own, *keys])),
                optional=(*selection.optional, *others),
            )
        start = 0
        for block in self.source.blocks(inner, rows):
            yield self._joined(block, tables, selection, start)
            start += len(block)
        self._notices = [line for table in tables for line in _notices(table, start)]

    def files(self) -> list[str]:
        """Return the paths of the files that are read."""
        return [
            *self.source.files(),
            *(file for join in self.joins for file in join.source.files()),
        ]

    def digest(self, selection: Selection = EVERYTHING) -> str:
        """Return a SHA-256 of the content of all files."""
        digests = [self.source.digest(selection), *(join.source.digest() for join in self.joins)]
        return sha256("".join(digests).encode()).hexdigest()

    def notices(self) -> list[str]:
        """Return lines about keys that have no row, or several, after all rows were read."""
        return [*self.source.notices(), *self._notices]

    def _joined(
        self, block: Block, tables: list[_Right], selection: Selection, start: int
    ) -> Block:
        columns, problems = dict(block.columns), dict(block.problems)
        for table in tables:
            names = [name for name in table.columns if name not in block.columns]
            rows, reasons = _rows_of(table, block, start)
            if any(name in (selection.required or names) for name in names):
                for row, reason in reasons.items():
                    problems.setdefault(row, reason)
            for name in names:
                cells = table.columns[name]
                columns[name] = [cells[row] for row in rows.tolist()]
        if selection.required is not None:
            wanted = {*selection.required, *selection.optional}
            columns = {name: cells for name, cells in columns.items() if name in wanted}
        return replace(block, columns=columns, problems=problems)


def joined_source(
    source: Source, joins: Sequence[Mapping[str, Any]], trained: str | None = None
) -> Source:
    """Return a source with the files of data.join.

    Args:
        source: The source.
        joins: Value of data.join: mappings with the keys `file` and `on`. `on` is a column, the
            columns ``{left, right}``, or "row".
        trained: Path of train, or None. If it names its split, as in X_train.txt, and the source
            another one, as in X_test.txt, the files of this split are joined: y_test.txt in place
            of y_train.txt.
    """
    found = list[Join]()
    for each in joins:
        path = for_split(str(each["file"]), trained, str(getattr(source, "path", "")))
        on = each["on"]
        if on == ROW:
            found.append(_by_row(path))
        elif isinstance(on, str):
            found.append(Join(_open(path), on, on))
        else:
            found.append(Join(_open(path), on["left"], on["right"]))
    return JoinedSource(source, found) if found else source


def for_split(file: str, trained: str | None, path: str) -> str:
    """Return the file of a split, such as y_test.txt for X_test.txt and y_train.txt.

    Args:
        file: The file of train.
        trained: Path of train, or None.
        path: Path of the split.
    """
    if trained is None or path == trained:
        return file
    old, new = SPLIT_WORD.findall(trained), SPLIT_WORD.findall(path)
    if not old or not new:
        return file
    other = SPLIT_WORD.sub(lambda found: new[-1] if found[0] == old[-1] else found[0], file)
    return other if os.path.exists(other) else file


def column_of(path: str) -> str:
    """Return the name of the column of a file without names: y for y_train.txt."""
    stem = Path(path).name.partition(".")[0]
    return re.sub(rf"[_-]?(?<![a-z])(?:{SPLIT_WORDS})(?![a-z])[_-]?", "", stem, flags=re.I) or stem


def _open(path: str) -> Source:
    format = resolve_format(path, "auto") or "csv"
    return open_source(path, Dialect(format, blank_lines=True))


def _by_row(path: str) -> Join:
    """Return the join of a file whose rows are aligned with the source's."""
    format = resolve_format(path, "auto") or "csv"
    if format in ("csv", "txt", "tsv"):
        with_names = format != "txt" and not _is_column_of_numbers(path)
        format = format if with_names else "lines"
    source = FileSource(path, Dialect(format, blank_lines=True))
    return Join(source, column=column_of(path) if format == "lines" else None)


def _is_column_of_numbers(path: str) -> bool:
    """Return True if the first line of a file is one number, so that it has no header."""
    try:
        with open(path, "rb") as file:
            return ALL_NUMBERS.match(file.readline(100)) is not None
    except OSError:
        return False


def _read(join: Join, selection: Selection) -> _Right:
    """Read a joined file: the selected columns that it has, and its keys."""
    inner = EVERYTHING
    if selection.required is not None:
        wanted = (*selection.required, *selection.optional)
        required = () if join.right is None else (join.right,)
        optional = (TEXT,) if join.column in wanted else wanted
        inner = Selection(required, tuple(x for x in optional if x not in required))
    parts = list(join.source.blocks(inner))
    for block in parts:
        for row, reason in block.problems.items():
            raise DataError(f"{join.source.name}:{block.lines[row]}: {reason}")
    lines = np.concatenate([block.lines for block in parts] or [np.zeros(0, np.int64)])
    columns: dict[Name, list[Any]] = {}
    for name in dict.fromkeys(name for block in parts for name in block.columns):
        if all(name in block.columns for block in parts):
            cells = concatenated([block.columns[name] for block in parts])
            columns[name] = [*as_list(cells), None]
    if join.column is not None and TEXT in columns:
        columns = {join.column: columns[TEXT]}
    table = _Right(join, columns, lines, used=np.zeros(len(lines), bool))
    if join.right is not None:
        _index(table, columns.get(join.right, [None])[:-1])
        if join.right != join.left:
            table.columns = {name: x for name, x in columns.items() if name != join.right}
    return table


def _index(table: _Right, keys: Cells) -> None:
    """Fill the row of each key. Of repeated keys whose rows are equal, the first row counts."""
    codes, problems = table.keys.codes_of(keys)
    for row, reason in problems.items():
        raise DataError(f"{table.join.source.name}:{table.lines[row]}: {reason}")
    table.row_of = [-1] * len(table.keys.known.names)
    lists = list(table.columns.values())
    for row, code in enumerate(codes.tolist()):
        first = table.row_of[code]
        if first < 0:
            table.row_of[code] = row
        elif any(cells[row] != cells[first] for cells in lists):
            lines = table.repeated.setdefault(code, [int(table.lines[first])])
            lines.append(int(table.lines[row]))


def _rows_of(
    table: _Right, block: Block, start: int
) -> tuple[npt.NDArray[np.int64], dict[int, str]]:
    """Return the row of a joined file for each row of a block, -1 for none, and the reasons."""
    join, name = table.join, table.join.source.name
    if join.left is None:
        rows = np.arange(start, start + len(block))
        if len(rows) and rows[-1] >= len(table.lines):
            line = block.lines[int(np.argmax(rows >= len(table.lines)))]
            found = f"{counted(len(table.lines), 'row')} in {name}, which is joined row by row"
            raise DataError(f"{block.file or 'data'}:{line}: has no row there; found {found}")
        table.used[rows] = True
        return rows, {}
    codes, problems = table.keys.codes_of(block.columns[join.left])
    known = np.array([*table.row_of, -1], np.int64)
    rows = known[np.minimum(codes, len(known) - 1)]
    for row in np.flatnonzero(rows < 0).tolist():
        key = quote(table.keys.known.spellings[codes[row]])
        problems.setdefault(row, f"no row of {name} has {join.right} {key}")
    for row in np.flatnonzero(np.isin(codes, list(table.repeated))).tolist():
        key = quote(table.keys.known.spellings[codes[row]])
        lines = listed([str(line) for line in table.repeated[int(codes[row])]])
        problems.setdefault(row, f"{join.right} {key} has different rows in {name}, lines {lines}")
    table.used[rows[rows >= 0]] = True
    return rows, problems


def _notices(table: _Right, total: int) -> list[str]:
    """Return lines about the keys of a joined file, after all rows were read.

    Raises:
        DataError: If the file is joined row by row and has further rows.
    """
    join, name = table.join, table.join.source.name
    if join.left is None:
        if total < len(table.lines):
            rows = counted(len(table.lines), "row")
            raise DataError(f"{name}: found {rows}; expected {total:,}, as it is joined by row")
        return []
    names, found = table.keys.known.spellings, list[str]()
    used_codes = [code for code, row in enumerate(table.row_of) if row >= 0 and table.used[row]]
    unused = set(range(len(table.row_of))).difference(used_codes)
    if unused:
        keys = listed([quote(names[code]) for code in sorted(unused)])
        found.append(f"{name}: {counted(len(unused), 'key')} of {join.right} in no row: {keys}")
    if len(names) > len(table.row_of):
        keys = listed([quote(each) for each in names[len(table.row_of) :]])
        count = counted(len(names) - len(table.row_of), "key")
        found.append(f"{name}: {count} of {join.left} without a row there: {keys}")
    if table.repeated:
        keys = listed([quote(names[code]) for code in table.repeated])
        count = counted(len(table.repeated), "key")
        found.append(f"{name}: {count} of {join.right} with different rows: {keys}")
    return found
