"""Dates, times of day and durations: exact, of one type, with or without time zones."""

from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.tables.blocks import BadCellError, UnreadableError
from seqtrain.tables.python_values import cells_of_values
from seqtrain.tables.time_column import TimeColumn, common_type, possible_types, read_time
from seqtrain.tables.times import DATE, DAY_FIRST, MONTH_FIRST, read_duration, read_moment

SECOND = 10**9
MOMENTS = st.datetimes(min_value=datetime(1678, 1, 1), max_value=datetime(2261, 1, 1))


def nanoseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1) * 1000


def times_of(cells: Any, type: str | None = None) -> tuple[list[Any], dict[int, str]]:
    column = TimeColumn(type)
    problems = column.add(cells_of_values(cells), np.arange(2, len(cells) + 2))
    return column.times().tolist(), problems


@given(moments=st.lists(st.tuples(MOMENTS, st.integers(0, 999)), min_size=1, max_size=8))
def test_nanoseconds_are_exact(moments):
    exact = [nanoseconds(moment) + rest for moment, rest in moments]
    for form in (
        "%Y-%m-%dT%H:%M:%S.%f{:03d}",
        "%Y%m%dT%H%M%S.%f{:03d}",
        "%Y/%m/%d %H:%M:%S,%f{:03d}",
    ):
        texts = [moment.strftime(form).format(rest) for moment, rest in moments]
        assert times_of(texts) == (exact, {})


@given(
    moment=MOMENTS,
    offset=st.integers(-14 * 60, 14 * 60),
    separator=st.sampled_from(["T", " "]),
    decimals=st.integers(0, 9),
)
def test_dates_with_a_zone_are_those_of_the_standard_library(moment, offset, separator, decimals):
    zone, moment = timezone(timedelta(minutes=offset)), moment.replace(microsecond=0)
    fraction = "123456789"[:decimals]
    sign, minutes = "-" if offset < 0 else "+", abs(offset)
    for colon in (":", ""):
        place = f"{sign}{minutes // 60:02d}{colon}{minutes % 60:02d}"
        text = f"{moment.isoformat(separator)}{'.' if fraction else ''}{fraction}{place}"
        expected = nanoseconds(
            moment.replace(tzinfo=zone).astimezone(timezone.utc).replace(tzinfo=None)
        )
        assert read_moment(text, DATE) == (expected + int(fraction.ljust(9, "0") or 0), True)


@given(st.timedeltas(min_value=timedelta(days=-1000), max_value=timedelta(days=1000)))
def test_durations_are_those_of_python_and_pandas(duration):
    pandas = pytest.importorskip("pandas")
    expected = duration // timedelta(microseconds=1) * 1000
    other = pandas.Timedelta(duration)
    for text in (str(duration), other.isoformat(), str(other)):
        assert read_duration(text) == expected, text


