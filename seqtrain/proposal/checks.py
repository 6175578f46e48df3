"""Checks of rows and classes: too many rows that can't be read, and too few classes."""

import os
import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

from seqtrain.config.document import flow
from seqtrain.errors import DataError, marked
from seqtrain.proposal.conversions import advised, table_conversion_lines
from seqtrain.proposal.divisions import refuse_labels_before_blanks
from seqtrain.proposal.doubts import lines_without_row, odd_lines
from seqtrain.proposal.facts import Facts
from seqtrain.proposal.fasta_fields import commands_for_header_fields, refuse_fields
from seqtrain.proposal.findings import Findings
from seqtrain.proposal.profile import MOST_MARKS, Columns
from seqtrain.proposal.roles import Roles, odd_numbers, set_command
from seqtrain.proposal.table import Table
from seqtrain.proposal.text_forms import better_reading
from seqtrain.sequences.examples import MOST_DROPPED
from seqtrain.tables.blocks import FILE
from seqtrain.tables.conversions.cells import LIMIT
from seqtrain.tables.delimited import REPEATED_HEADER
from seqtrain.tables.join import DIFFERENT_ROWS, NO_ROW
from seqtrain.text import counted, listed, quote

LINE_NUMBER = re.compile(":[0-9]+: ")
"""Line of a file in a message."""
MOST_ODD_COLUMNS = 8
"""Largest number of columns whose odd cells a command names."""
FAULTS_OF_KEYS = (NO_ROW, DIFFERENT_ROWS)
"""Parts of the reasons of rows whose key isn't in a joined file, or has several rows there."""
HOLD_NO_DATA = (*FAULTS_OF_KEYS, REPEATED_HEADER)
"""Parts of the reasons of rows of which any number may be left out."""
MOST_UNIQUE = 2
"""Largest number of rows that may all have different labels, without a validation file."""


def check_dropped(found: Findings) -> None:
    """Raise a DataError if too many rows with cells of another kind would be left out.

    These are more than a twentieth, or all of a class.
    """
    facts, table = found.facts, found.table
    total = facts.rows + facts.unreadable
    if facts.unreadable <= MOST_DROPPED * total and not facts.lost_classes:
        return
    unit = "rows" if found.roles.id is None else "sequences"
    columns = list(odd_numbers(found.roles))
    if not columns:  # windows may leave out a class, too
        return
    lines, commands = list[str](), list[str]()
    for own, line in odd_lines(columns, table):
        lines.append(f"{table.name}: {line}")
        without = lines_without_row(own, table)
        if without:
            commands += [f"{table.name}: if this row holds units or no data:", *without]
    advice = "write missing numbers as blank cells or NA"
    setting = setting_for_missing(columns, table)
    if setting and not commands:
        advice = "to read such cells as missing numbers, use the command below"
        commands = [f"  {set_command(setting)}"]
    raise DataError(
        *lines,
        f"{table.name}: {facts.unreadable:,} of {total:,} {unit} have such cells; leaving these "
        "rows out would lose too many, or a class",
        f"{table.name}: {advice}; or name the other columns (--steps, --sequence)",
        *commands,
        *_command_for_limits(table, columns),
    )


def setting_for_missing(columns: Columns, table: Table) -> str:
    """Return the setting that reads odd cells as missing, or "" for many different ones.

    It keeps those of the user. It is also "" for the fields of objects, and without columns.
    """
    if not columns:
        return ""
    cells = dict[str, list[Any]](table.options.get("na_values") or {})
    for column in columns:
        cells[column.name_text] = [*cells.get(column.name_text, ())]
        own = (column.odd_texts(code) for code in column.odd_codes)
        cells[column.name_text] += dict.fromkeys(chain.from_iterable(own))
    is_long = len(cells) > MOST_ODD_COLUMNS or max(map(len, cells.values()), default=0) > MOST_MARKS
    if is_long or any(column.owners is not None for column in columns):
        return ""
    return f"data.na_values={flow(cells)}"


def _command_for_limits(table: Table, columns: Columns) -> list[str]:
    """Return a command that replaces limits such as <0.5 by their number, or [] for other cells."""
    marks = {str(column.values[code]) for column in columns for code in column.odd_codes}
    if not all(map(LIMIT.fullmatch, marks)):
        return []
    options = {"rule": "limits", "column": [column.name_text for column in columns]}
    found = f"{table.name}: to read a limit such as {min(marks)} as its number, write it so"
    return advised(found, table_conversion_lines(table, "cells", **options))


