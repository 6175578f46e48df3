"""The columns of a table, and which of them holds the label, the sequence, the group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from seqtrain.data.readers import Column
from seqtrain.data.word_vectors import is_number
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
ID_NAMES = ("id", "index")
GROUP_NAMES = ("session", "session_id", "conversation", "conversation_id", "dialogue", "dialog_id")
LONGEST_LABEL = 80
"""Characters of the longest value that counts as a label."""
MOST_LABELS = 100_000
"""Distinct values of a column that are counted; a column with more is no label."""


@dataclass
class ColumnFacts:
    """What the values of one column look like: how many are numbers, lists of symbols, of vectors.

    Attributes:
        values: how often each value of at most LONGEST_LABEL characters occurs.
        too_many: whether values are too long or too many to be labels.
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

    def add(self, value: object) -> None:
        """Count one value: a text, or what JSON holds."""
        self.rows += 1
        if isinstance(value, list):
            self.too_many = True
            whole = bool(value) and all(isinstance(each, int) for each in value)
            is_symbols = whole or (bool(value) and isinstance(value[0], str))
            self.symbols += is_symbols
            self.vectors += not is_symbols
            return
        text = "" if value is None else str(value)
        self.characters += len(text)
        self.words += 1 + text.strip().count(" ") if text.strip() else 0
        self.numbers += is_number(text)
        if len(text) > LONGEST_LABEL or len(self.values) > MOST_LABELS:
            self.too_many = True
        else:
            self.values[text] += 1

    @property
    def name(self) -> str:
        """The last part of the column's name, in lower case; empty for an index."""
        return "" if isinstance(self.column, int) else self.column.lower().rpartition(".")[2]

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
        """Whether most values are lists."""
        return self.symbols + self.vectors > self.rows / 2

    @property
    def can_be_label(self) -> bool:
        """Whether values repeat as those of a label do: at least two, each on average twice."""
        distinct = len(self.values)
        fractions = any("." in value and is_number(value) for value in self.values)
        return not self.too_many and 2 <= distinct <= self.rows / 2 and not fractions

    @property
    def is_id(self) -> bool:
        """Whether it may number the rows: no value occurs twice, and each is one word."""
        return not self.too_many and len(self.values) == self.rows and self.mean_words < 1.5

    def describe(self) -> str:
        """Name the column and what it holds, for a message."""
        named = quote(str(self.column)) if isinstance(self.column, str) else str(self.column)
        if self.is_sequence:
            return f"{named} (lists)"
        if self.too_many or len(self.values) > self.rows / 2:
            return f"{named} (text, {self.mean_words:.3g} words per row)"
        return f"{named} ({len(self.values)} values)"


def gather(rows: Iterable[Iterable[tuple[Column, object]]]) -> list[ColumnFacts]:
    """Count the values of every column of some rows."""
    facts: dict[Column, ColumnFacts] = {}
    for column, value in chain.from_iterable(rows):
        facts.setdefault(column, ColumnFacts(column)).add(value)
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

    The names of a header are short, differ, don't occur further down, and aren't numbers. Names
    that are usual in data files decide. `columns` has the facts of all rows but the first.
    """
    names = [name.strip().lower() for name in first]
    if any(not name or is_number(name) or len(name) > LONGEST_LABEL for name in names):
        return False
    repeats = any(value.values[name] for value, name in zip(columns, first, strict=True))
    if len(set(names)) < len(names) or repeats:
        return False
    known = {*LABEL_NAMES, *TEXT_NAMES, *HEADLINE_NAMES, *BODY_NAMES, *ID_NAMES, *GROUP_NAMES}
    # A column of labels whose first value never comes again: a name.
    labels = (c for c in columns if c.can_be_label and len(c.values) <= c.rows / 10)
    if any(name in known for name in names) or any(c.is_numeric for c in columns) or any(labels):
        return True
    return None


def choose_label(columns: Sequence[ColumnFacts]) -> Column:
    """Return the column of the label.

    Raises:
        DataError: no column can be it, or several can.
    """
    candidates = [column for column in columns if column.can_be_label]
    named = [column for column in candidates if column.name in LABEL_NAMES]
    if any(column.name == "label" for column in named):
        named = [column for column in named if column.name == "label"][:1]
    plain = [column for column in candidates if column.name not in (*TEXT_NAMES, *GROUP_NAMES)]
    chosen = named or plain
    if len(chosen) == 1:
        return chosen[0].column
    found = _described(chosen or columns)
    if candidates:
        raise DataError(
            f"--label: several columns may hold the label: {found}; choose one with --label COLUMN"
        )
    problem = f"--label: no column has values that repeat as labels do; found {found}"
    if any(c.is_numeric and len(c.values) > c.rows / 2 for c in columns):
        problem += "; seqtrain predicts classes, so group numbers into classes"
    raise DataError(f"{problem}; or give --label COLUMN")


def choose_sequence(columns: Sequence[ColumnFacts], label: Column) -> list[Column]:
    """Return the columns of the sequence; several are texts to be joined.

    Raises:
        DataError: no column can be it, or several can.
    """
    others = [column for column in columns if column.column != label]
    lists = [column for column in others if column.is_sequence]
    texts = [column for column in others if not column.is_sequence and not column.is_numeric]
    if not lists:
        headlines = [c for c in texts if c.name in HEADLINE_NAMES]
        bodies = [c for c in texts if c.name in BODY_NAMES]
        if len(headlines) == len(bodies) == 1 and headlines != bodies:
            return [headlines[0].column, bodies[0].column]
    plain = [c for c in lists or texts if not (c.is_id and len(texts) > 1)]
    for some in (
        lists,
        [c for c in lists or texts if c.name in TEXT_NAMES],
        rest := [c for c in plain if c.name not in (*ID_NAMES, *GROUP_NAMES)],
    ):
        if len(some) == 1:
            return [some[0].column]
    longest = sorted(rest, key=lambda c: -c.characters)
    if not lists and len(longest) > 1 and longest[0].characters > 4 * longest[1].characters:
        return [longest[0].column]
    if not texts and not lists and len(others) > 2:
        raise DataError(
            f"--sequence: found {len(others)} columns of numbers; a series is read from a list of "
            "vectors in jsonl, from npz or from ts; write one of these"
        )
    raise DataError(
        "--sequence: it isn't clear which column holds the sequence; found "
        f"{_described(others) or 'the label alone'}; give --sequence COLUMN"
    )


def _described(columns: Sequence[ColumnFacts]) -> str:
    return ", ".join(column.describe() for column in columns[:8])
