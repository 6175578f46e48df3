"""Proposal of `seqtrain init`: the text of a config for data files, and notes for the user."""

import math
import os
import re
import shlex
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from seqtrain.config import Config
from seqtrain.config.document import flow
from seqtrain.errors import DataError, marked
from seqtrain.proposal.channels import channel_doubts, channels_first
from seqtrain.proposal.class_files import commands_for_pieces, may_be_steps
from seqtrain.proposal.doubts import (
    doubtful_marks,
    odd_lines,
    rows_of_totals,
    scattered_rows,
    shared_owner,
    spelled_alike,
    written_in_two_ways,
)
from seqtrain.proposal.events import assign_fields, fields_of
from seqtrain.proposal.facts import Facts, facts_of
from seqtrain.proposal.label_files import RECORDING, key_patterns, pattern_of
from seqtrain.proposal.layouts import (
    NUMBER_IN_NAME,
    RECORDINGS,
    commands_for_names,
    commands_for_recordings,
    find_layout,
)
from seqtrain.proposal.names import names_owner
from seqtrain.proposal.one_recording import commands_for_parts
from seqtrain.proposal.options import COLUMN_OPTIONS, InitOptions, Splits
from seqtrain.proposal.order import Order
from seqtrain.proposal.profile import LIST_KINDS, MOST_MARKS, ColumnProfile, joined_column
from seqtrain.proposal.reading import (
    NO_LABELS,
    ReadingProgress,
    ReadingReport,
    Table,
    better_reading,
    read_table,
    refuse_labels_before_blanks,
)
from seqtrain.proposal.roles import (
    SEQUENCE_KINDS,
    Roles,
    choose_label,
    columns_named,
    joined_marks,
    odd_numbers,
    owner_of,
    row_table,
    set_command,
)
from seqtrain.proposal.settings import Setting, Settings, Situation, settings_for, share_to_hold_out
from seqtrain.proposal.shell import replacing_cells, rewriting
from seqtrain.proposal.step_roles import step_table
from seqtrain.proposal.write import (
    column_settings,
    comments_of,
    shown_labels,
    split_settings,
    write_config,
)
from seqtrain.sequences.dataset import prepare
from seqtrain.sequences.pretrained import PretrainedEncoder
from seqtrain.sequences.sentinels import sentinel_doubts
from seqtrain.sequences.sources import files_of
from seqtrain.sequences.summary import label_doubts, number_doubts
from seqtrain.tables.blocks import FILE, FOLDER, LABEL, REST, TEXT, Name, missing_name
from seqtrain.tables.formats import resolve_format
from seqtrain.tables.join import DIFFERENT_ROWS, NO_ROW, ROW, for_split
from seqtrain.tables.sources import holds_whole_files, matching_files
from seqtrain.text import counted, duration, listed, quote

TRIED_ROWS, TRIED_IDS = 4096, 1000
"""With fewer rows, or ids of a table of time steps, `propose` also prepares the data as `fit` does.

If this fails, and `propose` itself chose the validation, it tries again without validation.
"""
PLACE = re.compile(":[0-9]+: ")
"""Line of a file in a message."""
FEW_PER_CLASS = 30
"""Rows per class below which a warning says that the accuracy is uncertain."""
SEQUENCE_NAMES = {
    "text": "text",
    "tokens": "symbols",
    "features": "series",
    "steps": "a time step",
}
"""Maps kinds of sequences to words for the user."""
MOST_COLUMNS = 8
"""Largest number of columns whose odd cells a command names."""
LIMIT = re.compile(r"[<>]=? ?[0-9.]+")
"""Cell for a value below or above the range of an instrument, such as <0.5."""
FEW_ROWS_OF_LABEL = 100
"""Largest number of rows of a label for which a message always has its number of windows."""
MOST_NUMBERED_CLASSES = 10
"""Largest number of files of a class each whose names may differ only in numbers, as for digits."""
MOST_UNIQUE = 2
"""Largest number of rows that may all have different labels, without a validation file."""
MOST_DROPPED = 0.05
"""Largest share of rows that may be left out: with more, the reading is wrong."""
MOST_RARE = 2
"""Rows of a class up to which a warning names it."""
FILES_LOOKED_FOR = 20
"""Number of the cells of a column that are looked for as names of files."""


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


