"""Lines above a table of text, such as what instruments write about a recording."""

import csv
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from seqtrain.errors import DataError
from seqtrain.proposal.first_lines import first_lines, is_number_or_time
from seqtrain.proposal.options import FileLayout
from seqtrain.proposal.shell import converting
from seqtrain.tables.blocks import REST, Dialect
from seqtrain.tables.cells import is_number
from seqtrain.tables.delimited import COMMENTS, DELIMITERS, form_of
from seqtrain.text import display_name, quote

MOST_LINES = 64
"""Largest number of lines above a table."""
FIRST_TIME = 1e9
"""A Unix time of the year 2001. Files of recordings begin with later ones."""
MOST_EQUAL = 0.95
"""Smallest share of the rows of a table that have equally many fields, for others are mistakes."""
FEWEST_BELOW = 6
"""Fewest rows of a table below other lines, with the names of its columns."""


def refuse_lines_above(path: str, dialect: Dialect, layout: FileLayout) -> None:
    """Raise a DataError with the command that removes what is above a table, if there is any.

    A title or comments, which are read as such, aren't removed. Above recordings without names of
    columns, it is a line of Unix times, and one of rates, as a wristband writes them.

    Args:
        path: The first file of text.
        dialect: Form of the file.
        layout: Layout of the files, and options of the user.
    """
    options = layout.options
    lines = first_lines(path, replace(dialect, blank_lines=True))
    form = form_of([f"{line}\n" for line in lines], dialect)
    if _begins_with_times(lines) and options.get("header") is None:
        raise DataError(
            f"{display_name(path)}: begins with a line of Unix times, and one of rates; to remove "
            "these:",
            *converting("table", layout, path, line=3),
        )
    is_read = form.is_below_others or (dialect.format != "txt" and form.skipped)
    if is_read or options.get("header") is False or REST in options.named("sequence"):
        return
    marks = [dialect.delimiter] if dialect.delimiter else list(DELIMITERS.values())
    begins = {mark: _first_line(lines, mark) for mark in marks}
    found = [mark for mark in marks if begins[mark] is not None]
    if any(_has_title(lines, mark) for mark in found if begins[mark] == 0):
        raise DataError(
            f"{display_name(path)}: the first line has a date or a number among names, and the "
            "second one has the names of the columns; to remove the first one:",
            *converting("table", layout, path, line=2),
        )
    if not found or 0 in begins.values():
        return
    mark = max(found, key=lines[-1].count)
    start = begins[mark] or 0
    above = next(filter(str.strip, lines))
    header_line = " ".join(lines[start].split())  # a message shows no tab as it is
    raise DataError(
        f"{display_name(path)}: a table seems to begin on line {start + 1}, below other lines, "
        f"such as {quote(above, 40)}; to remove these:",
        *converting("table", layout, path, header_line=header_line),
    )


def _begins_with_times(lines: Sequence[str]) -> bool:
    """Return True if the first line has one Unix time in all fields, and no other line a time.

    The second one has one number in all fields, too. All lines are numbers.
    """
    fields = [[x.strip() for x in line.split(",")] for line in lines if line.strip()]
    if len(fields) < FEWEST_BELOW or not all(is_number(x) for row in fields for x in row):
        return False
    rows = [[*map(float, row)] for row in fields]
    first, second, *others = rows
    largest = max(abs(x) for row in [second, *others] for x in row)
    return len({*first}) == len({*second}) == 1 and first[0] >= FIRST_TIME > 100 * largest


def _first_line(lines: Sequence[str], mark: str) -> int | None:
    """Return the index of the line with which a table begins, or None if the mark shows no table.

    All lines from this one on have equally many fields. Those before have others; or the only blank
    line, and numbers below, show that the table begins behind it. Names come first in it.
    """
    rows = list(_rows(lines, mark))
    width = len(rows[-1][1]) if rows else 0
    if width < 2:
        return None
    at = len(rows)
    while at and len(rows[at - 1][1]) == width:
        at -= 1
    ends_in_numbers = any(map(is_number, rows[-1][1]))
    behind_blank = [row for row, (line, _) in enumerate(rows) if line and not lines[line - 1]]
    if at == 0 and len(behind_blank) == 1 and ends_in_numbers:
        at = behind_blank[0]
    if at == 0:
        return 0
    line, names = rows[at]
    is_apart = not lines[line - 1].strip()
    above = [fields for _, fields in rows[:at]]
    has_longer = any(len(fields) >= width for fields in above)  # a bad row, or blank names
    if len(above) > 1 and ends_in_numbers and not any(map(is_number, above[0])):
        has_longer &= {*map(len, above)} != {len(above[0])}  # else a table of its own
    lacks_one = at == 1 and len(rows[0][1]) == width - 1 > 1  # as R writes the names
    is_long = at <= MOST_LINES and len(rows) - at >= max(FEWEST_BELOW, at)
    if not is_long or (has_longer and not is_apart) or lacks_one or any(map(is_number, names)):
        return 0 if _begins_at_once(rows) else None
    return line


def _has_title(lines: Sequence[str], mark: str) -> bool:
    """Return True if the first line has a time among texts, and the second one only other texts.

    Below these, values stand in columns with texts in both lines.
    """
    rows = [fields for _, fields in _rows(lines, mark)]
    if len(rows) < FEWEST_BELOW or len({*map(len, rows[:3])}) > 1:
        return False
    title, names, values = ([*map(is_number_or_time, fields)] for fields in rows[:3])
    is_below = any(value and not above for value, above in zip(values, title, strict=True))
    are_names = len({*rows[1]}) == len(rows[1]) and all(rows[1]) and not any(names)
    return any(title) and not all(title) and are_names and is_below


def _begins_at_once(rows: Sequence[tuple[int, list[str]]]) -> bool:
    """Return True if the first row and nearly all others have equally many fields, two or more."""
    widths = [len(fields) for _, fields in rows]
    return widths[0] > 1 and widths.count(widths[0]) >= MOST_EQUAL * len(widths)


def _rows(lines: Sequence[str], mark: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the index and the fields of each line that is neither blank nor a comment."""
    reader = csv.reader(lines, delimiter=mark)
    begin = 0
    with suppress(csv.Error):  # a field that is too long
        for fields in reader:
            if any(fields) and not fields[0].startswith(COMMENTS):
                yield begin, fields
            begin = reader.line_num
