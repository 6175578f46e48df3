"""Layouts of data files: splits by name, and labels in other files, in folders, or in names.

A recogniser looks at the files of train and returns the layouts that they may have, each with the
option by which a user chooses it. If several are possible, all are listed as commands.
"""

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias

from seqtrain.config.document import flow
from seqtrain.errors import DataError, either
from seqtrain.files.reading import compression_of
from seqtrain.proposal.channels import refuse_channels_alone
from seqtrain.proposal.class_files import MOST_CLASSES
from seqtrain.proposal.fasta_fields import refuse_labels_of_records
from seqtrain.proposal.file_names import (
    FEWEST_FILES,
    NUMBER_IN_NAME,
    RECORDINGS,
    SPLIT_IN_WORD,
    Choice,
    folder_pattern,
    inside,
    num_lines,
    odd_name,
    split_of,
    splits_of,
    words_of,
)
from seqtrain.proposal.first_lines import (
    begin_with_labels,
    filled_lines,
    first_lines,
    holds_numbers,
    is_number_or_time,
)
from seqtrain.proposal.label_files import label_file, pattern_of
from seqtrain.proposal.label_layouts import (
    joined_by_key,
    only_texts,
    pairs_inside,
    recognise_label_file,
    recognise_pair,
    recordings_and_labels,
    refuse_texts_and_labels,
    refuse_unjoined,
    refuse_unread_label_file,
    without_targets,
)
from seqtrain.proposal.names import is_counter, is_time
from seqtrain.proposal.options import INIT_COMMAND, FileLayout, InitOptions, Splits
from seqtrain.proposal.profile import REPEATS, without
from seqtrain.proposal.reading import ReadingProgress, read_alone
from seqtrain.proposal.recordings import (
    KINDS_OF_PART,
    as_table,
    commands_for_patterns,
    have_label,
    name_patterns,
    recognise_class_files,
    recognise_names,
    recordings_of,
    recordings_of_splits,
    refuse_groups_as_labels,
    refuse_paths_as_labels,
    with_partitions,
    with_pattern,
)
from seqtrain.proposal.roles import Roles, set_command, shown_names
from seqtrain.proposal.shell import init_line, set_option
from seqtrain.proposal.split_files import (
    about_other_files,
    chosen_files,
    data_folder,
    splits_inside,
)
from seqtrain.proposal.table import Table
from seqtrain.tables.blocks import FILE, TARGET_WORDS, TEXT, Dialect
from seqtrain.tables.cells import is_number
from seqtrain.tables.conversions.forms import conversion, conversion_lines
from seqtrain.tables.conversions.lines import BETWEEN_NUMBERS
from seqtrain.tables.formats import MEMORY, names_of, resolve_format
from seqtrain.tables.sources import files_below, matching_files, open_source
from seqtrain.text import counted, display_name, quote

NUMBER_WITH_COMMA = re.compile(r"[-+]?[0-9]+(?:,[0-9]+)?")
"""A number with a decimal comma, or a whole one."""
COMMENT_MARKS = "#%"
"""First characters of lines of text that are comments."""

FEWEST_TEXTS = 20
"""Fewest files of several lines each that are texts, and no collections of texts."""


Recogniser: TypeAlias = Callable[[FileLayout, ReadingProgress], list[Choice]]


def find_layout(
    files: Sequence[str], test: str | None, options: InitOptions, progress: ReadingProgress
) -> FileLayout:
    """Return the layout of data files.

    Args:
        files: Data files, or one folder or pattern. The splits among its files are used. If there
            are none, it is train itself.
        test: The test file, or None to recognize it by its name.
        options: Options of the user. A label among them is searched in other files only if the
            file of train lacks it.
        progress: Reports the number of rows.

    Raises:
        DataError: If no file is train, or several files may be the same split. Also if several
            layouts are possible, or names say that labels are elsewhere, and they are nowhere.
    """
    layout = _layout_of(files, test, options, progress)
    return replace(layout, notes=about_other_files(files, layout))


