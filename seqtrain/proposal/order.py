"""Columns that sort the rows of an id: dates, times, and numbers that count."""

from collections.abc import Sequence
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from seqtrain.proposal.cell_kinds import Floats
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
from seqtrain.proposal.profile import LIST_KINDS, ColumnProfile, is_contiguous, joined_codes
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
from seqtrain.tables.times import WEEKDAY
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
RowSelection = npt.NDArray[np.intp] | slice
Ids = npt.NDArray[np.int32]


class Order:
    """Columns that sort rows: the first one, and each of the others where those before are equal.

    Args:
        columns: The columns, at least one.
    """

    def __init__(self, *columns: ColumnProfile) -> None:
        self.columns = columns

    @property
    def name(self) -> Name | list[Name]:
        """Value of data.order: a column, or a list of columns."""
        names = [column.name for column in self.columns]
        if len(names) == 1:
            return names[0]
        return names

    @property
    def shown(self) -> str:
        """Names for messages."""
        return listed([column.shown for column in self.columns])

    @cached_property
    def keys(self) -> list[Floats]:
        """Numbers that sort rows one after the other, (rows,) each, as in `sorting_times`."""
        found = [column.numbers for column in self.columns]
        first, *others = self.columns
        is_day = holds_dates(first) or first.calendar_names != ""
        if others and is_day and others[0].is_duration:
            found[:2] = [found[0] + found[1]]
        return found

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

    def ties(self, ids: Ids, rows: RowSelection) -> int:
        """Return the number of neighbouring rows of an id that are equal in all columns.

        Args:
            ids: Code of the id of each row.
            rows: Rows to look at.
        """
        return int(np.count_nonzero(growth(self.numbers[rows], ids, sort=True) == 0))

    @property
    def codes(self) -> npt.NDArray[np.int32]:
        """Code of each row; equal codes aren't sorted. (rows,)"""
        return np.unique(self.numbers, return_inverse=True)[1].astype(np.int32)


