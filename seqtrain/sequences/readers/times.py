"""Dates, times and durations in cells, as exact numbers of nanoseconds."""

import re
from collections.abc import Iterable, Set
from contextlib import suppress
from datetime import datetime, timezone

from seqtrain.sequences.examples import BadRow
from seqtrain.sequences.readers.numbers import number_of
from seqtrain.text import quote

NUMBER, DATE, DAY_FIRST, MONTH_FIRST, DURATION = (
    "number",
    "date",
    "day_first",
    "month_first",
    "duration",
)
ORDER_TYPES = {
    NUMBER: "a number",
    DATE: "an ISO date such as 2024-12-31",
    DAY_FIRST: "a date such as 31.12.2024",
    MONTH_FIRST: "a date such as 12/31/2024",
    DURATION: "a time such as 12:30",
}
"""Types of the cells of `data.order`, with their names in messages."""
SECOND = 1_000_000_000
"""Number of nanoseconds in a second."""
DAY = 86_400
"""Number of seconds in a day."""
EPOCH = datetime(1970, 1, 1)
WHOLE_NUMBER = re.compile(r"\s*[-+]?[0-9]{1,30}\s*")
DECIMALS = re.compile(r"(:[0-9]{2})[.,]([0-9]+)")
"""Decimals of the seconds of an ISO date."""
LOCAL_DATE = re.compile(
    r"([0-9]{1,2})([./-])([0-9]{1,2})\2([0-9]{4})"
    r"(?:[ T,]+([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?(?: ?([AaPp])[Mm])?)?"
)
"""A date whose year comes last, with an optional time of day."""
CLOCK = re.compile(
    r"(?:([-+]?[0-9]{1,9}) days?,? )?([-+]?)([0-9]{1,9}):([0-5][0-9])"
    r"(?::([0-5][0-9])(?:[.,]([0-9]+))?)?"
)
"""A time of day or a duration: HH:MM, HH:MM:SS, 2 days 03:04:05."""
ISO_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?[0-9]{1,9})W)?(?:([-+]?[0-9]{1,9})D)?(?:T(?:([-+]?[0-9]{1,9})H)?"
    r"(?:([-+]?[0-9]{1,9})M)?(?:([-+]?)([0-9]{1,12})(?:\.([0-9]+))?S)?)?"
)
"""A duration as ISO 8601 and pandas write it, such as P1DT2H or P-1DT23H59M59.5S."""


def possible_types(cell: object) -> set[str]:
    """Return the keys of `ORDER_TYPES` as which a cell can be read.

    The set is empty for a blank cell.
    """
    found = set[str]()
    for order_type in ORDER_TYPES:
        with suppress(BadRow):
            if read_time(cell, order_type)[0] is not None:
                found.add(order_type)
    return found


def read_time(cell: object, order_type: str) -> tuple[float | int | None, bool | None]:
    """Return the number by which a cell of the order column is sorted, and if it has a time zone.

    Args:
        cell: The cell.
        order_type: Type of the cell, a key of `ORDER_TYPES`.

    Returns:
        Two values:

        - The number. Dates (since 1970) and durations are in nanoseconds. A missing number is None.
        - True if a date has a time zone, False if it has none. None for other types.

    Raises:
        BadRow: If the cell isn't of this type, or infinite.
    """
    if order_type == NUMBER:
        if isinstance(cell, int) or (isinstance(cell, str) and WHOLE_NUMBER.fullmatch(cell)):
            return int(cell), None
        number = number_of(cell)
        if number in (float("inf"), float("-inf")):
            raise BadRow(f"found {quote(str(cell))}; expected a finite number")
        return (None if number != number else number), None
    text = str(cell).strip()
    if order_type == DURATION:
        return _duration(text), None
    if order_type != DATE:
        text = _iso_date(text, day_first=order_type == DAY_FIRST)
    return _date(text)


