"""Forms of numbers and times in a table: decimal marks, thousands, units, minutes and seconds."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from seqtrain.config.document import flow
from seqtrain.errors import DataError
from seqtrain.proposal.conversions import advised, table_conversion_lines
from seqtrain.proposal.names import is_code
from seqtrain.proposal.profile import ColumnProfile, Columns
from seqtrain.proposal.roles import FEWEST_WIDE, Roles, options_naming, shown_names
from seqtrain.proposal.shell import set_option
from seqtrain.proposal.table import Table
from seqtrain.tables.cells import SCALES, is_number
from seqtrain.text import counted, listed, quote

MOST_NAMED = 3
"""Number of columns that a message shows."""
SHORT_TIME, LONGER_TIME = re.compile(r"\d+:\d\d"), re.compile(r"\d+:\d\d(?::\d\d.*|[.,]\d+)")
"""A time of two parts; a time of three parts, or with decimals."""
OTHER_NUMBER, HAS_DIGIT = re.compile(r"[-+]?\d+(?:[.,٫٬]\d+)*"), re.compile("[0-9]")
"""A number in the digits of any script."""
LARGEST_SHARE_REPEATED = 0.5
"""Share of rows whose token occurs again below which tokens tell nothing about other rows."""
READINGS_OF_DATES = {"day": "%d/%m/%y", "month": "%m/%d/%y", "year": "%y/%m/%d"}
"""Forms of dates by what comes first."""
YEARS = ("%y", "%Y")
CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
BITS = re.compile("[01]{3,}")
"""A text of 0s and 1s that may mark a label each."""
GEOMETRY = re.compile(r"(?:SRID=\d+;)?\s*(?:MULTI)?(?:POINT|LINESTRING|POLYGON)\b[ ZM]*\(", re.I)
"""Beginning of the text of a geometry."""


def refuse_scales(roles: Roles, table: Table) -> None:
    """Raise a DataError with a command if units such as k are beside plain numbers."""
    columns = [x for x in roles.number_columns() if x.kind == "amount" and x.unit in SCALES]
    for column in columns:
        if column.kind_counts["number"]:
            problem = f"--steps: {column.unit_problem()}"
            raise DataError(problem, *commands_for_measurements(table, columns))


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
    shown = [shown_names(own, MOST_NAMED) for own in (with_commas, with_points)]
    example = quote(with_points[0].decimal_points[0])
    raise DataError(
        f"{table.name}: numbers have a decimal comma in {shown[0]}, but a decimal point in "
        f"{shown[1]}, such as {example}; a file must have one decimal mark; to write points:",
        *table_conversion_lines(table, "cells", rule="points"),
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
                said = (
                    f"{column.shown} holds {cell}, which is read as {cell.replace('.', '')}, for "
                    "others have decimal commas; if it has decimals, write points in all"
                )
                yield from advised(said, table_conversion_lines(table, "cells", rule="points"))
    for column in columns:
        texts = [x for x in column.values if isinstance(x, str)] if column.is_duration else []
        short = next(filter(SHORT_TIME.fullmatch, texts), None)
        longer = next(filter(LONGER_TIME.fullmatch, texts), None)
        if short and longer:
            yield (
                f"{column.shown} has cells such as {short} and {longer}: {short} is read as hours "
                f"and minutes; if it is minutes and seconds, write 0:{short}"
            )


def measurements_as_tokens(roles: Roles, table: Table) -> Iterator[str]:
    """Yield doubts about columns of a step whose cells hold numbers, but aren't plain ones.

    They are numbers with flags, two numbers, tokens with digits most of which differ, such as
    53°7.2'N, and numbers in other digits than 0 to 9.
    """
    if roles.id is None or not roles.steps:
        return
    kinds = {**roles.steps, **roles.static}
    for column in [x for x in roles.columns if kinds.get(x.name_text) == "token"]:
        if _has_other_digits(column):
            found = (
                f"{column.shown}: cells such as {column.values[0]} are tokens; if they are "
                "numbers, write them with the digits 0 to 9"
            )
            yield from advised(found, table_conversion_lines(table, "cells", rule="digits"))
    own = [x for x in roles.columns if x is not roles.label and not _has_other_digits(x)]
    columns = [x for x in own if x.holds_measurements or _may_hold_numbers(x, kinds)]
    columns = [x for x in columns if x not in roles.id.parts and kinds.get(x.name_text) != "number"]
    if columns:
        used = any(x.name_text in kinds for x in columns)
        use = "each different cell is a token" if used else "not used"
        hint, *lines = numbers_in_columns(columns, table, marks=True)
        found = f"{_no_plain_numbers(columns)}: {use}; if they are measurements, {hint}"
        yield from advised(found, lines)


def _may_hold_numbers(column: ColumnProfile, kinds: Mapping[str, Any]) -> bool:
    """Return True for tokens with digits most of which differ, and for points of csv."""
    if column.holds_points and column.are_texts:
        return True
    if kinds.get(column.name_text) != "token" or column.kind != "text":
        return False
    is_repeated = column.counts[column.codes] > 1
    has_digits = all(map(HAS_DIGIT.search, filter(None, column.values)))
    return bool(is_repeated.mean() < LARGEST_SHARE_REPEATED and has_digits)


def _has_other_digits(column: ColumnProfile) -> bool:
    """Return True for numbers in digits of another script, such as those of Arabic."""
    texts = [str(x) for x in column.sampled_values if x != ""] if column.are_texts else []
    return bool(texts) and all(not x.isascii() and OTHER_NUMBER.fullmatch(x) for x in texts)


def commands_for_measurements(table: Table, columns: Columns) -> list[str]:
    """Return lines with a command that writes plain numbers in columns of measurements, or []."""
    columns = [x for x in columns if x.holds_measurements or x.kind == "amount"]
    columns = [x for x in columns if not is_code(x)]
    if not columns:
        return []
    hint, *lines = numbers_in_columns(columns, table, marks=len(columns) < FEWEST_WIDE)
    return advised(f"{_no_plain_numbers(columns)}; if they are measurements, {hint}", lines)


def _no_plain_numbers(columns: Columns) -> str:
    """Return the finding that cells of columns are measurements, but no plain numbers."""
    names = listed([column.shown for column in columns], MOST_NAMED)
    cells = [next(x for x in own.values if not is_number(x)) for own in columns]
    return (
        f"{names}: cells such as {listed([*dict.fromkeys(cells)], MOST_NAMED)} are no plain numbers"
    )


def numbers_in_columns(columns: Columns, table: Table, *, marks: bool = False) -> list[str]:
    """Return the advice to write each number of columns in a column of its own, and commands.

    Args:
        columns: The columns.
        table: The table.
        marks: True to keep what isn't a number in a further column, if it differs.
    """
    units = {unit for column in columns for unit in column.units} - {""}
    are_scales = len(units) > 0 and units <= SCALES.keys()
    hint = "write "
    if are_scales:
        hint += f"plain numbers in place of those with {listed(sorted(units), MOST_NAMED)}"
    elif len(units) > 1:
        hint += f"numbers in one unit where {listed(sorted(units), MOST_NAMED)} are units, and "
    if not are_scales:
        hint += "each number in a column of its own"
    if not table.has_named_columns:
        return [hint]
    names = [column.name_text for column in columns]
    if are_scales:
        return [hint, *table_conversion_lines(table, "cells", rule="scales", column=names)]
    points = all(x.holds_points and not x.has_decimal_commas for x in columns)
    options = {"column": names, "points": points, "flags": marks}
    return [hint, *table_conversion_lines(table, "numbers", **options)]


def refuse_geometry(roles: Roles, table: Table) -> None:
    """Raise a DataError if the sequence is a geometry, such as LINESTRING (10.1 50.2, 10.3 50.4).

    Raises:
        DataError: The error has a command that writes the numbers of a point in columns, or those
            of a line as a list of points.
    """
    for column in roles.sequence:
        texts = [x for x in column.sampled_values if x != ""] if column.kind == "text" else []
        if not texts or not all(isinstance(x, str) and GEOMETRY.match(x) for x in texts):
            continue
        lines = [f"{table.name}: {column.shown} holds geometries, such as {quote(texts[0], 40)}"]
        if all("," not in text for text in texts):
            hint, *commands = numbers_in_columns([column], table)
            lines = advised(f"{lines[0]}; {hint}", commands)
        elif table.has_named_columns:
            lines[0] += "; to write lists of points:"
            options = {"rule": "steps", "column": [column.name_text]}
            lines += table_conversion_lines(table, "cells", **options)
        raise DataError(*lines)


def unclear_dates(roles: Roles, table: Table) -> Iterator[str]:
    """Yield commands that write dates such as 5/1/2024 with the year first, if none sort rows.

    The reading whose dates are closest together comes first.
    """
    if roles.id is None or roles.order or not table.has_named_columns:
        return
    for column in table.columns:
        if column.is_constant or not column.are_unread_times:
            continue
        cells = [str(value).strip() for value in column.values if str(value).strip()]
        for _, first, form in sorted(_readings_of_dates(cells)):
            yield f"{column.shown}: if the {first} comes first:"
            options = {"column": [column.name_text], "pattern": form}
            yield from table_conversion_lines(table, "dates", **options)


def commands_for_marks(table: Table) -> list[str]:
    """Return lines with commands that fill the blank cells of columns of one value, or [].

    Such a column is the label that the user names, or no column has several values as labels do:
    rows that have no x may be a class, too.
    """
    named = table.layout.options.named("label")
    columns = [column for column in table.columns if column.marks_rows]
    if not named and any(column.can_be_label for column in table.columns):
        return []
    lines = list[str]()
    for column in columns:
        if named and column.name not in named:
            continue
        mark = next(str(value) for value in column.values if value != "")
        other = "no" if mark.lower() != "no" else "yes"
        line = f"if a blank cell of {column.shown} is a class beside {quote(mark, 30)}"
        if not table.has_named_columns:
            lines.append(f"{line}, write {other} there")
            continue
        label = options_naming("label", [column])
        options = {"column": [column.name_text], "text": other}
        lines += [f"{line}:", *table_conversion_lines(table, "filled", label, **options)]
    return lines


def labels_of_bits(roles: Roles, table: Table) -> Iterator[str]:
    """Yield a doubt about labels such as 0110 and 1000, of which each digit may mark a label."""
    label = roles.label
    values = [value for value in label.values if value != ""] if label.are_texts else []
    are_long = len({len(value) for value in values}) == 1
    if len(values) < 3 or not are_long or not all(map(BITS.fullmatch, values)):
        return
    found = (
        f"{label.shown}: each of {counted(len(values), 'text')} of 0s and 1s is one class, such as "
        f"{values[0]}; if each digit marks a label, write lists such as [{', '.join(values[0])}]"
    )
    lines = list[str]()
    if table.has_named_columns and label in table.columns:
        options = {"rule": "lists", "column": [label.name_text]}
        option = options_naming("label", [label])
        lines = table_conversion_lines(table, "cells", option, **options)
    yield from advised(found, lines)


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
