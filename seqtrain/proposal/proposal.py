"""Proposal of `seqtrain init`: the text of a config for data files, and notes for the user."""

import math
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqtrain.config import Config
from seqtrain.errors import DataError, either, marked
from seqtrain.proposal.facts import Facts, facts_of, labels_of, used_columns
from seqtrain.proposal.inspection import Data, read_data
from seqtrain.proposal.label_forms import joined_mark
from seqtrain.proposal.layouts import NUMBER, SUBJECT, Splits, assign_splits
from seqtrain.proposal.options import COLUMN_OPTIONS, INIT_COMMAND, InitOptions
from seqtrain.proposal.profile import Column
from seqtrain.proposal.reading_progress import ReadingProgress
from seqtrain.proposal.recordings import Layout, find_layout
from seqtrain.proposal.roles import (
    Roles,
    choose_label,
    columns_named,
    determines,
    owner_of,
    row_table,
)
from seqtrain.proposal.settings import Situation, settings_for, share_to_hold_out
from seqtrain.proposal.step_roles import step_table
from seqtrain.proposal.table import odd_cells
from seqtrain.proposal.windows import window_table
from seqtrain.proposal.write import (
    column_settings,
    comments_of,
    shown_labels,
    split_settings,
    write_config,
)
from seqtrain.sequences.dataset import prepare
from seqtrain.sequences.sources import files_of
from seqtrain.sequences.summary import label_doubts, number_doubts
from seqtrain.tables.blocks import FILE, FOLDER, LABEL, TEXT, missing_name
from seqtrain.tables.cells import BadCellError, mark_of
from seqtrain.tables.join import for_split
from seqtrain.tables.sources import holds_whole_files
from seqtrain.text import counted, listed, quote

