"""Dates, times of day and durations in texts, as exact numbers of nanoseconds."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import date
from typing import TypeAlias

from seqtrain.tables.blocks import BadCellError
from seqtrain.text import quote

NUMBER, DATE, DAY_FIRST, MONTH_FIRST, DURATION, WEEKDAY = (
    "number",
    "date",
    "day_first",
    "month_first",
    "duration",
    "weekday",
)
TIME_TYPES = {
    NUMBER: "a number",
    DATE: "an ISO date such as 2024-12-31",
    DAY_FIRST: "a date such as 31.12.2024",
    MONTH_FIRST: "a date such as 12/31/2024",
    DURATION: "a time such as 12:30",
    WEEKDAY: "a weekday such as Mon or Monday 12:30",
}
"""Types of the cells of a column of times, with their names in messages."""
SECOND = 1_000_000_000
"""Number of nanoseconds in a second."""
DAY = 86_400
"""Number of seconds in a day."""
EPOCH = date(1970, 1, 1).toordinal()
MONTHS = (
    "january januar janvier januari enero gennaio janeiro janner",
    "february februar fevrier februari febrero febbraio fevereiro feber",
    "march marz maerz mrz mars maart mrt marzo marco",
    "april avril abril aprile",
    "may mai mei maj mayo maggio maio",
    "june juni juin junio giugno junho",
    "july juli juillet julio luglio julho",
    "august aout augustus agosto",
    "september septembre septiembre setiembre settembre setembro",
    "october oktober octobre octubre ottobre outubro",
    "november novembre noviembre novembro",
    "december dezember decembre diciembre dicembre dezembro",
)
"""Names of each month in some languages, without accents. A date has the first letters or all."""
WEEKDAYS = (
    "monday montag lundi lunes lunedi segunda maandag mo",
    "tuesday dienstag mardi martes martedi terca dinsdag di tu",
    "wednesday mittwoch mercredi miercoles mercoledi quarta woensdag mi we",
    "thursday donnerstag jeudi jueves giovedi quinta donderdag do th",
    "friday freitag vendredi viernes venerdi sexta vrijdag fr",
    "saturday samstag sonnabend samedi sabado sabato zaterdag sa",
    "sunday sonntag dimanche domingo domenica zondag so su",
)
"""Names of each weekday in these languages, and their two letters in English and German."""
LOG_YEAR = 2000
"""Year of dates without a year, as syslog writes them. It is a leap year: Feb 29 is a date."""
Moment: TypeAlias = tuple[int, bool]
"""Nanoseconds since 1970, and True if the date names its time zone."""

DECIMALS = r"(?:(?:[.,]|:(?=\d{3}))(?P<decimals>\d+))?"
HALF = r"(?:[ \u00a0\u202f]?(?P<half>[AaPp])\.?[ \u00a0]?[Mm]\.?)?"
CLOCK = (
    r"(?P<hour>\d{1,2})(?P<colon>[:.])(?P<minute>\d\d)"
    rf"(?:(?P=colon)(?P<second>\d\d){DECIMALS})?{HALF}"
)
ZONE = r"(?:\s*(?P<zone>Z|UTC|GMT|(?:UTC|GMT)?[+-]\d\d(?::?\d\d(?::?\d\d)?)?))?"
YEAR, DAY_NAME = r"(?P<year>\d{4}|\d\d)", r"(?:(?P<word>[A-Za-z-]{2,14})[.,]{0,2} )?"
KNOWN_DAY = r"(?:(?P<day_name>[A-Za-z]{2,})(?:-feira)?[.,]{0,2} +)?"
DAY_OF_MONTH, OF = r"(?P<day>\d\d?)(?:er|o|st|nd|rd|th|\.)?", r"(?:del? )?"
MONTH_NAME = r"(?P<name>[A-Za-z]{3,})\.?"
DATE_FORMS = (
    # 2024-12-31, 2024-12-31 23:59:59.5+01:00, 2015-10-18-18.01.52.789000, 2024/12/31, 2024.12.31,
    # 2024:12:31 23:59:59 as in photographs, Mo 2024-12-30 23:59
    rf"{KNOWN_DAY}(?P<year>\d{{4}})(?P<mark>[-/.:_])(?P<month>\d\d?)(?P=mark)(?P<day>\d\d?)"
    rf"(?:[T _-]+{CLOCK})?{ZONE}",
    r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)",
    # 24/12/31 23:59, although the last number may be the year, too
    rf"(?P<year>\d\d)(?P<mark>[-/])(?P<month>\d\d)(?P=mark)(?P<day>\d\d)(?:[T _-]+{CLOCK})?",
    # 2024-12-31T23+01:00
    rf"(?P<year>\d{{4}})-(?P<month>\d\d)-(?P<day>\d\d)[T ](?P<hour>\d\d){ZONE}",
    # 20151018T180204, 20151018_180204, 20240101T103000.123456789
    r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)[T _-](?P<hour>\d\d)(?:(?P<minute>\d\d)"
    rf"(?:(?P<second>\d\d){DECIMALS})?)?{ZONE}",
    # 20151018-18:02:04:250
    rf"(?P<year>\d{{4}})(?P<month>\d\d)(?P<day>\d\d)[T -]{CLOCK}{ZONE}",
    # 2024_12_31_23_59_59, 2024-12-31-23-59-59, as in names of files
    r"(?P<year>\d{4})(?P<mark>[-_])(?P<month>\d\d)(?P=mark)(?P<day>\d\d)[-_ T](?P<hour>\d\d)"
    r"(?P<colon>[-_])(?P<minute>\d\d)(?P=colon)(?P<second>\d\d)",
    # 151018 180153
    r"(?P<year>\d\d)(?P<month>\d\d)(?P<day>\d\d)[T _](?P<hour>\d\d)(?P<minute>\d\d)"
    rf"(?P<second>\d\d){DECIMALS}",
    # Oct 18 18:02:25
    rf"{MONTH_NAME} +(?P<day>\d\d?) +{CLOCK}",
    # 18/Oct/2015:18:02:40 +0000, 18-OCT-15 06.02.40 PM, 18OCT2015:18:02:40, 18. Oktober 2015,
    # 18 de octubre de 2015
    rf"{DAY_NAME}{DAY_OF_MONTH}[/ -]?{OF}{MONTH_NAME}[/ -]?{OF}{YEAR}(?:[:T ,]+{CLOCK})?{ZONE}",
    # Sun Oct 18 2015 18:01:50 GMT+0000 (UTC), Oct 18, 2015, 6:01 PM
    rf"{DAY_NAME}{MONTH_NAME} +{DAY_OF_MONTH},? +(?P<year>\d{{4}})"
    rf"(?:[T ,]+{CLOCK})?{ZONE}(?: \([A-Za-z .]+\))?",
    # Sun Oct 18 18:01:50 UTC 2015
    rf"{DAY_NAME}{MONTH_NAME} +(?P<day>\d\d?) +{CLOCK}{ZONE} (?P<year>\d{{4}})",
    # Dec 2024, Dezember 2024, 2024-Dec, 2024-Dec-31
    rf"{MONTH_NAME}[ /-]{OF}(?P<year>\d{{4}})",
    rf"(?P<year>\d{{4}})[ /-]{MONTH_NAME}(?:[ /-](?P<day>\d\d?))?",
    # 2024年12月31日 23:59, 2024년 12월 31일
    rf"(?P<year>\d{{4}})[年년] ?(?P<month>\d\d?)[月월] ?(?P<day>\d\d?)[日일](?: ?{CLOCK})?",
    # 2024. 12. 31. 오후 11:59
    rf"(?P<year>\d{{4}})\. ?(?P<month>\d\d?)\. ?(?P<day>\d\d?)\.?(?: {CLOCK})?",
    # Dec, Dezember
    MONTH_NAME,
)
"""Forms of dates. Brackets around a date, as in the logs of web servers, are left out before."""
CENTURIES, WEEK = r"(?P<year>(?:19|20)[0-9]{2})", r"(?:KW|W) ?(?P<week>[0-9]{1,2})"
PERIOD_FORMS = (
    # 2024-12, 12/2024
    rf"{CENTURIES}[-/](?P<month>1[0-2]|0?[1-9])",
    rf"(?P<month>1[0-2]|0?[1-9])[-/]{CENTURIES}",
    # 2024-Q4, Q4 2024, T4 2024, 4. Quartal 2024, Q4/24
    rf"{CENTURIES}[ /-]?[QT](?P<quarter>[1-4])",
    rf"[QT](?P<quarter>[1-4])[ /-]?{CENTURIES}",
    rf"(?P<quarter>[1-4])(?:\.|er|e)? ?(?:Q|Quartal|[Tt]rimestre)[ /-]?{CENTURIES}",
    r"Q(?P<quarter>[1-4])[ /'-](?P<year>[0-9]{2})",
    # 2024-H2, H2 2024, S2 2024, 2. Halbjahr 2024
    rf"{CENTURIES}[ /-]?[HS](?P<half_year>[12])",
    rf"[HS](?P<half_year>[12])[ /-]?{CENTURIES}",
    rf"(?P<half_year>[12])(?:\.|er|e)? ?(?:[HS]|Halbjahr|[Ss]emestre)[ /-]?{CENTURIES}",
    # 2024-W51, 2024-W51-2, KW 51/2024
    rf"{CENTURIES}[ /-]?{WEEK}(?:-?(?P<weekday>[1-7]))?",
    rf"{WEEK}[ /-]{CENTURIES}",
)
"""Forms of months, quarters, half years and weeks, which are read as their first day."""


def _local_dates(first: str, other: str, marks: str) -> list[re.Pattern[str]]:
    """Return the forms of dates whose year comes last, or is missing before a time of day.

    A weekday may stand before them, such as Sa 03.02.2024.
    """
    day = rf"(?P<{first}>\d{{1,2}})(?P<mark>[%s])(?P<{other}>\d{{1,2}})"
    forms = (rf"{day % marks}(?P=mark){YEAR}(?:[ T,]+{CLOCK})?", rf"{day % './-'} {CLOCK}")
    return [re.compile(KNOWN_DAY + form, re.ASCII) for form in forms]


FORMS = {
    DATE: [re.compile(form, re.ASCII) for form in (*PERIOD_FORMS, *DATE_FORMS)],
    DAY_FIRST: _local_dates("day", "month", "./-"),
    MONTH_FIRST: _local_dates("month", "day", "/-"),
    # Mon, Montag 12:30
    WEEKDAY: [re.compile(rf"(?P<weekday_name>[A-Za-z]{{2,}})(?:-feira)?\.?(?:,? +{CLOCK})?")],
}
"""Forms of each type of date."""
TIME_OF_DAY = re.compile(
    r"(?:(?P<days>[-+]?\d{1,9}) days?,? )?(?P<sign>[-+]?)(?P<hour>\d{1,9}):(?P<minute>[0-5]\d)"
    rf"(?::(?P<second>[0-5]\d)(?:[.,](?P<decimals>\d+))?)?{HALF}",
    re.ASCII,
)
"""A time of day or a duration: HH:MM, HH:MM:SS, 3:04 PM, 2 days 03:04:05."""
POINTED_CLOCK = re.compile(r"([01][0-9]|2[0-3])\.([0-5][0-9])\.([0-5][0-9])")
"""A time of day such as 00.31.00. It may be a date, too: 12.05.24."""
STOPWATCH = re.compile(
    r"(?P<sign>[-+]?)(?P<minute>\d{1,9}):(?P<second>[0-5]\d)[.,](?P<decimals>\d+)", re.ASCII
)
"""Minutes and seconds of a stopwatch, such as 1:30.356. (For ISO 8601 these are hours, minutes.)"""
PART_WITH_UNIT = re.compile(r"([0-9]{1,18})(?:[.,]([0-9]{1,9}))? ?([A-Za-zµμ]+)")
WITH_UNITS = re.compile(
    rf"(?P<sign>[-+]?)(?P<parts>{PART_WITH_UNIT.pattern}(?:,? ?{PART_WITH_UNIT.pattern})*)"
)
HOURS_AND_MINUTES = re.compile(r"([0-9]) ?h ?([0-5]?[0-9])$")
"""Times with their units, such as 12 ms, 3 h 15 min, 14h30 or 2 days; and hours at their end."""
UNITS_OF_TIME: tuple[tuple[str, int], ...] = (
    ("weeks?|wk", 7 * DAY * SECOND),
    ("d|days?|tage?|jours?|dias?", DAY * SECOND),
    ("h|hrs?|hours?|std|stunden?|heures?|horas?", 3600 * SECOND),
    ("m|mins?|minutes?|minuten?|minutos?", 60 * SECOND),
    ("s|secs?|seconds?|sek|sekunden?|secondes?|segundos?", SECOND),
    ("ms|msecs?|millis?|milliseconds?", 1_000_000),
    ("us|µs|μs|microseconds?", 1000),
    ("ns|nanoseconds?", 1),
)
"""Names of units, and their nanoseconds, from the largest on."""
WORDS_AT_TIMES = re.compile(
    r"(?<=\d),? +(?:um|at|a|a las|alle|om|as|-|\u2013) +(?=\d)|(?<=\d) ?Uhr$", re.ASCII
)
"""Words between a date and a time of day, or after it."""
CLOCK_IN_WORDS = re.compile(
    r"(\d{1,2})[時时点點시] ?(\d{1,2})[分분](?: ?(\d{1,2})[秒초])?", re.ASCII
)
HALF_BEFORE = re.compile(r"(?:(오전|上午|午前)|(?:오후|下午|午後)) ?(\d[\d:.]*)", re.ASCII)
"""A time of day such as 14時05分, and one after the half of the day, such as 오후 2:05."""
ISO_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?\d{1,9})W)?(?:([-+]?\d{1,9})D)?(?:T(?:([-+]?\d{1,9})H)?"
    r"(?:([-+]?\d{1,9})M)?(?:([-+]?)(\d{1,12})(?:\.(\d+))?S)?)?",
    re.ASCII,
)
"""A duration as ISO 8601 and pandas write it, such as P1DT2H or P-1DT23H59M59.5S."""


def read_moment(text: str, type: str) -> Moment:
    """Return the moment of a date, or of a weekday in the first week of `LOG_YEAR`.

    Args:
        text: The date, with or without a time of day; or a month or a week.
        type: Type of the date, a key of `FORMS`.

    Raises:
        BadCellError: If the text isn't a date of this type that can be read in one way only.
    """
    stripped = _plain(_plain_clock(text).strip().removeprefix("[").removesuffix("]"))
    for form in FORMS[type]:
        found = form.fullmatch(stripped)
        if found is not None:
            return _moment(found.groupdict(""), text, type)
    raise _unlike(text, type)


def read_duration(text: str) -> int:
    """Return a time of day, or a duration, in nanoseconds.

    Raises:
        BadCellError: If the text is neither.
    """
    text = _plain_clock(text.strip().removesuffix("Uhr").rstrip())
    if POINTED_CLOCK.fullmatch(text):
        text = text.replace(".", ":")
    found = WITH_UNITS.fullmatch(HOURS_AND_MINUTES.sub(r"\1h\2min", text))
    if found is not None:
        return _signed(found["sign"], _sum_of_units(found["parts"], text))
    found = STOPWATCH.fullmatch(text)
    if found is not None:
        seconds = int(found["minute"]) * 60 + int(found["second"])
        return _signed(found["sign"], _nanoseconds(seconds, found["decimals"]))
    found = TIME_OF_DAY.fullmatch(text)
    if found is not None:
        hour = _hour_of_day(int(found["hour"]), found["half"] or "", text)
        seconds = hour * 3600 + int(found["minute"]) * 60 + int(found["second"] or 0)
        clock = _signed(found["sign"], _nanoseconds(seconds, found["decimals"] or ""))
        return int(found["days"] or 0) * DAY * SECOND + clock
    found = ISO_DURATION.fullmatch(text)
    if found is None or text[-1:] in ("P", "T"):
        raise _unlike(text, DURATION)
    sign, *parts, sign_of_seconds, whole, decimals = found.groups()
    scales = (7 * DAY, DAY, 3600, 60)
    seconds = sum(int(part or 0) * scale for part, scale in zip(parts, scales, strict=True))
    rest = _nanoseconds(int(whole or 0), decimals or "")
    return _signed(sign, seconds * SECOND + _signed(sign_of_seconds, rest))


def has_one_unit(text: str) -> bool:
    """Return True for a number with one unit, which need not be a unit of time: 5 m."""
    return PART_WITH_UNIT.fullmatch(text.lstrip("+-")) is not None


def _sum_of_units(text: str, whole: str) -> int:
    """Return the nanoseconds of a time with units, from the largest unit to the smallest.

    Args:
        text: The time without its sign.
        whole: The time, for the message.

    Raises:
        BadCellError: If a unit isn't known or repeats, or is m alone, which may be another unit. If
            a part is as much as a larger unit, as in 3 h 75 min.
    """
    total, last, parts = 0, -1, PART_WITH_UNIT.findall(text)
    for number, decimals, unit in parts:
        places = (at for at, (names, _) in enumerate(UNITS_OF_TIME) if re.fullmatch(names, unit))
        place = next(places, -1)
        if place <= last or (unit == "m" and len(parts) == 1):
            raise _unlike(whole, DURATION)
        size = UNITS_OF_TIME[place][1]
        if last >= 0 and int(number) * size >= UNITS_OF_TIME[last][1]:
            raise _unlike(whole, DURATION)
        total += int(number) * size + int(decimals or 0) * size // 10 ** len(decimals)
        last = place
    return total


def _moment(parts: dict[str, str], text: str, type: str) -> Moment:
    """Return the moment of the parts of a date.

    Args:
        parts: Texts of the year, month, day and so on, "" for a missing one. The year may have two
            digits, `name` is the name of a month, and `half` the first letter of AM or PM. A month,
            a quarter or a week begins with its first day.
        text: The date, for the message.
        type: Type of the date, for the message.
    """
    decimals = parts.pop("decimals", "")
    found = {key: int(part) for key, part in parts.items() if part.isdigit()}
    hour, minute, second = (found.get(key, 0) for key in ("hour", "minute", "second"))
    year = found.get("year", LOG_YEAR)
    month = found.get("month", 1)
    if "quarter" in found:
        month = 3 * found["quarter"] - 2
    if "half_year" in found:
        month = 6 * found["half_year"] - 5
    if parts.get("day_name") and not _place_of(parts["day_name"].lower(), WEEKDAYS):
        raise _unlike(text, type)
    named = parts.get("day_name") or parts.get("word") or ""
    if len(parts.get("year", "")) == 2:
        year += 1900 if year >= 70 else 2000
    if parts.get("name"):
        month = _place_of(parts["name"].lower(), MONTHS)
    hour = _hour_of_day(hour, parts.get("half", ""), text)
    try:
        if "week" in found:
            day = date.fromisocalendar(year, found["week"], found.get("weekday", 1))
        elif parts.get("weekday_name"):
            weekday = _place_of(parts["weekday_name"].lower(), WEEKDAYS)
            day = date.fromisocalendar(LOG_YEAR, 1, weekday)
        else:
            day = date(year, month, found.get("day", 1))
    except ValueError:
        raise _unlike(text, type) from None
    if len(named) > 2 and "year" in found:  # two letters are those of other days elsewhere
        weekday = _place_of(named.lower(), WEEKDAYS)
        if weekday and weekday != day.isoweekday():
            raise BadCellError(f"found {quote(text)}, but {day.isoformat()} is a {day:%A}")
    is_midnight = hour == 24 and not (minute or second or decimals.strip("0"))
    if minute > 59 or second > 59 or (hour > 23 and not is_midnight):  # 24:00 as in ISO 8601
        raise _unlike(text, type)
    zone = parts.get("zone", "")
    seconds = (
        (day.toordinal() - EPOCH) * DAY + hour * 3600 + minute * 60 + second - _offset(zone, text)
    )
    return _nanoseconds(seconds, decimals), zone != ""


def _place_of(start: str, table: Sequence[str]) -> int:
    """Return the number of a month or weekday, from 1 on, by its name or the first letters.

    Args:
        start: The text in lower case.
        table: Names of each month or weekday, with blanks between.

    Returns:
        The number, or 0 if the text begins no names, or those of several.
    """
    for end in (" ", ""):
        found = [at for at, names in enumerate(table, 1) if f" {start}{end}" in f" {names} "]
        if len(found) == 1:
            return found[0]
    return 0


def _plain(text: str) -> str:
    """Return a text without accents, and without words such as um and Uhr at a time of day."""
    if not text.isascii():
        letters = unicodedata.normalize("NFKD", text)
        text = "".join(letter for letter in letters if not unicodedata.combining(letter))
        text = unicodedata.normalize("NFC", text)  # the parts of a Korean letter are one again
    return WORDS_AT_TIMES.sub(" ", text).rstrip()


def _plain_clock(text: str) -> str:
    """Return a text in which a time of day is 2:05 PM, in place of 오후 2:05 or 午後2時5分."""
    if text.isascii():
        return text
    for match in CLOCK_IN_WORDS.finditer(text):
        parts = [part.zfill(2) for part in match.groups() if part]
        text = text.replace(match[0], ":".join(parts))
    return HALF_BEFORE.sub(lambda x: f"{x[2]} {'AM' if x[1] else 'PM'}", text)


def _hour_of_day(hour: int, half: str, text: str) -> int:
    """Return the hour of a clock with 24 hours. `half` is the first letter of AM or PM, or ""."""
    if half in ("A", "a") and hour > 12:
        raise BadCellError(f"found {quote(text)}; expected an hour up to 12 before AM")
    if not half:
        return hour
    if half in ("A", "a"):
        return hour % 12
    return hour % 12 + 12


def _offset(zone: str, text: str) -> int:
    """Return the seconds by which the clocks of a time zone are ahead of UTC."""
    digits = "".join(re.findall(r"\d", zone))
    if not digits:
        return 0
    hours = int(digits[:2])
    minutes = int(digits[2:4] or 0)
    if hours > 23 or minutes > 59:
        raise _unlike(text, DATE)
    size = hours * 3600 + minutes * 60 + int(digits[4:6] or 0)
    if "-" in zone:
        return -size
    return size


def _nanoseconds(seconds: int, decimals: str) -> int:
    """Return a number of seconds in nanoseconds.

    Args:
        seconds: The whole seconds.
        decimals: The digits after the decimal mark.

    Raises:
        BadCellError: If there are more than nine digits.
    """
    if len(decimals) > 9 and decimals[9:].strip("0"):
        raise BadCellError(f"found {len(decimals)} decimals of a second; expected at most nine")
    return seconds * SECOND + int(decimals[:9].ljust(9, "0"))


def _signed(sign: str, size: int) -> int:
    if sign == "-":
        return -size
    return size


def _unlike(text: str, expected: str) -> BadCellError:
    return BadCellError(f"found {quote(text)}; expected {TIME_TYPES[expected]}")