@dataclass
class _Findings:
    """What was found about data files.

    Attributes:
        table: The files of train.
        roles: Roles of their columns.
        facts: Facts about train, and which rows the other splits leave out.
        splits: Maps each split to its value in the config.
        rows: Maps each split that has files to its number of rows.
        encoding: Time that a pretrained encoder takes, as text.
        command: Command of the user, for a comment.
    """

    table: Table
    roles: Roles
    facts: Facts
    splits: Splits
    rows: dict[str, int] = field(default_factory=dict)
    encoding: str = ""
    command: str = ""

    @property
    def options(self) -> InitOptions:
        """Options of the user, and those that follow from the layout of the files."""
        return self.table.layout.options

    def config(self) -> tuple[str, Config, Settings]:
        """Return the config as text, parsed, and its settings."""
        validation, held_out = self.splits["validation"], self.rows.get("validation")
        situation = Situation(self.facts, self.roles, self.options, validation, held_out)
        settings = split_settings(self.splits, self.rows, self.table, self.roles, self.facts)
        settings |= column_settings(self.table, self.roles, self.facts)
        settings |= settings_for(situation)
        if self.encoding:
            reason = f"a frozen encoder; {self.encoding}"
            settings["model.pretrained"] = Setting(self.options.get("pretrained"), reason)
        comments = comments_of(self.command, self.facts)
        return write_config(settings, comments, self.options)


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
    reports = ReadingProgress(progress)
    layout = find_layout(files, test, options, reports)
    table = read_table(files_of("train", layout.splits["train"]), layout, reports)
    sheets = list(_about_sheets(table))
    try:
        roles = roles_of(table)
        facts = facts_of(roles, layout.options, table.unread)
        if facts.family.name == "symbols":
            roles.kind = "tokens"
        found = _Findings(table, roles, facts, dict(layout.splits), command=command)
        _check_dropped(found)
        facts.lost_classes |= _classes_of_bad_rows(table, roles, facts)
        _check_bad_rows(table, facts)
        _check_classes(found)
    except DataError as error:
        pieces = commands_for_pieces(table)
        pieces[:1] = [f"or, {line}" for line in pieces[:1]]
        raise DataError(*error.lines, *sheets, *pieces, *commands_for_names(table)) from None
    warnings = [*sheets, *_doubts_about_labels(found)]
    if _are_wide_numbers(roles) and may_be_steps(table, roles.sequence):
        warnings += commands_for_pieces(table)
    warnings += channels_first(table, facts)
    found.rows["train"] = facts.rows
    warnings += [*_read_other_splits(found, reports), *table.warnings, *table.notices]
    warnings += roles.warnings
    warnings += sentinel_doubts(roles.numbers(), options.get("na_values"))
    warnings += spelled_alike(roles.label, facts.separator, table)
    warnings += rows_of_totals(table)
    if options.get("pretrained"):
        found.encoding = _encoding_time(found)
    if "validation" in options.given:
        found.splits["validation"] = options.get("validation")
    elif "validation" not in found.splits:
        family = facts.family.name if facts.channels else "words"
        found.splits["validation"] = share_to_hold_out(family, facts.rows)
    text, config, settings = found.config()
    unit = "rows" if roles.window is None else "windows"
    column = None if roles.one_hot else str(roles.label.name)
    warnings += label_doubts(facts.classes, multi_label=facts.multi_label, unit=unit, column=column)
    warnings += _rows_of_windows(roles, facts)
    warnings += _rare_classes(facts, unit)
    if facts.rows < (TRIED_ROWS if roles.id is None else TRIED_IDS):
        try:
            prepared = prepare(config)
        except DataError as error:
            is_chosen = "validation" in found.rows or "validation" in options.given
            if is_chosen or not error.problems[0].startswith("data.validation: "):
                raise
            found.splits["validation"] = None
            text, config, settings = found.config()
            prepared = prepare(config)
        warnings += number_doubts(prepared)
    warnings += [*scattered_rows(roles.id, config), *shared_owner(roles.owner, config)]
    warnings += _few_rows(found, config)
    return Proposal(text, list(_uses(found, settings)), warnings)


