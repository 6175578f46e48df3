"""Sources of rows: a file, or several files that are read as one, as streams of blocks."""

from __future__ import annotations

import glob
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, TypeAlias

import numpy as np

from seqtrain.errors import DataError
from seqtrain.files.reading import path_problems, uncompressed
from seqtrain.tables.arrays import labels_file
from seqtrain.tables.blocks import (
    EVERYTHING,
    FILE,
    FOLDER,
    LABEL,
    ROWS,
    Block,
    CellsByName,
    Coded,
    Dialect,
    Name,
    Selection,
    Source,
    UnreadableError,
    located,
)
from seqtrain.tables.formats import FORMATS, NO_DATA, resolve_format
from seqtrain.tables.opening import STDIN, file_digest, is_pipe, open_input
from seqtrain.tables.other_programs import FASTQ, refuse_binary, refuse_unreadable
from seqtrain.text import counted, display_name, listed, printable, quote

ONE_ROW = "whole"
"""Format of a file that is one row as a whole."""
UNLABELLED = ("unsup", "unlabelled", "unlabeled")
"""Names of sub-folders whose files have no label, and so are skipped."""
Reader: TypeAlias = Callable[[BinaryIO, Dialect, Selection, int], Iterator[Block]]


@dataclass(frozen=True)
class SourceFile:
    """A file of a source, or standard input (path ``-``).

    Attributes:
        path: The path. A file is decompressed if its name ends in .gz or .zst.
        dialect: Form of the file.
        fixed: Further columns with one value in all rows, such as the label of a folder of a class.
            They replace columns of the file.
        lacks: Names of columns that the path of the file should give, but doesn't.
        problem: Reason why the file isn't read, or "". It is a row that can't be read then.
        digests: SHA-256 of the file under its path, once it was read from beginning to end.
    """

    path: str
    dialect: Dialect
    fixed: Mapping[str, str] = field(default_factory=dict)
    lacks: Sequence[str] = ()
    problem: str = ""
    digests: dict[str, str] = field(default_factory=dict, compare=False, repr=False)

    def blocks(
        self, stream: BinaryIO, name: str, selection: Selection, rows: int
    ) -> Iterator[Block]:
        """Yield the rows of the open file, with its name and the columns `file` and `folder`.

        Raises:
            UnreadableError: If the rest of the file can't be read, or a required column isn't in
                its path.
        """
        for column in self.lacks:
            if column in (selection.required or ()):
                remedy = "rename the file as those of train are named"
                if self.path == STDIN:
                    remedy = (
                        "give the path of a file that is named as those of train, in place of -"
                    )
                raise UnreadableError(
                    None,
                    "its path doesn't match data.path, which gives the column "
                    f"{quote(column)}; {remedy}",
                )
        folder = os.path.basename(os.path.dirname(os.path.abspath(self.path)))
        given = {FILE: name, FOLDER: printable(folder), **self.fixed}
        required = selection.required
        optional = selection.optional
        named = [each for each in (*(required or self.fixed), *optional) if each in given]
        if named and required is not None:  # the file's own columns go before file and folder
            own = [each for each in named if each not in self.fixed]
            selection = replace(
                selection,
                required=tuple(each for each in required if each not in given),
                optional=(*own, *(each for each in optional if each not in given)),
            )
        read = reader_of(self.dialect.format, self.path)
        for block in read(stream, self.dialect, selection, rows):
            for each in named:
                if each in self.fixed or each not in block.columns:
                    value = [given[str(each)]]
                    block.columns[each] = Coded(np.zeros(len(block), np.int32), value)
            yield replace(block, file=name)

    def as_bad_row(self, name: str, selection: Selection, reason: str) -> Block:
        """Return the file as one row that can't be read, for a reason."""
        given, names = {FILE: name, **self.fixed}, selection.required or ()
        columns: CellsByName = {each: [given.get(str(each))] for each in names}
        return Block(columns, np.ones(1, np.int64), {0: reason}, name)

    def files(self) -> list[str]:
        """Return the paths of the files that are read, also that of the labels of an array."""
        labels = labels_file(self.path)
        if labels:
            return [self.path, labels]
        return [self.path]

    def digest(self) -> str:
        """Return the SHA-256 of the file. It is read again unless it was just read completely."""
        digests = [self.digests.pop(path, "") or file_digest(path) for path in self.files()]
        if len(digests) == 1:
            return digests[0]
        return _hash("".join(digests).encode())