def sampled_ids(id: ColumnProfile) -> RowSelection:
    """Return the rows of whole ids, spread over all ids, or a slice of all rows if they are few."""
    if id.rows <= SAMPLED_ROWS:
        return slice(None)
    return np.flatnonzero(id.codes % -(-id.rows // SAMPLED_ROWS) == 0)


def growth(numbers: Floats, ids: npt.NDArray[np.integer], *, sort: bool = False) -> Floats:
    """Return the differences of numbers between neighbouring rows of an id, id by id.

    Args:
        numbers: A number or time per row.
        ids: Code of the id of each row.
        sort: True to sort the numbers of each id first.
    """
    by_id = np.lexsort((numbers if sort else np.arange(len(ids)), ids))
    steps: Floats = np.diff(numbers[by_id])[np.diff(ids[by_id]) == 0]
    return steps[np.isfinite(steps)]


def find_order(columns: Sequence[ColumnProfile], id: ColumnProfile) -> Order | None:
    """Return the columns that sort the rows of an id, or None if none do.

    Dates come before times and numbers, and then the column with most distinct values. If rows of
    an id are equal in this column, or if it is a time of day next to a day, several columns sort
    the rows, as `_order_by_levels` says.
    """
    rows = sampled_ids(id)
    ids = id.codes[rows]
    found = {}
    known = [x for x in columns if _can_sort(x) and is_known(x, id)]
    for number, column in enumerate(known):
        if _sorts(column, ids, rows):
            rank = holds_dates(column), len(column.values), not is_later(column), -number
            found[rank] = column
    best = None
    if found:
        best = found[max(found)]
        times = best.numbers[rows]
        finer = [x for x in found.values() if _is_finer(x.numbers[rows], times, ids)]
        best = next(iter(finer), best)
    levels = [x for x in known if _level(x) is not None]
    return _order_by_levels(best, levels, ids, rows) or _order_by_counts(known, ids, rows)


def _order_by_counts(
    columns: Sequence[ColumnProfile], ids: Ids, rows: RowSelection
) -> Order | None:
    """Return the order by one or two parts of a sequence and a count in these, or None.

    Such as the number of a line that begins again in each act, whatever its name says. Of parts
    with one level, such as an act and a scene, the table has the coarse one first.
    """
    parts = [x for x in columns if LEVEL_OF_DATES <= (_level(x) or 0) <= PARTS]
    parts.sort(key=lambda x: _level(x) or 0)
    counts = [x for x in columns if x not in parts and not x.has_decimals]
    for coarse in (*combinations(parts, 1), *combinations(parts, 2)):
        codes = joined_codes([ids, *(x.codes[rows] for x in coarse)])
        if 2 * (int(codes.max(initial=0)) + 1) > len(codes):
            continue
        for column in counts:
            if counts_rows(column.numbers[rows], codes):
                return Order(*coarse, column)
    return None


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


def _order_by_levels(
    best: ColumnProfile | None, columns: Sequence[ColumnProfile], ids: Ids, rows: RowSelection
) -> Order | None:
    """Return the order by columns from coarse to fine ones, such as a date and a time of day.

    It begins with the best single column, unless rows with a coarser level aren't sorted by this
    one.

    Args:
        best: The best single column, or None if none sorts the rows.
        columns: Columns with a level.
        ids: Code of the id of each row.
        rows: Rows to look at.
    """
    alone, chosen = None, list[ColumnProfile]()
    if best is not None:
        alone, numbers = Order(best), best.numbers[rows]
        if _is_sorted(numbers, ids) or not _is_within_another(best, columns, ids, rows):
            chosen = [best]
            if alone.ties(ids, rows) == 0:
                return alone
    _add_levels(chosen, columns, ids, rows)
    if len(chosen) > 1 and _counts_down(chosen, ids, rows):
        return Order(*chosen[:-1])
    if len(chosen) > 1 and _is_order(chosen, ids, rows, is_first_known=chosen[0] is best):
        return Order(*chosen)
    return alone


def _add_levels(
    chosen: list[ColumnProfile], columns: Sequence[ColumnProfile], ids: Ids, rows: RowSelection
) -> None:
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
        if column not in named and not _is_sorted(joined.numbers[rows], ids):
            continue
        if not chosen or joined.ties(ids, rows) < Order(*chosen).ties(ids, rows):
            chosen.append(column)
    ties = Order(*chosen).ties(ids, rows) if chosen else 0
    for column in chosen[first:-1]:
        others = [x for x in chosen if x is not column]
        is_needed = len(others) < 2 or Order(*others).ties(ids, rows) > ties
        if _is_session(column) and not is_needed:
            chosen.remove(column)


def _is_session(column: ColumnProfile) -> bool:
    """Return True if a column is named like parts of a day that aren't times, such as trips."""
    return LEVEL_OF_DATES < (_level(column) or 0) < LEVEL_OF_TIMES


def _is_order(
    chosen: Sequence[ColumnProfile], ids: Ids, rows: RowSelection, *, is_first_known: bool
) -> bool:
    """Return True if columns from coarse to fine ones are the order of rows.

    Hours without days must be in the order of the file: they may cross midnight. So must parts,
    such as phases, if the rows of each id stand together, but not newest first. Counters must
    distinguish nearly all rows that are equal in the first column; and if the file is in the order
    of this column, it is in that of a session, too.

    Args:
        chosen: The columns, at least two.
        ids: Code of the id of each row.
        rows: Rows to look at.
        is_first_known: True if the first column sorts the rows.
    """
    first, last, joined = chosen[0], chosen[-1], Order(*chosen)
    level = _level(last) or 0
    if _is_sorted(joined.numbers[rows], ids):
        return True
    again = [x for x in chosen if _begins_again(x, ids, rows)]
    coarsest = _level(first) or 0
    steps = growth(joined.numbers[rows], ids)
    if coarsest == PARTS and is_contiguous(ids) and (steps > 0).any():
        return False
    if coarsest >= LEVEL_OF_TIMES or first in again or (again and coarsest > LEVEL_OF_DATES):
        return False
    is_time_of_date = is_first_known and is_dated(first) and LEVEL_OF_TIMES <= level < COUNTERS
    if last.is_duration or is_time_of_date:
        return True
    if is_first_known and level != COUNTERS and _is_sorted(first.numbers[rows], ids):
        return False
    return joined.ties(ids, rows) <= (1 - NEARLY_ALL) * Order(first).ties(ids, rows)


def _counts_down(chosen: Sequence[ColumnProfile], ids: Ids, rows: RowSelection) -> bool:
    """Return True if rows stand in the order of all columns but the last, which falls in each."""
    coarse = Order(*chosen[:-1])
    if not _is_sorted(coarse.numbers[rows], ids):
        return False
    parts = np.unique(np.stack([ids, coarse.codes[rows]]), axis=1, return_inverse=True)[1]
    steps = growth(chosen[-1].numbers[rows], parts.reshape(-1))
    return bool(len(steps) and (steps <= 0).all() and steps.any())


def _is_sorted(numbers: Floats, ids: Ids) -> bool:
    """Return True if the rows of each id stand in the order of numbers."""
    return bool((growth(numbers, ids) >= 0).all())


def _is_finer_level(column: ColumnProfile, chosen: Sequence[ColumnProfile]) -> bool:
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


def _is_within_another(
    column: ColumnProfile, others: Sequence[ColumnProfile], ids: Ids, rows: RowSelection
) -> bool:
    """Return True if a column begins again for each value of a column with a coarser level."""
    level = _level(column)
    if level is None or holds_dates(column):
        return False
    coarser = [other for other in others if (_level(other) or 0) < level]
    return any(_is_within(column, other, ids, rows) for other in coarser)


def _is_within(column: ColumnProfile, other: ColumnProfile, ids: Ids, rows: RowSelection) -> bool:
    """Return True if another column falls somewhere in rows of an id sorted by a column."""
    by_id = np.lexsort((column.numbers[rows], ids))
    steps = np.diff(other.numbers[rows][by_id])[np.diff(ids[by_id]) == 0]
    return bool((steps < 0).any())


def begins_again(column: ColumnProfile, id: ColumnProfile) -> bool:
    """Return True if rows stand in the order of times that begin again, such as at midnight."""
    rows = sampled_ids(id)
    return is_known(column, id) and _begins_again(column, id.codes[rows], rows)


def _begins_again(column: ColumnProfile, ids: Ids, rows: RowSelection) -> bool:
    """Return True if times only decrease by more than half of their period from row to row."""
    period = period_of(column)
    if not period:
        return False
    steps = growth(column.numbers[rows], ids)
    return bool((steps < 0).any() and (steps[steps < 0] < -period / 2).all())


def _is_finer(numbers: Floats, others: Floats, ids: Ids) -> bool:
    """Return True if numbers sort the rows of each id as others do, and also where these are equal.

    Such as a count of the rows of an id, next to days.
    """
    if not (growth(others, ids, sort=True) == 0).any():
        return False
    by_id = np.lexsort((numbers, ids))
    inside = np.diff(ids[by_id]) == 0
    grows = (np.diff(numbers[by_id])[inside] > 0).all()
    return bool(grows and (np.diff(others[by_id])[inside] >= 0).all())


def other_orders(
    columns: Sequence[ColumnProfile], order: Order, id: ColumnProfile
) -> list[ColumnProfile]:
    """Return the columns that could be the order, and would sort the rows of an id in another way.

    Args:
        columns: Columns that aren't part of the order.
        order: The order.
        id: Column of the id.
    """
    rows = sampled_ids(id)
    ids, numbers, found = id.codes[rows], order.numbers[rows], list[ColumnProfile]()
    for column in columns:
        if not _can_sort(column) or not is_known(column, id) or not _sorts(column, ids, rows):
            continue
        by_column = np.lexsort((numbers, column.numbers[rows], ids))
        steps = np.diff(numbers[by_column])[np.diff(ids[by_column]) == 0]
        if (steps < 0).any():
            found.append(column)
    return found


def doubtful_orders(columns: Sequence[ColumnProfile], id: ColumnProfile) -> list[Order]:
    """Return the orders that rows of an id may have, though neither values nor names say so.

    After the order by a column, there is that by this column within coarser ones in which it begins
    again.

    These are whole numbers that all differ or count the rows of each id, and numbers and times of
    day that are named like times, whose neighbours differ.
    """
    rows, found = sampled_ids(id), list[Order]()
    for column in columns:
        if column.kind not in ("number", "amount", "time") or column.distinct < 2:
            continue
        if not is_known(column, id):
            continue
        is_unique = column.distinct == column.rows and not column.has_decimals
        is_named = is_counting(column) or may_be_seconds(column)
        if is_unique or is_named or counts_rows(column.numbers[rows], id.codes[rows]):
            coarser = _coarser(column, columns, id)
            possible = [Order(*coarser, column)] if coarser else []
            for order in (*possible, Order(column)):
                steps = growth(order.numbers[rows], id.codes[rows], sort=True)
                if len(steps) and np.count_nonzero(steps) >= NEARLY_ALL * len(steps):
                    found.append(order)
    return found


def _coarser(
    column: ColumnProfile, columns: Sequence[ColumnProfile], id: ColumnProfile
) -> list[ColumnProfile]:
    """Return the columns with a coarser level within which a column begins again."""
    rows = sampled_ids(id)
    level = _level(column) or COUNTERS
    levels = [x for x in columns if _can_sort(x) and is_known(x, id) and _level(x) is not None]
    coarser = [x for x in levels if (_level(x) or 0) < min(level, LEVEL_OF_TIMES)]
    within = [x for x in coarser if _is_within(column, x, id.codes[rows], rows)]
    return sorted(within, key=lambda x: _level(x) or 0)


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


def _sorts(column: ColumnProfile, ids: Ids, rows: RowSelection) -> bool:
    """Return True if the numbers or times of a column within an id are its order.

    They are the order in these cases:

    - They are dates.
    - They grow from row to row by one and the same difference.
    - They are times of day, durations, or named like times or counters, and never decrease.
    - The column has no name, and they always increase.
    - The rows have another order, such as newest first, and these numbers sort them.

    Times that begin again, such as at midnight, aren't the order: the rows stand in it.

    Args:
        column: The column.
        ids: Code of the id of each row.
        rows: Rows to look at.
    """
    numbers = column.numbers[rows]
    if _begins_again(column, ids, rows) or has_years_last(column):
        return False
    if holds_dates(column):
        return True
    steps = growth(numbers, ids)
    if not len(steps):
        return is_time(column) or column.is_duration
    if steps.min() > 0 and are_equal(steps):
        return True
    if isinstance(column.name, int) and (steps > 0).all():
        return True
    is_named = is_time(column) or column.is_duration or is_counter(column)
    if is_named and ((steps >= 0).all() or is_calendar(column)):
        return True
    return _sorts_other_rows(column, numbers, ids, steps)


def _sorts_other_rows(column: ColumnProfile, numbers: Floats, ids: Ids, steps: Floats) -> bool:
    """Return True if numbers are the order of rows that aren't in this order.

    Nearly all numbers of an id differ, and one of these holds:

    - They are named like times, and never increase (the newest row comes first) or are evenly
      spaced.
    - They are Unix times.
    - They are whole numbers that are named like times of events or like counters.
    - They are evenly spaced whole numbers that don't only decrease. Those that only decrease may
      be the time that remains.

    Args:
        column: The column.
        numbers: Numbers of some rows.
        ids: Code of the id of each of them.
        steps: Growth of the numbers from row to row.
    """
    if is_span(column) or (is_code(column) and not is_counter(column)):
        return False
    gaps = growth(numbers, ids, sort=True)
    share = np.count_nonzero(gaps) / len(gaps)
    if share < NEARLY_ALL:
        return False
    is_even = gaps.min() > 0 and are_equal(gaps)
    if is_time(column) and ((steps <= 0).all() or is_even):
        return True
    if are_unix_times(column, numbers):
        return True
    if column.has_decimals:
        return False
    if is_event_time(column):
        return True
    if len(gaps) < FEWEST_COUNTED:
        return False
    return bool((is_counter(column) and share >= COUNTED) or (is_even and (steps > 0).any()))


def are_equal(steps: Floats) -> bool:
    """Return True if positive differences are equal but for rounding."""
    return bool(np.ptp(steps) <= EVEN * steps.max())


def counts_rows(numbers: Floats, ids: npt.NDArray[np.integer]) -> bool:
    """Return True if the sorted numbers of each id grow by one and the same difference."""
    gaps = growth(numbers, ids, sort=True)
    return bool(len(gaps) and gaps.min() > 0 and are_equal(gaps))
