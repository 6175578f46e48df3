"""Layouts with labels in other files: pairs of files, and a file with a row for each recording."""

import math
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from seqtrain.config.document import flow
from seqtrain.errors import DataError
from seqtrain.proposal.class_columns import refuse_names_of_sequences
from seqtrain.proposal.conversions import can_be_converted, reading_options
from seqtrain.proposal.file_names import (
    FEWEST_FILES,
    NUMBER_IN_NAME,
    OWNER_FILE_WORDS,
    RECORDINGS,
    Choice,
    inside,
    num_lines,
    odd_name,
    split_of,
    splits_of,
    two_levels,
    words_of,
)
from seqtrain.proposal.first_lines import begin_with_labels, first_lines
from seqtrain.proposal.joined_ids import MOST_COLUMNS, MOST_PARTS
from seqtrain.proposal.label_files import (
    label_file,
    pattern_of,
    pattern_or_list,
    refuse_labelled_texts,
    refuse_other_names,
)
from seqtrain.proposal.options import FileLayout, InitOptions
from seqtrain.proposal.profile import REPEATS, ColumnProfile, JoinedColumn, joined_column
from seqtrain.proposal.reading import ReadingProgress, read_alone, read_table
from seqtrain.proposal.recordings import has_label_column, have_label, recordings_of, with_pattern
from seqtrain.proposal.roles import set_command
from seqtrain.proposal.shell import init_line
from seqtrain.proposal.table import Table
from seqtrain.tables.arrays import labels_file
from seqtrain.tables.blocks import INPUT_WORDS, LABEL, SPLIT_NAMES, TARGET_WORDS
from seqtrain.tables.cells import is_number
from seqtrain.tables.conversions.forms import conversion, conversion_lines
from seqtrain.tables.formats import columns_of_format, resolve_format
from seqtrain.tables.join import ROW, begins_with_names, column_of, key_columns
from seqtrain.tables.sources import matching_files
from seqtrain.text import counted, display_name, quote

LABEL_FILE_WORDS = TARGET_WORDS | {
    "annotations",
    "index",
    "info",
    "meta",
    "metadata",
    "reference",
    "subjects",
}
"""Words in the name of a file that may hold a row for each recording."""
PLAIN_KEYS = ("id", "index", "idx", "nr", "no", "key", "")
"""Names of keys that any table may have."""
FEWEST_KEYS = 4
"""Fewest keys that two tables have, so that a user is asked if these join them."""
FEWEST_SHARED = 0.1
"""Smallest share of the keys of one table that are in the other one, if they aren't numbers."""
FEWEST_NUMBER_KEYS = 20
"""Fewest numbers that are keys, where most keys of the other table aren't among them."""
MOST_PARALLEL = 8
"""Largest number of files whose lines are compared with those of a file of texts."""
MOST_LABEL_FILES = 4
"""Largest number of files that are compared with the names of recordings."""


def pairs_inside(folder: str, progress: ReadingProgress) -> list[str]:
    """Return the files of a folder, or of its splits, whose labels are in other files, or [].

    Args:
        folder: The folder.
        progress: Reports the number of rows.

    Raises:
        DataError: If the name of a file says that its labels are elsewhere, and they are nowhere.
    """
    files, folders = inside(folder)
    files += [path for each in folders if split_of(each) for path in inside(each)[0]]
    data = [path for path in files if resolve_format(path, "auto")]
    targets = [path for path in data if words_of(path) & TARGET_WORDS]
    files_beside = _FilesBeside(targets, TARGET_WORDS)  # a folder may hold many files
    others = [path for path in data if not words_of(path) & TARGET_WORDS]
    found = [path for path in others if files_beside.named_as(path)]
    are_two = len(others) == len(targets) == 1 and not folders
    if are_two and resolve_format(others[0], "auto") == "txt":  # else it would be the only class
        return [*others, *targets]
    inputs = [path for path in data if words_of(path) & {"x"}]
    if not found and len(inputs) == len(data) > 0 and not has_label_column(inputs[0], progress):
        raise DataError(_labels_missing(inputs[0]))
    return found


