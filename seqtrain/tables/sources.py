"""Sources of rows: files, folders, several files, and tables in memory, as streams of blocks."""

from __future__ import annotations

import glob
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from seqtrain.errors import DataError
from seqtrain.files.reading import path_problem, path_problems, uncompressed
from seqtrain.tables.arrays import labels_file
from seqtrain.tables.blocks import (
    FILE,
    FOLDER,
    LABEL,
    ROWS,
    TEXT,
    Block,
    Cells,
    Coded,
    Dialect,
    Name,
    Selection,
    UnreadableError,
)
from seqtrain.tables.formats import FORMATS, resolve_format
from seqtrain.tables.opening import STDIN, file_digest, is_pipe, open_input
from seqtrain.text import display_name, quote

WHOLE = "whole"
"""Format of a file that is one row as a whole."""
UNLABELLED = ("unsup", "unlabelled", "unlabeled")
"""Names of sub-folders whose files have no label, and so are skipped."""
EVERYTHING = Selection()
Reader: TypeAlias = Callable[[BinaryIO, Dialect, Selection, int], Iterator[Block]]


@dataclass(frozen=True)
class FileSource:
    """A file, or standard input (path ``-``). It is decompressed if its name ends in .gz or .zst.

    Besides the columns of the file, every row has the columns `file`, the path, and `folder`, the
    name of the folder, unless the file has columns of these names.

    Attributes:
        path: The path.
        dialect: Form of the file.
        fixed: Further columns with one value in all rows, such as the label of a folder of a class.
            They replace columns of the file.
        digests: SHA-256 of the file under its path, once it was read from beginning to end.
    """

    path: str
    dialect: Dialect
    fixed: Mapping[str, str] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def has_files(self) -> bool:
        """False: the source is one file."""
        return False

    @property
    def name(self) -> str:
        """Name for messages."""
        return display_name(self.path)

    def blocks(self, selection: Selection = EVERYTHING, rows: int | None = None) -> Iterator[Block]:
        """Yield the rows of the file.

        Args:
            selection: Columns to read.
            rows: Largest number of rows of a block. None for `ROWS`, or for 1 if the file is a
                pipe, so that each row is processed as soon as it arrives.

        Raises:
            DataError: If the rest of the file can't be read.
        """
        if rows is None:
            rows = 1 if is_pipe(self.path) else ROWS
        read, own = reader_of(self.dialect.format, self.path), self._own_columns()
        inner = _without(selection, {**own, **self.fixed}, self.fixed)
        try:
            with open_input(self.path, self.dialect.encoding, self.digests) as stream:
                for block in read(stream, self.dialect, inner, rows):
                    yield self._completed(block, selection, own)
        except UnreadableError as error:
            raise located(self.name, error) from None

    def files(self) -> list[str]:
        """Return the paths of the files that are read, also that of the labels of an array."""
        labels = labels_file(self.path)
        return [self.path, labels] if labels else [self.path]

    def digest(self, selection: Selection = EVERYTHING) -> str:
        """Return the SHA-256 of the file. It is read again unless it was just read completely."""
        digests = [self.digests.pop(path, "") or file_digest(path) for path in self.files()]
        if len(digests) == 1:
            return digests[0]
        return hashlib.sha256("".join(digests).encode()).hexdigest()

    def notices(self) -> list[str]:
        """Return lines for the user about what was read."""
        return []

    def _own_columns(self) -> dict[str, str]:
        folder = os.path.basename(os.path.dirname(os.path.abspath(self.path)))
        return {FILE: display_name(self.path), FOLDER: display_name(folder)}

    def _completed(self, block: Block, selection: Selection, own: Mapping[str, str]) -> Block:
        """Return a block with the columns that have one value in the whole file."""
        columns = dict(block.columns)
        wanted = (*(selection.required or self.fixed), *selection.optional)
        for name in wanted:
            if name in self.fixed:
                columns[name] = repeated(self.fixed[str(name)], len(block))
            elif name in own and name not in columns:
                columns[name] = repeated(own[str(name)], len(block))
        return replace(block, columns=columns, file=self.name)


