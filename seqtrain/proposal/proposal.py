"""Proposal of `seqtrain init`: the text of a config for data files, and notes for the user."""

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from seqtrain.config import check_options
from seqtrain.errors import DataError
from seqtrain.proposal.channels import channels_beside, channels_first, names_beside
from seqtrain.proposal.checks import (
    check_bad_rows,
    check_classes,
    check_dropped,
    classes_of_bad_rows,
)
from seqtrain.proposal.class_files import commands_for_pieces, may_be_steps
from seqtrain.proposal.doubts import (
    blank_labels,
    classes_without_values,
    rows_of_totals,
    scattered_rows,
    shared_owner,
    spelled_alike,
)
from seqtrain.proposal.events import fields_of
from seqtrain.proposal.facts import Facts, facts_of
from seqtrain.proposal.findings import Findings
from seqtrain.proposal.label_layouts import commands_for_labels_beside, listed_recordings
from seqtrain.proposal.layouts import (
    about_missing_labels,
    commands_for_files,
    commands_for_names,
    doubts_about_lines,
    find_layout,
    read_single_rows,
    refuse_texts_of_files,
)
from seqtrain.proposal.merged_cells import refuse_blank_rows
from seqtrain.proposal.nested import commands_for_items, points_of_steps
from seqtrain.proposal.notes import (
    about_sheets,
    commands_for_sheets,
    doubts_about_labels,
    empty_rows,
    few_rows,
    files_of_other_splits,
    rare_classes,
    rows_of_windows,
    uses,
)
from seqtrain.proposal.number_forms import commands_for_marks, refuse_geometry
from seqtrain.proposal.one_recording import commands_for_parts
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.order import Order
from seqtrain.proposal.profile import REPEATS, ColumnProfile, joined_column
from seqtrain.proposal.reading import ReadingProgress, ReadingReport, read_alone, read_table
from seqtrain.proposal.roles import Roles, joined_marks
from seqtrain.proposal.settings import share_to_hold_out
from seqtrain.proposal.table import Table
from seqtrain.proposal.table_roles import roles_of
from seqtrain.sequences.dataset import PreparedData, prepare
from seqtrain.sequences.lengths import doubts_about_time
from seqtrain.sequences.pretrained import PretrainedEncoder
from seqtrain.sequences.sentinels import sentinel_doubts
from seqtrain.sequences.sources import files_of
from seqtrain.sequences.summary import label_doubts, lost_classes, number_doubts
from seqtrain.tables.blocks import REST, Name, missing_name
from seqtrain.tables.cells import label_name_of
from seqtrain.tables.conversions.forms import conversion
from seqtrain.tables.formats import names_of
from seqtrain.tables.join import ROW, for_split
from seqtrain.text import duration

TRIED_ROWS, TRIED_IDS = 4096, 1000
"""With fewer rows, or ids of a table of time steps, `propose` also prepares the data as `fit` does.

If this fails, and `propose` itself chose the validation, it tries again without validation.
"""


@dataclass(frozen=True)
class Proposal:
    """A config that `fit` accepts unchanged, and notes for the user.

    Attributes:
        text: The config, as YAML with comments.
        uses: Lines that say how columns and rows are used or why they are left out.
        warnings: One line per doubt about the data or the config.
    """

    text: str
    uses: list[str]
    warnings: list[str]


