"""Texts that hold the delimiter of csv or tsv without quotes, so that rows differ in length."""

import json
from collections.abc import Iterable

from seqtrain.errors import DataError
from seqtrain.proposal.profile import REPEATS
from seqtrain.proposal.ragged import Rows, labels_at
from seqtrain.proposal.shell import init_line, rewritten
from seqtrain.proposal.table import Table
from seqtrain.tables.blocks import REST
from seqtrain.tables.delimited import Form
from seqtrain.text import quote

SHORT = 3
"""Most words of a field that is no text."""
READING_FIELDS = {
    True: "csv.reader(sys.stdin, delimiter=m)",
    False: r'(x.rstrip("\r\n").split(m) for x in sys.stdin)',
}
"""Code that reads rows, by whether fields may have quotes."""
JOINED_LINES = (
    r'{sub(/\r$/, ""); row = row sep $0; sep = " "} gsub(/%s/, "&", row) >= %d '
    r'{print row; row = sep = ""} END {if (row != "") print row}'
)
"""Program of awk that joins lines with blanks until they have enough delimiters."""
QUOTING = (
    "import csv, sys; m, b, a = {mark}, {before}, {after}; "
    'w = csv.writer(sys.stdout, lineterminator="\\n"); '
    "rows = ((x, max(b, len(x) - a)) for x in {reading} if x); "
    "w.writerows([*x[:b], m.join(x[b:n]), *x[n:]] for x, n in rows)"
)
"""Program of Python that joins the fields between the first and the last ones to one."""


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
    code = QUOTING.format(
        mark=json.dumps(form.delimiter),
        before=place[0],
        after=place[1],
        reading=READING_FIELDS[form.quotes],
    )
    as_list = list[str]()
    if is_list:
        as_list = ["or, if the fields after the first ones are a list:"]
        as_list.append(init_line(table.path, "--sequence", REST))
    raise DataError(
        table.problems[0],
        f"{table.name}: rows have different lengths; if texts hold {quote(form.delimiter)}, to "
        "write them in quotes:",
        *rewritten(["python3", "-c", code], table.file, "quoted", ending=".csv"),
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
    mark = form.delimiter.replace("|", "[|]")
    code = JOINED_LINES % (mark, width - 1)
    raise DataError(
        table.problems[0],
        f"{table.name}: line breaks seem to divide texts without quotes; to put blanks there:",
        *rewritten(["awk", code], table.file, "joined"),
    )


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
