"""The columns of a table, and which of them holds the label, the sequence, the group."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any

import numpy as np

from seqtrain.data.examples import BadRow
from seqtrain.data.readers import Column
from seqtrain.data.readers.sequences import DECIMAL_COMMAS, number_of, sequence_from_text
from seqtrain.data.word_vectors import is_number
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
HEADLINE_NAMES, BODY_NAMES = (
    ("title", "subject", "headline", "summary"),
    ("body", "description", "text", "content", "review", "abstract", "message"),
)
ID_NAMES = ("id", "index")
GROUP_NAMES = ("session", "session_id", "conversation", "conversation_id", "dialogue", "dialog_id")
CODE_NAME = re.compile(r"(^|[^a-z])([a-z]?id|uid|session|case|trip|code|key|zip|poi)([^a-z]|$)")
LONGEST_LABEL = 80
"""Characters of the longest value that counts as a label."""
MOST_LABELS = 100_000
"""Distinct values of a column that are counted; a column with more is no label."""
LONGEST_NUMBER = 15
"""Digits of the longest whole number that may be measured; a longer one is a code."""
FEWEST_STEPS = 8
"""Columns of numbers from which on they may be the time steps of a series."""
PROBED = 200
"""Lists of whole numbers that are looked at: are they symbols or measurements?"""
REPEATS = 4
"""Times that each value occurs on average from which on it is a class or the name of a machine."""
SEVERAL_WORDS = 3
"""Words per row from which on a text is free text, no name of something."""
MANY_NUMBERS = 32
"""Numbers per row from which on they are the sequence, whatever stands beside them."""
DATE = re.compile(
    r"([0-9]{4}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2})[-/.][0-9]{1,4}([T ].*)?"
    r"|[0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?"
)
NUMBERS = re.compile(r"\[+\s*[-+.0-9]|[-+0-9\s]+,[-+.,0-9\s]*;[-+.,;0-9\s]*$")
"""A text that was meant as a list of numbers, though it can't be read: refused with the reason."""
DECIMAL = re.compile(r"[-+]?([0-9]+|[0-9]{1,3}(\.[0-9]{3})+),[0-9]+")
"""A number with a decimal comma, unless other cells of its column hold more numbers."""
MOST_MISSING = 0.1
"""Share of a column's cells up to which words for nothing, such as NA, may stand among numbers."""
LONGEST_MISSING = 8
"""Characters of the longest such word."""
ORDER_NAME = re.compile(
    r"(^|[^a-z])(time|timestamp|date|datetime|when|ts|epoch|step|order|frame|t)$"
)
"""At the end of names of columns that sort the rows of an id, though these be numbers."""
LISTS = ("series", "symbols", "turns")
MOST_SHOWN = 75
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
    def by_step(self) -> bool:
        """Whether rows are time steps by the user's word."""
        return any(given is not None for given in (self.id, self.order, self.steps))

    @property
    def kind(self) -> str | None:
        """The kind of sequence that the settings name."""
        named = [x for x in self.settings if x.startswith("data.kind=")]
        kind = "".join(named[-1:]).removeprefix("data.kind=")
        return kind if kind in ("text", "tokens", "features") else None


