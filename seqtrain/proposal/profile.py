"""Profiles of columns: kinds, distinct values, and counts, from all rows of a table."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seqtrain.tables.blocks import Name
from seqtrain.tables.cells import BadCellError, items_of
from seqtrain.tables.series import series_of
from seqtrain.tables.times import READERS, SECOND, BadTimeError, read_duration
from seqtrain.text import counted, quote

Floats: TypeAlias = npt.NDArray[np.float64]
Codes: TypeAlias = npt.NDArray[np.int32]

NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
BETWEEN = r"[][(),;\s]"
CLOCK = r"(?:-?[0-9]+ days?,? )?[0-9]{1,3}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?"
PERIOD = r"[-+]?P(?=.*T.)[-+0-9A-Z.]*"
MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
DAY = r"(?:[0-9]{4}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2})[-/.][0-9]{1,4}(?:[T -].*)?"
STAMP = r"[0-9]{6}(?:[0-9]{2})?[T _-][0-9]{4,6}(?:[.,][0-9]+)?(?:Z|[-+][0-9:]+)?"
WRITTEN = rf"\[?(?:[A-Z][a-z]{{2}},? )?(?:{MONTH}[ .]+[0-9]|[0-9]{{1,2}}[ /-]{MONTH}[ /-]).*[0-9].*"
UNIT = r"°?[A-Za-zµ]{0,6}(?:/[a-z]+)?"
AMOUNT = (
    rf"(?P<before>[€$£¥]?)\s?[-+]?(?:[0-9]+|[0-9]+[.,][0-9]+|[0-9]{{1,3}}(?:,[0-9]{{3}})+(?:\.[0-9]+)?"
    rf"|[0-9]{{1,3}}(?:\.[0-9]{{3}})+,[0-9]+)\s?(?P<after>[€$£¥%]|{UNIT})"
)
KINDS = {
    "number": re.compile(NUMBER),
    "time": re.compile(f"{DAY}|{STAMP}|{CLOCK}|{PERIOD}|{WRITTEN}", re.DOTALL),
    "decimal": re.compile(r"[-+]?[0-9]+,[0-9]+"),
    "amount": re.compile(AMOUNT),
    "numbers": re.compile(
        rf"{BETWEEN}*(?:{NUMBER}|[nN]a[nN]|\?)(?:{BETWEEN}+(?:{NUMBER}|[nN]a[nN]|\?|\.\.\.))*{BETWEEN}*"
    ),
}
"""Maps each kind of cell to its pattern. The first pattern that fits decides. All else is text."""
PLAIN_TEXT = re.compile(r"[^\W\d_]{4}.{4}", re.DOTALL)
"""Beginning of a cell that no pattern fits, so that most texts are told by one comparison."""
CLOCKS = re.compile(f"{CLOCK}|{PERIOD}")
THOUSANDS = re.compile(r"[-+]?[1-9][0-9]{0,2},[0-9]{3}")
MISSING = ("", "?", "-", "na", "n/a", "nan", "null", "none")
"""Cells without a value, in lower case."""
JOINED = re.compile(r"\w+(?:(?:->|>|\|)\w+)+")
"""Symbols that are joined by one mark, such as a>b>c."""
LIST_KINDS = ("series", "symbols", "turns", "events")
"""Kinds of columns whose cells hold whole sequences."""
LONGEST_NUMBER = 15
"""Whole numbers of more digits are codes: float64 doesn't hold them."""
NEARLY_ALL = 0.98
"""Share of the present cells that decides the kind of a column. The other cells are odd."""
REPEATS = 4
"""Values repeat if each occurs this many times or more on average."""
FEWEST_MEASURED = 8
"""Fewest distinct values for a column of whole numbers to hold measurements."""
FREE_WORDS = 3
"""Texts of this many words or more on average are free text, not names."""
MOST_MISSING = 0.1
"""Largest share of words such as NA among few distinct numbers. With more they are names."""
LONGEST_LABEL = 80
BRACKETS = "[({<"
"""First characters of lists in cells of text."""
KEPT, KEPT_EVERY, PIECE = 200_000, 16, 200
"""Of more long texts than the first number, one in so many is kept whole. The others are cut."""
AT_ONCE = 1024
"""Number of values that are tried as numbers together."""
SAMPLE = 4096
"""Number of values, spread over all, that tell the kind of a column without numbers."""
PATTERNS = 1000
"""Number of values, spread over all, whose pattern of digits is compared."""
TEXT_FIELDS = ("content", "value", "text", "utterance", "message", "body", "sentence", "comment")
"""Names of the field that holds the text of an object, such as a message of a chat."""