@dataclass(frozen=True)
class FolderSource:
    """Several files that are read as one: a folder, or the files of a pattern.

    Attributes:
        path: The folder, or the pattern.
        parts: The files, in the order in which they are read.
    """

    path: str
    parts: tuple[FileSource, ...]

    @property
    def has_files(self) -> bool:
        """True: `Block.file` tells the file of a row."""
        return True

    @property
    def name(self) -> str:
        """Name for messages."""
        return display_name(self.path)

    def blocks(self, selection: Selection = EVERYTHING, rows: int | None = None) -> Iterator[Block]:
        """Yield the rows of all files, in order.

        A file that is one row and can't be read is a row that can't be read.

        Raises:
            DataError: If the rest of a file can't be read.
        """
        for part in self.parts:
            try:
                yield from part.blocks(selection, rows)
            except DataError as error:
                if part.dialect.format != WHOLE:
                    raise
                yield _unreadable(part, selection, error)

    def files(self) -> list[str]:
        """Return the paths of the files that are read."""
        return [part.path for part in self.parts]

    def digest(self, selection: Selection = EVERYTHING) -> str:
        """Return a SHA-256 of the names and contents of all files."""
        total, root = hashlib.sha256(), self.path if os.path.isdir(self.path) else "."
        for part in self.parts:
            name = os.fsencode(os.path.relpath(part.path, root))
            name = name.replace(os.fsencode(os.sep), b"/")
            total.update(b"%b\0%b\n" % (name, part.digest().encode()))
        return total.hexdigest()

    def notices(self) -> list[str]:
        """Return lines for the user about what was read."""
        return []


def open_source(
    path: str | Sequence[str],
    dialect: Dialect,
    *,
    pattern: str | None = None,
    whole_files: bool = False,
) -> FileSource | FolderSource:
    """Return the source of a path: a file, standard input, a folder, or several paths.

    A folder of format txt holds a folder or a file per class. A folder of another format holds
    files of that format, at any depth.

    Args:
        path: The path or a pattern such as ``rec/*.csv``, or the paths of files that are read as
            one.
        dialect: Form of the files.
        pattern: Regular expression of data.path, whose named groups are columns, or None.
        whole_files: True if each file of a folder, at any depth, is one row without a label.

    Raises:
        DataError: If a folder holds no files to read, or the pattern doesn't match the path of a
            file.
    """
    if isinstance(path, str) and glob.has_magic(path) and not os.path.lexists(path):
        parts, is_one = _parts_of(matching_files(path), dialect, whole_files=whole_files), False
        if not parts:
            raise DataError(f"{display_name(path)}: no such file; nothing matches the pattern")
    elif isinstance(path, str):
        parts = _parts(path, dialect, whole_files=whole_files)
        is_one = len(parts) == 1 and parts[0].path == path
    else:
        parts = _parts_of(path, dialect, whole_files=whole_files)
        path, is_one = path[0] if len(path) == 1 else os.path.commonpath(path) or ".", False
    if pattern is not None:
        parts = [replace(part, fixed={**part.fixed, **groups_of(pattern, part)}) for part in parts]
    return parts[0] if is_one else FolderSource(path, tuple(parts))


def groups_of(pattern: str, source: FileSource) -> dict[str, str]:
    """Return the named groups of a regular expression in the path of a file.

    The name of the file is searched first, then the name with the folder before it, and so on.

    Raises:
        DataError: If the expression isn't found.
    """
    names = Path(source.path).parts
    for start in range(len(names) - 1, -1, -1):
        found = re.search(pattern, "/".join(names[start:]))
        if found is not None:
            return {name: each for name, each in found.groupdict().items() if each is not None}
    raise DataError(f"{source.name}: its path doesn't match data.path, {quote(pattern)}")


def reader_of(format: str, path: str = "") -> Reader:
    """Import and return the function that reads an open file of a format; see `Format.reader`.

    Args:
        format: Name of the format, or `WHOLE`.
        path: Path of the file. A whole file may be an array.
    """
    if format == WHOLE:
        is_array = resolve_format(path, "auto") == "npz"
        name = "arrays.read_whole_array" if is_array else "lines.read_whole"
    else:
        name = FORMATS[format].reader
    module, function = name.split(".")
    reader: Reader = getattr(import_module(f"seqtrain.tables.{module}"), function)
    return reader


