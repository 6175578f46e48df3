"""Safe and short display of untrusted text. This module imports no other module of the package.

File names, labels, cells and config values may contain anything: control characters, marks that
change the direction of writing, a million characters. All messages and screens use this module.

Escaping a character means replacing it by its code in Python, as `ascii` does.
"""

import json
import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches
from html import escape
from itertools import islice
from typing import Any

PROBLEM_LENGTH = 189
"""Largest number of characters of an error message.

With "seqtrain: " before it, a line on the screen has fewer than 200 characters.
"""
LEAST_PROBLEM = 40
"""Smallest number of characters that stay of the text before the remedy in a message."""
QUOTE_LENGTH = 80
"""Largest number of characters of a quoted piece of the user's data, with the quotes."""
MOST_COMPARED = 1000
"""Largest number of valid names with which an unknown name is compared."""
LISTED = 5
"""Largest number of names that a message lists."""
BYTE_ORDER_MARK = "\ufeff"
PATH_KEPT = 40
"""Smallest number of characters at the end of a path that remain if it is shortened."""


class Summarized:
    """Base of objects whose `summary` represents them: on one line, or as a table in a notebook."""

    __slots__ = ()

    def summary(self) -> dict[str, str]:
        """Return a dict that maps names of values, such as "accuracy", to the values as text."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """Return the class name and the summary on one line."""
        parts = [f"{name}: {printable(value)}" for name, value in self.summary().items()]
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_html_(self) -> str:
        """Return the class name and the summary as an HTML table, for a notebook."""
        rows = [
            f"<tr><th>{escape(name)}</th><td>{escape(printable(value))}</td></tr>"
            for name, value in self.summary().items()
        ]
        return f"<table><caption>{type(self).__name__}</caption>{''.join(rows)}</table>"


def printable(text: str) -> str:
    """Return a text in which all characters that `str.isprintable` rejects are escaped.

    These are control characters, line breaks, tabs, direction marks, lone surrogates, and all
    blanks except the space. Letters of all scripts don't change.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def shorten(text: str, limit: int) -> str:
    """Return a text on one line, escaped as by `printable` and cut to `limit` characters.

    A text that was cut ends with "…".
    """
    shown = printable(text[: limit + 1])
    if len(shown) <= limit:
        return shown
    return shown[: limit - 1] + "…"


def quote(text: str, limit: int = QUOTE_LENGTH) -> str:
    """Return a text in single quotes, escaped as by `printable`.

    If the result would have more than `limit` characters, the text is cut and ends with "…'".
    """
    quoted = f"'{printable(text[: limit + 1])}'"
    if len(quoted) <= limit:
        return quoted
    return quoted[: limit - 2] + "…'"


def display_name(path: str) -> str:
    """Return a path as messages show it: escaped as by `printable`, or "stdin" for "-".

    For an empty path, return two single quotes.
    """
    if path == "-":
        return "stdin"
    return printable(path) or "''"


def one_line(problem: str) -> str:
    """Return a message on one line of at most `PROBLEM_LENGTH` characters, escaped by `printable`.

    If the message is too long, the beginnings of long paths are replaced by "…". If this isn't
    enough, the text before the last semicolon is cut. What follows there is the remedy, which stays
    whole if it fits. A line that begins with two blanks is a command, which must work: it isn't
    cut.
    """
    line = printable(problem)
    if line.startswith("  "):
        return line
    for path in sorted(re.findall(r"(?![0-9])[^\s:;,()'\"]{41,}", line), key=len, reverse=True):
        excess = len(line) - PROBLEM_LENGTH
        kept = max(PATH_KEPT, len(path) - excess - 1)
        if excess > 0 and kept < len(path) - 1:
            line = line.replace(path, f"…{path[-kept:]}", 1)
    problem, semicolon, remedy = line.rpartition("; ")
    room = PROBLEM_LENGTH - len(semicolon + remedy)
    if len(line) > PROBLEM_LENGTH and semicolon and room >= LEAST_PROBLEM:
        return shorten(problem, room) + semicolon + remedy
    return shorten(line, PROBLEM_LENGTH)


def reason_of(error: Exception) -> str:
    """Return the first line of the message of an exception, or the name of its class."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as "1 row", "0 rows" or "1,200 rows".

    Args:
        count: The count.
        noun: The noun in the singular. Its plural must end in s.
    """
    if count == 1:
        return f"{count:,} {noun}"
    return f"{count:,} {noun}s"


