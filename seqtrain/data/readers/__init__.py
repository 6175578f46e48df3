"""Reads files of labelled sequences: one module per format, all behind `read_rows`."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from seqtrain.config.formats import MEMORY, resolve_format
from seqtrain.data.examples import Column, Example, ReadOptions, RowProblems
from seqtrain.data.readers.delimited import read_delimited
from seqtrain.data.readers.jsonl import read_jsonl
from seqtrain.data.readers.memory import MemoryTable, held_table, read_memory
from seqtrain.data.readers.npz import labels_beside, read_npz
from seqtrain.data.readers.opening import BUFFER, RowSource, note_digest, open_input
from seqtrain.data.readers.parquet import arrow_files, read_arrow
from seqtrain.data.readers.time_steps import (
    AT_ONCE,
    SequencesOfRows,
    ids_come_back,
    rows_of,
    with_static,
)
from seqtrain.data.readers.timeseries import read_ts
from seqtrain.data.readers.txt import (
    Reader,
    list_folder,
    read_fasta,
    read_fasttext,
    read_txt,
    read_unlabelled,
    read_whole_files,
)
from seqtrain.errors import DataError
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
}
JUMPING = ("npz", "parquet", "arrow")
"""Formats that aren't read from their beginning to their end."""
Digests: TypeAlias = dict[str, str]
Files: TypeAlias = Sequence[tuple[str, ReadOptions]]
"""Paths, each with how it is read."""


def read_rows(
    path: str,
    options: ReadOptions,
    problems: RowProblems | None = None,
    *,
    labelled: bool = True,
    digests: Digests | None = None,
) -> Iterator[Example]:
    """Yield an example for each row of a file, in order; memory stays flat, npz excepted.

    Args:
        path: a file (decompressed where its name ends in .gz or .zst); a folder for formats txt
            and files; and without `labelled` also `-` for standard input, or a named pipe.
        options: how to read it.
        problems: bad rows noted so far, which damage is reported with.
        labelled: every row must have its label; else (prediction) labels may be absent.
        digests: gets the SHA-256 of the file under its path, once all of it was read; a file that
            held something else before is a DataError.

    Raises:
        DataError: the file can't be read on, or is labelled and has no rows.
    """
    problems = problems or RowProblems(display_name(path))
    options.check_format(problems.name)
    rows = 0
    for example in _sequences(path, options, problems, labelled, digests):
        rows += 1
        yield example
    if labelled and not rows:
        raise DataError(f"{problems.name}: no rows; expected one labelled sequence per row")


def read_table(table: MemoryTable, options: ReadOptions) -> Iterator[Example]:
    """Yield an example for each row of a table, labelled or not; it is held as long as this."""
    yield from read_rows(table.path, options, RowProblems(table.name), labelled=False)


def digest_of(path: str) -> str:
    """Return the SHA-256 of a file, or of what is read of a folder, in hexadecimal."""
    if path.startswith(MEMORY):
        return held_table(path).digest
    if os.path.isdir(path):
        return _digest_of_folder(path, {file: digest_of(file) for file in _folder(path)})
    total = hashlib.sha256()
    for file in filter(None, (path, labels_beside(path))):
        with open_input(file, raw=True) as stream:
            while block := stream.read(BUFFER):
                total.update(block)
    return total.hexdigest()


def _digest_of_folder(folder: str, digests: Digests) -> str:
    total = hashlib.sha256()
    for file, digest in digests.items():
        name = os.fsencode(os.path.relpath(file, folder)).replace(os.fsencode(os.sep), b"/")
        total.update(b"%b\0%b\n" % (name, digest.encode()))
    return total.hexdigest()


def _folder(path: str) -> dict[str, Reader]:
    return (arrow_files if resolve_format(path, "auto") == "arrow" else list_folder)(path)


def _sequences(
    path: str, options: ReadOptions, problems: RowProblems, labelled: bool, digests: Digests | None
) -> Iterator[Example]:
    rows = _rows(path, options, problems, labelled, digests)
    if options.steps is None:
        return rows if options.static is None else with_static(rows, options.static)
    come_back, at_once = None, 1  # of a stream, more may come much later
    if os.path.isfile(path) or options.format in ("memory", "arrow"):
        ids = replace(options, header=True, order=None, steps={}, static=None, group=None, keep=())
        read = _rows(path, ids, RowProblems(problems.name), labelled=False)
        at_once = AT_ONCE
        come_back = ids_come_back(rows_of(read, at_once))
    sequences = SequencesOfRows(options, come_back, labelled=labelled)
    return sequences.of(rows_of(rows, at_once))


def _rows(
    path: str,
    options: ReadOptions,
    problems: RowProblems,
    labelled: bool,
    digests: Digests | None = None,
) -> Iterator[Example]:
    if options.format == "files":
        yield from read_whole_files(path, options, problems)
    elif options.format == "memory":
        table = held_table(path)
        yield from read_memory(RowSource(table, options, problems, labelled))
        if digests is not None:
            note_digest(digests, path, table.digest)
    elif options.format in ("txt", "arrow") and os.path.isdir(path):
        parts: Digests = {}
        for file, read in _folder(path).items():
            problems.file = display_name(file)
            for row in _opened(file, read, options, problems, labelled, parts):
                yield row._replace(file=problems.file)
        if digests is not None:
            note_digest(digests, path, _digest_of_folder(path, parts))
    else:
        yield from _opened(path, READERS[options.format], options, problems, labelled, digests)


def _opened(
    path: str,
    read: Reader,
    options: ReadOptions,
    problems: RowProblems,
    labelled: bool,
    digests: Digests | None,
) -> Iterator[Example]:
    jumping = options.format in JUMPING
    if jumping and digests is not None:
        note_digest(digests, path, digest_of(path))
        digests = None
    pipes, encoding = not labelled and not jumping, "" if jumping else options.encoding
    with open_input(path, pipes=pipes, digests=digests, encoding=encoding) as stream:
        yield from read(RowSource(stream, options, problems, labelled))
