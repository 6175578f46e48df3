"""Reads files of labelled sequences: one module per format, all behind `read_rows`."""

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, TypeAlias, cast

from seqtrain.config.formats import MEMORY, resolve_format
from seqtrain.data.examples import Column, Example, ReadOptions, RowProblems
from seqtrain.data.readers.cells import read_jsonl
from seqtrain.data.readers.delimited import read_delimited
from seqtrain.data.readers.memory import MemoryTable, held_table, read_memory
from seqtrain.data.readers.npz import labels_beside, read_npz
from seqtrain.data.readers.opening import BUFFER, READ_FILES, RowSource, open_input
from seqtrain.data.readers.parquet import arrow_files, read_arrow
from seqtrain.data.readers.time_steps import (
    AT_ONCE,
    Rows,
    SequencesOfRows,
    ids_come_back,
)
from seqtrain.data.readers.txt import (
    Parts,
    list_folder,
    read_fasta,
    read_fasttext,
    read_ts,
    read_txt,
    read_unlabelled,
    read_whole,
    whole_files,
)
from seqtrain.errors import DataError
from seqtrain.files.reading import path_problems
from seqtrain.text import display_name

__all__ = ["Column", "ReadOptions", "digest_of", "read_rows", "read_table"]

READERS: dict[str, Callable[[RowSource], Iterator[Example | Rows]]] = {
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
    "whole": read_whole,
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


def _folder(path: str) -> Parts:
    return (arrow_files if resolve_format(path, "auto") == "arrow" else list_folder)(path)


def _sequences(
    path: str, options: ReadOptions, problems: RowProblems, labelled: bool
) -> Iterator[Example]:
    is_at_hand = os.path.isfile(path) or options.format in ("memory", "arrow")
    is_complete = is_at_hand or (path == "-" and sys.stdin is not None and sys.stdin.seekable())
    at_once = AT_ONCE if is_complete else 1  # of a stream, more may come much later
    source = RowSource(None, options, problems, labelled, at_once)
    if options.steps is None:
        return cast("Iterator[Example]", _rows(path, source))
    come_back = None
    if is_at_hand:
        ids = replace(options, header=True, order=None, steps={}, static=None, label=None)
        ids = replace(ids, group=None, keep=())
        read = RowSource(None, ids, RowProblems(problems.name), False, at_once)
        come_back = ids_come_back(_rows(path, read))
    return SequencesOfRows(source, come_back).of(_rows(path, source))


def _rows(path: str, source: RowSource) -> Iterator[Example | Rows]:
    options, problems = source.options, source.problems
    parts: Parts = {path: (options.format, None)}
    whole = options.format == "files"
    is_folder = options.format in ("txt", "arrow") and os.path.isdir(path)
    if whole or is_folder:
        parts = whole_files(path) if whole else _folder(path)
    for file, (format, label) in parts.items():
        if whole or is_folder:
            problems.file = display_name(file)
        pipes, encoding = not (source.labelled or whole), options.encoding
        labelled = source.labelled and not label
        opened: Any = open_input(file, pipes=pipes, encoding=encoding)
        if options.format == "memory":
            opened = nullcontext(held_table(file))
        try:
            with opened as stream:
                for row in READERS[format](replace(source, stream=stream, labelled=labelled)):
                    if (whole or is_folder) and isinstance(row, Example):
                        own = row.labels if label is None else (label,)
                        row = row._replace(file=problems.file, labels=own)
                    yield row
        except DataError as error:
            if not whole or options.bad_rows != "blank":
                raise
            problem = error.problems[0].removeprefix(problems.file).partition(": ")[2]
            yield Example("", None, 1, problems.file, problem=problem)
