"""Roles of the columns of any table: of rows, of time steps, or by the format of its files."""

import os
import re
from collections.abc import Sequence

from seqtrain.config.document import flow
from seqtrain.errors import DataError
from seqtrain.proposal.channels import channel_doubts
from seqtrain.proposal.checks import setting_for_missing
from seqtrain.proposal.class_columns import refuse_columns_of_classes, refuse_columns_of_sequences
from seqtrain.proposal.conversions import advised
from seqtrain.proposal.countdown import countdown_doubts
from seqtrain.proposal.doubts import (
    doubtful_marks,
    lines_without_row,
    mistaken_labels,
    odd_lines,
    rejected_tasks,
    rows_of_facts,
    rows_of_splits,
    symbols_in_brackets,
    told_by_ends,
)
from seqtrain.proposal.events import assign_fields
from seqtrain.proposal.file_names import RECORDINGS
from seqtrain.proposal.label_files import RECORDING, key_patterns, pattern_of
from seqtrain.proposal.label_in_id import refuse_given_ids_with_label, refuse_label_in_id
from seqtrain.proposal.label_layouts import commands_for_recordings
from seqtrain.proposal.merged_cells import refuse_ids_written_once
from seqtrain.proposal.names import is_code, names_conversation, names_owner, names_speaker
from seqtrain.proposal.nested import (
    refuse_annotations,
    refuse_answers,
    refuse_categories,
    refuse_nested,
)
from seqtrain.proposal.number_forms import (
    check_decimal_marks,
    commands_for_measurements,
    labels_of_bits,
    measurements_as_tokens,
    refuse_scales,
    unclear_dates,
    written_in_two_ways,
)
from seqtrain.proposal.one_recording import commands_for_parts
from seqtrain.proposal.options import COLUMN_OPTIONS, OTHER_COLUMN_KEYS, InitOptions
from seqtrain.proposal.profile import ColumnProfile, Columns, refines, without
from seqtrain.proposal.roles import (
    Roles,
    choose_label,
    columns_named,
    joined_marks,
    odd_numbers,
    options_naming,
    other_labels,
    owner_of,
    shown_names,
)
from seqtrain.proposal.row_roles import SEQUENCE_KINDS, row_table
from seqtrain.proposal.shell import init_line, set_option
from seqtrain.proposal.step_ids import says_nothing_if_blank
from seqtrain.proposal.step_roles import (
    refuse_steps_without_names,
    refuse_unlabelled_steps,
    step_table,
)
from seqtrain.proposal.table import Table
from seqtrain.proposal.text_forms import NO_LABELS
from seqtrain.tables.blocks import FILE, FOLDER, LABEL, TEXT, missing_name
from seqtrain.tables.formats import resolve_format
from seqtrain.tables.join import key_columns
from seqtrain.text import quote

FILES_LOOKED_FOR = 20
"""Number of the cells of a column that are looked for as names of files."""


