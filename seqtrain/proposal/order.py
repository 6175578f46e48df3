"""Columns that sort the rows of an id: dates, times, and numbers that count."""

from copy import copy
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.proposal.cell_kinds import Floats, Integers
from seqtrain.proposal.names import (
    COUNTERS,
    LEVEL_OF_DATES,
    LEVEL_OF_MONTHS,
    LEVEL_OF_TIMES,
    MONTHS_AND_WEEKS,
    PARTS,
    is_code,
    is_counter,
    is_counting,
    is_event_time,
    is_later,
    is_span,
    is_time,
    level_of,
    may_be_seconds,
)
from seqtrain.proposal.profile import (
    LIST_KINDS,
    ColumnProfile,
    Columns,
    is_contiguous,
    joined_codes,
    without,
)
from seqtrain.proposal.time_kinds import (
    are_unix_times,
    has_years_last,
    holds_dates,
    is_calendar,
    is_dated,
    is_time_of_day,
    period_of,
)
from seqtrain.tables.blocks import Name
from seqtrain.tables.times import DAY, WEEKDAY
from seqtrain.text import listed

SAMPLED_ROWS = 200_000
"""Largest number of rows of whole ids that are looked at."""
NEARLY_ALL = 0.9
"""Numbers can be times if, sorted within each id, at least this share of neighbours differs."""
COUNTED = 0.98
"""The same share of numbers that are named like counters, but can be codes, such as line."""
FEWEST_COUNTED = 20
"""Fewest neighbours that distinguish numbers named like counters from codes."""
EVEN = 1e-6
"""Times are even if their differences differ by at most this share: 0.1 isn't a float."""
MOST_TOTALS = 2
"""Most rows at the end of a table that may hold totals."""


class Order:
    """Columns that sort rows: the first one, and each of the others where those before are equal.

    An order without columns is false: rows stay as they are in the file.

    Args:
        columns: The columns.
    """

    def __init__(self, *columns: ColumnProfile) -> None:
        self.columns = columns

    def __bool__(self) -> bool:
        return bool(self.columns)

    @property
    def name(self) -> Name | list[Name] | None:
        """Value of data.order: a column, a list of columns, or None."""
        names = [column.name for column in self.columns]
        if len(names) == 1:
            return names[0]
        return names or None

    @property
    def shown(self) -> str:
        """Names for messages."""
        return listed([column.shown for column in self.columns])

    @cached_property
    def keys(self) -> list[Floats]:
        """Numbers that sort rows one after the other, (rows,) each, as in `sorting_times`."""
        found = [column.numbers for column in self.columns]
        if len(self.first.columns) > 1:
            found[:2] = [found[0] + found[1]]
        return found

    @property
    def first(self) -> "Order":
        """The first column alone, or a date and the time of day after it, which are one time."""
        first, *others = self.columns
        is_day = holds_dates(first) or first.calendar_names != ""
        if others and is_day and others[0].is_duration:
            return Order(*self.columns[:2])
        return Order(first)

    @cached_property
    def numbers(self) -> Floats:
        """Number or time of each row; with several keys, the place that they give it. (rows,)

        NaN if a cell is missing or odd.
        """
        if len(self.keys) == 1:
            return self.keys[0]
        rows = np.lexsort(self.keys[::-1])
        changes = [np.diff(numbers[rows], prepend=np.nan) != 0 for numbers in self.keys]
        places = np.empty(len(rows))
        places[rows] = np.cumsum(np.any(changes, axis=0))
        return np.where(np.isnan(self.keys).any(axis=0), np.nan, places)

    def sort(self, ids: Integers) -> npt.NDArray[np.intp]:
        """Return the index of the rows, id by id, those of an id in this order.

        Args:
            ids: Code of the id of each row.
        """
        keys = [self.numbers] if self else []
        return np.lexsort((*keys, ids))

    @property
    def codes(self) -> npt.NDArray[np.int32]:
        """Code of each row; equal codes aren't sorted. (rows,)"""
        return np.unique(self.numbers, return_inverse=True)[1].astype(np.int32)


