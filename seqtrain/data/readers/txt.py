"""Format txt: lines of `label<TAB>text`, or a folder whose names are the labels.

In prediction also lines without labels, and files that are a sequence each.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from seqtrain.config.formats import resolve_format
from seqtrain.data.examples import (
    BadRow,
    Example,
    Numbered,
    ReadOptions,
    RowProblems,
    parse_rows,
    without_blank_rows,
)
from seqtrain.data.readers.opening import (
    RowSource,
    file_problem,
    open_input,
    read_blocks,
    without_end,
)
from seqtrain.errors import DataError
from seqtrain.files.compressed import uncompressed
from seqtrain.text import display_name

ReadRows: TypeAlias = Callable[[RowSource], Numbered]
Digests: TypeAlias = dict[str, str] | None


def read_txt(source: RowSource) -> Iterator[Example]:
    """Read lines of label, tab, text; in prediction a line without a tab is text alone."""

    def parse(line: str) -> tuple[Any, ...]:
        label, tab, text = line.partition("\t")
        if tab:
            return source.sequence(text), source.label(label)
        if source.labelled:
            raise BadRow("no tab; expected label<TAB>text")
        return source.sequence(line), None

    lines = source.lines()
    return parse_rows(without_blank_rows(lines) if source.labelled else lines, parse)


def read_unlabelled(source: RowSource) -> Iterator[Example]:
    """Read one sequence per line; an empty line is an empty sequence (prediction)."""
    if source.labelled:
        raise DataError("format lines holds no labels; it is for prediction alone")

    def parse(text: str) -> tuple[Any, ...]:
        if source.options.kind == "features" and text.startswith("{"):
            raise BadRow("found an object, expected a list of vectors; --input-format jsonl?")
        return source.sequence(text), None

    return parse_rows(source.lines(), parse)


def read_folder(
    path: str, options: ReadOptions, problems: RowProblems, digests: Digests = None
) -> Iterator[Example]:
    """Read a folder, in the order of its names; names that begin with a dot are left out.

    Args:
        path: holds either one sub-folder per class, with one file per example, or one file
            `<class>.txt` (or `.txt.gz`, `.txt.zst`) per class, with one example per line.
        options: kind of the text.
        problems: where damage is reported, under the name of the file that has it.
        digests: gets the SHA-256 of each file.

    Raises:
        DataError: where the folder holds neither, or both.
    """
    for file, label, read_rows in list_folder(path):
        yield from _read_file(file, label, read_rows, options, problems, digests)


def list_folder(path: str) -> list[tuple[str, str, ReadRows]]:
    """Return the files that are read of a folder in their order: path, class, what reads its rows.

    Raises:
        DataError: where the folder holds neither sub-folders nor files of classes, or both.
    """
    entries = _entries(path)
    classes = [name for name, mode in entries if stat.S_ISDIR(mode)]
    files = [name for name, mode in entries if not stat.S_ISDIR(mode) and _stem(name)]
    name = display_name(path)
    if not classes and not files:
        raise DataError(
            f"{name}: no rows; expected one sub-folder or one file <class>.txt per class"
            + _pattern(path, [name for name, _ in entries])
        )
    if classes and files:
        raise DataError(
            f"{name}: holds both sub-folders and .txt files ({display_name(files[0])}); "
            "expected one kind"
        )
    if files:
        return [(os.path.join(path, file), _stem(file), RowSource.lines) for file in files]
    return [
        (os.path.join(path, label, file), label, _whole)
        for label in classes
        for file, _ in _entries(os.path.join(path, label))
    ]


def read_files(path: str, options: ReadOptions, problems: RowProblems) -> Iterator[Example]:
    """Read a file, or each file of a folder and of the folders in it, as one sequence (prediction).

    Raises:
        DataError: the folder holds no file; or a file can't be read, and needn't keep its row.
    """
    files = list(_files_below(path)) if os.path.isdir(path) else [path]
    if not files:
        raise DataError(f"{display_name(path)}: no files in it; expected a file per sequence")
    for file in files:
        try:
            for example in _read_file(file, "", _whole, options, problems):
                yield example._replace(label=None)
        except DataError as error:
            if options.bad_rows != "blank":
                raise
            where = re.compile(re.escape(problems.file) + r"(:[0-9]+)?: ")
            problem = where.sub("", error.problems[0], count=1)
            yield Example("", None, 1, problems.file, problem=problem)


def holds_whole_files(path: str) -> bool:
    """Tell whether the rows of a training file are files: those in the sub-folders of a folder."""
    return os.path.isdir(path) and any(stat.S_ISDIR(mode) for _, mode in _entries(path))


def _read_file(
    path: str,
    label: str,
    read_rows: ReadRows,
    options: ReadOptions,
    problems: RowProblems,
    digests: Digests = None,
) -> Iterator[Example]:
    """Read one file of a class."""
    problems.file = display_name(path)
    with open_input(path, digests=digests) as stream:
        source = RowSource(stream, options, problems)
        yield from parse_rows(
            read_rows(source), lambda text: (source.sequence(text), label), problems.file
        )


def _whole(source: RowSource) -> Numbered:
    """Yield a whole file as one row, without its last line end."""
    blocks = read_blocks(source.stream, source.problems, keep_ends=True)
    yield 1, without_end("".join("".join(lines) for lines in blocks))


def _files_below(folder: str) -> Iterator[str]:
    """Yield the files of a folder and of those in it, in the order of their names."""
    for name, mode in _entries(folder):
        path = os.path.join(folder, name)
        if stat.S_ISDIR(mode):
            yield from _files_below(path)
        else:
            yield path


def _entries(path: str) -> list[tuple[str, int]]:
    """List a folder's names in order, with the mode of each."""
    try:
        names = sorted(name for name in os.listdir(path) if not name.startswith("."))
        return [(name, os.stat(os.path.join(path, name)).st_mode) for name in names]
    except OSError as error:
        raise file_problem(error.filename or path, error) from None


def _stem(name: str) -> str:
    """Return the class a `<class>.txt` file is named after, or nothing for other files."""
    name = uncompressed(name)
    return name.removesuffix(".txt") if name.endswith(".txt") else ""


def _pattern(path: str, names: list[str]) -> str:
    """Return a hint at the pattern that names a folder's data files; of none nothing."""
    for name in names:
        if resolve_format(name, "auto") is not None:
            ending = name[len(os.path.splitext(uncompressed(name))[0]) :]
            return (
                f"; for its {ending} files give '{display_name(os.path.join(path, '*' + ending))}'"
            )
    return ""
