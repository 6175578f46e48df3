"""Doubts about the columns of training data, for `seqtrain init` and `seqtrain data`."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any
from unicodedata import normalize

import numpy as np

from seqtrain.config import Config
from seqtrain.errors import DataError
from seqtrain.proposal.conversions import (
    advised,
    can_be_converted,
    names_in_files,
    reading_options,
    table_conversion_lines,
)
from seqtrain.proposal.events import fields_of, object_doubts
from seqtrain.proposal.file_names import split_of
from seqtrain.proposal.names import DECISIONS, is_decision
from seqtrain.proposal.options import FileLayout, InitOptions
from seqtrain.proposal.order import MOST_TOTALS
from seqtrain.proposal.prediction import telling_words
from seqtrain.proposal.profile import SHOWN_KINDS, ColumnProfile, Columns, joined_column, without
from seqtrain.proposal.reading import ReadingProgress, read_table
from seqtrain.proposal.roles import (
    Roles,
    joined_marks,
    options_naming,
    owner_of,
    tells_label,
)
from seqtrain.proposal.shell import set_option
from seqtrain.proposal.step_ids import MOST_MISTAKEN
from seqtrain.proposal.table import Table
from seqtrain.sequences.sources import files_of
from seqtrain.tables.blocks import FILE, FOLDER, LABEL
from seqtrain.tables.conversions.cells import likely_meaning
from seqtrain.tables.conversions.forms import conversion, converted_name
from seqtrain.text import counted, listed, quote

MOST_SHOWN = 3
"""Number of odd cells of a column, or of labels, that a message shows."""
TOTAL = re.compile(
    r"(?:grand |sub-?)?totals?:?|sums?:?|(?:gesamt)?summe:?|gesamt:?|insgesamt:?|somme:?|suma:?",
    re.IGNORECASE,
)
"""Cell of a row of totals."""
IN_BRACKETS = re.compile(r"(?:\[[^][\s]+\])+")
"""Symbols in brackets without blanks between, as SELFIES write molecules: [C][=C][O]."""


def column_doubts(config: Config) -> Iterator[str]:
    """Yield doubts about the columns of train.

    They are about nearly numeric columns, whose other cells are named with their lines, labels that
    are spelled in two ways, owners of rows that a split can divide, and columns that give the label
    away. Doubts about their numbers and about encoded rows are in `sequences/`.

    Args:
        config: The config.
    """
    data = config.data
    keys = ("header", "format", "delimiter", "encoding", "quoting", "sheet")
    options = InitOptions(**{key: getattr(data, key) for key in keys})
    joins = [dict(join) for join in data.join or ()]
    layout = FileLayout({"train": data.train}, options, data.path, joins)
    try:
        files = files_of("train", data.train)
        table = read_table(files, layout, ReadingProgress(), is_train=False)
    except DataError:  # the config reads them in another way
        return
    odd = [column for column in table.columns if column.is_odd.any()]
    yield from (line for _, line in odd_lines(odd, table))
    parts, sorting = _columns_of(data.id, table), _columns_of(data.order, table)
    per_id = _columns_of([*(data.static or ())], table)
    used = [*_columns_of(data.sequence, table), *_columns_of([*(data.steps or ())], table), *per_id]
    others = [*parts, *sorting, *_columns_of([data.group, FILE, FOLDER], table)]
    label, id = None, joined_column(parts) if parts else None
    if isinstance(data.label, list):
        marks = _columns_of(data.label, table)
        with suppress(DataError):  # a cell is no mark: its row is listed as one that fit refuses
            yield from doubtful_marks(marks, joined_marks(marks))
    else:
        label = table.column(LABEL if data.label is None else data.label)
    unused = without(table.columns, [label, *others, *used])
    if label is not None:
        yield from spelled_alike(label, data.label_separator, table)
        yield from told_by_ends([x for x in table.columns if x in used], label)
        steps = without([x for x in table.columns if x in used], per_id)
        yield from classes_without_values(steps, label, None if data.window else id)
        # A group with all rows of a class leaves none to hold out.
        unused = [x for x in unused if not tells_label(x, label, id)]
    for column in table.columns:
        if column.kind == "events" and column in used and data.steps:
            yield from object_doubts(column, *fields_of(column), table)
    yield from scattered_rows(id, config)
    yield from shared_owner(owner_of([*unused, *per_id], id), config)
    for column in without(table.columns, [label, *others]):
        reason = None
        if label is not None and column.repeats_as_labels:
            reason = tells_label(column, label, id)
        if reason:
            use = "it is used" if column in used else "it isn't used"
            yield f"{column.shown} gives the label away ({reason}); {use}"


def _columns_of(names: Any, table: Table) -> list[ColumnProfile]:
    """Return the columns of a table that the value of a key names: one name, a list, or None."""
    known = {str(name) for name in (names if isinstance(names, list) else [names])}
    return [column for column in table.columns if column.name_text in known]


def odd_lines(columns: Columns, table: Table) -> Iterator[tuple[list[ColumnProfile], str]]:
    """Yield a line about the cells of columns that aren't of their kinds, after these columns.

    Columns with such cells in the same rows, as a row of units has, share a line.

    Args:
        columns: Columns with such cells.
        table: The table.
    """
    groups = dict[bytes, list[ColumnProfile]]()
    for column in columns:
        groups.setdefault(column.is_odd.tobytes(), []).append(column)
    for own in groups.values():
        found = odd_cells(own[0], table)
        others = [f"{x.values[x.codes[np.argmax(x.is_odd)]]!r} of {x.shown}" for x in own[1:]]
        if others:
            found += f", and beside it {listed(others)}"
        kinds = dict.fromkeys(SHOWN_KINDS[x.kind] for x in own)
        yield own, f"{found}; the others are {' and '.join(kinds)}"


def lines_without_row(columns: Columns, table: Table) -> list[str]:
    """Return lines with a command that removes the only row with odd cells of columns, or [].

    Such a row is the first one, as units below the names are, or has odd cells in several columns.

    Args:
        columns: Columns with odd cells in the same rows.
        table: The table.
    """
    rows, first = np.flatnonzero(columns[0].is_odd), columns[0]
    is_one = len(rows) == 1 and first.owners is None
    if not is_one or (rows[0] and len(columns) == 1):
        return []
    return _lines_without(first, [str(first.values[first.codes[rows[0]]])], table)


def _lines_without(column: ColumnProfile, cells: Sequence[str], table: Table) -> list[str]:
    """Return lines with a command that removes the rows with some cells of a column, or []."""
    if table.format == "txt":
        return []
    texts = [cell.strip() for cell in cells]
    return table_conversion_lines(table, "rows", column=[column.name_text], without=texts)


def odd_cells(column: ColumnProfile, table: Table) -> str:
    """Return the cells of a column that aren't of its kind, with their lines, for a message.

    Args:
        column: A column of the table, or a field of the objects in one.
        table: The table.
    """
    rows = np.flatnonzero(column.is_odd)
    if column.owners is None:
        lines = table.lines
    else:
        lines = table.lines[column.owners]
    shown = []
    for row in rows[:MOST_SHOWN].tolist():
        texts = listed(list(map(repr, column.odd_texts(column.codes[row]))))
        shown.append(f"{texts} (line {lines[row]})")
    more = len(rows) - len(shown)
    names = listed(shown) + (f" and {more:,} more" if more > 0 else "")
    return f"{counted(len(rows), 'cell')} of {column.shown}: {names}"


def doubtful_marks(columns: Columns, marked: ColumnProfile) -> Iterator[str]:
    """Yield warnings about label columns that mark no row, and rows without a mark.

    Args:
        columns: The label columns.
        marked: Column of the names that each row has, joined by |.
    """
    blank = sum(int(x.is_blank.sum()) for x in columns if x.distinct > 1)
    if blank:  # a column with nothing but x marks rows in this way
        yield (
            f"label columns: {counted(blank, 'blank cell')} read as 0; "
            "if these labels aren't known, leave out their rows"
        )
    sizes = [len(value.split("|")) if value else 0 for value in marked.values]
    used = {name for value in marked.values for name in value.split("|")}
    unused = [column.shown for column in columns if column.name_text not in used]
    if unused:
        noun = "marks no row, so it is no class" if len(unused) == 1 else "mark no row"
        yield f"label columns: {listed(unused)} {noun}; leave out what can't be learned"
    without = sum(n for size, n in zip(sizes, marked.counts.tolist(), strict=True) if not size)
    if without and max(sizes) == 1:
        yield (
            f"label columns: {counted(without, 'row')} of {marked.rows:,} have no label, and none "
            "has several; they are examples without any label: if they are a class of their own, "
            "mark it in a further column; if their label isn't known, leave them out"
        )


def spelled_alike(label: ColumnProfile, separator: str | None, table: Table) -> Iterator[str]:
    """Yield a warning if labels seem to be spellings of one, so that each is a class.

    They differ only in case, blanks, accents that are letters of their own, characters without
    width, zeros before a number, or zeros after its decimal comma.

    Args:
        label: Column of the label.
        separator: Text between the labels of a cell, or None.
        table: The table, for a command that spells them alike.
    """
    counts, same = Counter[str](), dict[str, Counter[str]]()
    for value, count in zip(label.values, label.counts.tolist(), strict=True):
        parts = str(value).split(separator) if separator else [value]
        for part in parts if label.are_texts else ():
            counts[part.strip()] += count
    for name, count in counts.items():
        same.setdefault(likely_meaning(name), Counter())[name] = count
    groups = [[name for name, _ in own.most_common()] for own in same.values() if len(own) > 1]
    if not groups:
        return
    shown = [" and ".join(f"{_quoted_fully(x)} ({counts[x]:,})" for x in own) for own in groups]
    advice = "if they mean the same, spell them alike"
    lines = list[str]()
    is_elsewhere = table.layout.joins or table.layout.pattern  # in a file, or in its name
    if separator is None and not is_elsewhere:
        spellings = [own[0] for own in groups]
        columns = names_in_files(table, [label])
        lines = table_conversion_lines(table, "spelled", column=columns, value=spellings)
    found = f"labels that may be spellings of one: {listed(shown, MOST_SHOWN)}"
    yield from advised(f"{found}; {advice}", lines)


def _quoted_fully(label: str) -> str:
    """Return a label in quotes, with numbers of its accents if these are letters of their own."""
    if normalize("NFC", label) != label:
        return ascii(label)
    return quote(label, 30)


def shared_owner(owner: ColumnProfile | None, config: Config) -> Iterator[str]:
    """Yield a warning if a random split can divide the rows of one owner, such as a customer.

    There is no warning if data.group is set, or if files are held out. Folds divide rows, too.

    Args:
        owner: Column that names the owner of each row, or None.
        config: The config.
    """
    is_divided = isinstance(config.data.validation, float) or isinstance(config.data.test, float)
    if owner is None or config.data.group is not None:
        return
    name = owner.name
    command = set_option(f"data.group={name}")
    if config.data.validation is None and not is_divided:
        yield (
            f"rows with the same {str(name)!r} would be in several parts of fit --folds, so its "
            f"scores may be too good for a new {name}; to keep them together: {command}"
        )
    if not is_divided:
        return
    yield (
        f"rows with the same {str(name)!r} are in train and among the held-out rows, so scores may "
        f"be too good for a new {name}; to keep them together: {command}"
    )


def scattered_rows(id: ColumnProfile | None, config: Config) -> Iterator[str]:
    """Yield a warning if the rows of an id are scattered over the file, and no column sorts them.

    Args:
        id: Column of the id, or None if a row is a sequence.
        config: The config.
    """
    if id is None or config.data.order is not None or id.is_contiguous:
        return
    yield (
        f"rows of one {id.shown} are scattered over the file, and used in its order: if they are "
        "shuffled, what grows or drifts within them is lost; name the column that sorts them in "
        "data.order (init --order)"
    )


def blank_labels(roles: Roles, table: Table) -> Iterator[str]:
    """Yield a warning about a few blank labels in sequences that have one in all other rows."""
    id, label = roles.id, roles.label
    if id is None or roles.window is not None or label not in table.columns:
        return
    labelled = np.unique(id.codes[~label.is_blank])
    rows = np.flatnonzero(label.is_blank & np.isin(id.codes, labelled))
    if not 0 < len(rows) <= MOST_MISTAKEN * table.rows:
        return
    lines = [f"line {line}" for line in table.lines[rows].tolist()]
    yield (
        f"{table.name}: {label.shown} is blank on {listed(lines)}; such a row has the label of the "
        "other rows of its sequence"
    )


def rows_of_totals(roles: Roles, table: Table) -> Iterator[str]:
    """Yield a warning for each cell of the last rows of a table that says that they hold totals.

    Where a row is a sequence, those without a label are left out already.
    """
    for column in table.columns:
        for row in range(max(0, table.rows - MOST_TOTALS), table.rows):
            if roles.id is None and roles.label.is_blank[row]:
                continue
            code = column.codes[row]
            cell = column.values[code]
            if not isinstance(cell, str) or not TOTAL.fullmatch(cell) or column.counts[code] > 1:
                continue
            found = (
                f"{table.name}: line {table.lines[row]} may hold totals and no data, for "
                f"{column.shown} is {quote(cell, 30)}; if so, remove it"
            )
            yield from advised(found, _lines_without(column, [cell], table))


def told_by_ends(columns: Columns, label: ColumnProfile) -> Iterator[str]:
    """Yield doubts about texts and symbols whose first or last word tells the label.

    Such as the result at the end of a game's moves.

    Args:
        columns: Columns of the sequence.
        label: Column of the label.
    """
    for column in columns:
        for found in telling_words(column, label):
            yield (
                f"the {found.place} word of {column.shown} tells the label in {found.share:.1%} of "
                f"the rows, such as {quote(found.word, 20)}; if it won't be there when the label "
                "is to be predicted, remove it"
            )


def classes_without_values(
    columns: Columns, label: ColumnProfile, id: ColumnProfile | None
) -> Iterator[str]:
    """Yield a warning for each class of which no row has a value in the columns of the sequence.

    Such as a class whose cells are all n/a, so that only what is missing tells it. Blank rows of a
    table without ids are none: they are left out, which is said elsewhere.

    Args:
        columns: Columns of the sequence, or of time steps.
        label: Column of the label.
        id: Column whose rows of one value have one label, or None.
    """
    if not columns or any(column.rows != label.rows for column in columns):
        return
    if any(not column.kind_counts["missing"] for column in columns):
        return
    labels = label.codes
    if id is not None:  # perhaps one row of an id has its label
        known = ~label.is_blank
        of_ids = np.full(len(id.values), label.blank, labels.dtype)
        of_ids[id.codes[known]] = labels[known]
        labels = of_ids[id.codes]
    holds_value = np.any([~column.is_missing for column in columns], axis=0)
    used = np.ones(label.rows, dtype=bool)
    if id is None:  # blank rows, and those without any number, are left out
        used = np.any([~column.is_blank for column in columns], axis=0)
        if not any(column.kind in ("text", "symbols") for column in columns):
            used = holds_value
    without_value = {*labels[used].tolist()} - {*labels[holds_value].tolist(), label.blank}
    for code in sorted(without_value):
        rows = np.flatnonzero(labels == code)
        cells = [str(x.values[x.codes[rows[0]]]) for x in columns]
        example = next((quote(cell, 20) for cell in cells if cell), "blank cells")
        name = quote(str(label.values[code]), 40)
        yield (
            f"none of {counted(len(rows), 'row')} of the label {name} has a value in "
            f"{listed([x.shown for x in columns], 3)}, but {example}: what is missing tells this "
            "label; correct these rows, or leave them out"
        )


def mistaken_labels(roles: Roles, table: Table) -> Iterator[str]:
    """Yield a warning if rows of one id have several labels, with the line of one of them."""
    if roles.id is None or roles.window is not None:
        return
    first = np.zeros(len(roles.id.values), np.int64)
    known = np.flatnonzero(~roles.label.is_blank)[::-1]
    first[roles.id.codes[known]] = known
    ids, labels = roles.id.codes[known], roles.label.codes
    odd = known[labels[known] != labels[first[ids]]][::-1]
    if not len(odd):
        return
    row, other = int(odd[0]), int(first[roles.id.codes[odd[0]]])
    name = quote(roles.id.values[roles.id.codes[row]], 40)
    shown = [f"{roles.label.values[labels[at]]!r} on line {table.lines[at]}" for at in (other, row)]
    steps = max(2, int(np.median(roles.id.counts)) // 2)
    window = f"data.window={{steps: {steps}, stride: {max(1, steps // 2)}, label: last}}"
    sequences = counted(len(np.unique(roles.id.codes[odd])), "sequence")
    yield (
        f"{sequences} left out, whose rows have several labels (data.bad_rows: drop), such as "
        f"{name}: {listed(shown)}; to learn them, correct their labels; if {roles.label.shown} may "
        f"change within {roles.id.shown}: {set_option(window)}"
    )


def symbols_in_brackets(roles: Roles, table: Table) -> Iterator[str]:
    """Yield a warning with a command if symbols in brackets would be read by characters."""
    if roles.kind != "text":
        return
    for column in roles.sequence:
        texts = [x for x in column.sampled_values if isinstance(x, str) and x]
        if texts and all(map(IN_BRACKETS.fullmatch, texts)):
            found = (
                f"{column.shown} holds symbols in brackets, such as {quote(texts[0], 30)}, which "
                "are read by characters; to read each as one, write blanks between"
            )
            options = {"rule": "symbols", "column": names_in_files(table, [column])}
            yield from advised(found, table_conversion_lines(table, "cells", **options))


def rejected_tasks(roles: Roles, table: Table) -> Iterator[str]:
    """Yield a warning about rows that annotators rejected or ignored, with a remedy."""
    for column in filter(is_decision, table.columns):
        refused = DECISIONS[2:] if column is roles.label else DECISIONS[1:]
        found = [x for x in column.values if x in refused]
        if not found:
            continue
        rows = sum(int(column.counts[column.values.index(x)]) for x in found)
        used = (
            f"{column.shown} of {counted(rows, 'row')} in {column.rows:,} is {' or '.join(found)}, "
            "and they are used as the others are; leave them out"
        )
        yield from advised(used, _lines_without(column, found, table))


def rows_of_splits(roles: Roles, table: Table) -> Iterator[str]:
    """Yield lines of a warning about a column with the names of splits, with commands.

    The commands write the rows of each split into a file.
    """
    possible = without(table.columns, [roles.label])
    column = next((x for x in possible if x.names_splits), None)
    if column is None:
        return
    found = f"{column.shown} holds names of splits, but all rows are read as one; "
    file = table.only_file
    if file is None or not can_be_converted(table) or table.layout.joins:
        yield f"{found}write the rows of each split into a file of its own, such as test.csv"
        return
    targets, others = dict[str | None, str](), list[str]()
    yield f"{found}to keep those of test apart, write a file for each:"
    stem, ending = os.path.splitext(converted_name(file, "rows"))
    for name in filter(None, map(str, column.values)):
        options = {"column": names_in_files(table, [column]), "value": name.strip()}
        output = f"{stem.removesuffix('rows')}{name.strip().lower()}{ending}"
        line, target = conversion("rows", file, **options, **reading_options(table), output=output)
        yield f"  {line}"
        split = split_of(name)
        if targets.setdefault(split, target) != target:
            others.append(f"{targets[split]} and {target} both may be {split}")
    labels = options_naming("label", roles.one_hot or [roles.label])
    yield f"  seqtrain init {' '.join(targets.values())} {labels}"
    if others:
        yield f"{listed(others)}: the first is used here; if it is the other one, give that"
