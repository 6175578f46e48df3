"""Reads files of labelled sequences: one module per format, all behind `read_rows`."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
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
    list_folder,
    read_class_file,
    read_fasta,
    read_fasttext,
    read_files,
    read_txt,
    read_unlabelled,
)
from seqtrain.errors import DataError
from seqtrain.text import display_name

__all__ = ["Column", "ReadOptions", "digest_of", "read_examples", "read_rows", "read_table"]

READERS: dict[str, Callable[[RowSource], Iterator[Example]]] = {
    "csv": read_delimited,
    "tsv": read_delimited,
    "jsonl": read_jsonl,
    "memory": read_memory,
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
    for example in _read(path, options, problems, labelled, digests):
        rows += 1
        yield example
    if labelled and not rows:
        raise DataError(f"{problems.name}: no rows; expected one labelled sequence per row")


def read_examples(
    path: str, options: ReadOptions, *, labelled: bool = True, digests: Digests | None = None
) -> Iterator[Example]:
    """Yield the rows that can be used, as `read_rows` reads them.

    Raises:
        DataError: also, at the end, for all bad rows together: the first five with their lines, and
            the total; where the options drop them, only if no row is left.
    """
    problems, rows = RowProblems(display_name(path)), 0
    for example in read_rows(path, options, problems, labelled=labelled, digests=digests):
        if example.problem is None:
            rows += 1
            yield example
        else:
            problems.add(example.line, example.problem, example.file)
    if options.bad_rows == "error" or not rows:
        problems.raise_if_any()


def read_table(table: MemoryTable, options: ReadOptions) -> Iterator[Example]:
    """Yield an example for each row of a table in memory, labelled or not, as `read_rows` does."""
    yield from read_rows(table.path, options, RowProblems(table.name), labelled=False)


def digest_of(path: str) -> str:
    """Return the SHA-256 of a file, or of what is read of a folder, in hexadecimal."""
    if path.startswith(MEMORY):
        return held_table(path).digest
    if os.path.isdir(path):
        is_saved = resolve_format(path, "auto") == "arrow"
        files = arrow_files(path) if is_saved else [file for file, _, _ in list_folder(path)]
        return _digest_of_folder(path, {file: digest_of(file) for file in files})
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


def _read(
    path: str, options: ReadOptions, problems: RowProblems, labelled: bool, digests: Digests | None
) -> Iterator[Example]:
    if options.format == "files":
        yield from read_files(path, options, problems)
    elif options.format == "txt" and os.path.isdir(path):
        parts: Digests = {}
        for file in list_folder(path):
            yield from read_class_file(file, options, problems, parts)
        if digests is not None:
            note_digest(digests, path, _digest_of_folder(path, parts))
    elif options.steps is None:
        rows = _read_file(path, options, problems, labelled, digests)
        yield from rows if options.static is None else with_static(rows, options.static)
    else:
        come_back, at_once = None, 1  # of a stream, more may come much later
        if os.path.isfile(path) or options.format in ("memory", "arrow"):
            ids = replace(
                options, header=True, order=None, steps={}, static=None, group=None, keep=()
            )
            at_once = AT_ONCE
            read = _read_file(path, ids, RowProblems(problems.name), labelled=False)
            come_back = ids_come_back(rows_of(read, at_once))
        rows = _read_file(path, options, problems, labelled, digests)
        sequences = SequencesOfRows(options, come_back, labelled=labelled)
        yield from sequences.of(rows_of(rows, at_once))


def _read_file(
    path: str,
    options: ReadOptions,
    problems: RowProblems,
    labelled: bool,
    digests: Digests | None = None,
) -> Iterator[Example]:
    if options.format == "memory":
        table = held_table(path)
        yield from READERS["memory"](RowSource(table, options, problems, labelled))
        if digests is not None:
            note_digest(digests, path, table.digest)
        return
    if options.format == "arrow" and os.path.isdir(path):
        parts: Digests = {}
        for file in arrow_files(path):
            for row in _read_file(file, options, problems, labelled, parts):
                yield row._replace(file=display_name(file))
        if digests is not None:
            note_digest(digests, path, _digest_of_folder(path, parts))
        return
    jumping = options.format in JUMPING
    if jumping and digests is not None:
        note_digest(digests, path, digest_of(path))
        digests = None
    pipes, encoding = not labelled and not jumping, "" if jumping else options.encoding
    with open_input(path, pipes=pipes, digests=digests, encoding=encoding) as stream:
        yield from READERS[options.format](RowSource(stream, options, problems, labelled))
