"""Files and folders as sources of rows."""

from __future__ import annotations

import glob
import hashlib
import os
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from seqtrain.errors import DataError
from seqtrain.files.formats import FORMATS, resolve_format
from seqtrain.files.reading import path_problem, path_problems, uncompressed
from seqtrain.sequences.examples import Example, RowProblems
from seqtrain.sequences.read_options import STDIN, Schema
from seqtrain.sequences.readers.npz import labels_file
from seqtrain.sequences.readers.opening import file_digest, open_input
from seqtrain.sequences.readers.plain import read_whole
from seqtrain.sequences.readers.row_source import RowSource
from seqtrain.sequences.readers.step_cells import Rows
from seqtrain.sequences.readers.time_steps import AT_ONCE
from seqtrain.text import display_name

UNLABELLED = ("unsup", "unlabelled", "unlabeled")
"""Names of sub-folders whose files have no label, and so are skipped."""
WHOLE = "whole"
"""Value of `Part.reading` for a file that is a single sequence."""


@dataclass(frozen=True)
class Part:
    """One file of a source. A folder has several parts, any other source has one.

    Attributes:
        path: Path of the file.
        reading: Name of the file's format, or `WHOLE` if the file is one sequence.
        label: Label of all rows of the file, or None if the rows contain their labels.
    """

    path: str
    reading: str
    label: str | None = None


class FileSource(RowSource):
    """A file, a folder or standard input (path ``-``) as a source of rows.

    A file is decompressed if its name ends in .gz or .zst.
    """

    @property
    def name(self) -> str:
        """Name for messages."""
        return display_name(self.path)

    def with_schema(self, schema: Schema) -> FileSource:
        """Return a copy of the source that is read with another schema."""
        return replace(self, schema=schema)

    def digest(self) -> str:
        """Return a SHA-256 of the content, in hexadecimal.

        The digest of a folder covers the names and contents of all files that training reads. Files
        that were read completely since the last call aren't read again.
        """
        files = self._files()
        digests = [self.digests.pop(file, "") or file_digest(file) for file in files]
        if not os.path.isdir(self.path):
            joined = hashlib.sha256("".join(digests).encode()).hexdigest()
            return joined if len(digests) > 1 else digests[0]
        total = hashlib.sha256()
        for file, digest in zip(files, digests, strict=True):
            name = os.fsencode(os.path.relpath(file, self.path))
            name = name.replace(os.fsencode(os.sep), b"/")
            total.update(b"%b\0%b\n" % (name, digest.encode()))
        return total.hexdigest()

    def stamps(self) -> list[tuple[str, int, int]]:
        """Return path, size in bytes and modification time in nanoseconds of each file to read.

        Raises:
            DataError: If a file is missing or can't be read.
        """
        found = []
        for file in self._files():
            with path_problems(file, DataError):
                stat = os.stat(file)
            found.append((file, stat.st_size, stat.st_mtime_ns))
        return found

    def opened(self, problems: RowProblems, *, labelled: bool) -> RowSource:
        """Return a copy of the source with the options of one reading, as an argument of `read`.

        Args:
            problems: Collector of the problems with rows.
            labelled: True if every row must have a label.
        """
        if self.path == STDIN:
            is_complete = sys.stdin is not None and sys.stdin.seekable()
        else:
            is_complete = os.path.isfile(self.path) or self.format.name == "arrow"
        at_once = AT_ONCE if is_complete else 1
        return replace(self, problems=problems, labelled=labelled, at_once=at_once)

    def read(self, opened: RowSource) -> Iterator[Example | Rows]:
        """Yield the rows of all files: examples, or blocks of rows if rows are time steps.

        `Example.file` is set if the source is a folder, or if each file is one sequence.

        Args:
            opened: The source with the options of this reading, as `self.opened(…)` returns it.

        Raises:
            DataError: If a file can't be read. If each file is one sequence and `bad_rows` isn't
                ``"error"``, an example with a problem is yielded instead.
        """
        problems, labelled = opened.problems, opened.labelled
        in_folder = (self.format.whole_files and not labelled) or os.path.isdir(self.path)
        parts = self._parts(labelled=labelled)
        for number, part in enumerate(parts):
            if part.reading == WHOLE and not opened.is_read(number, len(parts)):
                continue
            if in_folder:
                problems.file = display_name(part.path)
            name = self.format.name if part.reading == WHOLE else part.reading
            source = replace(
                opened,
                path=part.path,
                labelled=labelled and part.label is None,
                format=replace(self.format, name=name),
            )
            try:
                for row in _read_part(source, part.reading, pipes=not labelled):
                    if in_folder and isinstance(row, Example):
                        labels = row.labels if part.label is None else (part.label,)
                        row = row._replace(file=problems.file, labels=labels)
                    yield row
            except DataError as error:
                if part.reading != WHOLE or opened.bad_rows == "error":
                    raise
                problem = error.problems[0].removeprefix(problems.file).partition(": ")[2]
                yield Example("", None, 1, problems.file, problem=problem)

    def _files(self) -> list[str]:
        """Return the paths of the files that training reads, including labels of a .npy file."""
        if os.path.isdir(self.path):
            return [part.path for part in self._parts(labelled=True)]
        return [path for path in (self.path, labels_file(self.path)) if path]

    def _parts(self, *, labelled: bool) -> list[Part]:
        """Return the parts of the source, in the order in which they are read.

        Args:
            labelled: True if every row must have a label.
        """
        if self.format.whole_files and not labelled:
            return whole_files(self.path)
        if os.path.isdir(self.path):
            if self.format.name == "txt":
                return class_folder(self.path)
            if self.format.name == "arrow":
                return saved_dataset(self.path)
        return [Part(self.path, self.format.name)]