@dataclass(frozen=True)
class FileSource(Source):
    """A file, or several files that are read as one: a folder, or the files of a pattern.

    Besides the columns of the file, every row has the columns `file`, the path, and `folder`, the
    name of the folder, unless the file has columns of these names.

    Attributes:
        name: Name for messages.
        path: The file, the folder, or the pattern.
        has_files: True if `path` isn't the only file itself.
        parts: The files, in the order in which they are read.
        spills: Lines with cells below blank names (`Block.spilled`), by the name of the file.
    """

    name: str
    path: str
    has_files: bool
    parts: Sequence[SourceFile] = ()
    spills: dict[str, list[int]] = field(default_factory=dict, compare=False, repr=False)

    def blocks(self, selection: Selection = EVERYTHING, rows: int | None = None) -> Iterator[Block]:
        """Yield the rows of all files, in order.

        A file of several that is one row and can't be read is a row that can't be read. So is a
        file whose path data.path doesn't match.

        Args:
            selection: Columns to read.
            rows: Largest number of rows of a block. None for `ROWS`, or for 1 if the file is a
                pipe, so that each row is processed as soon as it arrives.

        Raises:
            DataError: If the rest of a file can't be read.
        """
        for part in self.parts:
            name = display_name(part.path)
            self.spills.pop(name, None)
            if part.problem:
                yield part.as_bad_row(name, selection, part.problem)
                continue
            size = rows or (1 if is_pipe(part.path) else ROWS)
            try:
                with open_input(part.path, part.dialect.encoding, part.digests) as stream:
                    for block in part.blocks(stream, name, selection, size):
                        if block.spilled:
                            self.spills.setdefault(name, []).extend(block.spilled)
                        yield block
                continue
            except UnreadableError as error:
                problem = located(name, error)
            except DataError as error:
                problem = error
            if part.dialect.format != ONE_ROW or not self.has_files:
                raise problem from None
            reason = problem.problems[0].removeprefix(name).partition(": ")[2]
            yield part.as_bad_row(name, selection, reason)

    def files(self) -> list[str]:
        """Return the paths of the files that are read."""
        return [path for part in self.parts for path in part.files()]

    def notices(self) -> list[str]:
        """Return a line for each file with cells below blank names at the end of its header."""
        return [
            f"{name}: {counted(len(lines), 'row')} with text in columns without names, which isn't "
            f"read (line {listed(list(map(str, lines)))}); name the columns, or put texts with "
            "separators in quotes"
            for name, lines in self.spills.items()
        ]

    def digest(self, selection: Selection = EVERYTHING) -> str:
        """Return the SHA-256 of the file, or one of the names and contents of several."""
        if not self.has_files:
            return self.parts[0].digest()
        content = []
        root = self.path if os.path.isdir(self.path) else "."
        for part in self.parts:
            name = os.fsencode(os.path.relpath(part.path, root)).replace(os.fsencode(os.sep), b"/")
            content.append(b"%b\0%b\n" % (name, part.digest().encode()))
        return _hash(b"".join(content))


