"""Profiles of columns: distinct cells and codes, kinds, counts and numbers, from all rows."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seqtrain.proposal.cell_kinds import (
    KIND_PATTERNS,
    MEASURED,
    MIXED,
    NUMBER_KINDS,
    NUMBER_TEXT,
    NUMBER_TYPES,
    PHONE,
    SIGN,
    WITHOUT_VALUE,
    Floats,
    Integers,
    are_codes,
    are_whole,
    flattened,
    kind_of_cell,
    kind_without_numbers,
    odd_items,
    parsed_numbers,
)
from seqtrain.sequences.labels import LIST_STARTS, label_of
from seqtrain.tables.blocks import SPLIT_VALUES, BadCellError, Codes, Mask, Name, UnreadableError
from seqtrain.tables.cells import (
    GROUPED,
    MINUS,
    Names,
    is_multi_hot,
    is_number,
    items_of,
    name_of,
    with_point,
)
from seqtrain.tables.series import with_points, without_items
from seqtrain.tables.time_column import COUNTS_DOWN, ORDINAL, TimeColumn
from seqtrain.tables.times import DATE, DURATION, NUMBER, SECOND, TIME_TYPES, WEEKDAY
from seqtrain.text import counted, delimited_line, listed, quote

COMMA_NUMBER = re.compile(
    rf"(?:{SIGN}(?:[0-9]+|[1-9][0-9]{{0,2}}(?:\.[0-9]{{3}})+)(?:,[0-9]+)?|\?|[nN]a[nN])"
    r"(?:\s*;\s*|\s+(?=\S)|$)"
)
"""Number with a decimal comma or none, in a list whose items have blanks or ; between them."""
NO_PAIR = re.compile(r"(?:^|[\s;])[^\s;,]+(?:[\s;]|$)|,0[0-9]|[0-9]\.[0-9]{3},")
"""An item without a comma, decimals such as ,05, or 1.234,5: then 1,5;2,7 isn't a list of pairs."""
MARKS = ("->", "=>", "→", ">>", ">", "»", "|", ";", " / ", " - ", "~", "^", "::", ",")
"""Marks that can join symbols in a cell, such as a>b>c."""
MARKS_IN_WORDS = ("/", "_", "+", "-", ".", ":")
"""Marks that can join symbols, but stand in words, codes, dates and numbers, too."""
FEWEST_LENGTHS = 3
"""Fewest numbers of parts of cells that are sequences. Codes such as EU-17-B have one or two."""
PREFIX = re.compile(r"\([^()]*\)\s*(?=\w)|.*[.:]\s*(?=\w)")
"""Prefix of the name of a column, such as event. or case: or (case)."""
EVENT_LOG_NAMES = {
    "case:concept:name": "case_id",
    "concept:name": "event",
    "recording_session_label": "session_id",
}
"""Maps names of event logs (XES) and of eye trackers to plain ones. Their last part says little."""
THREE_DECIMALS = re.compile(rf"{SIGN}[1-9][0-9]{{0,2}}\.[0-9]{{3}}")
LETTER, DIGITS = re.compile(r"[^\W\d_]"), re.compile("[0-9]+")
CAPITAL, BETWEEN_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])"), re.compile(r"[\W_]+")
LIST_KINDS = ("series", "symbols", "turns", "events")
"""Kinds of columns whose cells hold whole sequences."""
POINT_SIZES = ({2}, {3}, {4})
"""Sizes of lists that are no sequences: places, accelerations, rotations."""
LABEL_KINDS = ("text", "number", "amount")
"""Kinds of columns whose short values can be labels."""
HASH = re.compile(r"(?=.*[0-9])[0-9a-fA-F]{6,}(?:-[0-9a-fA-F]+)*")
"""A hash in hexadecimal digits, such as a UUID. Its digits may be numbers alone."""
CODE, FEWEST_CODES = re.compile(r"[A-Za-z]{1,12}[-_/. ]?[0-9]{1,12}|[^\s@]+@[^\s@]+\.[A-Za-z]+"), 10
"""A code of letters and a number, and the fewest different ones that are codes of things."""
MOSTLY = 0.98
"""Share of the present cells that decides the kind of a column. The other cells are odd."""
NUMBERED = "(?: (?:nr|no|num|number|index|idx))?"
"""Pattern of a last word of names for a number, if there is one."""
FOLD_NAME = re.compile(rf"(?:.* )?k?folds?(?: id)?{NUMBERED}")
"""Words of the name of a column of folds, such as kfold."""
MOST_MARKS = 3
"""Largest number of texts in place of numbers, such as ERR, of which there may be more cells."""
MOST_NUMBERS_OF_TIME = 9
"""Most numbers of a time: year, month, day, hour, minute, second, fractions, and a zone of two."""
SPARSE = 2
"""Whole numbers have gaps if their range is more than this many times their count."""
REPEATS = 4
"""Values repeat if each occurs this many times or more on average."""
FEWEST_MEASURED = 8
"""Fewest distinct values for a column of whole numbers to hold measurements."""
FREE_WORDS = 3
"""Texts of this many words or more on average are free text, not names."""
WORDS_OF_TIME = 6
"""Most words of a time on average, such as Sun Oct 18 2015 18:01:50 GMT."""
LARGEST_SHARE_MISSING = 0.1
"""Largest share of words such as NA among few distinct numbers. With more they are names."""
NUMBERED_TEXT = re.compile(
    r"(?P<before>[TD](?=[-+])|[^\W\d_]\D*)[-+]?[0-9]{1,4}|[0-9]{1,4}(?P<after>\D*[^\W\d_]\.?)"
)
"""A whole number after or before a text, such as Q1 or Day 12. The number of T-3 is negative."""
WITH_DIGIT, MOST_NAMES = re.compile("[0-9]"), 24
"""Most spellings of the months or weekdays of a column."""
LONGEST_LABEL = 80
"""Most characters of a label or of the name of a column."""
AT_ONCE = 1024
"""Number of values that are tried as numbers together."""
SAMPLE = 4096
"""Largest number of values, spread over all, whose content is looked at."""
SHOWN_KINDS = {
    "series": "lists of numbers",
    "symbols": "lists",
    "turns": "sentences",
    "number": "numbers",
    "amount": "numbers",
    "time": "dates",
    "events": "lists of objects",
    "nested": "nested lists",
}
"""Maps kinds of columns to words for messages."""


