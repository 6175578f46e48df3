"""Columns of one number each that are the time steps of a row: their names, and their order."""

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from seqtrain.config.document import flow
from seqtrain.proposal.profile import (
    ColumnProfile,
    Columns,
    seconds_of,
)
from seqtrain.proposal.roles import FEWEST_WIDE
from seqtrain.proposal.shell import set_option
from seqtrain.tables.times import DATE, DAY_FIRST, MONTH_FIRST, MONTHS

DIGITS_ONLY, DECIMALS_IN_NAME = re.compile("[0-9]+"), re.compile(r"[0-9]+(?:\.[0-9]+)?")
NUMBER_IN_COLUMN = re.compile("[.][0-9]+$|[-+]?[0-9]+")
"""Number of a step in a name, also that which pandas adds to equal names: x, x.1."""
SIGN_IN_WORDS = re.compile(r"[ _.]*(minus|plus)[ _.]*(?=[0-9])")
BACKWARDS = re.compile(r"(?:^|[^a-z])(?:lags?|lagged|prev|previous|back|ago)(?![a-z])")
"""Words of names whose number counts the steps before the last one: lag_3."""
BEFORE_NOW = re.compile(r"(?:^|[^a-z])t-[0-9]+(?![0-9])")
"""Name such as x(t-3)."""
STEM, MARKS_IN_NAME = re.compile(r"^[^\W\d]+[ _.:-]+(?=[0-9])"), re.compile("[_ .]+")
STARTS = {start for names in MONTHS for name in names.split() for start in (name, name[:3])}
MONTH_IN_NAME = re.compile(
    rf"(?<![^\W\d_])(?:{'|'.join(sorted(STARTS, key=len, reverse=True))})(?![^\W\d_])"
)
"""Name of a month, or its first three letters, as a word of a name."""


MOST_DAYS = 31
"""Largest number beside a month that may be a day."""


def wide_columns(columns: Columns) -> list[ColumnProfile]:
    """Return the columns of numbers, or of words that repeat, that are the time steps, or [].

    They are eight or more columns without names, or whose names differ only in numbers or months.
    Numbers may have a sign, or be those that pandas adds to equal names (x, x.1). Columns of words
    have names. If there are several such groups of columns, the list is empty.
    """
    by_stem: dict[tuple[str, bool], list[ColumnProfile]] = {}
    if len(columns) < FEWEST_WIDE:
        return []
    names = tuple(column.name_text for column in columns)
    for column, name, stem in zip(columns, _plain(names), _stems(names), strict=True):
        has_words = column.kind == "text"
        is_word = has_words and column.repeats and NUMBER_IN_COLUMN.search(name) is not None
        if is_word or column.kind == "amount" or column.is_number:
            by_stem.setdefault((stem, has_words), []).append(column)
    groups = [group for group in by_stem.values() if len(group) >= FEWEST_WIDE]
    if len(groups) == 1:
        return groups[0]
    return []


@lru_cache(maxsize=4)
def _plain(names: tuple[str, ...]) -> list[str]:
    """Return names in lower case, with -3 for minus 3, and numbers for months if eight have one."""
    found = [SIGN_IN_WORDS.sub(_sign, name.lower()) for name in names]
    if sum(MONTH_IN_NAME.search(name) is not None for name in found) >= FEWEST_WIDE:
        found = [MONTH_IN_NAME.sub(_number_of_month, name, count=1) for name in found]
    return found


@lru_cache(maxsize=4)
def _stems(names: tuple[str, ...]) -> list[str]:
    """Return names without the number of a step."""
    return [NUMBER_IN_COLUMN.sub("", name).strip(" _.") for name in _plain(names)]


def _sign(match: re.Match[str]) -> str:
    return "-" if match[1] == "minus" else "+"


def _number_of_month(match: re.Match[str]) -> str:
    found = (at for at, names in enumerate(MONTHS, 1) if f" {match[0]}" in f" {names}")
    return f"{next(found):02}"


