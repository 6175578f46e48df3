"""Kinds of cells: numbers, times, amounts, lists and texts, by their patterns."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seqtrain.sequences.content import TEXT_FIELDS
from seqtrain.sequences.labels import LIST_STARTS
from seqtrain.tables.blocks import BadCellError
from seqtrain.tables.cells import MISSING_NUMBERS, NEGATIVE, is_number, items_of
from seqtrain.tables.series import SEPARATOR, series_of
from seqtrain.tables.times import MONTHS, PERIOD_FORMS, UNITS_OF_TIME, WEEKDAYS

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.integer]

NUMBER_TEXT = r"[-+\N{MINUS SIGN}]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
BETWEEN = r"[][(),;\s]"
CLOCK_TIME = (
    r"(?:-?[0-9]+ days?,? )?[0-9]{1,3}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?"
    r"(?:\s?[AaPp]\.?[Mm]\.?|\s?Uhr)?|[-+]?[0-9]{1,3}:[0-9]{2}[.,][0-9]+"
    r"|[-+]?[0-9]{1,3} ?h ?[0-5]?[0-9]"
)
UNIT_OF_TIME = "|".join(names for names, _ in UNITS_OF_TIME)
TIME_WITH_UNITS = rf"[-+]?(?:,? ?[0-9]{{1,9}}(?:[.,][0-9]{{1,9}})? ?(?:{UNIT_OF_TIME})){{2,}}"
EAST_ASIAN = "오전|오후|上午|下午|午前|午後"
CLOCK_OF_EAST_ASIA = (
    rf"(?:{EAST_ASIAN}) ?[0-9]{{1,2}}:[0-9]{{2}}(?::[0-9]{{2}})?"
    rf"|(?:(?:{EAST_ASIAN}) ?)?[0-9]{{1,2}}[時时点點시] ?[0-9]{{1,2}}[分분]"
    r"(?: ?[0-9]{1,2}[秒초])?"
)
PERIOD = r"[-+]?P(?=.*T.*[0-9])[-+0-9A-Z.]*"
MONTH_STARTS = {name[:3] for names in MONTHS for name in names.split()}
MONTH = rf"(?i:{'|'.join(sorted(MONTH_STARTS))}|jän|mär|fév|aoû|déc)[^\W\d_]*"
CALENDAR_DAY = (
    r"(?:[0-9]{4}(?:-[0-9]{1,2}-|/[0-9]{1,2}/|\.[0-9]{1,2}\.)[0-9]{1,2}(?:[T ,-].*)?"
    r"|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{1,4}(?:[T ,].*)?)"
    r"|[0-9]{1,2}[-/.][0-9]{1,2} [0-9]{1,2}:[0-9]{2}.*|[0-9]{4}[年년] ?[0-9]{1,2}[月월].*"
    r"|[0-9]{4}\. [0-9]{1,2}\. [0-9]{1,2}\.?(?: .*)?"
)
STAMP = (
    r"[0-9]{6}(?:[0-9]{2})?[T _-][0-9]{4,6}(?:[.,][0-9]+)?(?:Z|[-+][0-9:]+)?"
    r"|[0-9]{8}[T -][0-9]{1,2}:[0-9]{2}.*"
    r"|(?:19|20)[0-9]{2}(?:_[01][0-9]_|:[01][0-9]:)[0-3][0-9](?:[T _-].*)?"
)
WRITTEN = (
    rf"(?:[^\W\d_-]{{2,14}}[.,]{{0,2}} )?"
    rf"(?:{MONTH}[ ./-]+(?:[0-9]{{4}}|[0-9]{{1,2}}(?:st|nd|rd|th)?,? +[0-9].*)"
    rf"|[0-9]{{1,2}}(?:er|º|st|nd|rd|th|\.)?[ /-]?(?:de )?{MONTH}\.?[ /-]?(?:del? )?[0-9]{{2}}.*"
    rf"|[0-9]{{4}}[ /-]{MONTH}(?:[ /-][0-9]{{1,2}})?)"
)
DAY_START = "|".join(sorted({"sá", *(name[:2] for names in WEEKDAYS for name in names.split())}))
DAY_NAME = rf"(?i:{DAY_START})[^\W\d_]*(?:-feira)?\.?,? +"
DAY_OF_WEEK = rf"{DAY_NAME}(?:[0-9]{{1,2}}:[0-9]{{2}}(?:[:.\s].*)?|{CALENDAR_DAY})"
PERIOD_PATTERNS = [re.sub(r"\(\?P<\w+>", "(?:", form) for form in PERIOD_FORMS]
OTHER_TIMES = "|".join([*PERIOD_PATTERNS, DAY_OF_WEEK, TIME_WITH_UNITS, CLOCK_OF_EAST_ASIA])
CURRENCY_SIGNS = "€$£¥₹₩₽"
UNIT = rf"(?:[{CURRENCY_SIGNS}%]|Kč|zł|°?[A-Za-zµμ]{{0,6}}(?:/[A-Za-zµμ]{{1,5}}[²³]?)?)"
GROUPED_DIGITS = (
    r"[1-9][0-9]{0,2}(?:(?:,[0-9]{3}){1,4}(?:\.[0-9]+)?|(?:\.[0-9]{3})+(?:,[0-9]+)?"
    r"|(?<![0-9]{3})(?:,[0-9]{2}){1,4},[0-9]{3}(?:\.[0-9]+)?"
    r"|(?:[ '\u2019\u00a0\u2009\u202f][0-9]{3})+(?:[.,][0-9]+)?)"
)
SIGN = r"[-+\N{MINUS SIGN}]?"
AMOUNT = (
    rf"{SIGN}(?P<before>(?:[A-Z]{{0,2}}[{CURRENCY_SIGNS}])?)\s?{SIGN}"
    rf"(?:[0-9]+|[0-9]+[.,][0-9]+|{GROUPED_DIGITS})\s?(?P<after>{UNIT})"
)
MEASURED = re.compile(
    rf"{SIGN}[0-9]+(?:[.,][0-9]+)?(?:\s?(?:[-–/±]|\+/?-|to|bis|à)\s?[0-9]+(?:[.,][0-9]+)?)?"
    r"(?!\.[a-z])\s?[^\d\s]{0,8}(?:\s[^\d\s]{1,4})?"
)
"""One or two numbers with a unit or a flag, such as 112/67, 5.6±0.1, 3-5 or 5.6 H, no 7.json."""
PHONE = re.compile(r"(?:\+|\(?0|\([0-9]{2,5}\))[-0-9 ()]{6,20}")
NUMBER_ITEM = rf"(?:{NUMBER_TEXT}|[nN]a[nN]|\?)"
KIND_PATTERNS = {
    "number": re.compile(NUMBER_TEXT),
    "time": re.compile(
        rf"\[?(?:{CALENDAR_DAY}|{STAMP}|{CLOCK_TIME}|{PERIOD}|{WRITTEN}|{OTHER_TIMES})", re.DOTALL
    ),
    "decimal": re.compile(
        r"[-+\N{MINUS SIGN}]?(?:[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+),[0-9]+(?:[eE][-+]?[0-9]+)?"
    ),
    "grouped": re.compile(rf"{SIGN}(?:{GROUPED_DIGITS})"),
    "amount": re.compile(AMOUNT),
    "numbers": re.compile(
        rf"{BETWEEN}*{NUMBER_ITEM}(?:{BETWEEN}+(?:{NUMBER_ITEM}|\.\.\.))*{BETWEEN}*"
    ),
}
"""Maps each kind of cell to its pattern. The first pattern that fits decides. All else is text."""
NUMBER_KINDS = ("number", "decimal", "grouped", "amount")
"""Kinds of cells of one number."""
MIXED = "mixed"
"""Kind of a cell of numbers among which are words such as ERR, less than half of all."""
FEWEST_NUMBERS = 4
"""Fewest items of a text without brackets that is such a cell."""
NUMBER_TYPES = {int, float, bool, type(None)}
PLAIN_TEXT = re.compile(r"[^\W\d_]{4}.{4}", re.DOTALL)
"""Beginning of a cell that no pattern fits, so that most texts are told by one comparison."""
WITHOUT_VALUE = MISSING_NUMBERS | {"[]"}
"""Cells without a value, in lower case."""
LONGEST_NUMBER = 15
"""Whole numbers of more digits are codes: float64 doesn't hold them."""


