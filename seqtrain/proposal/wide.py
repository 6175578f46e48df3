"""Columns of one number each that are the time steps of a row: their names, and their order."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, permutations, takewhile

import numpy as np

from seqtrain.config.document import flow
from seqtrain.proposal.profile import ColumnProfile, Columns, plain_letters, seconds_of
from seqtrain.proposal.roles import FEWEST_WIDE
from seqtrain.proposal.shell import set_option
from seqtrain.tables.cells import MINUS
from seqtrain.tables.times import DATE, DAY_FIRST, MONTH_FIRST, MONTHS
from seqtrain.text import counted, listed

DIGITS_ONLY, DECIMALS_IN_NAME = re.compile("[0-9]+"), re.compile(r"[0-9]+(?:\.[0-9]+)?")
SIGNED_IN_NAME, SIGNED_FIRST = re.compile("[-+]?[0-9]+"), re.compile("[-+]?[0-9]")
NUMBER_IN_COLUMN = re.compile("[.][0-9]+$|[-+]?[0-9]+(?:[.][0-9]+)?")
"""Number of a step in a name, also that which pandas adds to equal names: x, x.1."""
SIGN_IN_WORDS = re.compile(r"[ _.]*(minus|plus)[ _.]*(?=[0-9])")
BACKWARDS = re.compile(r"(?:^|[^a-z])(?:lags?|lagged|prev|previous|back|ago)(?![a-z])")
"""Words of names whose number counts the steps before the last one: lag_3."""
BEFORE_NOW = re.compile(r"(?:^|[^a-z])t-[0-9]+(?![0-9])")
"""Name such as x(t-3)."""
STEM, MARKS_IN_NAME = re.compile(r"^[^\W\d]+[ _.:-]+(?=[0-9])"), re.compile("[_ .]+")
STARTS = {
    name[:end] for names in MONTHS for name in names.split() for end in range(3, len(name) + 1)
}
MONTH_IN_NAME = re.compile(
    rf"(?<![^\W\d_])(?:{'|'.join(sorted(STARTS, key=len, reverse=True))})(?![^\W\d_])"
)
"""Name of a month, or its first letters, three or more, as a word of a name."""
HALF_DAY_IN_NAME = re.compile(r"(?<![0-9])(1[0-2]|0?[1-9])(:[0-9]{2})? ?([ap])\.?m(?![^\W\d_])")
"""Hour with am or pm, such as 6am or 6:30 PM."""
MOST_DAYS = 31
"""Largest number beside a month that may be a day."""
FIRST_YEAR, LAST_YEAR = 1900, 2100
"""Numbers that may be years."""
MOST_READ = 3
"""Most numbers in each name whose order is looked for, as in 25.01.2022."""
MOST_BETWEEN = 3
"""Columns between those of the steps are steps, too, if these are this many times as many."""


def wide_columns(columns: Columns) -> list[ColumnProfile]:
    """Return the columns of numbers, or of words that repeat, that are the time steps, or [].

    They are eight or more columns without names, or whose names differ only in numbers or months.
    Numbers may have a sign, or be those that pandas adds to equal names (x, x.1). Columns of words
    have names. If there are several such groups of columns, the list is empty. A few columns of
    numbers between those of a group are steps, too, as Mrz is between Feb and Apr, if the group
    stands in the order of time.
    """
    if len(columns) < FEWEST_WIDE:
        return []
    groups = [group for group in _groups(columns) if len(group) >= FEWEST_WIDE]
    if len(groups) != 1:
        return []
    group = groups[0]
    between = _between(columns, group)
    if between and len(group) >= MOST_BETWEEN * len(between) and in_order(group) == group:
        steps = {*group, *between}
        return [column for column in columns if column in steps]
    return group


def largest_groups(columns: Columns) -> list[list[ColumnProfile]]:
    """Return the most columns whose names differ only in numbers or months, or [].

    If several groups have as many, as home_1, home_2 and away_1, away_2, the last one of the result
    has all of them.
    """
    groups = [group for group in _groups(columns) if len(group) > 1]
    size = max(map(len, groups), default=0)
    largest = [group for group in groups if len(group) == size]
    if len(largest) > 1:
        known = {column for group in largest for column in group}
        return [largest[0], [column for column in columns if column in known]]
    return largest


def _groups(columns: Columns) -> Iterable[list[ColumnProfile]]:
    """Return the columns of numbers, or of words that repeat, by the texts of their names."""
    by_stem: dict[tuple[str, bool], list[ColumnProfile]] = {}
    names = tuple(column.name_text for column in columns)
    for column, name, stem in zip(columns, _plain(names), _stems(names), strict=True):
        has_words = column.kind == "text"
        is_word = has_words and column.repeats and NUMBER_IN_COLUMN.search(name) is not None
        if is_word or column.kind == "amount" or column.is_number:
            by_stem.setdefault((stem, has_words), []).append(column)
    return by_stem.values()


@lru_cache(maxsize=4)
def _stems(names: tuple[str, ...]) -> list[str]:
    """Return names without their numbers."""
    return [NUMBER_IN_COLUMN.sub("", name).strip(" _.") for name in _plain(names)]


def _between(columns: Columns, group: Columns) -> list[ColumnProfile]:
    """Return the columns of numbers that stand between the first and the last one of a group."""
    steps = set(group)
    places = [at for at, column in enumerate(columns) if column in steps]
    inside = columns[places[0] : places[-1]]
    return [x for x in inside if x not in steps and x.is_number and group[0].is_number]


@lru_cache(maxsize=4)
def _plain(names: tuple[str, ...]) -> list[str]:
    """Return names in lower case, without accents, and with -3 for minus 3.

    If eight names or more have a month, or an hour with am or pm, numbers stand for these.
    """
    found = [SIGN_IN_WORDS.sub(_sign, plain_letters(name)) for name in names]
    found = [name.replace(MINUS, "-") for name in found]
    for pattern, number in ((MONTH_IN_NAME, _number_of_month), (HALF_DAY_IN_NAME, _hour)):
        if sum(pattern.search(name) is not None for name in found) >= FEWEST_WIDE:
            found = [pattern.sub(number, name, count=1) for name in found]
    return found


def _sign(match: re.Match[str]) -> str:
    return "-" if match[1] == "minus" else "+"


def _number_of_month(match: re.Match[str]) -> str:
    found = (at for at, names in enumerate(MONTHS, 1) if f" {match[0]}" in f" {names}")
    return f"{next(found):02}"


def _hour(match: re.Match[str]) -> str:
    """Return the hour and the minutes of a half day as those of a day: 13:30 for 1:30 pm."""
    hour = int(match[1]) % 12 + (12 if match[3] == "p" else 0)
    return f"{hour:02}{match[2] or ''}"


def in_order(columns: list[ColumnProfile]) -> list[ColumnProfile]:
    """Return the columns of time steps in the order that their names tell.

    Dates, months, and numbers that count backwards sort them. Other names stay in the order of the
    file if their numbers rise there in some way: 1Q22, 2Q22 … 1Q23, or -50, 0, 50, or 22h, 23h, 0h.
    They also stay if the numbers go down. Else the numbers sort them, for programs sort names by
    their characters: t_0, t_1, t_10, t_2.
    """
    names = tuple(column.name_text for column in columns)
    plain = _plain(names)
    if len(set(_stems(names))) > 1 or _begins_again(plain):  # a step by its place in the file
        return columns
    places = places_in_time(names)
    if places is None:
        if any(map(_rises, _readings(plain))):
            return columns
        places = _main_reading(plain)
        if _rises(places[::-1]):
            return columns
    order = sorted(range(len(columns)), key=places.__getitem__)
    return [columns[at] for at in order]


def _rises(places: Sequence[tuple[float, ...]]) -> bool:
    return all(one <= other for one, other in pairwise(places))


def _numbers_in(names: Sequence[str], pattern: re.Pattern[str]) -> list[tuple[float, ...]]:
    return [tuple(map(float, pattern.findall(name))) for name in names]


def _readings(names: Sequence[str]) -> Iterator[list[tuple[float, ...]]]:
    """Yield the numbers of names in the ways that they may tell an order.

    They are read with decimals, with signs, and from any of them to any other: 22, 1 in 1Q22.
    """
    yield _numbers_in(names, DECIMALS_IN_NAME)  # wave lengths such as 400.25, 400.5
    yield _numbers_in(names, SIGNED_IN_NAME)
    numbers = _numbers_in(names, DIGITS_ONLY)
    sizes = {len(own) for own in numbers}
    size = max(sizes)
    if len(sizes) > 1 or size > MOST_READ:
        yield numbers
        return
    for order in permutations(range(size)):
        yield [tuple(own[at] for at in order) for own in numbers]


def _begins_again(names: Sequence[str]) -> bool:
    """Return True for numbers that rise, and begin again once: 22h, 23h, 0h, 1h, or Oct to Sep.

    Names that are sorted by their characters aren't such numbers: d10, d11, d2, d3.
    """
    numbers = _numbers_in(names, DIGITS_ONLY)
    falls = [at for at, (one, other) in enumerate(pairwise(numbers), 1) if one > other]
    if len(falls) != 1 or list(names) == sorted(names):
        return False
    return numbers[-1] < numbers[0]


def _main_reading(names: Sequence[str]) -> list[tuple[float, ...]]:
    """Return the numbers of names that sort them: with signs if all begin so, and years first."""
    if all(map(SIGNED_FIRST.match, names)) and any(name.startswith("-") for name in names):
        return _numbers_in(names, SIGNED_IN_NAME)
    numbers = _numbers_in(names, DIGITS_ONLY)
    return [(*filter(_is_year, own), *(x for x in own if not _is_year(x))) for own in numbers]


def _is_year(number: float) -> bool:
    return FIRST_YEAR <= number <= LAST_YEAR


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
    letters = [plain_letters(name) for name in names]
    if sum(MONTH_IN_NAME.search(name) is not None for name in letters) >= FEWEST_WIDE:
        return _by_months(letters)
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
        names: The names, in lower case and without accents.
    """
    months, numbers = list[float](), list[float]()
    for name in names:
        month, number = MONTH_IN_NAME.search(name), DIGITS_ONLY.search(name)
        months.append(float(_number_of_month(month)) if month else 0.0)
        numbers.append(float(number[0]) if number else 0.0)
    if len(set(numbers)) < len(set(months)) or max(numbers) > MOST_DAYS:
        return list(zip(numbers, months, strict=True))
    return list(zip(months, numbers, strict=True))