def _are_wide_numbers(roles: Roles) -> bool:
    """Return True if columns of a number each are the sequence of a row."""
    numbers = [column.kind == "number" for column in roles.sequence]
    return roles.kind == "features" and len(numbers) > 1 and all(numbers)


def roles_of(table: Table) -> Roles:
    """Return the roles of the columns of a table.

    Raises:
        DataError: If they aren't clear, or the table lacks a column that the user names.
    """
    columns, group = _without_keys(table), table.column(table.layout.group)
    roles = _roles_of(table, columns)
    facts = _unused_facts(table, roles)
    group = group or next(filter(names_owner, facts), None)
    if facts or group not in (None, roles.label, roles.id):
        others = [column for column in columns if column not in (group, *facts)]
        roles = _roles_of(table, others)
        roles.group = group
    facts = [column for column in facts if column is not group]
    if facts:
        types = {c.name: "number" if c.kind == "number" else "token" for c in facts}
        roles.warnings.append(
            f"{listed([column.shown for column in facts])}: columns of the file of labels, which "
            "aren't used, for an input to predict lacks them; to use them: "
            f"{shlex.join(['--set', f'data.static={flow(types)}'])}"
        )
    if table.layout.joins:  # "all other columns" would be those of the joined files, too
        roles.all_others = False
    for own, line in odd_lines([*odd_numbers(roles)], table):
        rows = "Rows" if roles.id is None else "Sequences"
        setting, advice = _setting_for_missing(own), "write a blank cell or NA"
        if setting:
            advice = shlex.join(["--set", setting])
        roles.warnings.append(
            f"{line}. {rows} with such a cell are left out (data.bad_rows: drop); if it stands for "
            f"a missing number: {advice}"
        )
    roles.warnings += written_in_two_ways(roles, table)
    return roles


def _unused_facts(table: Table, roles: Roles) -> list[ColumnProfile]:
    """Return the columns of a file of labels but the label, unless the user names them."""
    options = table.layout.options
    used = [str(name) for option in COLUMN_OPTIONS for name in options.named(option)]
    used += [*map(str, options.get("static") or ()), str(options.get("group"))]
    if str(roles.label.name) not in table.layout.facts:
        return []
    found = [column for column in map(table.column, table.layout.facts) if column is not None]
    return [x for x in found if x is not roles.label and str(x.name) not in used]


def _without_keys(table: Table) -> list[ColumnProfile]:
    """Return the columns of a table but for parts of file names that only find rows elsewhere."""
    options, keys = table.layout.options, set[str]()
    parts = set(re.compile(table.layout.pattern or "").groupindex)
    for join in table.layout.joins:
        on = join["on"]
        keys.add(str(on["left"]) if isinstance(on, dict) else str(on))
    named = {str(name) for option in COLUMN_OPTIONS for name in options.named(option)}
    return [column for column in table.columns if column.name not in (keys & parts) - named]


def _roles_of(table: Table, columns: Sequence[ColumnProfile]) -> Roles:
    """Return the roles of some columns of a table."""
    options = table.layout.options
    if not table.has_columns:
        return _fixed_roles(table, columns)
    _check_names(columns, options)
    labels = columns_named(columns, options, "label")
    one_hot = labels if len(labels) > 1 else []
    if one_hot:
        joined = joined_marks(one_hot)
        _refuse_one_class(one_hot, joined)
        columns = [*(column for column in columns if column not in one_hot), joined]
        options, labels = options.with_given(label=joined.name), [joined]
    roles, doubts = step_table(columns, options), list[str]()
    if roles is None or roles.order is None:
        doubts = channel_doubts(table, columns)
    if roles is None:
        roles = _row_roles(table, columns, options, next(iter(labels), None))
        if not options.named("sequence"):
            _refuse_names_of_files(table, roles)
    if roles.kind == "events":
        assign_fields(roles, options)
    roles.one_hot = one_hot
    if one_hot:
        roles.warnings += doubtful_marks(one_hot, joined)
    roles.warnings += doubts
    return roles