def propose(
    files: Sequence[str],
    options: InitOptions,
    *,
    test: str | None = None,
    progress: ReadingReport | None = None,
    command: str = "seqtrain.init",
) -> Proposal:
    """Inspect data files and return a config for them.

    If there are few rows (`TRIED_ROWS`), the data is also prepared as `fit` does, to find problems.
    A test file without labels isn't used. The proposal then has a warning.

    Args:
        files: Data files, or one folder. The folder holds the files, or is the training data
            itself. Files are for training, unless a name such as `dev.csv` or `test.csv` tells
            another split. Files of one split must have names that differ only in numbers, such as
            `part-1.csv`.
        options: Options of the user about the files.
        test: Test file, or None to recognize it by its name.
        progress: Called during steps that take more than a second. None reports nothing.
        command: Command of the user, for a comment.

    Raises:
        ConfigError: If a setting of the user isn't valid.
        DataError: If a file can't be read, or if the data is ambiguous without a further option.
    """
    check_options(options.settings)
    reports = ReadingProgress(progress)
    layout = find_layout(files, test, options, reports)
    table = read_table(layout.train, layout, reports)
    recordings = listed_recordings(table, reports)
    if recordings is not None:
        layout = recordings
        table = read_table(layout.train, layout, reports)
    read_single_rows(table, options)
    try:
        roles = roles_of(table)
        refuse_texts_of_files(roles, table.layout, options)
        roles.warnings += doubts_about_lines(table, options)
        refuse_geometry(roles, table)
        refuse_blank_rows(table, roles.id)
        facts = facts_of(roles, layout.options, table.unread)
        if facts.family.name == "symbols":
            roles.kind = "tokens"
        found = Findings(table, roles, facts, dict(layout.splits), command=command)
        check_dropped(found)
        facts.lost_classes |= classes_of_bad_rows(table, roles, facts)
        check_bad_rows(table, roles, facts)
        check_classes(found)
    except DataError as error:
        pieces = commands_for_pieces(table) or commands_for_files(table)
        pieces = pieces or commands_for_items(table)
        pieces[:1] = [f"or, {line}" for line in pieces[:1]]
        pieces += commands_for_sheets(table) + commands_for_labels_beside(table)
        pieces += commands_for_marks(table)
        lines = about_missing_labels(table) or error.lines
        lines = [*lines, *pieces, *commands_for_names(table)]
        raise DataError(*lines) from None
    warnings = [*about_sheets(table), *doubts_about_labels(found)]
    warnings += _doubts_about_rows(table, roles)
    warnings += channels_first(table, roles, facts)
    warnings += channels_beside(table, roles) or names_beside(table, roles, facts)
    warnings += points_of_steps(table, roles)
    found.rows["train"] = facts.rows
    many_empty = list(empty_rows(facts))
    others = files_of_other_splits(found)
    warnings += [*_read_other_splits(found, reports), *table.warnings, *table.notices]
    warnings += roles.warnings
    warnings += sentinel_doubts(roles.numbers(), options.get("na_values"))
    warnings += spelled_alike(roles.label, facts.separator, table)
    steps = [x for x in roles.columns if x.name_text in roles.steps]
    id = roles.id if roles.window is None else None
    warnings += classes_without_values(roles.sequence or steps, roles.label, id)
    warnings += [*blank_labels(roles, table), *rows_of_totals(roles, table)]
    if options.get("pretrained"):
        found.encoding = _encoding_time(found)
    if "validation" in options.given:
        found.splits["validation"] = options.get("validation")
    elif "validation" not in found.splits:
        family = facts.family.name if facts.channels else "words"
        found.splits["validation"] = share_to_hold_out(family, facts.rows)
    unit = "rows" if roles.window is None else "windows"
    column = None if roles.one_hot else str(roles.label.name)
    warnings += label_doubts(facts.classes, multi_label=facts.multi_label, unit=unit, column=column)
    warnings += [*lost_classes(facts.empty_classes, facts.classes, are_empty=True), *many_empty]
    warnings += rows_of_windows(roles, facts)
    warnings += rare_classes(found, unit)
    if facts.rows < (TRIED_ROWS if roles.id is None else TRIED_IDS):
        warnings += number_doubts(_prepared(found, options))
    text, config, settings = found.config()
    warnings += [*scattered_rows(roles.id, config), *shared_owner(roles.owner, config)]
    warnings += few_rows(found, config)
    median, most, longest = (min(x, config.data.max_length or x) for x in facts.lengths)
    warnings += doubts_about_time(facts.rows * median, most, longest, config)
    return Proposal(text, [*uses(found, settings), *others], warnings)


