"""Tables that fit the terminal. Columns are left out, but a number never loses a digit."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from seqtrain.cli.screens.console import note, plain
from seqtrain.text import counted, printable

GAP, EDGES = 3, 2
"""Spaces between two columns, and at both edges of a table in total."""
NAMES_LENGTH = 40
"""Largest length, in characters, of the names of left-out columns that a note contains."""
LEAST_WIDTHS = {"words": 10, "text": 20}
"""Maps each kind of column that can be narrowed to its smallest width."""


class TableColumn(NamedTuple):
    """A column of a table.

    Attributes:
        name: Heading.
        kind: Kind of the cells. The kinds "number" and "whole" (such as a path) are never cut or
            wrapped. The kind "words" is wrapped. The kind "text" is cut to the available width.
        rank: Columns with the highest rank are left out first, if the table is too wide. A column
            of rank 0 is never left out.
        width: Width in characters, which only `GrowingTable` uses.
    """

    name: str
    kind: Literal["number", "whole", "words", "text"] = "number"
    rank: int = 0
    width: int = 0


Record: TypeAlias = dict[TableColumn | str, str]
"""Maps the columns of a row to its cells. A text as a key is a number column of rank 0."""


def print_table(
    console: Console,
    columns: Sequence[TableColumn | str],
    rows: Iterable[Sequence[str]],
    *,
    sections: Sequence[int] = (),
    also: str = "",
) -> None:
    """Print a table with the columns that fit the console, and a note on those that don't.

    Args:
        console: Console to print on.
        columns: Columns, or names of number columns that are never left out.
        rows: Cells of each row, in the order of the columns.
        sections: Numbers of the rows, from 1, below which a line is drawn.
        also: Command that shows the columns that were left out, for the note.
    """
    every = [TableColumn(column) if isinstance(column, str) else column for column in columns]
    cells = list(zip(*rows, strict=True)) or [()] * len(every)
    texts = [
        [Text(printable(cell), no_wrap=column.kind == "text") for cell in (column.name, *own)]
        for column, own in zip(every, cells, strict=True)
    ]
    natural = [max(text.cell_len for text in own) for own in texts]  # nothing is wrapped or cut
    least = [
        max(min(width, LEAST_WIDTHS.get(column.kind, width)), cell_len(column.name))
        for column, width in zip(every, natural, strict=True)
    ]
    kept = _columns_that_fit(every, least, console.width)
    needed = _total_width([least[i] for i in kept])
    # If the columns of rank 0 don't fit, the terminal wraps whole lines, and no digit is lost.
    width = needed if needed > console.width else None
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, width=width)
    for i in kept:
        column = every[i]
        table.add_column(
            texts[i][0],
            justify="right" if column.kind == "number" else "left",
            overflow="ellipsis" if column.kind == "text" else "fold",
            width=None if column.kind in LEAST_WIDTHS else natural[i],  # None may be narrowed
        )
    for number, row in enumerate(zip(*(texts[i][1:] for i in kept), strict=True), start=1):
        table.add_row(*row, end_section=number in sections)
    console.print(table, crop=False)
    note_left_out(every, kept, also)


def print_records(console: Console, records: Iterable[Record], **options: Any) -> None:
    """Print a table with a row per record, or nothing without records.

    Args:
        console: Console to print on.
        records: The rows. All have the columns of the first one, in the same order.
        options: Options of `print_table`.
    """
    rows = list(records)
    if rows:
        print_table(console, [*rows[0]], [[*row.values()] for row in rows], **options)


def format_number(value: float | None, form: str) -> str:
    """Return a number in a format such as ".2%", or a dash for None."""
    return "-" if value is None else format(value, form)


def note_left_out(columns: Sequence[TableColumn], kept: Sequence[int], also: str = "") -> None:
    """Print a note on stderr with the columns that were left out, or nothing if there are none.

    The columns are counted, and named if their names are short.

    Args:
        columns: All columns.
        kept: Indices of the columns that are shown.
        also: Command that shows all columns, or "".
    """
    names = [column.name for i, column in enumerate(columns) if i not in kept]
    if names:
        found = f"{counted(len(names), 'column')} {'does' if len(names) == 1 else 'do'}n't fit"
        shown = ", ".join(names)
        found += f": {shown}" if len(shown) <= NAMES_LENGTH else ""
        note(f"{found}{also and f'; all are in: {also}'}")


class GrowingTable:
    """A table that is printed row by row, with the columns that fit a width.

    A last column of kind "text" takes the remaining width. If columns don't fit, a note on stderr
    says so when the table is created.

    Args:
        columns: Columns with their widths.
        width: Available width in characters.
        gap: Spaces between two columns.
        also: Command that shows the columns that were left out.

    Attributes:
        heading: The line with the names of the columns.
    """

    def __init__(
        self, columns: Sequence[TableColumn], width: int, gap: int = 1, also: str = ""
    ) -> None:
        widths = [column.width for column in columns]
        self._kept = _columns_that_fit(columns, widths, width, gap, edges=0)
        self._gap = gap
        self._columns = [columns[i] for i in self._kept]
        if self._columns[-1].kind == "text":
            used = _total_width([column.width for column in self._columns[:-1]], gap, edges=gap)
            self._columns[-1] = self._columns[-1]._replace(width=width - used)
        note_left_out(columns, self._kept, also)
        self.heading = self.row([column.name for column in columns])

    def row(self, cells: Sequence[str]) -> str:
        """Return the line of a row, given the cells of all columns.

        Columns that don't fit the table are left out. Numbers are never cut. Longer texts are cut
        to the width of their column.
        """
        texts = []
        for i, column in zip(self._kept, self._columns, strict=True):
            text = plain(cells[i])
            if column.kind == "number":
                text.align("right", max(column.width, text.cell_len))
            else:
                text.truncate(column.width, overflow="ellipsis", pad=True)
            texts.append(text.plain)
        return (" " * self._gap).join(texts).rstrip()


def _columns_that_fit(
    columns: Sequence[TableColumn],
    least: Sequence[int],
    width: int,
    gap: int = GAP,
    edges: int = EDGES,
) -> list[int]:
    """Return the indices of the columns to show, in order. The highest ranks are left out first.

    Columns of rank 0 are shown even if they don't fit.

    Args:
        columns: All columns.
        least: Smallest width of each column in characters.
        width: Available width in characters.
        gap: Spaces between two columns.
        edges: Spaces at both edges in total.
    """
    kept = list(range(len(columns)))
    while _total_width([least[i] for i in kept], gap, edges) > width:
        last = max(kept, key=lambda i: columns[i].rank)
        if not columns[last].rank:
            break
        kept.remove(last)
    return kept


def _total_width(widths: Sequence[int], gap: int = GAP, edges: int = EDGES) -> int:
    """Return the width of a table whose columns have the given widths."""
    return sum(widths) + gap * (len(widths) - 1) + edges
