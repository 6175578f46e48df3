"""The columns of a data file, and which of them is the label, the text, the group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from seqtrain.data.readers.options import Column
from seqtrain.errors import DataError
from seqtrain.text import quote

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
GROUP_NAMES = ("session", "session_id", "conversation", "conversation_id", "dialogue", "dialog_id")
LONGEST_LABEL = 80
"""Characters of the longest value that is counted as a label."""
MOST_LABELS = 100_000
"""Distinct values of a column that are counted; a column of more is no label."""


@dataclass
class ColumnFacts:
    """What the values of one column look like.

    Attributes:
        column: its name, or its index from 0.
        rows: values seen.
        values: how often each value of at most LONGEST_LABEL characters occurs.
        too_many: whether values were too long or too many to be labels.
        characters, words: of all values together.
        numbers: values that are numbers.
        vectors: values that are lists of numbers, or of vectors.
        symbols: values that are lists of strings or of integers.
        changes: rows whose value isn't that of the row before.
    """

    column: Column
    rows: int = 0
    values: Counter[str] = field(default_factory=Counter)
    too_many: bool = False
    characters: int = 0
    words: int = 0
    numbers: int = 0
    vectors: int = 0
    symbols: int = 0
    changes: int = 0
    last: str | None = None

    def add(self, value: object) -> None:
        """Count one value: a text, or what JSON holds."""
        self.rows += 1
        if isinstance(value, list):
            self._add_list(value)
            return
        text = "" if value is None else str(value)
        self.characters += len(text)
        self.words += 1 + text.strip().count(" ") if text.strip() else 0
        self.numbers += is_number(text)
        self.changes += text != self.last
        self.last = text
        if len(text) > LONGEST_LABEL or len(self.values) > MOST_LABELS:
            self.too_many = True
        else:
            self.values[text] += 1

    def _add_list(self, values: list[object]) -> None:
        self.too_many = True
        first = values[0] if values else None
        whole = all(isinstance(value, int) for value in values)
        if isinstance(first, str) or (values and whole):
            self.symbols += 1
        else:
            self.vectors += 1

    @property
    def mean_words(self) -> float:
        """Words per value."""
        return self.words / max(1, self.rows)

    @property
    def is_numeric(self) -> bool:
        """Whether all values but a header are numbers."""
        return self.rows > 1 and self.numbers >= self.rows - 1

    @property
    def is_sequence(self) -> bool:
        """Whether values are lists."""
        return self.symbols + self.vectors > self.rows / 2

    @property
    def can_be_label(self) -> bool:
        """Whether values repeat as those of a label do: at least two, each on average twice."""
        distinct = len(self.values)
        fractions = any("." in value and is_number(value) for value in self.values)
        return not self.too_many and 2 <= distinct <= self.rows / 2 and not fractions

    @property
    def is_unique(self) -> bool:
        """Whether no value of the column occurs twice."""
        return not self.too_many and len(self.values) == self.rows

    def describe(self) -> str:
        """Name the column and what it holds, for a message."""
        named = quote(str(self.column)) if isinstance(self.column, str) else str(self.column)
        if self.is_sequence:
            return f"{named} (lists)"
        if self.too_many or len(self.values) > self.rows / 2:
            return f"{named} (text, {self.mean_words:.3g} words per row)"
        return f"{named} ({len(self.values)} values)"


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def has_header(first: Sequence[str], columns: Sequence[ColumnFacts]) -> bool | None:
    """Whether the first row names the columns; None where it can't be told.

    A header's names are short, differ from one another, and don't occur further down; a number is
    no name. Names that data files use everywhere decide.

    Args:
        first: fields of the first row.
        columns: facts of all rows but the first.
    """
    names = [name.strip().lower() for name in first]
    if any(not name or is_number(name) or len(name) > LONGEST_LABEL for name in names):
        return False
    if len(set(names)) < len(names):
        return False
    known = {*LABEL_NAMES, *TEXT_NAMES, *HEADLINE_NAMES, *BODY_NAMES, "id", "index", *GROUP_NAMES}
    if any(value.values[name] for value, name in zip(columns, first, strict=True)):
        return False
    if any(name in known for name in names):
        return True
    if any(column.is_numeric for column in columns):
        return True
    # A column of labels whose first value never comes again: a name.
    if any(column.can_be_label and len(column.values) <= column.rows / 10 for column in columns):
        return True
    return None


def choose_label(columns: Sequence[ColumnFacts]) -> ColumnFacts:
    """Return the column of the label.

    Raises:
        DataError: none can be it, or several; says which flag decides.
    """
    candidates = [column for column in columns if column.can_be_label]
    named = [column for column in candidates if _name(column) in LABEL_NAMES]
    if len(named) > 1:
        named = sorted(named, key=lambda column: LABEL_NAMES.index(_name(column)))
        if _name(named[0]) == "label":
            named = named[:1]
    if len(named) == 1:
        return named[0]
    plain = [column for column in candidates if _name(column) not in (*TEXT_NAMES, *GROUP_NAMES)]
    if len(named or plain) == 1:
        return (named or plain)[0]
    found = ", ".join(column.describe() for column in (named or plain or columns)[:8])
    if candidates:
        raise DataError(f"--label: several columns can be it: {found}; give --label COLUMN")
    numbers = [c for c in columns if c.is_numeric and len(c.values) > c.rows / 2]
    if numbers:
        raise DataError(
            "--label: no column repeats its values as a label does; column "
            f"{quote(str(numbers[0].column))} holds numbers that hardly repeat, and seqtrain finds "
            "classes: group them into some, or give --label COLUMN"
        )
    raise DataError(
        f"--label: no column repeats its values as a label does; found {found}; give --label COLUMN"
    )


def choose_sequence(columns: Sequence[ColumnFacts], label: Column) -> list[Column]:
    """Return the columns of the sequence; several are texts to be joined.

    Raises:
        DataError: none can be it, or several; says which flag decides.
    """
    others = [column for column in columns if column.column != label]
    lists = [column for column in others if column.is_sequence]
    texts = [column for column in others if not column.is_sequence and not column.is_numeric]
    if len(lists) == 1:
        return [lists[0].column]
    if not lists:
        headlines = [c for c in texts if _name(c) in HEADLINE_NAMES]
        bodies = [c for c in texts if _name(c) in BODY_NAMES]
        if len(headlines) == len(bodies) == 1 and headlines != bodies:
            return [headlines[0].column, bodies[0].column]
    named = [c for c in lists or texts if _name(c) in TEXT_NAMES]
    if len(named) == 1:
        return [named[0].column]
    rest = [
        c for c in lists or texts if not (c.is_unique and c.mean_words < 1.5 and len(texts) > 1)
    ]
    rest = [c for c in rest if _name(c) not in ("id", "index", *GROUP_NAMES)]
    if len(rest) == 1:
        return [rest[0].column]
    longest = sorted(rest, key=lambda c: -c.characters)
    if not lists and len(longest) > 1 and longest[0].characters > 4 * longest[1].characters:
        return [longest[0].column]
    found = ", ".join(column.describe() for column in others[:8]) or "the label alone"
    if not texts and not lists and len(others) > 2:
        raise DataError(
            f"--sequence: {len(others)} columns of numbers; a series is read from a list of "
            "vectors in jsonl, from npz or from ts; write one of these"
        )
    raise DataError(f"--sequence: can't tell the sequence; found {found}; give --sequence COLUMN")


def find_group(columns: Sequence[ColumnFacts], used: Iterable[Column]) -> Column | None:
    """Return the column that names a session whose rows stand one after the other, if any."""
    for column in columns:
        distinct = len(column.values)
        blocks = not column.too_many and column.changes == distinct < column.rows
        if column.column not in used and _name(column) in GROUP_NAMES and blocks:
            return column.column
    return None


def gather(rows: Iterable[Iterable[tuple[Column, object]]]) -> dict[Column, ColumnFacts]:
    """Count the values of every column of some rows."""
    facts: dict[Column, ColumnFacts] = {}
    for row in rows:
        for column, value in row:
            if column not in facts:
                facts[column] = ColumnFacts(column)
            facts[column].add(value)
    return facts


def flattened(row: dict[str, object], prefix: str = "") -> Iterator[tuple[Column, object]]:
    """Yield the fields of a JSON object; those of an object within are named `outer.inner`."""
    for name, value in row.items():
        if isinstance(value, dict):
            yield from flattened(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _name(column: ColumnFacts) -> str:
    """Return the last part of a column's name, in lower case; empty for an index."""
    return "" if isinstance(column.column, int) else column.column.lower().rpartition(".")[2]
