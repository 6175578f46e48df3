"""Files and folders as sources of rows."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from seqtrain.data.examples import Example
from seqtrain.data.read_options import STDIN, Column, FileFormat, Schema
from seqtrain.data.readers.folders import WHOLE, Part, class_folder, saved_dataset, whole_files
from seqtrain.data.readers.npz import labels_file
from seqtrain.data.readers.opening import file_digest, open_input
from seqtrain.data.readers.plain import read_whole
from seqtrain.data.readers.row_source import RowSource
from seqtrain.data.readers.step_cells import Rows
from seqtrain.errors import DataError
from seqtrain.files.formats import FORMATS
from seqtrain.files.reading import path_problems
from seqtrain.text import display_name


@dataclass(frozen=True)
class FileSource:
    """A file or a folder as a source of rows.

    Attributes:
        path: Path; ``-`` for standard input. A file is decompressed if its name ends in .gz or
            .zst.
        format: How the file is written.
        schema: Which columns mean what.
        keep: Columns that are copied to `Example.kept`.
        bad_rows: ``"error"``, ``"drop"`` or ``"blank"``.
    """

    path: str
    format: FileFormat
    schema: Schema
    keep: Sequence[Column] = ()
    bad_rows: str = "error"

    @property
    def name(self) -> str:
        """Name for messages."""
        return display_name(self.path)

    def with_schema(self, schema: Schema) -> FileSource:
        """Return the same file, read by another schema."""
        return replace(self, schema=schema)

    def is_complete(self) -> bool:
        """Return True if the whole input is at hand, False if more may come later."""
        if self.path == STDIN:
            return sys.stdin is not None and sys.stdin.seekable()
        return os.path.isfile(self.path) or self.format.name == "arrow"

    def digest(self, known: dict[str, str] | None = None) -> str:
        """Return the SHA-256, in hexadecimal, of the file or of what is read of the folder.

        Args:
            known: Digests by path that were computed while reading.
        """
        known = known or {}
        if not os.path.isdir(self.path):
            labels = labels_file(self.path)
            if not labels:
                return known.get(self.path) or file_digest(self.path)
            both = file_digest(self.path) + file_digest(labels)
            return hashlib.sha256(both.encode()).hexdigest()
        total = hashlib.sha256()
        for part in self._parts(labelled=True):
            name = os.fsencode(os.path.relpath(part.path, self.path))
            name = name.replace(os.fsencode(os.sep), b"/")
            digest = known.get(part.path) or file_digest(part.path)
            total.update(b"%b\0%b\n" % (name, digest.encode()))
        return total.hexdigest()

    def stamps(self) -> list[tuple[str, int, int]]:
        """Return path, size and time of change of each file that is read."""
        if os.path.isdir(self.path):
            files = [part.path for part in self._parts(labelled=True)]
        else:
            files = [path for path in (self.path, labels_file(self.path)) if path]
        found = []
        for file in files:
            with path_problems(file, DataError):
                stat = os.stat(file)
            found.append((file, stat.st_size, stat.st_mtime_ns))
        return found

    def read(
        self, request: RowSource, digests: dict[str, str] | None = None
    ) -> Iterator[Example | Rows]:
        """Yield the rows of every file. Rows of files in a folder name their file.

        Args:
            request: How to read. Its stream is replaced.
            digests: Receives the SHA-256 of each file that is read from beginning to end.
        """
        is_whole = self.format.whole_files and not request.labelled
        in_folder = is_whole or os.path.isdir(self.path)
        problems = request.problems
        for part in self._parts(labelled=request.labelled):
            if in_folder:
                problems.file = display_name(part.path)
            labelled = request.labelled and part.label is None
            name = self.format.name if part.reading == WHOLE else part.reading
            source = replace(request, labelled=labelled, format=replace(self.format, name=name))
            try:
                for row in _read_part(part, source, pipes=not request.labelled, digests=digests):
                    if in_folder and isinstance(row, Example):
                        labels = row.labels if part.label is None else (part.label,)
                        row = row._replace(file=problems.file, labels=labels)
                    yield row
            except DataError as error:
                if part.reading != WHOLE or request.bad_rows == "error":
                    raise
                problem = error.problems[0].removeprefix(problems.file).partition(": ")[2]
                yield Example("", None, 1, problems.file, problem=problem)

    def _parts(self, *, labelled: bool) -> list[Part]:
        """Return the files that hold the rows."""
        if self.format.whole_files and not labelled:
            return whole_files(self.path)
        if os.path.isdir(self.path):
            if self.format.name == "txt":
                return class_folder(self.path)
            if self.format.name == "arrow":
                return saved_dataset(self.path)
        return [Part(self.path, self.format.name)]


def reader_of(format: str) -> Callable[[RowSource], Iterator[Example | Rows]]:
    """Return the function that reads files of a format, as `FORMATS` names it."""
    module, function = FORMATS[format].reader.split(".")
    reader: Any = getattr(import_module(f"seqtrain.data.readers.{module}"), function)
    return reader  # type: ignore[no-any-return]


def _read_part(
    part: Part, source: RowSource, *, pipes: bool, digests: dict[str, str] | None
) -> Iterator[Example | Rows]:
    read = read_whole if part.reading == WHOLE else reader_of(part.reading)
    pipes = pipes and part.reading != WHOLE
    encoding = source.format.encoding
    with open_input(part.path, pipes=pipes, encoding=encoding, digests=digests) as stream:
        yield from read(replace(source, stream=stream))