def check_bad_rows(table: Table, roles: Roles, facts: Facts) -> None:
    """Check that rows that can't be read may be left out, and count them, or their sequences.

    Raises:
        DataError: If rows can't be read, and the user didn't ask to leave them out.
    """
    problems = table.problems
    facts.unreadable += _num_unreadable(table, roles)
    if not problems or table.options.get("bad_rows") == "drop" or table.leaves_out:
        return
    lines = problems
    hold_no_data = _are_all(HOLD_NO_DATA, problems)
    lack_a_key = _are_all(FAULTS_OF_KEYS, problems)
    if lack_a_key or FILE in table.options.named("id"):  # all rows of an id lack the same
        firsts = {LINE_NUMBER.sub(": ", problem, count=1): problem for problem in problems[::-1]}
        lines = list(firsts.values())[::-1]
    lines = lines[:10]
    if len(problems) > len(lines):
        more = counted(len(problems) - len(lines), "more row")
        lines.append(f"{table.name}: {more} can't be read")
    if facts.lost_classes:
        lost = listed([quote(name, 30) for name in sorted(facts.lost_classes)], 3)
        lines.append(f"{table.name}: these are all rows of the class {lost}; correct them")
    elif hold_no_data or len(problems) <= MOST_DROPPED * (table.rows + len(problems)):
        lines.append(f"{table.name}: to leave such rows out: {set_command('data.bad_rows=drop')}")
    else:
        lines.append(f"{table.name}: {better_reading(table)}")
    raise DataError(*lines)


def _num_unreadable(table: Table, roles: Roles) -> int:
    """Return the number of rows that can't be read, or of the sequences that they are of."""
    parts = () if roles.id is None else roles.id.parts
    cells = [table.bad_cells.get(part.name, []) for part in parts]
    if not cells or {*map(len, cells)} != {len(table.problems)}:  # rows of another file lack them
        return len(table.problems)
    return len({*zip(*cells, strict=True)})


def _are_all(reasons: Sequence[str], problems: Sequence[str]) -> bool:
    """Return True if each problem has one of some parts of reasons, such as `HOLD_NO_DATA`."""
    return all(any(reason in problem for reason in reasons) for problem in problems)


def classes_of_bad_rows(table: Table, roles: Roles, facts: Facts) -> set[str]:
    """Return the labels that only rows have that can't be read.

    A label must occur in two such rows: in a row with too many fields, it may be part of a text, or
    a value of the column beside it. The name of the column is no label of a header that comes
    again.
    """
    cells = table.bad_cells.get(roles.label.name, [])
    counts = Counter(cell.strip() for cell in cells if isinstance(cell, str))
    counts.pop(str(roles.label.name), None)
    found = {x for x, count in counts.items() if x and count > 1 and x not in facts.classes}
    if found and roles.label in table.columns:
        at = table.columns.index(roles.label)
        for column in table.columns[max(0, at - 1) : at + 2]:
            found.difference_update(map(str, column.values))
    return found


def check_classes(found: Findings) -> None:
    """Raise a DataError if all rows are empty, have one label, or each a label of its own."""
    facts, table = found.facts, found.table
    labels = list(facts.classes)
    if not labels:
        if table.format == "fasttext":
            refuse_labels_before_blanks(table.path, table.dialect, table.layout)
            raise DataError(f"{table.name}: no line begins with a label, such as __label__up")
        rows = facts.empty + facts.unlabelled + facts.unreadable
        if facts.label_problem is None:
            reason = "are empty"
        else:
            reason = f"fail: {facts.label_problem}"
        raise DataError(f"{table.name}: all {rows} rows {reason}")
    refuse_fields(table)
    if len(labels) < 2:
        place = ""
        if table.format == "fasta":
            place = ", the end of each line that begins with >"
        one = f"one label, {quote(labels[0])}{place}"
        lines = [f"{table.name}: {one}; expected two or more", *commands_for_header_fields(table)]
        raise DataError(*lines)
    is_unique = max(facts.classes.values()) == 1 and facts.rows > MOST_UNIQUE
    if is_unique and "validation" not in found.splits:
        expected = "expected labels that several rows share"
        if table.has_columns:
            expected += marked("; --label names their column")
        elif table.format == "txt" and os.path.isdir(table.path):
            expected += ": each file is a class here; give each class a folder for its files"
        each = f"each of {facts.rows} rows has a different label, such as {quote(labels[0], 40)}"
        raise DataError(f"{table.name}: {each}; {expected}", *commands_for_header_fields(table))
