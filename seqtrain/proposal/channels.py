"""Channels of series: in names of columns, such as acc_x_12, first in arrays, and in files."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from seqtrain.config.document import flow
from seqtrain.errors import DataError
from seqtrain.proposal.cell_kinds import are_smooth
from seqtrain.proposal.conversions import can_be_converted, table_conversion_lines
from seqtrain.proposal.facts import Facts
from seqtrain.proposal.file_names import OWNER_FILE_WORDS, inside, num_lines, words_of
from seqtrain.proposal.first_lines import first_lines
from seqtrain.proposal.nested import converted_objects
from seqtrain.proposal.options import FileLayout
from seqtrain.proposal.profile import Columns
from seqtrain.proposal.roles import FEWEST_WIDE, Roles
from seqtrain.proposal.shell import init_line
from seqtrain.proposal.table import Table
from seqtrain.proposal.wide import places_in_time, wide_columns
from seqtrain.tables.arrays import arrays_of_splits
from seqtrain.tables.blocks import TARGET_WORDS
from seqtrain.tables.cells import is_number
from seqtrain.tables.conversions.forms import conversion, conversion_lines
from seqtrain.tables.join import ROW, column_of
from seqtrain.text import counted, listed

NAMES_FILE_WORDS = {"features", "feature", "names", "columns"}
"""Words in the name of a file that may hold the names of numbers."""
CLOCK_NAME = re.compile("[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?")
"""Name of a column that holds the value at a time of day, and no channel."""
STEP_NUMBERS = (
    "[._ -]*(?:19|20)[0-9]{2}(?:[._ -]?[0-9]{2}){1,2}(?=[^0-9]*$)",
    "[._ -]*[0-9]+(?=[^0-9]*$)",
    "[0-9]+[._ -]*",
)
"""Patterns of the step in the name of a column: a month or day, the last number, or the first."""


def channel_doubts(table: Table, columns: Columns) -> list[str]:
    """Return lines of a doubt if the numbers of columns may be the steps of several channels.

    Raises:
        DataError: If the names of the channels differ in more than numbers, so that the columns are
            no steps of one channel. It has the command that writes a column for each channel.
    """
    options, (pattern, channels, steps) = table.options, _channels_in_names(columns)
    if not channels or options.named("sequence") or options.kind:
        return []
    is_one = len({re.sub("[0-9]+", "", name) for name in channels}) == 1
    found = f"{len(channels)} channels ({listed(channels, 4)}) of {counted(steps, 'time step')}"
    told = f"{table.name}: the names of columns tell {found}"
    if is_one:
        told = f"{table.name}: the columns are read as one channel; if their names tell {found}"
    lines = [f"{told}; write a column for each channel, with the numbers of all steps in a cell"]
    if table.header and can_be_converted(table):
        lines += table_conversion_lines(table, "channels", pattern=pattern)
        if not any(column.can_be_label for column in columns):
            lines.append("or, if each column is a sequence, and its name begins with its label:")
            lines += table_conversion_lines(table, "turned", pattern=pattern)
    if not is_one:
        raise DataError(*lines)
    return lines


def _channels_in_names(columns: Columns) -> tuple[str, list[str], int]:
    """Return the pattern of the number of a step in names, the channels, and their steps.

    There are several channels with equal numbers of steps, eight or more, in more than half of the
    columns. Without these, there are no channels.
    """
    names = [column.name_text for column in columns if column.kind == "number"]
    if all(map(CLOCK_NAME.fullmatch, names)):
        return "", [], 0
    wide = wide_columns(columns)
    if len(wide) == len(names) and places_in_time(tuple(column.name_text for column in wide)):
        return "", [], 0
    for pattern in STEP_NUMBERS:
        place, by_channel = re.compile(pattern), dict[str, list[str]]()
        for name in names:
            number = place.search(name)
            channel = name
            if number is not None:
                channel = name[: number.start()] + name[number.end() :]
            by_channel.setdefault(channel, []).append(number[0] if number else "")
        by_channel = {name: own for name, own in by_channel.items() if len(own) >= FEWEST_WIDE}
        steps = {tuple(sorted(own)) for own in by_channel.values()}
        if len(by_channel) > 1 and len(steps) == 1:
            size = len(steps.pop())
            if 2 * size * len(by_channel) > len(columns):
                return pattern, list(by_channel), size
    return "", [], 0


def channels_first(table: Table, roles: Roles, facts: Facts) -> list[str]:
    """Return lines of a doubt if arrays or lists have more channels than time steps.

    The channels may come first. Series of unequal lengths have their steps first.
    """
    median, _, steps = facts.lengths
    channels = len(table.step_columns) or facts.channels
    are_arrays = table.format == "npz"
    are_lists = roles.id is None and {x.kind for x in roles.sequence} == {"series"}
    if not (are_arrays or are_lists) or channels <= max(steps, 1) or median < steps:
        return []
    if table.step_columns and roles.id is not None and len({*np.bincount(roles.id.codes)}) > 1:
        return []
    found = f"{table.name}: {counted(steps, 'time step')} of {channels} channels"
    lines = [f"{found}; if the channels come first in each, write them last"]
    if 1 < len(roles.sequence) < FEWEST_WIDE:
        return []
    if len(roles.sequence) > 1:
        return [f"{found}; if each column is a time step, write one list of all: [[1, 2], [3, 4]]"]
    if not are_arrays:
        if table.format != "jsonl" or not os.path.isfile(table.path):
            return lines
        return lines + converted_objects("steps", table, roles.sequence[0].name_text)
    given = table.layout.train[0]
    joined = [shlex.quote(str(join["file"])) for join in table.layout.joins]
    if table.step_columns:
        folder = given if os.path.isdir(given) else os.path.dirname(given)
        return lines + conversion_lines("steps", folder, *joined)
    if len(table.layout.train) > 1 or not os.path.isfile(given):
        return lines
    if given.endswith(".npz") and not _has_series(given):
        return []
    new = f"{os.path.splitext(os.path.basename(given))[0]}-steps.npz"  # with the labels
    return lines + conversion_lines("steps", given, *joined, output=new)


def _has_series(path: str) -> bool:
    """Return True if a file npz has an array of series that are padded to one length."""
    with np.load(path) as archive:
        return bool(arrays_of_splits(archive.files))


def channels_beside(table: Table, roles: Roles) -> list[str]:
    """Return lines of a doubt if a folder beside a file of series has a file for each channel.

    Each of its files then has as many rows of numbers as the file, whose numbers may be features.
    """
    layout, files = table.layout, table.files
    joins = [dict(join) for join in layout.joins]
    if roles.kind != "features" or len(files) > 1:
        return []
    if not joins or any(join["on"] != ROW for join in joins):
        return []
    own = os.path.dirname(files[0])
    for folder in inside(own)[1]:
        has_channels = False
        with suppress(DataError):  # its files aren't about the series
            has_channels = _has_channels(folder, table.rows)
        if not has_channels:
            continue
        channels = inside(folder)[0]
        paths = {split: os.path.dirname(str(path)) for split, path in layout.splits.items()}
        group = None if roles.group is None else str(roles.group.name)
        return [
            f"{folder} has {counted(len(channels), 'file')} of {counted(table.rows, 'row')} each, "
            f"such as {os.path.basename(channels[0])}: they may be the channels of the series, and "
            f"the numbers of {table.name} features of these; to read the channels:",
            *_stacking(folder, paths, joins, str(roles.label.name), group),
        ]
    return []


def names_beside(table: Table, roles: Roles, facts: Facts) -> list[str]:
    """Return a doubt if the numbers of series without names of columns may be in no order.

    Such numbers have names in a file beside the series or above them, as in features.txt beside
    X_train.txt. Or all rows have equally many numbers, whose neighbours aren't similar, and their
    labels are in another file.
    """
    if roles.kind != "features" or table.has_columns or not os.path.isfile(table.file):
        return []
    median, _, steps = facts.lengths
    folder = os.path.dirname(os.path.abspath(table.file))
    for path in [*inside(folder)[0], *inside(os.path.dirname(folder))[0]]:
        is_text = os.path.splitext(path)[1] in (".txt", ".names")
        if is_text and words_of(path) & NAMES_FILE_WORDS and num_lines(path) == steps:
            name = os.path.basename(path)
            return [
                f"{name} names {steps} numbers, as many as a row of {table.name} has; they are "
                "read as time steps: if they have no order, a model for tables suits them better"
            ]
    is_one = table.layout.joins and facts.channels == 1 and median == steps
    if is_one and not are_smooth(roles.sequence[0].lists):
        return [
            f"{table.name}: each row is read as a series of {steps} time steps, but neighbours "
            "aren't similar: if the numbers are features in no order, a model for tables suits "
            "them better"
        ]
    return []


def refuse_channels_alone(layout: FileLayout) -> None:
    """Raise a DataError if train is a folder with a folder of channels, and a file of labels.

    Raises:
        DataError: The error has the commands that read the channels.
    """
    train = layout.splits["train"]
    if not isinstance(train, str) or not os.path.isdir(train):
        return
    files, folders = inside(train)
    targets = [path for path in files if words_of(path) & TARGET_WORDS]
    owners = [path for path in files if words_of(path) & OWNER_FILE_WORDS][:1]
    if len(targets) != 1:
        return
    for folder in folders:
        if _has_channels(folder, num_lines(targets[0])):
            joins = [{"file": path, "on": ROW} for path in (*targets, *owners)]
            paths = {"train": train}  # the first file names the config
            paths |= {split: str(path) for split, path in layout.splits.items()}
            group = column_of(owners[0]) if owners else None
            raise DataError(
                f"{folder} seems to have a file for each channel of a series, and {targets[0]} a "
                "label for each row of them; to read the channels:",
                *_stacking(folder, paths, joins, column_of(targets[0]), group),
            )


def _stacking(
    folder: str,
    paths: Mapping[str, str],
    joins: Sequence[Mapping[str, Any]],
    label: str,
    group: str | None,
) -> list[str]:
    """Return lines with commands that write the channels of each split as one array, and read it.

    Args:
        folder: The folder of channels of train.
        paths: The folder of each split, in which its folder of channels is.
        joins: Value of data.join.
        label: Column of the label.
        group: Column of the group, or None.
    """
    name = os.path.basename(folder)
    lines, given = list[str](), list[str]()
    for split, path in paths.items():
        place = os.path.join(path, name)
        if os.path.isdir(place):
            given.append(f"{re.sub(r'[^a-zA-Z0-9]+', '_', name)}-{split}.npz")
            command, _ = conversion("stacked", place, output=given[-1])
            lines.append(f"  {command}")
    words = [*given, "--label", label, "--set", f"data.join={flow(joins)}"]
    if group is not None:
        words += ["--set", f"data.group={group}"]
    return [*lines, init_line(*words)]


def _has_channels(folder: str, rows: int) -> bool:
    """Return True if each file of a folder has so many rows of a series.

    Only the first and the last file are read.
    """
    files, folders = inside(folder)
    if folders or len(files) < 2 or len({os.path.splitext(path)[1] for path in files}) > 1:
        return False
    for path in (files[0], files[-1]):
        lines = first_lines(path)
        if not lines:
            return False
        cells = lines[0].replace(",", " ").split()
        if len(cells) < FEWEST_WIDE or not all(map(is_number, cells)):
            return False
    return num_lines(files[-1]) == rows
