"""The tables of all screens: columns are left out before a number loses a digit."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from seqtrain.cli.output.console import note, plain
from seqtrain.text import counted, printable

GAP, EDGES = 3, 2
"""Blanks between two columns, and at both edges together."""
NARROW = {"name": 36, "words": 10, "text": 20}
"""Width that a column of a kind keeps at least."""
FOLDED = ("name", "words")


class TableColumn(NamedTuple):
    """A column of a table.

    Attributes:
        kind: a number is whole or not shown; names and words go on in the next line; a text is cut
            to the room that is left.
        rank: the column of the highest rank is left out first; 0: never.
        width: needed only where rows are printed one by one.
    """

    name: str
    kind: Literal["number", "name", "words", "text"] = "number"
    rank: int = 0
    width: int = 0


Record: TypeAlias = dict[TableColumn | str, str]
"""The cells of a row by their columns."""


def print_table(
    console: Console,
    columns: Sequence[TableColumn | str],
    rows: Iterable[Sequence[str]],
    *,
    sections: Sequence[int] = (),
    also: str = "",
) -> None:
    """Print the columns that there is room for; say on stderr which there isn't.

    A column given as a name alone holds numbers and is never left out. Lines are drawn below the
    rows whose numbers, from 1, are in `sections`; `also` is the command that shows the rest.
    """
    every = [TableColumn(column) if isinstance(column, str) else column for column in columns]
    cells = list(zip(*rows, strict=True)) or [()] * len(every)
    natural, least = [], []  # widths that all fits in, and below which a column isn't shown
    for column, own in zip(every, cells, strict=True):
        natural.append(max(cell_len(printable(cell)) for cell in (column.name, *own)))
        narrow = min(natural[-1], NARROW.get(column.kind, natural[-1]))
        least.append(max(narrow, cell_len(column.name)))
    kept = _kept(every, least, console.width)
    shown, widths = [every[i] for i in kept], [least[i] for i in kept]
    # What is left goes to names, then words, then texts, evenly.
    short = [i for i, each in enumerate(kept) if widths[i] < natural[each]]
    while short and _sum(widths) < console.width:
        i = min(short, key=lambda i: ([*NARROW].index(shown[i].kind), widths[i]))
        widths[i] += 1
        short = [i for i in short if widths[i] < natural[kept[i]]]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, width=_sum(widths))
    for column, width in zip(shown, widths, strict=True):
        table.add_column(
            plain(column.name),
            justify="right" if column.kind == "number" else "left",
            no_wrap=column.kind not in FOLDED,
            overflow="fold" if column.kind in FOLDED else "ellipsis",
            width=width,
        )
    for number, row in enumerate(zip(*(cells[i] for i in kept), strict=True), start=1):
        table.add_row(*map(plain, row), end_section=number in sections)
    # Where even what is never left out has no room, the terminal wraps lines; no digit is lost.
    console.print(table, crop=False)
    note_left_out(len(every) - len(shown), also)


def print_records(console: Console, records: Iterable[Record], **options: Any) -> None:
    """Print a table whose rows are given as cells by column; nothing where there are none."""
    rows = list(records)
    if rows:
        print_table(console, [*rows[0]], [[*row.values()] for row in rows], **options)


def figure(value: float | None, form: str) -> str:
    """Write a figure; one that isn't known as a dash."""
    return "-" if value is None else format(value, form)


def note_left_out(count: int, also: str = "") -> None:
    """Say how many columns a table lacks, and which command shows them."""
    if count:
        note(f"no room for {counted(count, 'column')}{also and f'; see {also}'}")


class GrowingTable:
    """A table that is printed row by row, with the columns that a width has room for.

    A last column of kind `text` takes the room that is left.

    Attributes:
        heading: the names of the columns.
    """

    def __init__(
        self, columns: Sequence[TableColumn], width: int, gap: int = 1, also: str = ""
    ) -> None:
        widths = [column.width for column in columns]
        self._kept, self._gap = _kept(columns, widths, width, gap, edges=0), gap
        self._columns = [columns[i] for i in self._kept]
        if self._columns[-1].kind == "text":
            used = _sum([column.width for column in self._columns[:-1]], gap, edges=gap)
            self._columns[-1] = self._columns[-1]._replace(width=width - used)
        note_left_out(len(columns) - len(self._kept), also)
        self.heading = self.row([column.name for column in columns])

    def row(self, cells: Sequence[str]) -> str:
        """Return a row; a number is never cut."""
        texts = []
        for i, column in zip(self._kept, self._columns, strict=True):
            text = plain(cells[i])
            if column.kind == "number":
                text.align("right", max(column.width, text.cell_len))
            else:
                text.truncate(column.width, overflow="ellipsis", pad=True)
            texts.append(text.plain)
        return (" " * self._gap).join(texts).rstrip()


def _kept(
    columns: Sequence[TableColumn],
    least: Sequence[int],
    width: int,
    gap: int = GAP,
    edges: int = EDGES,
) -> list[int]:
    kept = list(range(len(columns)))
    while _sum([least[i] for i in kept], gap, edges) > width:
        last = max(kept, key=lambda i: columns[i].rank)
        if not columns[last].rank:
            break
        kept.remove(last)
    return kept


def _sum(widths: Sequence[int], gap: int = GAP, edges: int = EDGES) -> int:
    return sum(widths) + gap * (len(widths) - 1) + edges
