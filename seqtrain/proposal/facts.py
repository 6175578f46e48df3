"""Facts about the sequences of a table: labels, lengths, missing numbers, and family."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.proposal.family import Family, family_of
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.profile import ColumnProfile
from seqtrain.proposal.roles import Roles
from seqtrain.sequences.content import sentence_of
from seqtrain.sequences.labels import LabelReader
from seqtrain.sequences.summary import separator_of
from seqtrain.sequences.tokenizers import make_tokenizer
from seqtrain.sequences.windows import cut
from seqtrain.tables.blocks import Coded
from seqtrain.tables.cells import BadCellError
from seqtrain.tables.series import series_of

SAMPLED_SEQUENCES = 4096
"""Largest number of sequences whose content is looked at, spread evenly over all of them."""
TIMED_TEXTS = 64
"""Number of texts with which the time of a pretrained encoder is measured."""
OFTEN_MISSING = 0.2
"""Share of missing numbers in a step column from which on the column is often missing."""
FAMILY_TOKENIZERS = {"words": "word", "symbols": "whitespace"}
"""Maps a family of texts to its tokenizer. Texts of other families are split into characters."""
CHOSEN_FAMILIES = {
    **dict.fromkeys(("word", "whitespace", "bpe"), "words"),
    **dict.fromkeys(("char", "byte"), "characters"),
}
"""Maps a tokenizer that the user chose to the family of the texts."""
RowNumbers = npt.NDArray[np.intp]


@dataclass
class Facts:
    """Facts about the labelled sequences of some files.

    Attributes:
        rows: Number of labelled sequences that aren't empty.
        empty: Number of labelled sequences without time steps.
        unlabelled: Number of rows with a blank label.
        unreadable: Number of rows that can't be read.
        classes: Maps each label to its number of sequences.
        lost_classes: Labels that only rows have that can't be read.
        multi_label: True if a sequence can have several labels, or none.
        separator: Separator of several labels in a cell, or None.
        variants: Lines about labels that are spelled in several ways.
        lengths: Median, 95 % quantile and maximum of the lengths in time steps, of a sample.
        is_missing: True if a number of a sequence is missing.
        is_often_missing: True if a step column lacks at least a fifth of its numbers.
        channels: Numbers per time step if time steps hold only numbers, else 0.
        symbols: Number of distinct tokens in a sample of lists or texts.
        family: Family of the data.
        texts: A few texts, of a sequence of texts.
    """

    rows: int = 0
    empty: int = 0
    unlabelled: int = 0
    unreadable: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    lost_classes: set[str] = field(default_factory=set)
    multi_label: bool = False
    separator: str | None = None
    variants: list[str] = field(default_factory=list)
    lengths: tuple[int, ...] = (0, 0, 0)
    is_missing: bool = False
    is_often_missing: bool = False
    channels: int = 0
    symbols: int = 0
    family: Family = field(default_factory=lambda: Family("steps"))
    texts: list[str] = field(default_factory=list)


def facts_of(roles: Roles, options: InitOptions, unread: Counter[str]) -> Facts:
    """Return the facts about the sequences of a table.

    Args:
        roles: Roles of its columns.
        options: Options of the user.
        unread: Number of further sequences of each label, whose content wasn't read.
    """
    facts = _facts_of_rows(roles, options)
    facts.rows += unread.total()
    facts.classes += unread
    return facts


def _facts_of_rows(roles: Roles, options: InitOptions) -> Facts:
    facts = Facts()
    labels = _Labels(roles, options.get("label_separator"))
    facts.multi_label, facts.separator = labels.multi_label, labels.separator
    facts.variants = labels.reader.notices()
    if roles.id is not None:
        _count_steps(facts, roles, labels)
        return facts
    is_blank = np.ones(len(labels.codes), dtype=bool)
    is_odd = np.zeros(len(labels.codes), dtype=bool)
    for column in roles.sequence:
        if is_blank.any():
            are_blank = [type(value) is str and value in ("", "[]") for value in column.values]
            is_blank &= np.array(are_blank)[column.codes]
        is_odd |= column.is_odd
    if roles.events is not None:
        for column in roles.number_columns():
            is_odd[roles.events.owners[column.is_odd]] = True
    is_known = labels.codes >= 0
    facts.unlabelled = int((~is_known).sum())
    facts.unreadable = int((is_known & is_odd).sum())
    facts.empty = int((is_known & is_blank).sum())
    rows = np.flatnonzero(is_known & ~is_blank & ~is_odd)
    facts.rows, facts.classes = len(rows), labels.counts(labels.codes[rows])
    facts.lost_classes = {*labels.counts(labels.codes[~is_blank])} - {*facts.classes}
    if len(rows):
        _look_at(facts, roles, rows[:: -(-len(rows) // SAMPLED_SEQUENCES)], options)
    return facts


class _Labels:
    """Labels of the rows of a table, as `fit` reads them.

    Attributes:
        reader: The reader of labels.
        codes: Code of the labels of each row, or -1 for a row without a label, (rows,).
        multi_label: True if a row can have several labels.
        separator: Separator of several labels in a cell, or None.
    """

    def __init__(self, roles: Roles, separator: str | None) -> None:
        column = roles.label
        self._read(column, "|" if roles.one_hot else separator)
        if separator is None and not roles.one_hot and column.are_texts:
            separator = separator_of(self.counts(self.codes))
            if separator is not None:
                self._read(column, separator)
        self.separator = separator
        used = np.unique(self.codes[self.codes >= 0]).tolist()
        sizes = {len(self.reader.combinations[code]) for code in used}
        self.multi_label = separator is not None or sizes != {1}

    def _read(self, column: ColumnProfile, separator: str | None) -> None:
        self.reader = LabelReader(separator)
        self.codes = self.reader.read(Coded(column.codes, column.values))[0]
        self.reader.finish()

    def counts(self, codes: npt.NDArray[np.int32]) -> Counter[str]:
        """Return the number of rows of each label, among rows with some codes."""
        found: Counter[str] = Counter()
        combinations = self.reader.combinations
        sizes = np.bincount(codes[codes >= 0], minlength=len(combinations)).tolist()
        for names, count in zip(combinations, sizes, strict=True):
            for name in names if count else ():
                found[name] += count
        return found


def _count_steps(facts: Facts, roles: Roles, labels: _Labels) -> None:
    """Count the sequences of a step table: the rows of each id, or windows of them."""
    assert roles.id is not None
    ids, codes = roles.id.codes, labels.codes
    sizes = np.bincount(ids, minlength=len(roles.id.values))
    if roles.id.blank >= 0:
        sizes[roles.id.blank] = 0
    label_of = np.full(len(sizes), -1, np.int32)
    is_known = codes >= 0
    if labels.multi_label:  # another row of the id may have the labels
        is_known &= np.array([*map(bool, labels.reader.combinations), False])[codes]
    label_of[ids[is_known]] = codes[is_known]
    has_label = (sizes > 0) & ((label_of >= 0) | labels.multi_label)
    numbers = roles.number_columns()
    is_bad = np.zeros(len(sizes), dtype=bool)
    for column in numbers:
        is_bad[ids[column.is_odd]] = True
    used = np.flatnonzero(has_label & ~is_bad)
    facts.unlabelled = int(((sizes > 0) & ~has_label).sum())
    facts.unreadable = int((is_bad & has_label).sum())
    if roles.id.blank >= 0:  # such as a row of units below the header
        facts.unreadable += int(is_bad[roles.id.blank])
    lengths, found = sizes[used], label_of[used]
    if roles.window is not None:
        times = np.arange(len(ids)) if roles.order is None else roles.order.numbers
        rows = np.lexsort((times, ids))
        offsets = np.concatenate(([0], np.cumsum(np.bincount(ids))))
        windows = cut(offsets, codes[rows], roles.window)
        found = windows.labels(codes[rows], roles.window["label"])
        lengths = windows.ends - windows.starts
    facts.rows, facts.classes = len(found), labels.counts(found)
    facts.lost_classes = {*labels.counts(label_of)} - {*facts.classes}
    facts.lengths = quantiles(lengths)
    _look_at_steps(facts, roles)


def _look_at_steps(facts: Facts, roles: Roles) -> None:
    """Set the missing numbers, the channels and the family of time steps in columns."""
    for column in roles.number_columns():
        if column is roles.order:
            continue
        share = float((np.isnan(column.numbers) & ~column.is_odd).mean())
        facts.is_missing |= share > 0
        facts.is_often_missing |= share >= OFTEN_MISSING and str(column.name) in roles.steps
    if "token" not in roles.steps.values():
        facts.channels = len(roles.steps)
        facts.family = Family("series" if facts.channels == 1 else "channels")


def quantiles(lengths: npt.NDArray[Any]) -> tuple[int, ...]:
    """Return the median, the 95 % quantile and the maximum of lengths."""
    if not len(lengths):
        return (0, 0, 0)
    return tuple(map(int, np.quantile(lengths, (0.5, 0.95, 1), method="nearest")))


def _look_at(facts: Facts, roles: Roles, rows: RowNumbers, options: InitOptions) -> None:
    """Set the lengths, the family, the symbols and the channels from a sample of rows."""
    if roles.events is not None:
        sizes = np.bincount(roles.events.owners)
        facts.lengths = quantiles(sizes[sizes > 0])
        _look_at_steps(facts, roles)
        return
    if roles.kind == "features":
        _look_at_numbers(facts, roles, rows)
        return
    cells = [_cells(roles, row) for row in rows.tolist()]
    if roles.kind == "tokens":
        sequences = []
        for row in cells:
            pairs = zip(roles.sequence, row, strict=True)
            lists = [column.strings_of(value) or str(value).split() for column, value in pairs]
            sequences.append([symbol for own in lists for symbol in own])
        facts.family = Family("symbols")
    else:
        texts = [" ".join(map(_text_of, row)) for row in cells]
        # The first texts of a file that is sorted by label are of one class.
        mixed = np.random.default_rng(0).permutation(len(texts)).tolist()
        texts = [texts[at] for at in mixed]
        chosen = CHOSEN_FAMILIES.get(options.get("tokenizer", ""))
        facts.family = Family(chosen) if chosen else family_of(texts)
        facts.texts = texts[:TIMED_TEXTS]
        split = make_tokenizer(
            FAMILY_TOKENIZERS.get(facts.family.name, "char"), lowercase=not facts.family.keeps_case
        )
        sequences = [split(text) for text in texts]
    if facts.family.name == "symbols":
        roles.kind = "tokens"
    facts.symbols = len({token for sequence in sequences for token in sequence})
    facts.lengths = quantiles(np.array([len(each) for each in sequences]))


def _cells(roles: Roles, row: int) -> list[Any]:
    """Return the cells of the sequence of a row."""
    return [column.values[column.codes[row]] for column in roles.sequence]


def _text_of(value: Any) -> str:
    """Return the text of a value as `fit` reads it, or any text if `fit` refuses it."""
    try:
        return sentence_of(value)
    except BadCellError:
        return str(value)


def _look_at_numbers(facts: Facts, roles: Roles, rows: RowNumbers) -> None:
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
        lengths = []
        for row in rows.tolist():
            try:
                series = [series_of(value, decimal) for value in _cells(roles, row)]
            except BadCellError:
                continue
            lengths.append(len(series[0]))
            facts.channels = max(facts.channels, sum(each.shape[1] for each in series))
            facts.is_missing |= any(np.isnan(each).any() for each in series)
        facts.lengths = quantiles(np.array(lengths))
    facts.family = Family("series" if facts.channels <= 1 else "channels")