def without_targets(files: Sequence[str]) -> list[str]:
    """Return the files of which none holds the labels of another one, by their names.

    Each folder is listed once: a user may give thousands of files.
    """
    present = [path for path in files if os.path.isfile(path)]
    folders = {os.path.dirname(path) for path in present}
    named = [path for folder in folders for path in _data_files(folder, TARGET_WORDS)]
    files_beside = _FilesBeside(named, TARGET_WORDS)
    targets = set[str]()
    for path in present:
        found = files_beside.of(path)
        targets.update(found)
        if found:
            targets.update(_owner_files(path))
    return [path for path in files if path not in targets]


def only_texts(files: Sequence[str]) -> list[str]:
    """Return the only file of which all others may have a label per line, or the files.

    Args:
        files: Files, or one folder.
    """
    found = list(files)
    if len(files) == 1 and os.path.isdir(files[0]):
        found, folders = inside(files[0])
        if folders:
            return list(files)
    if not 2 <= len(found) <= MOST_PARALLEL:
        return list(files)
    texts = [path for path in found if labels_of_lines(path, found)]
    return texts if len(texts) == 1 else list(files)


def labels_of_lines(path: str, others: Sequence[str]) -> list[str]:
    """Return the .txt files that have a label for each line of a .txt file of texts.

    A label is one word, and comes again. The names of the files differ in one word, and none of the
    texts has a label before a tab.
    """
    files = [x for x in (path, *others) if os.path.isfile(x) and resolve_format(x, "auto") == "txt"]
    beside = [x for x in files[1:] if len(words_of(path) ^ words_of(x)) == 2]
    if path not in files or not 0 < len(beside) <= MOST_PARALLEL:
        return []
    lines = first_lines(path) or [""]
    if any("\t" in line for line in lines) or all(map(is_number, lines[0].split())):
        return []
    size = num_lines(path, blank=True)
    aligned = [x for x in beside if num_lines(x, blank=True) == size]
    found = []
    for other in aligned:
        labels = first_lines(other)
        are_words = all(len(line.split()) == 1 for line in labels)
        if are_words and 2 <= len(set(labels)) <= len(labels) / REPEATS:
            found.append(other)
    return found


class _FilesBeside:
    """Files with labels or owners of the rows of data files, by their folders and their names.

    Args:
        paths: The files, such as `y_train.csv`. There may be thousands.
        words: Words in their names that those of data files lack.
    """

    def __init__(self, paths: Sequence[str], words: Set[str]) -> None:
        self._of_train = [x for x in paths if words_of(x) - words <= SPLIT_NAMES["train"]]
        self._paths = dict[tuple[str, frozenset[str]], list[str]]()
        for path in paths:
            self._paths.setdefault(_key_of_name(path, words), []).append(path)

    def named_as(self, path: str) -> list[str]:
        """Return the files that have the name of a data file, but for words such as X and y."""
        found = self._paths.get(_key_of_name(path), ())
        return [other for other in found if other != path]

    def of(self, path: str) -> list[str]:
        """Return the files named as a data file, or else those of train in its folder."""
        folder = os.path.dirname(path)
        of_train = [x for x in self._of_train if os.path.dirname(x) == folder and x != path]
        return self.named_as(path) or of_train


def _key_of_name(path: str, words: Set[str] = frozenset()) -> tuple[str, frozenset[str]]:
    """Return the folder of a file and the words of its name, but for some and those of inputs."""
    return os.path.dirname(path), frozenset(words_of(path) - words - INPUT_WORDS)


def _with_further_words(path: str, targets: Sequence[str], loose: Sequence[str]) -> list[str]:
    """Return the files of labels of a data file, and those with further words in their names.

    Such as `y_train_fine.csv` beside `y_train.csv`.
    """
    own, split = words_of(path) - INPUT_WORDS, split_of(path)
    others = [x for x in loose if x not in targets and split_of(x) == split]
    if not targets or not own:
        return list(targets)
    return [*targets, *(x for x in others if words_of(x) > own)]


