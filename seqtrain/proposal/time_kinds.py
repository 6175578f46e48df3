"""Kinds of times in a column: dates, times of day, Unix times, and those that begin again."""

import re
from datetime import date

import numpy as np

from seqtrain.proposal.cell_kinds import Floats
from seqtrain.proposal.names import is_span, is_time
from seqtrain.proposal.profile import ColumnProfile
from seqtrain.tables.blocks import BadCellError
from seqtrain.tables.times import (
    DATE,
    DAY,
    DAY_FIRST,
    EPOCH,
    LOG_YEAR,
    MONTH_FIRST,
    WEEKDAY,
    read_moment,
)

CALENDAR = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])([0-2]\d|3[01])(\d{4}(\d\d)?)?")
"""Pattern of a date written as a whole number, such as 20240301, with a time of day or without."""
YEAR_LAST = re.compile(
    r"(?:(?:0?[1-9]|[12]\d|3[01])(?:0[1-9]|1[0-2])|(?:0?[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))"
    r"(?:19|20)\d\d"
)
"""Pattern of a date written as a whole number with the year at its end, such as 31122024."""
EPOCHS = (6e8, 2.2e9)
"""Unix times of 1989 to 2039. Numbers of this size are times whatever the name of the column."""
START_OF_LOG_YEAR, DAYS_OF_YEAR = DAY * (date(LOG_YEAR, 1, 1).toordinal() - EPOCH), 366
"""Seconds since 1970 of the year of dates without a year, and its number of days."""

MOST_TRIED = 20_000
"""Number of dates of a column that are read to find one that can't be."""


def problem_of_dates(column: ColumnProfile) -> str | None:
    """Return the reason why a date of a column can't be read, or None if there is no such date.

    The type of date counts as which most dates can be read.
    """
    texts = [text for text in map(str, column.values[:MOST_TRIED]) if text.strip()]
    fewest: list[str] | None = None
    for type in (DATE, DAY_FIRST, MONTH_FIRST):
        problems = list[str]()
        for text in texts:
            try:
                read_moment(text, type)
            except BadCellError as error:
                problems.append(str(error))
        if fewest is None or len(problems) < len(fewest):
            fewest = problems
    return fewest[0] if fewest else None


def holds_dates(column: ColumnProfile) -> bool:
    """Return True if a column holds dates that aren't written as whole numbers."""
    return column.kind == "time" and not column.is_duration


def is_time_of_day(column: ColumnProfile) -> bool:
    """Return True for times below 24 hours that aren't named like spans of time."""
    if not column.is_duration or is_span(column):
        return False
    return bool(np.nanmin(column.value_numbers) >= 0 and np.nanmax(column.value_numbers) < DAY)


def period_of(column: ColumnProfile) -> int:
    """Return the seconds after which the times of a column begin again, or 0 if they don't.

    These are times of day, weekdays, and months and dates without a year.
    """
    if is_time_of_day(column):
        return DAY
    if column.time_type == WEEKDAY:
        return 7 * DAY
    if column.is_duration or not column.time_type:
        return 0
    days = (column.value_numbers - START_OF_LOG_YEAR) / DAY
    if np.nanmin(days) >= 0 and np.nanmax(days) <= DAYS_OF_YEAR:
        return DAY * DAYS_OF_YEAR
    return 0


def is_dated(column: ColumnProfile) -> bool:
    """Return True if a column of times or numbers holds dates."""
    return holds_dates(column) or is_calendar(column) or _are_epochs(column.value_numbers)


def is_calendar(column: ColumnProfile) -> bool:
    """Return True if all cells are dates written as whole numbers, such as 20240301."""
    return all(isinstance(x, str) and CALENDAR.fullmatch(x) for x in column.values)


def has_both_ends(column: ColumnProfile, id: ColumnProfile) -> bool:
    """Return True if an id has times at both ends of a week or a year that isn't known.

    These are Monday and Sunday, or January and December. Sorted by them, later rows may come first.
    """
    period, begin, width = period_of(column), START_OF_LOG_YEAR, 31 * DAY
    if column.time_type == WEEKDAY:
        begin, width = DAY * (date.fromisocalendar(LOG_YEAR, 1, 1).toordinal() - EPOCH), DAY
    if period <= DAY:
        return False
    since = column.numbers - begin
    return bool(np.isin(id.codes[since < width], id.codes[since >= period - width]).any())


def has_years_last(column: ColumnProfile) -> bool:
    """Return True if all cells are dates such as 31122024, which don't sort rows as numbers."""
    if column.kind != "number" or column.distinct < 2 or is_calendar(column):
        return False
    return all(isinstance(x, str) and YEAR_LAST.fullmatch(x) for x in column.values)


def are_unix_times(column: ColumnProfile, numbers: Floats) -> bool:
    """Return True if numbers are Unix times by their size, and by their name or a few decades."""
    if column.is_duration:
        return False
    if is_time(column):
        return _are_epochs(numbers)
    return _are_epochs(numbers, EPOCHS)


def _are_epochs(numbers: Floats, seconds: tuple[float, float] = (1e8, 5e9)) -> bool:
    """Return True if numbers are Unix times of some years, in seconds or a smaller unit."""
    low, high = np.nanmin(numbers), np.nanmax(numbers)
    first, last = seconds
    return any(first * unit <= low and high <= last * unit for unit in (1, 1e3, 1e6, 1e9))
