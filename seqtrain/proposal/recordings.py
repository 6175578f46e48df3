"""Files of sequences whose labels are elsewhere: in other files, in folders, or in names."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seqtrain.config.document import flow
from seqtrain.errors import DataError
from seqtrain.proposal.inspection import Data, read_data
from seqtrain.proposal.layouts import holds_inputs_only, name_patterns, targets_of
from seqtrain.proposal.options import INIT_COMMAND, InitOptions
from seqtrain.proposal.profile import Column
from seqtrain.proposal.reading_progress import ReadingProgress
from seqtrain.tables.blocks import FILE, LABEL
from seqtrain.tables.formats import MEMORY, columns_of_format, resolve_format
from seqtrain.tables.join import ROW
from seqtrain.text import display_name


@dataclass(frozen=True)
class Layout:
    """Place of the labels of recordings.

    Attributes:
        options: Options of the user, with the columns that follow from the layout.
        pattern: Value of data.path, or None.
        joins: Value of data.join.
    """

    options: InitOptions
    pattern: str | None = None
    joins: Sequence[dict[str, Any]] = ()


def find_layout(
    files: Sequence[str], options: InitOptions, reading: ReadingProgress
) -> Layout | None:
    """Return the layout of files whose labels are elsewhere, or None if they have their labels.

    Args:
        files: The training files, or a folder.
        options: Options of the user. With a label among them, no layout is searched.
        reading: Reports the number of rows.

    Raises:
        DataError: If several layouts are possible, or the names of files say that labels are
            elsewhere, and they are nowhere.
    """
    if files[0].startswith(MEMORY):
        return None
    if options.get("join"):
        return Layout(options, joins=options.get("join"))
    recordings = recordings_of(files)
    if options.get("path"):
        return _layout_of_pattern(files, recordings, options.get("path"), options)
    if options.named("label"):
        return None
    if recordings:
        return _layout_of_names(files, recordings, options)
    if len(files) > 1 or os.path.isdir(files[0]):
        return None
    targets = targets_of(files[0])
    if not targets:
        if holds_inputs_only(files[0]) and columns_of_format(_format(files[0])) != "none":
            raise DataError(
                f"{display_name(files[0])}: its name says that it holds no labels, and no file "
                "such as y… or …labels… is beside it; give --label COLUMN, or the file with "
                "labels: --set 'data.join=[{file: FILE, on: COLUMN}]'"
            )
        return None
    return _layout_of_targets(files[0], targets, options, reading)


def with_options(options: InitOptions, **given: Any) -> InitOptions:
    """Return options with further values, which follow from the files."""
    found = InitOptions(options.settings, **options.options)
    found.given |= given
    return found


def _format(path: str) -> str:
    return resolve_format(path, "auto") or "csv"


def recordings_of(files: Sequence[str]) -> list[str]:
    """Return the files of recordings: several tables or arrays, in a folder or by a pattern.

    A folder of .txt files, or with a sub-folder of numbers for each class, has its labels already.
    """
    if len(files) == 1 and os.path.isdir(files[0]):
        found = [os.path.join(files[0], name) for name in sorted(os.listdir(files[0]))]
        found = [file for file in found if os.path.isfile(file)]
        formats = {resolve_format(file, "auto") for file in found} - {None}
        is_one = len(formats) == 1 and formats <= {"csv", "tsv", "parquet", "npz", "jsonl"}
        return found if is_one else []
    return [*files] if len(files) > 1 else []


def _layout_of_names(
    files: Sequence[str], recordings: Sequence[str], options: InitOptions
) -> Layout | None:
    """Return the layout of recordings with the label in their names, or None.

    Raises:
        DataError: If several parts of the names may be the label.
    """
    patterns = name_patterns(recordings)
    if not patterns:
        return None
    if len(patterns) > 1:
        lines = []
        for pattern in patterns:
            setting = shlex.quote(f"data.path={flow(pattern)}")
            lines.append(f"  {INIT_COMMAND} --set {setting}")
        raise DataError(
            f"{display_name(files[0])}: several parts of the names of files may be the label; "
            "choose one:",
            *lines,
        )
    return _layout_of_pattern(files, recordings, patterns[0], options)


def _layout_of_pattern(
    files: Sequence[str], recordings: Sequence[str], pattern: str, options: InitOptions
) -> Layout:
    """Return the layout of recordings with columns in their names.

    Args:
        files: The training files, or a folder.
        recordings: The files of recordings.
        pattern: Value of data.path.
        options: Options of the user.
    """
    given: dict[str, Any] = {}
    if f"(?P<{LABEL}>" in pattern and not options.named("label"):
        given["label"] = [LABEL]
    format = _format((recordings or files)[0])
    if columns_of_format(format) != "none":
        given["id"] = options.get("id", FILE)
    if os.path.isdir(files[0]) and recordings:
        given["format"] = format
    return Layout(with_options(options, **given), pattern)


def _layout_of_targets(
    path: str, targets: Sequence[str], options: InitOptions, reading: ReadingProgress
) -> Layout | None:
    """Return the layout of a file whose labels are in another one, or None if they don't match.

    Raises:
        DataError: If several files may hold the labels.
    """
    if _format(path) == "txt":  # a sequence per line
        options = with_options(options, format="lines")
    data = read_data([path], options, reading)
    found = []
    for target in targets:
        join = _join_of(data, read_data([target], InitOptions(), reading, is_train=False), target)
        if join is not None:
            found.append(join)
    if len(found) > 1:
        lines = []
        for join in found:
            setting = shlex.quote(f"data.join={flow([join])}")
            lines.append(f"  {INIT_COMMAND} --set {setting}")
        raise DataError(f"{data.name}: several files may hold the labels; choose one:", *lines)
    return Layout(options, joins=found) if found else None


def _join_of(data: Data, target: Data, path: str) -> dict[str, Any] | None:
    """Return the value of data.join for a file of labels: by a common key, or row by row, or None.

    A key has one row per value in the file of labels.
    """
    own = {column.name: column for column in data.table.columns if isinstance(column.name, str)}
    keys = []
    for column in target.table.columns:
        is_key = isinstance(column.name, str) and column.name in own
        if (
            is_key
            and column.distinct == target.table.rows
            and _has_values_of(own[str(column.name)], column)
        ):
            keys.append(column.name)
    others = [x for x in target.table.columns if x.name not in own]
    if keys and others:
        return {"file": path, "on": keys[0]}
    return {"file": path, "on": ROW} if target.table.rows == data.table.rows else None


def _has_values_of(column: Column, key: Column) -> bool:
    """Return True if most values of a column are values of a key."""
    known = {str(value) for value in key.values}
    found = sum(str(value) in known for value in column.values)
    return 2 * found > len(column.values)
