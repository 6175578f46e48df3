"""Layouts of recordings: a file for each sequence, with labels in names."""

import os
import re
from collections import Counter
from collections.abc import Collection, Container, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

import numpy as np

from seqtrain.config.document import flow
from seqtrain.errors import DataError
from seqtrain.files.reading import uncompressed
from seqtrain.proposal.class_files import MOST_CLASSES, are_classes, class_pattern
from seqtrain.proposal.file_names import (
    FEWEST_FILES,
    NUMBER_IN_NAME,
    RECORDINGS,
    Choice,
    folder_pattern,
    split_of,
    splits_of,
    two_levels,
)
from seqtrain.proposal.label_files import pattern_or_list
from seqtrain.proposal.names import (
    is_id_or_owner,
    is_no_outcome,
    is_part_of_id,
    names_outcome,
)
from seqtrain.proposal.options import FileLayout, InitOptions, Splits
from seqtrain.proposal.profile import ColumnProfile
from seqtrain.proposal.reading import ReadingProgress, read_alone
from seqtrain.proposal.roles import commands, set_command
from seqtrain.proposal.shell import init_line
from seqtrain.proposal.table import Table
from seqtrain.tables.arrays import step_columns
from seqtrain.tables.blocks import FILE, FOLDER, LABEL, TEXT
from seqtrain.tables.formats import columns_of_format, names_of, resolve_format
from seqtrain.tables.sources import files_below, folder_entries, matching_files
from seqtrain.text import display_name, quote

OWNERS_OF_FOLDERS = ("s", "p", "u", "sub", "subj", "pat", "vp", "pid", "fold", "actor", "singer")
"""Further names of folders of persons or folds, before a number, such as S of S07."""
SUBJECT = "subject"
"""Name of the column of letters with a number in the names of recordings, such as s07."""
MOST_OTHERS = 2
"""Largest number of files among recordings that are none, such as notes.txt."""
DIVISIONS = (
    "[._ -]+",
    "(?<=[0-9])[._ -]+|[._ -]+(?=[^._ -]*[0-9])",  # walking_up_003: words stay together
    "[._ -]*(?=(?<![0-9])[0-9]+$)",  # walking-up003: all before the number
)
"""Patterns of what divides the name of a file into parts. The first that finds labels counts."""
CLASS_OF_TEXTS = rf"(?P<{LABEL}>[^/]+)\.txt"
"""Value of data.path if the name of each text file is a label."""
PARTITION = re.compile(r"([A-Za-z_]\w*)=.*")
"""Name of a folder of a partition: a column and its value."""
KINDS_OF_PART = {
    "label": ("[A-Za-z]+", "[^0-9/._ -]+", "[^0-9/]*[^0-9/._ -]"),
    "number": ("[0-9]+",),
    "code": ("[A-Za-z]+[0-9]+", "[^0-9/._ -]+[0-9]+"),
}
"""Maps the kinds of parts of file names to their patterns: in ASCII, and in other scripts."""


def recognise_names(layout: FileLayout, progress: ReadingProgress) -> list[Choice]:
    """Return a layout for each part of the paths of recordings that may be the label."""
    recordings = recordings_of(layout.train, layout.options)
    return [
        Choice(set_command(f"data.path={flow(pattern)}"), with_pattern(layout, pattern))
        for pattern in _path_patterns(recordings, progress)
    ]


def _path_patterns(recordings: Sequence[str], progress: ReadingProgress) -> list[str]:
    """Return the ways to read labels from the folders and the names of recordings.

    A way is a value of data.path. The names of folders are labels if several files share each, but
    those of persons are groups. A file beside the folders, such as one about the recordings, has no
    label. If a column has the name of a label, the list is empty: then the files are parts of a
    table.
    """
    patterns = name_patterns(recordings)
    deepest = max((path.count(os.sep) for path in recordings), default=0)
    folders = folders_of([path for path in recordings if path.count(os.sep) == deepest])
    found = [pattern for pattern, labels in patterns if labels != folders or len(folders) == 1]
    if are_groups(folders):
        found = list(map(below_groups, found))
    elif len(recordings) >= FEWEST_FILES and 2 <= len(folders) <= len(recordings) / 2:
        found.insert(0, folder_pattern(1))
    if found and has_label_column(recordings[0], progress):
        return []
    return found