def _prepared(found: Findings, options: InitOptions) -> PreparedData:
    """Prepare the data as `fit` does, without validation if no row can be held out.

    Raises:
        DataError: If the data can't be prepared, or the user chose the validation.
    """
    try:
        prepared = prepare(found.config()[1])
    except DataError as error:
        is_chosen = "validation" in found.rows or "validation" in options.given
        if is_chosen or not error.problems[0].startswith("data.validation: "):
            raise
        found.splits["validation"] = None
        prepared = prepare(found.config()[1])
    if "validation" in prepared.splits:
        found.rows["validation"] = len(prepared.splits["validation"])
    return prepared


def _are_wide_numbers(roles: Roles) -> bool:
    """Return True if columns of a number each are the sequence of a row."""
    numbers = [column.kind == "number" for column in roles.sequence]
    return roles.kind == "features" and len(numbers) > 1 and all(numbers)


def _doubts_about_rows(table: Table, roles: Roles) -> list[str]:
    """Return lines of a doubt if rows that are read as series may be time steps."""
    if not _are_wide_numbers(roles) or not may_be_steps(table, roles.sequence):
        return []
    lines = commands_for_pieces(table) or commands_for_files(table)
    runs = np.count_nonzero(np.diff(roles.label.codes)) + 1
    if not lines and runs >= REPEATS * roles.label.distinct:  # rows may be sorted by the label
        lines = commands_for_parts(table, table.columns, roles.label)
    return lines


def _read_other_splits(found: Findings, reports: ReadingProgress) -> Iterator[str]:
    """Read the files of validation and test, and yield a warning about files without labels."""
    facts = found.facts
    for name in ("validation", "test"):
        if name not in found.splits:
            continue
        other = _facts_of_split(files_of(name, found.splits[name]), found, reports)
        if other is None:
            path = found.splits.pop(name)
            alone = _files_of_train_alone(found, names_of(path)[0])
            reason = "has no labels"
            joins = found.table.layout.joins
            if alone and alone[0] != joins[0]["file"]:  # the first one has the labels
                reason = f"lacks a file such as {alone[0]}, which train has"
            yield f"{path} {reason}, so it isn't data.{name}; {_prediction_of(path, found)}"
            continue
        found.rows[name] = other.rows + other.empty
        facts.empty += other.empty
        facts.unlabelled += other.unlabelled
        facts.unreadable += other.unreadable
        facts.is_missing |= other.is_missing


def _files_of_train_alone(found: Findings, path: str) -> list[str]:
    """Return the files that are joined to train row by row, and of which another split has none."""
    joins = [join for join in found.table.layout.joins if join["on"] == ROW]
    return [join["file"] for join in joins if for_split(join["file"], path) == join["file"]]


def _prediction_of(path: Any, found: Findings) -> str:
    """Return the advice to predict a file without labels, with the command."""
    file = names_of(path)[0]
    command = ["seqtrain", "predict", file]
    other = _with_own_header(file, found)
    if other is not None:
        sequences, files = found.roles.sequence, [other.only_file, found.table.only_file]
        alike = [x for x in other.columns if x.kind == sequences[0].kind]
        if len(alike) != 1 or len(sequences) > 1 or None in files:
            return "its columns have names, which train lacks: write them as those of train"
        columns = [""] * len(found.table.columns)
        columns[found.table.columns.index(sequences[0])] = alike[0].name_text
        line, target = conversion("chosen", file, column=columns)
        return f"to predict it: {line}; then, after fit: seqtrain predict {target}"
    are_two = found.table.header is False and len(found.table.columns) == 2
    if are_two and found.roles.label.name == 0:  # the first column of train isn't in the file
        command += ["--input-format", "lines"]
    return f"to predict it, after fit: {shlex.join(command)}"


def _with_own_header(path: str, found: Findings) -> Table | None:
    """Return a file of another split whose columns have names that train lacks, or None."""
    if found.table.header is not False or not found.table.is_delimited:
        return None
    with suppress(DataError):  # its first line may be names or values
        other = read_alone(path, ReadingProgress())
        if other.header and other.is_delimited:
            return other
    return None


