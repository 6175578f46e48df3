"""Facts about the sequences of a table: labels, lengths, missing numbers, and family."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.proposal.family import Family, family_of
from seqtrain.proposal.label_forms import is_multi_hot
from seqtrain.proposal.profile import LIST_KINDS, Column, strings_of
from seqtrain.proposal.roles import Roles
from seqtrain.sequences.summary import separator_of
from seqtrain.sequences.tokenizers import make_tokenizer
from seqtrain.tables.cells import BadCellError, mark_of, name_of
from seqtrain.tables.series import series_of
from seqtrain.text import listed, quote

SAMPLE = 4096
"""Largest number of sequences whose content is looked at, spread evenly over all of them."""
OFTEN_MISSING = 0.2
"""Share of missing numbers in a step column from which on the column is often missing."""
TOKENIZERS = {"words": "word", "symbols": "whitespace"}
"""Maps a family of texts to its tokenizer. Texts of other families are split into characters."""
CHOSEN_FAMILIES = {
    "word": "words",
    "whitespace": "words",
    "bpe": "words",
    "char": "characters",
    "byte": "characters",
}
"""Maps a tokenizer that the user chose to the family of the texts."""
Rows = npt.NDArray[np.intp]


@dataclass
class Facts:
    """Facts about the labelled sequences of some files.

    Attributes:
        rows: Number of labelled sequences that aren't empty.
        empty: Number of labelled sequences without time steps.
        unlabelled: Number of rows with a blank label.
        unreadable: Number of rows that can't be read.
        classes: Maps each label to its number of sequences.
        multi_label: True if a sequence can have several labels, or none.
        separator: Separator of several labels in a cell, or None.
        variants: Spellings of one class that differ, such as "0, 0.0".
        lengths: Median, 95 % quantile and maximum of the lengths in time steps, of a sample.
        is_missing: True if a number of a sequence is missing.
        is_often_missing: True if a step column lacks at least a fifth of its numbers.
        channels: Numbers per time step if time steps hold only numbers, else 0.
        symbols: Number of distinct tokens in a sample of lists or texts.
        family: Family of the data.
    """

    rows: int = 0
    empty: int = 0
    unlabelled: int = 0
    unreadable: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    multi_label: bool = False
    separator: str | None = None
    variants: list[str] = field(default_factory=list)
    lengths: tuple[int, ...] = (0, 0, 0)
    is_missing: bool = False
    is_often_missing: bool = False
    channels: int = 0
    symbols: int = 0
    family: Family = field(default_factory=lambda: Family("steps"))


@dataclass
class Labels:
    """Labels of the rows of a table.

    Attributes:
        names: Names of the labels of each value of the label column.
        codes: Index of the value of each row, (rows,).
        multi_label: True if a row can have several labels.
        separator: Separator of several labels in a cell, or None.
        variants: Spellings of one class that differ.
    """

    names: list[tuple[str, ...]]
    codes: npt.NDArray[np.int32]
    multi_label: bool = False
    separator: str | None = None
    variants: list[str] = field(default_factory=list)

    @property
    def is_known(self) -> npt.NDArray[np.bool_]:
        """True for each row with a label, or that may have none, (rows,)."""
        if self.multi_label:
            return np.ones(len(self.codes), dtype=bool)
        known: npt.NDArray[np.bool_] = np.array([bool(names) for names in self.names])[self.codes]
        return known

    def counts(self, rows: Rows) -> Counter[str]:
        """Return the number of rows of each label, among some rows."""
        found: Counter[str] = Counter()
        sizes = np.bincount(self.codes[rows], minlength=len(self.names)).tolist()
        for names, count in zip(self.names, sizes, strict=True):
            for name in names if count else ():
                found[name] += count
        return found


def labels_of(roles: Roles, separator: str | None = None) -> Labels:
    """Return the labels of the rows of a table.

    Args:
        roles: Roles with the column of the label.
        separator: Separator of several labels in a cell, or None to detect it.
    """
    column = roles.label
    if column is None:
        raise ValueError("the format has no labels")
    if roles.one_hot:
        return _marked(roles.one_hot)
    if column.kind in LIST_KINDS or any(isinstance(value, tuple) for value in column.values):
        return _listed(column)
    names = [name_of(value) if isinstance(value, str) else str(value) for value in column.values]
    counts: Counter[str] = Counter()
    spellings: dict[str, list[str]] = {}
    for name, value, count in zip(names, column.values, column.counts.tolist(), strict=True):
        if name and count:
            counts[name] += count
            spellings.setdefault(name, []).append(str(value))
    separator = separator or separator_of(counts)
    variants = [listed(found) for found in spellings.values() if len(found) > 1]
    if separator is None:
        tuples: list[tuple[str, ...]] = [(name,) if name else () for name in names]
        return Labels(tuples, column.codes, variants=variants)
    parts = []
    for name in names:
        parts.append(tuple(filter(None, (part.strip() for part in name.split(separator)))))
    return Labels(parts, column.codes, multi_label=True, separator=separator)


def _marked(columns: list[Column]) -> Labels:
    """Return the labels of columns of 1 and 0, each named after a label.

    Raises:
        BadCellError: If a cell is no mark.
    """
    names = np.full((columns[0].rows, len(columns)), False)
    for at, column in enumerate(columns):
        marks = []
        for value in column.values:
            try:
                marks.append(mark_of(value))
            except BadCellError as error:
                raise BadCellError(f"column {quote(str(column.name))}: {error}") from None
        names[:, at] = np.array(marks)[column.codes]
    kinds, codes = np.unique(names, axis=0, return_inverse=True)
    sets = []
    for marks in kinds.tolist():
        sets.append(tuple(str(x.name) for x, mark in zip(columns, marks, strict=True) if mark))
    several = any(len(each) != 1 for each in sets)
    return Labels(sets, codes.reshape(-1).astype(np.int32), multi_label=several)


def _listed(column: Column) -> Labels:
    """Return the labels of a column of lists."""
    if is_multi_hot(column):
        names = [_positions(value) for value in column.values]
        return Labels(names, column.codes, multi_label=True)
    names = []
    for value in column.values:
        strings = [str(each) for each in value] if isinstance(value, np.ndarray) else None
        if strings is None:
            strings = strings_of(value) if value else []
        names.append(
            tuple(dict.fromkeys(strings or ([value] if isinstance(value, str) and value else [])))
        )
    several = any(len(each) != 1 for each in names)
    return Labels(names, column.codes, multi_label=several)


def _positions(value: Any) -> tuple[str, ...]:
    numbers = value if isinstance(value, np.ndarray) else series_of(value)[:, 0]
    return tuple(str(at) for at in np.flatnonzero(np.asarray(numbers).reshape(-1)).tolist())


def facts_of(roles: Roles, *, tokenizer: str | None = None, separator: str | None = None) -> Facts:
    """Return the facts about the sequences of a table.

    Args:
        roles: Roles of its columns.
        tokenizer: Tokenizer that the user chose, which decides the family of texts, or None.
        separator: Separator of labels that is known already, or None.
    """
    labels = labels_of(roles, separator)
    facts = Facts(multi_label=labels.multi_label, separator=labels.separator)
    facts.variants = labels.variants
    if roles.id is not None:
        _count_steps(facts, roles, labels)
        return facts
    is_blank = np.ones(len(labels.codes), dtype=bool)
    for column in roles.sequence:
        is_blank &= np.array([_is_empty(value) for value in column.values])[column.codes]
    is_used = labels.is_known & ~is_blank & ~_is_odd(roles.sequence)
    facts.unreadable = int((labels.is_known & _is_odd(roles.sequence)).sum())
    facts.unlabelled = int((~labels.is_known).sum())
    facts.empty = int((labels.is_known & is_blank).sum())
    rows = np.flatnonzero(is_used)
    facts.rows, facts.classes = len(rows), labels.counts(rows)
    if len(rows):
        _look_at(facts, roles, spread(rows), tokenizer)
    return facts


def spread(rows: Rows) -> Rows:
    """Return at most `SAMPLE` of some rows, spread evenly over them."""
    return rows[:: -(-len(rows) // SAMPLE)]


def _is_empty(value: Any) -> bool:
    return isinstance(value, str) and value in ("", "[]")


def _is_odd(columns: list[Column]) -> npt.NDArray[np.bool_]:
    """Return True for each row with a cell of another kind than its column of numbers."""
    found = np.zeros(columns[0].rows if columns else 1, dtype=bool)
    for column in columns:
        if column.kind not in ("text", "blank"):
            found = found | column.is_odd
    return found


def _count_steps(facts: Facts, roles: Roles, labels: Labels) -> None:
    """Count the sequences of a step table: the rows of each id, or windows of them."""
    assert roles.id is not None
    ids = roles.id.codes
    sizes = np.bincount(ids, minlength=len(roles.id.values))
    known = np.flatnonzero(labels.is_known)
    if labels.multi_label:
        known = np.flatnonzero(np.array([bool(names) for names in labels.names])[labels.codes])
    label_row = np.full(len(sizes), -1)
    label_row[ids[known]] = known
    sizes[[value == "" for value in roles.id.values]] = 0
    has_label = (label_row >= 0) | labels.multi_label
    facts.unlabelled = int(((sizes > 0) & ~has_label).sum())
    is_bad = np.zeros(len(sizes), dtype=bool)
    for column in used_columns(roles):
        is_bad[ids[column.is_odd]] = True
    facts.unreadable = int((is_bad & (sizes > 0) & has_label).sum())
    used = np.flatnonzero((sizes > 0) & has_label & ~is_bad)
    if roles.window is None:
        rows = label_row[used]
        facts.rows, facts.classes = len(used), labels.counts(rows[rows >= 0])
        lengths = sizes[used]
    else:
        rows = ends_of_windows(roles, labels.codes)
        facts.rows, facts.classes = len(rows), labels.counts(rows)
        lengths = np.full(max(1, len(rows)), roles.window["steps"])
    facts.lengths = quantiles(lengths)
    numbers = [column for column in used_columns(roles) if column is not roles.order]
    shares = [float((np.isnan(column.numbers) & ~column.is_odd).mean()) for column in numbers]
    facts.is_missing = any(shares)
    for column, share in zip(numbers, shares, strict=True):
        facts.is_often_missing |= share >= OFTEN_MISSING and str(column.name) in roles.steps
    if "token" not in roles.steps.values():
        facts.channels = len(roles.steps)
        facts.family = Family("series" if facts.channels == 1 else "channels")


def used_columns(roles: Roles) -> list[Column]:
    """Return the columns of numbers that a table's sequences hold, and the order."""
    names = {name for name, kind in (roles.steps | roles.static).items() if "number" in kind}
    used = [column for column in roles.columns if str(column.name) in names]
    return used if roles.order is None else [*used, roles.order]


