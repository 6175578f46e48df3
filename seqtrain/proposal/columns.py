"""The columns of a table: what each holds, and which hold the label and the sequence."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.data.examples import BadRow
from seqtrain.data.read_options import Column
from seqtrain.data.readers.sequences import DECIMAL_COMMAS, MISSING, is_number, sequence_from_text
from seqtrain.data.readers.times import seconds_of
from seqtrain.errors import DataError
from seqtrain.text import counted, quote, shorten

LABEL_NAMES = (
    *("label", "labels", "class", "target", "category", "y", "intent", "topic", "sentiment"),
    *("tag", "type", "language", "lang", "genre", "rating", "stars", "gold", "classification"),
)
TEXT_NAMES = (
    *("text", "sequence", "sentence", "tokens", "content", "document", "review", "message"),
    *("question", "query", "utterance", "comment", "tweet", "post", "seq", "events", "symbols"),
    *("values", "series", "features", "name", "word", "x", "input"),
)
HEADLINE_NAMES = ("title", "subject", "headline", "summary")
BODY_NAMES = ("body", "description", "text", "content", "review", "abstract", "message")
ROW_NAMES = (
    *("id", "index", "session", "session_id", "conversation", "conversation_id"),
    *("dialogue", "dialog_id"),
)
"""Names of columns that say which rows belong together."""
CODE_NAME = re.compile(r"(^|[^a-z])([a-z]?id|uid|session|case|trip|code|key|zip|poi)([^a-z]|$)")
TIME_NAME = re.compile(
    r"(^|[^a-z])(time|timestamp|date|datetime|when|ts|epoch|step|order|frame|t)$"
)
"""At the end of names of columns that sort the rows of an id, though these be numbers."""
MOST_KEPT = 100_000
"""First rows whose cells are kept, and distinct values that are counted; labels have no more."""
LONGEST_LABEL = 80
"""Characters of the longest value that counts as a label."""
LONGEST_NUMBER = 15
"""Digits of the longest whole number that may be measured; a longer one is a code."""
FEWEST_STEPS = 8
"""Columns of numbers from which on they may be the time steps of a series."""
REPEATS = 4
"""Times that each value occurs on average from which on it is a class or the name of a machine."""
SEVERAL_WORDS = 3
"""Words per row from which on a text is free text, no name of something."""
MANY_NUMBERS = 32
"""Numbers per row from which on they are the sequence, whatever stands beside them."""
MOST_MISSING = 0.1
"""Share of a column's cells up to which words for nothing, such as NA, may stand among numbers."""
DATE = re.compile(
    r"([0-9]{4}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2})[-/.][0-9]{1,4}([T ].*)?"
    r"|[0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?"
)
CALENDAR = re.compile(
    r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(([01]\d|2[0-3])[0-5]\d([0-5]\d)?)?", re.ASCII
)
"""A date, perhaps with a time, that is written as a whole number."""
NUMBERS = re.compile(r"\[+\s*[-+.0-9]|[-+0-9\s]+,[-+.,0-9\s]*;[-+.,;0-9\s]*$")
"""A text that was meant as a list of numbers, though it can't be read: refused with the reason."""
ODD = re.compile(
    r"([€$£¥]?)\s?[-+]?([0-9]+|[0-9]+[.,][0-9]+|[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?"
    r"|[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]+)\s?([€$£¥%]|°?[A-Za-zµ]{0,6}(?:/[a-z]+)?)"
)
"""A number with a comma or a unit; a text, where the column has several units."""
LISTS = ("series", "symbols", "turns")
MOST_SHOWN = 69
"""Characters of the columns that a message lists, so that its advice is seen."""
DESCRIBED = {
    "series": "lists of numbers",
    "symbols": "lists",
    "turns": "sentences",
    "date": "dates",
}


