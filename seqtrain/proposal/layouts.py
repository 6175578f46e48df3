"""Layouts of data files: splits by name, and labels in other files, in folders, or in names.

A recogniser looks at the files of train and returns the layouts that they may have, each with the
option by which a user chooses it. If several are possible, all are listed as commands.
"""

import os
import re
import shlex
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from seqtrain.config.document import flow
from seqtrain.errors import DataError
from seqtrain.files.reading import path_problems, uncompressed
from seqtrain.proposal.class_files import are_classes, class_pattern
from seqtrain.proposal.label_files import label_file, pattern_of
from seqtrain.proposal.names import OWNER_NAMES, is_no_outcome, names_outcome
from seqtrain.proposal.options import FileLayout, InitOptions, Splits
from seqtrain.proposal.profile import ColumnProfile
from seqtrain.proposal.reading import ReadingProgress, Table, read_table
from seqtrain.proposal.roles import commands, set_command
from seqtrain.sequences.sources import files_of
from seqtrain.tables.arrays import step_columns
from seqtrain.tables.blocks import FILE, FOLDER, INPUT_WORDS, LABEL, SPLIT_NAMES, TARGET_WORDS
from seqtrain.tables.formats import MEMORY, columns_of_format, resolve_format
from seqtrain.tables.join import ROW, begins_with_names, column_of
from seqtrain.tables.sources import matching_files
from seqtrain.text import display_name, quote

NUMBER_IN_NAME = re.compile("[0-9]+")
NAME_PART = re.compile("[A-Za-z]+|[0-9]+")
LABEL_FILE_WORDS = TARGET_WORDS | {"meta", "metadata", "annotations", "info", "index", "subjects"}
"""Words in the name of a file that may hold a row for each recording."""
MOST_LABEL_FILES = 4
"""Largest number of files that are compared with the names of recordings."""
SUBJECT = "subject"
"""Name of the column of letters with a number in the names of recordings, such as s07."""
FEWEST_FILES = 4
"""Fewest files whose names are compared."""
RECORDINGS = ("csv", "tsv", "parquet", "npz", "jsonl")
"""Formats of files of which each can be one sequence."""
BETWEEN_PARTS = "[._ -]+"
"""Pattern of what divides the name of a file into parts."""
KINDS_OF_PART = {"label": r"[A-Za-z]+", "number": r"[0-9]+", "code": r"[A-Za-z]+[0-9]+"}
"""Maps the kinds of parts of file names to their patterns."""


class Choice(NamedTuple):
    """A layout that files may have, and the command that chooses it."""

    command: str
    layout: FileLayout


Recogniser: TypeAlias = Callable[[FileLayout, ReadingProgress], list[Choice]]


def find_layout(
    files: Sequence[str], test: str | None, options: InitOptions, progress: ReadingProgress
) -> FileLayout:
    """Return the layout of data files.

    Args:
        files: Data files, or one folder. The splits in the folder are used. A folder without splits
            is train itself.
        test: The test file, or None to recognize it by its name.
        options: Options of the user. A label among them is searched in other files only if the
            file of train lacks it.
        progress: Reports the number of rows.

    Raises:
        DataError: If no file is train, or several files may be the same split. Also if several
            layouts are possible, or names say that labels are elsewhere, and they are nowhere.
    """
    if len(files) == 1 and os.path.isdir(files[0]):
        files = _pairs_inside(files[0]) or _splits_inside(files[0]) or files
    if test is None:
        labelled = _recordings_and_labels(files, options, progress)
        if labelled is not None:
            return labelled
    files = _without_targets(files) or files
    splits = None
    if test is None:
        joined = _joined_by_key(files, options, progress)
        if joined is not None:
            return joined
        splits = _recordings_of_train(files, progress)
    layout = FileLayout(splits or _splits(files, test), options)
    train = files_of("train", layout.splits["train"])
    if train[0].startswith(MEMORY):
        return layout
    if options.get("join"):
        layout = replace(layout, joins=options.get("join"))
    if options.get("path"):
        return _with_pattern(layout, options.get("path"))
    if layout.joins:
        return layout
    recognisers = RECOGNISERS
    if options.named("label"):
        _refuse_paths_as_labels(layout, progress)
        recognisers = (_recognise_pair, _recognise_label_file)
    choices = [choice for recognise in recognisers for choice in recognise(layout, progress)]
    if len(choices) > 1:
        raise DataError(
            f"{display_name(train[0])}: its labels may be in several places; choose one:",
            *(f"  {choice.command}" for choice in choices),
        )
    if not choices and isinstance(layout.splits["train"], str):
        _check_depth(layout.splits["train"])
    if choices:
        return choices[0].layout
    return layout