class Column:
    """A column of a table as codes into its distinct values.

    Args:
        name: Name of the column, or its index.
        values: Distinct cells in the order of first appearance. Texts have no blanks around them. A
            list of numbers is an array, a list of strings a tuple, a list of objects a list. A
            missing cell is "".
        codes: Index of the value of each row, (rows,).
    """

    def __init__(self, name: Name, values: list[Any], codes: Codes) -> None:
        self.name, self.values, self.codes = name, values, codes
        self.rows = len(codes)

    @classmethod
    def of(cls, name: Name, cells: Iterable[Any]) -> "Column":
        """Return the profile of a column with these cells."""
        known = KnownValues()
        codes = np.array([known.code(cell) for cell in cells], dtype=np.int32)
        return cls(name, known.distinct, codes)

    def at(self, rows: npt.NDArray[Any]) -> "Column":
        """Return the column of some rows, by a mask or by their indices."""
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        values = [self.values[code] for code in used.tolist()]
        return Column(self.name, values, codes.astype(np.int32))

    @cached_property
    def word(self) -> str:
        """Name after its last dot, in lower case, or "" if the column has only an index."""
        return "" if isinstance(self.name, int) else self.name.lower().rpartition(".")[2]

    @property
    def shown(self) -> str:
        """Name for messages, in quotes and cut to 40 characters, or the index."""
        return quote(self.name, 40) if isinstance(self.name, str) else str(self.name)

    @cached_property
    def counts(self) -> npt.NDArray[np.intp]:
        """Number of rows of each value, (values,)."""
        return np.bincount(self.codes, minlength=len(self.values))

    @cached_property
    def cell_kinds(self) -> npt.NDArray[np.str_]:
        """Kind of each value, (values,): a key of `KINDS`, missing, text, or a kind of list."""
        return np.array(kinds_of(self.values), dtype=object)

    @cached_property
    def kind_counts(self) -> Counter[str]:
        """Number of cells of each kind."""
        if len(self.values) > SAMPLE:
            kinds, codes = np.unique(self.cell_kinds.astype(str), return_inverse=True)
            totals = np.bincount(codes, self.counts, len(kinds)).astype(int)
            return Counter(dict(zip(kinds.tolist(), totals.tolist(), strict=True)))
        found: Counter[str] = Counter()
        for kind, count in zip(self.cell_kinds.tolist(), self.counts.tolist(), strict=True):
            found[kind] += count
        return found

    @cached_property
    def cell_kind(self) -> str:
        """Kind of nearly all cells that aren't missing, or "text"."""
        found = self.kind_counts.copy()
        present = found.total() - found.pop("missing", 0)
        if found["numbers"] and found["decimal"]:  # "1,2" beside "1,2,3" is a list of two
            found["numbers"] += found.pop("decimal")
        if found["decimal"] and self.has_decimal_commas:
            found["number"] += found.pop("decimal")
        if found["numbers"] > found["number"]:
            found["numbers"] += found.pop("number", 0)  # lists of one number
        amounts = found["amount"] + found["decimal"]
        if amounts and len(self.units) == 1:
            found["amount"] = found.pop("decimal", 0) + found.pop("number", 0) + found["amount"]
        for kind, count in found.items():
            if count >= max(1, NEARLY_ALL * present):
                return kind
        return "text"

    @cached_property
    def has_decimal_commas(self) -> bool:
        """True if commas are decimal: not all of them can separate thousands, as in 1,000."""
        found = self.values_of("decimal")
        if found and "numbers" not in self.kind_counts:
            return not all(map(THOUSANDS.fullmatch, found)) and not self.values_of("amount")
        lists = [value for value in self.values_of("numbers") if isinstance(value, str)]
        has_commas = any("," in value for value in lists)
        decimal = re.compile(r"(?:[-+]?[0-9]+(?:,[0-9]+)?|\?|[nN]a[nN])(?:\s+(?=\S)|$)")
        return has_commas and all(decimal.sub("", value) == "" for value in lists[:SAMPLE])

    @cached_property
    def units(self) -> dict[str, str]:
        """Maps each unit of amounts to the first cell with it. The unit of 1,000 is ""."""
        found: dict[str, str] = {}
        for value in self.values_of("amount") + self.values_of("decimal"):
            match = KINDS["amount"].fullmatch(value)
            if match:
                found.setdefault(match["before"] + match["after"], value)
        return found

    def values_of(self, kind: str) -> list[Any]:
        """Return the values whose cells are of one kind."""
        if kind not in self.kind_counts:
            return []
        return [self.values[code] for code in np.flatnonzero(self.cell_kinds == kind).tolist()]

    @cached_property
    def kind(self) -> str:
        """Kind of the column: number, time, series, symbols, turns, events, text, or blank.

        Numbers with a unit are numbers, too. Few distinct whole numbers beside many missing ones
        are names.
        """
        if self.distinct == 0:
            return "blank"
        kind = self.cell_kind
        if kind == "numbers":
            return "symbols" if self.are_list_codes else "series"
        if kind == "strings":
            return self._kind_of_strings()
        if kind == "joined":
            return "text" if self.repeats_as_labels else "symbols"
        if kind == "amount":
            return "number"
        if kind == "number" and self.kind_counts["missing"] > MOST_MISSING * self.rows:
            words = self.kind_counts["missing"] - np.count_nonzero(self.is_blank)
            is_named = words > MOST_MISSING * self.rows
            if is_named and self.distinct < FEWEST_MEASURED and not self.has_decimals:
                return "text"
        return "text" if kind in ("decimal", "missing") else kind

    def _kind_of_strings(self) -> str:
        """Return "turns" for lists of sentences, or "symbols" for lists of names."""
        strings = [string for value in self.sampled_values for string in strings_of(value)]
        words = sum(len(string.split()) for string in strings)
        are_sentences = words >= 2 * len(strings) and REPEATS * len(set(strings)) > len(strings)
        return "turns" if are_sentences else "symbols"

    @property
    def repeats_as_labels(self) -> bool:
        """True if short values repeat, as combinations of labels do."""
        return 2 <= self.distinct <= self.rows / 2 and self.longest <= LONGEST_LABEL

    @cached_property
    def sampled_values(self) -> list[Any]:
        """Values spread over all of them, at most `SAMPLE`."""
        step = -(-len(self.values) // SAMPLE)
        return self.values[:: max(1, step)]

    @cached_property
    def is_odd(self) -> npt.NDArray[np.bool_]:
        """True for each row with a cell of another kind that isn't missing, (rows,)."""
        if self.kind in ("text", "blank"):
            return np.zeros(self.rows, dtype=bool)
        allowed = ["missing", self.cell_kind]
        if self.cell_kind in ("numbers", "amount"):
            allowed.append("number")
        if self.has_decimal_commas or self.cell_kind in ("amount", "numbers"):
            allowed.append("decimal")
        if len(self.kind_counts.keys() - {*allowed}) == 0:
            return np.zeros(self.rows, dtype=bool)
        is_odd: npt.NDArray[np.bool_] = ~np.isin(self.cell_kinds.astype(str), allowed)[self.codes]
        return is_odd

    @cached_property
    def lists(self) -> list[Floats]:
        """Numbers of lists of numbers, (T,) each, of a sample of the values."""
        found = []
        for value in self.sampled_values:
            if isinstance(value, np.ndarray):
                found.append(value.reshape(-1).astype(np.float64))
            elif isinstance(value, str) and value:
                plain = value.replace(",", ".") if self.has_decimal_commas else value
                found.append(np.array(re.findall(NUMBER, plain), dtype=np.float64))
        return found

    @cached_property
    def are_list_codes(self) -> bool:
        """True if lists of one line hold whole numbers from 0 on, and neighbours aren't similar."""
        for value in self.sampled_values:
            if isinstance(value, np.ndarray):
                if value.ndim > 1 or value.dtype.kind == "f":
                    return False
            elif any(mark in value for mark in ("[[", ";", "\n")) or (
                "," in value and not value.startswith("[")
            ):
                return False
        return self.are_whole_lists and not are_smooth(self.lists)

    @cached_property
    def are_whole_lists(self) -> bool:
        """True if lists hold whole numbers from 0 on."""
        return all((x >= 0).all() and (x == np.rint(x)).all() for x in self.lists)

    @cached_property
    def steps(self) -> float:
        """Mean number of numbers of a list, or 0."""
        return float(np.mean([len(numbers) for numbers in self.lists])) if self.lists else 0.0

    @cached_property
    def numbers(self) -> Floats:
        """Number of each row, or its seconds for times. NaN if a cell is missing or odd. (rows,)"""
        return self.value_numbers[self.codes]

    @cached_property
    def value_numbers(self) -> Floats:
        """Number of each value, or its seconds for times; NaN if it is neither, (values,)."""
        if self.cell_kind == "time":
            return seconds_of(self.values, self.cell_kinds == "time")
        values = self.values
        if self.has_decimal_commas:
            values = [value.replace(",", ".") for value in values]
        return numbers_of(values)

    @cached_property
    def has_decimals(self) -> bool:
        """True if a number isn't whole."""
        known = self.value_numbers[np.isfinite(self.value_numbers)]
        return bool((known != np.rint(known)).any())

    @cached_property
    def is_duration(self) -> bool:
        """True if times are times of day or durations."""
        times = self.values_of("time") if self.kind == "time" else []
        return bool(times) and all(map(CLOCKS.fullmatch, times))

    @cached_property
    def words(self) -> float:
        """Mean number of words of a cell. A cell that isn't text has one word."""
        if self.kind not in ("text", "blank"):
            return 1.0
        sizes = [len(str(value).split()) if value else 1 for value in self.values]
        return float(np.array(sizes)[self.codes].mean()) if self.rows else 0.0

    @cached_property
    def characters(self) -> int:
        """Number of characters of all texts."""
        sizes = np.array([len(x) if isinstance(x, str) else 0 for x in self.values])
        return int((sizes * self.counts).sum())

    @cached_property
    def is_text_only(self) -> bool:
        """True if no value is a list."""
        return {*map(type, self.values)} <= {str}

    @cached_property
    def longest(self) -> int:
        """Number of characters of the longest value. Lists count as too long for a label."""
        return max(map(len, self.values), default=0) if self.is_text_only else 1000

    @cached_property
    def blank(self) -> int:
        """Index of the value of blank cells, or -1 if there are none."""
        if self.is_text_only:
            return self.values.index("") if "" in self.values else -1
        return next((at for at, x in enumerate(self.values) if type(x) is str and not x), -1)

    @property
    def is_blank(self) -> npt.NDArray[np.bool_]:
        """True for each row with a blank cell, (rows,)."""
        found: npt.NDArray[np.bool_] = self.codes == self.blank
        return found

    @cached_property
    def distinct(self) -> int:
        """Number of distinct values that aren't blank."""
        return len(self.values) - (self.blank >= 0)

    @property
    def has_no_labels(self) -> bool:
        """True if any cell can't be a label: a list, a number with decimals, or a long text."""
        if self.longest > LONGEST_LABEL or self.kind in LIST_KINDS:
            return True
        return self.kind == "number" and self.has_decimals

    @cached_property
    def can_be_label(self) -> bool:
        """True if short values repeat that are texts or whole numbers."""
        if not self.repeats_as_labels:
            return False
        return self.kind in ("text", "number") and not self.has_no_labels

    @property
    def repeats(self) -> bool:
        """True if all cells can be labels, and each value occurs four times or more on average."""
        return not self.has_no_labels and REPEATS * self.distinct <= self.rows

    @property
    def differs(self) -> bool:
        """True if most rows have a value of their own, or one that can't be a label."""
        return self.has_no_labels or self.distinct > self.rows / 2

    @property
    def is_unique(self) -> bool:
        """True if all cells differ, and are single words or whole numbers, as ids of rows are."""
        return not self.has_no_labels and self.distinct == self.rows and self.words < 1.5

    @property
    def is_category(self) -> bool:
        """True if the column holds texts of about one word that repeat."""
        return self.kind == "text" and self.words < 1.5 and self.repeats

    @property
    def is_measured(self) -> bool:
        """True if the column holds numbers with decimals, or many that aren't all different."""
        if self.kind != "number" or self.is_unique:
            return False
        return self.distinct >= FEWEST_MEASURED or self.has_decimals

    @property
    def is_free_text(self) -> bool:
        """True if the column holds texts of three words or more, most of which differ."""
        return self.kind == "text" and self.differs and self.words >= FREE_WORDS

    @property
    def share_repeated(self) -> float:
        """Share of the rows, in [0, 1], whose value also occurs in another row."""
        return float(np.mean(self.counts[self.codes] > 1)) if self.rows else 0.0

    @cached_property
    def pattern(self) -> str | None:
        """Pattern of digits and separators that nearly all cells have, or None.

        Digits are 0 in it. It has two separators or more.
        """
        step = max(1, len(self.values) // PATTERNS)
        texts = [x for x in self.values[::step] if isinstance(x, str) and x.lower() not in MISSING]
        found = Counter(re.sub("[0-9]+", "0", re.sub("[A-Za-z]{3,}", "a", x)) for x in texts)
        if not found:
            return None
        pattern, count = found.most_common(1)[0]
        is_one = count >= 0.95 * len(texts) and pattern.count("0") >= 3
        return pattern if is_one else None

    @property
    def has_refused_units(self) -> bool:
        """True if numbers have a unit, or commas that separate thousands: no reader takes them."""
        return bool(self.units) and not self.has_decimal_commas and self.kind == "number"

    def unit_problem(self) -> str:
        """Return an error message about the first number with a comma or a unit."""
        value = next(iter(self.units.values()))
        row = int(np.flatnonzero(self.codes == self.values.index(value))[0]) + 1
        advice = "write decimals with a point, thousands without a comma, and no units"
        return f"{self.shown}: found {quote(value, 20)} (row {row:,}); {advice}"

    def describe(self) -> str:
        """Return the name and the kind of content of the column, such as `'age' (numbers)`."""
        name = "the column without a name" if self.name == "" else self.shown
        names = {"series": "lists of numbers", "symbols": "lists", "turns": "sentences"}
        names |= {"number": "numbers", "time": "dates", "events": "lists of objects"}
        if self.is_unique:
            kind = "unique"
        elif not self.differs and self.kind in ("number", "text", "blank"):
            kind = counted(self.distinct, "value")
        elif self.is_duration:
            kind = "times"
        else:
            kind = names.get(self.kind, f"text, {self.words:.3g} words per row")
        return f"{name} ({kind})"


class NumberColumn(Column):
    """A column of plain numbers, none of them missing, whose values are coded when they are needed.

    In a table of thousands of columns, coding them all would take most of the time.

    Args:
        name: Name of the column, or its index.
        cells: The cells, as texts.
    """

    def __init__(self, name: Name, cells: Sequence[str]) -> None:
        self.name, self.cells, self.rows = name, cells, len(cells)
        self.kind = self.cell_kind = "number"
        self.numbers = np.array([*map(float, cells)])
        self.distinct = len({*cells})
        self.longest = max(map(len, cells))
        self.has_decimals = bool((self.numbers != np.rint(self.numbers)).any())
        self.is_odd = np.zeros(self.rows, dtype=bool)
        self.has_decimal_commas = False

    @cached_property
    def coded(self) -> Column:
        """The column with codes."""
        return Column.of(self.name, self.cells)

    @cached_property
    def values(self) -> list[Any]:  # type: ignore[override]
        """Distinct cells in the order of first appearance."""
        return self.coded.values

    @cached_property
    def codes(self) -> Codes:  # type: ignore[override]
        """Index of the value of each row, (rows,)."""
        return self.coded.codes

    @property
    def units(self) -> dict[str, str]:
        """No unit: all cells are plain numbers."""
        return {}


class KnownValues(dict[Any, int]):
    """Codes of the distinct cells of a column, in the order of first appearance.

    Attributes:
        distinct: The value of each code.
    """

    def __init__(self) -> None:
        self.distinct = list[Any]()

    def __missing__(self, cell: Any) -> int:
        if type(cell) is not str:
            return self._code_of_other(value_of(cell))
        value = cell.strip()
        if len(value) > LONGEST_LABEL:
            return self._code_of_long(value)
        code = self[cell] = self._append(value) if value == cell else self[value]
        return code

    def code(self, cell: Any) -> int:
        """Return the code of a cell, which may be a list."""
        return self[cell] if isinstance(cell, str) else self.__missing__(cell)

    def _code_of_other(self, value: Any) -> int:
        """Return the code of a value that wasn't a text in the file."""
        if isinstance(value, str):
            return self[value]
        if isinstance(value, np.ndarray | list):
            return self._append(value)
        code = self.get(value, -1)
        if code < 0:
            code = self[value] = self._append(value)
        return code

    def _code_of_long(self, text: str) -> int:
        """Return the code of a long text. Its hash stands for it, for a text needs much memory."""
        key, new = (LONGEST_LABEL, hash(text)), len(self.distinct)
        code = self.get(key, -1)
        if code < 0:
            is_cut = new >= KEPT and new % KEPT_EVERY > 0
            code = self[key] = self._append(text[:PIECE] if is_cut else text)
        return code

    def _append(self, value: Any) -> int:
        self.distinct.append(value)
        return len(self.distinct) - 1


def value_of(cell: Any) -> Any:
    """Return a cell as a value of `Column.values`."""
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float):
        return "" if cell != cell else str(int(cell)) if cell.is_integer() else str(cell)
    if isinstance(cell, list | tuple | np.ndarray):
        return _value_of_list(cell)
    return "" if cell is None else str(cell)


def _value_of_list(cell: Any) -> Any:
    if len(cell) == 0:
        return ""
    if isinstance(cell, np.ndarray):
        return cell
    if isinstance(cell[0], dict):
        return list(cell)
    if isinstance(cell[0], str):
        return tuple(map(str, cell))
    try:
        numbers = np.array(cell)
        if numbers.dtype == object:
            numbers = numbers.astype(np.float64)
    except (ValueError, TypeError):
        return str(cell)
    return numbers if numbers.dtype.kind in "iufb" else str(cell)


def kinds_of(values: Sequence[Any]) -> list[str]:
    """Return the kind of each value. Numbers are recognized many at once.

    Of very many other values, a sample tells the kind of all, if it has one kind.
    """
    kinds = list[str]()
    found = set[str]()
    for start in range(0, len(values), AT_ONCE):
        part = values[start : start + AT_ONCE]
        new = ["number"] * len(part) if are_numbers(part) else [*map(kind_of_cell, part)]
        kinds += new
        found.update(new)
        if start > 4 * SAMPLE and len(found - {"missing"}) == 1 and new[-1] != "number":
            rest = values[start + AT_ONCE :]
            if {*map(kind_of_cell, rest[:: max(1, len(rest) // SAMPLE)])} == {new[-1]}:
                return kinds + [new[-1]] * len(rest)
    return kinds


def are_numbers(values: Sequence[Any]) -> bool:
    """Return True if all values are plain numbers of at most 15 characters."""
    try:
        text = "".join(values)
        if not text.isascii() or "_" in text or max(map(len, values)) > LONGEST_NUMBER:
            return False
        return bool(np.isfinite(np.array(list(map(float, values)))).all())
    except (ValueError, TypeError):
        return False


def kind_of_cell(cell: Any) -> str:
    """Return the kind of a value: a key of `KINDS`, missing, text, turns or events."""
    if not isinstance(cell, str):
        return _kind_of_list(cell)
    if cell.lower() in MISSING:
        return "missing"
    if JOINED.fullmatch(cell):
        return "joined"
    if PLAIN_TEXT.match(cell) and not KINDS["time"].fullmatch(cell):
        return "text"
    if cell.isdigit() and len(cell) > LONGEST_NUMBER:
        return "text"
    for kind, pattern in KINDS.items():
        if pattern.fullmatch(cell):
            return kind
    if "\n" in cell and is_recording(cell):
        return "numbers"
    items = items_of(cell, bare=True) if cell[:1] in BRACKETS else None
    return _kind_of_list(value_of(items)) if items else "text"


def is_recording(cell: str) -> bool:
    """Return True if a cell of several lines, the first of which may be names, holds numbers."""
    if re.match(rf"[^\n]*\n\s*{NUMBER}", cell) is None:
        return False
    try:
        return len(series_of(cell)) > 0
    except BadCellError:
        return False


def _kind_of_list(cell: Any) -> str:
    if isinstance(cell, np.ndarray):
        return "numbers"
    if isinstance(cell, tuple):
        return "strings"
    if not isinstance(cell, list):
        return "text"
    has_text = all(isinstance(each, dict) and text_field(each) for each in cell)
    return "turns" if has_text else "events"


def text_field(fields: dict[str, Any]) -> str | None:
    """Return the name of the field of an object that holds its text, or None."""
    return next((name for name in TEXT_FIELDS if isinstance(fields.get(name), str)), None)


def fields_of(value: Any) -> list[str]:
    """Return the names of the fields of the objects in a list, also of one in a cell of text."""
    items = items_of(value) or []
    return [name for each in items if isinstance(each, dict) for name in each]


def strings_of(value: Any) -> list[str]:
    """Return the strings of a list, also of one written in a cell of text."""
    if isinstance(value, tuple):
        return [*value]
    if JOINED.fullmatch(value):
        return re.split(r"\W+", value)
    return [str(item) for item in items_of(value, bare=True) or ()]


def numbers_of(values: Sequence[Any]) -> Floats:
    """Return the number in each value, or NaN."""
    found = np.full(len(values), np.nan)
    number = KINDS["number"]
    for start in range(0, len(values), AT_ONCE):
        part = values[start : start + AT_ONCE]
        if are_numbers(part):
            found[start : start + len(part)] = list(map(float, part))
            continue
        for at, value in enumerate(part, start):
            if isinstance(value, str) and number.fullmatch(value):
                found[at] = float(value)
    return found


def are_smooth(lists: Iterable[Floats]) -> bool:
    """Return True if neighbours in lists are more similar to each other than to the mean."""
    roughness = 0.0
    for numbers in lists:
        if len(numbers):
            roughness += (np.diff(numbers) ** 2).sum() - len(numbers) * numbers.var()
    return roughness < 0


def flattened(columns: Mapping[Name, Any]) -> Iterator[tuple[Name, Any]]:
    """Yield each field of JSON objects with its cells. An inner field is named ``outer.inner``.

    A field that only holds objects is left out itself.
    """
    for name, cells in columns.items():
        if not isinstance(cells, list) or dict not in {*map(type, cells)}:
            yield name, cells
            continue
        rows = [cell if isinstance(cell, dict) else {} for cell in cells]
        inner = dict.fromkeys(field for each in rows for field in each)
        fields: dict[Name, Any] = {}
        for field in inner:
            fields[f"{name}.{field}"] = [row.get(field) for row in rows]
        yield from flattened(fields)
        others = [None if isinstance(cell, dict) else cell for cell in cells]
        if any(cell is not None for cell in others):
            yield name, others


def seconds_of(values: Sequence[Any], is_time: npt.NDArray[np.bool_]) -> Floats:
    """Return the seconds of each date or duration, or NaN.

    All are NaN if the values can be read in several ways, such as day or month first, or in none.

    Args:
        values: The values.
        is_time: True for each value that looks like a time.
    """
    texts = [values[code] for code in np.flatnonzero(is_time).tolist()]
    readings: list[Callable[[Sequence[str]], list[float] | None]] = [_durations]
    readings += [partial(_dates, read=read) for read in READERS.values()]
    spread = texts[:: max(1, len(texts) // PATTERNS)]
    possible = [read for read in readings if read(spread) is not None]
    found = [seconds for read in possible if (seconds := read(texts)) is not None]
    result = np.full(len(values), np.nan)
    if len(found) == 1:
        result[is_time] = found[0]
    return result


def _durations(texts: Sequence[str]) -> list[float] | None:
    try:
        return [read_duration(text) / SECOND for text in texts]
    except BadTimeError:
        return None


def _dates(texts: Sequence[str], read: Callable[[str], tuple[int, bool]]) -> list[float] | None:
    """Return the seconds of dates, or None if one can't be read, or only some have a time zone."""
    try:
        moments = [read(text) for text in texts]
    except BadTimeError:
        return None
    has_zones = {has_zone for _, has_zone in moments}
    return [time / SECOND for time, _ in moments] if len(has_zones) == 1 else None