@dataclass(frozen=True)
class Wishes:
    """What the user says of the data files; None (auto) where it is to be found.

    Attributes:
        id, order, steps: columns of a table with a row per time step.
        settings: further keys of the config, as `section.key=value`.
    """

    label: Column | None = None
    sequence: list[Column] | None = None
    id: Column | None = None
    order: Column | None = None
    steps: list[Column] | None = None
    header: bool | None = None
    format: str = "auto"
    delimiter: str = "auto"
    encoding: str | None = None
    settings: Sequence[str] = ()

    @property
    def kind(self) -> str | None:
        """The kind of sequence that the settings name."""
        kind = dict(x.partition("=")[::2] for x in self.settings).get("data.kind")
        return kind if kind in ("text", "tokens", "features") else None


@dataclass(eq=False)
class ColumnFacts:
    """What one column holds: counted row by row, then judged.

    Attributes:
        cells: of the first rows, as texts cut to what a label may have.
        values: how often each value occurs that may be a label, or each string of lists of these.
        too_many: whether values are too long or too many to be labels, or numbers with fractions.
        kinds: how many values are blank, missing (a word for nothing), a number, odd (a number with
            a comma or a unit), date, text, series (numbers), symbols, whole (numbers that may be
            either) or turns (sentences).
        odd: what stands around odd values, each with the first such value and its row.
        rising: how far whole numbers are from their neighbours, less than from their mean: below 0
            for measurements.
        kind: what most values are: number, date, text, series, symbols or turns.
        name: the last part of the column's name, in lower case; empty for an index. It may say that
            numbers are codes (is_code) or times (is_time).
        differs, repeats: whether most rows have a value of their own; or values come again.
        is_id: whether it may number the rows: no value occurs twice, and each is one word.
        is_category, is_free_text: whether it holds single words that repeat; several words per row.
        is_measured: whether it holds a number per row that changes, and doesn't number the rows.
    """

    column: Column
    rows: int = 0
    cells: list[str] = field(default_factory=list)
    values: Counter[str] = field(default_factory=Counter)
    too_many: bool = False
    characters: int = 0
    words: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    odd: dict[str, tuple[str, int]] = field(default_factory=dict)
    steps: int = 0
    rising: float = 0.0

    def add(self, value: object, row: int = 0) -> None:
        """Count one value, a text or what JSON holds; rows before it that lack one are blank."""
        text = "" if value is None or isinstance(value, list) else str(value)
        kind, found = _kind_of_list(value) if isinstance(value, list) else _kind_of_text(text)
        self.rows += 1
        self.kinds[kind] += 1
        if row < MOST_KEPT:
            self.cells += [""] * (row - len(self.cells)) + [text.strip()[: LONGEST_LABEL + 1]]
        if kind == "odd":
            self.odd.setdefault(found, (text.strip(), self.rows))
        elif kind == "turns" and len(self.values) <= MOST_KEPT:
            self.values.update(found)
        elif kind in ("series", "whole"):
            self.steps += len(found)
        if kind == "whole":
            numbers = np.asarray(found, dtype=np.float64)
            self.rising += float((np.diff(numbers) ** 2).sum() - len(numbers) * numbers.var())
        self.characters += len(text)
        self.words += len(text.split()) if kind == "text" else 1
        is_fraction = (
            float(text) % 1 > 0 if kind == "number" else kind == "odd" and {*",."} & {*text}
        )
        if is_fraction or kind in (*LISTS, "whole") or len(text) > LONGEST_LABEL:
            self.too_many = True
        elif kind != "blank" and len(self.values) <= MOST_KEPT:
            self.values[text] += 1

    def judge(self) -> None:
        """Conclude from what was counted."""
        name = "" if isinstance(self.column, int) else self.column.lower().rpartition(".")[2]
        self.name, self.kind, number = name, self._kind(), len(self.values)
        is_text, is_one_word = self.kind == "text", self.words < 1.5 * self.rows
        self.is_code, self.is_time = (bool(x.search(name)) for x in (CODE_NAME, TIME_NAME))
        self.differs = self.too_many or number > self.rows / 2
        self.repeats = not self.too_many and REPEATS * number <= self.rows
        self.can_be_label = number >= 2 and not self.differs and self.kind != "date"
        is_name = self.is_code or (self.is_time and self.words <= self.rows)
        self.may_be_sequence = self.kind in LISTS or (is_text and self.differs and not is_name)
        self.is_id = not self.too_many and number == self.rows and is_one_word
        self.is_category = is_text and is_one_word and self.repeats
        changes = (self.too_many or number >= FEWEST_STEPS) and not self.is_id
        self.is_measured = self.kind == "number" and changes
        self.is_free_text = is_text and self.differs and self.words >= SEVERAL_WORDS * self.rows

    def _kind(self) -> str:
        known = self.kinds.copy()
        blank, missing, odd = (known.pop(kind, 0) for kind in ("blank", "missing", "odd"))
        numbers = "series" if known["series"] + known["whole"] > known["number"] else "number"
        known[numbers if len(self.odd) == 1 else "text"] += odd
        found = known.most_common(1)[0][0] if known.total() else "text"
        if found == "number":
            others = self.rows - known["number"] - blank - missing
            return "text" if others or missing > MOST_MISSING * self.rows else "number"
        if found == "turns" and 0 < REPEATS * len(self.values) <= self.values.total():
            return "symbols"  # names of events, and no sentences
        return ("series" if self.rising < 0 else "symbols") if found == "whole" else found

    @cached_property
    def codes(self) -> npt.NDArray[np.intp]:
        """For each cell a number, equal for equal ones, from 0 in the order of appearance."""
        known: dict[str, int] = {}
        return np.array([known.setdefault(cell, len(known)) for cell in self.cells], dtype=np.intp)

    @cached_property
    def times(self) -> npt.NDArray[np.float64]:
        """The cells as numbers, or the seconds of ISO dates; NaN for others."""
        return np.array([float(x) if is_number(x) else seconds_of(x) for x in self.cells])

    @property
    def is_calendar(self) -> bool:
        """Whether its whole numbers are dates, such as 20240301."""
        return all(map(CALENDAR.fullmatch, {*self.cells}))

    @property
    def oddness(self) -> str:
        """What is said of numbers with a comma or a unit."""
        value, row = next(iter(self.odd.values()))
        return (
            f"{quote(str(self.column), 40)}: found {quote(value, 20)} (row {row:,}); "
            "write decimals with a point, thousands without a comma, and no units"
        )

    def describe(self) -> str:
        """Name the column and what it holds, for a message."""
        text = f"text, {self.words / max(1, self.rows):.3g} words per row"
        kind = {**DESCRIBED, "number": "numbers", "text": text}[self.kind]
        if self.is_id:
            kind = "unique"
        elif not self.differs and self.kind in ("number", "text"):
            kind = counted(len(self.values), "value")
        named = quote(self.column) if isinstance(self.column, str) else str(self.column)
        return f"{named if self.column != '' else 'the column without a name'} ({kind})"


