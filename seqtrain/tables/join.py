"""Joins: columns of further files, by a key or row by row."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from seqtrain.errors import DataError
from seqtrain.tables.blocks import (
    EVERYTHING,
    FILE,
    FOLDER,
    LABEL,
    SPLIT_VALUES,
    TEXT,
    Block,
    Cells,
    Codes,
    Dialect,
    Name,
    Reasons,
    Selection,
    Source,
    as_list,
    missing_name,
)
from seqtrain.tables.cells import KeyColumns
from seqtrain.tables.formats import resolve_format
from seqtrain.tables.sources import open_source
from seqtrain.text import counted, listed, quote

ROW = "row"
"""Value of `on` of a join of files that are aligned row by row."""
NO_ROW, DIFFERENT_ROWS = "no row of", "has different rows in"
"""Parts of the reason of a row whose key a further file lacks, or has with different rows."""
SPLIT_WORDS = f"(?<![a-zA-Z])(?i:{'|'.join(sorted(SPLIT_VALUES))})(?![a-z])"
SPLIT_WORD = re.compile(SPLIT_WORDS)
"""Word in a path that names a split, as in y_train and trainY."""
HEADER_ADVICE = "header: true or false in data.join says whether its first row is a row of names"
NUMBER_LINE = re.compile(r"\s*[-+]?[0-9.]+\s*")


@dataclass(frozen=True)
class Join:
    """A further file whose columns are joined.

    Attributes:
        source: The file.
        left: Columns of the joined table that hold the key together. Empty to join row by row.
        right: Columns of the file that hold it, in the same order.
        column: New name of the only column of a file without a name for it, or None.
        own_name: Name of this column in the file.
    """

    source: Source
    left: tuple[Name, ...] = ()
    right: tuple[Name, ...] = ()
    column: str | None = None
    own_name: Name = TEXT


class JoinedSource(Source):
    """A source whose rows have the columns of further files, too.

    A column that both have is the source's. A row whose key such a file lacks, or has with
    different rows, can't be read if one of the file's columns is required. Columns that are only
    optional aren't joined.

    Args:
        source: The source.
        joins: The further files.
        needed: Columns to join if all columns of the source are read, or None for all.
    """

    def __init__(
        self, source: Source, joins: Sequence[Join], needed: Sequence[Name] | None = None
    ) -> None:
        self.source = source
        self.joins = tuple(joins)
        self.needed = needed
        self.name, self.path, self.has_files = source.name, source.path, source.has_files
        self.matches = list[KeyMatch]()

    def blocks(self, selection: Selection = EVERYTHING, rows: int | None = None) -> Iterator[Block]:
        """Yield the rows of the source with the columns of the further files.

        A further file that can't be read is an error only if the source lacks a required column,
        or all columns are read.

        Args:
            selection: Columns to read.
            rows: Largest number of rows of a block, as for the source.

        Raises:
            DataError: If a file can't be read, a file that is joined row by row has another number
                of rows, or a required column is nowhere.
        """
        tables = []
        unreadable = []
        joined = selection
        if selection.required is None and self.needed is not None:
            joined = Selection(tuple(self.needed))
        for join in self.joins:
            try:
                tables.append(_JoinedTable(join, joined))
            except DataError as error:
                if joined.required is None:
                    raise
                unreadable.append(error)
        inner = _without(selection, tables)
        start = 0
        try:
            for block in self.source.blocks(inner, rows):
                for table in tables:
                    table.add_columns(block, start)
                start += len(block)
                yield _selected(block, selection)
        except DataError:
            if unreadable and not start:
                raise unreadable[0] from None
            raise
        self.matches = [match for table in tables for match in table.matches(start)]

    def files(self) -> list[str]:
        """Return the paths of the files that are read."""
        joined = [path for join in self.joins for path in join.source.files()]
        return [*self.source.files(), *joined]

    def notices(self) -> list[str]:
        """Return lines about the rows of the source, without its joins: see `join_notices`."""
        return self.source.notices()

    def digest(self, selection: Selection = EVERYTHING) -> str:
        """Return a SHA-256 of the content of all files."""
        digests = [self.source.digest(selection), *(join.source.digest() for join in self.joins)]
        return sha256("".join(digests).encode()).hexdigest()


@dataclass
class KeyMatch:
    """Keys of a join that don't match, after all rows of a source were read.

    Attributes:
        join: Name of the further file, and the columns of its key and of that of the source.
        unused: Keys of the file that no row of the source has.
        unknown: Keys of the source that the file lacks.
        repeated: Keys of the file with different rows.
    """

    join: tuple[str, str, str]
    unused: dict[str, None]
    unknown: dict[str, None]
    repeated: dict[str, None]

    def add(self, other: KeyMatch) -> None:
        """Add the rows of another source that is joined to the same file."""
        self.unused = {key: None for key in self.unused if key in other.unused}
        self.unknown |= other.unknown
        self.repeated |= other.repeated

    def notices(self) -> Iterator[str]:
        """Yield a line for each kind of keys that there are."""
        name, right, left = self.join
        for keys, found in (
            (self.unused, f"of {right} in no row"),
            (self.unknown, f"of {left} without a row there"),
            (self.repeated, f"of {right} with different rows"),
        ):
            if keys:
                shown = listed([quote(key) for key in keys])
                yield f"{name}: {counted(len(keys), 'key')} {found}: {shown}"


def join_notices(sources: Sequence[Source]) -> list[str]:
    """Return lines about keys of joins that have no row, or several, in all sources together."""
    found = dict[Any, KeyMatch]()
    for source in sources:
        for match in source.matches if isinstance(source, JoinedSource) else ():
            if match.join in found:
                found[match.join].add(match)
            else:
                found[match.join] = replace(match)
    return [line for match in found.values() for line in match.notices()]


class _JoinedTable:
    """The rows of a further file, in memory.

    Args:
        join: The file.
        selection: Columns to read. Those that the file lacks are left out.

    Attributes:
        columns: Cells of each column but the key, and None after the last row.
        is_whole: True if all columns are read, so that none may be missing.

    Raises:
        DataError: If the file or a row of it can't be read.
    """

    def __init__(self, join: Join, selection: Selection) -> None:
        self.join = join
        self.name = join.source.name
        self.is_whole = selection.required is None
        if selection.required is not None:
            given = {*join.right, FILE, FOLDER}  # any source has the place of a row itself
            names = [name for name in selection.required if name not in given]
            if join.column is not None:  # the file's only column, under its new name alone
                is_read = join.column in (*names, *selection.optional)
                names = [join.own_name] if is_read else []
            selection = Selection(join.right, tuple(names))
        self._lines = list[int]()
        columns = dict[Name, list[Any]]()
        for block in join.source.blocks(selection):
            for row, reason in block.problems.items():
                raise DataError(f"{self.name}:{block.lines[row]}: {reason}")
            self._lines += block.lines.tolist()
            for name, cells in block.columns.items():
                columns.setdefault(name, []).extend(as_list(cells))
        size = len(self._lines)
        missing = [name for name in join.right if name not in columns]
        if size and missing:
            raise DataError(_no_key(self.name, missing[0], columns))
        if join.column is not None and join.own_name in columns:
            columns = {join.column: columns[join.own_name]}
        keys = [columns.pop(name, []) for name in join.right]
        self.columns = {name: [*x, None] for name, x in columns.items() if len(x) == size}
        self._index(keys)

    def add_columns(self, block: Block, start: int) -> None:
        """Add the columns that a block lacks, and the problems of rows without a partner.

        Args:
            block: The block.
            start: Number of rows before the block.
        """
        names = [name for name in self.columns if name not in block.columns]
        left = self.join.left
        if not names:
            return
        missing = [name for name in left if name not in block.columns]
        if missing:
            if self.is_whole and len(block.problems) < len(block):
                raise DataError(_no_key(block.file or "data", missing[0], block.columns))
            return
        if left:
            rows = self._partners([block.columns[name] for name in left], block.problems)
        else:
            rows = self._aligned(block, start)
        for name in names:
            cells = self.columns[name]
            block.columns[name] = [cells[row] for row in rows]

    def matches(self, total: int) -> list[KeyMatch]:
        """Return the keys that don't match, after all rows were joined. Empty without a key.

        Args:
            total: Number of rows of the source.

        Raises:
            DataError: If the file is joined row by row and has further rows.
        """
        left = self.join.left
        if not left and self._used and total < len(self._lines):
            raise DataError(
                f"{self.name}: found {counted(len(self._lines), 'row')}; expected {total:,}, as "
                f"it is joined by row; {HEADER_ADVICE}"
            )
        if not left or not self._used:
            return []
        names = self._keys.spellings
        known = len(self._row_of)
        unused = dict.fromkeys(names[code] for code in range(known) if code not in self._used)
        repeated = dict.fromkeys(names[code] for code in self._repeated)
        join = (self.name, self._shown_key, ", ".join(map(str, left)))
        return [KeyMatch(join, unused, dict.fromkeys(names[known:]), repeated)]

    def _index(self, keys: Sequence[Cells]) -> None:
        """Find the row of each key. Of repeated keys whose rows are equal, the first row counts.

        Args:
            keys: Cells of each column of the key.
        """
        self._keys = KeyColumns(len(keys))
        self._shown_key = ", ".join(map(str, self.join.right))
        self._used = set[int]()
        self._row_of = list[int]()
        self._repeated = dict[int, list[str]]()
        if not keys:
            return
        problems = dict[int, str]()
        codes = self._codes_of(keys, problems)
        for row, reason in problems.items():
            raise DataError(f"{self.name}:{self._lines[row]}: {reason}")
        for row, code in enumerate(codes.tolist()):
            if code == len(self._row_of):
                self._row_of.append(row)
            first = self._row_of[code]
            if any(cells[row] != cells[first] for cells in self.columns.values()):
                lines = self._repeated.setdefault(code, [str(self._lines[first])])
                lines.append(str(self._lines[row]))

    def _codes_of(self, keys: Sequence[Cells], problems: Reasons) -> Codes:
        """Return the codes of keys, and note the reason for each that can't be read.

        Args:
            keys: Cells of each column of the key.
            problems: Maps the index of a row to the reason. The first reason stays.
        """
        parts = []
        for column, cells in zip(self._keys.columns, keys, strict=True):
            codes, unreadable = column.codes_of(cells)
            parts.append(codes)
            for row, reason in unreadable.items():
                problems.setdefault(row, reason)
        return self._keys.joined(parts)

    def _partners(self, keys: Sequence[Cells], problems: Reasons) -> list[int]:
        """Return the row of this table for each key, and note the reason where it isn't known.

        The row of an unknown key is -1.
        """
        codes = self._codes_of(keys, problems)
        rows = []
        names = self._keys.spellings
        right = self._shown_key
        for row, code in enumerate(codes.tolist()):
            is_known = code < len(self._row_of)
            rows.append(self._row_of[code] if is_known else -1)
            if not is_known:
                problems.setdefault(row, f"{NO_ROW} {self.name} has {right} {quote(names[code])}")
            elif code in self._repeated:
                lines = listed(self._repeated[code])
                problems.setdefault(
                    row, f"{right} {quote(names[code])} {DIFFERENT_ROWS} {self.name}, lines {lines}"
                )
        self._used.update(codes.tolist())
        return rows

    def _aligned(self, block: Block, start: int) -> list[int]:
        count = len(self._lines)
        end = start + len(block)
        if end > count:
            raise DataError(
                f"{block.file or 'data'}:{block.lines[max(0, count - start)]}: has no row there; "
                f"found {counted(count, 'row')} in {self.name}, which is joined row by row; "
                f"{HEADER_ADVICE}"
            )
        self._used.update(range(start, end))
        return list(range(start, end))


def joined_source(
    source: Source, joins: Sequence[Mapping[str, Any]], needed: Sequence[Name] | None = None
) -> Source:
    """Return a source with the files of data.join.

    If a file names its split, as y_train.txt, and the source another one, as X_test.txt, the file
    of this split is joined, y_test.txt, if there is one.

    Args:
        source: The source.
        joins: Value of data.join: mappings with the keys `file` and `on`; see `key_columns`.
            `header` tells if a file that is joined row by row names its columns.
        needed: Columns to join if all columns of the source are read, or None for all.
    """
    found = []
    for each in joins:
        path = for_split(str(each["file"]), source.path)
        left, right = key_columns(each["on"])
        if left:
            found.append(Join(_open(path), left, right))
        else:
            found.append(_by_row(path, each.get("header")))
    if found:
        return JoinedSource(source, found, needed)
    return source


def key_columns(on: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns of a key in a table, and in the file that is joined.

    Args:
        on: Value of `on` of a join: a column, several, or both as `left` and `right`. The columns
            of "row" are none.
    """
    if on == ROW:
        return (), ()
    left = on
    right = on
    if isinstance(on, dict):
        left, right = on["left"], on["right"]
    return _as_tuple(left), _as_tuple(right)


