"""Files with the labels of recordings: a row for each recording, found by its name."""

import glob
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from seqtrain.errors import DataError
from seqtrain.files.reading import uncompressed
from seqtrain.proposal.conversions import (
    can_be_converted,
    reading_options,
    table_conversion_lines,
)
from seqtrain.proposal.file_names import FEWEST_FILES
from seqtrain.proposal.first_lines import holds_numbers
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.reading import ReadingProgress, read_alone
from seqtrain.proposal.shell import init_line
from seqtrain.tables.blocks import FILE, FOLDER
from seqtrain.tables.conversions.forms import conversion
from seqtrain.tables.sources import matching_files
from seqtrain.text import display_name, quote

MOSTLY_DIFFERENT = 0.8
"""Smallest share of different keys: a few rows may be there twice."""
RECORDING = "recording"
"""Name of the column with the key of a recording, if that of the file can't be used."""
MOST_IN_LIST = 8
"""Largest number of files that a config lists in place of a pattern such as *.csv."""


class LabelFile(NamedTuple):
    """A file with a row for each recording.

    Attributes:
        pattern: Value of data.path: a named group of the path of a recording is its key.
        join: Entry of data.join.
        labels: Names of the columns but the key.
    """

    pattern: str
    join: dict[str, Any]
    labels: list[str]


def label_file(
    path: str, recordings: Sequence[str], own: Sequence[str], progress: ReadingProgress
) -> LabelFile | None:
    """Return a file as the one with the labels of recordings, or None if it isn't.

    The key of each row is in one column, nearly without repeats. More than half of the recordings
    have a row, and no two recordings have the same key.

    Args:
        path: The file.
        recordings: Paths of the recordings.
        own: Names of the columns of recordings.
        progress: Reports the number of rows.
    """
    table = read_alone(path, progress)
    for column in table.columns:
        if not isinstance(column.name, str) or column.distinct < MOSTLY_DIFFERENT * table.rows:
            continue
        known = {str(value) for value in column.values}
        is_name = column.name.isidentifier() and column.name not in (FILE, FOLDER, *own)
        group = column.name if is_name else RECORDING
        depth = min(value.count("/") for value in known)
        for pattern in key_patterns(group, depth, recordings[0]):
            keys = set(filter(None, (_key_of(each, pattern, depth) for each in recordings)))
            if len(keys) == len(recordings) < 2 * len(keys & known):
                on: Any = group if is_name else {"left": group, "right": column.name}
                others = [x.name_text for x in table.columns if x is not column]
                return LabelFile(pattern, {"file": path, "on": on}, others)
    return None


def refuse_other_names(path: str, recordings: Sequence[str], given: Sequence[str]) -> None:
    """Raise a DataError if only the form of a file of labels hides the names of recordings in it.

    The names have other folders or endings there, or the columns have no names.

    Args:
        path: The file.
        recordings: Paths of the recordings.
        given: The recordings as the user gave them.

    Raises:
        DataError: The error has a command that writes the names as the recordings have them.
    """
    stems = {_stem(each) for each in recordings}
    table = read_alone(path, ReadingProgress())
    if not can_be_converted(table):
        return
    for column in table.columns:
        values = list(map(str, column.values))
        known = [_stem(value) for value in values]
        if len(stems) != len(recordings) or len(stems) >= 2 * len(stems.intersection(known)):
            continue
        if len(set(known)) < MOSTLY_DIFFERENT * table.rows:
            continue
        has_names = isinstance(column.name, str)
        if known == values and has_names:  # something else is wrong
            continue
        options: dict[str, Any] = {"column": [column.name_text]}
        if has_names:
            found, advice, form = "with other folders or endings", "to write them without", "cells"
            options["rule"] = "stems"
        else:
            found, advice, form = "below no name of a column", "to write names of columns", "named"
            options["name"] = RECORDING
        command, target = conversion(form, path, **options, **reading_options(table))
        raise DataError(
            f"{display_name(path)}: {column.shown} has names of recordings {found}, such as "
            f"{quote(values[0], 40)}; {advice}:",
            f"  {command}",
            f"  seqtrain init {shlex.join(given)} {target}",
        )