def ends_of_windows(roles: Roles, labels: npt.NDArray[np.int32]) -> Rows:
    """Return the last row of each window of a step table.

    Args:
        roles: Roles with an id, an order or None, and a window.
        labels: Code of the label of each row, (rows,).
    """
    assert roles.id is not None
    assert roles.window is not None
    steps, stride = roles.window["steps"], roles.window["stride"]
    times = np.arange(roles.id.rows) if roles.order is None else roles.order.numbers
    rows = np.lexsort((times, roles.id.codes))
    is_start = np.diff(roles.id.codes[rows], prepend=-1) != 0
    if roles.window["label"] == "constant":
        is_start |= np.diff(labels[rows], prepend=-1) != 0
    first = np.maximum.accumulate(np.where(is_start, np.arange(len(rows)), 0))
    place = np.arange(len(rows)) - first + 1
    is_end = (place >= steps) & ((place - steps) % stride == 0)
    found: Rows = rows[is_end]
    return found


def quantiles(lengths: npt.NDArray[Any]) -> tuple[int, ...]:
    """Return the median, the 95 % quantile and the maximum of lengths."""
    if not len(lengths):
        return (0, 0, 0)
    return tuple(map(int, np.quantile(lengths, (0.5, 0.95, 1), method="nearest")))


