"""Texts that hold the delimiter of csv or tsv without quotes, so that rows differ in length."""

from collections.abc import Iterable

from seqtrain.errors import DataError
from seqtrain.proposal.profile import REPEATS
from seqtrain.proposal.ragged import Rows, labels_at
from seqtrain.proposal.shell import converting, init_line, mark_name
from seqtrain.proposal.table import Table
from seqtrain.tables.blocks import REST
from seqtrain.tables.delimited import Form
from seqtrain.text import quote

SHORT = 3
"""Most words of a field that is no text."""


def refuse_unquoted(
    table: Table, form: Form, rows: Rows, width: int | None, *, is_list: bool
) -> None:
    """Raise a DataError if rows have different lengths as a text holds the delimiter.

    A user who names a list, or leaves out bad rows, wants rows as they are.

    Args:
        table: Rows of a file, of which many have another number of fields than the first one.
        form: How the file is written.
        rows: Fields of its first rows, at least one row.
        width: Number of names in the header, or None without one.
        is_list: True if the last fields may be those of a list, too.

    Raises:
        DataError: The error has a command that writes the text in quotes, and one for a list; or
            one that joins lines, if a text holds line breaks.
    """
    options, place = table.options, text_place(rows, width)
    if options.named("sequence") == [REST] or options.get("bad_rows") == "drop":
        return
    if width is not None:
        _refuse_broken_lines(table, form, rows, width)
    if place is None:
        return
    before, after = place
    as_list = list[str]()
    if is_list:
        as_list = ["or, if the fields after the first ones are a list:"]
        as_list.append(init_line(table.path, "--sequence", REST))
    raise DataError(
        table.problems[0],
        f"{table.name}: rows have different lengths; if texts hold {quote(form.delimiter)}, to "
        "write them in quotes:",
        *_quoting(table, form, before=before, after=after),
        *as_list,
    )


def _refuse_broken_lines(table: Table, form: Form, rows: Rows, width: int) -> None:
    """Raise a DataError with the command that joins lines, if line breaks within texts divide rows.

    Lines with too few fields make a whole row together with those that follow them.
    """
    fields = 0
    for row in rows:
        fields += len(row) - (fields > 0)
        if fields > width:
            return
        fields %= width
    if fields or all(len(row) == width for row in rows):
        return
    raise DataError(
        table.problems[0],
        f"{table.name}: line breaks seem to divide texts without quotes; to put blanks there:",
        *_quoting(table, form),
    )


def _quoting(table: Table, form: Form, **options: int) -> list[str]:
    """Return lines with a command that writes texts in quotes, and one that reads the new file."""
    mark = mark_name(form.delimiter)
    return converting("quoted", table.layout, table.file, mark=mark, **options)


def text_place(rows: Rows, width: int | None) -> tuple[int, int] | None:
    """Return the number of fields before a text and after it, or None if there is no such text.

    The others are at most `SHORT` words in all rows, and one of them repeats as labels do. Most
    texts have a longer field, which those of lists haven't, and few texts come again.
    """
    whole = [row for row in rows if len(row) >= (width or 2)]
    if not whole:
        return None
    fewest = width or min(map(len, whole))
    before = _count_short(whole, range(fewest - 1))
    after = _count_short(whole, range(-1, before - fewest, -1))
    texts = [tuple(row[before : len(row) - after]) for row in whole]
    long = [text for text in texts if max(map(_words, text)) > SHORT]
    if 2 * len(long) < len(whole) or REPEATS * len(set(texts)) <= len(texts):
        return None
    if width is not None and before + after + 1 != width:
        return None
    places = [*range(before), *range(-after, 0)]
    return (before, after) if any(labels_at(whole, place) for place in places) else None


def _count_short(rows: Rows, places: Iterable[int]) -> int:
    """Return how many of some places, one after another, have fields of few words in all rows."""
    count = 0
    for place in places:
        if any(_words(row[place]) > SHORT for row in rows):
            break
        count += 1
    return count


def _words(field: str) -> int:
    return len(field.split())