def refuse_labelled_texts(path: str, folder: str, options: InitOptions) -> None:
    """Raise a DataError if a file has a row with the label of each text in a folder.

    Args:
        path: The file.
        folder: The folder. A file .txt in it is a text, unless the user gives another format.
        options: Options of the user.

    Raises:
        DataError: The error has a command that writes the texts beside their labels. If their
            lines are numbers, it has the one that reads them as recordings.
    """
    if options.get("format", "txt") != "txt":
        return
    texts = {_stem(name) for name in os.listdir(folder) if name.endswith(".txt")}
    if len(texts) < FEWEST_FILES:
        return
    table = read_alone(path, ReadingProgress())
    if not can_be_converted(table):
        return
    for column in table.columns:
        known = {_stem(str(value)) for value in column.values}
        if not isinstance(column.name, str) or 2 * len(texts & known) <= len(texts):
            continue
        shown = f"{display_name(path)}: {column.shown} has names of the texts in "
        shown += display_name(folder)
        first = min(name for name in os.listdir(folder) if name.endswith(".txt"))
        if holds_numbers(os.path.join(folder, first)):
            raise DataError(
                f"{shown}, which hold lines of numbers; if a line is a time step:",
                init_line(folder, path, "--format", "csv"),
            )
        contents = {"column": [column.name], "folder": folder}
        raise DataError(
            f"{shown}; to write each text beside its label:",
            *table_conversion_lines(table, "contents", **contents),
        )


def _stem(path: str) -> str:
    """Return the name of a file without its folders, also those of Windows, and its endings."""
    return os.path.splitext(uncompressed(re.split(r"[/\\]", path)[-1]))[0]


def key_patterns(group: str, depth: int, recording: str) -> Iterator[str]:
    """Yield the ways to read the key of a recording from its path, as values of data.path.

    The key is the name, the name without its ending, or the last number in it without zeros before.

    Args:
        group: Name of the key.
        depth: Number of folders in keys such as s1/walk.csv.
        recording: Path of a recording.
    """
    name = "[^/]+" + "/[^/]+" * depth
    stem = os.path.splitext(uncompressed(recording))[0]
    ending = recording.removeprefix(stem)  # of a compressed file, both: .csv.gz
    yield f"(?P<{group}>{name})$"
    yield rf"(?P<{group}>{name}){re.escape(ending)}$"
    if depth == 0:
        yield f"0*(?P<{group}>[0-9]+)[^0-9/]*{re.escape(ending)}$"


def _key_of(path: str, pattern: str, depth: int) -> str:
    """Return the key in the path of a recording, or "" if the pattern isn't found."""
    tail = "/".join(path.split(os.sep)[-depth - 1 :])
    found: re.Match[str] | None = re.search(pattern, tail)
    if found is None:
        return ""
    key: str = found[1]
    return key


def pattern_of(recordings: Sequence[str]) -> str | None:
    """Return a pattern of names whose files are exactly some recordings, or None."""
    parts = [path.split(os.sep) for path in recordings]
    if len({len(each) for each in parts}) > 1:
        return None
    ending = glob.escape(os.path.splitext(recordings[0])[1])
    for keeps_prefix in (False, True):
        names = list[str]()
        for values in zip(*parts, strict=True):
            prefix = os.path.commonprefix(values)  # noqa: RUF071 - of characters
            if set(values) == {prefix}:
                names.append(glob.escape(prefix))
            else:
                names.append(f"{glob.escape(prefix) if keeps_prefix else ''}*")
        if names[-1].endswith("*"):
            names[-1] += ending
        pattern = os.sep.join(names)
        if matching_files(pattern) == sorted(recordings):
            return pattern
    return None


def pattern_or_list(recordings: Sequence[str]) -> str | list[str]:
    """Return the value of a split in a config: a pattern of some recordings, or all their paths.

    Few files have no pattern such as *.csv: other files of the folder, such as predictions that are
    written later, would match it.
    """
    pattern = pattern_of(recordings)
    if pattern is None:
        return list(recordings)
    is_any = os.path.splitext(os.path.basename(pattern))[0] == "*"
    if is_any and len(recordings) <= MOST_IN_LIST:
        return list(recordings)
    return pattern
