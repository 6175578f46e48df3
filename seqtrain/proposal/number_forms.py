"""Forms of numbers and times in a table: decimal marks, thousands, units, minutes and seconds."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import product

import numpy as np

from seqtrain.config.document import flow
from seqtrain.errors import DataError
from seqtrain.proposal.roles import Roles
from seqtrain.proposal.shell import rewriting, set_option
from seqtrain.proposal.table import Table
from seqtrain.proposal.text_forms import delimiter_of
from seqtrain.text import listed, quote

MOST_NAMED = 3
"""Number of columns that a message shows."""
SHORT_TIME, LONGER_TIME = re.compile(r"\d+:\d\d"), re.compile(r"\d+:\d\d(?::\d\d.*|[.,]\d+)")
"""A time of two parts; a time of three parts, or with decimals."""
COMMAS_TO_POINTS = (
    r"s/(^|(?<=[{mark}])){quote}([-+]?(?:[1-9][0-9]{{0,2}}(?:\.[0-9]{{3}})+|[0-9]+)),([0-9]+)"
    r"( ?[^\d,;|\t\r\n\x22]{{0,8}}){quote}(?=[{mark}\r\n]|$)/($2 =~ tr{{.}}{{}}dr).qq{{.$3$4}}/ge"
)
"""Substitution of perl that writes decimal points, and no points between thousands, in cells."""

READINGS_OF_DATES = {"day": "%d/%m/%y", "month": "%m/%d/%y", "year": "%y/%m/%d"}
"""Forms of dates by what comes first."""
YEARS, CLOCKS = ("%y", "%Y"), ("", " %H:%M", " %H:%M:%S")
WRITING_DATES = (
    "import csv, sys; from datetime import datetime; k = int(sys.argv[1]); "
    'r = csv.reader(sys.stdin, delimiter="{mark}"); '
    'w = csv.writer(sys.stdout, delimiter="{mark}"); '
    "date = lambda x: x and datetime.strptime(x, sys.argv[2]).isoformat(); "
    "w.writerow(next(r)); w.writerows([*x[:k], date(x[k]), *x[k + 1:]] for x in r)"
)
"""Program of Python that writes the dates of a column of csv with the year first."""


def check_decimal_marks(roles: Roles, table: Table) -> None:
    """Check that the numbers of all used columns have one decimal mark, unless the user gave it.

    Raises:
        DataError: If some have a comma, and others a point. It has a command that writes points.
    """
    columns = [*roles.numbers_and_order(), *roles.sequence]
    with_commas = [column for column in columns if column.has_decimal_commas]
    is_text = table.is_delimited
    if not with_commas or not is_text or table.options.get("decimal"):
        return
    with_points = [column for column in columns if column.decimal_points]
    if not with_points:
        return
    shown = [listed([x.shown for x in own], MOST_NAMED) for own in (with_commas, with_points)]
    example = quote(with_points[0].decimal_points[0])
    raise DataError(
        f"{table.name}: numbers have a decimal comma in {shown[0]}, but a decimal point in "
        f"{shown[1]}, such as {example}; a file must have one decimal mark; to write points:",
        f"  {_with_points(table)}",
    )


def written_in_two_ways(roles: Roles, table: Table) -> Iterator[str]:
    """Yield doubts about columns of numbers or times whose cells have two forms.

    They are points that may separate thousands, 2.531 beside 458; times of which some may be
    minutes and seconds, 45:12 beside 1:02:33; and numbers without a unit beside some with one.
    """
    columns = [*roles.numbers_and_order(), *roles.sequence]
    for column in columns:
        if column.kind != "amount" or not column.unit.isalpha():
            continue
        plain = [cell for kind in ("number", "decimal") for cell in column.values_of(kind)]
        plain = [cell for cell in plain if cell != "0"]
        if plain:
            yield (
                f"{column.shown} has cells with the unit {column.unit}, such as "
                f"{column.units[column.unit]}, and without one, such as {plain[0]}: all are read "
                "as numbers of one unit; if they aren't, write each with its unit"
            )
    mark = "," if any(column.has_decimal_commas for column in columns) else "."
    if table.is_delimited and table.options.get("decimal", mark) == mark:
        found = {x: x.possible_thousands(mark) or "" for x in columns}
        doubtful = {x: cell for x, cell in found.items() if cell}
        others = [x for x in columns if x.has_decimals and x not in doubtful]
        for column, cell in [*doubtful.items()][:MOST_NAMED]:
            advice = f"write {cell.replace(mark, '')}"
            if mark == "." and not others:
                advice = set_option(f"data.decimal={flow(',')}")
            yield (
                f"{column.shown}: {cell} is read as a number with three decimals, although others "
                f"have none; if they are thousands: {advice}"
            )
        for column in columns:
            if mark == "," and column.may_have_decimal_points:
                cell = str(column.values[0])
                yield (
                    f"{column.shown} holds {cell}, which is read as {cell.replace('.', '')}, for "
                    f"others have decimal commas; if it has decimals: {_with_points(table)}"
                )
    for column in columns:
        texts = [x for x in column.values if isinstance(x, str)] if column.is_duration else []
        short = next(filter(SHORT_TIME.fullmatch, texts), None)
        longer = next(filter(LONGER_TIME.fullmatch, texts), None)
        if short and longer:
            yield (
                f"{column.shown} has cells such as {short} and {longer}: {short} is read as hours "
                f"and minutes; if it is minutes and seconds, write 0:{short}"
            )


def _with_points(table: Table) -> str:
    """Return a command that writes decimal points in place of commas in the cells of a table."""
    path = table.file
    mark = delimiter_of(table)
    quote = '"?' if mark != "," else '"'
    code = COMMAS_TO_POINTS.format(mark=mark.replace("\t", r"\t"), quote=quote)
    return rewriting(["perl", "-pe", code], path, "points")[0]


def unclear_dates(roles: Roles, table: Table) -> Iterator[str]:
    """Yield commands that write dates such as 5/1/2024 with the year first, if none sort rows.

    The reading whose dates are closest together comes first.
    """
    is_plain = table.is_delimited and table.header
    if roles.id is None or roles.order or not is_plain:
        return
    unread = [x for x in table.columns if x.kind == "time" and np.isnan(x.numbers).all()]
    if not unread:
        return
    path, code = table.file, WRITING_DATES.format(mark=delimiter_of(table))
    for column in unread:
        place = table.columns.index(column)
        cells = [str(value).strip() for value in column.values if str(value).strip()]
        for _, first, form in sorted(_readings_of_dates(cells)):
            line, target = rewriting(["python3", "-c", code, str(place), form], path, first)
            yield f"{column.shown}: if the {first} comes first: {line} && seqtrain init {target}"


def _readings_of_dates(cells: Sequence[str]) -> Iterator[tuple[timedelta, str, str]]:
    """Yield the time from the first to the last date, what comes first, and the form, of each form.

    Args:
        cells: Dates. Forms that don't fit all of them are left out.
    """
    for first, form in READINGS_OF_DATES.items():
        for mark, year, clock in product("/.-", YEARS, CLOCKS):
            whole = form.replace("/", mark).replace("%y", year) + clock
            try:
                times = [datetime.strptime(cell, whole) for cell in cells]
            except ValueError:
                continue
            yield max(times) - min(times), first, whole
