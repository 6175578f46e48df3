"""Columns that order the rows of a sequence: numbers, dates or durations, read exactly."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Sequence, Set
from typing import Any, TypeAlias

import numpy as np

from seqtrain.tables.blocks import (
    Array,
    BadCellError,
    Cells,
    Coded,
    Float32s,
    Ints,
    Reasons,
    UnreadableError,
    as_list,
)
from seqtrain.tables.cells import (
    FLOAT32_MAX,
    is_number,
    is_plain,
    number_of,
    plain_numbers,
    problems_of_rows,
    text_of,
    with_point,
)
from seqtrain.tables.times import (
    DATE,
    DURATION,
    FORMS,
    NUMBER,
    SECOND,
    TIME_TYPES,
    read_duration,
    read_moment,
)
from seqtrain.text import quote

EXACT = 2**53
"""Largest size up to which every whole number is a float64."""
ORDINAL = re.compile(r"\s*([0-9]{1,9})(?:st|nd|rd|th|er|ère|e|º|ª)\s*")
"""A number such as 1st, which sorts as 1 does."""
WHOLE_NUMBER = re.compile(r"\s*[-+]?[0-9]{1,30}\s*")
ISO_DATES = re.compile(r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9]{2}:[0-9]{2}:[0-9]{2})?\n)+")
NUMBER_WITHIN = re.compile(
    r"(?P<before>[TD](?=[-+])|[^0-9]*)(?P<number>[-+]?[0-9]{1,18})(?P<after>[^0-9]*)"
)
PLAIN = ("", "")
"""A text with one number, such as frame_12.png, or the negative one of T-3; around a plain one."""
COUNTS_DOWN = re.compile(r"\b(?:ago|before|left|remaining|to go)$", re.IGNORECASE)
"""End of a text whose number falls as time goes on."""
Time: TypeAlias = int | float
"""Number by which a cell is sorted. Dates (since 1970) and durations are in nanoseconds."""


def read_time(cell: Any, type: str) -> tuple[Time | None, bool | None]:
    """Return the time in a cell, and True if it is a date that names its time zone.

    Args:
        cell: The cell.
        type: Type of the cell, a key of `TIME_TYPES`.

    Returns:
        Two values:

        - The time, or None if a number is missing.
        - True if a date has a time zone, False if it has none. None for other types.

    Raises:
        BadCellError: If the cell isn't of this type, or infinite.
    """
    if type == NUMBER:
        return _read_number(cell), None
    text = text_of(cell).strip()
    if type == DURATION:
        return read_duration(text), None
    return read_moment(text, type)


def possible_types(cell: Any) -> set[str]:
    """Return the keys of `TIME_TYPES` as which a cell can be read, none for a blank cell."""
    found = set()
    for type in TIME_TYPES:
        try:
            time, _ = read_time(cell, type)
        except BadCellError:
            continue
        if time is not None:
            found.add(type)
    return found


def common_type(cells: Iterable[Any], types: Set[str]) -> str | None:
    """Return the type as which all cells can be read, or None if there isn't exactly one.

    Args:
        cells: The cells. A cell that can't be read as any of the types is ignored.
        types: Types to choose from, keys of `TIME_TYPES`.
    """
    left = set(types)
    for cell in cells:
        left &= possible_types(cell) & types or left
    if len(left) == 1:
        return next(iter(left))
    return None


class TimeColumn:
    """A column of times that grows block by block.

    Args:
        type: Type of the cells, a key of `TIME_TYPES`, or None if the first cell decides.
        decimal: Decimal mark of numbers in texts.
    """

    def __init__(self, type: str | None = None, decimal: str = ".") -> None:
        self.type = type
        self.is_given = type is not None
        self.decimal = decimal
        self._parts = list[Array]()
        self._around: tuple[str, str] | None = None
        self._zones = dict[bool, tuple[int, str]]()

    def add(self, cells: Cells, lines: Ints) -> Reasons:
        """Append cells, and return the reason for each that can't be read, by its index.

        Args:
            cells: The cells.
            lines: Line of each cell.

        Raises:
            UnreadableError: If only some dates have a time zone: their order isn't known.
        """
        times, problems = self.times_of(cells, lines)
        self._parts.append(times)
        return problems

    def times_of(self, cells: Cells, lines: Ints) -> tuple[Array, Reasons]:
        """Return the times of cells, and the reason for each that can't be read, by its index.

        The time of a cell that can't be read is 0. Arguments and errors are those of `add`.
        """
        if isinstance(cells, Coded):
            # Each distinct value is read once, at its first line, in the order of the rows.
            _, first, codes = np.unique(cells.codes, return_index=True, return_inverse=True)
            order = np.argsort(first)
            values = cells[first[order]].cells()
            found, wrong = self.times_of(values, lines[first[order]])
            places = np.argsort(order)[codes].astype(np.int32)
            return found[places], problems_of_rows(places, wrong)
        if self.type in (None, NUMBER) and self.decimal == ".":
            exact = exact_numbers(cells)
            if exact is not None and self._around in (None, PLAIN):
                if len(exact):
                    self.type = NUMBER
                    self._around = PLAIN
                return exact, {}
        if self.type == DATE:
            dates = _iso_times(as_list(cells))
            if dates is not None:
                self._check_zone(cells[0], int(lines[0]), has_zone=False)
                return dates, {}
        times = []
        problems = {}
        for row, cell in enumerate(as_list(cells)):
            try:
                times.append(self._read(cell, int(lines[row])))
            except BadCellError as error:
                times.append(0)
                problems[row] = str(error)
        return _narrow(times), problems

    def times(self) -> Array:
        """Return the time of each row, (N,): nanoseconds or numbers, none of them rounded."""
        parts = [part for part in self._parts if len(part)] or [np.zeros(0)]
        if len({part.dtype.kind for part in parts}) == 1:
            return np.concatenate(parts)
        return _narrow(np.concatenate([part.astype(object) for part in parts]).tolist())

    def growth(self, times: Array, starts: Ints) -> tuple[Float32s, Reasons]:
        """Return the increase of the time from step to step, and the steps where it is too large.

        It is 0 for the first step of a sequence, and in seconds between dates and durations.

        Args:
            times: Sorted times of the steps.
            starts: Index of the first step of each sequence.
        """
        if times.dtype.kind in "iu" and len(times) and np.ptp(times.astype(float)) > 2**62:
            times = times.astype(object)  # the difference may be beyond int64
        growth = np.diff(times, prepend=times[:1])
        growth[starts] = 0
        if self.type != NUMBER:
            growth = growth // SECOND + growth % SECOND / SECOND  # rounded once
        numbers = growth.astype(np.float64)
        beyond = np.flatnonzero(np.abs(numbers) > FLOAT32_MAX)
        problems = {int(row): f"{numbers[row]:g} is too large for float32" for row in beyond}
        numbers[beyond] = np.nan
        return numbers.astype(np.float32), problems

    def _read(self, cell: Any, line: int) -> Time:
        """Return the time in a cell. The first cell decides the type unless it is given.

        Raises:
            BadCellError: If the cell can't be read.
        """
        text = cell
        if isinstance(cell, str) and is_number(with_point(cell, self.decimal)):
            text = with_point(cell, self.decimal)
        if self.type is None:
            # A number is also a duration of seconds, and 1/2/2024 has two readings.
            self.type = max(possible_types(text), default=None)
        try:
            time, has_zone = read_time(text, self.type or NUMBER)
        except BadCellError:
            time = None
            has_zone = None
        if self.type in (None, NUMBER) and isinstance(cell, str):
            time = self._number_within(text, time)
        if time is None:
            expected = TIME_TYPES.get(self.type or "", f"a number or {TIME_TYPES[DATE]}")
            as_in = ", as in train's first row" if self.is_given else ""
            raise BadCellError(f"found {quote(str(cell))}; expected {expected}{as_in}")
        if has_zone is not None:
            self._check_zone(text, line, has_zone=has_zone)
        return time

    def _number_within(self, text: str, number: Time | None) -> Time | None:
        """Return the number of a cell: that of a plain number, or the only one in its text.

        The text around the number must be that of the first cell, none for plain numbers, and must
        not tell that it counts down.

        Args:
            text: The cell.
            number: Its number if it is a plain one, or None.

        Returns:
            The number, or None if it can't be read.
        """
        around = PLAIN
        if number is None:
            match = NUMBER_WITHIN.fullmatch(text.strip())
            if match is None or COUNTS_DOWN.search(match["after"]):
                return None
            number = int(match["number"])
            around = (match["before"], match["after"])
        self.type = NUMBER
        self._around = self._around or around
        if around != self._around:
            return None
        return number

    def _check_zone(self, cell: Any, line: int, *, has_zone: bool) -> None:
        self._zones.setdefault(has_zone, (line, str(cell)))
        if len(self._zones) == 1:
            return
        other, example = self._zones[not has_zone]
        zoned, without = (line, other) if has_zone else (other, line)
        raise UnreadableError(
            line,
            f"{quote(str(cell))} and {quote(example)} on line {other}: only line {zoned} names a "
            f"time zone, line {without} doesn't; write all with one",
        )


def sorting_times(columns: Sequence[TimeColumn]) -> list[Array]:
    """Return the times by which rows are sorted, (N,) each, those that decide first at first.

    A date and a time of day in the column after it are one time.
    """
    found = [column.times() for column in columns]
    if len(columns) > 1 and columns[0].type in FORMS and columns[1].type == DURATION:
        moments = map(operator.add, found[0].tolist(), found[1].tolist())
        found[:2] = [_narrow(list(moments))]
    return found


def exact_numbers(cells: Cells) -> Array | None:
    """Return cells as an array of numbers, or None if one isn't a number or would be rounded."""
    if isinstance(cells, np.ndarray):
        if cells.dtype.kind in "iuf" and np.isfinite(cells).all():
            return cells
        return None
    types = set(map(type, cells))
    if types == {str}:
        if not is_plain("".join(cells)):
            return None
    elif not types <= {int, float}:
        return None
    try:
        if float not in types:
            return np.array(list(map(int, cells)), np.int64)
    except (ValueError, OverflowError):
        pass
    try:
        found = np.array(list(map(float, cells)))
    except (ValueError, OverflowError):
        return None
    if (np.abs(found) < EXACT).all():
        return found
    return None