@dataclass
class ColumnFacts:
    """What the values of one column look like.

    Attributes:
        values: how often each value of at most LONGEST_LABEL characters occurs.
        too_many: whether values are too long or too many to be labels.
        kinds: how many values are blank, missing (a word for nothing), a number, date, text, series
            (numbers), symbols, whole (numbers that may be either), decimal (with a comma) or turns
            (sentences).
        decimal: the first value with a decimal comma, and its row.
        items: how often each string occurs in lists of several words per string.
        steps: of all series.
        rising: how far whole numbers are from their neighbours, less than from their mean: below 0
            for measurements.
    """

    column: Column
    rows: int = 0
    values: Counter[str] = field(default_factory=Counter)
    too_many: bool = False
    characters: int = 0
    words: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    items: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    rising: float = 0.0
    decimal: tuple[str, int] = ("", 0)
    _seen: dict[str, str] = field(default_factory=dict)

    def add(self, value: object) -> None:
        """Count one value: a text, or what JSON holds."""
        self.rows += 1
        text = "" if value is None or isinstance(value, list) else str(value)
        if text in self.values:
            kind, steps = self._seen[text], ()
        elif is_number(text) and not (len(text) > LONGEST_NUMBER and text.isdigit()):
            kind, steps = "number", ()
        else:
            kind, steps = _kind_of(value)
        number = text.replace(".", "").replace(",", ".") if kind == "decimal" else text
        self.kinds[kind] += 1
        if kind == "decimal" and not self.decimal[1]:
            self.decimal = text.strip(), self.rows
        if kind == "turns" and len(self.items) <= MOST_LABELS:
            self.items.update(steps)
        self.steps += 0 if kind == "turns" else len(steps)
        if kind == "whole" and self.kinds[kind] <= PROBED:
            numbers = np.asarray(steps, dtype=np.float64)
            self.rising += float((np.diff(numbers) ** 2).sum() - len(numbers) * numbers.var())
        self.characters += len(text)
        self.words += len(text.split()) if kind == "text" else 1
        is_fraction = kind in ("number", "decimal") and float(number) % 1 > 0
        if is_fraction or kind in (*LISTS, "whole") or len(text) > LONGEST_LABEL:
            self.too_many = True
        elif kind != "blank" and len(self.values) <= MOST_LABELS:
            self.values[text] += 1
            self._seen[text] = kind

    @property
    def kind(self) -> str:
        """What most values are: number, date, text, series, symbols or turns."""
        known = Counter({kind: n for kind, n in self.kinds.items() if kind != "blank"})
        lists = known["series"] + known["whole"]
        known["series" if lists > known["number"] else "number"] += known.pop("decimal", 0)
        missing = known.pop("missing", 0)
        found = known.most_common(1)[0][0] if known.total() else "text"
        if found == "number":
            numbers = known["number"] + self.kinds["blank"] + missing
            return "text" if numbers < self.rows or missing > MOST_MISSING * self.rows else "number"
        if found == "turns" and 0 < REPEATS * len(self.items) <= self.items.total():
            return "symbols"  # names of events, and no sentences
        return ("series" if self.rising < 0 else "symbols") if found == "whole" else found

    @property
    def name(self) -> str:
        """The last part of the column's name, in lower case; empty for an index."""
        return "" if isinstance(self.column, int) else self.column.lower().rpartition(".")[2]

    @property
    def can_be_label(self) -> bool:
        """Whether values repeat as those of a label do: at least two, each on average twice."""
        few = 2 <= len(self.values) <= self.rows / 2
        return few and not self.too_many and self.kind != "date"

    @property
    def may_be_sequence(self) -> bool:
        """Whether each row may hold a sequence of its own: lists, or texts that differ."""
        differs = self.too_many or len(self.values) > self.rows / 2
        words = self.kind == "text" and not self.is_code
        words = words and not (self.is_time and self.words <= self.rows)
        return self.kind in LISTS or (words and differs)

    @property
    def is_code(self) -> bool:
        """Whether its name says that its values, though they be whole numbers, name something."""
        return CODE_NAME.search(self.name) is not None

    @property
    def is_id(self) -> bool:
        """Whether it may number the rows: no value occurs twice, and each is one word."""
        one_word = self.words < 1.5 * self.rows
        return not self.too_many and len(self.values) == self.rows and one_word

    @property
    def is_category(self) -> bool:
        """Whether it holds single words that repeat."""
        words = self.kind == "text" and self.words < 1.5 * self.rows
        return words and not self.too_many and REPEATS * len(self.values) <= self.rows

    @property
    def is_number_that_repeats(self) -> bool:
        """Whether it holds whole numbers, each of which repeats."""
        repeats = not self.too_many and REPEATS * len(self.values) <= self.rows
        return self.kind == "number" and repeats

    @property
    def is_measured(self) -> bool:
        """Whether it holds a number per row that changes, and doesn't number the rows."""
        changes = self.too_many or len(self.values) >= FEWEST_STEPS
        return self.kind == "number" and changes and not self.is_id

    @property
    def is_free_text(self) -> bool:
        """Whether it holds several words per row, and seldom the same ones."""
        differs = self.too_many or len(self.values) > self.rows / 2
        return self.kind == "text" and differs and self.words >= SEVERAL_WORDS * self.rows

    @property
    def is_time(self) -> bool:
        """Whether its name says that its values, though they be numbers, are times."""
        return ORDER_NAME.search(self.name) is not None

    @property
    def decimal_comma(self) -> str:
        """What is said of numbers with a decimal comma."""
        found, row = self.decimal
        shown = f"{quote(str(self.column), 40)}: found {quote(found, 20)} (row {row:,})"
        return f"{shown}; write decimals with a point"

    def describe(self) -> str:
        """Name the column and what it holds, for a message."""
        kind = DESCRIBED.get(self.kind) or counted(len(self.values), "value")
        if self.is_id:
            kind = "unique"
        elif self.kind in ("number", "text") and (
            self.too_many or len(self.values) > self.rows / 2
        ):
            mean = self.words / max(1, self.rows)
            kind = "numbers" if self.kind == "number" else f"text, {mean:.3g} words per row"
        named = quote(self.column) if isinstance(self.column, str) else str(self.column)
        return f"{named if self.column != '' else 'the column without a name'} ({kind})"


