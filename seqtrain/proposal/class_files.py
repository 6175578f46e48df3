"""Files of a class each, such as walking.csv and running.csv: their names are the labels."""

import os
import re
import shlex
from collections.abc import Sequence
from functools import partial

import numpy as np

from seqtrain.files.reading import uncompressed
from seqtrain.proposal.conversions import can_be_converted, reading_options
from seqtrain.proposal.file_names import inside
from seqtrain.proposal.profile import REPEATS, ColumnProfile, Columns
from seqtrain.proposal.shell import init_line
from seqtrain.proposal.table import Table
from seqtrain.tables.blocks import FILE, LABEL
from seqtrain.tables.conversions.forms import conversion_lines
from seqtrain.tables.formats import resolve_format

MOST_CLASSES = 50
"""Most files of which each may be a class."""
FEWEST_PIECES, SIZES = 10, (128, 64, 32, 16, 8)
"""Fewest pieces of the smallest class into which time steps are cut, and the sizes of a piece."""
CLASS_NAME = re.compile(r"[^\W\d_]+(?:[ ._&+,'-]+[^\W\d_]+)*[ ._-]?\d*")
"""Words, and perhaps a number: no code."""
PART = "part"
"""Name of the column with the number of a piece."""
SIMILAR = 0.5
"""Rows are similar if they differ by less than this share of the difference of any two rows."""
LAST_PART, FIRST_PART = re.compile("[^._ -]*$"), re.compile("^[^._ -]*")


def class_pattern(files: Sequence[str]) -> str | None:
    """Return the value of data.path if each file may be a class, or None.

    Names differ in more than numbers. Parts that all names share are no parts of the labels.
    """
    names = [os.path.basename(path) for path in files]
    stems = [os.path.splitext(uncompressed(name))[0] for name in names]
    endings = {name.removeprefix(stem) for name, stem in zip(names, stems, strict=True)}
    are_different = len({re.sub("[0-9]+", "", stem) for stem in stems}) == len(stems)
    if not are_different or not 2 <= len(stems) <= MOST_CLASSES or len(endings) > 1:
        return None
    before = LAST_PART.sub("", os.path.commonprefix(stems))  # noqa: RUF071 - of characters
    reversed_end = os.path.commonprefix([stem[::-1] for stem in stems])  # noqa: RUF071
    after = FIRST_PART.sub("", reversed_end[::-1])
    labels = [stem.removeprefix(before).removesuffix(after) for stem in stems]
    if not all(map(CLASS_NAME.fullmatch, labels)):
        return None
    ending = re.escape(after + endings.pop())
    return f"{re.escape(before)}(?P<{LABEL}>[^/]+){ending}$"


def are_classes(files: Sequence[str], pattern: str | None, label: str) -> bool:
    """Return True if each of several files has another label, by a value of data.path."""
    if pattern is None or label not in re.compile(pattern).groupindex:
        return False
    found = [re.search(pattern, os.path.basename(path)) for path in files]
    labels = {match[label] for match in found if match is not None}
    return len(labels) == len(files) > 1


def may_be_steps(table: Table, columns: Columns) -> bool:
    """Return True if neighbouring rows of a file are similar, as time steps are.

    Args:
        table: The table.
        columns: Columns of numbers that are read as the sequence of a row.
    """
    rows = np.stack([column.numbers for column in columns], axis=1)
    within = np.diff(table.lines) > 0  # lines begin again in the next file
    changes = np.nanmean(np.square(np.diff(rows, axis=0)[within]))
    return bool(changes < SIMILAR * 2 * np.nanmean(np.nanvar(rows, axis=0)))


def commands_for_pieces(table: Table) -> list[str]:
    """Return lines with commands that read files of a class each as time steps, or an empty list.

    A sequence has the rows of a file with one value of a column, such as trial, that begins again
    in each file. If there is none, a command numbers pieces of each file.
    """
    given = table.layout.train
    files = given
    if len(given) == 1 and os.path.isdir(given[0]):
        known = inside(given[0])[0]
        files = [path for path in known if resolve_format(path, "auto") == table.format]
    label = str(next(iter(table.options.named("label")), LABEL))
    if not can_be_converted(table) or not are_classes(files, table.layout.pattern, label):
        return []
    repeated = next(filter(partial(_begins_again, table), table.columns), None)
    if repeated is not None:
        found = f"if the rows of one {repeated.shown} of a file are a sequence:"
        return [found, init_line(*given, "--id", FILE, "--id", repeated.name_text)]
    rows = table.rows // len(files)
    size = next((size for size in SIZES if rows >= FEWEST_PIECES * size), SIZES[-1])
    part = PART
    if table.header is False:
        part = str(sum(isinstance(column.name, int) for column in table.columns))
    options = shlex.join(["--id", FILE, "--id", part])
    found = f"if a file is one recording, and a row a time step, cut it every {size} rows:"
    reading = reading_options(table)
    return [found, *conversion_lines("parts", given, options, every=size, **reading)]


def _begins_again(table: Table, column: ColumnProfile) -> bool:
    """Return True if each value of a column has several rows of a file, one after another."""
    if column.distinct < 2 or column.name == LABEL or column.has_no_labels:
        return False
    begins = np.append(True, np.diff(table.lines) <= 0)
    owners = np.cumsum(begins) * len(column.values) + column.codes
    changes = np.append(True, np.diff(owners) != 0)
    parts = len(np.unique(owners))
    are_several = 2 * begins.sum() <= parts <= table.rows / REPEATS
    return bool(are_several and changes.sum() == parts)