class ColumnProfile:
    """A column of a table as codes into its distinct values.

    Args:
        name: Name of the column, or its index.
        values: Distinct cells in the order of first appearance: texts without blanks around them,
            or lists and arrays. A missing cell is "".
        codes: Index of the value of each row, (rows,).
        owners: Row of the list to which each object belongs, if the column is a field of objects
            in lists, else None.

    Attributes:
        written: The column with all spellings of equal values, such as 3 and 3.0.
    """

    def __init__(self, name: Name, values: list[Any], codes: Codes, owners: Any = None) -> None:
        self.name, self.values, self.codes, self.owners = name, values, codes, owners
        self.rows, self.written = len(codes), self

    def by_value(self) -> "ColumnProfile":
        """Return the column with one code for equal values, which has the first spelling of them.

        Values that don't repeat, such as texts, stay as they are.
        """
        if 2 * len(self.values) > self.rows or not self.are_texts:
            return self
        names = Names()
        table = np.array([names[value] for value in self.values], np.int32)
        if names.spellings == self.values:
            return self
        found = ColumnProfile(self.name, names.spellings, table[self.codes], self.owners)
        found.written = self
        return found

    def without(self, cells: Sequence[Any]) -> "ColumnProfile":
        """Return the column with some cells blank, as data.na_values makes them."""
        missing = frozenset(name_of(str(cell).strip()) for cell in cells) | {""}
        is_missing = [type(x) is str and name_of(x) in missing for x in self.values]
        values: list[Any] = [
            without_items(x, missing) if kind in ("numbers", MIXED) else x
            for x, kind, is_blank in zip(self.values, self.cell_kinds, is_missing, strict=True)
            if not is_blank
        ]
        table = np.cumsum(~np.array(is_missing)).astype(np.int32) - 1
        table[is_missing] = len(values)
        if any(is_missing):
            values.append("")
        return ColumnProfile(self.name, values, table[self.codes], self.owners)

    @property
    def name_text(self) -> str:
        """Name as a text, also if it is an index."""
        return str(self.name)

    @cached_property
    def word(self) -> str:
        """Name without prefixes and accents, in lower case. "" if the column has only an index."""
        if isinstance(self.name, int):
            return ""
        return plain_letters(without_prefixes(self.name))

    @cached_property
    def name_words(self) -> str:
        """Words of the name, plain as in `word`, with a blank between: case id.

        A capital letter after a small one begins a word: EventTime has two.
        """
        if isinstance(self.name, int):
            return ""
        parts = plain_letters(CAPITAL.sub(" ", without_prefixes(self.name)))
        return " ".join(BETWEEN_WORDS.split(parts)).strip()

    @property
    def shown(self) -> str:
        """Name for messages, in quotes and cut if it is very long, or such as column 2."""
        if isinstance(self.name, str):
            return quote(self.name, LONGEST_LABEL)
        return f"column {self.name}"

    @property
    def parts(self) -> "tuple[ColumnProfile, ...]":
        """The column, or the columns that it joins."""
        return (self,)

    @property
    def key(self) -> Name | list[Name]:
        """Value of a key of the config for the column: its name, or a list of names."""
        names = [part.name for part in self.parts]
        if len(names) == 1:
            return names[0]
        return names

    @cached_property
    def counts(self) -> npt.NDArray[np.intp]:
        """Number of rows of each value, (values,)."""
        return np.bincount(self.codes, minlength=len(self.values))

    @cached_property
    def blank(self) -> int:
        """Index of the value of blank cells, or -1 if there are none."""
        if self.are_texts:
            if "" in self.values:
                return self.values.index("")
            return -1
        return next((at for at, x in enumerate(self.values) if type(x) is str and not x), -1)

    @cached_property
    def are_texts(self) -> bool:
        """True if no value is a list."""
        return set(map(type, self.values)) <= {str}

    @property
    def is_blank(self) -> Mask:
        """True for each row with a blank cell, (rows,)."""
        found: Mask = self.codes == self.blank
        return found

    @property
    def is_missing(self) -> Mask:
        """True for each row with a blank cell, or one such as n/a, (rows,)."""
        found: Mask = np.array([kind == "missing" for kind in self.cell_kinds])[self.codes]
        return found

    @property
    def is_mostly_nan(self) -> bool:
        """True if most cells are NaN, as those of a sensor that is slower than others."""
        counts = zip(self.values, self.counts, strict=True)
        nan = sum(count for value, count in counts if str(value).lower() == "nan")
        return bool(2 * nan > self.rows)

    @cached_property
    def distinct(self) -> int:
        """Number of distinct values that aren't blank."""
        return len(self.values) - (self.blank >= 0)

    @property
    def is_constant(self) -> bool:
        """True if all cells are equal, also if they are lists, which are never counted as one."""
        first = str(self.values[0]) if self.values else ""
        return all(str(value) == first for value in self.values)

    @cached_property
    def sampled_values(self) -> list[Any]:
        """Values spread over all of them, at most `SAMPLE`."""
        return self.values[:: max(1, -(-len(self.values) // SAMPLE))]

    # Kinds

    @cached_property
    def _looked(self) -> tuple[list[str], Floats]:
        """Kind of each value, and its number if it is one of a plain form, else NaN."""
        kinds, numbers = list[str](), np.full(len(self.values), np.nan)
        for start in range(0, len(self.values), AT_ONCE):
            part = self.values[start : start + AT_ONCE]
            found = parsed_numbers(part)
            if found is None:
                kinds += map(kind_of_cell, part)
            else:
                kinds += ["number"] * len(part)
                numbers[start : start + AT_ONCE] = found
        if kinds.count("numbers") <= kinds.count(MIXED):
            for at, kind in enumerate(kinds):
                kinds[at] = kind_without_numbers(self.values[at]) if kind == MIXED else kind
        return kinds, numbers

    @property
    def cell_kinds(self) -> list[str]:
        """Kind of each value, (values,): a key of `KIND_PATTERNS`, missing, text, or list kind."""
        return self._looked[0]

    @cached_property
    def kind_counts(self) -> Counter[str]:
        """Number of cells of each kind."""
        kinds = set(self.cell_kinds)
        if len(kinds) == 1:
            return Counter({kinds.pop(): self.rows})
        found: Counter[str] = Counter()
        for kind, count in zip(self.cell_kinds, self.counts.tolist(), strict=True):
            found[kind] += count
        return found

    def values_of(self, *kinds: str) -> list[Any]:
        """Return the values whose cells are of some kinds."""
        if self.kind_counts.keys() <= {*kinds}:
            return self.values
        if self.kind_counts.keys().isdisjoint(kinds):
            return []
        pairs = zip(self.values, self.cell_kinds, strict=True)
        return [value for value, own in pairs if own in kinds]

    @cached_property
    def units(self) -> dict[str, str]:
        """Maps each unit of amounts to the first cell with it. Numbers with a comma have ""."""
        found: dict[str, str] = {}
        for value in self.values_of("amount") + self.values_of("decimal"):
            match = KIND_PATTERNS["amount"].fullmatch(value)
            if match:
                found.setdefault(match["before"] + match["after"], value)
        return found

    @property
    def unit(self) -> str:
        """The only unit of a column of amounts, or the text of `numbered_text`, as written."""
        if self.kind == "time":
            return ""
        units = [unit for unit in self.units if unit]
        return units[0] if len(units) == 1 else self.numbered_text

    @property
    def _are_words(self) -> bool:
        """True if all cells are texts, and neither numbers, times nor lists."""
        return self.main_kind[0] == "text" and self.are_texts

    @property
    def are_unread_times(self) -> bool:
        """True for times none of which is known, such as dates that can be read in two ways."""
        return self.kind == "time" and bool(np.isnan(self.numbers).all())

    @cached_property
    def numbered_text(self) -> str:
        """Text before or after the whole numbers of all cells, such as Q of Q1 and Q4, or ""."""
        if not self._are_words or self.blank >= 0:
            return ""
        found = set[str]()
        for value in self.values:
            match = NUMBERED_TEXT.fullmatch(value)
            if match is None or len(found) > 1:
                return ""
            found.add(match["before"] or match["after"])
            if COUNTS_DOWN.search(value):
                return ""
        return next(iter(found)).strip() if len(found) == 1 else ""

    @cached_property
    def are_ordinals(self) -> bool:
        """True if all cells are numbers such as 1st and 2nd."""
        return self._are_words and all(map(ORDINAL.fullmatch, self.values))

    @cached_property
    def has_units_of_time(self) -> bool:
        """True for times whose units differ from cell to cell, such as 800ms and 1.2s."""
        amounts = self.values_of("amount")
        if len(self.units.keys() - {""}) + bool(self.kind_counts["time"]) < 2:
            return False
        return seconds_of(amounts, DURATION) is not None

    @cached_property
    def calendar_names(self) -> str:
        """Type of time, a key of `TIME_TYPES`, of names of months or weekdays; "" for others."""
        if not self._are_words or self.blank >= 0:
            return ""
        if len(self.values) > MOST_NAMES or any(map(WITH_DIGIT.search, self.values)):
            return ""
        types = [type for type in (DATE, WEEKDAY) if seconds_of(self.values, type) is not None]
        return types[0] if len(types) == 1 else ""

    @property
    def _amounts(self) -> list[str]:
        """Numbers of amounts without their unit."""
        return [value.replace(self.unit, "").strip() for value in self.values_of("amount")]

    @cached_property
    def has_decimal_commas(self) -> bool:
        """True if commas are decimal: not all of them can separate thousands, as in 1,000."""
        if self.kind_counts.keys() <= {"number", "missing"}:
            return False
        marked = self.values_of("decimal") + self.values_of("grouped")
        if self.kind_counts["amount"] and len(self.units) == 1:
            marked = self._amounts
        marked = [value for value in marked if "," in value or value.count(".") > 1]
        if marked and self.kind_counts["numbers"] <= self.kind_counts["number"]:
            return not all(GROUPED["."].fullmatch(value.strip("()-")) for value in marked)
        lists = [value for value in self.values_of("numbers") if isinstance(value, str)]
        are_commas = any("," in value for value in lists)
        if any(";" in value for value in lists):
            are_commas = any("," in value and NO_PAIR.search(value) for value in lists)
        return are_commas and all(COMMA_NUMBER.sub("", value) == "" for value in lists[:SAMPLE])

    @property
    def decimal_points(self) -> list[str]:
        """Numbers whose points can't separate thousands, as that of 1.000 can."""
        if self.kind not in ("number", "amount"):
            return []
        marked: list[str] = [x for x in self.values_of("number") + self._amounts if "." in x]
        return [x for x in marked if GROUPED[","].fullmatch(x) is None]

    @property
    def may_have_decimal_points(self) -> bool:
        """True if each number has one point before three digits, as decimals may have: 14.963."""
        is_one = self.kind == "number" and self.distinct >= FEWEST_MEASURED
        return is_one and all(map(THREE_DECIMALS.fullmatch, self.values))

    def possible_thousands(self, mark: str) -> str | None:
        """Return a number whose decimals may be thousands, or None if there isn't one.

        Others have no decimals, and at most three digits: 2.531 beside 458.

        Args:
            mark: The decimal mark.
        """
        numbers: list[str] = self.values_of("number") + self.values_of("decimal")
        if self.kind == "amount":
            numbers += self._amounts
        if self.kind == "series":
            texts = [value for value in self.sampled_values if isinstance(value, str)]
            numbers = [word for text in texts for word in re.split(r"[][\s;]+", text) if word]
        grouped = GROUPED["," if mark == "." else "."]
        if any(mark in value and not grouped.fullmatch(value) for value in numbers):
            return None
        marked = [value for value in numbers if mark in value]
        wholes = [value for value in numbers if mark not in value]
        is_long = any(len(value.lstrip("+-")) > 3 for value in wholes)
        if self.kind not in ("number", "amount", "series") or not marked or not wholes or is_long:
            return None
        return marked[0]

    @cached_property
    def main_kind(self) -> tuple[str, tuple[str, ...]]:
        """Kind of nearly all cells that aren't missing, and the kinds of cells that belong to it.

        More cells may be of another kind if they are a few marks that repeat, such as ERR among
        many different numbers. The kind is "text" if there is none.
        """
        if self._looked[0] == ["number"] * len(self.values):  # a table may have many such columns
            return "number", ("number",)
        if self._are_phone_numbers():
            return "text", ()
        counts = self.kind_counts
        least = max(1, MOSTLY * (counts.total() - counts["missing"]))
        for kind, members in self._readings():
            count = sum(counts[member] for member in members)
            if kind == "numbers":  # cells with words among their numbers are odd ones of this kind
                count += counts[MIXED]
            if count >= least or (kind in ("number", "time") and self._has_marks(members)):
                return kind, members
        return "text", ()

    def _has_marks(self, members: tuple[str, ...]) -> bool:
        """Return True if most cells are of some kinds, and the others are a few marks that repeat.

        Args:
            members: Kinds of the cells that aren't marks.
        """
        is_mark = np.array([kind not in ("missing", *members) for kind in self.cell_kinds])
        is_value = np.array([kind in members for kind in self.cell_kinds])
        marks, values = self.counts[is_mark], self.counts[is_value]
        are_few = len(marks) <= MOST_MARKS and len(values) >= FEWEST_MEASURED * len(marks)
        return bool(are_few and marks.min() > 1 and marks.sum() < values.sum())

    def _readings(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the kinds that the column may have, and the kinds of cells that belong to each."""
        counts = self.kind_counts
        singles = max(counts["number"], counts["grouped"])
        if counts["numbers"] > singles or self._are_lists_of_codes():
            # A list may have one number, or two or three: "1,2" and "12,305,305".
            yield "numbers", ("numbers", "number", "decimal", "grouped")
        elif counts["decimal"] or counts["grouped"]:
            yield "number", ("number", "decimal", "grouped")
        for kind in counts.keys() - {"missing", "decimal", "grouped", "amount", MIXED}:
            yield kind, (kind,)
        if counts["amount"] and len(self.units.keys() - {""}) == 1:
            yield "amount", ("amount", "number", "decimal", "grouped")
        if self.has_units_of_time:
            yield "time", ("time", "amount")

    def _are_phone_numbers(self) -> bool:
        """Return True for numbers such as +49 151 2345678, which are no lists.

        Those that begin with 0 must repeat, for lists may have codes such as 0012.
        """
        numbers = self.values_of("numbers")
        if len(numbers) + (self.blank >= 0) < len(self.values) or not self.are_texts:
            return False
        if not all(map(PHONE.fullmatch, numbers)):
            return False
        return self.repeats_as_labels or all(number.startswith("+") for number in numbers)

    def _are_lists_of_codes(self) -> bool:
        """Return True if blanks between numbers don't separate thousands, as in 101 305.

        All of the first numbers have three digits, and single numbers are rare.
        """
        texts = [value for value in self.values_of("grouped") if " " in value]
        return self.kind_counts["number"] < len(texts) and all(x[3:4] == " " for x in texts)

    @cached_property
    def kind(self) -> str:
        """Kind of the column: a kind of list, number, amount, time, text, or blank.

        An amount is a number with a unit. Few distinct whole numbers beside many words for missing
        ones are names.
        """
        if self.distinct == 0:
            return "blank"
        kind = self.main_kind[0]
        if kind == "numbers":
            if self.are_list_codes:
                return "symbols"
            return "series"
        if kind == "strings":
            return self._kind_of_strings()
        if kind == "text" and self.mark is not None:
            return "symbols"
        if kind == "time" and self._begins_with_times:
            return "text"
        is_missing = kind == "number" and "missing" in self.cell_kinds
        if is_missing and self.kind_counts["missing"] > LARGEST_SHARE_MISSING * self.rows:
            words = self.kind_counts["missing"] - np.count_nonzero(self.is_blank)
            is_named = words > LARGEST_SHARE_MISSING * self.rows
            if is_named and self.distinct < FEWEST_MEASURED and not self.has_decimals:
                return "text"
        return kind

    @property
    def mark(self) -> str | None:
        """The same as `joined_by`, but None for cells that repeat, for they may be labels."""
        return None if self.repeats_as_labels else self.joined_by

    @cached_property
    def joined_by(self) -> str | None:
        """Mark that joins the symbols in the cells of a column, such as > in a>b>c, or None.

        Most different cells have the mark, and parts repeat: if some have a blank inside, as Paid
        Search has, twice as often, for parts of sentences may repeat too.
        """
        if self.has_lists:
            return None
        texts = [value for value in self.sampled_values if value.lower() not in WITHOUT_VALUE]
        for mark in (*MARKS, *MARKS_IN_WORDS):
            lists = [[part.strip() for part in text.split(mark)] for text in texts]
            parts = Counter(part for each in lists for part in each)
            are_many = 2 * sum(len(each) > 1 for each in lists) > len(lists)
            if are_many and parts.total() >= REPEATS * len(parts):
                has_blank = any(len(part.split()) > 1 for part in parts)
                if mark in MARKS_IN_WORDS and (has_blank or not _are_paths(lists, parts)):
                    continue
                least = 2 * REPEATS if has_blank else REPEATS
                if parts.total() >= least * len(parts):
                    return mark
                return None
        return None

    @cached_property
    def has_lists(self) -> bool:
        """True if a cell is a list, or the text of one in brackets."""
        pairs = zip(self.values, self.cell_kinds, strict=True)
        in_brackets = (x for x, kind in pairs if kind != "text" and x.startswith(LIST_STARTS))
        return not self.are_texts or any(in_brackets)

    def strings_of(self, value: Any) -> list[str]:
        """Return the strings of a list in the column, also of one written in a cell of text."""
        if isinstance(value, str) and self.mark is not None:
            return [part.strip() for part in value.split(self.mark)]
        return [str(item) for item in items_of(value, bare=True) or ()]

    def _kind_of_strings(self) -> str:
        """Return "turns" for lists of sentences, or "symbols" for lists of names."""
        strings = [string for value in self.sampled_values for string in self.strings_of(value)]
        words = sum(len(string.split()) for string in strings)
        are_sentences = words >= 2 * len(strings) and REPEATS * len(set(strings)) > len(strings)
        if are_sentences:
            return "turns"
        return "symbols"

    @cached_property
    def is_odd(self) -> Mask:
        """True for each row with a cell of another kind that isn't missing, (rows,).

        Times that can't be read are odd, such as 2024-02-30. So are few missing dates: they don't
        sort their rows.
        """
        allowed = {"missing", *self.main_kind[1]}
        found: Mask = np.zeros(self.rows, dtype=bool)
        if self.main_kind[0] == "text" or self.kind in ("text", "blank"):
            return found
        if not self.kind_counts.keys() <= allowed:
            found = np.array([kind not in allowed for kind in self.cell_kinds])[self.codes]
        if self.kind == "time" and self.time_type:
            is_unread = np.isnan(self.numbers)
            is_rare = not self.is_duration and is_unread.mean() <= 1 - MOSTLY
            found = found | (is_unread if is_rare else is_unread & ~self.is_missing)
        return found

    @property
    def odd_codes(self) -> list[int]:
        """Codes of the values of another kind."""
        codes: list[int] = np.unique(self.codes[self.is_odd]).tolist()
        return codes

    def odd_texts(self, code: int) -> list[str]:
        """Return a value of another kind as text, or the words among its numbers."""
        if self.cell_kinds[code] == MIXED:
            return odd_items(self.values[code])
        return [str(self.values[code])]

    # Numbers

    @cached_property
    def numbers(self) -> Floats:
        """Number of each row, or its seconds for times. NaN if a cell is missing or odd. (rows,)"""
        return self.value_numbers[self.codes]

    @cached_property
    def value_numbers(self) -> Floats:
        """Number of each value, or its seconds for times; NaN if it is neither, (values,).

        The names of months and weekdays are times, and texts such as Q1 are numbers.
        """
        kind, members = self.main_kind
        found: Floats = np.full(len(self.values), np.nan)
        if self.calendar_names:
            names = seconds_of(self.values, self.calendar_names)
            return found if names is None else names
        if self.are_ordinals:
            return np.array([int("".join(filter(str.isdigit, x))) for x in self.values], float)
        if self.numbered_text:
            texts = (value.replace(self.numbered_text, "") for value in self.values)
            return np.array(list(map(float, texts)))
        if kind == "time":
            found[[x in members for x in self.cell_kinds]] = self._times[1]
            return found
        decimal = "."
        if self.has_decimal_commas:
            decimal = ","
        else:
            found = self._looked[1].copy()
        for at in np.flatnonzero(np.isnan(found)).tolist():
            value = self.values[at]
            own = self.cell_kinds[at]
            is_plain = isinstance(value, str) and KIND_PATTERNS["number"].fullmatch(value)
            if is_plain or (kind != "numbers" and own in NUMBER_KINDS and own in members):
                with suppress(BadCellError):
                    text = value.replace(self.unit, "") if kind == "amount" else value
                    found[at] = float(with_point(text, decimal))
        return found

    @cached_property
    def _times(self) -> tuple[str | None, Any]:
        """The only type of times as which all times can be read, and their seconds, or NaN.

        If there is none, it is the only one as which nearly all times can be read.
        """
        texts = self.values_of(*self.main_kind[1])
        counts = self.counts[[kind in self.main_kind[1] for kind in self.cell_kinds]]
        some = texts[:: max(1, len(texts) // 1000)]  # few tell most types from the right one
        for least in (1, MOSTLY):
            share = 1 if least == 1 else 0.5  # of distinct times: a date may be that of many rows
            found = []
            for type in TIME_TYPES:
                if type == NUMBER or seconds_of(some, type, share) is None:
                    continue
                seconds = seconds_of(texts, type, share)
                if seconds is None:
                    continue
                if counts[np.isfinite(seconds)].sum() >= least * counts.sum():
                    found.append((type, seconds))
            if found:
                break
        dates = [each for each in found if each[0] != DURATION]  # 12.05.24 may be a time of day
        found = dates or found
        if len(found) == 1:
            return found[0]
        return (None, np.nan)

    @property
    def time_type(self) -> str:
        """Type of time of the cells, a key of `TIME_TYPES`, or "" if they aren't times of one."""
        if self.kind == "time":
            return self._times[0] or ""
        return self.calendar_names

    @cached_property
    def _begins_with_times(self) -> bool:
        """True if cells are lines of a log: a time, and a text after it."""
        words = [len(str(value).split()) for value in self.sampled_values]
        return float(np.mean(words)) > WORDS_OF_TIME and self._times[0] is None

    @cached_property
    def is_duration(self) -> bool:
        """True if the column holds times of day or durations."""
        return self.kind == "time" and self._times[0] == DURATION

    @property
    def is_number(self) -> bool:
        """True if the column holds numbers without units, of which a duration is one in seconds."""
        return self.kind == "number" or self.is_duration

    @cached_property
    def has_decimals(self) -> bool:
        """True if a number isn't whole."""
        known = self.value_numbers[np.isfinite(self.value_numbers)]
        return bool((known != np.rint(known)).any())

    @cached_property
    def lists(self) -> list[Floats]:
        """Numbers of lists of numbers, (T,) each, of a sample of the values."""
        found = list[Floats]()
        for value in self.sampled_values if self.main_kind[0] == "numbers" else ():
            if isinstance(value, list):
                own = [x if type(x) in NUMBER_TYPES else None for x in flattened(value)]
                found.append(np.array(own, np.float64))
            elif not isinstance(value, str):
                found.append(np.asarray(value, np.float64).reshape(-1))
            elif value:
                plain = value.replace(MINUS, "-")
                if self.has_decimal_commas:
                    plain = with_points(plain)
                plain = plain.replace("True", "1").replace("False", "0")
                found.append(np.array(re.findall(NUMBER_TEXT, plain), dtype=np.float64))
        return found

    @cached_property
    def are_list_codes(self) -> bool:
        """True if lists of one line hold whole numbers from 0 on, and neighbours aren't similar.

        Numbers without brackets that commas or semicolons join must repeat, as those of a>b>c do.
        """
        for value in self.sampled_values:
            if isinstance(value, str):
                marks = [mark for mark in ",;" if mark in value]
                is_bare = not value.startswith(("[", "("))
                if "[[" in value or "\n" in value or (";" in marks and not is_bare):
                    return False
                if is_bare and marks not in ([], [self.mark]):
                    return False
            elif np.asarray(value).dtype.kind not in "iu" or np.ndim(value) > 1:
                return False
        return are_codes(self.lists)

    @cached_property
    def are_whole_lists(self) -> bool:
        """True if lists hold whole numbers from 0 on."""
        return are_whole(self.lists)

    @property
    def holds_points(self) -> bool:
        """True if each list holds two to four numbers, as the place of an event does."""
        sizes = {len(numbers) for numbers in self.lists}
        return self.kind in ("series", "symbols") and sizes in POINT_SIZES

    @cached_property
    def steps(self) -> float:
        """Mean number of numbers or symbols of a list, or 0."""
        lists: Sequence[Any] = self.lists
        if self.kind == "symbols" and not lists:
            lists = [self.strings_of(value) for value in self.sampled_values if value != ""]
        if lists:
            return float(np.mean([len(items) for items in lists]))
        return 0.0

    # Texts

    @cached_property
    def words(self) -> float:
        """Mean number of words of a cell. A cell that isn't text has one word."""
        if self.kind not in ("text", "blank") or not self.rows:
            return 1.0
        sizes = [len(str(value).split()) or 1 for value in self.values]
        return float(np.dot(sizes, self.counts) / self.rows)

    @cached_property
    def characters(self) -> int:
        """Number of characters of all texts."""
        return int(np.dot([len(str(value)) for value in self.values], self.counts))

    @cached_property
    def longest(self) -> int:
        """Number of characters of the longest value. Lists count as too long for a label."""
        if self.are_texts:
            return max(map(len, self.values), default=0)
        return 1000

    @cached_property
    def pattern(self) -> bool:
        """True if nearly all cells have one pattern of digits and two separators or more."""
        strings = [x for x in self.sampled_values if isinstance(x, str)]
        texts = [x for x in strings if x.lower() not in WITHOUT_VALUE]
        found = Counter(re.sub("[0-9]+", "0", re.sub("[A-Za-z]{3,}", "a", x)) for x in texts)
        pattern, count = next(iter(found.most_common(1)), ("", 0))
        return count >= 0.95 * len(texts) and 3 <= pattern.count("0") <= MOST_NUMBERS_OF_TIME

    @cached_property
    def has_one_shape(self) -> bool:
        """True for words of which all have as many letters before and after numbers: K1, K27.

        So are numbers after a mark, such as #1001, and hashes, such as UUIDs, one for each row.
        """
        texts = [x for x in self.sampled_values if isinstance(x, str) and x]
        if self.is_unique and all(map(HASH.fullmatch, texts)):
            return True
        shapes = {LETTER.sub("a", DIGITS.sub("0", text)) for text in texts}
        if len(shapes) != 1 or self.words >= 1.5:
            return False
        (shape,) = shapes
        return "0" in shape and ("a" in shape or shape[0] != "0")

    # Use

    @property
    def repeats_as_labels(self) -> bool:
        """True if short values repeat, as combinations of labels do."""
        return 2 <= self.distinct <= self.rows / 2 and self.longest <= LONGEST_LABEL

    @cached_property
    def has_no_labels(self) -> bool:
        """True if any cell can't be a label: a list, a number with decimals, or a long text."""
        if self.longest > LONGEST_LABEL or self.kind in LIST_KINDS:
            return True
        return self.kind in ("number", "amount") and self.has_decimals

    @cached_property
    def can_be_label(self) -> bool:
        """True if short values repeat that are texts or whole numbers."""
        is_value = self.repeats_as_labels and self.kind in LABEL_KINDS and not self.has_no_labels
        return is_value and not (self.names_splits or self.numbers_folds)

    @cached_property
    def names_splits(self) -> bool:
        """True if all cells are names of splits, such as train and test."""
        if not 2 <= self.distinct <= len(SPLIT_VALUES) or not self.are_texts:
            return False
        return {value.lower() for value in self.values} <= {*SPLIT_VALUES, ""}

    @cached_property
    def numbers_folds(self) -> bool:
        """True for the numbers of folds of a cross-validation, also such as fold_3."""
        is_number = self.kind == "number" or self.numbered_text != ""
        return is_number and FOLD_NAME.fullmatch(self.name_words) is not None

    @cached_property
    def holds_marks(self) -> bool:
        """True if the column holds lists of one length with only 0 and 1."""
        if self.main_kind[0] != "numbers" or not self.are_whole_lists:
            return False
        return is_multi_hot(numbers.astype(int).tolist() for numbers in self.lists)

    @property
    def marks_rows(self) -> bool:
        """True if some cells are blank, and all others are equal, such as an x."""
        return self.distinct == 1 and self.blank >= 0

    @property
    def is_multi_hot(self) -> bool:
        """True if the column holds lists of one length with only 0 and 1 that repeat."""
        lists = self.lists if self.holds_marks else []
        return 0 < 2 * len(set(map(bytes, lists))) <= self.rows

    @cached_property
    def holds_names(self) -> bool:
        """True if the column holds lists of names, of objects with a name, or of marks."""
        if self.kind != "events":
            return self.kind == "symbols" or self.holds_marks
        items = [item for value in self.sampled_values for item in items_of(value) or ()]
        return all(isinstance(label_of(item), str) for item in items)

    @property
    def repeats(self) -> bool:
        """True if all cells can be labels, and each value occurs four times or more on average."""
        return not self.has_no_labels and REPEATS * self.distinct <= self.rows

    @property
    def differs(self) -> bool:
        """True if most rows have a value of their own, or one that can't be a label."""
        return self.has_no_labels or self.distinct > self.rows / 2

    @cached_property
    def holds_codes(self) -> bool:
        """True if ten texts or more are letters and a number, such as K017, or mail addresses."""
        texts = [value for value in self.values if value != ""] if self.are_texts else []
        return len(texts) >= FEWEST_CODES and all(map(CODE.fullmatch, texts))

    @cached_property
    def is_contiguous(self) -> bool:
        """True if the rows of each value follow each other."""
        return is_contiguous(self.codes)

    @property
    def is_unique(self) -> bool:
        """True if all cells differ, and are single words or whole numbers, as ids of rows are."""
        if self.has_no_labels or self.is_duration or self.distinct < self.rows:
            return False
        are_alike = len({len(str(value)) for value in self.sampled_values}) == 1
        return self.words < 1.5 and (are_alike or not self.are_scattered)

    @cached_property
    def are_scattered(self) -> bool:
        """True for numbers that neither rise nor fall, and leave gaps, as counts of a sensor do.

        Ids are sorted or dense. Where another column is the id, numbers of equal length are none.
        """
        numbers = self.numbers[np.isfinite(self.numbers)]
        if self.kind != "number" or len(numbers) < 3:
            return False
        steps = np.diff(numbers)
        is_sorted = (steps >= 0).all() or (steps <= 0).all()
        return not is_sorted and bool(np.ptp(numbers) > SPARSE * len(numbers))

    @cached_property
    def holds_measurements(self) -> bool:
        """True for texts of numbers with a flag, or of two numbers: 5.6 H, 112/67, 3-5."""
        is_counted = self.are_ordinals or self.numbered_text != ""
        if self.kind != "text" or self.has_lists or self.distinct < FEWEST_MEASURED or is_counted:
            return False
        if all(map(is_number, self.values)):  # numbers of many digits are texts, too
            return False
        known = 0
        marks = list[int]()
        for value, kind, count in zip(self.values, self.cell_kinds, self.counts, strict=True):
            if kind in NUMBER_KINDS or (kind == "text" and MEASURED.fullmatch(value)):
                known += int(count)
            elif kind == "text" and not any(map(str.isalnum, value)):
                marks.append(int(count))
        present = self.rows - self.kind_counts["missing"]
        if len(marks) <= MOST_MARKS:  # such as -- in most rows
            present -= sum(marks)
        return known >= max(1, MOSTLY * present)

    @property
    def is_category(self) -> bool:
        """True if the column holds texts of about one word that repeat."""
        return self.kind == "text" and self.words < 1.5 and self.repeats

    @property
    def is_measured(self) -> bool:
        """True if the column holds numbers with decimals, or many that aren't all different.

        They may have flags, or be two in a cell.
        """
        if self.holds_measurements:
            return True
        if self.kind not in ("number", "amount") or self.is_unique:
            return False
        return self.distinct >= FEWEST_MEASURED or self.has_decimals

    @property
    def is_free_text(self) -> bool:
        """True if the column holds texts of three words or more, most of which differ."""
        is_text = self.kind == "text" and self.differs and self.words >= FREE_WORDS
        return is_text and not self.holds_measurements

    def unit_problem(self) -> str:
        """Return an error message about the first number with a unit."""
        value = self.units[self.unit]
        row = int(np.argmax(self.codes == self.values.index(value))) + 1
        return f"{self.shown}: found {quote(value, 20)} (row {row:,}); write numbers without units"

    def describe(self) -> str:
        """Return the name and the kind of content of the column, such as `'age' (numbers)`."""
        if self.name == "":
            name = "the column without a name"
        else:
            name = self.shown
        if self.is_unique:
            kind = "unique"
        elif not self.differs and self.kind in ("blank", *LABEL_KINDS):
            kind = counted(self.distinct, "value")
        elif self.is_duration:
            kind = "times"
        elif self.kind in SHOWN_KINDS:
            kind = SHOWN_KINDS[self.kind]
        elif self.words > 1:
            kind = f"text, {self.words:.1f} words per row"
        else:
            kind = "text, a word per row"
        return f"{name} ({kind})"


Columns: TypeAlias = Sequence[ColumnProfile]
"""Columns of a table, of which none is changed."""


def without(columns: Columns, taken: Collection[ColumnProfile | None]) -> list[ColumnProfile]:
    """Return the columns that aren't among those that are taken."""
    unwanted = set(taken)
    return [column for column in columns if column not in unwanted]


class JoinedColumn(ColumnProfile):
    """Columns whose cells are one value together, such as an id of a subject and a trial.

    A value is blank if one of its cells is.

    Args:
        parts: The columns, at least one.
    """

    kind = "text"  # not that of a decimal number: 7,3

    def __init__(self, *parts: ColumnProfile) -> None:
        codes = joined_codes([part.codes for part in parts])
        codes[np.any([part.is_blank for part in parts], axis=0)] = -1
        _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
        order = np.argsort(first)  # that of first appearance
        rows = first[order]
        cells = ([part.values[code] for code in part.codes[rows]] for part in parts)
        values = [
            delimited_line(list(map(str, own)), ",").removesuffix("\n") if all(own) else ""
            for own in zip(*cells, strict=True)
        ]
        name = ", ".join(part.name_text for part in parts)
        super().__init__(name, values, np.argsort(order)[codes].astype(np.int32))
        self._parts = parts

    @property
    def parts(self) -> tuple[ColumnProfile, ...]:
        """The columns."""
        return self._parts

    @property
    def shown(self) -> str:
        """Names for messages."""
        return listed([part.shown for part in self.parts])

    @property
    def is_odd(self) -> Mask:
        """True for each row with an odd cell, (rows,)."""
        found: Mask = np.any([part.is_odd for part in self.parts], axis=0)
        return found


def joined_codes(columns: Sequence[Integers]) -> npt.NDArray[np.int64]:
    """Return a code of each row that tells apart the rows with other codes in any column."""
    found = np.zeros(len(columns[0]), np.int64)
    for codes in columns:
        pairs = found * (int(codes.max(initial=0)) + 1) + codes
        found = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return found


def is_contiguous(codes: Integers) -> bool:
    """Return True if the rows of each code follow each other."""
    changes = np.count_nonzero(np.diff(codes))
    return bool(changes == len(np.flatnonzero(np.bincount(codes))) - 1)


def joined_column(columns: Columns) -> ColumnProfile:
    """Return one column as it is, or several as a `JoinedColumn`."""
    if len(columns) == 1:
        return columns[0]
    return JoinedColumn(*columns)


def _are_paths(lists: Sequence[Sequence[str]], parts: Counter[str]) -> bool:
    """Return True if lists are of many lengths, and their items are words or codes, no numbers.

    Args:
        lists: The lists.
        parts: Number of occurrences of each item.
    """
    words = sum(any(map(str.isalpha, part)) for part in parts)
    return len(set(map(len, lists))) >= FEWEST_LENGTHS and words > len(parts) / 2


def without_prefixes(name: str) -> str:
    """Return the name of a column without prefixes: id for event.id, outcome for (case) outcome."""
    known = EVENT_LOG_NAMES.get(name.lower())
    if known is not None:
        return known
    return PREFIX.sub("", name, count=1)


def plain_letters(name: str) -> str:
    """Return a text in lower case and without accents."""
    letters = unicodedata.normalize("NFKD", name.lower())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def determines(
    one: ColumnProfile, other: ColumnProfile, *, labelled: bool = False, filled: bool = False
) -> bool:
    """Return True if rows with equal values in `one` always have equal values in `other`.

    Rows with an odd cell, such as ERR among numbers, don't count.

    Args:
        one: The column that may determine the other.
        other: The column that may be determined.
        labelled: True to ignore rows in which `other` is blank. Perhaps only one row of an id holds
            its label.
        filled: True to ignore rows in which `one` is blank.
    """
    used = ~(one.is_odd | other.is_odd)
    if labelled:
        used &= ~other.is_blank
    if filled:
        used &= ~one.is_blank
    first = slice(SAMPLE)  # most columns that don't determine another are told by few rows
    for rows in (first, slice(None)):
        left, right = one.codes[rows][used[rows]], other.codes[rows][used[rows]]
        some = np.zeros(len(one.values), dtype=np.int32)
        some[left] = right
        if not (some[left] == right).all():
            return False
    return bool(used.any())


def refines(one: ColumnProfile, other: ColumnProfile, *, labelled: bool = False) -> bool:
    """Return True if the rows of each value of `one` have one of `other`, but not one each.

    So do the ids of sequences, of which several have one label.
    """
    return determines(one, other, labelled=labelled) and not determines(other, one)


def seconds_of(texts: Sequence[str], type: str, least: float = 1) -> Floats | None:
    """Return the seconds of times of one type, or None if too few can be read.

    The seconds of a time that can't be read are NaN. The result is also None if only some have a
    time zone.

    Args:
        texts: The times.
        type: The type, a key of `TIME_TYPES`.
        least: Smallest share of times that can be read.
    """
    try:
        times, problems = TimeColumn(type).times_of(list(texts), np.arange(len(texts)))
    except UnreadableError:
        return None
    if len(problems) > (1 - least) * len(texts):
        return None
    seconds: Floats = times / SECOND
    seconds[[*problems]] = np.nan
    return seconds
