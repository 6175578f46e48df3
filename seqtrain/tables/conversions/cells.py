"""Conversions of single cells of a table: each function returns the text of a new cell."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from unicodedata import category, decimal, normalize

from seqtrain.errors import ConfigError
from seqtrain.tables.cells import SCALES
from seqtrain.tables.conversions.table import CellTable
from seqtrain.text import one_of, quote

LIMIT = re.compile(r"[<>]=? ?([0-9.]+)")
"""Cell for a value below or above the range of an instrument, such as <0.5."""
WITH_COMMA = re.compile(
    r"([-+]?(?:[1-9][0-9]{0,2}(?:\.[0-9]{3})+|[0-9]+)),([0-9]+)( ?[^\d,;|\s\"]{0,8})"
)
"""A number with a decimal comma, perhaps with points between thousands, and a unit."""
WITH_SCALE = re.compile(r"([-+]?[0-9.,]+) ?([A-Za-z]+)")
SEPARATORS_IN_OTHER_DIGITS = {ord("٫"): ".", ord("٬"): ""}
"""Decimal mark, and separator of thousands, of Arabic digits."""
BRACKETS = str.maketrans("", "", "()")
FORMAT = "Cf"
"""Category of Unicode of characters without width."""
SHORTENED = re.compile(r"(?<=[^\W\d_])\.")
"""Point after a letter."""
PADDED_NUMBER = re.compile(r"0*(?P<digits>[0-9]+?)(?:,0{1,2})?")
"""A whole number with zeros before it, or after its decimal comma."""


def stem_of(path: str) -> str:
    r"""Return the name of a file without its folders, with / or \ between, and its ending."""
    name = path.replace("\\", "/").rpartition("/")[2]
    return os.path.splitext(name)[0]


def likely_meaning(label: str) -> str:
    """Return what a label likely means: it without case, blanks, and marks that aren't seen.

    Points of shortened words, as in n.a., are left out, too.
    """
    seen = "".join(x for x in normalize("NFC", label) if category(x) != FORMAT)
    number = PADDED_NUMBER.fullmatch(seen.strip())
    if number is not None:
        return number["digits"]
    return " ".join(SHORTENED.sub("", seen).split()).casefold()


def _with_plain_digits(cell: str) -> str:
    """Return a text with 0 to 9 for the digits of other scripts."""
    translated = cell.translate(SEPARATORS_IN_OTHER_DIGITS)
    return "".join(str(decimal(x, x)) for x in translated)


def _without_limit(cell: str) -> str:
    """Return 0.5 for <0.5."""
    found = LIMIT.fullmatch(cell.strip())
    return cell if found is None else found[1]


def _as_list(cell: str) -> str:
    """Return [0, 1, 1] for 011."""
    return cell and f"[{', '.join(cell.strip())}]"


def _with_minus(cell: str) -> str:
    return cell and f"-{cell}"


def _with_point(cell: str) -> str:
    """Return 1234.5 for 1.234,5."""
    found = WITH_COMMA.fullmatch(cell)
    if found is None:
        return cell
    whole, decimals, unit = found.groups()
    return f"{whole.replace('.', '')}.{decimals}{unit}"


def _as_points(cell: str) -> str:
    """Return [[1.0, 2.0], [3.0, 4.0]] for LINESTRING (1 2, 3 4)."""
    _, bracket, points = cell.partition("(")
    if not bracket:
        return cell
    parts = points.translate(BRACKETS).split(",")
    return str([[float(number) for number in part.split()] for part in parts])


def _with_blanks(cell: str) -> str:
    """Return [C] [=O] for [C][=O]."""
    return cell.replace("][", "] [")


def _without_scale(cell: str) -> str:
    """Return 12000 for 12K."""
    found = WITH_SCALE.fullmatch(cell.strip())
    if found is None or found[2] not in SCALES:
        return cell
    return format(float(found[1].replace(",", ".")) * SCALES[found[2]], ".12g")


CELL_RULES: dict[str, Callable[[str], str]] = {
    "digits": _with_plain_digits,
    "limits": _without_limit,
    "lists": _as_list,
    "minus": _with_minus,
    "points": _with_point,
    "scales": _without_scale,
    "stems": stem_of,
    "steps": _as_points,
    "symbols": _with_blanks,
}
"""Maps the name of each rule of `rewritten` to the function that returns the new cell."""


def rewritten(table: CellTable, *, rule: str, column: Sequence[str] = ()) -> CellTable:
    """Return a table whose cells of some columns are rewritten by a rule.

    Args:
        table: The table.
        rule: A name in `CELL_RULES`.
        column: The columns. By default all of them.

    Raises:
        ConfigError: If there is no such rule.
    """
    if rule not in CELL_RULES:
        raise ConfigError(f"--rule: found {quote(rule)}; expected {one_of(list(CELL_RULES))}")
    places: Iterable[int] = range(len(table.names))
    if column:
        places = table.places(column)
    return table.with_cells(places, CELL_RULES[rule])


def dated(table: CellTable, *, column: Sequence[str], pattern: str) -> CellTable:
    """Return a table whose dates and times in some columns have the year first, as in ISO 8601.

    Args:
        table: The table.
        column: The columns.
        pattern: Form of the dates for `strptime`, such as %d/%m/%Y.
    """
    return table.with_cells(table.places(column), partial(_with_year_first, pattern=pattern))


def _with_year_first(cell: str, pattern: str) -> str:
    text = cell.strip()
    if not text:
        return cell
    try:
        return datetime.strptime(text, pattern).isoformat()
    except ValueError:
        raise ConfigError(f"--pattern: {quote(text, 40)} isn't of the form {pattern}") from None


def spelled(table: CellTable, *, column: Sequence[str], value: Sequence[str]) -> CellTable:
    """Return a table whose labels are spelled in one way each.

    Args:
        table: The table.
        column: Columns of labels.
        value: The spellings. A cell that differs from one of them only in case, blanks, zeros
            before a number, or characters without width, gets this spelling.
    """
    spellings = {likely_meaning(each): each for each in value}

    def respelled(cell: str) -> str:
        text = cell.strip()
        return cell.replace(text, spellings.get(likely_meaning(text), text))

    return table.with_cells(table.places(column), respelled)