def _layout_of(
    files: Sequence[str], test: str | None, options: InitOptions, progress: ReadingProgress
) -> FileLayout:
    """Return the layout of data files; see `find_layout`."""
    format = options.get("format")
    if format is None:
        refuse_files_without_format(files)
        if any(map(_are_tables, files)):
            options = options.with_given(format="csv")
    if len(files) == 1 and os.path.isdir(files[0]):
        folder = data_folder(files[0])
        files = pairs_inside(folder, progress) or splits_inside(folder, format) or [folder]
        files = _without_labels(files)
    elif len(files) == 1:
        matching = matching_files(files[0])
        if {"train"} < {split_of(path) for path in matching}:
            files = matching
    files = chosen_files(files, format)
    refuse_labels_of_records(files, progress)
    if test is None:
        labelled = recordings_and_labels(files, options, progress)
        if labelled is not None:
            return labelled
    given, files = files, only_texts(without_targets(files) or files)
    splits = None
    if test is None:
        joined = joined_by_key(files, options, progress)
        if joined is not None:
            return joined
        splits = recordings_of_splits(files, progress)
    layout = FileLayout(splits or _splits(files, test), options)
    train = layout.train
    if train[0].startswith(MEMORY):
        return layout
    if options.get("join"):
        layout = replace(layout, joins=options.get("join"))
    if options.get("path"):
        return with_pattern(layout, options.get("path"))
    partitioned = with_partitions(layout)
    if layout.joins or partitioned is not None:
        return partitioned or layout
    if isinstance(layout.splits["train"], str) and options.get("format") is None:
        _refuse_text_recordings(layout.splits["train"])
    layout = as_table(layout, progress)
    recognisers = RECOGNISERS
    if options.named("label"):
        refuse_paths_as_labels(layout, progress)
        recognisers = (recognise_pair, recognise_label_file)
    choices = [choice for recognise in recognisers for choice in recognise(layout, progress)]
    if len(choices) > 1:
        raise DataError(
            f"{display_name(train[0])}: its labels may be in several places; choose one:",
            *(f"  {choice.command}" for choice in choices),
        )
    if not choices and not options.named("label"):
        refuse_groups_as_labels(layout, progress)
    if not choices and isinstance(layout.splits["train"], str):
        refuse_unread_label_file(layout, are_among=False)
        refuse_channels_alone(layout)
        refuse_texts_and_labels(layout.splits["train"], options)
        _check_texts(layout.splits["train"], options)
    if choices:
        return choices[0].layout
    refuse_unjoined(layout, [path for path in given if path not in files], progress)
    return layout


def _splits(files: Sequence[str], test: str | None) -> Splits:
    """Return the files of each split: that of a word in the name of a file, or train.

    A single file is train. Files of one split must have paths that differ only in numbers.
    """
    found: dict[str, list[str]] = {} if test is None else {"test": [test]}
    roles = ["train"] if len(files) == 1 else splits_of(files)
    for path, role in zip(files, roles, strict=True):
        known = found.setdefault(role, [])
        if known and NUMBER_IN_NAME.sub("0", known[0]) != NUMBER_IN_NAME.sub("0", path):
            raise _two_files_of(role, known[0], path, files)
        known.append(path)
    if "train" not in found:
        raise DataError(
            "train: all names are those of validation or test files; give one file to train on"
        )
    return {name: known if len(known) > 1 else known[0] for name, known in found.items()}