def _refuse_one_class(columns: Sequence[ColumnProfile], marked: ColumnProfile) -> None:
    """Raise a DataError if at most one of the label columns marks rows.

    Args:
        columns: The label columns.
        marked: Column of the names that each row has, joined by |.
    """
    names = [x for x in columns if any(str(x.name) in own.split("|") for own in marked.values)]
    if not names:
        raise DataError("--label: no row has a 1 in one of these columns; name others")
    if len(names) == 1:
        raise DataError(
            f"--label: of these columns, only {names[0].shown} marks rows; if its 1 and 0 are two "
            f"classes, name it alone: {shlex.join(['--label', str(names[0].name)])}"
        )


def _row_roles(
    table: Table,
    columns: Sequence[ColumnProfile],
    options: InitOptions,
    label: ColumnProfile | None,
) -> Roles:
    """Return the roles of a table with a row per sequence, and not per recording in a folder.

    Raises:
        DataError: If they aren't clear, or the only sequence is a word that repeats, and the rows
            seem to be about recordings. The error has the command that reads these.
    """
    if not options.named("sequence"):
        _refuse_nested(table, columns)
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
    if roles is None or lines:
        raise DataError(*problems, *lines)
    return roles


def _refuse_nested(table: Table, columns: Sequence[ColumnProfile]) -> None:
    """Raise a DataError if nested lists, such as the strokes of drawings, are the only sequences.

    If each part of a list is a list of numbers for each channel, as in [[x, …], [y, …]], the error
    has a command that joins the parts: a time step is [x, y, 1 if a part begins].
    """
    nested = [column for column in columns if column.kind == "nested"]
    others = [x for x in columns if x.kind in LIST_KINDS or x.is_free_text]
    if not nested or others:
        return
    column = nested[0]
    lines = [
        f"{table.name}: {column.shown} holds nested lists, such as {quote(str(column.values[0]))}; "
        "expected a list of numbers or of time steps: [[x, y], [x, y]]"
    ]
    parts = [part for value in column.sampled_values for part in value or ()]
    widths = {len(part) if isinstance(part, list) else 0 for part in parts}
    have_channels = len(widths) == 1 and all(isinstance(x, list) for part in parts for x in part)
    if have_channels and table.dialect.format == "jsonl":
        steps = "[[*step, int(at == 0)] for part in row[k] for at, step in enumerate(zip(*part))]"
        code = f"import json, sys; k = sys.argv[1]; [print(json.dumps({{**row, k: {steps}}})) "
        code += "for row in map(json.loads, sys.stdin)]"
        command = ["python3", "-c", code, str(column.name)]
        line, target = rewriting(command, matching_files(table.path)[0], "steps")
        lines += [
            f"{table.name}: if each of its parts has a list per channel, as strokes do, this joins "
            "them, and marks where one begins:",
            f"  {line}",
            f"  seqtrain init {target}",
        ]
    raise DataError(*lines)


def _likeliest_label(
    columns: Sequence[ColumnProfile], label: ColumnProfile | None
) -> ColumnProfile | None:
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
    file = matching_files(table.path)[0]
    for column in table.columns:
        if column.kind != "text" or not column.is_unique or column is roles.label:
            continue
        names = [str(value) for value in column.values[:FILES_LOOKED_FOR]]
        folder = _folder_with(names, os.path.dirname(file))
        if folder is not None:
            raise _names_of_files(table, column, folder, str(roles.label.name))


def _names_of_files(table: Table, column: ColumnProfile, folder: str, label: str) -> DataError:
    """Return the error about a column with the names of files in a folder."""
    names, file = list(map(str, column.values)), matching_files(table.path)[0]
    problem = f"{table.name}: {column.shown} holds names of files, such as {quote(names[0], 40)}"
    if resolve_format(names[0], "auto") not in RECORDINGS:
        return DataError(f"{problem}; to read texts, put the files of each class into a folder")
    files = pattern_of([os.path.join(folder, name) for name in names])
    if files is None:
        files = os.path.join(folder, f"*{os.path.splitext(names[0])[1]}")
    key = str(column.name)
    on: object = column.name
    if not key.isidentifier() or key in (FILE, FOLDER):
        key, on = RECORDING, {"left": RECORDING, "right": column.name}
    command = ["seqtrain", "init", files, "--label", label]
    pattern = next(key_patterns(key, names[0].count("/"), names[0]))
    command += ["--set", f"data.path={flow(pattern)}"]
    command += ["--set", f"data.join={flow([{'file': file, 'on': on}])}"]
    return DataError(f"{problem}; to read the files:", f"  {shlex.join(command)}")