def _kind_of(value: object) -> tuple[str, Any]:
    """Return the kind of a value that is no number, and the numbers or sentences of a list."""
    if isinstance(value, list):
        if not value or isinstance(value[0], dict):
            return ("turns" if value else "blank"), ()
        if isinstance(value[0], str):
            strings = [each for each in value if isinstance(each, str)]
            words = sum(len(each.split()) for each in strings)
            return ("turns", strings) if words >= 2 * len(value) else ("symbols", ())
        whole = all(type(each) is int and each >= 0 for each in value)
        return ("whole" if whole else "series"), (np.array(value) if whole else value)
    text = "" if value is None else str(value).strip()
    if not text or text.startswith('["'):
        return ("symbols" if text else "blank"), ()
    if DATE.fullmatch(text):
        return "date", ()
    if DECIMAL.fullmatch(text):
        return "decimal", ()
    if is_missing(text):
        return "missing", ()
    if text[0] in "[-+.0123456789" and not text.isdigit():
        try:
            series = sequence_from_text(text, "features")
        except BadRow:
            meant = NUMBERS.match(text) or DECIMAL_COMMAS.fullmatch(text)
            return ("series" if meant else "text"), ()
        steps = np.asarray(series)
        blanks = text[0] == "[" or not {*",;\n"} & {*text}
        whole = blanks and steps.shape[1:] == (1,) and len(steps) > 1
        whole = whole and bool(((steps >= 0) & (steps == np.rint(steps))).all())
        return ("whole", steps[:, 0]) if whole else ("series", steps)
    return "text", ()


def is_missing(text: str) -> bool:
    """Whether a cell of a column of numbers is read as a missing one."""
    try:
        return len(text) <= LONGEST_MISSING and number_of(text) != number_of(text)
    except BadRow:
        return False


def is_series(text: str) -> bool:
    """Whether a text is nothing but numbers, at least two."""
    try:
        return len(sequence_from_text(text, "features")) > 1
    except BadRow:
        return False


def gather(rows: Iterable[Iterable[tuple[Column, object]]]) -> list[ColumnFacts]:
    """Count the values of every column of some rows."""
    facts: dict[Column, ColumnFacts] = {}
    for column, value in chain.from_iterable(rows):
        if column not in facts:
            facts[column] = ColumnFacts(column)
        facts[column].add(value)
    return list(facts.values())