def open_source(
    path: str | Sequence[str],
    dialect: Dialect,
    *,
    pattern: str | None = None,
    whole_files: bool = False,
    must_match: bool = True,
    ids: Sequence[Name] = (),
) -> FileSource:
    """Return the source of a path: a file, standard input, a folder, or several paths.

    A folder of format txt holds a folder or a file per class. A folder of another format holds
    files of that format, at any depth.

    Args:
        path: The path or a pattern such as ``rec/*.csv``, or the paths of files that are read as
            one.
        dialect: Form of the files.
        pattern: Regular expression of data.path, whose named groups are columns, or None.
        whole_files: True if each file of a folder, at any depth, is one row without a label.
        must_match: False if a file may lack the columns of its path, as an input to predict lacks
            the label.
        ids: Columns of the path that are the name of the file if its path lacks them.

    Raises:
        DataError: If a folder holds no files to read, or a file is one that must be converted.
    """
    if isinstance(path, str):
        name = path
        paths = matching_files(path)
    else:
        name = os.path.commonpath(path) or "."
        paths = list(path)
    if not paths:
        raise DataError(f"{display_name(name)}: no such file; nothing matches the pattern")
    if len(paths) == 1 and not isinstance(path, str):
        name = paths[0]
    parts = []
    for each in paths:
        if each == STDIN or not (whole_files or os.path.isdir(each)):
            parts.append(SourceFile(each, dialect))
        elif whole_files:
            files = _whole_files(each) if os.path.isdir(each) else [each]
            if not files:
                shown = display_name(each)
                raise DataError(f"{shown}: no files in it; expected a file per sequence")
            parts += [_part(file, ONE_ROW, dialect, {}) for file in files]
        else:
            parts += _folder(each, dialect)
    for part in parts:
        refuse_binary(part.path)
    if pattern is not None:
        parts = [_with_groups(part, pattern, must_match=must_match, ids=ids) for part in parts]
    has_files = [part.path for part in parts] != [path]
    return FileSource(display_name(name), name, has_files, parts)


def _with_groups(
    part: SourceFile, pattern: str, *, must_match: bool, ids: Sequence[Name]
) -> SourceFile:
    """Return a file with the named groups of a regular expression in its path as columns.

    The name of the file is searched first, then the name with the folder before it, and so on.

    A file in whose path the expression isn't found has a problem, or lacks the columns if
    `must_match` is False.
    """
    names = part.path.split(os.sep)
    columns = re.compile(pattern).groupindex
    shown = display_name(part.path)
    default = {id: shown for id in ids if isinstance(id, str) and id in columns}
    for start in range(len(names) - 1, -1, -1):
        found = re.search(pattern, "/".join(names[start:]))
        if found is not None:
            own = {name: each for name, each in found.groupdict().items() if each is not None}
            return replace(part, fixed={**part.fixed, **default, **own})
    if not must_match:
        lacks = tuple(name for name in columns if name not in default)
        return replace(part, fixed={**part.fixed, **default}, lacks=lacks)
    return replace(part, problem=f"its path doesn't match data.path, {quote(pattern)}")


def reader_of(format: str, path: str = "") -> Reader:
    """Import and return the function that reads an open file of a format; see `Format.reader`.

    Args:
        format: Name of the format, or `ONE_ROW`.
        path: Path of the file. A whole file may be an array.
    """
    if format == ONE_ROW:
        name = "lines.read_whole"
    else:
        name = FORMATS[format].reader
    if format == ONE_ROW and resolve_format(path, "auto") == "npz":
        name = "arrays.read_whole_array"
    module, function = name.split(".")
    reader: Reader = getattr(import_module(f"seqtrain.tables.{module}"), function)
    return reader


def stamps(source: Source) -> list[tuple[str, int, int]]:
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
    parts = Path(name).parts
    root = Path(Path(name).anchor)
    found = []
    for path in root.glob(os.path.relpath(name, root) if root.anchor else name):
        if not any(part.startswith(".") for part in path.parts if part not in parts):
            found.append(str(path))
    return sorted(found)


def holds_whole_files(path: str) -> bool:
    """Return True if a path is a folder with at least one sub-folder.

    Each file in such sub-folders is one sequence.
    """
    return os.path.isdir(path) and any(is_folder for _, is_folder in folder_entries(path))


def _folder(path: str, dialect: Dialect) -> list[SourceFile]:
    """Return the files of a folder, in the order in which they are read.

    If no ending names the format, these are the files whose ending names no other one.

    Raises:
        DataError: If the folder has no such file.
    """
    if dialect.format == "txt":
        return _class_folder(path, dialect)
    if dialect.format == "arrow" and not glob.glob(os.path.join(glob.escape(path), "*.arrow")):
        splits = ", ".join(name for name, is_folder in folder_entries(path) if is_folder)
        advice = f"; give one of these: {splits}" if splits else ""
        raise DataError(f"{display_name(path)}: holds no file .arrow{advice}")
    files = [(file, resolve_format(file, "auto")) for file in files_below(path)]
    own = [file for file, format in files if format == dialect.format]
    if not own:
        own = [file for file, format in files if format in (None, "txt")]
    if not own:
        raise DataError(f"{display_name(path)}: holds no file of format {dialect.format}")
    return [SourceFile(file, dialect) for file in own]