def _date(text: str) -> tuple[int, bool]:
    """Return the nanoseconds since 1970 of an ISO date, and True if it has a time zone.

    Raises:
        BadRow: If the text isn't an ISO date.
    """
    plain, decimals = text.replace("Z", "+00:00").replace("/", "-"), ""
    found = DECIMALS.search(plain) if "." in plain or "," in plain else None
    if found is not None:
        decimals, plain = found[2], DECIMALS.sub(r"\1", plain, count=1)
    try:
        moment = datetime.fromisoformat(plain)
    except ValueError:
        raise BadRow(f"found {quote(text)}; expected {ORDER_TYPES[DATE]}") from None
    has_zone = moment.tzinfo is not None
    if has_zone:
        try:
            moment = moment.astimezone(timezone.utc).replace(tzinfo=None)
        except OverflowError:
            raise BadRow(f"found {quote(text)}; expected years from 1 to 9999") from None
    time = moment - EPOCH
    rest = time.microseconds * 1000
    if decimals:
        return _nanoseconds(time.days * DAY + time.seconds, decimals) + rest, has_zone
    return (time.days * DAY + time.seconds) * SECOND + rest, has_zone


def _iso_date(text: str, *, day_first: bool) -> str:
    """Convert a date whose year comes last to an ISO date.

    Args:
        text: The date, such as 31.12.2024.
        day_first: True if the day comes before the month.

    Raises:
        BadRow: If the text isn't such a date.
    """
    found = LOCAL_DATE.fullmatch(text)
    if found is None or (found[2] == "." and not day_first):
        expected = ORDER_TYPES[DAY_FIRST if day_first else MONTH_FIRST]
        raise BadRow(f"found {quote(text)}; expected {expected}")
    day, month = (found[1], found[3]) if day_first else (found[3], found[1])
    hour = int(found[5] or 0)
    if found[9]:
        hour = hour % 12 + 12 * (found[9] in "pP")
    decimals = f".{found[8]}" if found[8] else ""
    clock = f"{hour:02d}:{found[6] or '00'}:{found[7] or '00'}{decimals}"
    return f"{found[4]}-{int(month):02d}-{int(day):02d}T{clock}"


def _duration(text: str) -> int:
    """Return a time of day, or a duration, in nanoseconds.

    Raises:
        BadRow: If the text is neither.
    """
    found = CLOCK.fullmatch(text)
    if found is not None:
        days, sign, hours, minutes, whole, decimals = found.groups()
        seconds = int(hours) * 3600 + int(minutes) * 60 + int(whole or 0)
        clock = _nanoseconds(seconds, decimals or "")
        return int(days or 0) * DAY * SECOND + (-clock if sign == "-" else clock)
    found = ISO_DURATION.fullmatch(text)
    if found is None or text[-1:] in ("P", "T"):
        raise BadRow(f"found {quote(text)}; expected {ORDER_TYPES[DURATION]}")
    sign, *parts, sign_of_seconds, whole, decimals = found.groups()
    scales = (7 * DAY, DAY, 3600, 60)
    seconds = sum(int(part or 0) * scale for part, scale in zip(parts, scales, strict=True))
    rest = _nanoseconds(int(whole or 0), decimals or "")
    total = seconds * SECOND + (-rest if sign_of_seconds == "-" else rest)
    return -total if sign == "-" else total


def _nanoseconds(seconds: int, decimals: str) -> int:
    """Return a number of seconds in nanoseconds.

    Args:
        seconds: The whole seconds.
        decimals: The digits after the decimal mark.

    Raises:
        BadRow: If there are more than nine digits.
    """
    if len(decimals) > 9 and decimals[9:].strip("0"):
        raise BadRow(f"found {len(decimals)} decimals of a second; expected at most nine")
    return seconds * SECOND + int(decimals[:9].ljust(9, "0"))


def common_type(cells: Iterable[object], types: Set[str]) -> str | None:
    """Return the type as which all cells can be read, or None if there isn't exactly one.

    Args:
        cells: The cells. A cell that can't be read as any of the types is ignored.
        types: Types to choose from, keys of `ORDER_TYPES`.
    """
    left = types
    for cell in cells:
        left &= possible_types(cell) & types or left
    return next(iter(left)) if len(left) == 1 else None