def _look_at(facts: Facts, roles: Roles, rows: Rows, tokenizer: str | None) -> None:
    """Set the lengths, the family, the symbols and the channels from a sample of rows."""
    if roles.kind == "features":
        _look_at_numbers(facts, roles, rows)
        return
    cells = []
    for row in rows.tolist():
        cells.append([column.values[column.codes[row]] for column in roles.sequence])
    if roles.kind == "tokens":
        sequences = [[*symbols_of_row(row)] for row in cells]
        facts.family = Family("symbols")
    else:
        texts = [" ".join(map(text_of_value, row)) for row in cells]
        # The first texts of a file that is sorted by label are of one class.
        mixed = np.random.default_rng(0).permutation(len(texts)).tolist()
        chosen = CHOSEN_FAMILIES.get(tokenizer or "")
        facts.family = Family(chosen) if chosen else family_of([texts[at] for at in mixed])
        split = make_tokenizer(
            TOKENIZERS.get(facts.family.name, "char"), lowercase=not facts.family.keeps_case
        )
        sequences = [split(text) for text in texts]
    if facts.family.name == "symbols":
        roles.kind = "tokens"
    facts.symbols = len({token for sequence in sequences for token in sequence})
    facts.lengths = quantiles(np.array([len(each) for each in sequences]))


def symbols_of_row(row: list[Any]) -> list[str]:
    """Return the symbols in the cells of a row."""
    found = list[str]()
    for value in row:
        if isinstance(value, np.ndarray):
            found += map(str, value.reshape(-1).tolist())
        elif isinstance(value, tuple):
            found += value
        else:
            found += strings_of(value) or str(value).split()
    return found


def text_of_value(value: Any) -> str:
    """Return the text of a value: of a list, the strings or the texts of its objects, joined."""
    if isinstance(value, str):
        return value
    parts = []
    for each in value:
        parts += [str(x) for x in each.values()] if isinstance(each, dict) else [str(each)]
    return " ".join(parts)


def _look_at_numbers(facts: Facts, roles: Roles, rows: Rows) -> None:
    """Set the lengths, the channels and the missing numbers of series."""
    columns = roles.sequence
    if len(columns) > 1 and columns[0].kind == "number":
        numbers = np.stack([column.numbers[rows] for column in columns], axis=1)
        is_known = np.isfinite(numbers)
        ends = len(columns) - np.argmax(is_known[:, ::-1], axis=1)
        within = np.arange(len(columns)) < ends[:, None]
        facts.is_missing = bool((~is_known & within).any())
        facts.lengths, facts.channels = quantiles(ends), 1
    else:
        decimal = "," if any(column.has_decimal_commas for column in columns) else "."
        lengths, channels = [], 0
        for row in rows.tolist():
            values = [column.values[column.codes[row]] for column in columns]
            try:
                series = [series_of(value, decimal) for value in values]
            except BadCellError:
                continue
            lengths.append(len(series[0]))
            channels = max(channels, sum(each.shape[1] for each in series))
            facts.is_missing |= any(np.isnan(each).any() for each in series)
        facts.lengths, facts.channels = quantiles(np.array(lengths)), channels
    facts.family = Family("series" if facts.channels <= 1 else "channels")