EARLY = datetime(2015, 10, 8, 8, 2, 4)
FORMS = [
    "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y/%m/%d %H:%M:%S", "%Y%m%dT%H%M%S", "%Y%m%d %H%M%S",
    "%Y-%m-%d-%H.%M.%S.000000", "%y%m%d %H%M%S", "[%d/%b/%Y:%H:%M:%S +0000]",
    "%a %b %d %Y %H:%M:%S GMT+0000 (UTC)", "%a, %d %b %Y %H:%M:%S GMT", "%d-%b-%Y %H:%M:%S",
    "%b %d, %Y %H:%M:%S", "%a %b %d %H:%M:%S UTC %Y", "%Y-%m-%d %H:%M:%S,000", "%d %B %Y %H:%M:%S",
    "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S UTC", "%Y_%m_%d_%H_%M_%S", "%Y:%m:%d %H:%M:%S",
    "%Y-%m-%d-%H-%M-%S",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("moment", [EARLY, datetime(2024, 2, 29, 23, 59, 59), datetime(2031, 1, 1)])
def test_forms_of_logs_and_programs(form, moment):
    time, _ = read_moment(moment.strftime(form), DATE)
    assert time == nanoseconds(moment)
    assert common_type([moment.strftime(form)], {"date", "duration"}) == "date"


def test_dates_without_a_year_are_sorted_within_one():
    texts = ["Oct 18 18:02:25", "Feb 29 00:00:00", "Oct  9 18:02:25", "Oct 18 18:02:24"]
    times, problems = times_of(texts)
    assert problems == {}
    assert np.argsort(times).tolist() == [1, 2, 3, 0]


@pytest.mark.parametrize(
    "text",
    ["2024-02-30", "2024-13-01", "2024-01-01T25:00", "2024-01-01T10:60", "2024-01-01T10:30.5",
     "2024-01-01T10:30.55", "2024-01-01T00:00:00.0000000001", "Foo 18 18:02:25", "20241301T000000",
     "2024-01-01T00:00+25:00", "0000-01-01", "tomorrow", ""],
)  # fmt: skip
def test_what_is_no_date(text):
    with pytest.raises(BadCellError):
        read_moment(text, DATE)


def test_half_days():
    midnight = nanoseconds(datetime(2024, 12, 31))
    for text, hours in (
        ("12/31/2024 12:05 AM", 0), ("12/31/2024 11:05 AM", 11), ("12/31/2024 12:05 PM", 12),
        ("12/31/2024 11:05 PM", 23), ("12/31/2024 11:05 p.m.", 23),
    ):  # fmt: skip
        assert read_moment(text, MONTH_FIRST)[0] == midnight + (hours * 60 + 5) * 60 * SECOND
    with pytest.raises(BadCellError, match="AM"):
        read_moment("12/31/2024 15:05 AM", MONTH_FIRST)


def test_hours_and_minutes_with_their_units():
    for text, seconds in (
        ("14h30", 52200), ("0h05m20s", 320), ("3 h 15 min 2 s", 11702), ("3h", 10800),
        ("2 days", 172800), ("-1d 4h", -100800), ("1.5 s", 1.5), ("250ms", 0.25), ("90m 4s", 5404),
    ):  # fmt: skip
        assert read_duration(text) == seconds * SECOND
    for text in ("3h75m", "h30", "5 m", "3 kg", "4h 1d"):
        with pytest.raises(BadCellError):
            read_duration(text)


def test_minutes_and_seconds_of_a_stopwatch():
    for text, seconds in (("1:30.356", 90.356), ("-10:30.5", -630.5), ("0:02,25", 2.25)):
        assert read_duration(text) == round(seconds * 1000) * 1_000_000
    with pytest.raises(BadCellError):
        read_duration("1:61.5")


def test_large_integers_and_decimals_in_different_blocks_do_not_tie():
    column = TimeColumn()
    for cells in ([2**53 + 1, 2**53], ["0.5"], [2**53 + 2]):
        assert column.add(cells, np.arange(1, len(cells) + 1)) == {}
    times = column.times()
    assert sorted(range(4), key=times.__getitem__) == [2, 1, 0, 3]
    assert len(set(times.tolist())) == 4


@pytest.mark.parametrize(
    "texts", [["2024-01-01T00:00Z", "2024-01-01T00:00"], ["2024-01-01", "2024-01-02T00:00+01:00"]]
)
def test_dates_of_which_only_some_name_a_zone_are_refused(texts):
    with pytest.raises(UnreadableError, match="line 2") as caught:
        times_of(texts)
    assert caught.value.line == 3
    column = TimeColumn("date")
    column.add(["2024-01-01 10:00:00"], np.array([2]))
    with pytest.raises(UnreadableError, match="line 2"):
        column.add(["2024-01-01 10:00:00Z"], np.array([3]))


def test_growth_is_exact_and_does_not_wrap():
    column = TimeColumn()
    column.add(["-9223372036854775808", "9223372036854775807"], np.array([1, 2]))
    growth, problems = column.growth(column.times(), np.array([0]))
    assert growth.tolist() == [0, np.float32(2**64)]
    assert problems == {}
    column = TimeColumn()
    column.add(["1", "1e39"], np.array([1, 2]))
    _, problems = column.growth(column.times(), np.array([0]))
    assert "float32" in problems[1]
    column = TimeColumn("duration")
    column.add(["PT0S", "PT20833878.999999998S"], np.array([1, 2]))
    growth, _ = column.growth(column.times(), np.array([0]))
    assert growth.tolist() == [0, 20833878]  # rounded in float64 first, it would be halfway to 80


@given(st.text("0123456789:./- TZPDHMSday,+[]()OctSun", max_size=24))
def test_any_text_is_read_or_refused(text):
    for type in possible_types(text):
        number, has_zone = read_time(text, type)
        assert number is not None
        assert has_zone in (None, True, False)
    with pytest.raises(BadCellError):
        read_duration(text + "x")


@given(st.lists(MOMENTS, min_size=2, max_size=20), st.sampled_from([" ", "T", None]))
def test_blocks_of_equal_dates_are_read_as_single_ones(moments, separator):
    texts = [moment.strftime("%Y-%m-%d") for moment in moments]
    if separator:
        texts = [moment.strftime(f"%Y-%m-%d{separator}%H:%M:%S") for moment in moments]
    assert times_of(texts, "date") == ([read_moment(text, DATE)[0] for text in texts], {})


@pytest.mark.parametrize(
    ("text", "type", "moment"),
    [
        ("Sa 03.02.2024 00:41:18", DAY_FIRST, datetime(2024, 2, 3, 0, 41, 18)),
        ("mié., 7/2/2024", DAY_FIRST, datetime(2024, 2, 7)),
        ("segunda-feira, 05/02/2024", DAY_FIRST, datetime(2024, 2, 5)),
        ("Sat 02/03/2024 1:05 PM", MONTH_FIRST, datetime(2024, 2, 3, 13, 5)),
        ("Samstag 2024-02-03", DATE, datetime(2024, 2, 3)),
        ("Tisch 03.02.2024", DAY_FIRST, None),
        ("Sunday 2024-02-03", DATE, None),
        ("Sunday, 03 February 2024", DATE, None),
        ("dim. 03/02/2024", DAY_FIRST, None),
        ("Thu Feb 03 10:00:00 2024", DATE, None),
        ("di 2024-02-03", DATE, datetime(2024, 2, 3)),  # several days begin so, in some languages
        ("nie, 03 February 2024", DATE, datetime(2024, 2, 3)),
        ("Rev 2024-02-03", DATE, None),
    ],
)
def test_a_weekday_may_stand_before_a_date(text, type, moment):
    if moment is None:
        assert type not in possible_types(text)
    else:
        assert read_moment(text, type) == (nanoseconds(moment), False)


def test_a_time_of_day_may_be_written_with_points():
    for text, seconds in (("00.31.00", 1860), ("23.59.59", 86399)):
        assert read_duration(text) == seconds * SECOND
    for text in ("24.00.00", "12.60.00", "12.31", "1.2.3", "12.05.2024"):
        with pytest.raises(BadCellError):
            read_duration(text)