def stamps(source: Any) -> list[tuple[str, int, int]]:
    """Return path, size in bytes and modification time in nanoseconds of each file of a source.

    Raises:
        DataError: If a file is missing or can't be read.
    """
    found = []
    for file in source.files():
        with path_problems(file, DataError):
            status = os.stat(file)
        found.append((file, status.st_size, status.st_mtime_ns))
    return found


def matching_files(name: str) -> list[str]:
    """Return the files that match a pattern, sorted by name.

    The name itself is returned if it has no wildcards, or if a file has this name. `**` matches any
    number of folders. It doesn't follow links, and doesn't match hidden files or folders.
    """
    if not glob.has_magic(name) or os.path.lexists(name):
        return [name]
    if "**" not in name:
        return sorted(glob.glob(name))
    parts, root = Path(name).parts, Path(Path(name).anchor)
    found = list[str]()
    for path in root.glob(os.path.relpath(name, root) if root.anchor else name):
        if not any(part.startswith(".") for part in path.parts if part not in parts):
            found.append(str(path))
    return sorted(found)


def repeated(value: str, rows: int) -> Coded:
    """Return a column that has one value in all rows."""
    return Coded(np.zeros(rows, np.int32), [value])


def located(name: str, error: UnreadableError) -> DataError:
    """Return the error for the user, with the place in every line."""
    place = name if error.line is None else f"{name}:{error.line}"
    return DataError(*(f"{place}: {problem}" for problem in error.problems))


def holds_whole_files(path: str) -> bool:
    """Return True if a path is a folder with at least one sub-folder.

    Each file in such sub-folders is one sequence.
    """
    return os.path.isdir(path) and any(stat.S_ISDIR(mode) for _, mode in _entries(path))


def class_folder(path: str, dialect: Dialect) -> list[FileSource]:
    """Return the files of a folder in which names of files or sub-folders are labels.

    The folder has one of two forms:

    - One sub-folder per class. Each file in it is a row.
    - One file per class: ``<class>.txt`` (or ``.txt.gz``, ``.fasta``). Each line is a row, or each
      record of a FASTA file.

    The files are sorted by label, then by name. Hidden names, folders such as ``unsup``, and lists
    of links such as aclImdb's ``urls_pos.txt`` are ignored.

    Raises:
        DataError: If the folder has neither of the two forms, or both.
    """
    entries, name = _entries(path), display_name(path)
    folders = [each for each, mode in entries if stat.S_ISDIR(mode)]
    lists_of_links = {f"urls_{folder}" for folder in folders}
    files = list[str]()
    for each, mode in entries:
        label = _class_of(each)
        if label and label not in lists_of_links and not stat.S_ISDIR(mode):
            files.append(each)
    parts = list[FileSource]()
    for file in files:
        parts.append(_part(os.path.join(path, file), "lines", dialect, _class_of(file)))
    for label in folders if not files else ():
        if label in UNLABELLED:
            continue
        for file, _ in _entries(path, label):
            parts.append(_part(os.path.join(path, label, file), WHOLE, dialect, label))
    if not parts:
        expected = "no rows; expected one sub-folder or one file <class>.txt per class"
        advice = _pattern_advice(path, [each for each, _ in entries])
        raise DataError(f"{name}: {expected}{advice}")
    if files and any(folder not in UNLABELLED for folder in folders):
        found = f"holds both sub-folders and .txt files ({display_name(files[0])})"
        raise DataError(f"{name}: {found}; expected one kind")
    return parts


def saved_dataset(path: str, dialect: Dialect) -> list[FileSource]:
    """Return the .arrow files of a folder that Hugging Face's ``save_to_disk`` wrote, sorted.

    Raises:
        DataError: If the folder contains no .arrow file. The message lists its sub-folders.
    """
    files = sorted(glob.glob(os.path.join(glob.escape(path), "*.arrow")))
    if not files:
        sets = sorted(x for x in os.listdir(path) if os.path.isdir(os.path.join(path, x)))
        advice = f"; give one of these: {', '.join(sets)}" if sets else ""
        raise DataError(f"{display_name(path)}: holds no file .arrow{advice}")
    return [FileSource(file, dialect) for file in files]