def _folder_with(names: Sequence[str], folder: str) -> str | None:
    """Return the folder with files of these names: `folder`, or one in it. None without any."""
    with os.scandir(folder or ".") as entries:
        inner = sorted(os.path.join(folder, each.name) for each in entries if each.is_dir())
    for place in (folder, *inner):
        if all(os.path.isfile(os.path.join(place, name)) for name in names):
            return place
    return None


def _fixed_roles(table: Table, columns: Sequence[ColumnProfile]) -> Roles:
    """Return the roles of the columns of a format that fixes where sequence and label are."""
    options, format = table.layout.options, table.dialect.format
    text, label = table.column(TEXT), table.column(LABEL)
    others = [x for x in columns if x.name not in (TEXT, LABEL, FILE, FOLDER)]
    if others:
        named = columns_named(others, options, "label")
        label = named[0] if named else choose_label(others)
    for option in ("label", "sequence", "header"):
        if options.named(option) and not others and table.layout.pattern is None:
            raise DataError(f"--{option}: format {format} has no columns to name; leave it out")
    if label is None or text is None or label.distinct == 0:
        raise DataError(f"{table.name}: {NO_LABELS}")
    kind = SEQUENCE_KINDS.get(text.kind, "text")
    if format in ("fasttext", "fasta"):
        kind = "text"
    roles = Roles(options.kind or kind, label, [text], columns, has_names=False)
    unused = [column for column in others if column is not label]
    roles.owner = owner_of(unused)
    roles.ignored = [column.describe() for column in unused]
    return roles


def _check_names(columns: Sequence[ColumnProfile], options: InitOptions) -> None:
    """Raise a DataError if the table lacks columns in the options. The error lists all of them."""
    present = [str(column.name) for column in columns]
    known = {*present, *map(str, range(len(columns)))}
    has_names = isinstance(columns[0].name, str)
    if has_names:
        hint = ""
    else:
        hint = "; the table has no names (--header, if the first row has some)"
    problems = []
    for option in COLUMN_OPTIONS:
        for name in options.named(option):
            if str(name) not in known:
                missing = missing_name("column", str(name), present)
                problems.append(f"--{option}: {missing}{hint}")
    if problems:
        raise DataError(*problems)


def _check_dropped(found: _Findings) -> None:
    """Raise a DataError if too many rows with cells of another kind would be left out.

    These are more than a twentieth, or all of a class.
    """
    facts, table = found.facts, found.table
    total = facts.rows + facts.unreadable
    if facts.unreadable <= MOST_DROPPED * total and not facts.lost_classes:
        return
    unit = "rows" if found.roles.id is None else "sequences"
    columns = list(odd_numbers(found.roles))
    advice, setting = "write missing numbers as blank cells or NA", _setting_for_missing(columns)
    if setting:
        advice = f"to read such cells as missing numbers: {set_command(setting)}"
    raise DataError(
        *(f"{table.name}: {line}" for _, line in odd_lines(columns, table)),
        f"{table.name}: {facts.unreadable:,} of {total:,} {unit} have such cells; leaving these "
        "rows out would lose too many, or a class",
        f"{table.name}: {advice}; or name the other columns (--steps, --sequence)",
        *_command_for_limits(table, columns),
    )


def _setting_for_missing(columns: Sequence[ColumnProfile]) -> str:
    """Return the setting that reads odd cells as missing, or "" for many different ones.

    It is also "" for the fields of objects.
    """
    cells = dict[str, list[str]]()
    for column in columns:
        cells[str(column.name)] = [str(column.values[code]) for code in column.odd_codes]
    is_long = len(cells) > MOST_COLUMNS or max(map(len, cells.values()), default=0) > MOST_MARKS
    if is_long or any(column.owners is not None for column in columns):
        return ""
    return f"data.na_values={flow(cells)}"