def _are_tables(path: str) -> bool:
    """Return True if the files .txt of a folder or pattern are tables with a row per line.

    Their lines have marks of csv between numbers, or begin with the same names. Of several folders,
    the files of the last one tell it: a file with labels may be beside the folders.
    """
    files = files_below(path) if os.path.isdir(path) else matching_files(path)
    files = [file for file in files if os.path.dirname(file) == os.path.dirname(files[-1])]
    if len(files) < 2 or {resolve_format(file, "auto") for file in files} - {None, "txt"}:
        return False
    looked = [files[0], files[len(files) // 2], files[-1]]
    if all(map(holds_numbers, looked)):
        return True
    first = {next(iter(filled_lines(file)), "") for file in looked}
    if len(first) > 1:
        return False
    names = re.split("[,;\t|]", first.pop())
    return len({*names}) == len(names) > 1 and not any(map(is_number, names))


def _may_be_test(path: str) -> int:
    """Return 0 if the name of a file has that of train in it, 2 if it has that of another split.

    Return 1 if it has none.
    """
    found = SPLIT_IN_WORD.search(os.path.basename(path))
    if found is None:
        return 1
    return 0 if split_of(found[0]) == "train" else 2


def _commands_for_equal_columns(files: Sequence[str]) -> list[str]:
    """Return lines with the commands that read files of equal columns, or [].

    One of two files may be the test file. Several files may be parts of one table.
    """
    formats = {resolve_format(path, "auto") for path in files}
    if len(formats) > 1 or not all(map(os.path.isfile, files)):
        return []
    tables = [read_alone(path, ReadingProgress()) for path in files]
    names = {tuple(column.name for column in table.columns) for table in tables}
    if len(names) > 1:
        return []
    lines = []
    if len(files) == 2:
        train, test = sorted(files, key=_may_be_test)
        lines += ["or, if one is the test file:", init_line(train, "--test", test)]
    pattern = pattern_of(sorted(files))
    if pattern is not None:
        lines += ["or, if they are parts of one table:", init_line(pattern)]
    return lines


def _two_files_of(role: str, first: str, second: str, files: Sequence[str]) -> DataError:
    """Return the error that two different files may be the same split.

    Args:
        role: The split.
        first: One of the files.
        second: The other file.
        files: All files.
    """
    both = f"{role}: both {quote(first)} and {quote(second)} may be it"
    if role != "train":
        return DataError(f"{both}; give one of them, or copy their rows into one file")
    lines = _commands_for_equal_columns(files)
    if not lines:
        join = flow([{"file": second, "on": "COLUMN"}])
        lines = [
            "or, if it has further columns of the same rows, with the column that both have:",
            init_line(first, "--set", f"data.join={join}"),
        ]
    return DataError(
        f"{both}; name files of other splits …validation… and …test…, or give --test FILE", *lines
    )


def _check_texts(path: str, options: InitOptions) -> None:
    """Raise a DataError if a folder isn't one of texts by class, although its endings say so.

    Args:
        path: The folder. Nothing is checked of other data.
        options: Options of the user. A format among them says that files are texts.
    """
    if not os.path.isdir(path) or resolve_format(path, "auto") != "txt":
        return
    files, folders = inside(path)
    for folder in folders:
        for inner in inside(folder)[1][:1]:
            raise DataError(
                f"{display_name(path)}: holds folders within folders, such as "
                f"{display_name(inner)}; expected a file of data, or one folder of files for "
                "each class; give the folder of one data set",
                *_commands_of_levels(path, inner),
            )
    if options.get("format") is None:
        _refuse_other_files(path, files, folders)
        _refuse_json_as_texts(path, folders)


def _refuse_other_files(path: str, files: Sequence[str], folders: Sequence[str]) -> None:
    """Raise a DataError if files in a folder of texts are no classes, or no texts of a class.

    Such as a page beside the folders of classes, or one in each of them whose name is made in
    another way than those of the texts.

    Args:
        path: The folder.
        files: Its files.
        folders: Its folders.

    Raises:
        DataError: The error has commands that copy the texts alone.
    """
    beside = [each for each in files if each.endswith(".txt")]
    with suppress(DataError):  # lists of links beside folders aren't read
        open_source(path, Dialect("txt"))
        beside = []
    if folders and beside:
        shown = f"{display_name(path)}: {display_name(beside[0])} is beside the folders"
        names = {os.path.basename(each) for each in beside}
    else:
        odd = [each for folder in folders for each in odd_name(inside(folder)[0])]
        names = {os.path.basename(each) for each in odd}
        if not len(odd) == len(folders) > len(names) == 1:
            return
        shown = f"{display_name(odd[0])}: its name isn't made as those of other texts of the folder"
    raise DataError(
        f"{shown}; if it is no text of a class, leave it out:",
        *conversion_lines("copied", path, without=sorted(names)),
        *([] if beside else ["or, if it is one:", init_line(path, "--format", "txt")]),
    )


def _refuse_text_recordings(path: str) -> None:
    """Raise a DataError if the .txt files of a folder are recordings with labels in their names.

    Lines of such a file are time steps, and no examples of a class of its own.
    """
    if not os.path.isdir(path) or resolve_format(path, "auto") != "txt":
        return
    files, folders = inside(path)
    endings = {os.path.splitext(each)[1] for each in files}
    if not folders and endings == {".txt"} and name_patterns(files):
        _refuse_lines_of_numbers(files, "each file has a label in its name")


def refuse_files_without_format(paths: Sequence[str]) -> None:
    """Raise a DataError if no ending of several files names a format, and their content tells one.

    Args:
        paths: The files, or one folder or pattern.
    """
    files, folders = list(paths), list[str]()
    if len(files) == 1 and os.path.isdir(files[0]):
        files, folders = inside(files[0])
    elif len(files) == 1:
        files = matching_files(files[0])
    if folders or len(files) < 2 or any(resolve_format(path, "auto") for path in files):
        return
    _refuse_endings_as_labels(files)
    if len({os.path.splitext(path)[1] for path in files}) == 1:
        _refuse_lines_of_numbers(files, "its ending names no format")


def _refuse_lines_of_numbers(files: Sequence[str], found: str) -> None:
    """Raise a DataError if lines of files are numbers, with the command that writes them as csv.

    Args:
        files: The files.
        found: The reason why they aren't read as they are.
    """
    is_text = all(map(os.path.isfile, files)) and not compression_of(files[0])
    lines = filled_lines(files[0]) if is_text else []
    lines = [line for line in lines if line[0] not in COMMENT_MARKS]
    rows = [BETWEEN_NUMBERS.split(line.strip()) for line in lines]
    if len(rows) < 2 or not all(map(is_number_or_time, rows[-1])):  # the first line may be names
        return
    folder = os.path.dirname(files[0])
    parts = re.split(r"[\s;|]+", lines[-1].strip())
    points = not all(map(NUMBER_WITH_COMMA.fullmatch, parts))
    raise DataError(
        f"{display_name(files[0])}: {found}, and its lines are numbers; if each file is a "
        "recording, and a line a time step, write them as csv:",
        *conversion_lines("measured", folder or files, points=points),
    )


def _refuse_endings_as_labels(files: Sequence[str]) -> None:
    """Raise a DataError if files differ in their endings alone: reviews.pos and reviews.neg."""
    parts = [os.path.splitext(os.path.basename(path)) for path in files]
    are_words = all(ending[1:].isalpha() for _, ending in parts) and not any(map(split_of, files))
    if not are_words or len(set(parts)) < 2 or len(dict(parts)) > 1:
        return
    new = f"{parts[0][0]}-classes"
    lines = list[str]()
    for path, (_, ending) in zip(files, parts, strict=True):
        command, _ = conversion("copied", path, output=f"{new}/{ending[1:]}.txt")
        lines.append(f"  {command}")
    raise DataError(
        f"{display_name(files[0])}: no ending names a format; if each ending is a label, and each "
        "line a text:",
        *lines,
        init_line(new),
    )


def _refuse_json_as_texts(path: str, folders: Sequence[str]) -> None:
    """Raise a DataError if the files in the folder of each class hold JSON.

    Args:
        path: The folder.
        folders: Its folders.
    """
    first = [file for folder in folders for file in inside(folder)[0][:1]]
    if not first:
        return
    if all(os.path.splitext(file)[1] == ".json" for file in first):
        label = ("--label", "class", "--set", r"data.path=(?P<class>[^/]+)/[^/]+$")
        raise DataError(
            f"{display_name(first[0])}: holds JSON; if an object is a row:",
            init_line(path, "--format", "jsonl", *label),
            "or, if a file is a text:",
            init_line(path, "--format", "txt"),
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
        files, folders = inside(inner)
        if not folders:
            break
        inner, levels = folders[0], levels + 1
    first = next(iter(files), "")
    if resolve_format(first, "auto") not in RECORDINGS:
        return []
    pattern_of_files = os.path.join(path, *["*"] * levels, f"*{os.path.splitext(first)[1]}")
    lines = []
    for index in inside(path)[0]:
        is_data = resolve_format(index, "auto") in RECORDINGS
        if is_data and label_file(index, matching_files(pattern_of_files), (), ReadingProgress()):
            lines.append(f"or, if {display_name(index)} has the labels of recordings:")
            lines.append(init_line(pattern_of_files, index))
    lines.append("or, if a file is a recording, and the name of a folder its label, one of these:")
    top = 1 if len(inside(path)[1]) == 1 else 0  # a single folder is no label
    for level in range(top, levels):
        pattern = folder_pattern(levels - level)
        lines.append(init_line(pattern_of_files, "--set", f"data.path={flow(pattern)}"))
    return lines


def _without_labels(files: Sequence[str]) -> Sequence[str]:
    """Return the file of texts in a folder with another one of labels, or else the files.

    The file of labels has a short line for each line of the other file, or most of its lines are
    first fields there.
    """
    if len(files) > 1 or not os.path.isdir(files[0]):
        return files
    both, folders = inside(files[0])
    if folders or len(both) != 2 or {os.path.splitext(path)[1] for path in both} != {".txt"}:
        return files
    for path, other in (both, both[::-1]):
        if not words_of(other) <= TARGET_WORDS:
            continue
        is_aligned = num_lines(path, blank=True) == num_lines(other, blank=True)
        are_few = REPEATS * len(set(first_lines(other))) <= num_lines(other)
        if (is_aligned and are_few) or begin_with_labels(path, other):
            return [path]
    return files


def read_single_rows(table: Table, options: InitOptions) -> None:
    """Leave out the id of files with labels in their paths if each file has one row.

    Args:
        table: The table, which is changed.
        options: Options of the user. An id among them stays.
    """
    file = table.column(FILE)
    has_label = table.layout.finds_label and table.has_columns
    if not has_label or "id" in options.given or file is None or file.distinct < table.rows:
        return
    table.columns = without(table.columns, [file])
    table.layout = replace(table.layout, options=table.options.with_given(id=None))


def refuse_texts_of_files(roles: Roles, layout: FileLayout, options: InitOptions) -> None:
    """Raise a DataError if rows of texts in files with labels in their paths may be examples.

    They may also be the turns of a sequence for each file, which a column then mostly sorts.

    Args:
        roles: Roles of the columns.
        layout: The files.
        options: Options of the user. With an id among them, it is clear.

    Raises:
        DataError: The error has a command for each.
    """
    has_label = layout.finds_label and roles.id is not None
    if not has_label or roles.kind != "text" or "id" in options.given or roles.order:
        return
    texts = shown_names(roles.sequence)
    as_turns = either(f"{INIT_COMMAND} --id {FILE}", f"id={FILE!r}")
    raise DataError(
        f"--id: each file has several rows of {texts}; choose what a row is:",
        f"  {set_command('data.id=null')}  # an example with the label of its file",
        f"  {as_turns}  # a turn of one sequence, which a file holds",
    )


def doubts_about_lines(table: Table, options: InitOptions) -> list[str]:
    """Return a warning if each file with a label in its name is a text of several lines.

    Args:
        table: The table.
        options: Options of the user. With an id among them, it is clear.

    Raises:
        DataError: If there are so few files that their lines may be the rows. The error has a
            command for each meaning.
    """
    texts = table.column(TEXT)
    if "id" in options.given or not table.layout.pattern or not table.has_whole_files:
        return []
    if texts is None or not any("\n" in str(value).strip() for value in texts.values):
        return []
    if table.rows >= FEWEST_TEXTS:
        advice = f"if each line is a row: {set_option('data.id=null')}"
        return [f"each file is a row, with all of its lines; {advice}"]
    as_texts = either(f"{INIT_COMMAND} --id {FILE}", f"id={FILE!r}")
    raise DataError(
        f"--id: each of {counted(table.rows, 'file')} has several lines; choose what a row is:",
        f"  {set_command('data.id=null')}  # a line",
        f"  {as_texts}  # a file",
    )


def about_missing_labels(table: Table) -> list[str]:
    """Return lines of an error about recordings whose labels are nowhere, or [].

    No column may hold labels. Times and counters aren't labels.
    """
    layout = table.layout
    if layout.pattern or layout.joins or layout.options.named("label"):
        return []
    recordings = recordings_of(layout.train, layout.options)
    possible = [x for x in table.columns if x.can_be_label and not (is_time(x) or is_counter(x))]
    if len(recordings) < FEWEST_FILES or possible or have_label(table):
        return []
    found = f"the names of {len(recordings):,} files and of their folders have no part of letters"
    return [
        f"{table.name}: no labels: no column holds them, and {found} that several files share",
        "if each file is a recording, write its label into its name, such as walk_01.csv",
        "or put the files of each label into a folder of its name",
        "or give a file with a row for each name and its label, too: seqtrain init FOLDER FILE",
    ]


def commands_for_names(table: Table) -> list[str]:
    """Return lines with a command for each part of the names of recordings that may be the label.

    These are numbers and codes: letters are proposed.
    """
    layout = table.layout
    if layout.pattern or layout.options.named("label"):
        return []
    found = name_patterns(recordings_of(layout.train, layout.options), KINDS_OF_PART)
    patterns = [pattern for pattern, labels in found if len(labels) <= MOST_CLASSES]
    lines = commands_for_patterns(layout, patterns)
    if lines:
        lines.insert(0, "or, if each file is a recording, and a part of its name the label:")
    return lines


def commands_for_files(table: Table) -> list[str]:
    """Return lines with a command that reads the rows of each file as a sequence, or [].

    The files are those of the table. If it is one file, they are those beside it whose names differ
    only in numbers.
    """
    layout, given = table.layout, table.layout.train
    if layout.finds_label or not table.has_columns:  # else its columns may hold the label
        return []
    if layout.options.named("id") not in ([], [FILE]):
        return []
    files = recordings_of(given, layout.options) or [
        path for name in given for path in matching_files(name)
    ]
    found = "if the rows of each file are a sequence:"
    if len(files) > 1:
        possible = [x for x in table.columns if x.can_be_label]
        has_label = any(x.kind == "text" or isinstance(x.name, int) for x in possible)
        if layout.options.named("id") or not (has_label or have_label(table)):
            return []
        given = [path for split in layout.splits.values() for path in names_of(split)]
    elif os.path.isfile(files[0]):
        name = NUMBER_IN_NAME.sub("0", files[0])
        others = inside(os.path.dirname(files[0]))[0]
        files = [path for path in others if NUMBER_IN_NAME.sub("0", path) == name]
        pattern = pattern_of(files) if len(files) >= FEWEST_FILES else None
        if pattern is None:
            return []
        given = [pattern]
        found = "if it is one of several files, and the rows of each are a sequence:"
    else:
        return []
    labels = [word for x in layout.options.named("label") for word in ("--label", str(x))]
    format = layout.options.get("format")  # a folder of folders is read as texts without it
    kept = ["--format", format] if format else []
    return [found, init_line(*given, *kept, "--id", FILE, *labels)]


RECOGNISERS: tuple[Recogniser, ...] = (
    recognise_pair,
    recognise_label_file,
    recognise_names,
    recognise_class_files,
)
"""Recognisers of labels that aren't columns of the files."""