def as_table(layout: FileLayout, progress: ReadingProgress) -> FileLayout:
    """Return the layout of the files in a folder as one table, if a column of them is the label.

    The reader of such a folder takes the names of files and folders as labels, and files as texts.
    A column is named by the user, or like labels.
    """
    recordings = recordings_of(layout.train, layout.options)
    if not recordings or layout.train == recordings:
        return layout
    is_flat = os.path.dirname(recordings[0]) == layout.train[0].rstrip(os.sep)
    if is_flat and resolve_format(recordings[0], "auto") != "txt":
        return layout
    named = layout.options.named("label")
    first = read_alone(recordings[0], progress)
    has_label = any(map(first.column, named)) if named else have_label(first)
    if not (first.is_delimited and has_label):
        return layout
    files = pattern_or_list(recordings)
    return replace(layout, splits=layout.splits | {"train": files})


def has_label_column(path: str, progress: ReadingProgress) -> bool:
    """Return True if a column of a table is named like a label, and may hold labels."""
    format = resolve_format(path, "auto") or "txt"
    if format != "txt" and columns_of_format(format) == "none":
        return False
    table = read_alone(path, progress)
    return table.has_columns and have_label(table)


def folders_of(files: Sequence[str]) -> set[str]:
    """Return the names of the folders of files."""
    return {os.path.basename(os.path.dirname(path)) for path in files}


def are_groups(folders: Collection[str]) -> bool:
    """Return True if folders are those of persons, sessions or folds by their names: Actor_01, S07.

    They differ in a number only, after a word for owners of recordings or for parts of an id.
    """
    words = {NUMBER_IN_NAME.sub(" ", name) for name in folders}
    if len(folders) < 2 or len(words) > 1 or not all(map(NUMBER_IN_NAME.search, folders)):
        return False
    name = ColumnProfile(words.pop(), [], np.zeros(0, np.int32))
    return name.name_words in OWNERS_OF_FOLDERS or is_id_or_owner(name) or is_part_of_id(name)


def refuse_groups_as_labels(layout: FileLayout, progress: ReadingProgress) -> None:
    """Raise a DataError if the folders of recordings are groups, and no column seems the label.

    Raises:
        DataError: The error has a command for each part of the paths that may be the label.
    """
    recordings = recordings_of(layout.train, layout.options)
    if len(layout.train) > 1:  # a shell replaces a pattern by its files
        files = pattern_or_list(recordings)
        layout = replace(layout, splits=layout.splits | {"train": files})
    lines = commands_below_groups(layout, recordings)
    if not lines or has_label_column(recordings[0], progress):
        return
    format = resolve_format(recordings[0], "auto") or "csv"
    if columns_of_format(format) != "none":
        files = names_of(layout.splits["train"])
        lines.append("or, if a column is the label:")
        lines.append(init_line(*files, "--format", format, "--id", FILE, "--label", "COLUMN"))
    folder = quote(min(folders_of(recordings)), 40)
    raise DataError(
        f"{display_name(layout.train[0])}: folders such as {folder} seem to name persons or "
        "groups, and no words in the names of files differ; choose the label:",
        *lines,
    )


def commands_below_groups(layout: FileLayout, recordings: Sequence[str]) -> list[str]:
    """Return lines with a command for each part of paths that may be the label, or [].

    These are numbers and codes, and the folders, which must be groups of several recordings. A
    part that has one value in each folder is another name of it.
    """
    folders = folders_of(recordings)
    if not are_groups(folders) or 2 * len(folders) > len(recordings):
        return []
    patterns = list[str]()
    for own, labels in name_patterns(recordings, KINDS_OF_PART):
        pattern = below_groups(own)
        found = [re.search(pattern, path) for path in recordings]
        pairs = {match.groups() for match in found if match}
        if len(labels) <= MOST_CLASSES and len(pairs) > len(folders):
            patterns.append(pattern)
    return commands_for_patterns(layout, [*patterns, folder_pattern(1)])