def _read_number(cell: Any) -> Time | None:
    if isinstance(cell, int) or (isinstance(cell, str) and WHOLE_NUMBER.fullmatch(cell)):
        return int(cell)
    ordinal = ORDINAL.fullmatch(cell) if isinstance(cell, str) else None
    if ordinal is not None:
        return int(ordinal[1])
    found = plain_numbers([cell.strip() if isinstance(cell, str) else cell])
    number = number_of(cell) if found is None else float(found[0])
    # In other columns, a time of day is a number of seconds, and true is 1.
    is_other = isinstance(cell, str) and found is None and number == number
    if is_other or number in (float("inf"), float("-inf")):
        raise BadCellError(f"found {quote(str(cell))}; expected a finite number")
    if number != number:
        return None
    return number


def _iso_times(cells: list[Any]) -> Ints | None:
    """Return the nanoseconds of ISO dates without a zone, or None.

    It is ten times as fast as `read_moment`.
    """
    try:
        if not ISO_DATES.fullmatch("\n".join([*cells, ""])):
            return None
        seconds = np.array(cells, "datetime64[s]").astype(np.int64)
    except (TypeError, ValueError):
        return None
    is_small = np.abs(seconds) < 2**62 // SECOND
    if is_small.all():
        return seconds * SECOND
    return None


def _narrow(times: list[Any]) -> Array:
    """Return times as int64 or float64 if this rounds none of them, or else as Python numbers."""
    types = set(map(type, times))
    if types == {int} and max(map(abs, times)) < 2**63:
        return np.array(times, np.int64)
    if types == {float} or (types == {int, float} and max(map(abs, times)) < EXACT):
        return np.array(times, np.float64)
    found = np.empty(len(times), object)
    found[:] = times
    return found