TRIED_ROWS, TRIED_IDS = 4096, 1000
"""With fewer rows, or ids of a table of time steps, `propose` also prepares the data as `fit` does.

If this fails, and `propose` itself chose the validation, it tries again without validation.
"""
FEW_PER_CLASS = 30
"""Rows per class below which a warning says that the accuracy is uncertain."""
KIND_NAMES = {"text": "text", "tokens": "symbols", "features": "series", "steps": "a time step"}
MOST_NUMBERED_CLASSES = 10
"""Largest number of files of a class each whose names may differ only in numbers, as for digits."""
MOST_UNIQUE = 2
"""Largest number of rows that may all have different labels, without a validation file."""
MOST_DROPPED = 0.05
"""Largest share of rows that may be left out: with more, the reading is wrong."""


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
    progress: Callable[[str], None] | None = None,
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
        progress: Called with a line of text during steps that take more than a second. None
            reports nothing.

    Raises:
        ConfigError: If a setting of the user isn't valid.
        DataError: If a file can't be read, or if the data is ambiguous without a further option.
    """
    reading = ReadingProgress(progress)
    splits, warnings = assign_splits(files, test), list[str]()
    train = files_of("train", splits["train"])
    layout = find_layout(train, options, reading) or Layout(options)
    options = layout.options
    data = read_data(train, options, reading, pattern=layout.pattern, joins=layout.joins)
    roles = roles_of(data, options)
    facts = facts_of(
        roles, tokenizer=options.get("tokenizer"), separator=options.get("label_separator")
    )
    if facts.unreadable:
        known = labels_of(roles, options.get("label_separator"))
        _check_dropped(data, roles, facts, len(known.counts(np.arange(data.table.rows))))
    _count_bad_rows(data, facts, options)
    _check_classes(data, facts)
    warnings += _check_labels(data, roles, facts, has_validation="validation" in splits)
    rows = {"train": facts.rows}
    for name in ("validation", "test"):
        if name in splits:
            reading.step(f"reading {name}")
            other = _split_facts(files_of(name, splits[name]), data, roles, options, reading)
            if other is None:
                warnings.append(
                    f"{splits[name]} has no labels, so it isn't data.{name}; it is for predict"
                )
                del splits[name]
                continue
            rows[name] = other.rows + other.empty
            facts.empty += other.empty
            facts.unlabelled += other.unlabelled
            facts.unreadable += other.unreadable
            facts.is_missing |= other.is_missing
    warnings += [*data.warnings, *roles.warnings]
    splits.setdefault("validation", share_to_hold_out(_held_out_family(facts), facts.rows))
    if "validation" in options.given:
        splits["validation"] = options.get("validation")
    text, config = _config(splits, rows, data, roles, facts, options)
    warnings += label_doubts(facts.classes, multi_label=facts.multi_label)
    if facts.rows < (TRIED_ROWS if roles.id is None else TRIED_IDS):
        try:
            prepared = prepare(config)
        except DataError:
            if "validation" in rows or "validation" in options.given:
                raise
            splits["validation"] = None
            text, config = _config(splits, rows, data, roles, facts, options)
            prepared = prepare(config)
        warnings += number_doubts(prepared)
    warnings += _shared_owner(roles, config)
    uses = [*_uses(data, roles, facts, config)]
    return Proposal(text, uses, [*warnings, *_trust(facts, rows, config)])


def roles_of(data: Data, options: InitOptions) -> Roles:
    """Return the roles of the columns of a table.

    Raises:
        DataError: If they aren't clear, or the table lacks a column that the user names.
    """
    columns = data.table.columns
    if not data.has_columns:
        return _fixed_roles(data, options)
    _check_names(columns, options)
    one_hot = columns_named(columns, options, "label")
    if len(one_hot) > 1:
        joined = _marked(one_hot)
        columns = [*(column for column in columns if column not in one_hot), joined]
        options = InitOptions(**{**options.given, "label": joined.name})
    else:
        one_hot = []
    label = next(iter(columns_named(columns, options, "label")), None)
    roles = window_table(columns, options) if _is_windowed(columns, options, label) else None
    roles = roles or step_table(columns, options) or window_table(columns, options)
    roles = roles or row_table(columns, options, label)
    roles.one_hot = one_hot
    if data.joins:  # "all other columns" would be those of the joined files, too
        roles.all_others = False
    if data.pattern is not None:
        _group_recordings(roles)
    roles.warnings += [*_odd_cells(data, roles)]
    return roles


def _group_recordings(roles: Roles) -> None:
    """Make the subject in the names of recordings the group, in place of a row feature."""
    for column in roles.columns:
        if column.name == SUBJECT and roles.static.pop(SUBJECT, ""):
            roles.group = column
            roles.reasons["group"] = "recordings of one subject stay on one side of a split"
            roles.warnings = [x for x in roles.warnings if not x.startswith(quote(SUBJECT))]


def _is_windowed(columns: Sequence[Column], options: InitOptions, label: Column | None) -> bool:
    """Return True if the user names an id and a label that changes within it."""
    ids = columns_named(columns, options, "id")
    return bool(ids) and label is not None and not determines(ids[0], label, labelled=True)


def _fixed_roles(data: Data, options: InitOptions) -> Roles:
    """Return the roles of the columns of a format that fixes where sequence and label are."""
    table, text = data.table, data.table.named(TEXT)
    others = [x for x in table.columns if x.name not in (TEXT, LABEL, FILE, FOLDER)]
    for option in ("label", "sequence"):
        if options.named(option) and not others and data.pattern is None:
            format = data.dialect.format
            raise DataError(f"--{option}: format {format} has no columns to name; leave it out")
    label = table.named(LABEL)
    if others:
        named = columns_named(others, options, "label")
        label = named[0] if named else choose_label(others)
    if label is None or text is None or label.distinct == 0:
        raise DataError(
            f"{data.name}: no labels: no line has a tab; expected label<TAB>text, csv or jsonl "
            "with a column of labels, or a folder of texts for each class"
        )
    kind = {"series": "features", "symbols": "tokens"}.get(text.kind, "text")
    if data.dialect.format in ("fasttext", "fasta"):
        kind = "text"
    roles = Roles(options.kind or kind, label, [text], table.columns, has_names=False)
    roles.owner = owner_of([column for column in others if column is not label])
    roles.ignored = [column.describe() for column in others if column is not label]
    return roles


def _marked(columns: Sequence[Column]) -> Column:
    """Return a column of the names of the columns that mark a label in a row, joined by |.

    Raises:
        DataError: If a cell of a label column isn't a mark such as 0, 1, true or false.
    """
    marks = []
    for column in columns:
        try:
            values = np.array([mark_of(value) for value in column.values])
        except BadCellError as bad:
            raise DataError(f"--label: column {column.shown}: {bad}") from None
        marks.append(values[column.codes])
    names = [str(column.name) for column in columns]
    cells = []
    for row in zip(*(mark.tolist() for mark in marks), strict=True):
        cells.append("|".join(name for name, mark in zip(names, row, strict=True) if mark))
    return Column.of(str(names), cells)


def _check_names(columns: Sequence[Column], options: InitOptions) -> None:
    """Raise a DataError if the table lacks columns in the options. The error lists all of them."""
    present = [str(column.name) for column in columns]
    known = {*present, *map(str, range(len(columns)))}
    has_names = isinstance(columns[0].name, str)
    hint = "" if has_names else "; the table has no names (--header, if the first row has some)"
    problems = []
    for option in COLUMN_OPTIONS:
        for name in options.named(option):
            if str(name) not in known:
                missing = missing_name("column", str(name), present)
                problems.append(f"--{option}: {missing}{hint}")
    if problems:
        raise DataError(*problems)


def _odd_cells(data: Data, roles: Roles) -> Iterator[str]:
    """Yield a warning for each used column of numbers with cells of another kind."""
    for column in (*used_columns(roles), *roles.sequence):
        if column.is_odd.any():
            rows = "Rows" if roles.id is None else "Sequences"
            yield (
                f"{odd_cells(column, data.table)}; the others are {column.kind}s. {rows} with such "
                "a cell are left out (data.bad_rows: drop); if it stands for a missing number, "
                "write a blank cell or NA"
            )


def _check_dropped(data: Data, roles: Roles, facts: Facts, classes: int) -> None:
    """Raise a DataError if too many rows with cells of another kind would be left out.

    These are more than a twentieth, or all of a class.

    Args:
        data: The files of train.
        roles: Roles of the columns.
        facts: Facts about train.
        classes: Number of classes of all rows.
    """
    total = facts.rows + facts.unreadable
    odd = [x for x in (*used_columns(roles), *roles.sequence) if x.is_odd.any()]
    if not odd or (facts.unreadable <= MOST_DROPPED * total and len(facts.classes) == classes):
        return
    unit = "rows" if roles.id is None else "sequences"
    found = [odd_cells(column, data.table) for column in odd]
    raise DataError(
        *(f"{data.name}: {each}; the others are numbers" for each in found),
        f"{data.name}: leaving out such rows would lose {facts.unreadable:,} of {total:,} {unit}, "
        "or a class; if these cells stand for missing numbers, write them as blank cells or NA, "
        "or leave the column out with --steps or --sequence",
    )


def _count_bad_rows(data: Data, facts: Facts, options: InitOptions) -> None:
    """Count the rows that can't be read, if they may be left out.

    Raises:
        DataError: If rows can't be read, and the user didn't ask to leave them out.
    """
    problems = data.table.problems
    facts.unreadable += len(problems)
    if not problems or options.drops_bad_rows or data.leaves_out:
        return
    shown = problems[:10]
    more = len(problems) - len(shown)
    lines = [*shown, f"{data.name}: {more:,} more rows can't be read"] if more else shown
    if len(problems) <= MOST_DROPPED * (data.table.rows + len(problems)):
        drop = "data.bad_rows=drop"
        chosen = either(f"{INIT_COMMAND} --set {drop}", f"settings=[{drop!r}]")
        advice = f"to leave such rows out: {chosen}"
        lines = [*lines, f"{data.name}: {advice}"]
    raise DataError(*lines)


def _check_classes(data: Data, facts: Facts) -> None:
    """Raise a DataError if all rows are empty, or have one label."""
    if not facts.classes:
        found = facts.empty + facts.unlabelled + facts.unreadable
        raise DataError(f"{data.name}: all {found} rows are empty")
    if len(facts.classes) < 2:
        label = quote(next(iter(facts.classes)))
        raise DataError(f"{data.name}: one label, {label}; expected two or more")


def _check_labels(data: Data, roles: Roles, facts: Facts, *, has_validation: bool) -> Iterator[str]:
    """Yield a warning if the labels of train are probably no classes.

    Raises:
        DataError: If all labels differ, without a validation file. Also if there is one file per
            class, with many files whose names are all numbers.
    """
    labels = [*facts.classes]
    stems = {NUMBER.sub("", label) for label in labels}
    is_folder = data.dialect.format == "txt" and os.path.isdir(data.path)
    is_file_per_class = is_folder and not holds_whole_files(data.path)
    if is_file_per_class and len(labels) > MOST_NUMBERED_CLASSES and len(stems) == 1:
        found = f"one file per class, {labels[0]}, {labels[1]} and {len(labels) - 2} more"
        if stems == {""}:
            raise DataError(f"{data.name}: this folder holds {found}; did you mean its parent?")
        yield f"this folder holds {found}; if the folder is a class, give its parent"
    is_unique = max(facts.classes.values()) == 1 and facts.rows > MOST_UNIQUE
    if is_unique and not has_validation:
        expected = "expected labels that several rows share"
        if data.has_columns:
            expected += marked("; --label names their column")
        elif is_folder:
            expected += ": each file is a class here; give each class a folder for its files"
        each = f"each of {facts.rows} rows has a different label, such as {quote(labels[0], 40)}"
        raise DataError(f"{data.name}: {each}; {expected}")
    for variant in facts.variants:
        yield f"labels that are spelled {variant} are one class"
    mark = None if facts.multi_label else joined_mark(facts.classes)
    if mark is not None:
        yield (
            f"labels such as {quote(next(x for x in facts.classes if mark in x), 40)} may be "
            f"several, joined by {quote(mark)}; now each combination is a class. If each row has "
            f"several labels: --set data.label_separator={quote(mark)}"
        )


def _split_facts(
    files: Sequence[str], data: Data, roles: Roles, options: InitOptions, reading: ReadingProgress
) -> Facts | None:
    """Return the facts about the files of validation or test, or None if they have no labels."""
    given = dict(options.given)
    if data.header is not None:
        given["header"] = data.header
    joins = []
    for join in data.joins:
        joins.append({**join, "file": for_split(join["file"], files[0])})
    other = read_data(
        files, InitOptions(**given), reading, pattern=data.pattern, joins=joins, is_train=False
    )
    by_name = {column.name: column for column in other.table.columns}
    label = None if roles.label is None else by_name.get(roles.label.name)
    one_hot = [by_name[column.name] for column in roles.one_hot if column.name in by_name]
    if roles.one_hot and len(one_hot) == len(roles.one_hot):
        label = _marked(one_hot)
    if label is None or label.distinct == 0:
        return None
    names = {column.name for column in (*roles.sequence, roles.id) if column is not None}
    missing = [name for name in names if name not in by_name]
    if missing:
        present = [str(name) for name in by_name]
        raise DataError(f"{other.name}: {missing_name('column', str(missing[0]), present)}")
    same = Roles(
        roles.kind,
        label,
        [by_name[column.name] for column in roles.sequence],
        other.table.columns,
        id=None if roles.id is None else by_name[roles.id.name],
        steps=roles.steps,
        static=roles.static,
        one_hot=one_hot,
        window=roles.window,
    )
    facts = facts_of(same, tokenizer=options.get("tokenizer"))
    _count_bad_rows(other, facts, options)
    return facts


def _held_out_family(facts: Facts) -> str:
    return facts.family.name if facts.channels else "words"


def _config(
    splits: Splits,
    rows: Mapping[str, int],
    data: Data,
    roles: Roles,
    facts: Facts,
    options: InitOptions,
) -> tuple[str, Config]:
    """Return the config as text, and parsed."""
    family = facts.family
    situation = Situation(
        family.name,
        facts.rows,
        facts.classes,
        facts.lengths[0],
        validation=splits["validation"],
        multi_label=facts.multi_label,
        distinct_symbols=facts.symbols,
        steps=roles.steps,
        has_row_features=bool(roles.static),
        is_missing=facts.is_missing,
        is_often_missing=facts.is_often_missing and not options.get("standardize"),
        tokenizer=options.get("tokenizer"),
        keeps_case=family.keeps_case,
        family_reason=family.reason,
    )
    settings = split_settings(splits, rows, data, roles, facts)
    settings |= column_settings(data, roles, facts)
    settings |= settings_for(situation)
    return write_config(settings, comments_of(splits, facts, options), options)


def _step_kind(kind: str | dict[str, Any]) -> str:
    """Return the type of a step column as text, such as "number" or "number by COLUMN"."""
    if isinstance(kind, str):
        return kind
    name, *options = kind
    return " ".join([name, *(f"{option} {kind[option]}" for option in options)])


def _uses(data: Data, roles: Roles, facts: Facts, config: Config) -> Iterator[str]:
    """Yield the lines of `Proposal.uses`.

    They are about the sequence and the label, row features, ignored columns, and rows left out.
    """
    used = KIND_NAMES[roles.kind]
    if facts.channels > 1 and roles.kind == "features":
        used += f" of {facts.channels} channels"
    if roles.id is not None:
        columns = [f"{name} ({_step_kind(kind)})" for name, kind in roles.steps.items()]
        order = config.data.order
        sorted_by = "" if order is None else f", by {order}"
        used += f" = {listed(columns, 8)}; a sequence = the rows of one {roles.id.name}{sorted_by}"
        if roles.window is not None:
            used += f", in windows of {roles.window['steps']}"
    elif roles.all_others:
        used += " = all other columns, a time step each"
    elif roles.has_names:
        used += f" = {listed([str(column.name) for column in roles.sequence], 4)}"
    classes = f"{len(facts.classes)} classes: {shown_labels(facts)}"
    label = None
    if roles.one_hot:
        label = listed([str(column.name) for column in roles.one_hot], 4)
    elif roles.label is not None and roles.has_names:
        label = str(roles.label.name)
    elif data.dialect.format == "fasta":
        label = "the last word of each line of >"
    kind = "several labels per row" if facts.multi_label else "label"
    if label is None and facts.multi_label:
        classes = f"several labels per row ({classes})"
    yield f"{used}, {classes}" if label is None else f"{used}, {kind} = {label} ({classes})"
    if roles.static:
        columns = [f"{name} ({kind})" for name, kind in roles.static.items()]
        yield f"row features = {listed(columns, 8)}"
    if roles.ignored:
        yield f"ignored: {listed(roles.ignored, 8)}"
    unit = "row" if roles.id is None else "sequence"
    if facts.unlabelled:
        yield f"{counted(facts.unlabelled, unit)} with a blank label left out"
    if facts.unreadable:
        yield f"{counted(facts.unreadable, unit)} that can't be read left out"


def _shared_owner(roles: Roles, config: Config) -> Iterator[str]:
    """Yield a warning if a random split can divide the rows of one owner, such as a customer.

    There is no warning if data.group is set, or if no fraction of train is held out.
    """
    is_divided = isinstance(config.data.validation, float) or isinstance(config.data.test, float)
    if roles.owner is None or not is_divided or config.data.group is not None:
        return
    name = roles.owner.name
    command = shlex.join(["--set", f"data.group={name}"])
    yield (
        f"rows with the same {str(name)!r} are in train and among the held-out rows, so scores may "
        f"be too good for a new {name}; {command} keeps them together"
    )


def _trust(facts: Facts, rows: Mapping[str, int], config: Config) -> Iterator[str]:
    """Yield a warning that the accuracy is uncertain, if there are few rows per class.

    Rows are few if train has fewer than `FEW_PER_CLASS` of them per class, on average.
    """
    share, few = config.data.validation, facts.rows / len(facts.classes)
    if few >= FEW_PER_CLASS:
        return
    held_out = rows.get("validation", 0)
    if isinstance(share, float):
        held_out = round(share * facts.rows)
    split, scored = ("test" if "test" in rows else "validation"), rows.get("test", held_out)
    if not scored:
        advice = "none are held out: seqtrain fit --folds 5 measures an accuracy"
        yield f"{few:.0f} rows per class are few, and {advice}"
        return
    points = 196 * math.sqrt(0.09 / scored)
    yield (
        f"{few:.0f} rows per class are few: an accuracy of 90 % on {counted(scored, 'row')} of "
        f"{split} would have an uncertainty of ± {points:.0f} points; fit --folds 5 scores all rows"
    )
