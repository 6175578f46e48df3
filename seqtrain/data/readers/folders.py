"""Folders of data files: which files they hold, and the label that a file's place gives."""

import glob
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from seqtrain.errors import DataError
from seqtrain.files.formats import resolve_format
from seqtrain.files.reading import path_problem, uncompressed
from seqtrain.text import display_name

UNLABELLED = ("unsup", "unlabelled", "unlabeled")
"""Names of folders whose files belong to no class."""
WHOLE = "whole"
"""Reading of a part whose file is one sequence."""


@dataclass(frozen=True)
class Part:
    """A file that holds rows of an input.

    Attributes:
        path: The file.
        reading: Name of its format, or `WHOLE`.
        label: Label of all of its rows, or None if the rows have labels.
    """

    path: str
    reading: str
    label: str | None = None


def class_folder(path: str) -> list[Part]:
    """Return the files of a folder whose names are labels, sorted by name.

    The folder has either a sub-folder per class, with a file per example, or a file
    ``<class>.txt`` (or ``.txt.gz``, ``.fasta``) per class, with an example per line. FASTA files
    have an example per record. Hidden names and folders such as ``unsup`` don't count. Lists of
    links such as aclImdb's ``urls_pos.txt`` don't count either.

    Raises:
        DataError: If the folder has neither, or both.
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
    if not classes and not files:
        raise DataError(
            f"{name}: no rows; expected one sub-folder or one file <class>.txt per class"
            + _pattern_advice(path, [each for each, _ in entries])
        )
    if classes and files:
        raise DataError(
            f"{name}: holds both sub-folders and .txt files ({display_name(files[0])}); "
            "expected one kind"
        )
    if files:
        return [_part(os.path.join(path, file), "lines", _class_of(file)) for file in files]
    return [
        _part(os.path.join(path, label, file), WHOLE, label)
        for label in classes
        for file, _ in _entries(path, label)
    ]


def whole_files(path: str) -> list[Part]:
    """Return a file, or each file below a folder, as a sequence each."""
    files = [*_files_below(path)] if os.path.isdir(path) else [path]
    if not files:
        raise DataError(f"{display_name(path)}: no files in it; expected a file per sequence")
    return [_part(file, WHOLE, None) for file in files]


def saved_dataset(path: str) -> list[Part]:
    """Return the files that Hugging Face's ``save_to_disk`` wrote.

    Raises:
        DataError: If the folder holds several data sets, or none.
    """
    files = sorted(glob.glob(os.path.join(glob.escape(path), "*.arrow")))
    if not files:
        sets = sorted(x for x in os.listdir(path) if os.path.isdir(os.path.join(path, x)))
        advice = f"; give one of these: {', '.join(sets)}" if sets else ""
        raise DataError(f"{display_name(path)}: holds no file .arrow{advice}")
    return [Part(file, "arrow") for file in files]


def holds_whole_files(path: str) -> bool:
    """Return True if a path is a folder of folders, whose files are a sequence each."""
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
    """Return the label that a file's name gives, or an empty text."""
    stem, ending = os.path.splitext(uncompressed(name))
    return stem if ending == ".txt" or resolve_format(name, "auto") == "fasta" else ""


def _pattern_advice(path: str, names: list[str]) -> str:
    for name in names:
        if resolve_format(name, "auto") is not None:
            ending = name[len(os.path.splitext(uncompressed(name))[0]) :]
            pattern = display_name(os.path.join(path, "*" + ending))
            return f"; for its {ending} files give '{pattern}'"
    return ""