def _lacks_labels(label: ColumnProfile, path: str, found: Findings) -> bool:
    """Return True if the column in the place of the label holds none in a file of another split.

    It holds blanks or one mark such as -1, or another column that a header names is in its place.
    """
    own = _names_of_labels(label)
    if not own.isdisjoint(_names_of_labels(found.roles.label)):
        return False
    is_mark = len(own) == 1 and not any(map(str.isalnum, own))
    return not own or is_mark or _with_own_header(path, found) is not None


def _names_of_labels(column: ColumnProfile) -> set[str]:
    """Return the names of the labels in a column, without case."""
    return {label_name_of(str(value)).casefold() for value in column.values if value != ""}


def _facts_of_split(
    files: Sequence[str], found: Findings, reports: ReadingProgress
) -> Facts | None:
    """Return the facts about the files of validation or test, or None if they have no labels."""
    if _files_of_train_alone(found, files[0]):
        return None
    layout, roles = found.table.layout, found.roles
    joins = [{**join, "file": for_split(join["file"], files[0])} for join in layout.joins]
    options = layout.options
    if found.table.header is not None:
        options = options.with_given(header=found.table.header)
    if found.table.dialect.quotes:
        options = options.with_given(quoting="standard")
    if any(column.name == REST for column in roles.sequence):
        first = [column.name for column in found.table.columns if column.name != REST]
        options = options.with_given(sequence=REST, label=first)
    layout = replace(layout, options=options, joins=joins)
    table = read_table(files, layout, reports, is_train=False)
    own = {column.name: column for column in table.columns}
    one_hot = [own[column.name] for column in roles.one_hot if column.name in own]
    label = own.get(roles.label.name)
    if one_hot and len(one_hot) == len(roles.one_hot):
        label = joined_marks(one_hot)
    if label is None or _lacks_labels(label, files[0], found):
        return None
    ids = () if roles.id is None else roles.id.parts
    needed = [*roles.sequence, *ids, *roles.order.columns]
    names = [column.name_text for column in needed]
    if roles.id is not None:
        kinds = {**roles.steps, **roles.static}
        names += [name for name, kind in kinds.items() if kind != "order"]
    present = {str(name) for name in own}
    missing = [name for name in names if name not in present]
    if missing and table.header is False and len(own) < len(found.table.columns):
        return None  # without names, the columns after that of the label have other places
    if missing:
        raise DataError(f"{table.name}: {missing_name('column', missing[0], list(map(str, own)))}")
    same = replace(
        roles,
        label=label,
        sequence=[own[column.name] for column in roles.sequence],
        columns=table.columns,
        id=roles.id and joined_column([own[part.name] for part in roles.id.parts]),
        order=_same_order(roles, own),
        one_hot=one_hot,
    )
    if roles.steps and roles.id is None:
        same.columns = fields_of(same.sequence[0])[0]
    facts = facts_of(same, options, table.unread)
    check_bad_rows(table, same, facts)
    return facts


def _same_order(roles: Roles, own: Mapping[Name, ColumnProfile]) -> Order:
    """Return the order of roles in the columns of another file, empty if this file lacks one."""
    columns = [own.get(column.name) for column in roles.order.columns]
    if None in columns:
        return Order()
    return Order(*filter(None, columns))


def _encoding_time(found: Findings) -> str:
    """Measure how long a pretrained encoder takes for all rows, with a few of them.

    Raises:
        DataError: If the sequences are no texts, or the folder isn't one of an encoder.
    """
    texts = found.facts.texts
    if not texts:
        raise DataError("--pretrained: an encoder reads texts; the sequences are none")
    encoder = PretrainedEncoder(found.options.get("pretrained"))
    encoder.encode(texts[:1])  # loads it
    begin = time.perf_counter()
    encoder.encode(texts)
    rows = sum(found.rows.values())
    seconds = (time.perf_counter() - begin) / len(texts) * rows
    return f"about {duration(seconds)} on this machine for {rows:,} rows, once"