def parsed_numbers(values: Sequence[Any]) -> Floats | None:
    """Return the numbers of values that are all of at most 15 characters, or None."""
    try:
        text = "".join(values)
        if not text.isascii() or "_" in text or max(map(len, values)) > LONGEST_NUMBER:
            return None
        numbers = np.array(list(map(float, values)))
    except (ValueError, TypeError):
        return None
    if np.isfinite(numbers).all():
        return numbers
    return None


def kind_of_cell(cell: Any) -> str:
    """Return the kind of a value: a key of `KIND_PATTERNS`, missing, text, or list kind.

    A list holds numbers, strings, turns (objects with a text) or events (other objects). Else it is
    nested: lists of unequal lengths, or of lists of lists.
    """
    if not isinstance(cell, str):
        return _kind_of_items(cell)
    if cell.lower() in WITHOUT_VALUE:
        return "missing"
    if PLAIN_TEXT.match(cell) and not KIND_PATTERNS["time"].fullmatch(cell):
        return "text"
    if cell.isdigit() and len(cell) > LONGEST_NUMBER:
        return "text"
    negative = NEGATIVE.fullmatch(cell)
    if negative is not None:
        cell = negative["in"] or negative["before"]
    for kind, pattern in KIND_PATTERNS.items():
        if pattern.fullmatch(cell):
            return kind
    if "\n" in cell and _is_recording(cell):
        return "numbers"
    if cell.startswith(LIST_STARTS):
        items = items_of(cell, bare=True)
    else:
        items = None
    if items:
        return _kind_of_items(items)
    if 3 * sum(map(str.isdigit, cell)) > len(cell):  # spares texts the next step
        words = SEPARATOR.split(cell)
        if len(words) >= FEWEST_NUMBERS and 2 * sum(map(is_word, words)) < len(words):
            return MIXED
    return "text"