def doubts_about_steps(columns: Columns, used: Columns) -> Iterator[str]:
    """Yield doubts about the order of the columns of time steps, and columns that are left out.

    Args:
        columns: All columns but that of the label.
        used: The columns of the time steps, in their order.
    """
    steps = set(used)
    own = [column for column in columns if column in steps]
    other, reason = _other_order(own, used)
    if other:
        yield (
            f"{reason}: time steps are from {used[0].shown} to {used[-1].shown}; if "
            f"{other[0].shown} is the first one: {_naming(other)}"
        )
    beside = _beside(columns, own)
    if beside:
        steps.update(beside)
        verb = "is" if len(beside) == 1 else "are"
        yield (
            f"{listed([x.shown for x in beside])} {verb} left out: numbers beside "
            f"{counted(len(own), 'column')} of time steps, and of their size; if they are steps: "
            f"{_naming([column for column in columns if column in steps])}"
        )


def _naming(columns: Columns) -> str:
    """Return the option that names the columns of the sequence."""
    return set_option(f"data.sequence={flow([column.name_text for column in columns])}")


def _other_order(own: list[ColumnProfile], used: Columns) -> tuple[list[ColumnProfile], str]:
    """Return another order that the names of steps may tell, and why, or [].

    Args:
        own: The columns in the order of the file.
        used: The columns in the order of the steps.
    """
    names = tuple(column.name_text for column in own)
    plain = _plain(names)
    if list(used) != own:
        back = sum(bool(BACKWARDS.search(x) or BEFORE_NOW.search(x)) for x in plain)
        if own == list(used)[::-1] and back >= len(own) - 1:
            return own, "the names of columns count back"
        return [], ""
    numbers = _numbers_in(plain, DIGITS_ONLY)
    if places_in_time(names) is None and all(any(map(_is_year, each)) for each in numbers):
        reading = _main_reading(plain)
        if not _rises(reading):
            order = sorted(range(len(own)), key=reading.__getitem__)
            return [own[at] for at in order], "the years in the names of columns don't rise"
    return [], ""


def _beside(columns: Columns, own: Columns) -> list[ColumnProfile]:
    """Return the columns between those of the steps, and next to them, that may be steps, too.

    Their numbers are of the size and the kind of those of the steps.
    """
    places = [columns.index(column) for column in (own[0], own[-1])]
    found = _between(columns, own)
    for side in (columns[: places[0]][::-1], columns[places[1] + 1 :]):
        found += takewhile(lambda column: column.is_number, side)
    if not found or not own[0].is_number or len(own) < MOST_BETWEEN * len(found):
        return []
    has_decimals = any(column.has_decimals for column in own)
    low, high = np.nanquantile(np.concatenate([column.numbers for column in own]), (0.25, 0.75))
    found = [x for x in found if x.has_decimals == has_decimals and not x.is_unique]
    return [column for column in found if low <= np.nanmedian(column.numbers) <= high]