# Splits


def _splits(files: Sequence[str], test: str | None) -> Splits:
    """Return the files of each split: that of a word in the name of a file, or train.

    A single file is train. Files of one split must have paths that differ only in numbers.
    """
    found: dict[str, list[str]] = {} if test is None else {"test": [test]}
    for path in files:
        role = "train" if len(files) == 1 else split_of(path) or "train"
        known = found.setdefault(role, [])
        if known and NUMBER_IN_NAME.sub("0", known[0]) != NUMBER_IN_NAME.sub("0", path):
            raise DataError(
                f"{role}: both {quote(known[0])} and {quote(path)} may be it; give the file to "
                "train on, name the others …validation… and …test…, or give --test FILE",
                "or, if one has further columns of the other's rows, give one of them and --set "
                "'data.join=[{file: OTHER, on: COLUMN}]'",
            )
        known.append(path)
    if "train" not in found:
        raise DataError(
            "train: all names are those of validation or test files; give one file to train on"
        )
    return {name: known if len(known) > 1 else known[0] for name, known in found.items()}


def split_of(path: str) -> str | None:
    """Return the split that a word of a file's name tells, or None."""
    words = set(re.findall("[a-z]+", os.path.basename(path).lower()))
    return next((split for split, known in SPLIT_NAMES.items() if words & known), None)


def _paths(folder: str) -> list[str]:
    """Return the paths in a folder that aren't hidden, sorted."""
    with path_problems(folder, DataError):
        names = sorted(name for name in os.listdir(folder or ".") if not name.startswith("."))
    return [os.path.join(folder, name) for name in names]


def _check_depth(path: str) -> None:
    """Raise a DataError if a folder holds folders within folders, so that none is a class."""
    is_folder = os.path.isdir(path) and resolve_format(path, "auto") == "txt"
    for folder in _paths(path) if is_folder else ():
        for inner in _paths(folder) if os.path.isdir(folder) else ():
            if os.path.isdir(inner):
                raise DataError(
                    f"{display_name(path)}: holds folders within folders, such as "
                    f"{display_name(inner)}; expected a file of data, or one folder of files for "
                    "each class; give the folder of one data set",
                    *_commands_of_levels(path, inner),
                )


def _commands_of_levels(path: str, inner: str) -> list[str]:
    """Return lines with a command for each level of folders that may be the label.

    Args:
        path: The folder.
        inner: A folder in one of its folders. If its first files aren't recordings, the list is
            empty.
    """
    levels = 2
    while True:
        first = next(iter(_paths(inner)), "")
        if not os.path.isdir(first):
            break
        inner, levels = first, levels + 1
    if resolve_format(first, "auto") not in RECORDINGS:
        return []
    files = os.path.join(path, *["*"] * levels, f"*{os.path.splitext(first)[1]}")
    lines = ["or, if a file is a recording, and the name of a folder its label, one of these:"]
    top = 1 if len(_paths(path)) == 1 else 0  # a single folder is no label
    for level in range(top, levels):
        pattern = _folder_pattern(levels - level)
        setting = shlex.join([files, "--set", f"data.path={flow(pattern)}"])
        lines.append(f"  seqtrain init {setting}")
    return lines


def _folder_pattern(level: int) -> str:
    """Return the value of data.path if a folder so many levels above a file is its label."""
    return f"(?P<{LABEL}>[^/]+)" + "/[^/]+" * level + "$"


def _splits_inside(folder: str) -> list[str]:
    """Return the paths of the splits in a folder, sorted, or an empty list if it has no splits.

    The folder must have a split for train and at least one more. Each of its sub-folders must be a
    split. In a folder that Hugging Face wrote, train is enough.
    """
    paths = _paths(folder)
    folders = {path for path in paths if os.path.isdir(path)}
    found = [x for x in paths if (x in folders or resolve_format(x, "auto")) and split_of(x)]
    is_saved = os.path.join(folder, "dataset_dict.json") in paths
    is_split = is_saved or (folders <= set(found) and len(found) > 1)
    if is_split and "train" in map(split_of, found):
        return found
    return []


# Labels in other files