def _kind_of_list(value: list[Any]) -> tuple[str, Any]:
    """Return the kind of a list, and its numbers or sentences."""
    if not value or isinstance(value[0], dict):
        return ("turns" if value else "blank"), ()
    if isinstance(value[0], str):
        strings = [each for each in value if isinstance(each, str)]
        words = sum(len(each.split()) for each in strings)
        return ("turns" if words >= 2 * len(value) else "symbols"), strings
    whole = all(type(each) is int and each >= 0 for each in value)
    return ("whole" if whole else "series"), value


@lru_cache(maxsize=4096)
def _kind_of_text(text: str) -> tuple[str, Any]:
    """Return the kind of a text, and its numbers, or the unit of one."""
    text = text.strip()
    if not text or text.startswith('["'):
        return ("symbols" if text else "blank"), ()
    if text.isdigit() and (len(text) > LONGEST_NUMBER or not text.isascii()):
        return "text", ()
    if is_number(text):
        return "number", ()
    if DATE.fullmatch(text):
        return "date", ()
    odd = ODD.fullmatch(text)
    if odd is not None:
        return "odd", odd[1] + odd[3]
    if text.lower() in MISSING:
        return "missing", ()
    if text[0] not in "[-+.0123456789" and "\n" not in text:  # a file may begin with names
        return "text", ()
    try:
        steps = np.asarray(sequence_from_text(text, "features"))
    except BadRow:
        meant = NUMBERS.match(text) or DECIMAL_COMMAS.fullmatch(text)
        return ("series" if meant else "text"), ()
    blanks = text[0] == "[" or not {*",;\n"} & {*text}
    is_list = blanks and steps.shape[1:] == (1,) and len(steps) > 1
    whole = is_list and ((steps >= 0) & (steps == np.rint(steps))).all()
    return ("whole", steps[:, 0]) if whole else ("series", steps)