def _data_files(folder: str, words: Set[str]) -> list[str]:
    """Return the data files of a folder in whose names is one of some words."""
    found = [path for path in inside(folder)[0] if words_of(path) & words]
    return [path for path in found if resolve_format(path, "auto")]


def _labels_missing(path: str) -> str:
    return (
        f"{display_name(path)}: its name says that labels are elsewhere, but no file y… or "
        "…labels… is beside it; add one, or give --label COLUMN or --set "
        "'data.join=[{file: FILE, on: COLUMN}]'"
    )


def recognise_pair(layout: FileLayout, progress: ReadingProgress) -> list[Choice]:
    """Return a layout for each file that may hold the labels of the file of train.

    Files such as `subject_train.txt` are joined, too: their column is the group.

    Raises:
        DataError: If the name says that labels are elsewhere, and they are nowhere.
    """
    path = layout.splits["train"]
    if not isinstance(path, str) or not os.path.isfile(path):
        return []
    format, label = resolve_format(path, "auto") or "csv", layout.options.named("label")
    is_input = "x" in words_of(path) and not label
    folder = os.path.dirname(path)
    loose = [other for other in _data_files(folder, TARGET_WORDS) if other != path]
    if format == "npz" and path.endswith(".npy"):  # its reader finds y.npy
        if labels_file(path):
            return _with_owner(layout, read_table([path], layout, progress), progress)
        if is_input:
            raise DataError(_labels_missing(path))
        return []
    targets = _FilesBeside(loose, TARGET_WORDS).of(path)
    targets = _with_further_words(path, targets, loose)
    if not targets and not loose:
        targets = labels_of_lines(path, inside(folder)[0])
    if not targets and not loose:
        may_lack = is_input and columns_of_format(format) != "none"
        if may_lack and not has_label_column(path, progress):
            raise DataError(_labels_missing(path))
        return []
    options = layout.options.without_columns()
    is_text = format == "txt"
    if is_text:
        options = options.with_given(format="lines")  # a sequence per line
    has_places = columns_of_format(format) == "none"  # a table may have one column, of texts
    layout_alone = replace(layout, options=options)
    table = read_table([path], layout_alone, progress, is_train=has_places)
    if _has_labels_inside(table):
        return []
    own = {column.name_text for column in table.columns} | set(map(str, range(len(table.columns))))
    if label and own.issuperset(map(str, label)):
        return []
    group, joins = _owner_beside(table, progress)
    choices = []
    has_label = table.has_columns and have_label(table)
    for target in targets or loose:
        try:
            join, columns = _join_of(table, target, progress)
        except DataError:
            if is_input and targets:
                raise
            continue  # another file of the folder, which isn't about the table
        if join is None or (is_text and join["on"] == ROW and begin_with_labels(path, target)):
            continue
        by_chance = join["on"] == ROW or _may_match_by_chance(table, join, target)
        is_target = bool(targets) and (is_input or not has_label)
        if is_target or not (has_label or by_chance):
            options = layout.options
            if _only(columns) and not label:
                options = options.with_given(label=columns)
            found_joins = [join, *joins]
            command = set_command(f"data.join={flow(found_joins)}")
            found = replace(layout, options=options, joins=found_joins, group=group)
            choices.append(Choice(command, replace(found, label_columns=columns)))
    if is_input and targets and not choices and not has_label:
        raise _other_rows(table, targets[0], progress)
    named = [x for x in choices if own.union(x.layout.label_columns).issuperset(map(str, label))]
    return named or choices


def _with_owner(layout: FileLayout, table: Table, progress: ReadingProgress) -> list[Choice]:
    """Return the layout of a table and a file of the owner of each row, or [] if there is none."""
    group, joins = _owner_beside(table, progress)
    if not joins:
        return []
    found = replace(layout, joins=joins, group=group)
    return [Choice(set_command(f"data.join={flow(joins)}"), found)]