def roles_of(table: Table) -> Roles:
    """Return the roles of the columns of a table.

    Raises:
        DataError: If they aren't clear, or the table lacks a column that the user names.
    """
    columns, group = _without_keys(table), table.column(table.layout.group)
    roles = _roles_of(table, columns)
    unused = _unused_columns(table, roles)
    group = group or next(filter(names_owner, unused), None)
    if unused or group not in (None, roles.label, roles.id):
        others = without(columns, [group, *unused])
        roles = _roles_of(table, others)
        roles.group = group
    unused = without(unused, [group])
    if unused:
        types = {c.name: "number" if c.kind == "number" else "token" for c in unused}
        roles.warnings.append(
            f"{shown_names(unused)}: columns of the file of labels, which "
            "aren't used, for an input to predict lacks them; to use them: "
            f"{set_option(f'data.static={flow(types)}')}"
        )
    if table.layout.joins:  # "all other columns" would be those of the joined files, too
        roles.all_others = False
    odd = [*odd_numbers(roles)]
    sorting = roles.order.columns
    setting = setting_for_missing(without(odd, sorting), table)
    for own, line in odd_lines(odd, table):
        rows = "Rows" if roles.id is None else "Sequences"
        meaning, advice = "it stands for a missing number", "write a blank cell or NA"
        commands = lines_without_row(own, table)
        if commands:
            meaning, advice = "this row holds units or no data", "leave it out"
        elif own[0] in sorting:
            meaning, advice = "they are to be used", "correct this cell, for it sorts the rows"
        elif setting:
            advice = set_option(setting)
        found = f"{line}. {rows} with such a cell are left out (data.bad_rows: drop)"
        roles.warnings += advised(f"{found}; if {meaning}: {advice}", commands)
    check_decimal_marks(roles, table)
    about_numbers = (written_in_two_ways, measurements_as_tokens)
    about_times = (countdown_doubts, unclear_dates)
    about_cells = (rejected_tasks, mistaken_labels, symbols_in_brackets, labels_of_bits)
    for doubts in (*about_numbers, *about_times, *about_cells, rows_of_splits):
        roles.warnings += doubts(roles, table)
    roles.warnings += told_by_ends(roles.sequence, roles.label)
    if roles.id is None:
        used = [roles.label, roles.group, *roles.sequence, *roles.one_hot]
        roles.warnings += rows_of_facts(roles.sequence, without(table.columns, used))
    return roles


def _unused_columns(table: Table, roles: Roles) -> list[ColumnProfile]:
    """Return the columns of a file of labels but the label, unless the user names them."""
    options = table.options
    used = [str(name) for option in COLUMN_OPTIONS for name in options.named(option)]
    used += map(str, options.get("static") or ())
    if options.get("group") is not None:
        used.append(str(options.get("group")))
    if str(roles.label.name) not in table.layout.label_columns:
        return []
    found = [
        column for column in map(table.column, table.layout.label_columns) if column is not None
    ]
    return [x for x in found if x is not roles.label and x.name_text not in used]


def _without_keys(table: Table) -> list[ColumnProfile]:
    """Return the columns of a table but for parts of file names that only find rows elsewhere."""
    options, keys = table.options, set[str]()
    parts = set(re.compile(table.layout.pattern or "").groupindex)
    for join in table.layout.joins:
        keys.update(key_columns(join["on"])[0])
    named = {str(name) for option in COLUMN_OPTIONS for name in options.named(option)}
    return [column for column in table.columns if column.name not in (keys & parts) - named]


def _roles_of(table: Table, columns: Columns) -> Roles:
    """Return the roles of some columns of a table."""
    options = table.options
    if not table.has_columns:
        return _fixed_roles(table, columns)
    _check_names(columns, options)
    refuse_ids_written_once(table, columns)
    labels = columns_named(columns, options, "label")
    one_hot = labels if len(labels) > 1 else []
    if one_hot:
        joined = joined_marks(one_hot)
        _refuse_one_class(one_hot, joined)
        columns = [*(column for column in columns if column not in one_hot), joined]
        options, labels = options.with_given(label=joined.name), [joined]
    refuse_given_ids_with_label(table, columns, options)
    roles, doubts = step_table(columns, options, _key_of_join(table, columns)), list[str]()
    if roles is not None:
        refuse_label_in_id(table, roles, options)
        refuse_scales(roles, table)
    if roles is None or not roles.order:
        doubts = channel_doubts(table, columns)
    if roles is None:
        roles = _row_roles(table, columns, options, next(iter(labels), None))
        if not options.named("sequence"):
            _refuse_names_of_files(table, roles)
        roles = _turns(columns, options, roles) or roles
    if roles.kind == "events":
        assign_fields(roles, options, table)
    roles.one_hot = one_hot
    if one_hot:
        roles.warnings += doubtful_marks(one_hot, joined)
    roles.warnings += doubts
    return roles


def _key_of_join(table: Table, columns: Columns) -> list[ColumnProfile]:
    """Return the columns of the key by which the first file is joined, or []."""
    names: tuple[str, ...] = ()
    for join in table.layout.joins[:1]:
        names, _ = key_columns(join["on"])
    return [column for column in columns if column.name in names]