def _class_folder(path: str, dialect: Dialect) -> list[SourceFile]:
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
    entries = _class_entries(path)
    shown = display_name(path)
    in_folders = [name for name, is_folder in entries if is_folder]
    parts = []
    for name, is_folder in entries:
        label = _class_of(name)
        if label and not is_folder:
            parts.append(_part(os.path.join(path, name), "lines", dialect, {LABEL: label}))
    if parts and in_folders:
        raise DataError(
            f"{shown}: holds both sub-folders and .txt files ({os.path.basename(parts[0].path)}); "
            "expected one kind"
        )
    for label in in_folders:
        folder = os.path.join(path, label)
        for name, _ in folder_entries(folder):
            if os.path.splitext(uncompressed(name.lower()))[1] in FASTQ:
                refuse_unreadable(name, folder)
            parts.append(_part(os.path.join(folder, name), ONE_ROW, dialect, {LABEL: label}))
    if not parts:
        advice = "expected one sub-folder or one file <class>.txt per class"
        for name, _ in entries:
            refuse_unreadable(os.path.join(path, name))
            ending = name[len(os.path.splitext(uncompressed(name))[0]) :]
            if resolve_format(name, "auto") is not None:
                pattern = display_name(os.path.join(path, "*" + ending))
                advice += f"; for its {ending} files give '{pattern}'"
                break
        else:
            if entries and not in_folders:
                advice += "; for tables in files of other endings, give their format (csv)"
        raise DataError(f"{shown}: no rows; {advice}")
    return parts


def _class_entries(path: str) -> list[tuple[str, bool]]:
    """Return the entries of a folder, without folders such as ``unsup`` and lists of links."""
    entries = folder_entries(path)
    ignored = {*UNLABELLED, *(f"urls_{name}.txt" for name, is_folder in entries if is_folder)}
    return [entry for entry in entries if uncompressed(entry[0]) not in ignored]


def _whole_files(path: str) -> list[str]:
    """Return the files in a folder, at any depth, that `_class_folder` doesn't ignore.

    All are returned if it would ignore all folders: a user may give ``unsup`` and its parts.
    """
    entries = _class_entries(path)
    if not any(is_folder for _, is_folder in entries):
        return files_below(path)
    files = []
    for name, is_folder in entries:
        own = os.path.join(path, name)
        files += files_below(own) if is_folder else [own]
    return files


def _part(path: str, format: str, dialect: Dialect, fixed: Mapping[str, str]) -> SourceFile:
    if resolve_format(path, "auto") == "fasta":
        format = "fasta"
    return SourceFile(path, replace(dialect, format=format), fixed)


def files_below(folder: str) -> list[str]:
    """Return the paths of the files in a folder, at any depth, sorted within each folder."""
    found = []
    for name, is_folder in folder_entries(folder):
        path = os.path.join(folder, name)
        found += files_below(path) if is_folder else [path]
    return found


def folder_entries(folder: str) -> list[tuple[str, bool]]:
    """Return the names in a folder, sorted, each with True if it is a folder, without `NO_DATA`.

    Raises:
        DataError: If the folder can't be read.
    """
    with path_problems(folder, DataError), os.scandir(folder or ".") as entries:
        found = [(each.name, each.is_dir()) for each in entries if not NO_DATA.fullmatch(each.name)]
    return sorted(found)


def _class_of(name: str) -> str:
    """Return the name of a .txt or FASTA file without its endings, which is the label of its rows.

    The result is "" for any other file. An ending such as .gz is removed, too.
    """
    stem, ending = os.path.splitext(uncompressed(name))
    if ending == ".txt" or resolve_format(name, "auto") == "fasta":
        return stem
    return ""


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
