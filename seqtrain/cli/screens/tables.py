"""Tables of rich: texts are wrapped where there is no room, and numbers never are."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from seqtrain.cli.screens.console import as_text, note

NUMBER_CELL = re.compile(r"[-·]|[-+]?[0-9][0-9,.]{0,20}(e[-+][0-9]+)?%?")
"""Cell of a column of numbers: a number, a dash or a dot for none."""
GAP, EDGES = 3, 2
"""Spaces between two columns, and at both edges of a table in total."""
LEAST_WIDTH = 8
"""Smallest width of a column of texts, in characters."""


def print_table(
    console: Console,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    sections: Sequence[int] = (),
    whole: Collection[str] = (),
) -> None:
    """Print a table. Columns whose cells are all numbers are aligned to the right.

    If the console is too narrow, the last columns are left out, and a note on stderr names them.

    Args:
        console: Console to print on.
        headings: Heading of each column.
        rows: Cells of each row, in the order of the headings.
        sections: Numbers of the rows, from 1, below which a line is drawn.
        whole: Headings of columns of texts that aren't wrapped.
    """
    cells = [list(row) for row in rows]
    columns, used, natural = [], EDGES - GAP, EDGES - GAP
    for index, heading in enumerate(headings):
        column = [row[index] for row in cells]
        is_number = all(NUMBER_CELL.fullmatch(cell) for cell in column)
        widest = max(map(cell_len, column), default=0)
        if is_number or heading in whole:
            least = widest
        else:
            least = min(widest, LEAST_WIDTH)
        least = max(least, *map(cell_len, heading.split()))
        used += least + GAP
        natural += max(widest, cell_len(heading)) + GAP
        if index and used > console.width:
            note(f"left out, as there is no room: {', '.join(headings[index:])}")
            break
        columns.append((heading, is_number, least))
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for heading, is_number, least in columns:
        table.add_column(
            as_text(heading),
            justify="right" if is_number else "left",
            overflow="fold",
            min_width=least,
            # Where there is little room, headings of numbers are wrapped, and texts share the rest.
            width=least if is_number and natural > console.width else None,
        )
    for number, row in enumerate(cells, start=1):
        shown = map(as_text, row[: len(columns)])
        table.add_row(*shown, end_section=number in sections)
    console.print(table, crop=False)


def print_records(
    console: Console, records: Iterable[Mapping[str, str]], *, whole: Collection[str] = ()
) -> None:
    """Print a table with a row per record, or nothing without records.

    Args:
        console: Console to print on.
        records: Maps headings to cells. All have the headings of the first one, in the same order.
        whole: As for `print_table`.
    """
    found = list(records)
    if found:
        rows = [list(record.values()) for record in found]
        print_table(console, list(found[0]), rows, whole=whole)


def format_number(value: float | None, form: str) -> str:
    """Return a number in a format such as ".2%", or a dash for None."""
    if value is None:
        return "-"
    return format(value, form)