def _has_labels_inside(table: Table) -> bool:
    """Return True if the reader of a file without columns finds its labels, as that of npz does."""
    labels = table.column(LABEL)
    return not table.has_columns and labels is not None and labels.distinct > 0


def _owner_beside(
    table: Table, progress: ReadingProgress
) -> tuple[str | None, list[dict[str, Any]]]:
    """Return the column of the owner of each row in a file beside a table, and how it is joined.

    Such as `subject_train.txt` beside `X_train.txt`. They are None and [] if there is none.
    """
    group, joins = None, list[dict[str, Any]]()
    for side in _owner_files(table.path):
        join, columns = _join_of(table, side, progress)
        if join is not None:
            group, joins = _only(columns), [join]
    return group, joins


def _owner_files(path: str) -> list[str]:
    """Return the files beside a data file whose names tell that they have the owner of each row."""
    owners = _data_files(os.path.dirname(path), OWNER_FILE_WORDS)
    return _FilesBeside(owners, OWNER_FILE_WORDS).named_as(path)


def refuse_unjoined(layout: FileLayout, targets: Sequence[str], progress: ReadingProgress) -> None:
    """Raise a DataError if the user gave the file of labels of a table, and it can't be joined.

    Args:
        layout: The layout of the other files.
        targets: Files that were given, and hold labels by their names.
        progress: Reports the number of rows.
    """
    path = layout.splits["train"]
    if not targets or not isinstance(path, str) or not os.path.isfile(path):
        return
    table = read_table([path], layout, progress, is_train=False)
    if _has_labels_inside(table):
        return
    if not (table.has_columns and have_label(table)):
        raise _other_rows(table, targets[0], progress)


def _other_rows(table: Table, path: str, progress: ReadingProgress) -> DataError:
    """Return the error about a file of labels that has another number of rows, and no key."""
    other = read_alone(path, progress)
    lines = [
        f"{table.name}: {other.name} seems to hold its labels, but has {other.rows:,} rows in "
        f"place of {table.rows:,}; expected as many rows in the same order, or a column of "
        "both files that names each row"
    ]
    if not table.has_columns:
        if num_lines(table.path, blank=True) == other.rows:
            lines.append("blank lines are no rows; to write a mark there:")
            lines += conversion_lines("marked", table.path, shlex.quote(path))
        return DataError(*lines)
    for key in other.columns:
        own = table.column(key.name)
        if isinstance(key.name, str) and own is not None and not _has_values_of(own, key):
            values, keys = (quote(str(x.values[0]), 30) for x in (own, key))
            lines.append(f"{key.shown} of both holds other values, such as {values} and {keys}")
            if own.kind == key.kind == "number" and {*own.numbers} & {*key.numbers}:
                lines[-1] += ": write numbers in one way, such as without zeros in front"
    return DataError(*lines)


def _may_match_by_chance(table: Table, join: Mapping[str, Any], path: str) -> bool:
    """Return True if keys named id only number the rows, and the file is named like other data.

    Args:
        table: Table of the data file.
        join: Entry of data.join.
        path: The file that is joined. `labels.csv` and `metadata.csv` may be of any data file.
    """
    key = _key_in(table, join)
    others = words_of(path) - words_of(table.path) - LABEL_FILE_WORDS
    if key is None or key.word not in PLAIN_KEYS or not others or key.distinct < key.rows:
        return False
    numbers = np.sort(key.value_numbers)
    return key.kind == "number" and bool(numbers[0] in (0, 1) and np.all(np.diff(numbers) == 1))