def _command_for_limits(table: Table, columns: Sequence[ColumnProfile]) -> list[str]:
    """Return a command that replaces limits such as <0.5 by their number, or [] for other cells."""
    marks = {str(column.values[code]) for column in columns for code in column.odd_codes}
    if not all(map(LIMIT.fullmatch, marks)) or table.dialect.format not in ("csv", "tsv"):
        return []
    code = f"{replacing_cells(sorted(marks))}/$2 =~ tr{{<>= }}{{}}dr/ge"
    command, _ = rewriting(["perl", "-pe", code], matching_files(table.path)[0], "limits")
    return [f"{table.name}: to read a limit such as {min(marks)} as its number:", f"  {command}"]


def _check_bad_rows(table: Table, facts: Facts) -> None:
    """Check that rows that can't be read may be left out, and count them.

    Raises:
        DataError: If rows can't be read, and the user didn't ask to leave them out.
    """
    problems = table.problems
    facts.unreadable += len(problems)
    if not problems or table.layout.options.get("bad_rows") == "drop" or table.leaves_out:
        return
    lines = problems
    if FILE in table.layout.options.named("id"):  # all rows of a recording lack the same
        firsts = {PLACE.sub(": ", problem, count=1): problem for problem in problems[::-1]}
        lines = list(firsts.values())[::-1]
    lines = lines[:10]
    if len(problems) > len(lines):
        more = counted(len(problems) - len(lines), "more row")
        lines.append(f"{table.name}: {more} can't be read")
    if facts.lost_classes:
        lost = listed([quote(name, 30) for name in sorted(facts.lost_classes)], 3)
        lines.append(f"{table.name}: these are all rows of the class {lost}; correct them")
    elif len(problems) <= MOST_DROPPED * (table.rows + len(problems)) or _lack_labels(problems):
        lines.append(f"{table.name}: to leave such rows out: {set_command('data.bad_rows=drop')}")
    else:
        lines.append(f"{table.name}: {better_reading(table)}")
    raise DataError(*lines)


def _lack_labels(problems: Sequence[str]) -> bool:
    """Return True if rows can't be used as a further file has no row for them, or several."""
    return all(NO_ROW in problem or DIFFERENT_ROWS in problem for problem in problems)


def _classes_of_bad_rows(table: Table, roles: Roles, facts: Facts) -> set[str]:
    """Return the labels that only rows have that can't be read.

    A label must occur in two such rows: in a row with too many fields, it may be part of a text.
    """
    cells = table.bad_cells.get(roles.label.name, [])
    counts = Counter(cell.strip() for cell in cells if isinstance(cell, str))
    return {x for x, count in counts.items() if x and count > 1 and x not in facts.classes}


def _check_classes(found: _Findings) -> None:
    """Raise a DataError if all rows are empty, have one label, or each a label of its own."""
    facts, table = found.facts, found.table
    labels = list(facts.classes)
    if not labels:
        if table.dialect.format == "fasttext":
            refuse_labels_before_blanks(table)
            raise DataError(f"{table.name}: no line begins with a label, such as __label__up")
        rows = facts.empty + facts.unlabelled + facts.unreadable
        if facts.label_problem is None:
            reason = "are empty"
        else:
            reason = f"fail: {facts.label_problem}"
        raise DataError(f"{table.name}: all {rows} rows {reason}")
    if len(labels) < 2:
        place = ""
        if table.dialect.format == "fasta":
            place = ", the end of each line that begins with >"
        one = f"one label, {quote(labels[0])}{place}"
        raise DataError(f"{table.name}: {one}; expected two or more")
    is_unique = max(facts.classes.values()) == 1 and facts.rows > MOST_UNIQUE
    if is_unique and "validation" not in found.splits:
        expected = "expected labels that several rows share"
        if table.has_columns:
            expected += marked("; --label names their column")
        elif table.dialect.format == "txt" and os.path.isdir(table.path):
            expected += ": each file is a class here; give each class a folder for its files"
        each = f"each of {facts.rows} rows has a different label, such as {quote(labels[0], 40)}"
        raise DataError(f"{table.name}: {each}; {expected}")