def in_order(columns: list[ColumnProfile]) -> list[ColumnProfile]:
    """Return the columns of time steps in the order that their names tell.

    If the names have numbers that go down in the order of the file, it stays. Programs sort names
    by their characters: t_0, t_1, t_10, t_2.
    """
    names = [column.name_text for column in columns]
    places = places_in_time(tuple(names))
    if places is None:
        decimals = [[float(x) for x in DECIMALS_IN_NAME.findall(name)] for name in names]
        if decimals == sorted(decimals):  # wave lengths such as 400.25, 400.5, or t_0, t_1
            return columns
        numbers = [[int(each) for each in DIGITS_ONLY.findall(name)] for name in names]
        order = sorted(range(len(columns)), key=numbers.__getitem__)
        if order[::-1] == list(range(len(columns))):
            return columns
    else:
        order = sorted(range(len(columns)), key=places.__getitem__)
    return [columns[at] for at in order]


@lru_cache(maxsize=4)
def places_in_time(names: tuple[str, ...]) -> list[tuple[float, ...]] | None:
    """Return the places of steps by their names, (columns,), or None if they are plain numbers.

    They are dates, months, signed numbers (t-1, t+1), and numbers that count backwards (lag_1).
    """
    plain = _plain(names)
    signed = [tuple(map(float, re.findall(r"[-+]?[0-9]+", name))) for name in plain]
    before = sum(BEFORE_NOW.search(name) is not None for name in plain)
    if any("+" in name for name in plain) or before >= len(plain) - 1:
        return [numbers or (0.0,) for numbers in signed]
    numbers = [tuple(map(float, DIGITS_ONLY.findall(name))) for name in plain]
    if any(map(BACKWARDS.search, plain)) and all(len(each) <= 1 for each in numbers):
        return [(-sum(each),) for each in numbers]
    seconds = _dates_in_names(list(names)) or _dates_in_names(plain)
    if seconds is not None:
        return seconds
    if sum(MONTH_IN_NAME.search(name.lower()) is not None for name in names) >= FEWEST_WIDE:
        return _by_months([name.lower() for name in names])
    return None


def _dates_in_names(names: list[str]) -> list[tuple[float, ...]] | None:
    """Return the seconds of the dates in names, a tuple each, or None if they have none."""
    texts = [MARKS_IN_NAME.sub("-", STEM.sub("", name)) for name in names]
    found = list[list[float]]()
    for own in (names, texts):
        if all(len(DIGITS_ONLY.findall(name)) > 1 or len(name) >= 8 for name in own):
            read = (seconds_of(own, type) for type in (DATE, DAY_FIRST, MONTH_FIRST))
            found += [seconds.tolist() for seconds in read if seconds is not None]
    if not found or len(set(map(tuple, (np.argsort(x).tolist() for x in found)))) > 1:
        return None
    return [(second,) for second in found[0]]


def _by_months(names: Sequence[str]) -> list[tuple[float, ...]]:
    """Return places by a month and perhaps a year or a day, whichever has fewer values than months.

    Args:
        names: The names, in lower case.
    """
    months, numbers = list[float](), list[float]()
    for name in names:
        month, number = MONTH_IN_NAME.search(name), DIGITS_ONLY.search(name)
        months.append(float(_number_of_month(month)) if month else 0.0)
        numbers.append(float(number[0]) if number else 0.0)
    if len(set(numbers)) < len(set(months)) or max(numbers) > MOST_DAYS:
        return list(zip(numbers, months, strict=True))
    return list(zip(months, numbers, strict=True))


def about_backwards(columns: Columns) -> list[str]:
    """Return a doubt if columns are used from the last to the first, as their names count back."""
    used = in_order(list(columns))
    names = [column.name_text for column in columns]
    counted_back = [x for x in _plain(tuple(names)) if BACKWARDS.search(x) or BEFORE_NOW.search(x)]
    is_turned = used != list(columns) and used[::-1] == list(columns)
    if not is_turned or len(counted_back) < len(names) - 1:
        return []
    setting = set_option(f"data.sequence={flow(names)}")
    return [
        f"the names of columns count back: time steps are from {used[0].shown} to "
        f"{used[-1].shown}; if {columns[0].shown} is the first one: {setting}"
    ]