def _parts_of(paths: Sequence[str], dialect: Dialect, *, whole_files: bool) -> list[FileSource]:
    parts = list[FileSource]()
    for path in paths:
        parts += _parts(path, dialect, whole_files=whole_files)
    return parts


def _parts(path: str, dialect: Dialect, *, whole_files: bool) -> list[FileSource]:
    """Return the files of a path, in the order in which they are read."""
    if path == STDIN:
        return [FileSource(path, dialect)]
    is_folder = os.path.isdir(path)
    if whole_files:
        files = list(_files_below(path)) if is_folder else [path]
        if not files:
            raise DataError(f"{display_name(path)}: no files in it; expected a file per sequence")
        return [_part(file, WHOLE, dialect, None) for file in files]
    if not is_folder:
        return [FileSource(path, dialect)]
    if dialect.format == "txt":
        return class_folder(path, dialect)
    if dialect.format == "arrow":
        return saved_dataset(path, dialect)
    files = [file for file in _files_below(path) if resolve_format(file, "auto") == dialect.format]
    if not files:
        raise DataError(f"{display_name(path)}: holds no file of format {dialect.format}")
    return [FileSource(file, dialect) for file in files]


def _part(path: str, format: str, dialect: Dialect, label: str | None) -> FileSource:
    if resolve_format(path, "auto") == "fasta":
        format = "fasta"
    fixed = {} if label is None else {LABEL: label}
    return FileSource(path, replace(dialect, format=format), fixed)


def _without(selection: Selection, known: Mapping[str, str], fixed: Mapping[str, str]) -> Selection:
    """Return the columns that the reader must find in a file.

    Args:
        selection: Columns to read.
        known: Columns that the source has in any case.
        fixed: Those of them that replace columns of the file.
    """
    optional = [name for name in selection.optional if name not in fixed]
    if selection.required is None:
        return replace(selection, optional=tuple(optional))
    required = list[Name]()
    for name in selection.required:
        if name not in known:
            required.append(name)
        elif name not in fixed:
            optional.append(name)
    return replace(selection, required=tuple(required), optional=tuple(optional))


def _unreadable(part: FileSource, selection: Selection, error: DataError) -> Block:
    """Return a block of one row that can't be read, with blank cells."""
    problem = error.problems[0].removeprefix(part.name).partition(": ")[2]
    columns: dict[Name, Cells] = {name: [None] for name in selection.required or (TEXT, LABEL)}
    for name in columns:
        if name in part.fixed:
            columns[name] = [part.fixed[str(name)]]
    return Block(columns, np.ones(1, np.int64), {0: problem}, part.name)


def _files_below(folder: str) -> Iterator[str]:
    for name, mode in _entries(folder):
        path = os.path.join(folder, name)
        if stat.S_ISDIR(mode):
            yield from _files_below(path)
        else:
            yield path


def _entries(*path: str) -> list[tuple[str, int]]:
    """Return the names in a folder that aren't hidden, sorted, with their modes."""
    folder = os.path.join(*path)
    try:
        names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
        return [(name, os.stat(os.path.join(folder, name)).st_mode) for name in names]
    except OSError as error:
        raise path_problem(error.filename or folder, error, DataError) from None


def _class_of(name: str) -> str:
    """Return the name of a .txt or FASTA file without its endings, which is the label of its rows.

    The result is "" for any other file. An ending such as .gz is removed, too.
    """
    stem, ending = os.path.splitext(uncompressed(name))
    return stem if ending == ".txt" or resolve_format(name, "auto") == "fasta" else ""


def _pattern_advice(path: str, names: list[str]) -> str:
    for name in names:
        ending = name[len(os.path.splitext(uncompressed(name))[0]) :]
        if ending and resolve_format(name, "auto") is not None:
            pattern = display_name(os.path.join(path, "*" + ending))
            return f"; for its {ending} files give '{pattern}'"
    return ""