def _words(path: str) -> set[str]:
    """Return the words and numbers in a file's name, in lower case, without its endings."""
    return {word.lower() for word in NAME_PART.findall(os.path.basename(path).partition(".")[0])}


def _pairs_inside(folder: str) -> list[str]:
    """Return the files of a folder, or of its splits, whose labels are in other files, or [].

    Raises:
        DataError: If the name of a file says that its labels are elsewhere, and they are nowhere.
    """
    files = _paths(folder)
    folders = [path for path in files if os.path.isdir(path) and split_of(path)]
    files += [path for each in folders for path in _paths(each)]
    data = [path for path in files if os.path.isfile(path) and resolve_format(path, "auto")]
    by_words = {path: (os.path.dirname(path), frozenset(_words(path))) for path in data}
    targets, found = set[tuple[str, frozenset[str]]](), []
    for place, words in by_words.values():
        if words & TARGET_WORDS:
            targets.add((place, words - TARGET_WORDS - INPUT_WORDS))
    for path, (place, words) in by_words.items():  # a folder may hold many files
        if not words & TARGET_WORDS and (place, words - INPUT_WORDS) in targets:
            found.append(path)
    inputs = [path for path in data if _words(path) & {"x"}]
    if not found and len(inputs) == len(data) > 0:
        raise DataError(_labels_missing(inputs[0]))
    return found


def _without_targets(files: Sequence[str]) -> list[str]:
    """Return the files of which none holds the labels of another one, by their names.

    Each folder is listed once: a user may give thousands of files.
    """
    present = [path for path in files if os.path.isfile(path)]
    folders = {os.path.dirname(path) for path in present}
    named = {folder: _TargetFiles(_data_files(folder, TARGET_WORDS)) for folder in folders}
    targets = set[str]()
    for path in present:
        targets.update(named[os.path.dirname(path)].of(path))
    return [path for path in files if path not in targets]