def _about_sheets(table: Table) -> Iterator[str]:
    """Yield a line about the sheet that is read, if the workbook has several."""
    if len(table.sheets) > 1:
        first, *others = table.sheets
        names = listed([quote(name) for name in others], 4)
        option = shlex.join(["--set", f"data.sheet={flow(others[0])}"])
        yield f"the first sheet, {quote(first)}, is read; others are {names}; to read one: {option}"


def _doubts_about_labels(found: _Findings) -> Iterator[str]:
    """Yield a warning if the labels of train are probably no classes.

    Raises:
        DataError: If there is one file per class, with many files whose names are all numbers.
    """
    facts, table, labels = found.facts, found.table, list(found.facts.classes)
    stems = {NUMBER_IN_NAME.sub("", label) for label in labels}
    is_folder = table.dialect.format == "txt" and os.path.isdir(table.path)
    are_numbered = len(labels) > MOST_NUMBERED_CLASSES and len(stems) == 1
    if are_numbered and is_folder and not holds_whole_files(table.path):
        held = f"one file per class, {labels[0]}, {labels[1]} and {len(labels) - 2} more"
        if stems == {""}:
            raise DataError(f"{table.name}: this folder holds {held}; did you mean its parent?")
        yield f"this folder holds {held}; if the folder is a class, give its parent"
    yield from facts.variants


def _rare_classes(facts: Facts, unit: str) -> Iterator[str]:
    """Yield a warning about classes of one or two rows, which can't be learned and scored."""
    rare = sorted((count, name) for name, count in facts.classes.items() if count <= MOST_RARE)
    if not rare:
        return
    names = listed([f"{quote(name, 30)} ({count})" for count, name in rare], 3)
    noun = "class has" if len(rare) == 1 else "classes have"
    yield (
        f"{len(rare)} {noun} one or two {unit}: {names}; so few can't be both learned and scored: "
        f"correct these labels, add {unit}, or leave them out"
    )


def _rows_of_windows(roles: Roles, facts: Facts) -> Iterator[str]:
    """Yield a warning with the rows and windows of the rarest label, if it has few of them."""
    window, label = roles.window, roles.label
    if window is None or window["label"] == "constant":
        return
    rarest = int(label.counts.argmin())
    name, rows = str(label.values[rarest]), int(label.counts[rarest])
    windows = facts.classes[name]
    are_enough = rows > FEW_ROWS_OF_LABEL and 2 * windows >= rows / window["stride"]
    if are_enough or windows == rows:
        return
    advice = "stride: 1 in data.window ends a window at each row"
    if window["stride"] == 1:
        advice = "the first rows of an id end no window, so fewer steps in data.window keep more"
    found = f"{quote(name)} is the label of {counted(rows, 'row')} and {counted(windows, 'window')}"
    yield f"{label.shown}: {found}; {advice}"


def _read_other_splits(found: _Findings, reports: ReadingProgress) -> Iterator[str]:
    """Read the files of validation and test, and yield a warning about files without labels."""
    facts = found.facts
    for name in ("validation", "test"):
        if name not in found.splits:
            continue
        other = _facts_of_split(files_of(name, found.splits[name]), found, reports)
        if other is None:
            path = found.splits.pop(name)
            yield f"{path} has no labels, so it isn't data.{name}; it is for predict"
            continue
        found.rows[name] = other.rows + other.empty
        facts.empty += other.empty
        facts.unlabelled += other.unlabelled
        facts.unreadable += other.unreadable
        facts.is_missing |= other.is_missing


def _facts_of_split(
    files: Sequence[str], found: _Findings, reports: ReadingProgress
) -> Facts | None:
    """Return the facts about the files of validation or test, or None if they have no labels."""
    layout, roles, joins = found.table.layout, found.roles, []
    for join in layout.joins:
        file = for_split(join["file"], files[0])
        if file == join["file"] and join["on"] == ROW:
            return None
        joins.append({**join, "file": file})
    options = layout.options
    if found.table.header is not None:
        options = options.with_given(header=found.table.header)
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
    if label is None or label.distinct == 0:
        return None
    if roles.id is None:
        needed = roles.sequence
    else:
        needed = [*roles.sequence, *roles.id.parts]
    missing = [str(column.name) for column in needed if column.name not in own]
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
    _check_bad_rows(table, facts)
    return facts


