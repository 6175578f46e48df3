"""Columns that sort the rows of an id: dates, times, and numbers that count."""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from seqtrain.proposal.names import is_code, is_counter, is_event_time, is_span, is_time
from seqtrain.proposal.profile import LIST_KINDS, ColumnProfile, Floats

CALENDAR = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])([0-2]\d|3[01])(\d{4}(\d\d)?)?")
"""Pattern of a date written as a whole number, such as 20240301, with a time of day or without."""
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
EPOCHS = (6e8, 2.2e9)
"""Unix times of 1989 to 2039. Numbers of this size are times whatever the name of the column."""
MOST_TOTALS = 2
"""Most rows at the end of a table that may hold totals."""
RowSelection = npt.NDArray[np.intp] | slice
Ids = npt.NDArray[np.int32]


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


def find_order(columns: Sequence[ColumnProfile], id: ColumnProfile) -> ColumnProfile | None:
    """Return the column that sorts the rows of an id, or None if no column does.

    Dates come before times and numbers, and then the column with most distinct values.
    """
    rows = sampled_ids(id)
    ids = id.codes[rows]
    found = {}
    for number, column in enumerate(columns):
        if column.kind in LIST_KINDS or not is_known(column, id):
            continue
        if _sorts(column, column.numbers[rows], ids):
            is_date = column.kind == "time" and not column.is_duration
            found[is_date, len(column.values), -number] = column
    if not found:
        return None
    best = found[max(found)]
    for column in found.values():
        if _is_finer(column.numbers[rows], best.numbers[rows], ids):
            return column
    return best


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


def doubtful_orders(columns: Sequence[ColumnProfile], id: ColumnProfile) -> list[ColumnProfile]:
    """Return the columns that may sort the rows of an id, though neither values nor names say so.

    These are whole numbers that all differ, and numbers that are named like times, whose neighbours
    differ.
    """
    rows = sampled_ids(id)
    found = []
    for column in columns:
        if column.kind != "number" or not is_known(column, id) or column.distinct < 2:
            continue
        is_unique = column.distinct == column.rows and not column.has_decimals
        is_named = is_time(column) or is_counter(column)
        if is_unique or is_named:
            steps = growth(column.numbers[rows], id.codes[rows], sort=True)
            if len(steps) and np.count_nonzero(steps) >= NEARLY_ALL * len(steps):
                found.append(column)
    return found


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


def _sorts(column: ColumnProfile, numbers: Floats, ids: Ids) -> bool:
    """Return True if numbers or times within an id are its order.

    They are the order in these cases:

    - They are dates.
    - They grow from row to row by one and the same difference.
    - They are times of day, durations, or named like times or counters, and never decrease.
    - The column has no name, and they always increase.
    - The rows have another order, such as newest first, and these numbers sort them.
    """
    if column.kind == "time" and not column.is_duration:
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


def is_dated(column: ColumnProfile) -> bool:
    """Return True if a column of times or numbers holds dates."""
    is_date = column.kind == "time" and not column.is_duration
    return is_date or is_calendar(column) or _are_epochs(column.value_numbers)


def is_calendar(column: ColumnProfile) -> bool:
    """Return True if all cells are dates written as whole numbers, such as 20240301."""
    return all(isinstance(x, str) and CALENDAR.fullmatch(x) for x in column.values)


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