def reader_of(format: str) -> Callable[[RowSource], Iterator[Example | Rows]]:
    """Import and return the function that reads an open file of a format; see `Format.reader`."""
    module, function = FORMATS[format].reader.split(".")
    reader: Any = getattr(import_module(f"seqtrain.sequences.readers.{module}"), function)
    return reader  # type: ignore[no-any-return]


def _read_part(source: RowSource, reading: str, *, pipes: bool) -> Iterator[Example | Rows]:
    """Open the file `source.path` and yield its rows.

    Args:
        source: The file and its format.
        reading: Name of the format, or `WHOLE` if the file is one sequence.
        pipes: True to allow standard input and named pipes. With `WHOLE` they are never allowed.
    """
    read = read_whole if reading == WHOLE else reader_of(reading)
    pipes = pipes and reading != WHOLE
    encoding, digests = source.format.encoding, source.digests
    with open_input(source.path, pipes=pipes, encoding=encoding, digests=digests) as stream:
        yield from read(replace(source, stream=stream))


def class_folder(path: str) -> list[Part]:
    """Return the files of a folder in which names of files or sub-folders are labels.

    The folder has one of two forms:

    - One sub-folder per class. Each file in it is an example.
    - One file per class: ``<class>.txt`` (or ``.txt.gz``, ``.fasta``). Each line is an example, or
      each record of a FASTA file.

    The files are sorted by label, then by name. Hidden names, folders such as ``unsup``, and lists
    of links such as aclImdb's ``urls_pos.txt`` are ignored.

    Raises:
        DataError: If the folder has neither of the two forms, or both.
    """
    entries, name = _entries(path), display_name(path)
    folders = [each for each, mode in entries if stat.S_ISDIR(mode)]
    classes = [each for each in folders if each not in UNLABELLED]
    lists_of_links = {f"urls_{folder}" for folder in folders}
    files = [
        each
        for each, mode in entries
        if _class_of(each) and _class_of(each) not in lists_of_links and not stat.S_ISDIR(mode)
    ]
    parts = [_part(os.path.join(path, file), "lines", _class_of(file)) for file in files] or [
        _part(os.path.join(path, label, file), WHOLE, label)
        for label in classes
        for file, _ in _entries(path, label)
    ]
    if not parts:
        raise DataError(
            f"{name}: no rows; expected one sub-folder or one file <class>.txt per class"
            + _pattern_advice(path, [each for each, _ in entries])
        )
    if classes and files:
        raise DataError(
            f"{name}: holds both sub-folders and .txt files ({display_name(files[0])}); "
            "expected one kind"
        )
    return parts


def whole_files(path: str) -> list[Part]:
    """Return a file, or all files in a folder and its sub-folders, as one sequence each.

    Raises:
        DataError: If a folder contains no files.
    """
    files = [*_files_below(path)] if os.path.isdir(path) else [path]
    if not files:
        raise DataError(f"{display_name(path)}: no files in it; expected a file per sequence")
    return [_part(file, WHOLE, None) for file in files]


def saved_dataset(path: str) -> list[Part]:
    """Return the .arrow files of a folder that Hugging Face's ``save_to_disk`` wrote, sorted.

    Raises:
        DataError: If the folder contains no .arrow file. The message lists its sub-folders.
    """
    files = sorted(glob.glob(os.path.join(glob.escape(path), "*.arrow")))
    if not files:
        sets = sorted(x for x in os.listdir(path) if os.path.isdir(os.path.join(path, x)))
        advice = f"; give one of these: {', '.join(sets)}" if sets else ""
        raise DataError(f"{display_name(path)}: holds no file .arrow{advice}")
    return [Part(file, "arrow") for file in files]


def holds_whole_files(path: str) -> bool:
    """Return True if a path is a folder with at least one sub-folder.

    Each file in such sub-folders is one sequence.
    """
    return os.path.isdir(path) and any(stat.S_ISDIR(mode) for _, mode in _entries(path))


def _part(path: str, reading: str, label: str | None) -> Part:
    is_fasta = resolve_format(path, "auto") == "fasta"
    return Part(path, "fasta" if is_fasta else reading, label)


def _files_below(folder: str) -> Iterator[str]:
    for name, mode in _entries(folder):
        path = os.path.join(folder, name)
        yield from _files_below(path) if stat.S_ISDIR(mode) else [path]


def _entries(*path: str) -> list[tuple[str, int]]:
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