def _is_recording(cell: str) -> bool:
    """Return True if a cell of several lines, the first of which may be names, holds numbers."""
    if re.match(rf"[^\n]*\n\s*{NUMBER_TEXT}", cell) is None:
        return False
    try:
        return len(series_of(cell)) > 0
    except BadCellError:
        return False


def _kind_of_items(items: Any) -> str:
    if isinstance(items[0], dict):
        are_turns = all(isinstance(each, dict) and text_field(each) for each in items)
        if are_turns:
            return "turns"
        return "events"
    if isinstance(items, list) and not set(map(type, items)) <= NUMBER_TYPES:
        values = flattened(items)
        count = sum(type(value) in NUMBER_TYPES and value is not None for value in values)
        words = list(filter(is_word, values))
        if count and words and 2 * len(words) < len(values):
            return MIXED
        if count and all(type(value) in (str, *NUMBER_TYPES) for value in values) and not words:
            sizes = {len(item) if isinstance(item, list) else 0 for item in items}
            return "numbers" if len(sizes) == 1 else "nested"  # a text is a missing number
    if isinstance(items[0], str):
        return "strings"
    try:
        numbers = np.asarray(items, np.float64)
    except (ValueError, TypeError):
        return "nested"
    if numbers.ndim > 2:
        return "nested"
    return "numbers"


def flattened(items: Sequence[Any]) -> list[Any]:
    """Return the items of a list, or those of its vectors."""
    vectors = (item if isinstance(item, list) else [item] for item in items)
    return list(chain.from_iterable(vectors))


def is_word(item: Any) -> bool:
    """Return True if an item of a list is a text that is no number, and not a missing one."""
    return isinstance(item, str) and not is_number(item) and item.lower() not in MISSING_NUMBERS


def odd_items(cell: Any) -> list[str]:
    """Return the words among the numbers of a cell of kind `MIXED`, each once."""
    items = cell
    if isinstance(cell, str):
        items = items_of(cell, bare=True) or SEPARATOR.split(cell.strip())
    return list(dict.fromkeys(filter(is_word, flattened(items))))


def kind_without_numbers(cell: Any) -> str:
    """Return the kind of a cell of kind `MIXED` in a column that isn't one of numbers."""
    items = items_of(cell, bare=True)
    if not items:
        return "text"
    return "strings" if isinstance(items[0], str) else "nested"


def text_field(fields: dict[str, Any]) -> str | None:
    """Return the name of the field of an object that holds its text, or None."""
    return next((name for name in TEXT_FIELDS if isinstance(fields.get(name), str)), None)


def are_whole(lists: Iterable[Floats]) -> bool:
    """Return True if lists hold whole numbers from 0 on."""
    return all((x >= 0).all() and (x == np.rint(x)).all() for x in lists)


def are_codes(lists: Sequence[Floats] | Floats) -> bool:
    """Return True if lists hold whole numbers from 0 on that are codes, and no measurements."""
    return not are_smooth(lists) and are_whole(lists)


def are_smooth(lists: Sequence[Floats] | Floats) -> bool:
    """Return True if neighbours in lists are more similar to each other than to the mean.

    Measurements one after the other are.
    """
    roughness = 0.0
    for numbers in lists:
        if len(numbers):
            roughness += (np.diff(numbers) ** 2).sum() - len(numbers) * numbers.var()
    return roughness < 0