class _TargetFiles:
    """Data files of a folder with one of `TARGET_WORDS` in their names, by their other words.

    Args:
        paths: The files. There may be thousands.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._of_train = list[str]()
        self._by_words = dict[frozenset[str], list[str]]()
        for path in paths:
            words = _words(path) - TARGET_WORDS
            self._by_words.setdefault(frozenset(words - INPUT_WORDS), []).append(path)
            if words <= SPLIT_NAMES["train"]:
                self._of_train.append(path)

    def of(self, path: str) -> list[str]:
        """Return the files that hold the labels of a data file of the folder, by their names."""
        own = frozenset(_words(path) - INPUT_WORDS)
        beside = [other for other in self._by_words.get(own, ()) if other != path]
        return beside or [other for other in self._of_train if other != path]


def _beside(path: str, others: Sequence[str], words: Set[str]) -> list[str]:
    """Return the files that have the name of a data file, but for words such as X and y.

    Args:
        path: The data file, such as `X_train.csv` or `train.csv`.
        others: Other files of its folder: `y_train.csv`, `train_labels.csv`.
        words: Words that the names of the other files have, too.
    """
    own = _words(path) - INPUT_WORDS
    return [other for other in others if _words(other) - words - INPUT_WORDS == own]


def _data_files(folder: str, words: Set[str]) -> list[str]:
    """Return the data files of a folder in whose names is one of some words."""
    found = [path for path in _paths(folder) if _words(path) & words]
    return [path for path in found if os.path.isfile(path) and resolve_format(path, "auto")]


def _labels_missing(path: str) -> str:
    return (
        f"{display_name(path)}: its name says that labels are elsewhere, but no file y… or "
        "…labels… is beside it; add one, or give --label COLUMN or --set "
        "'data.join=[{file: FILE, on: COLUMN}]'"
    )


def _recognise_pair(layout: FileLayout, progress: ReadingProgress) -> list[Choice]:
    """Return a layout for each file that may hold the labels of the file of train.

    Files such as `subject_train.txt` are joined, too: their column is the group.

    Raises:
        DataError: If the name says that labels are elsewhere, and they are nowhere.
    """
    path = layout.splits["train"]
    if not isinstance(path, str) or not os.path.isfile(path):
        return []
    format, label = resolve_format(path, "auto") or "csv", layout.options.named("label")
    is_input = "x" in _words(path) and not label
    folder = os.path.dirname(path)
    loose = [other for other in _data_files(folder, TARGET_WORDS) if other != path]
    if format == "npz" and path.endswith(".npy"):  # its reader finds y.npy
        if is_input and not _beside(path, loose, TARGET_WORDS):
            raise DataError(_labels_missing(path))
        return []
    targets = _TargetFiles(loose).of(path)
    if not targets and not loose:
        if is_input and columns_of_format(format) != "none":
            raise DataError(_labels_missing(path))
        return []
    options = layout.options.without_columns()
    if format == "txt":
        options = options.with_given(format="lines")  # a sequence per line
    table = read_table([path], replace(layout, options=options), progress)
    inside = table.column(LABEL)
    if not table.has_columns and inside is not None and inside.distinct:  # as in npz
        return []
    own = {str(column.name) for column in table.columns} | set(map(str, range(len(table.columns))))
    if label and own.issuperset(map(str, label)):
        return []
    group, joins = None, []
    owners = [other for other in _data_files(folder, set(OWNER_NAMES)) if other != path]
    for side in _beside(path, owners, set(OWNER_NAMES)):
        join, columns = _join_of(table, side, progress)
        if join is not None:
            group, joins = _only(columns), [join]
    choices = []
    has_label = _have_label(table)
    for target in targets or loose:
        join, columns = _join_of(table, target, progress)
        is_loose = not targets and (has_label or join is None or join["on"] == ROW)
        if join is not None and not is_loose:
            options = layout.options
            if _only(columns) and not label:
                options = options.with_given(label=columns)
            found_joins = [join, *joins]
            command = set_command(f"data.join={flow(found_joins)}")
            found = replace(layout, options=options, joins=found_joins, group=group, facts=columns)
            choices.append(Choice(command, found))
    return choices


def _joined_by_key(
    files: Sequence[str], options: InitOptions, progress: ReadingProgress
) -> FileLayout | None:
    """Return the layout of two files, one of which has a row per key of the other, or None.

    The key, such as a customer, repeats in one file. The other file may hold the labels.
    """
    names = {NUMBER_IN_NAME.sub("0", path) for path in files}
    are_files = all(map(os.path.isfile, files))
    if not are_files or len(files) != 2 or len(names) < 2 or any(map(split_of, files)):
        return None
    plain = FileLayout({}, InitOptions())
    tables = [read_table([path], plain, progress, is_train=False) for path in files]
    for (table, path), other in zip(zip(tables, files, strict=True), tables[::-1], strict=True):
        join, _ = _join_of(table, other.path, progress)
        key = None if join is None else table.column(str(join["on"]))
        if join is not None and key is not None and key.repeats:
            return FileLayout({"train": path}, options, joins=[join])
    return None


def _join_of(
    table: Table, path: str, progress: ReadingProgress
) -> tuple[dict[str, Any] | None, list[str]]:
    """Return how a further file is joined to a table, and the names of its columns but the key.

    It is joined by a common key that has one row per value there, or else row by row.
    """
    other = read_table([path], FileLayout({}, InitOptions()), progress, is_train=False)
    rows, has_names = other.rows, other.header
    is_single = len(other.columns) == 1
    if is_single and has_names is False and rows == table.rows + 1:  # a number as a name, as 0
        rows, has_names = table.rows, True
    own = {column.name: column for column in table.columns if isinstance(column.name, str)}
    new = [column.name for column in other.columns if column.name not in own]
    if is_single and not other.header:
        new = [column_of(path)]
    names = list(map(str, new))
    for column in other.columns:
        key = own.get(str(column.name))
        is_key = column.distinct == other.rows and len(new) > 0
        if is_key and key is not None and _has_values_of(key, column):
            return {"file": path, "on": column.name}, names
    if rows != table.rows:
        return None, names
    join: dict[str, Any] = {"file": path, "on": ROW}
    if has_names is not None and has_names != begins_with_names(path):
        join["header"] = has_names
    return join, names


def _only(names: Sequence[str]) -> str | None:
    """Return the only one of some names, or None."""
    return names[0] if len(names) == 1 else None


def _has_values_of(column: ColumnProfile, key: ColumnProfile) -> bool:
    """Return True if most values of a column are values of a key."""
    known = {str(value) for value in key.values}
    return 2 * sum(str(value) in known for value in column.values) > len(column.values)


# Labels of recordings in another file


def _recordings_and_labels(
    files: Sequence[str], options: InitOptions, progress: ReadingProgress
) -> FileLayout | None:
    """Return the layout of recordings and a file with a row for each of them, or None.

    The recordings are a folder, a pattern, or all other files.
    """
    found = [path for path in files if _may_hold_labels(path)]
    if len(files) == 2:
        found = [path for path in files if os.path.isfile(path)]
    others = [path for path in files if path not in found]
    if len(found) != 1 or not others:
        return None
    recordings = _recordings(others) or matching_files(others[0])
    if len(others) > 1:
        recordings = others
    return _with_label_file(others, recordings, found[0], options, progress)


def _may_hold_labels(path: str) -> bool:
    """Return True if a file has the name of one with a row for each recording."""
    is_data = bool(resolve_format(path, "auto")) and os.path.isfile(path)
    return is_data and bool(_words(path) & LABEL_FILE_WORDS)


def _with_label_file(
    given: Sequence[str],
    recordings: Sequence[str],
    path: str,
    options: InitOptions,
    progress: ReadingProgress,
) -> FileLayout | None:
    """Return the layout of recordings with their labels in a file, or None if it lacks them.

    Args:
        given: The recordings as the user gave them: files, or one folder or pattern.
        recordings: Paths of all recordings.
        path: The file.
        options: Options of the user.
        progress: Reports the number of rows.
    """
    formats = {resolve_format(each, "auto") for each in recordings}
    if len(recordings) < FEWEST_FILES or len(formats) > 1 or not formats <= set(RECORDINGS):
        return None
    if options.get("path") or options.get("join"):
        return None
    own = read_table(recordings[:1], FileLayout({}, InitOptions()), progress, is_train=False)
    names = [str(column.name) for column in own.columns]
    if _have_label(own) or any(str(name) in names for name in options.named("label")):
        return None
    found = label_file(path, recordings, names, progress)
    if found is None:
        return None
    train: str | list[str] = given[0]
    if len(given) > 1:
        train = pattern_of(recordings) or list(recordings)
    if len(found.labels) == 1 and not options.named("label"):
        options = options.with_given(label=found.labels)
    layout = FileLayout({"train": train}, options, joins=[found.join], facts=found.labels)
    return _with_pattern(layout, found.pattern)


def _recognise_label_file(layout: FileLayout, progress: ReadingProgress) -> list[Choice]:
    """Return a layout for each file beside recordings, or among them, that has a row for each."""
    train = layout.splits["train"]
    if not isinstance(train, str) or layout.options.get("format") is not None or layout.pattern:
        return []
    folder, recordings = train, list[str]()
    if os.path.isdir(train):
        for path in _paths(train):
            recordings += _paths(path) if os.path.isdir(path) else [path]
        recordings = [path for path in recordings if resolve_format(path, "auto") in RECORDINGS]
    else:
        recordings = matching_files(train)
        folder = os.path.dirname(train)
    if len(recordings) < FEWEST_FILES:
        return []
    inside = [path for path in recordings if _may_hold_labels(path)]
    if len(inside) > MOST_LABEL_FILES:
        return []
    others = [path for path in recordings if path not in inside]
    beside = os.path.dirname(os.path.normpath(folder)) if folder else ""
    found = [*inside, *_data_files(beside, LABEL_FILE_WORDS)]
    choices = []
    found = list({os.path.normpath(path): path for path in found if path not in others}.values())
    for path in found:
        given = others if inside else [train]
        labelled = _with_label_file(given, others, path, layout.options, progress)
        if labelled is not None:
            command = shlex.join(["seqtrain", "init", str(labelled.splits["train"]), path])
            choices.append(Choice(command, labelled))
    return choices


def commands_for_recordings(table: Table) -> list[str]:
    """Return lines with a command for each folder of recordings for which a table has labels."""
    if not os.path.isfile(table.path):
        return []
    lines = []
    for folder in filter(os.path.isdir, _paths(os.path.dirname(table.path))):
        recordings, options = _recordings([folder]), InitOptions()
        if _with_label_file([folder], recordings, table.path, options, ReadingProgress()):
            lines.append(f"  {shlex.join(['seqtrain', 'init', folder, table.path])}")
    if lines:
        lines.insert(0, f"or, if {table.name} has a row for each of these recordings:")
    return lines


# Labels in names


def _recognise_names(layout: FileLayout, progress: ReadingProgress) -> list[Choice]:
    """Return a layout for each part of the paths of recordings that may be the label."""
    recordings = _recordings(files_of("train", layout.splits["train"]), layout.options)
    return [
        Choice(set_command(f"data.path={flow(pattern)}"), _with_pattern(layout, pattern))
        for pattern in _path_patterns(recordings, progress)
    ]


def _path_patterns(recordings: Sequence[str], progress: ReadingProgress) -> list[str]:
    """Return the ways to read labels from the folders and the names of recordings.

    A way is a value of data.path. The names of folders are labels if several files share each. If a
    column has the name of a label, the list is empty: then the files are parts of a table.
    """
    patterns = name_patterns(recordings)
    folders = {os.path.basename(os.path.dirname(path)) for path in recordings}
    found = [pattern for pattern, labels in patterns if labels != folders or len(folders) == 1]
    if len(recordings) >= FEWEST_FILES and 2 <= len(folders) <= len(recordings) / 2:
        found.insert(0, _folder_pattern(1))
    if found and columns_of_format(resolve_format(recordings[0], "auto") or "txt") != "none":
        plain = FileLayout({}, InitOptions())
        table = read_table(recordings[:1], plain, progress, is_train=False)
        if _have_label(table):
            return []
    return found


def _recognise_class_files(layout: FileLayout, progress: ReadingProgress) -> list[Choice]:
    """Return a layout of files whose names are labels, and one for each column that may be it."""
    recordings = _recordings(files_of("train", layout.splits["train"]), layout.options)
    if name_patterns(recordings):
        return []
    pattern, columns = _class_files(recordings, progress)
    if pattern is None:
        return []
    command = set_command(f"data.path={flow(pattern)}")
    return [
        Choice(command, _with_pattern(layout, pattern)),
        *(Choice(line.strip(), layout) for line in commands("label", columns)),
    ]


def _class_files(
    files: Sequence[str], progress: ReadingProgress
) -> tuple[str | None, list[ColumnProfile]]:
    """Return the value of data.path if each file is a class, and columns that may be the label.

    Such files have equal columns, none of which is named like a label. A label has values that two
    files share. An id hasn't.
    """
    pattern = class_pattern(files)
    if pattern is None:
        return None, []
    plain = FileLayout({}, InitOptions())
    first, last = (
        read_table([path], plain, progress, is_train=False) for path in (files[0], files[-1])
    )
    if [column.name for column in first.columns] != [column.name for column in last.columns]:
        return None, []
    if _have_label(first) or _have_label(last):
        return None, []
    columns = []
    for one, other in zip(first.columns, last.columns, strict=True):
        is_possible = one.can_be_label and other.can_be_label and not is_no_outcome(one)
        counts = one.kind == "number" and (np.diff(one.numbers) >= 0).all()  # such as trials
        if is_possible and not counts and {*map(str, one.values)} & {*map(str, other.values)}:
            columns.append(one)
    return pattern, columns


def _have_label(table: Table) -> bool:
    """Return True if a column of a table is named like a label, and may hold labels.

    A number `y` beside a number `x` is a coordinate.
    """
    numbers = {column.word for column in table.columns if column.kind == "number"}
    for column in table.columns:
        is_coordinate = column.word == "y" and {"x", "y"} <= numbers
        if names_outcome(column) and not column.has_no_labels and not is_coordinate:
            return True
    return False


def _refuse_paths_as_labels(layout: FileLayout, progress: ReadingProgress) -> None:
    """Raise a DataError if the label is to be the path of a recording, or the name of its folder.

    Raises:
        DataError: The error has a command for each part of the paths that may be the label.
    """
    label = layout.options.named("label")[0]
    if label not in (FILE, FOLDER):
        return
    train = layout.splits["train"]
    recordings = _recordings(files_of("train", train), layout.options)
    patterns = _path_patterns(recordings, progress) if recordings else []
    files = [train] if isinstance(train, str) else train
    lines = [
        f"  {shlex.join(['seqtrain', 'init', *files, '--set', f'data.path={flow(pattern)}'])}"
        for pattern in patterns
    ]
    if lines:
        found = f"--label: {label} isn't a column; if a part of the paths is the label:"
        raise DataError(found, *lines)


def _recordings_of_train(files: Sequence[str], progress: ReadingProgress) -> Splits | None:
    """Return files as train if their paths hold labels, or None.

    A shell replaces a pattern by its files. If the pattern is found again, it stands for them.
    """
    if len(files) < 2 or any(map(split_of, files)) or not all(map(os.path.isfile, files)):
        return None
    formats = {resolve_format(path, "auto") for path in files}
    if len(formats) > 1 or not formats <= set(RECORDINGS):
        return None
    if not _path_patterns(files, progress) and not _class_files(files, progress)[0]:
        return None
    return {"train": pattern_of(files) or list(files)}


def _recordings(files: Sequence[str], options: InitOptions | None = None) -> list[str]:
    """Return the files of recordings: several tables or arrays, by a pattern or in a folder.

    A folder may have a sub-folder for each class.

    Args:
        files: The files, or one folder.
        options: Options of the user. With a format, files with other endings may be recordings.
    """
    given = None if options is None else options.get("format")
    if len(files) > 1 or not os.path.isdir(files[0]):
        if len(files) > 1:
            return list(files)
        return []
    found = list[str]()
    for path in _paths(files[0]):
        found += _paths(path) if os.path.isdir(path) else [path]
    formats = {given or resolve_format(path, "auto") for path in found if os.path.isfile(path)}
    is_one = len(formats) == 1 and formats <= set(RECORDINGS) and all(map(os.path.isfile, found))
    if is_one:
        return found
    return []


def name_patterns(files: Sequence[str]) -> list[tuple[str, set[str]]]:
    """Return the ways to read labels from the names of recordings, and the labels of each.

    A way is a value of data.path. Names must have equally many parts, such as `walking_003.csv`. A
    label is a part of letters that several files share.
    """
    names = [uncompressed(os.path.basename(file)) for file in files]
    stems = [os.path.splitext(name)[0] for name in names]
    split = [re.split(BETWEEN_PARTS, stem) for stem in stems]
    separators = re.findall(BETWEEN_PARTS, stems[0]) if stems else []
    if {len(parts) for parts in split} == {1}:  # walking003
        found = [re.fullmatch("([A-Za-z]+)([0-9]+)", stem) for stem in stems]
        split, separators = [list(each.groups()) for each in found if each], [""]
    if len(split) < max(FEWEST_FILES, len(files)) or len({len(parts) for parts in split}) != 1:
        return []
    columns = [list(part) for part in zip(*split, strict=True)]
    kinds = [_kind_of_part(values) for values in columns]
    patterns = []
    for label, values in enumerate(columns):
        if kinds[label] != "label" or not 2 <= len(set(values)) <= len(values) / 2:
            continue
        pattern = ""
        for at, kind in enumerate(kinds):
            text = KINDS_OF_PART.get(kind, "[^._ -]+")
            if at == label:
                name = LABEL
            elif kind == "code":
                name = SUBJECT
            else:
                name = None
            if name and f"<{name}>" not in pattern:
                text = f"(?P<{name}>{text})"
            pattern += text + re.escape("".join(separators[at : at + 1]))
        patterns.append((pattern, set(values)))
    return patterns


def _kind_of_part(values: Sequence[str]) -> str:
    for kind, pattern in KINDS_OF_PART.items():
        if all(re.fullmatch(pattern, value) for value in values):
            return kind
    return "other"


def _with_pattern(layout: FileLayout, pattern: str) -> FileLayout:
    """Return the layout of recordings with columns in their names.

    Args:
        layout: The files, and options of the user.
        pattern: Value of data.path.
    """
    files, given = files_of("train", layout.splits["train"]), dict[str, Any]()
    recordings = _recordings(files, layout.options)
    own = resolve_format((recordings or files)[0], "auto")
    format = layout.options.get("format") or own or "csv"
    if f"(?P<{LABEL}>" in pattern and not layout.options.named("label"):
        given["label"] = [LABEL]
    label = str(next(iter(layout.options.named("label")), LABEL))
    is_table = columns_of_format(format) != "none" or step_columns((recordings or files)[0])
    if is_table and not are_classes(recordings or files, pattern, label):
        given["id"] = layout.options.get("id", FILE)
    if os.path.isdir(files[0]) and recordings:
        given["format"] = format
        if own != format:  # a folder of format csv holds files .csv
            splits = layout.splits | {"train": pattern_of(recordings) or recordings}
            layout = replace(layout, splits=splits)
    group = SUBJECT if f"(?P<{SUBJECT}>" in pattern else None
    options = layout.options.with_given(**given)
    return replace(layout, options=options, pattern=pattern, group=group)


RECOGNISERS: tuple[Recogniser, ...] = (
    _recognise_pair,
    _recognise_label_file,
    _recognise_names,
    _recognise_class_files,
)
"""Recognisers of labels that aren't columns of the files."""