def joined_by_key(
    files: Sequence[str], options: InitOptions, progress: ReadingProgress
) -> FileLayout | None:
    """Return the layout of two files, one of which has a row per key of the other, or None.

    The key, such as a customer, repeats in one file. The other file may hold the labels. A folder
    may hold these files, and no others.

    Raises:
        DataError: If the key has another name in each file, or repeats in none. The error has the
            commands that join them.
    """
    if len(files) == 1 and os.path.isdir(files[0]):
        found, folders = inside(files[0])
        files = [path for path in found if resolve_format(path, "auto")]
        if folders or not {resolve_format(path, "auto") for path in files} <= set(RECORDINGS):
            return None
    names = {NUMBER_IN_NAME.sub("0", path) for path in files}
    are_files = all(map(os.path.isfile, files))
    splits = set(splits_of(files))
    if not are_files or len(files) != 2 or len(names) < 2 or splits != {"train"}:
        return None
    tables = [read_alone(path, progress) for path in files]
    pairs = (tables, tables[::-1])
    for table, other in pairs:
        join, _ = _join_of(table, other.path, progress)
        key = _key_in(table, join or {"on": ROW})
        if join is not None and key is not None and key.repeats:
            return FileLayout({"train": table.path}, options, joins=[join])
    commands = []
    for table, other in pairs:
        for possible in _keys(table, other):
            if possible.may_be_meant:
                commands.append(_command_of_key(table, other, possible))
    if not commands:
        for table, other in pairs:
            refuse_names_of_sequences(table, other)
            _refuse_nameless_keys(table, other)
        return None
    both = " and ".join(display_name(path) for path in files)
    raise DataError(f"{both}: columns of both have equal values; to join them:", *commands)


def _command_of_key(table: Table, other: Table, key: "_Key") -> str:
    """Return a line with the command that joins two tables by a key, and the number of its keys."""
    words = ["--set", f"data.join={flow([{'file': other.path, 'on': key.on}])}"]
    values = counted(key.left.distinct, "value")
    comment = f"{key.shared:,} of {values} of {key.left.shown} have a row there"
    if key.shared < key.left.distinct:
        words += ["--set", "data.bad_rows=drop"]
        comment += "; the rows of others are left out"
    return f"{init_line(table.path, *words)}  # {comment}"


def _refuse_nameless_keys(table: Table, other: Table) -> None:
    """Raise a DataError if another table has a row for each key of a table, but no names.

    Raises:
        DataError: The error has a command that writes names of columns.
    """
    if not can_be_converted(other) or other.header is not False:
        return
    repeated = [x for x in table.columns if x.repeats and isinstance(x.name, str)]
    for place, right in enumerate(other.columns):
        if not right.distinct == other.rows >= FEWEST_KEYS:
            continue
        for left in filter(lambda left: _key(left, right).are_equal, repeated):
            options = {"column": [place], "name": left.name_text, **reading_options(other)}
            line, target = conversion("named", other.path, **options)
            raise DataError(
                f"{other.name}: has a row for each value of {left.shown} of {table.name}, but no "
                "names of columns; to write names:",
                f"  {line}",
                f"{init_line(table.path)} {target}",
            )


class _Key(NamedTuple):
    """A key by which a table may be joined to another one, in which each row has another key.

    Attributes:
        left: The column, or the columns together, in the table.
        right: Those in the other table.
        shared: Number of values that both have.
    """

    left: ColumnProfile
    right: ColumnProfile
    shared: int

    @property
    def has_one_name(self) -> bool:
        """True if the columns have the same names in both tables."""
        return self.left.name == self.right.name

    @property
    def on(self) -> Any:
        """Value of `on` of the join."""
        if isinstance(self.left, JoinedColumn):
            return [part.name for part in self.left.parts]
        if self.has_one_name:
            return self.left.name
        return {"left": self.left.name, "right": self.right.name}

    @property
    def are_found(self) -> bool:
        """True if most values of the table are in the other one."""
        return 2 * self.shared > self.left.distinct

    @property
    def are_equal(self) -> bool:
        """True if most values of each table are in the other one."""
        return self.are_found and 2 * self.shared > self.right.distinct

    @property
    def may_be_meant(self) -> bool:
        """True if several values of one table are in the other one, and not by chance.

        Numbers such as ages may also be ids of customers.
        """
        if self.shared < FEWEST_KEYS:
            return False
        if self.are_equal:
            return True
        if self.left.kind != "number":
            return self.shared >= FEWEST_SHARED * min(self.left.distinct, self.right.distinct)
        are_many = self.left.distinct == self.shared >= FEWEST_NUMBER_KEYS
        return are_many and self.left.word not in PLAIN_KEYS