def _turns(columns: Columns, options: InitOptions, roles: Roles) -> Roles | None:
    """Return the roles of a table whose rows are turns of conversations with one label each.

    The result is None for other tables. The column of the id is named like conversations, or one of
    codes is beside that of the speakers. The rows are sorted by a column, or stand together.

    Args:
        columns: All columns.
        options: Options of the user.
        roles: Roles of the table if each row is an example.
    """
    label = roles.label
    if roles.kind != "text" or options.named("sequence") or options.kind:
        return None
    has_speakers = any(map(names_speaker, columns))
    possible = [x for x in columns if x is not label and x.repeats_as_labels]
    for id in possible:
        is_named = names_conversation(id) or (is_code(id) and has_speakers)
        if not is_named or not refines(id, label, labelled=says_nothing_if_blank(label)):
            continue
        turns = step_table(columns, options.with_given(id=[id.name], label=[label.name]))
        if turns is not None and turns.sequence and (turns.order or id.is_contiguous):
            if not options.named("label"):
                turns.warnings += other_labels(columns, label)
            turns.warnings.append(
                f"the rows of one {id.shown} have one label, and are read as the turns of one "
                f"sequence; if a row is a sequence: {options_naming('sequence', roles.sequence)}"
            )
            return turns
    return None


def _refuse_one_class(columns: Columns, marked: ColumnProfile) -> None:
    """Raise a DataError if at most one of the label columns marks rows.

    Args:
        columns: The label columns.
        marked: Column of the names that each row has, joined by |.
    """
    names = [x for x in columns if any(x.name_text in own.split("|") for own in marked.values)]
    if not names:
        raise DataError("--label: no row has a 1 in one of these columns; name others")
    if len(names) == 1:
        raise DataError(
            f"--label: of these columns, only {names[0].shown} marks rows; if its 1 and 0 are two "
            f"classes, name it alone: {options_naming('label', [names[0]])}"
        )


def _row_roles(
    table: Table,
    columns: Columns,
    options: InitOptions,
    label: ColumnProfile | None,
) -> Roles:
    """Return the roles of a table with a row per sequence, and not per recording in a folder.

    Raises:
        DataError: If they aren't clear, or the only sequence is a word that repeats, and the rows
            seem to be about recordings. The error has the command that reads these.
    """
    if not options.named("sequence"):
        refuse_nested(table, columns)
        refuse_annotations(table, columns)
    if label is None and not options.named("sequence"):
        refuse_columns_of_classes(table, columns)
        refuse_columns_of_sequences(table, columns)
        refuse_answers(table, columns)
        refuse_categories(table, columns)
        if not (table.layout.label_columns or table.layout.pattern):
            refuse_unlabelled_steps(columns)
    if label is not None and not options.named("sequence"):
        refuse_steps_without_names(columns, label)
    problems: Sequence[str] = [f"{table.name}: no column holds a sequence"]
    roles = None
    try:
        roles = row_table(columns, options, label)
    except DataError as error:
        problems = error.lines
    if roles is not None:
        is_word = len(roles.sequence) == 1 and roles.sequence[0].is_category
        if not is_word or options.named("sequence"):
            return roles
    lines = commands_for_recordings(table)
    label = _likeliest_label(columns, label)
    if roles is None and label is not None:
        lines += commands_for_parts(table, columns, label)
    if roles is None:
        lines += commands_for_measurements(table, columns)
    if roles is None or lines:
        raise DataError(*problems, *lines)
    return roles


def _likeliest_label(columns: Columns, label: ColumnProfile | None) -> ColumnProfile | None:
    """Return the label that the user names, or the one that is likeliest, or None."""
    if label is None:
        try:
            label = choose_label(columns)
        except DataError:
            return None
    return label


