"""Profiles of table columns: statistics of the cells of a column, counted in blocks of rows."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from operator import mul
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.proposal.cell_kinds import (
    DECIMAL_COMMA,
    LIST_KINDS,
    LONGEST_NUMBER,
    THOUSANDS,
    Cell,
    cell_of_list,
    cell_of_text,
    is_plainly_text,
)
from seqtrain.proposal.column_names import OWNER_NAMES
from seqtrain.proposal.options import InitOptions
from seqtrain.sequences.examples import BadRow
from seqtrain.sequences.read_options import Column
from seqtrain.sequences.readers.numbers import DECIMAL_COMMAS, is_number, plain_numbers
from seqtrain.sequences.readers.times import (
    DATE,
    DAY_FIRST,
    DURATION,
    MONTH_FIRST,
    SECOND,
    read_time,
)
from seqtrain.text import counted, quote

CODE_NAME = re.compile(r"(^|[^a-z])([a-z]?id|uid|session|case|trip|code|key|zip|poi)([^a-z]|$)")
"""Pattern in the names of columns whose numbers are codes, such as case_id."""
TIME_NAME = re.compile(
    r"(^|[^a-z])(time|timestamp|date|datetime|when|ts|epoch|step|order|frame|t)$"
)
"""Pattern in the names of columns whose numbers are times, such as event_time."""
FEWEST_AT_ONCE = 32
"""Fewest distinct cells of a block that are tried as numbers together."""
MOST_KEPT = 100_000
"""Number of kept cells from which on no further block is kept.

Also the number of distinct values beyond which values aren't counted any more.
"""
LONGEST_LABEL = 80
"""Length of the longest value that can be a label."""
REPEATS = 4
"""The values of a column repeat if each occurs this many times or more on average."""
FEWEST_MEASURED = 8
"""Fewest distinct values for a column of whole numbers to hold measurements."""
FREE_WORDS = 3
"""Texts of this many words or more on average are free text, not names."""
MOST_MISSING = 0.1
"""Largest share of words such as NA in a column of few distinct numbers; with more it is text."""
CALENDAR = re.compile(
    r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(([01]\d|2[0-3])[0-5]\d([0-5]\d)?)?", re.ASCII
)
"""Pattern of a date of 1900 to 2099 written as a whole number, such as 20240301.