def _same_order(roles: Roles, own: Mapping[Name, ColumnProfile]) -> Order | None:
    """Return the order of roles in the columns of another file, or None if this file lacks one."""
    columns = [own.get(column.name) for column in roles.order.columns] if roles.order else []
    if not columns or None in columns:
        return None
    return Order(*filter(None, columns))


def _encoding_time(found: _Findings) -> str:
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


def _uses(found: _Findings, settings: Settings) -> Iterator[str]:
    """Yield the lines of `Proposal.uses`.

    They are about the sequence and the label, other settings of the data, ignored columns, and rows
    left out.
    """
    roles, facts = found.roles, found.facts
    used = SEQUENCE_NAMES[roles.kind]
    if facts.channels > 1 and roles.kind == "features":
        used += f" of {facts.channels} channels"
    columns = [f"{name} ({flow(kind)})" for name, kind in roles.steps.items()]
    if roles.all_others:
        columns = ["all other columns"]
    elif not columns and roles.has_names:
        columns = [str(column.name) for column in roles.sequence]
    if columns:
        used += f" = {listed(columns, 8)}"
    kind = "several labels per row" if facts.multi_label else "label"
    if roles.has_names:
        kind += f" = {listed([str(x.name) for x in roles.one_hot or [roles.label]], 4)}"
    elif found.table.dialect.format == "fasta":
        kind += " in the lines that begin with >"
    yield f"{used}, {kind} ({len(facts.classes)} classes: {shown_labels(facts)})"
    for key in ("join", "sequence", "id", "order", "window", "group", "static"):
        if f"data.{key}" in settings and (key != "sequence" or roles.steps):
            value, reason = settings[f"data.{key}"]
            yield f"{key} = {flow(value)}: {reason}"
        elif key == "order" and roles.id is not None:
            yield "order: as the rows stand in the file, for no column is known to sort them"
    if settings["data.validation"].value is None and "validation" not in found.options.given:
        advice = ""
        if share_to_hold_out(facts.family.name, facts.rows) is None:
            advice = "; to hold out a fifth of them: --set data.validation=0.2"
        yield f"validation = null: {settings['data.validation'].reason}{advice}"
    if found.encoding:
        yield f"pretrained encoder: {found.encoding}"
    if roles.ignored:
        yield f"ignored: {listed(roles.ignored, 8)}"
    unit = "row" if roles.id is None else "sequence"
    if facts.unlabelled:
        yield f"{counted(facts.unlabelled, unit)} with a blank label left out"
    if facts.unreadable:
        yield f"{counted(facts.unreadable, unit)} that can't be read left out"


def _few_rows(found: _Findings, config: Config) -> Iterator[str]:
    """Yield a warning that the accuracy is uncertain, if there are few rows per class.

    Rows are few if train has fewer than `FEW_PER_CLASS` of them per class, on average.
    """
    facts, rows, share = found.facts, found.rows, config.data.validation
    few = facts.rows / len(facts.classes)
    if few >= FEW_PER_CLASS:
        return
    are_few = f"{few:.0f} rows per class are few" if round(few) > 1 else "1 row per class is few"
    if isinstance(share, float):
        held_out = round(share * facts.rows)
    else:
        held_out = rows.get("validation", 0)
    split, scored = ("test" if "test" in rows else "validation"), rows.get("test", held_out)
    if not scored:
        advice = "none are held out: seqtrain fit --folds 5 measures an accuracy"
        yield f"{are_few}, and {advice}"
        return
    points = 196 * math.sqrt(0.09 / scored)
    yield (
        f"{are_few}: an accuracy of 90 % on {counted(scored, 'row')} of "
        f"{split} would have an uncertainty of ± {points:.0f} points; fit --folds 5 scores all rows"
    )