def duration(seconds: float) -> str:
    """Return a duration as text in its two largest units: "8.4 s", "2 min 5 s", "14 d", "1 d 3 h".

    A unit whose number is zero is left out. Below a minute, the text has three significant digits.
    A negative duration has a minus sign.
    """
    total = round(abs(seconds))
    if total < 60:
        return f"{seconds:.3g} s"
    units = {"d": 86400, "h": 3600, "min": 60, "s": 1}
    parts = []
    for name, size in units.items():
        count, total = divmod(total, size)
        parts.append((count, name))
    first = next(i for i, (count, _) in enumerate(parts) if count)
    shown = [f"{count:,} {name}" for count, name in parts[first : first + 2] if count]
    return ("-" if seconds < 0 else "") + " ".join(shown)


def listed(names: Sequence[str], limit: int = LISTED) -> str:
    """Return names joined with commas, such as "a, b" or "a, b and 3 more".

    Args:
        names: The names.
        limit: Largest number of names that are listed. The others are counted.
    """
    shown = ", ".join(names[:limit])
    if len(names) > limit:
        return f"{shown} and {len(names) - limit:,} more"
    return shown


def one_of(words: Sequence[str]) -> str:
    """Return words, at least one, joined as a choice, such as "a", "a or b" or "a, b or c"."""
    return " or ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def nearest(name: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the valid name that is most similar to an unknown name, or None if none is similar.

    Args:
        name: Unknown name, such as a misspelt one.
        names: Valid names. Only the first `MOST_COMPARED` names are compared.
        cutoff: Smallest similarity of the two names, in [0, 1], as in difflib.
    """
    compared = list(islice(names, MOST_COMPARED))
    for known in compared:
        if known.lower() == name.lower():
            return known
    near = get_close_matches(name[:100], compared, 3, cutoff)
    return next((known for known in near if _may_be_misspelt(name, known)), None)


def _may_be_misspelt(name: str, known: str) -> bool:
    """Return True if `name` may be a misspelt form of `known`.

    This is the case if the names differ by a few letters. It is also the case if one name contains
    the other and `name` has more than two letters. Case and shared file endings are ignored.
    """
    stem = name.lower()
    known_stem = known.lower()
    ending = re.search(r"(?:\.[a-z0-9]+)+$", stem)
    if ending is not None and known_stem.endswith(ending[0]):
        stem = stem[: ending.start()]
        known_stem = known_stem[: -len(ending[0])]
    if len(stem) > 2 and (stem in known_stem or known_stem in stem):
        return True
    changes = SequenceMatcher(None, stem, known_stem).get_opcodes()
    edits = sum(max(b - a, d - c) for change, a, b, c, d in changes if change != "equal")
    shorter, longer = sorted((len(stem), len(known_stem)))
    return edits < shorter and edits <= max(2, longer // 3)


def json_line(value: Any) -> str:
    """Return a value as one line of JSON.

    In texts, characters that `str.isprintable` rejects are escaped. Letters of all scripts don't
    change.

    Raises:
        ValueError: If the value contains NaN or infinity.
        TypeError: If the value contains an object that JSON can't represent.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def copied_text(value: Any) -> str:
    """Return a value that is copied from an input as the text of a cell."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json_line(value)


def delimited_line(cells: Sequence[str], delimiter: str) -> str:
    """Return a row of csv or tsv as one line, with its line break.

    Cells are quoted as in RFC 4180 if they contain the delimiter, a double quote, a line break or a
    byte order mark. A blank cell that is the only one of its row is quoted, because readers skip
    blank lines.

    In tsv, all cells of a row are quoted if one must be, so that `cut` and people see it at once.
    seqtrain reads quotes in a tsv file as quoting if the header has a column `probability`: many
    other tsv files have quotes in their texts. pandas, polars and Python's csv always do.

    Args:
        cells: Texts of the row's cells, not quoted.
        delimiter: "," for csv, or a tab for tsv.
    """
    special = (delimiter, '"', "\r", "\n", BYTE_ORDER_MARK)
    needs_quotes = [any(mark in cell for mark in special) for cell in cells]
    if len(cells) == 1 and not cells[0].strip():  # readers skip blank lines
        needs_quotes = [True]
    elif delimiter == "\t" and any(needs_quotes):
        needs_quotes = [True] * len(cells)
    written = [
        '"' + cell.replace('"', '""') + '"' if quoted else cell
        for cell, quoted in zip(cells, needs_quotes, strict=True)
    ]
    return delimiter.join(written) + "\n"