A time of day may follow, as in 202403010951.
"""
KIND_NAMES = {
    "series": "lists of numbers",
    "symbols": "lists",
    "turns": "sentences",
    "date": "dates",
    "number": "numbers",
}


@dataclass(eq=False)
class ColumnProfile:
    """Statistics of one table column, updated block by block with `add`.

    Only the first `MOST_KEPT` cells or a few more are kept, in `cells` and `texts`.

    Attributes:
        column: Name or index of the column.
        one_hot: Names or indexes of the one-hot label columns that this profile joins, or None.
        rows: Number of all cells, kept or not.
        cells: Stripped texts of the kept cells, cut to `LONGEST_LABEL` + 1 characters.
        texts: The kept cells as they are written. A list or null is "".
        is_text_only: True if all cells are texts in the file.
        values: Maps each value to its count. Values are the cells that can be labels, and the
            strings in lists of sentences. Blank cells aren't values. Counting ends at more than
            `MOST_KEPT` values.
        has_no_labels: True if any cell can't be a label: a list, a number with decimals or a
            comma, or a text longer than `LONGEST_LABEL`.
        characters: Total number of characters of the cells. A list from JSON counts as none.
        words: Total number of words. A cell that isn't text, even a blank one, counts as one word.
        kinds: Maps each kind of cell (see `Cell`) to its count.
        units: Maps each unit of numbers to the first cell with this unit and its row, from 1. The
            unit of a number with a comma and no unit is "".
        decimal_commas: Number of cells such as 0,5 or 1,000.
        decimal_series: Number of cells such as "0,5 1,5".
        thousands: Number of cells whose comma may separate thousands, such as 1,000.
        steps: Total length of the lists of numbers, in time steps. Lists without `Cell.content`
            count as none.
        roughness: Measure of the differences between neighbours, over all lists of whole numbers.
            It is negative for measurements, whose neighbours are similar.
    """

    column: Column
    one_hot: list[Column] | None = None
    rows: int = 0
    cells: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    is_text_only: bool = True
    values: Counter[str] = field(default_factory=Counter)
    has_no_labels: bool = False
    characters: int = 0
    words: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    units: dict[str, tuple[str, int]] = field(default_factory=dict)
    decimal_commas: int = 0
    decimal_series: int = 0
    thousands: int = 0
    steps: int = 0
    roughness: float = 0.0

    def add(self, cells: Sequence[object], *, before: bool = False) -> None:
        """Add a block of cells to the statistics.

        Args:
            cells: Texts or values from JSON, one per row. None is a blank cell.
            before: True to insert the cells before all earlier blocks. This is for a first row that
                turns out to be no header.
        """
        types = {*map(type, cells)}
        self.is_text_only = self.is_text_only and types <= {str}
        lists = [cell for cell in cells if isinstance(cell, list)] if list in types else []
        texts = ["" if x is None or isinstance(x, list) else str(x) for x in cells]
        for value in lists:
            self._count(cell_of_list(value), "", 1)
        counts = Counter(texts)
        counts[""] -= len(lists)
        for text, count in self._count_many(+counts).items():
            cell = cell_of_text(text)
            if cell.kind == "unit" and cell.content not in self.units:
                self.units[cell.content] = (text.strip(), self.rows + texts.index(text) + 1)
            self._count(cell, text, count)
        if len(self.cells) < MOST_KEPT:
            kept = [text.strip()[: LONGEST_LABEL + 1] for text in texts]
            place = 0 if before else len(self.cells)
            self.cells[place:place] = kept
            self.texts[place:place] = texts
        self.rows += len(cells)

    def _count_many(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Add the cells that are plainly texts and, on these conditions, the plain numbers:

        - All cells that aren't plainly texts are plain numbers or blank.
        - No number has more than `LONGEST_NUMBER` characters.
        - At least `FEWEST_AT_ONCE` numbers are distinct.

        Args:
            counts: Maps the text of each cell to its count.

        Returns:
            The counts of the cells that were not added.
        """
        plain = {text: n for text, n in counts.items() if is_plainly_text(text)}
        self._add("text", plain, [text for text in plain if len(text) <= LONGEST_LABEL])
        others = {text: n for text, n in counts.items() if text not in plain}
        numbers = {text: n for text, n in others.items() if text and not text.isspace()}
        values = plain_numbers([*numbers]) if len(numbers) >= FEWEST_AT_ONCE else None
        if values is None or max(map(len, numbers)) > LONGEST_NUMBER:
            return others
        whole = [x for x, value in zip(numbers, values.tolist(), strict=True) if not value % 1 > 0]
        self._add("number", numbers, whole)
        return {text: n for text, n in others.items() if text not in numbers}

    def _add(self, kind: str, counts: Mapping[str, int], labels: Sequence[str]) -> None:
        """Add cells of one kind, text or number.

        Args:
            kind: The kind, "text" or "number".
            counts: Maps the text of each cell to its count.
            labels: The texts among `counts` that can be labels.
        """
        self.kinds[kind] += sum(counts.values())
        self.characters += sum(len(text) * n for text, n in counts.items())
        words = (len(text.split()) if kind == "text" else 1 for text in counts)
        self.words += sum(map(mul, words, counts.values()))
        self.has_no_labels = self.has_no_labels or len(labels) < len(counts)
        if len(self.values) <= MOST_KEPT:
            self.values.update({text: counts[text] for text in labels})

    def _count(self, cell: Cell, text: str, count: int) -> None:
        """Add a cell that occurs several times.

        Args:
            cell: Kind and content of the cell.
            text: The cell as it is written, or "" for a list from JSON.
            count: How often it occurs.
        """
        kind, length = cell.kind, len(text)
        self.kinds[kind] += count
        self.characters += count * length
        self.words += count * (len(text.split()) if kind == "text" else 1)
        if kind == "turns" and len(self.values) <= MOST_KEPT:
            self.values.update(cell.content)
        elif kind in ("series", "whole"):
            self.steps += count * len(cell.content)
            self.decimal_series += count * bool(DECIMAL_COMMAS.fullmatch(text.strip()))
        if kind == "whole":
            numbers = np.asarray(cell.content, dtype=np.float64)
            squares = float((np.diff(numbers) ** 2).sum() - len(numbers) * numbers.var())
            self.roughness += count * squares
        has_decimals = False
        if kind == "number":
            has_decimals = float(text) % 1 > 0
        elif kind == "unit":
            has_decimals = "," in text or "." in text
            is_decimal = bool(DECIMAL_COMMA.fullmatch(text.strip()))
            self.decimal_commas += count * is_decimal
            self.thousands += count * bool(is_decimal and THOUSANDS.fullmatch(text.strip()))
        if has_decimals or kind in (*LIST_KINDS, "whole") or length > LONGEST_LABEL:
            self.has_no_labels = True
        elif kind != "blank" and len(self.values) <= MOST_KEPT:
            self.values[text] += count

    @cached_property
    def name(self) -> str:
        """Column name after its last dot, in lower case, or "" if the column has only an index."""
        return "" if isinstance(self.column, int) else self.column.lower().rpartition(".")[2]

    @property
    def as_label(self) -> dict[str, Any]:
        """Keyword arguments of `Schema` that make this column the label."""
        return {"label": self.column} if self.one_hot is None else {"one_hot": self.one_hot}

    @property
    def shown(self) -> str:
        """Name of the column in quotes, cut to 40 characters, or its index as text."""
        return quote(self.column, 40) if isinstance(self.column, str) else str(self.column)

    @cached_property
    def kind(self) -> str:
        """Kind of the column: number, date, text, series, symbols or turns.

        It is the most frequent kind of cell. Blank cells and words for missing values, such as NA,
        aren't counted. If all cells are blank or such words, the kind is text. These are the
        special cases:

        - Numbers with a comma or a unit count as numbers if all have the same unit. If the units
          differ, they count as text.
        - A column of numbers is text if any cell is of another kind. It is also text if it has few
          distinct whole numbers (`FEWEST_MEASURED`) and many missing values (`MOST_MISSING`).
        - Lists of whole numbers are series if neighbours are similar. If not, they are symbols.
        - Lists of sentences are symbols if each occurs `REPEATS` times or more on average.
        """
        known = self.kinds.copy()
        blank, missing, with_unit = (known.pop(kind, 0) for kind in ("blank", "missing", "unit"))
        numbers = "series" if known["series"] + known["whole"] > known["number"] else "number"
        known[numbers if len(self.units) == 1 else "text"] += with_unit
        found = known.most_common(1)[0][0] if known.total() else "text"
        if found == "number":
            others = self.rows - known["number"] - blank - missing
            is_measured = self.has_no_labels or len(self.values) >= FEWEST_MEASURED
            is_text = others or (missing > MOST_MISSING * self.rows and not is_measured)
            return "text" if is_text else "number"
        if found == "turns" and 0 < REPEATS * len(self.values) <= self.values.total():
            return "symbols"  # the strings are names of events, not sentences
        if found == "whole":
            return "series" if self.roughness < 0 else "symbols"
        return found

    @cached_property
    def is_code(self) -> bool:
        """True if the column is named like codes, such as case_id: see `CODE_NAME`."""
        return bool(CODE_NAME.search(self.name))

    @cached_property
    def names_owner(self) -> bool:
        """True if a word of the column's name is in `OWNER_NAMES`, such as customer_id."""
        return not {*self.name.replace("-", "_").split("_")}.isdisjoint(OWNER_NAMES)

    @cached_property
    def is_time(self) -> bool:
        """True if the column is named like times, such as event_time: see `TIME_NAME`."""
        return bool(TIME_NAME.search(self.name))

    @property
    def differs(self) -> bool:
        """True if the number of distinct values is more than half the number of rows.

        It is also True if any cell can't be a label: see `has_no_labels`.
        """
        return self.has_no_labels or len(self.values) > self.rows / 2

    @property
    def repeats(self) -> bool:
        """True if all cells can be labels, and values occur `REPEATS` times or more on average."""
        return not self.has_no_labels and REPEATS * len(self.values) <= self.rows

    @property
    def can_be_label(self) -> bool:
        """True if the column has at least two distinct values, and at most half as many as rows.

        It is False for dates. It is also False if any cell can't be a label: see `has_no_labels`.
        """
        return len(self.values) >= 2 and not self.differs and self.kind != "date"

    @property
    def can_be_sequence(self) -> bool:
        """True if the column holds lists, or texts most of which differ: see `differs`.

        It is False for texts in a column named like codes. It is also False for single words in a
        column named like times.
        """
        is_name = self.is_code or (self.is_time and self.words <= self.rows)
        return self.kind in LIST_KINDS or (self.kind == "text" and self.differs and not is_name)

    @property
    def has_one_word(self) -> bool:
        """True if the cells hold fewer than 1.5 words on average."""
        return self.words < 1.5 * self.rows

    @property
    def is_id(self) -> bool:
        """True if the values can be ids of the rows.

        All cells differ, can be labels, and hold fewer than 1.5 words on average. A column with a
        blank cell, or with more than `MOST_KEPT` values, can't be the ids.
        """
        return not self.has_no_labels and len(self.values) == self.rows and self.has_one_word

    @property
    def is_category(self) -> bool:
        """True if the column holds texts of about one word that repeat: see `repeats`."""
        return self.kind == "text" and self.has_one_word and self.repeats

    @property
    def is_measured(self) -> bool:
        """True if the column holds measurements.

        These are numbers with decimals, or whole numbers of which `FEWEST_MEASURED` or more differ.
        Whole numbers that all differ may number the rows, and aren't measurements.
        """
        changes = (self.has_no_labels or len(self.values) >= FEWEST_MEASURED) and not self.is_id
        return self.kind == "number" and changes

    @property
    def is_free_text(self) -> bool:
        """True if the column holds texts of `FREE_WORDS` words or more on average.

        Most of the texts must differ: see `differs`.
        """
        return self.kind == "text" and self.differs and self.words >= FREE_WORDS * self.rows

    @property
    def has_decimal_commas(self) -> bool:
        """True if the column holds numbers with decimal commas, such as 0,5.

        It is False if a number has a unit, or if every comma may separate thousands.
        """
        is_decimal = self.thousands < self.decimal_commas == self.kinds["unit"]
        return is_decimal and self.kind == "number"

    @cached_property
    def codes(self) -> npt.NDArray[np.intp]:
        """Index of each kept cell's value, from 0 in the order of first appearance: (kept,).

        Cells are compared as in `cells`: cut to `LONGEST_LABEL` + 1 characters.
        """
        known: dict[str, int] = {}
        return np.array([known.setdefault(cell, len(known)) for cell in self.cells], dtype=np.intp)

    @cached_property
    def times(self) -> npt.NDArray[np.float64]:
        """Each kept cell as a number, or as the seconds of a date or duration: (kept,).

        - In a column of numbers, a cell that isn't a number is NaN.
        - In a column of dates, all values are NaN if a cell is blank or of another type of date.
        - They are also NaN if it is unclear whether the day or the month comes first.
        """
        cells = self.cells
        if self.has_decimal_commas:
            cells = [cell.replace(",", ".") for cell in cells]
        try:
            return np.array([*map(float, cells)])
        except ValueError:
            pass
        if self.kind != "date":
            numbers = {x: float(x) if is_number(x) else np.nan for x in {*cells}}
            return np.array([*map(numbers.__getitem__, cells)])
        found = [_seconds(cells, order_type) for order_type in (DATE, DURATION)]
        found += [_seconds(cells, order_type) for order_type in (DAY_FIRST, MONTH_FIRST)]
        readable = [seconds for seconds in found if seconds is not None]
        return readable[0] if len(readable) == 1 else np.full(len(cells), np.nan)

    @cached_property
    def is_duration(self) -> bool:
        """True if all kept cells are times of day or durations, such as 12:30.

        Blank cells and words such as NA don't count.
        """
        no_time = ("blank", "missing")
        cells = (cell for cell in {*self.cells} if cell_of_text(cell).kind not in no_time)
        return self.kind == "date" and _seconds(cells, DURATION) is not None

    @property
    def is_calendar(self) -> bool:
        """True if all kept cells are dates written as whole numbers: see `CALENDAR`.

        It is also True if there are no cells.
        """
        return all(map(CALENDAR.fullmatch, {*self.cells}))

    @property
    def share_repeated(self) -> float:
        """Share of the kept rows, in [0, 1], whose value also occurs in another kept row."""
        counts = np.bincount(self.codes)
        return float(np.mean(counts[self.codes] > 1)) if len(counts) else 0.0

    def unit_problem(self) -> str:
        """Return an error message about the first number with a comma or a unit.

        The column must have such a number: `units` isn't empty.
        """
        value, row = next(iter(self.units.values()))
        advice = "write decimals with a point, thousands without a comma, and no units"
        return f"{self.shown}: found {quote(value, 20)} (row {row:,}); {advice}"

    def describe(self) -> str:
        """Return the name and the kind of content of the column, such as `'age' (numbers)`."""
        if self.is_id:
            kind = "unique"
        elif not self.differs and self.kind in ("number", "text"):
            kind = counted(len(self.values), "value")
            if len(self.values) > MOST_KEPT:
                kind = f"more than {MOST_KEPT:,} values"
        else:
            text = f"text, {self.words / max(1, self.rows):.3g} words per row"
            kind = "times" if self.is_duration else KIND_NAMES.get(self.kind, text)
        return f"{self.shown if self.column != '' else 'the column without a name'} ({kind})"