def below_groups(pattern: str) -> str:
    """Return a value of data.path whose folder is the group, unless it has a group."""
    if f"(?P<{SUBJECT}>" in pattern:
        return pattern
    return f"(?P<{SUBJECT}>[^/]+)/{pattern}"


def recognise_class_files(layout: FileLayout, progress: ReadingProgress) -> list[Choice]:
    """Return a layout of files whose names are labels, and one for each column that may be it."""
    recordings = recordings_of(layout.train, layout.options)
    if name_patterns(recordings):
        return []
    if layout.train != recordings and resolve_format((recordings or [""])[0], "auto") == "txt":
        return _labelled_lines(layout, recordings, progress)
    pattern = class_pattern(recordings)
    columns = None if pattern is None else _possible_labels(recordings, progress)
    if pattern is None or columns is None:
        return []
    command = set_command(f"data.path={flow(pattern)}")
    return [
        Choice(command, with_pattern(layout, pattern)),
        *(Choice(line.strip(), layout) for line in commands("label", columns)),
    ]


def _labelled_lines(
    layout: FileLayout, recordings: Sequence[str], progress: ReadingProgress
) -> list[Choice]:
    """Return the layouts of a folder of texts whose lines may hold labels, or [].

    The reader of such a folder takes any names of files as labels, and lines as texts.
    """
    if len(recordings) < 2:
        return []
    files = pattern_or_list(recordings)
    as_table = replace(layout, splits=layout.splits | {"train": files})
    columns = _possible_labels(recordings, progress)
    if not columns:
        return []
    pattern = class_pattern(recordings) or CLASS_OF_TEXTS
    labels = [("--set", f"data.path={flow(pattern)}")]
    labels += [("--label", column.name_text) for column in columns]
    lines = [init_line(*names_of(files), *words).strip() for words in labels]
    return [Choice(line, as_table) for line in lines]


def _possible_labels(files: Sequence[str], progress: ReadingProgress) -> list[ColumnProfile] | None:
    """Return the columns that may be the label where each file may be a class, or None.

    Such files have equal columns, none of which is named like a label. A label has values that two
    files share. An id hasn't.
    """
    first, last = (read_alone(path, progress) for path in (files[0], files[-1]))
    if [column.name for column in first.columns] != [column.name for column in last.columns]:
        return None
    if first.has_columns and (have_label(first) or have_label(last)):
        return None
    columns = []
    for one, other in zip(first.columns, last.columns, strict=True):
        is_possible = one.can_be_label and other.can_be_label and not is_no_outcome(one)
        counts = one.kind == "number" and (np.diff(one.numbers) >= 0).all()  # such as trials
        is_text = one.name == TEXT and not first.has_columns
        are_shared = not {*map(str, one.values)}.isdisjoint(map(str, other.values))
        if is_possible and are_shared and not (counts or is_text):
            columns.append(one)
    return columns


def have_label(table: Table) -> bool:
    """Return True if a column of a table is named like a label, and may hold labels.

    A number `y` beside a number `x` is a coordinate.
    """
    numbers = {column.word for column in table.columns if column.kind == "number"}
    for column in table.columns:
        is_coordinate = column.word == "y" and {"x", "y"} <= numbers
        if names_outcome(column) and not column.has_no_labels and not is_coordinate:
            return True
    return False


def refuse_paths_as_labels(layout: FileLayout, progress: ReadingProgress) -> None:
    """Raise a DataError if the label is to be the path of a recording, or the name of its folder.

    Raises:
        DataError: The error has a command for each part of the paths that may be the label.
    """
    label = layout.options.named("label")[0]
    if label not in (FILE, FOLDER):
        return
    recordings = recordings_of(layout.train, layout.options)
    patterns = _path_patterns(recordings, progress) if recordings else []
    if are_groups(folders_of(recordings)):  # the user wants to tell persons apart
        patterns.insert(0, folder_pattern(1))
    lines = commands_for_patterns(layout, patterns, "--label", LABEL)
    if lines:
        found = f"--label: {label} isn't a column; if a part of the paths is the label:"
        raise DataError(found, *lines)