def _keys(table: Table, other: Table) -> Iterator[_Key]:
    """Yield the keys by which a table may be joined to another one: those of one name first.

    Several columns are a key together if none of them is one, and no fewer are.
    """
    own = {x.name_text: x for x in table.columns if isinstance(x.name, str)}
    others = {x.name_text: x for x in other.columns if isinstance(x.name, str)}
    if others.keys() <= own.keys():  # it has no further column
        return
    keys = [x for x in others.values() if x.distinct == other.rows]
    common = [x for x in keys if x.name_text in own]
    for right in common:
        yield _key(own[right.name_text], right)
    parts = [x for x in others.values() if x.name_text in own and not x.differs]
    if common:
        parts = []
    for size in range(2, MOST_COLUMNS + 1):
        for together in combinations(parts[:MOST_PARTS], size):
            if math.prod(x.distinct for x in together) < other.rows:
                continue
            right = JoinedColumn(*together)
            if right.distinct == other.rows:
                yield _key(JoinedColumn(*(own[x.name_text] for x in together)), right)
                return
    for right in keys:
        for left in own.values():
            if left.name_text not in others:
                yield _key(left, right)


def _key(left: ColumnProfile, right: ColumnProfile) -> _Key:
    known = {str(value) for value in right.values}
    return _Key(left, right, sum(str(value) in known for value in left.values))


def _key_in(table: Table, join: Mapping[str, Any]) -> ColumnProfile | None:
    """Return the key of a join in a table, or None if the table lacks it or joins row by row."""
    found = [table.column(name) for name in key_columns(join["on"])[0]]
    columns = [column for column in found if column is not None]
    if not columns or len(columns) < len(found):
        return None
    return joined_column(columns)


def _join_of(
    table: Table, path: str, progress: ReadingProgress
) -> tuple[dict[str, Any] | None, list[str]]:
    """Return how a further file is joined to a table, and the names of its columns but the key.

    It is joined by a common key that has one row per value there, or by a key of another name if
    both have equally many rows, or else row by row.
    """
    # Names that the table has, too, tell that the first row of the other file names its columns.
    names = InitOptions(steps=[column.name for column in table.columns])
    other = read_table([path], FileLayout({}, names), progress, is_train=False)
    rows, has_names = other.rows, other.header
    is_single = len(other.columns) == 1
    if is_single and has_names is False and rows == table.rows + 1:  # a number as a name, as 0
        rows, has_names = table.rows, True
    own = {column.name for column in table.columns}
    new = [column.name_text for column in other.columns if column.name not in own]
    if is_single and not other.header:
        new = [column_of(path)]
    for key in _keys(table, other):
        is_sure = key.are_found
        if not key.has_one_name:
            is_other = key.right.name not in own and key.shared >= FEWEST_KEYS
            is_sure = is_other and key.are_equal and rows == table.rows
        if is_sure:
            return {"file": path, "on": key.on}, [name for name in new if name != key.right.name]
    if rows != table.rows:
        return None, new
    join: dict[str, Any] = {"file": path, "on": ROW}
    if has_names is not None and has_names != begins_with_names(path):
        join["header"] = has_names
    return join, new


def _only(names: Sequence[str]) -> str | None:
    """Return the only one of some names, or None."""
    return names[0] if len(names) == 1 else None


def _has_values_of(column: ColumnProfile, key: ColumnProfile) -> bool:
    """Return True if most values of a column are values of a key."""
    return _key(column, key).are_found


