"""Reads files of labelled sequences: one module per format, all behind `read_examples`.

Bytes → files.py (opened, decompressed) → lines.py (numbered, UTF-8) → the format → rows.py
(examples).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import BinaryIO, TypeAlias

from seqtrain.data.examples import Example, RowProblems
from seqtrain.data.readers.delimited import read_delimited
from seqtrain.data.readers.fasttext import read_fasttext
from seqtrain.data.readers.files import open_input
from seqtrain.data.readers.jsonl import read_jsonl
from seqtrain.data.readers.lines import read_plain
from seqtrain.data.readers.npz import read_npz
from seqtrain.data.readers.options import Column, ReadOptions
from seqtrain.data.readers.parquet import read_parquet
from seqtrain.data.readers.timeseries import read_ts
from seqtrain.data.readers.txt import read_files, read_folder, read_txt
from seqtrain.errors import DataError
from seqtrain.text import display_name

__all__ = ["Column", "ReadOptions", "read_examples"]

Reader: TypeAlias = Callable[[BinaryIO, ReadOptions, RowProblems, bool], Iterator[Example]]

READERS: dict[str, Reader] = {
    "csv": read_delimited,
    "tsv": read_delimited,
    "jsonl": read_jsonl,
    "fasttext": read_fasttext,
    "txt": read_txt,
    "ts": read_ts,
    "npz": read_npz,
    "parquet": read_parquet,
    "lines": read_plain,
}


def read_examples(
    path: str,
    options: ReadOptions,
    *,
    labelled: bool = True,
    stop_at_first: bool = False,
    problems: RowProblems | None = None,
) -> Iterator[Example]:
    """Yield the examples of a file in its order; memory stays flat, npz excepted.

    Args:
        path: a file (decompressed where its name ends in .gz or .zst); a folder for formats txt
            and files; and without `labelled` also `-` for standard input, or a named pipe.
        options: how to read it.
        labelled: every row must have its label; else (prediction) labels may be absent.
        stop_at_first: raise at the first bad row, after the rows before it were yielded.
        problems: where bad rows are noted, to see which were left out; None: a new one.

    Yields:
        The rows that can be used.

    Raises:
        DataError: for a file that can't be read, a labelled file without rows, and at the end
            for all bad rows together: the first five with their lines, and the total (where
            the options drop or keep them, only if none is left).
    """
    problems = problems or RowProblems(
        display_name(path),
        stop_at_first=stop_at_first and options.bad_rows != "blank",
        keeps_places=options.bad_rows == "blank",
    )
    rows = 0
    for example in _read(path, options, problems, labelled):
        rows += 1
        yield example
    if options.bad_rows == "error" or not rows:
        problems.raise_if_any()
    if labelled and not rows:
        raise DataError(f"{problems.name}: no rows; expected one labelled sequence per row")


def _read(
    path: str, options: ReadOptions, problems: RowProblems, labelled: bool
) -> Iterator[Example]:
    """Open the input and hand it to the reader of its format."""
    options.check_format(problems.name)
    if options.format == "files":
        yield from read_files(path, options, problems)
        return
    if options.format == "txt" and os.path.isdir(path):
        yield from read_folder(path, options, problems)
        return
    seekable_only = options.format in ("npz", "parquet")
    with open_input(path, pipes=not labelled and not seekable_only) as stream:
        yield from READERS[options.format](stream, options, problems, labelled)