class IdRows:
    """Rows of whole ids, spread over all ids, or all rows if they are few.

    Args:
        ids: Code of the id of each row.

    Attributes:
        rows: Index of the rows.
        ids: Code of the id of each of them.
    """

    def __init__(self, ids: Integers) -> None:
        self.rows: npt.NDArray[np.intp] | slice = slice(len(ids))
        if len(ids) > SAMPLED_ROWS:
            self.rows = np.flatnonzero(ids % -(-len(ids) // SAMPLED_ROWS) == 0)
        self.ids = ids[self.rows]

    def numbers(self, column: ColumnProfile | Order) -> Floats:
        """Return the numbers or times of a column in these rows."""
        return column.numbers[self.rows]

    def steps(self, column: ColumnProfile | Order) -> Floats:
        """Return the growth of a column from row to row of each id."""
        steps = self.growth(self.numbers(column))
        return steps[np.isfinite(steps)]

    def gaps(self, column: ColumnProfile | Order) -> Floats:
        """Return the growth of a column between the rows of each id that are sorted by it."""
        steps = self.steps_along(column, column)
        return steps[np.isfinite(steps)]

    def steps_along(self, column: ColumnProfile | Order, *sorting: ColumnProfile | Order) -> Floats:
        """Return the growth of a column between the rows of each id, as others sort them.

        It is NaN beside a row without a number.
        """
        return self.growth(self.numbers(column), *map(self.numbers, sorting))

    def growth(self, numbers: npt.NDArray[Any], *keys: Floats) -> Floats:
        """Return the differences of numbers between neighbouring rows of an id, id by id.

        Args:
            numbers: A number or time for each of these rows.
            keys: Numbers that sort the rows of an id. Without any, they stay as they are.
        """
        by_id = np.lexsort((*keys[::-1], self.ids))
        steps: Floats = np.diff(numbers[by_id])[np.diff(self.ids[by_id]) == 0]
        return steps

    def divided_by(self, order: Order) -> "IdRows":
        """Return the same rows, with an id for each id and each place in an order."""
        found = copy(self)
        found.ids = joined_codes([self.ids, order.codes[self.rows]])
        return found

    def ties(self, order: ColumnProfile | Order) -> int:
        """Return the number of neighbouring rows of an id that are equal in an order."""
        return int(np.count_nonzero(self.gaps(order) == 0))

    def are_sorted_by(self, column: ColumnProfile | Order) -> bool:
        """Return True if the rows of each id stand in the order of a column."""
        return bool((self.steps(column) >= 0).all())

    def are_counted_by(self, column: ColumnProfile | Order) -> bool:
        """Return True if the sorted numbers of each id grow by one and the same difference."""
        return are_even(self.gaps(column))

    def mostly_differ_in(self, column: ColumnProfile | Order) -> bool:
        """Return True if nearly all numbers of an id differ."""
        gaps = self.gaps(column)
        return bool(len(gaps) and np.count_nonzero(gaps) >= NEARLY_ALL * len(gaps))


def find_order(columns: Columns, id: ColumnProfile) -> Order:
    """Return the columns that sort the rows of an id. The order is empty if none do.

    Dates come before times and numbers, and then the column with most distinct values. If rows of
    an id are equal in this column, or if it is a time of day next to a day, several columns sort
    the rows, as `_order_by_levels` says.
    """
    rows = IdRows(id.codes)
    known = _known_columns(columns, id)
    possible = [x for x in known if _sorts(x, rows)]
    best = None
    if possible:
        best = max(
            possible,
            key=lambda x: (holds_dates(x), not _is_serial(x), len(x.values), not is_later(x)),
        )
        finer = (x for x in possible if _is_finer(x, best, rows) and not _is_serial(x))
        best = next(finer, best)
    levels = [x for x in known if _level(x) is not None]
    return _order_by_levels(best, levels, rows) or _order_by_counts(known, rows)


def _is_serial(column: ColumnProfile) -> bool:
    """Return True if a column numbers the rows of the table, such as event_id.

    It sorts rows only in the order of the file, and a time says more.
    """
    return is_code(column) and not is_counter(column) and column.distinct == column.rows


def after_date(order: Order, columns: Columns) -> Order:
    """Return an order with the date of its time of day, which may be the same in all rows of an id.

    Rows of other files may cross midnight. Dates without a time stand beside the time of day.

    Args:
        order: The order.
        columns: All columns, as in the table.
    """
    if not order or not is_time_of_day(order.columns[0]):
        return order
    place = columns.index(order.columns[0])
    for column in (*columns[max(place - 1, 0) : place], *columns[place + 1 : place + 2]):
        if holds_dates(column) and not (column.numbers % DAY).any():
            return Order(column, *order.columns)
    return order


def _known_columns(columns: Columns, id: ColumnProfile) -> list[ColumnProfile]:
    """Return the columns that can sort rows and have a number or a time in each."""
    return [x for x in columns if _can_sort(x) and is_known(x, id)]


def _order_by_counts(columns: Columns, rows: IdRows) -> Order:
    """Return the order by one or two parts of a sequence and a count in these, or an empty one.

    Such as the number of a line that begins again in each act, whatever its name says. Of parts
    with one level, such as an act and a scene, the table has the coarse one first.
    """
    parts = [x for x in columns if LEVEL_OF_DATES <= (_level(x) or 0) <= PARTS]
    parts.sort(key=lambda x: _level(x) or 0)
    counts = [x for x in columns if x not in parts and not x.has_decimals]
    for coarse in (*combinations(parts, 1), *combinations(parts, 2)):
        within = rows.divided_by(Order(*coarse))
        if 2 * len(np.unique(within.ids)) > len(within.ids):
            continue
        for column in counts:
            if within.are_counted_by(column):
                return Order(*coarse, column)
    return Order()


def _can_sort(column: ColumnProfile) -> bool:
    """Return False for lists and texts, except for months, weekdays, and numbers such as Q1."""
    if column.kind in LIST_KINDS:
        return False
    if column.kind in ("number", "amount", "time") or column.calendar_names:
        return True
    first = str(next(iter(column.values), ""))
    if first.isdigit():  # a text, for nanoseconds have more digits than float64 holds
        return bool(np.isfinite(column.numbers).all())
    is_named = level_of(column) is not None or is_counter(column) or is_event_time(column)
    return (column.numbered_text != "" or column.are_ordinals) and is_named


def _level(column: ColumnProfile) -> int | None:
    """Return the level of a column in an order, 0 for a year, or None if it has none.

    It is known for dates, times of day, and whole numbers with a name such as week or turn.
    """
    if holds_dates(column) or is_calendar(column) or column.calendar_names == WEEKDAY:
        return LEVEL_OF_DATES
    if column.calendar_names:
        return LEVEL_OF_MONTHS
    if is_time_of_day(column):
        return LEVEL_OF_TIMES
    if column.is_duration:
        return None
    level = level_of(column)
    if level is None and is_event_time(column) and not is_dated(column):
        return LEVEL_OF_TIMES
    return None if column.has_decimals else level


def _order_by_levels(best: ColumnProfile | None, columns: Columns, rows: IdRows) -> Order:
    """Return the order by columns from coarse to fine ones, such as a date and a time of day.

    It begins with the best single column, unless rows with a coarser level aren't sorted by this
    one.

    Args:
        best: The best single column, or None if none sorts the rows.
        columns: Columns with a level.
        rows: Rows to look at.
    """
    alone, chosen = Order(), list[ColumnProfile]()
    if best is not None:
        alone = Order(best)
        if rows.are_sorted_by(best) or not _is_within_another(best, columns, rows):
            chosen = [best]
            if rows.ties(best) == 0:
                return alone
    _add_levels(chosen, columns, rows)
    if len(chosen) > 1 and _counts_down(chosen, rows):
        return Order(*chosen[:-1])
    if len(chosen) > 1 and _is_order(chosen, rows, is_first_known=chosen[0] is best):
        return Order(*chosen)
    return alone


def _add_levels(chosen: list[ColumnProfile], columns: Columns, rows: IdRows) -> None:
    """Append columns to an order, each of which distinguishes rows that are equal in the others.

    A time of day must be named like times of events, or the rows must stand in its order. Next to
    days, it comes before sessions, which may be any numbers.
    """
    first = len(chosen)
    named = [x for x in columns if not x.is_duration or is_event_time(x) or level_of(x) is not None]
    levels = [_level(column) for column in (*chosen[:1], *named)]
    has_days = any(level is not None and level <= LEVEL_OF_DATES for level in levels)
    has_hours = LEVEL_OF_TIMES in levels
    for column in sorted(columns, key=lambda x: _level(x) or 0):
        if (has_days and has_hours and _is_session(column)) or not _is_finer_level(column, chosen):
            continue
        joined = Order(*chosen, column)
        if column not in named and not rows.are_sorted_by(joined):
            continue
        if not chosen or rows.ties(joined) < rows.ties(Order(*chosen)):
            chosen.append(column)
    ties = rows.ties(Order(*chosen)) if chosen else 0
    for column in chosen[first:-1]:
        others = without(chosen, [column])
        is_needed = len(others) < 2 or rows.ties(Order(*others)) > ties
        if _is_session(column) and not is_needed:
            chosen.remove(column)


def _is_session(column: ColumnProfile) -> bool:
    """Return True if a column is named like parts of a day that aren't times, such as trips."""
    return LEVEL_OF_DATES < (_level(column) or 0) < LEVEL_OF_TIMES


def _is_order(chosen: Columns, rows: IdRows, *, is_first_known: bool) -> bool:
    """Return True if columns from coarse to fine ones are the order of rows.

    Hours without days must be in the order of the file: they may cross midnight. So must parts,
    such as phases, if the rows of each id stand together, but not newest first. Counters must
    distinguish nearly all rows that are equal in the first column; and if the file is in the order
    of this column, it is in that of a session, too.

    Args:
        chosen: The columns, at least two.
        rows: Rows to look at.
        is_first_known: True if the first column sorts the rows.
    """
    first, last, joined = chosen[0], chosen[-1], Order(*chosen)
    level = _level(last) or 0
    if rows.are_sorted_by(joined):
        return True
    again = [x for x in chosen if _begins_again(x, rows)]
    coarsest = _level(first) or 0
    if coarsest == PARTS and is_contiguous(rows.ids) and (rows.steps(joined) > 0).any():
        return False
    if coarsest >= LEVEL_OF_TIMES or first in again or (again and coarsest > LEVEL_OF_DATES):
        return False
    is_time_of_date = is_first_known and is_dated(first) and LEVEL_OF_TIMES <= level < COUNTERS
    if last.is_duration or is_time_of_date:
        return True
    if is_first_known and level != COUNTERS and rows.are_sorted_by(first):
        return False
    return rows.ties(joined) <= (1 - NEARLY_ALL) * rows.ties(Order(first))


def _counts_down(chosen: Columns, rows: IdRows) -> bool:
    """Return True if rows stand in the order of all columns but the last, which falls in each."""
    coarse = Order(*chosen[:-1])
    if not rows.are_sorted_by(coarse):
        return False
    steps = rows.divided_by(coarse).steps(chosen[-1])
    return bool(len(steps) and (steps <= 0).all() and steps.any())


def _is_finer_level(column: ColumnProfile, chosen: Columns) -> bool:
    """Return True if a column has a finer level than the last of some columns.

    After a column without a level, it must be finer than a date. A week is finer than a year, but
    not than a month: the first days of January may be in week 52.
    """
    if not chosen:
        return True
    last = _level(chosen[-1])
    level = _level(column) or 0
    levels = {_level(each) for each in (*chosen, column)}
    return level > (LEVEL_OF_DATES if last is None else last) and not levels >= MONTHS_AND_WEEKS


def _is_within_another(column: ColumnProfile, others: Columns, rows: IdRows) -> bool:
    """Return True if a column begins again for each value of a column with a coarser level."""
    level = _level(column)
    if level is None or holds_dates(column):
        return False
    coarser = [other for other in others if (_level(other) or 0) < level]
    return any(_is_within(column, other, rows) for other in coarser)


def _is_within(column: ColumnProfile, other: ColumnProfile, rows: IdRows) -> bool:
    """Return True if another column falls somewhere in rows of an id sorted by a column."""
    return bool((rows.steps_along(other, column) < 0).any())


def begins_again(column: ColumnProfile, id: ColumnProfile) -> bool:
    """Return True if rows stand in the order of times that begin again, such as at midnight."""
    return is_known(column, id) and _begins_again(column, IdRows(id.codes))


def _begins_again(column: ColumnProfile, rows: IdRows) -> bool:
    """Return True if times only decrease by more than half of their period from row to row."""
    period = period_of(column)
    if not period:
        return False
    steps = rows.steps(column)
    return bool((steps < 0).any() and (steps[steps < 0] < -period / 2).all())


def _is_finer(column: ColumnProfile, other: ColumnProfile, rows: IdRows) -> bool:
    """Return True if a column sorts the rows of each id as another does, also where it is equal.

    Such as a count of the rows of an id, next to days.
    """
    if not rows.ties(other):
        return False
    grows = (rows.steps_along(column, column) > 0).all()
    return bool(grows and (rows.steps_along(other, column) >= 0).all())


def other_orders(columns: Columns, order: Order, id: ColumnProfile) -> list[ColumnProfile]:
    """Return the columns that could be the order, and would sort the rows of an id in another way.

    Args:
        columns: Columns that aren't part of the order.
        order: The order.
        id: Column of the id.
    """
    rows = IdRows(id.codes)
    possible = [x for x in _known_columns(columns, id) if _sorts(x, rows)]
    return [x for x in possible if (rows.steps_along(order, x, order) < 0).any()]


def doubtful_orders(columns: Columns, id: ColumnProfile) -> list[Order]:
    """Return the orders that rows of an id may have, though neither values nor names say so.

    After the order by a column, there is that by this column within coarser ones in which it begins
    again.

    These are whole numbers that all differ or count the rows of each id, and numbers and times of
    day that are named like times, whose neighbours differ.
    """
    rows, found = IdRows(id.codes), list[Order]()
    for column in columns:
        if column.kind not in ("number", "amount", "time") or column.distinct < 2:
            continue
        if not is_known(column, id):
            continue
        is_unique = column.distinct == column.rows and not column.has_decimals
        is_named = is_counting(column) or may_be_seconds(column)
        if is_unique or is_named or rows.are_counted_by(column):
            coarser = _coarser(column, _known_columns(columns, id), rows)
            possible = [Order(*coarser, column)] if coarser else []
            found += filter(rows.mostly_differ_in, [*possible, Order(column)])
    return found


def _coarser(column: ColumnProfile, columns: Columns, rows: IdRows) -> list[ColumnProfile]:
    """Return the columns with a coarser level within which a column begins again."""
    finest = min(_level(column) or COUNTERS, LEVEL_OF_TIMES)
    levels = {x: level for x in columns if (level := _level(x)) is not None}
    coarser = [x for x, level in levels.items() if level < finest and _is_within(column, x, rows)]
    return sorted(coarser, key=levels.__getitem__)


def is_known(column: ColumnProfile, id: ColumnProfile) -> bool:
    """Return True if each row has a number or a time, or an odd cell.

    The last rows may lack both if each has an id of its own, such as a row of totals.
    """
    is_blank = ~(np.isfinite(column.numbers) | column.is_odd)
    rows = np.flatnonzero(is_blank)
    if len(rows) > MOST_TOTALS:
        return False
    return bool(
        (rows >= column.rows - MOST_TOTALS).all() and (id.counts[id.codes[rows]] == 1).all()
    )


def _sorts(column: ColumnProfile, rows: IdRows) -> bool:
    """Return True if the numbers or times of a column within an id are its order.

    They are the order in these cases:

    - They are dates.
    - They grow from row to row by one and the same difference.
    - They are times of day, durations, or named like times or counters, and never decrease.
    - The column has no name, and they always increase.
    - The rows have another order, such as newest first, and these numbers sort them.

    Times that begin again, such as at midnight, aren't the order: the rows stand in it.
    """
    if _begins_again(column, rows) or has_years_last(column):
        return False
    if holds_dates(column):
        return True
    steps = rows.steps(column)
    if not len(steps):
        return is_time(column) or column.is_duration
    if are_even(steps):
        return True
    if isinstance(column.name, int) and (steps > 0).all():
        return True
    is_named = is_time(column) or column.is_duration or is_counter(column)
    if is_named and ((steps >= 0).all() or is_calendar(column)):
        return True
    return _sorts_other_rows(column, rows)


def _sorts_other_rows(column: ColumnProfile, rows: IdRows) -> bool:
    """Return True if numbers are the order of rows that aren't in this order.

    Nearly all numbers of an id differ, and one of these holds:

    - They are named like times, and never increase (the newest row comes first) or are evenly
      spaced.
    - They are Unix times.
    - They are whole numbers that are named like times of events or like counters.
    - They are evenly spaced whole numbers that don't only decrease. Those that only decrease may
      be the time that remains.
    """
    if is_span(column) or (is_code(column) and not is_counter(column)):
        return False
    if not rows.mostly_differ_in(column):
        return False
    steps, gaps = rows.steps(column), rows.gaps(column)
    is_even = are_even(gaps)
    if is_time(column) and ((steps <= 0).all() or is_even):
        return True
    if are_unix_times(column, rows.numbers(column)):
        return True
    if column.has_decimals:
        return False
    if is_event_time(column):
        return True
    if len(gaps) < FEWEST_COUNTED:
        return False
    is_counted = is_counter(column) and np.count_nonzero(gaps) >= COUNTED * len(gaps)
    return bool(is_counted or (is_even and (steps > 0).any()))


def are_even(steps: Floats) -> bool:
    """Return True if there are differences, all positive, that are equal but for rounding."""
    if not len(steps) or steps.min() <= 0:
        return False
    return bool(np.ptp(steps) <= EVEN * steps.max())