# Labels of recordings in another file


def recordings_and_labels(
    files: Sequence[str], options: InitOptions, progress: ReadingProgress
) -> FileLayout | None:
    """Return the layout of recordings and a file with a row for each of them, or None.

    The recordings are a folder, a pattern, or all other files.
    """
    found = [path for path in files if _may_hold_labels(path)] or odd_name(files)
    if len(files) == 2:
        found = [path for path in files if os.path.isfile(path)]
    others = [path for path in files if path not in found]
    if len(found) != 1 or not others:
        return None
    if len(others) == 1 and os.path.isdir(others[0]):
        refuse_labelled_texts(found[0], others[0], options)
    recordings = recordings_of(others, options) or matching_files(others[0])
    if len(others) > 1:
        recordings = others
    layout = _with_label_file(others, recordings, found[0], options, progress)
    if layout is None and len(recordings) >= FEWEST_FILES:
        refuse_other_names(found[0], recordings, others)
    return layout


def _may_hold_labels(path: str) -> bool:
    """Return True if a file has the name of one with a row for each recording."""
    has_name = resolve_format(path, "auto") and words_of(path) & LABEL_FILE_WORDS
    return bool(has_name) and os.path.isfile(path)


def _with_label_file(
    given: Sequence[str],
    recordings: Sequence[str],
    path: str,
    options: InitOptions,
    progress: ReadingProgress,
    *,
    is_listed: bool = False,
) -> FileLayout | None:
    """Return the layout of recordings with their labels in a file, or None if it lacks them.

    Args:
        given: The recordings as the user gave them: files, or one folder or pattern.
        recordings: Paths of all recordings.
        path: The file.
        options: Options of the user.
        progress: Reports the number of rows.
        is_listed: True if the file has the path of each recording. Then a column of the recordings
            that is named like a label isn't the label.
    """
    given_format = options.get("format")
    formats = {given_format or resolve_format(each, "auto") for each in recordings}
    if len(recordings) < FEWEST_FILES or len(formats) > 1 or not formats <= set(RECORDINGS):
        return None
    if options.get("path") or options.get("join"):
        return None
    own = read_alone(recordings[0], progress)
    names = [column.name_text for column in own.columns]
    if any(str(name) in names for name in options.named("label")):
        return None
    if have_label(own) and not is_listed:
        return None
    found = label_file(path, recordings, names, progress)
    if found is None:
        return None
    train: str | list[str] = given[0]
    if len(given) > 1:
        train = pattern_or_list(recordings)
    if len(found.labels) == 1 and not options.named("label"):
        options = options.with_given(label=found.labels)
    layout = FileLayout({"train": train}, options, joins=[found.join], label_columns=found.labels)
    return with_pattern(layout, found.pattern)


def listed_recordings(table: Table, progress: ReadingProgress) -> FileLayout | None:
    """Return the layout of recordings in folders whose paths a column of a table has, or None.

    The paths begin in the folder of the table.

    Args:
        table: The table. If it has files of other splits, or the user says what a row is, the
            result is None.
        progress: Reports the number of rows.
    """
    layout = table.layout
    is_alone = layout.files == [table.path] and os.path.isfile(table.path) and not layout.joins
    if not is_alone or not table.has_columns:
        return None
    if layout.options.named("id") or layout.options.named("sequence"):
        return None
    for column in table.columns:
        if not column.are_texts or not column.is_unique or "/" not in str(column.values[0]):
            continue
        folder = os.path.dirname(table.path)
        paths = sorted(os.path.join(folder, str(value)) for value in column.values)
        if all(map(os.path.isfile, paths)):
            return _with_label_file(
                paths, paths, table.path, layout.options, progress, is_listed=True
            )
    return None