def _as_tuple(names: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        return (names,)
    return tuple(names)


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
    return re.sub(f"[_-]?{SPLIT_WORDS}[_-]?", "", stem) or stem


def _no_key(file: str, key: Name, present: Iterable[Name]) -> str:
    """Return the message that a file lacks the key of a join."""
    return (
        f"{file}:1: {missing_name('column', key, present)}; if the key has another name there: "
        "on: {left: COLUMN, right: COLUMN OF THE OTHER FILE}"
    )


def _without(selection: Selection, tables: Sequence[_JoinedTable]) -> Selection:
    """Return the columns that the source must have: the keys, and what no further file has."""
    if selection.required is None:
        return selection
    own = list[Name](selection.required)
    optional = list[Name](selection.optional)
    for table in tables:
        joined = [name for name in own if name in table.columns]
        own = [name for name in own if name not in joined]
        optional += joined
        if joined:
            own += table.join.left
    return replace(selection, required=tuple(dict.fromkeys(own)), optional=tuple(optional))


def _selected(block: Block, selection: Selection) -> Block:
    """Return a block with the selected columns alone."""
    if selection.required is None:
        return block
    wanted = (*selection.required, *selection.optional)
    columns = {name: block.columns[name] for name in wanted if name in block.columns}
    return replace(block, columns=columns)


def _open(path: str) -> Source:
    """Return a table whose columns have names. A file .txt has no other names than those of csv."""
    format = resolve_format(path, "auto")
    if format in (None, "txt"):
        format = "csv"
    return open_source(path, Dialect(format))


def _by_row(path: str, header: bool | None) -> Join:
    """Return the join of a file whose rows are aligned with the source's.

    Args:
        path: The file.
        header: True if its first row names the columns, or None to see `begins_with_names`.
    """
    format = resolve_format(path, "auto") or "csv"
    if path.endswith(".npy"):
        return Join(open_source(path, Dialect(format)), column=column_of(path), own_name=LABEL)
    if format not in ("txt", "csv", "tsv"):
        return Join(open_source(path, Dialect(format)))
    if header is None:
        header = begins_with_names(path)
    if not header:
        source = open_source(path, Dialect("lines", blank_lines=True))
        return Join(source, column=column_of(path))
    if format == "txt":
        format = "csv"
    # pandas names a column without a name 0.
    number = _number_in_first_line(path)
    name = None if number is None else column_of(path)
    return Join(open_source(path, Dialect(format)), column=name, own_name=number or TEXT)


def begins_with_names(path: str) -> bool:
    """Return True if the first row of a file seems to name its columns.

    It doesn't in txt, and if the first line of csv or tsv is a single number.
    """
    if resolve_format(path, "auto") == "txt":
        return False
    return _number_in_first_line(path) is None


def _number_in_first_line(path: str) -> str | None:
    """Return the first line of a file without blanks at its ends, if it is one number, or None."""
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            line = file.readline(100)
    except OSError:
        return None
    if NUMBER_LINE.fullmatch(line):
        return line.strip()
    return None
