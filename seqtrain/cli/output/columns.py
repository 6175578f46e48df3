"""Tables that fit the terminal: columns are left out before a number loses a digit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.console import Console

from seqtrain.cli.output.console import note, plain, small_table
from seqtrain.text import printable, shorten

GAP, EDGES = 3, 2
"""Blanks between two columns, and at both edges together."""
NARROW_NAME, NARROW_WORDS, NARROW_TEXT = 36, 10, 20
"""Cells that a column of names, of words, and of texts keeps at least."""

Kind = Literal["number", "name", "words", "text"]
FOLDED = ("name", "words")


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        name: above it.
        cells: one for each row.
        kind: a number is whole or not shown; words go on in the next line, as do names that are
            very long; a text is cut to the room that is left.
        rank: the column of the highest rank is left out first; 0: never.
    """

    name: str
    cells: Sequence[str]
    kind: Kind = "number"
    rank: int = 0

    @property
    def natural(self) -> int:
        """Width that everything in it fits in."""
        return max(cell_len(printable(cell)) for cell in (self.name, *self.cells))

    @property
    def least(self) -> int:
        """Width below which it isn't shown."""
        limits = {"name": NARROW_NAME, "words": NARROW_WORDS, "text": NARROW_TEXT}
        return max(min(self.natural, limits.get(self.kind, self.natural)), cell_len(self.name))


def print_columns(
    console: Console,
    columns: Sequence[Column],
    *,
    sections: int = 0,
    edge: bool = True,
    also: str = "",
) -> None:
    """Print a table of the columns that the console has room for; say on stderr which it hasn't.

    Args:
        console: where to.
        columns: all of as many cells.
        sections: rows at the end that a line parts from those before.
        edge: a blank line above it and below.
        also: where the columns that are left out stand too.
    """
    shown = fitting(columns, console.width)
    widths = _widths(shown, console.width)
    table = small_table()
    table.show_edge = edge
    for column, width in zip(shown, widths, strict=True):
        number = column.kind == "number"
        table.add_column(
            plain(column.name),
            justify="right" if number else "left",
            no_wrap=column.kind not in FOLDED,
            overflow="fold" if column.kind in FOLDED else "crop",
            width=width,
        )
    rows = list(zip(*(column.cells for column in shown), strict=True))
    for made, cells in enumerate(rows, start=1):
        table.add_row(
            *(
                plain(cut(cell, width) if column.kind == "text" else cell)
                for cell, column, width in zip(cells, shown, widths, strict=True)
            ),
            end_section=bool(sections) and sections == len(rows) - made,
        )
    # Where even what is never left out has no room, the terminal wraps lines; no digit is lost.
    width = console.width
    try:
        console.width = max(width, _sum(widths))
        console.print(table)
    finally:
        console.width = width
    note_left_out([column.name for column in columns if column not in shown], width, also)


def note_left_out(names: Sequence[str], width: int, also: str = "") -> None:
    """Say which columns a table lacks for want of room, and where they stand too."""
    if names:
        note(f"no room in {width} columns for: {', '.join(names)}{also and f'; see {also}'}")


def total_width(columns: Sequence[Column]) -> int:
    """Return the width that all columns need at least."""
    return _sum([column.least for column in columns])


def fitting(columns: Sequence[Column], width: int) -> list[Column]:
    """Return the columns that a width has room for, in their order."""
    shown = list(columns)
    while total_width(shown) > width:
        last = max(shown, key=lambda column: column.rank)
        if not last.rank:
            break
        shown.remove(last)
    return shown


def _widths(columns: Sequence[Column], width: int) -> list[int]:
    """Give each column its least width, then what is left to names, words and texts, evenly."""
    widths = [column.least for column in columns]
    for kind in (*FOLDED, "text"):
        short = [at for at, column in enumerate(columns) if column.kind == kind]
        while _sum(widths) < width and short:
            at = min(short, key=widths.__getitem__)
            if widths[at] < columns[at].natural:
                widths[at] += 1
            else:
                short.remove(at)
    return widths


def _sum(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1) + EDGES


def cut(text: str, width: int) -> str:
    """Cut a text to a width in cells; wide letters take two."""
    shown = shorten(text, width)
    while cell_len(shown) > width:
        shown = shown.rstrip("…")[:-1] + "…"
    return shown
