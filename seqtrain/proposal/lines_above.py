"""Lines above a table of text, such as what instruments write about a recording."""

import csv
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from seqtrain.errors import DataError
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.shell import rewritten
from seqtrain.proposal.text_forms import first_lines
from seqtrain.tables.blocks import REST, Dialect
from seqtrain.tables.cells import is_number
from seqtrain.tables.delimited import COMMENTS, DELIMITERS, form_of
from seqtrain.text import display_name, quote

MOST_LINES = 64
"""Largest number of lines above a table."""
FEWEST_BELOW = 6
"""Fewest rows of a table below other lines, with the names of its columns."""


def refuse_lines_above(path: str, dialect: Dialect, options: InitOptions) -> None:
    """Raise a DataError with the command that removes what is above a table, if there is any.

    A title or comments, which are read as such, aren't removed.

    Args:
        path: The file of text.
        dialect: Form of the file.
        options: Options of the user.
    """
    lines = first_lines(path, replace(dialect, blank_lines=True))
    form = form_of([f"{line}\n" for line in lines], dialect)
    is_read = dialect.format != "txt" and form.skipped
    if is_read or options.get("header") is False or REST in options.named("sequence"):
        return
    marks = [dialect.delimiter] if dialect.delimiter else list(DELIMITERS.values())
    begins = {mark: _first_line(lines, mark) for mark in marks}
    found = [mark for mark in marks if begins[mark] is not None]
    if not found or 0 in begins.values():
        return
    mark = max(found, key=lines[-1].count)
    number, above = 1 + (begins[mark] or 0), next(filter(str.strip, lines))
    ending = ".tsv" if mark == "\t" else ".csv"
    raise DataError(
        f"{display_name(path)}: a table seems to begin on line {number}, below other lines, such "
        f"as {quote(above, 40)}; to remove these:",
        *rewritten(["tail", "-n", f"+{number}"], path, "table", ending=ending),
    )


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
    behind_blank = [row for row, (line, _) in enumerate(rows) if line and not lines[line - 1]]
    if at == 0 and len(behind_blank) == 1 and any(map(is_number, rows[-1][1])):
        at = behind_blank[0]
    if at == 0:
        return 0
    line, names = rows[at]
    is_apart = not lines[line - 1].strip()
    has_longer = any(len(fields) >= width for _, fields in rows[:at])  # a bad row, or blank names
    lacks_one = at == 1 and len(rows[0][1]) == width - 1 > 1  # as R writes the names
    is_long = at <= MOST_LINES and len(rows) - at >= max(FEWEST_BELOW, at)
    if not is_long or (has_longer and not is_apart) or lacks_one or any(map(is_number, names)):
        return None
    return line


def _rows(lines: Sequence[str], mark: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the index and the fields of each line that is neither blank nor a comment."""
    reader = csv.reader(lines, delimiter=mark)
    begin = 0
    with suppress(csv.Error):  # a field that is too long
        for fields in reader:
            if any(fields) and not fields[0].startswith(COMMENTS):
                yield begin, fields
            begin = reader.line_num
