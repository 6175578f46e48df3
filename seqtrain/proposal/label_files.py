"""Files with the labels of recordings: a row for each recording, found by its name."""

import glob
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from seqtrain.files.reading import uncompressed
from seqtrain.proposal.options import FileLayout, InitOptions
from seqtrain.proposal.reading import ReadingProgress, read_table
from seqtrain.tables.blocks import FILE, FOLDER
from seqtrain.tables.sources import matching_files

RECORDING = "recording"
"""Name of the column with the key of a recording, if that of the file can't be used."""


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

    The key of each row is in one column, without repeats. More than half of the recordings have a
    row, and no two recordings have the same key.

    Args:
        path: The file.
        recordings: Paths of the recordings.
        own: Names of the columns of recordings.
        progress: Reports the number of rows.
    """
    table = read_table([path], FileLayout({}, InitOptions()), progress, is_train=False)
    for column in table.columns:
        if not isinstance(column.name, str) or column.distinct != table.rows:
            continue
        known = {str(value) for value in column.values}
        is_name = column.name.isidentifier() and column.name not in (FILE, FOLDER, *own)
        group = column.name if is_name else RECORDING
        depth = min(value.count("/") for value in known)
        for pattern in key_patterns(group, depth, recordings[0]):
            keys = set(filter(None, (_key_of(each, pattern, depth) for each in recordings)))
            if len(keys) == len(recordings) < 2 * len(keys & known):
                on: Any = group if is_name else {"left": group, "right": column.name}
                others = [str(x.name) for x in table.columns if x is not column]
                return LabelFile(pattern, {"file": path, "on": on}, others)
    return None


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