def with_partitions(layout: FileLayout) -> FileLayout | None:
    """Return the layout of a table in folders of partitions, or None.

    As Spark and Hive write them: the name of `activity=walk/part-0.parquet` gives a column and its
    value. Files are parts of a table, so that no file is a sequence.
    """
    paths = layout.train
    if len(paths) == 1 and os.path.isdir(paths[0]):
        names = [name for name, is_folder in folder_entries(paths[0]) if is_folder]
        if not names or not all(map(PARTITION.fullmatch, names)):
            return None
        paths = files_below(paths[0])
    elif len(paths) == 1:
        paths = matching_files(paths[0])
    pattern = partition_pattern(paths)
    if pattern is None:
        return None
    format = next(filter(None, (resolve_format(path, "auto") for path in paths)))
    options = layout.options.with_given(format=layout.options.get("format") or format)
    return replace(layout, options=options, pattern=pattern)


def partition_pattern(files: Sequence[str]) -> str | None:
    """Return the value of data.path of files in folders of partitions, or None for others."""
    found = set[tuple[str, ...]]()
    for path in files:
        if resolve_format(path, "auto") is None:  # such as _SUCCESS
            continue
        folders = map(PARTITION.fullmatch, os.path.dirname(path).split(os.sep)[::-1])
        found.add(tuple(match[1] for match in takewhile(bool, folders) if match)[::-1])
    if len(found) != 1 or found == {()}:
        return None
    (names,) = found
    return "".join(f"{name}=(?P<{name}>[^/]*)/" for name in names) + "[^/]+$"


def commands_for_patterns(layout: FileLayout, patterns: Sequence[str], *options: str) -> list[str]:
    """Return a line with a command for each value of data.path that the files may have.

    Args:
        layout: The layout of the files.
        patterns: Values of data.path.
        options: Further options of each command.
    """
    files = names_of(layout.splits["train"])
    return [
        init_line(*files, "--set", f"data.path={flow(pattern)}", *options) for pattern in patterns
    ]


def recordings_of_splits(files: Sequence[str], progress: ReadingProgress) -> Splits | None:
    """Return files by their splits if the paths of those of train hold labels, or None.

    A shell replaces a pattern by its files. If the pattern is found again, it stands for them.
    """
    if len(files) < 2 or not all(map(os.path.isfile, files)):
        return None
    formats = {resolve_format(path, "auto") for path in files}
    if len(formats) > 1 or not formats <= {*RECORDINGS, "txt"}:
        return None
    splits: dict[str, list[str]] = {"train": []}
    for path, split in zip(files, splits_of(files), strict=True):
        splits.setdefault(split, []).append(path)
    train = splits["train"]
    if len(train) < 2 or {None, "train"} <= set(map(split_of, train)):
        return None  # train.csv beside another file is no class
    is_layout = partition_pattern(train) or _path_patterns(train, progress)
    if not is_layout and (not class_pattern(train) or _possible_labels(train, progress) is None):
        return None
    return {split: pattern_or_list(own) for split, own in splits.items()}


def recordings_of(files: Sequence[str], options: InitOptions | None = None) -> list[str]:
    """Return the files of recordings: several tables, arrays or texts, by a pattern or in a folder.

    A folder may have a sub-folder for each class, which texts need no pattern for.

    Args:
        files: The files, or one folder.
        options: Options of the user. With a format, files with other endings may be recordings.
    """
    if len(files) > 1:
        return list(files)
    if not os.path.isdir(files[0]):
        return []
    given = None if options is None else options.get("format")
    found, deeper = two_levels(files[0])
    if given is None:  # a page about the recordings may be beside them
        found = [path for path in found if resolve_format(path, "auto")] or found
        others = [path for path in found if resolve_format(path, "auto") == "txt"]
        if len(others) <= MOST_OTHERS < len(found) - len(others):
            found = [path for path in found if path not in others]
    formats = {given or resolve_format(path, "auto") for path in found}
    if formats == {"txt"} and not any(is_folder for _, is_folder in folder_entries(files[0])):
        return found
    if len(formats) == 1 and formats <= set(RECORDINGS) and not deeper:
        return found
    return []