def flattened(row: dict[str, object], prefix: str = "") -> Iterator[tuple[Column, object]]:
    """Yield the fields of a JSON object; those of an object within are named `outer.inner`."""
    for name, value in row.items():
        if isinstance(value, dict):
            yield from flattened(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def has_header(first: Sequence[str], columns: Sequence[ColumnFacts]) -> bool | None:
    """Whether the first row names the columns; None where it isn't clear.

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
    known = {*LABEL_NAMES, *TEXT_NAMES, *HEADLINE_NAMES, *BODY_NAMES, *ID_NAMES, *GROUP_NAMES, ""}
    # A column of labels whose first value never comes again: a name.
    labels = (c for c in columns if c.can_be_label and len(c.values) <= c.rows / 10)
    numeric = any(c.kind in ("number", "series", "date") for c in columns)
    return True if numeric or any(name in known for name in names) or any(labels) else None


def choose_label(columns: Sequence[ColumnFacts]) -> Column:
    """Return the column of the label; a DataError where no column can be it, or several can."""
    candidates = [column for column in columns if column.can_be_label and column.column != ""]
    named = [column for column in candidates if column.name in LABEL_NAMES]
    if any(column.name == "label" for column in named):
        named = [column for column in named if column.name == "label"][:1]
    plain = [column for column in candidates if column.name not in (*TEXT_NAMES, *GROUP_NAMES)]
    chosen = named or plain
    if len(chosen) > 1 and len(columns) > FEWEST_STEPS:  # of a series in columns
        ends = [c for c in chosen if c in (columns[0], columns[-1])]
        chosen = [c for c in chosen if c.kind == "text"] or ends or chosen
    lists = [column for column in columns if column.kind == "symbols"]
    if not candidates and len(lists) == 1 and any(column.kind == "text" for column in columns):
        chosen = lists  # of several labels per row
    if len(chosen) == 1:
        return chosen[0].column
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


def choose_sequence(columns: Sequence[ColumnFacts], label: Column) -> list[ColumnFacts]:
    """Return the columns of the sequence: texts to be joined, channels or time steps.

    Raises:
        DataError: no column can be it, or several can.
    """
    others = [column for column in columns if column.column not in (label, "")]
    series = [column for column in others if column.kind == "series"]
    lists = [column for column in others if column.kind in LISTS]
    texts = [column for column in others if column.kind == "text"]
    free = [column for column in texts if column.is_free_text]
    if free:
        words = max(column.words / column.rows for column in free)
        few = max(FEWEST_STEPS, min(words, MANY_NUMBERS))
        usual = () if any(c.name in TEXT_NAMES for c in free) else TEXT_NAMES
        lists = [c for c in lists if not c.steps or c.steps >= few * c.rows or c.name in usual]
        series = [c for c in series if c in lists]
    if len(series) == len(lists) > 1 and len({column.steps for column in series}) == 1:
        return series
    if not lists:
        headlines = [c for c in texts if c.name in HEADLINE_NAMES]
        bodies = [c for c in texts if c.name in BODY_NAMES]
        if len(headlines) == len(bodies) == 1 and headlines != bodies:
            return [headlines[0], bodies[0]]
        steps = wide_columns(others)
        if len(steps) > len(others) / 2:
            return steps
        if texts and all(column.is_category for column in texts):
            _check_rows(texts[0], others, label)
    plain = [c for c in lists or texts if not (c.is_id and len(texts) > 1)]
    for some in (
        lists,
        [c for c in lists or texts if c.name in TEXT_NAMES],
        rest := [c for c in plain if c.name not in (*ID_NAMES, *GROUP_NAMES)],
    ):
        if len(some) == 1:
            return some
    longest = sorted(rest, key=lambda c: -c.characters)
    if not lists and len(longest) > 1 and longest[0].characters > 4 * longest[1].characters:
        return longest[:1]
    if not texts and not lists and len(others) > 2:
        raise DataError(no_series(others))
    advice = "give --sequence COLUMN, once or for each"
    repeat = [c for c in others if c.is_category or c.is_number_that_repeats]
    times = [c for c in others if c.kind == "date" or c.is_time or c.is_measured]
    if not lists and not free and repeat and any(c is not repeat[0] for c in times):
        advice = "give --id COLUMN, whose rows are a sequence, or --sequence"
    raise DataError(
        "--sequence: it isn't clear which column holds the sequence; found "
        f"{_described(others) or 'the label alone'}; {advice}"
    )


def _check_rows(column: ColumnFacts, columns: Sequence[ColumnFacts], label: Column) -> None:
    """Refuse categories as texts where numbers beside them change: rows are time steps then."""
    if any(each.is_measured for each in columns):
        found = f"{counted(len(column.values), 'value')} of {quote(str(column.column), 20)}"
        raise DataError(
            f"looks like a row per time step ({found} in {column.rows:,} rows); give --id COLUMN, "
            f"whose rows are a sequence and have one {quote(str(label), 20)}, or --sequence"
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
    shown = ", ".join(column.describe() for column in columns[:8])
    return shorten(shown, MOST_SHOWN)
