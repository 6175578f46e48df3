"""Reads files of labelled sequences: one module per format, all behind `read_rows`."""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, TypeAlias

from seqtrain.config.formats import MEMORY, resolve_format
from seqtrain.data.examples import Column, Example, ReadOptions, RowProblems
from seqtrain.data.readers.delimited import read_delimited
from seqtrain.data.readers.jsonl import read_jsonl
from seqtrain.data.readers.memory import MemoryTable, held_table, read_memory
from seqtrain.data.readers.npz import labels_beside, read_npz
from seqtrain.data.readers.opening import BUFFER, READ_FILES, RowSource, open_input
from seqtrain.data.readers.parquet import arrow_files, read_arrow
from seqtrain.data.readers.time_steps import (
    AT_ONCE,
    SequencesOfRows,
    ids_come_back,
    rows_of,
)
from seqtrain.data.readers.txt import (
    Reader,
    list_folder,
    read_fasta,
    read_fasttext,
    read_ts,
    read_txt,
    read_unlabelled,
    whole_files,
)
from seqtrain.errors import DataError
from seqtrain.files.reading import path_problems
from seqtrain.text import display_name

__all__ = ["Column", "ReadOptions", "digest_of", "read_rows", "read_table"]

READERS: dict[str, Reader] = {
    "csv": read_delimited,
    "tsv": read_delimited,
    "jsonl": read_jsonl,
    "fasttext": read_fasttext,
    "txt": read_txt,
    "ts": read_ts,
    "npz": read_npz,
    "parquet": read_arrow,
    "arrow": read_arrow,
    "fasta": read_fasta,
    "lines": read_unlabelled,
    "memory": read_memory,
}
Digests: TypeAlias = dict[str, str]
Files: TypeAlias = Sequence[tuple[str, ReadOptions]]
"""Paths, each with how it is read."""


def read_rows(
    path: str,
    options: ReadOptions,
    problems: RowProblems | None = None,
    *,
    labelled: bool = True,
) -> Iterator[Example]:
    """Yield an example for each row of a file, in order; memory stays flat, npz excepted.

    Args:
        path: a file (decompressed where its name ends in .gz or .zst); a folder for formats txt
            and files; and without `labelled` also `-` for standard input, or a named pipe.
        options: how to read it.
        problems: bad rows noted so far, which damage is reported with.
        labelled: every row must have its label; else (prediction) labels may be absent.

    Raises:
        DataError: the file can't be read on, or is labelled and has no rows.
    """
    problems = problems or RowProblems(display_name(path))
    options.check_format(problems.name)
    rows = 0
    for example in _sequences(path, options, problems, labelled):
        rows += 1
        yield example
    if labelled and not rows:
        raise DataError(f"{problems.name}: no rows; expected one labelled sequence per row")


def read_table(table: MemoryTable, options: ReadOptions) -> Iterator[Example]:
    """Yield an example for each row of a table, labelled or not; it is held as long as this."""
    yield from read_rows(table.path, options, RowProblems(table.name), labelled=False)


@contextmanager
def unchanged(paths: Iterable[str]) -> Iterator[None]:
    """Refuse, by DataError, files that change until the end; `digest_of` knows what was read."""
    before = {path: _stamps(path) for path in paths}
    token = READ_FILES.set({})
    try:
        yield
    finally:
        READ_FILES.reset(token)
    for path, stamps in before.items():
        if _stamps(path) != stamps:
            raise was_changed(path)


def was_changed(path: str) -> DataError:
    """Return the error that says so of a file."""
    advice = "start again once nothing writes to it"
    return DataError(f"{display_name(path)}: was changed while it was read; {advice}")


def digests_of(paths: Iterable[str]) -> Digests:
    """Return what `digest_of` does, by path."""
    return {path: digest_of(path) for path in paths}


def digest_of(path: str) -> str:
    """Return the SHA-256 of a file, or of what is read of a folder, in hexadecimal.

    In a block of `unchanged` a file that was read has it already.
    """
    if path.startswith(MEMORY):
        return held_table(path).digest
    read_files = READ_FILES.get() or {}
    if path in read_files and not labels_beside(path):
        return read_files[path]
    total = hashlib.sha256()
    for file in _files_at(path):
        if os.path.isdir(path):
            name = os.fsencode(os.path.relpath(file, path)).replace(os.fsencode(os.sep), b"/")
            total.update(b"%b\0%b\n" % (name, digest_of(file).encode()))
            continue
        with open_input(file, raw=True) as stream:
            while block := stream.read(BUFFER):
                total.update(block)
    return total.hexdigest()


def _stamps(path: str) -> list[tuple[str, int, int]]:
    """Return the sizes and times of the files that are read; a table knows itself if it changes."""
    found = []
    for file in () if path.startswith(MEMORY) else _files_at(path):
        with path_problems(file, DataError):
            stat = os.stat(file)
        found.append((file, stat.st_size, stat.st_mtime_ns))
    return found


def _files_at(path: str) -> list[str]:
    return [*_folder(path)] if os.path.isdir(path) else [*filter(None, (path, labels_beside(path)))]


def _folder(path: str) -> dict[str, Reader]:
    return (arrow_files if resolve_format(path, "auto") == "arrow" else list_folder)(path)


def _sequences(
    path: str, options: ReadOptions, problems: RowProblems, labelled: bool
) -> Iterator[Example]:
    rows = _rows(path, options, problems, labelled)
    if options.steps is None:
        return rows
    come_back, at_once = None, 1  # of a stream, more may come much later
    if os.path.isfile(path) or options.format in ("memory", "arrow"):
        ids = replace(options, header=True, order=None, steps={}, static=None, group=None, keep=())
        read = _rows(path, ids, RowProblems(problems.name), labelled=False)
        at_once = AT_ONCE
        come_back = ids_come_back(rows_of(read, at_once))
    sequences = SequencesOfRows(options, come_back, labelled=labelled)
    return sequences.of(rows_of(rows, at_once))


def _rows(
    path: str, options: ReadOptions, problems: RowProblems, labelled: bool
) -> Iterator[Example]:
    whole, folder = options.format == "files", False
    if whole:
        files = whole_files(path)
    else:
        folder = options.format in ("txt", "arrow") and os.path.isdir(path)
        files = _folder(path) if folder else {path: READERS[options.format]}
    for file, read in files.items():
        if whole or folder:
            problems.file = display_name(file)
        try:
            with _opened(file, options, pipes=not labelled and not whole) as stream:
                for row in read(RowSource(stream, options, problems, labelled)):
                    yield row._replace(file=problems.file) if whole or folder else row
        except DataError as error:
            if not whole or options.bad_rows != "blank":
                raise
            where = re.compile(re.escape(problems.file) + r"(:[0-9]+)?: ")
            problem = where.sub("", error.problems[0], count=1)
            yield Example("", None, 1, problems.file, problem=problem)


def _opened(file: str, options: ReadOptions, *, pipes: bool) -> AbstractContextManager[Any]:
    if options.format == "memory":
        return nullcontext(held_table(file))
    return open_input(file, pipes=pipes, encoding=options.encoding)