def name_patterns(
    files: Sequence[str], allowed: Container[str] = ("label",)
) -> list[tuple[str, set[str]]]:
    """Return the ways to read labels from the names of recordings, and the labels of each.

    A way is a value of data.path. Names must have equally many parts, such as `walking_003.csv`,
    but for a few files. A label is a part that several files share.

    Args:
        files: Paths of the recordings.
        allowed: Kinds of parts that may be labels. Letters are labels, codes may be subjects.
    """
    names = [uncompressed(os.path.basename(file)) for file in files]
    stems = [os.path.splitext(name)[0] for name in names]
    for division in DIVISIONS:
        pieces = [re.split(f"({division})", stem) for stem in stems]  # parts and what divides them
        sizes = Counter(map(len, pieces))
        size = max(sizes, key=sizes.__getitem__, default=1)
        alike = [each for each in pieces if len(each) == size > 1]
        if len(alike) < max(FEWEST_FILES, len(files) - MOST_OTHERS):
            continue
        patterns = _patterns_of_parts(alike, allowed)
        if patterns:
            return patterns
    return []


def _patterns_of_parts(
    names: Sequence[Sequence[str]], allowed: Container[str]
) -> list[tuple[str, set[str]]]:
    """Return the ways to read labels from names with equally many parts; see `name_patterns`.

    Args:
        names: The names. Each has its parts, and what stands between them.
        allowed: Kinds of parts that may be labels.
    """
    columns = list(zip(*names, strict=True))
    kinds, texts = zip(*map(_kind_of_part, columns[::2]), strict=True)
    between = [_pattern_between(marks) for marks in columns[1::2]]
    patterns = []
    for label, values in enumerate(columns[::2]):
        if kinds[label] not in allowed or not 2 <= len(set(values)) <= len(values) / 2:
            continue
        pattern = ""
        for at, (kind, text) in enumerate(zip(kinds, texts, strict=True)):
            if at == label:
                name = LABEL
            elif kind == "code":
                name = SUBJECT
            else:
                name = None
            if name and f"<{name}>" not in pattern:
                text = f"(?P<{name}>{text})"
            pattern += text + "".join(between[at : at + 1])
        patterns.append((pattern, set(values)))
    return patterns


def _pattern_between(marks: Sequence[str]) -> str:
    """Return the pattern of what stands between two parts of file names."""
    if len(set(marks)) == 1:
        return re.escape(marks[0])
    return "[._ -]*"


def _kind_of_part(values: Sequence[str]) -> tuple[str, str]:
    """Return the kind of a part of file names, and the pattern of its values."""
    for kind, patterns in KINDS_OF_PART.items():
        for pattern in patterns:
            if all(re.fullmatch(pattern, value) for value in values):
                return kind, pattern
    return "other", "[^._ -]+"


def with_pattern(layout: FileLayout, pattern: str) -> FileLayout:
    """Return the layout of recordings with columns in their names.

    Args:
        layout: The files, and options of the user.
        pattern: Value of data.path.
    """
    files, given = layout.train, dict[str, Any]()
    recordings = recordings_of(files, layout.options)
    own = resolve_format((recordings or files)[0], "auto")
    format = layout.options.get("format") or own or "csv"
    if f"(?P<{LABEL}>" in pattern and not layout.options.named("label"):
        given["label"] = [LABEL]
    label = str(next(iter(layout.options.named("label")), LABEL))
    is_table = columns_of_format(format) != "none" or step_columns((recordings or files)[0])
    is_text = format == "txt" and label in re.compile(pattern).groupindex
    if (is_table or is_text) and not are_classes(recordings or files, pattern, label):
        given["id"] = layout.options.get("id", FILE)
    if os.path.isdir(files[0]) and recordings:
        given["format"] = format
        if own != format or format == "txt":  # a folder of format csv holds files .csv
            splits = layout.splits | {"train": pattern_or_list(recordings)}
            layout = replace(layout, splits=splits)
    group = SUBJECT if f"(?P<{SUBJECT}>" in pattern else None
    options = layout.options.with_given(**given)
    return replace(layout, options=options, pattern=pattern, group=group)