def recognise_label_file(layout: FileLayout, progress: ReadingProgress) -> list[Choice]:
    """Return a layout for each file beside recordings, or among them, that has a row for each."""
    choices = []
    for own, recordings, path in _possible_label_files(layout):
        labelled = _with_label_file(own, recordings, path, layout.options, progress)
        if labelled is not None:
            line = init_line(str(labelled.splits["train"]), path)
            choices.append(Choice(line.strip(), labelled))
    if not choices:
        refuse_unread_label_file(layout, are_among=True)  # it would be read as a recording
    return choices


def refuse_texts_and_labels(folder: str, options: InitOptions) -> None:
    """Raise a DataError if a file in a folder of texts has their labels; see there."""
    if os.path.isdir(folder):
        for path in filter(_may_hold_labels, inside(folder)[0]):
            refuse_labelled_texts(path, folder, options)


def refuse_unread_label_file(layout: FileLayout, *, are_among: bool) -> None:
    """Raise a DataError if a file of labels hides the names of the recordings; see there.

    Args:
        layout: The layout of the recordings.
        are_among: True to look at files among the recordings, False for those beside.

    Raises:
        DataError: The error has the commands of `refuse_other_names`.
    """
    for own, recordings, path in _possible_label_files(layout):
        if are_among == (len(own) > 1):
            pattern = pattern_of(recordings) if are_among else None
            refuse_other_names(path, recordings, [pattern] if pattern else own)


def _possible_label_files(layout: FileLayout) -> list[tuple[list[str], list[str], str]]:
    """Return the files whose names tell that they have a row for each of the recordings of train.

    Each has before it the recordings as the user gave them, and their paths.
    """
    train = layout.splits["train"]
    given = layout.options.get("format")
    if not isinstance(train, str) or layout.pattern:
        return []
    folder = train
    if os.path.isdir(train):
        files, _ = two_levels(train)
        recordings = [
            path for path in files if (given or resolve_format(path, "auto")) in RECORDINGS
        ]
    else:
        recordings = matching_files(train)
        folder = os.path.dirname(train)
    if len(recordings) < FEWEST_FILES:
        return []
    inside = [path for path in recordings if _may_hold_labels(path)] or odd_name(recordings)
    if len(inside) > MOST_LABEL_FILES:
        return []
    others = [path for path in recordings if path not in inside]
    own = others if inside else [train]
    beside = os.path.dirname(os.path.normpath(folder)) if folder else ""
    found = [*inside, *_data_files(beside, LABEL_FILE_WORDS)]
    found = list({os.path.normpath(path): path for path in found if path not in others}.values())
    return [(own, others, path) for path in found]


def commands_for_recordings(table: Table) -> list[str]:
    """Return lines with a command for each folder of recordings for which a table has labels."""
    if not os.path.isfile(table.path):
        return []
    lines = []
    for folder in inside(os.path.dirname(table.path))[1]:
        recordings, options = recordings_of([folder]), InitOptions()
        with suppress(DataError):  # the files of the folder aren't about the table
            if _with_label_file([folder], recordings, table.path, options, ReadingProgress()):
                lines.append(init_line(folder, table.path))
    if lines:
        lines.insert(0, f"or, if {table.name} has a row for each of these recordings:")
    return lines


def commands_for_labels_beside(table: Table) -> list[str]:
    """Return lines with a command for each file beside a table that may have its labels by chance.

    Such a file isn't joined in silence, see `_may_match_by_chance`.
    """
    is_file = table.path == table.layout.splits["train"] and os.path.isfile(table.path)
    if not is_file or table.layout.joins or not table.has_columns:
        return []
    lines = []
    for path in _data_files(os.path.dirname(table.path), TARGET_WORDS):
        if path == table.path:
            continue
        join, _ = _join_of(table, path, ReadingProgress())
        if join is not None and join["on"] != ROW and _may_match_by_chance(table, join, path):
            lines.append(f"  {set_command(f'data.join={flow([join])}')}")
    if lines:
        lines.insert(0, "or, if a file beside it has the labels of its rows:")
    return lines