def _refuse_names_of_files(table: Table, roles: Roles) -> None:
    """Raise a DataError if a column holds names of files that are beside the table, or in a folder.

    Raises:
        DataError: The error has the command that reads the files instead.
    """
    file = table.file
    for column in table.columns:
        if column.kind != "text" or not column.is_unique or column is roles.label:
            continue
        names = [str(value) for value in column.values[:FILES_LOOKED_FOR]]
        folder = _folder_with(names, os.path.dirname(file))
        if folder is not None:
            raise _names_of_files(table, column, folder, str(roles.label.name))


def _names_of_files(table: Table, column: ColumnProfile, folder: str, label: str) -> DataError:
    """Return the error about a column with the names of files in a folder."""
    names, file = list(map(str, column.values)), table.file
    problem = f"{table.name}: {column.shown} holds names of files, such as {quote(names[0], 40)}"
    if resolve_format(names[0], "auto") not in RECORDINGS:
        return DataError(f"{problem}; to read texts, put the files of each class into a folder")
    files = pattern_of([os.path.join(folder, name) for name in names])
    if files is None:
        files = os.path.join(folder, f"*{os.path.splitext(names[0])[1]}")
    key = column.name_text
    on: object = column.name
    if not key.isidentifier() or key in (FILE, FOLDER):
        key, on = RECORDING, {"left": RECORDING, "right": column.name}
    pattern = next(key_patterns(key, names[0].count("/"), names[0]))
    path, join = f"data.path={flow(pattern)}", f"data.join={flow([{'file': file, 'on': on}])}"
    line = init_line(files, "--label", label, "--set", path, "--set", join)
    return DataError(f"{problem}; to read the files:", line)


def _folder_with(names: Sequence[str], folder: str) -> str | None:
    """Return the folder with files of these names: `folder`, or one in it. None without any."""
    with os.scandir(folder or ".") as entries:
        inner = sorted(os.path.join(folder, each.name) for each in entries if each.is_dir())
    for place in (folder, *inner):
        if all(os.path.isfile(os.path.join(place, name)) for name in names):
            return place
    return None


def _fixed_roles(table: Table, columns: Columns) -> Roles:
    """Return the roles of the columns of a format that fixes where sequence and label are."""
    options, format = table.options, table.format
    text, label = table.column(TEXT), table.column(LABEL)
    others = [x for x in columns if x.name not in (TEXT, LABEL, FILE, FOLDER)]
    for option in ("label", "sequence", "header"):
        is_fixed = table.layout.pattern is None and options.named(option) != [LABEL]
        if options.named(option) and not others and is_fixed:
            raise DataError(f"--{option}: format {format} has no columns to name; leave it out")
    named = columns_named(others, options, "label") if options.named("label") != [LABEL] else []
    has_own = label is not None and label.can_be_label  # as an npz file with y has
    if named or (others and not has_own):
        label = named[0] if named else choose_label(others)
    if label is None or text is None or label.distinct == 0:
        raise DataError(f"{table.name}: {NO_LABELS}")
    kind = SEQUENCE_KINDS.get(text.kind, "text")
    if format in ("fasttext", "fasta"):
        kind = "text"
    roles = Roles(options.kind or kind, label, [text], columns, has_names=False)
    unused = without(others, [label])
    roles.owner = owner_of(unused)
    roles.ignored = [column.describe() for column in unused]
    return roles


def _check_names(columns: Columns, options: InitOptions) -> None:
    """Raise a DataError if the table lacks columns in the options. The error lists all of them."""
    present = [column.name_text for column in columns]
    known = {*present, *map(str, range(len(columns)))}
    has_names = isinstance(columns[0].name, str)
    if has_names:
        hint = ""
    else:
        hint = "; the table has no names (--header, if the first row has some)"
    problems = []
    named = {f"--{option}": options.named(option) for option in COLUMN_OPTIONS}
    for key in OTHER_COLUMN_KEYS:
        named[f"data.{key}"] = [x for x in options.named(key) if x not in (FILE, FOLDER)]
    for option, names in named.items():
        for name in names:
            if str(name) not in known:
                missing = missing_name("column", str(name), present)
                problems.append(f"{option}: {missing}{hint}")
    if problems:
        raise DataError(*problems)