def _seconds(cells: Iterable[str], order_type: str) -> npt.NDArray[np.float64] | None:
    """Return the cells as seconds, (cells,), or None if a cell is blank or of another type.

    Args:
        cells: Texts of dates, times or durations.
        order_type: `DATE`, `DURATION`, `DAY_FIRST` or `MONTH_FIRST`.
    """
    try:
        return np.array([read_time(cell, order_type)[0] for cell in cells], np.float64) / SECOND
    except BadRow:
        return None


def profile_blocks(blocks: Iterable[Mapping[Column, Sequence[Any]]]) -> list[ColumnProfile]:
    """Return one profile per column of a table, in the order in which columns first appear.

    Args:
        blocks: Blocks of rows. Each maps columns to their cells. A column that a block lacks is
            blank in its rows.
    """
    profiles: dict[Column, ColumnProfile] = {}
    total = 0
    for block in blocks:
        size = len(next(iter(block.values()), ()))
        for name in block:
            if name not in profiles:
                profiles[name] = ColumnProfile(name)
                profiles[name].add([""] * total)
        for name, profile in profiles.items():
            profile.add(block[name] if name in block else [""] * size)
        total += size
    return list(profiles.values())


def columns_named(
    columns: Sequence[ColumnProfile], options: InitOptions, option: str
) -> list[ColumnProfile]:
    """Return the profiles of the columns that the user gave in an option, by name or index.

    The list is empty if the user didn't give the option. A text that is a name and an index is
    read as a name.

    Args:
        columns: Profiles of all columns. The given columns must be among them.
        options: Options of the user.
        option: Name of the option, such as "id".
    """
    by_name = {str(i): column for i, column in enumerate(columns)}
    by_name |= {str(column.column): column for column in columns}
    return [by_name[str(name)] for name in options.named(option)]


def flattened(rows: Sequence[Mapping[str, Any]], prefix: str = "") -> dict[Column, list[Any]]:
    """Return a dictionary that maps each field of JSON objects to its cells, one per object.

    A field that an object lacks is None. A field of an inner object is named `outer.inner`. If a
    field only holds inner objects, the dictionary has only the fields of these objects.

    Args:
        rows: The objects.
        prefix: Text that is put before each name.
    """
    columns: dict[Column, list[Any]] = {}
    for name in dict.fromkeys(chain.from_iterable(rows)):
        cells = [row.get(name) for row in rows]
        if dict in {*map(type, cells)}:
            inner = [cell if isinstance(cell, dict) else {} for cell in cells]
            columns |= flattened(inner, f"{prefix}{name}.")
            cells = [None if isinstance(cell, dict) else cell for cell in cells]
            if cells.count(None) == len(cells):
                continue
        columns[prefix + name] = cells
    return columns