def gather(rows: Iterable[Iterable[tuple[Column, object]]]) -> list[ColumnFacts]:
    """Count the values of every column of some rows."""
    facts: dict[Column, ColumnFacts] = {}
    number = -1
    for number, row in enumerate(rows):
        for column, value in row:
            facts.setdefault(column, ColumnFacts(column)).add(value, number)
    for each in facts.values():
        each.cells += [""] * (min(number + 1, MOST_KEPT) - len(each.cells))
        each.judge()
    return list(facts.values())


def flattened(row: dict[str, object], prefix: str = "") -> Iterator[tuple[Column, object]]:
    """Yield the fields of a JSON object; those of an object within are named `outer.inner`."""
    for name, value in row.items():
        if isinstance(value, dict):
            yield from flattened(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def has_header(file: str, first: Sequence[str], columns: Sequence[ColumnFacts]) -> bool:
    """Whether the first row names the columns; a DataError where it isn't clear.

    The names of a header are short, differ, don't occur in the other rows, and aren't numbers,
    unless they count the columns. Names that are usual in data files decide.
    """
    names = [name.strip().lower() for name in first]
    numbers = [float(name) for name in names if is_number(name)]
    counting = len(numbers) > 2 and {b - a for a, b in pairwise(numbers)} == {1.0}
    if not all(names[1:]) or any(len(name) > LONGEST_LABEL for name in names):
        return False
    if counting and len(numbers) < len(names):
        return True
    repeats = any(value.values[name] for value, name in zip(columns, first, strict=True) if name)
    if numbers or len(set(names)) < len(names) or repeats:
        return False
    known = {*LABEL_NAMES, *TEXT_NAMES, *HEADLINE_NAMES, *BODY_NAMES, *ROW_NAMES, ""}
    # A column of labels whose first value never comes again: a name.
    labels = any(c.can_be_label and len(c.values) <= c.rows / 10 for c in columns)
    numeric = any(c.kind in ("number", "series", "date") for c in columns)
    if numeric or labels or not known.isdisjoint(names):
        return True
    raise DataError(
        f"{file}: it isn't clear whether {quote(', '.join(first[:4]))} are the names of the "
        "columns; give --header or --no-header"
    )


def choose_label(columns: Sequence[ColumnFacts]) -> ColumnFacts:
    """Return the column of the label; a DataError where no column can be it, or several can."""
    candidates = [column for column in columns if column.can_be_label and column.column != ""]
    chosen = (
        [column for column in candidates if column.name == "label"][:1]
        or [column for column in candidates if column.name in LABEL_NAMES]
        or [column for column in candidates if column.name not in (*TEXT_NAMES, *ROW_NAMES[2:])]
    )
    if len(chosen) > 1 and len(columns) > FEWEST_STEPS:  # of a series in columns
        ends = [c for c in chosen if c in (columns[0], columns[-1])]
        chosen = [c for c in chosen if c.kind == "text"] or ends or chosen
    lists = [column for column in columns if column.kind == "symbols"]
    if not candidates and len(lists) == 1 and any(column.kind == "text" for column in columns):
        chosen = lists  # of several labels per row
    if len(chosen) == 1:
        return chosen[0]
    found = _described(chosen or columns)
    if candidates:
        raise DataError(
            f"--label: several columns may hold the label: {found}; choose one with --label COLUMN"
        )
    advice = "give --label COLUMN"
    if any(c.kind == "number" and not c.can_be_label for c in columns):
        advice = f"group numbers into classes, or {advice}"
    raise DataError(
        f"--label: no column has values that repeat as labels do; {advice}; found {found}"
    )


def choose_sequence(columns: Sequence[ColumnFacts], label: ColumnFacts) -> list[ColumnFacts]:
    """Return the columns of the sequence: texts to be joined, channels or time steps.

    Raises:
        DataError: no column can be it, or several can.
    """
    others = [column for column in columns if column is not label and column.column != ""]
    lists = [column for column in others if column.kind in LISTS]
    texts = [column for column in others if column.kind == "text"]
    free = [column for column in texts if column.is_free_text]
    if free:  # beside which a few numbers are no sequence
        words = max(column.words / column.rows for column in free)
        few = max(FEWEST_STEPS, min(words, MANY_NUMBERS))
        usual = () if any(c.name in TEXT_NAMES for c in free) else TEXT_NAMES
        lists = [c for c in lists if not c.steps or c.steps >= few * c.rows or c.name in usual]
    if len(lists) > 1 and {(column.kind, column.steps) for column in lists} == {
        ("series", lists[0].steps)
    }:
        return lists
    if not lists:
        headed = [[c for c in texts if c.name in names] for names in (HEADLINE_NAMES, BODY_NAMES)]
        if [*map(len, headed)] == [1, 1]:
            return [*headed[0], *headed[1]]
        steps = wide_columns(others)
        if len(steps) > len(others) / 2:
            return steps
        if texts and all(c.is_category for c in texts) and any(c.is_measured for c in others):
            values = counted(len(texts[0].values), "value")
            found = f"{values} of {quote(str(texts[0].column), 20)} in {texts[0].rows:,} rows"
            raise DataError(
                f"looks like a row per time step ({found}); give --id COLUMN, whose rows are a "
                f"sequence and have one {quote(str(label.column), 20)}, or --sequence"
            )
    some = lists or texts
    rest = [c for c in some if not (c.is_id and len(texts) > 1) and c.name not in ROW_NAMES]
    for chosen in (lists, [c for c in some if c.name in TEXT_NAMES], rest):
        if len(chosen) == 1:
            return chosen
    longest = sorted(rest, key=lambda c: -c.characters)
    if not lists and len(longest) > 1 and longest[0].characters > 4 * longest[1].characters:
        return longest[:1]
    if not some and len(others) > 2:
        raise DataError(no_series(others))
    raise DataError(
        "--sequence: it isn't clear which column holds it; found "
        f"{_described(others) or 'the label alone'}; give --sequence COLUMN, or --id COLUMN if a "
        "row is a time step"
    )


def no_series(columns: Sequence[ColumnFacts]) -> str:
    """Refuse columns of one number each that are too few to be the time steps of a series."""
    return (
        f"--sequence: found {counted(len(columns), 'column')} of one number each; a series needs "
        "all its numbers in one row: in a cell such as [0.1, 0.2], or in "
        f"{FEWEST_STEPS} or more columns such as t0, t1, …"
    )


def wide_columns(columns: Sequence[ColumnFacts]) -> list[ColumnFacts]:
    """Return columns of numbers that are a time step each: all without names, or t0, t1, …"""
    by_stem: dict[str, list[ColumnFacts]] = {}
    for column in columns:
        if column.kind == "number":
            by_stem.setdefault(re.sub("[0-9]+", "", column.name), []).append(column)
    found = [some for some in by_stem.values() if len(some) >= FEWEST_STEPS]
    return found[0] if len(found) == 1 else []


def _described(columns: Sequence[ColumnFacts]) -> str:
    return shorten(", ".join(column.describe() for column in columns[:8]), MOST_SHOWN)
