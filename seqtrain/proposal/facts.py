"""Facts about the sequences of a table: labels, lengths, missing numbers, and family."""

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.proposal.family import Family, family_of
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.order import Order
from seqtrain.proposal.profile import LIST_KINDS, ColumnProfile
from seqtrain.proposal.roles import Roles
from seqtrain.sequences.content import joined_turns, read_content
from seqtrain.sequences.grouping import sorted_rows
from seqtrain.sequences.labels import LabelReader
from seqtrain.sequences.summary import separator_of
from seqtrain.sequences.tokenizers import make_tokenizer
from seqtrain.sequences.windows import cut
from seqtrain.tables.blocks import Cells, Coded, Codes, Mask, Name

SAMPLED_SEQUENCES = 4096
"""Largest number of sequences whose content is looked at, spread evenly over all of them."""
TIMED_TEXTS = 64
"""Number of texts with which the time of a pretrained encoder is measured."""
OFTEN_MISSING = 0.2
"""Share of missing numbers in a step column from which on the column is often missing."""
FAMILY_TOKENIZERS = {"words": "word", "symbols": "whitespace"}
"""Maps a family of texts to its tokenizer. Texts of other families are split into characters."""
CHOSEN_FAMILIES = {
    "word": "words",
    "whitespace": "words",
    "bpe": "words",
    "char": "characters",
    "byte": "characters",
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
        empty_classes: Maps each label to its number of sequences without time steps.
        multi_label: True if a sequence can have several labels, or none.
        separator: Separator of several labels in a cell, or None.
        positions: Number of classes if each label cell marks them by 0 and 1, else None.
        label_problem: Reason why the first label that can't be read can't, or None.
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
    empty_classes: Counter[str] = field(default_factory=Counter)
    multi_label: bool = False
    separator: str | None = None
    positions: int | None = None
    label_problem: str | None = None
    variants: list[str] = field(default_factory=list)
    lengths: tuple[int, ...] = (0, 0, 0)
    is_missing: bool = False
    is_often_missing: bool = False
    channels: int = 0
    symbols: int = 0
    family: Family = field(default_factory=lambda: Family("steps"))
    texts: list[str] = field(default_factory=list)


def facts_of(roles: Roles, options: InitOptions, unread: Counter[str]) -> Facts:
    """Return the facts about the sequences of a table: its rows, or the rows of each id.

    Args:
        roles: Roles of its columns.
        options: Options of the user.
        unread: Number of further sequences of each label, whose content wasn't read.
    """
    if roles.kind == "text" and roles.id is not None:
        return facts_of(_chats(roles), options.with_given(kind="text"), unread)
    labels, id = _Labels(roles, options.get("label_separator")), roles.id
    facts = Facts(multi_label=labels.multi_label, separator=labels.separator)
    facts.positions = labels.positions
    facts.variants, facts.label_problem = labels.reader.notices(), labels.problem
    label_of = labels.codes if id is None else labels.of_ids(id)
    sizes = np.ones(len(label_of), np.intp)
    if id is not None:
        sizes = np.bincount(id.codes, minlength=len(label_of)).astype(np.intp)
        sizes[id.codes[id.is_blank]] = 0
    exists = is_full = sizes > 0
    if roles.sequence and options.get("empty") != "unk":  # then they have one unknown token
        is_full = np.any([_holds_steps(column, roles.kind) for column in roles.sequence], axis=0)
    is_bad = np.zeros(len(label_of), dtype=bool)
    for column in roles.numbers_and_order():
        owners = column.owners if id is None else id.codes
        is_bad[owners[column.is_odd]] = True
    for column in roles.odd_sequences():
        is_bad |= column.is_odd
    if id is not None and roles.window is None and not labels.multi_label:
        is_other = (labels.codes >= 0) & (labels.codes != label_of[id.codes])
        is_bad[id.codes[is_other]] = True
    is_known = exists & (label_of >= 0)
    if id is not None and labels.multi_label:
        is_known = exists  # an id without a label has none of them
    facts.unlabelled = int((exists & ~is_known).sum())
    # A blank id is no sequence: such as a row of units below the header.
    facts.unreadable = int((is_bad & (is_known | ~exists)).sum())
    facts.empty = int((is_known & ~is_full).sum())
    facts.empty_classes = labels.counts(label_of[is_known & ~is_full])
    used = np.flatnonzero(is_known & is_full & ~is_bad)
    found, lengths = label_of[used], sizes[used]
    if roles.window is not None:
        found, lengths = _windows(roles, labels.codes)
    facts.rows, facts.classes = len(found) + unread.total(), labels.counts(found) + unread
    facts.lost_classes = set(labels.counts(label_of[is_full])) - set(facts.classes)
    if roles.steps:
        if id is None and roles.columns:
            lengths = np.unique(roles.columns[0].owners, return_counts=True)[1]
        facts.lengths = quantiles(lengths)
        is_used = np.zeros(len(label_of), dtype=bool)
        is_used[used] = True
        _add_steps(facts, roles, is_used)
    elif len(used):
        _add_content(facts, roles, used[:: -(-len(used) // SAMPLED_SEQUENCES)], options)
    return facts


def _chats(roles: Roles) -> Roles:
    """Return the roles of a table with a row per id, whose texts are joined as `fit` joins them."""
    id, label = roles.id, roles.label
    assert id is not None
    cells: dict[Name, Cells] = {
        column.name: [column.values[code] for code in column.codes.tolist()]
        for column in roles.sequence
    }
    texts = read_content(cells, {}, kind="text", are_turns=True)
    times = [roles.order.numbers] if roles.order else []
    order = sorted_rows(id.codes.astype(np.int64), times)
    offsets = np.searchsorted(id.codes[order], np.arange(len(id.values) + 1))
    chats = joined_turns(texts, order, offsets)
    codes = np.full(len(chats), len(label.values), np.int32)
    is_known = ~label.is_blank
    codes[id.codes[is_known]] = label.codes[is_known]
    labels = ColumnProfile(label.name, [*label.values, ""], codes)
    sequence = ColumnProfile(roles.sequence[0].name, chats, np.arange(len(chats), dtype=np.int32))
    return replace(
        roles, id=None, order=Order(), label=labels, sequence=[sequence], columns=[labels]
    )


class _Labels:
    """Labels of the rows of a table, as `fit` reads them.

    Attributes:
        reader: The reader of labels.
        codes: Code of the labels of each row, or -1 for a row without a label, (rows,).
        problem: Reason why the first label that can't be read can't, or None.
        multi_label: True if a row can have several labels.
        separator: Separator of several labels in a cell, or None.
        positions: Number of positions if a cell is a list of 0s and 1s, else None.
    """

    def __init__(self, roles: Roles, separator: str | None) -> None:
        self._read(roles.label, "|" if roles.one_hot else separator)
        if separator is None and not roles.one_hot and roles.label.are_texts:
            separator = separator_of(self.counts(self.codes))
            if separator is not None:
                self._read(roles.label, separator)
        self.separator = separator
        sizes = {len(self.reader.combinations[code]) for code in self._used(self.codes)}
        self.multi_label = separator is not None or sizes != {1}

    def _read(self, column: ColumnProfile, separator: str | None) -> None:
        self.reader = LabelReader(separator)
        written = column.written
        self.codes, problems = self.reader.read(Coded(written.codes, written.values))
        self.problem = next(iter(problems.values()), None)
        self.positions = self.reader.finalize()

    def _used(self, codes: Codes) -> dict[int, int]:
        """Return the number of rows of each code, among rows with some codes."""
        used, counts = np.unique(codes[codes >= 0], return_counts=True)
        return dict(zip(used.tolist(), counts.tolist(), strict=True))

    def counts(self, codes: Codes) -> Counter[str]:
        """Return the number of rows of each label, among rows with some codes."""
        found: Counter[str] = Counter()
        for code, count in self._used(codes).items():
            for name in self.reader.combinations[code]:
                found[name] += count
        return found

    def of_ids(self, id: ColumnProfile) -> Codes:
        """Return the code of the labels of each id, or -1."""
        found, is_known = np.full(len(id.values), -1, np.int32), self.codes >= 0
        if self.multi_label:  # another row of the id may have the labels
            is_known &= np.array([*map(bool, self.reader.combinations), False])[self.codes]
        found[id.codes[is_known]] = self.codes[is_known]
        return found


def _holds_steps(column: ColumnProfile, kind: str) -> Mask:
    """Return True for each row whose cell of the sequence isn't empty, nor a missing number."""
    if kind == "features":
        return ~column.is_missing
    return np.array([type(x) is not str or x not in ("", "[]") for x in column.values])[
        column.codes
    ]


def _windows(roles: Roles, codes: Codes) -> tuple[Codes, npt.NDArray[Any]]:
    """Return the code of the labels of each window of a step table, and its length."""
    assert roles.id is not None
    assert roles.window is not None
    ids = roles.id.codes
    rows = roles.order.sort(ids)
    offsets = np.concatenate(([0], np.cumsum(np.bincount(ids))))
    windows = cut(offsets, codes[rows], roles.window)
    return windows.labels(codes[rows], roles.window["label"]), windows.ends - windows.starts


def _add_steps(facts: Facts, roles: Roles, is_used: Mask) -> None:
    """Set the missing numbers, the channels and the family of time steps in columns.

    Args:
        facts: The facts to set.
        roles: Roles of the columns.
        is_used: True for each sequence that isn't left out, (sequences,).
    """
    for column in roles.number_columns():
        owners = column.owners if roles.id is None else roles.id.codes
        is_missing = np.isnan(column.numbers) & ~column.is_odd & is_used[owners]
        share = float(is_missing.mean())
        facts.is_missing |= share > 0
        facts.is_often_missing |= share >= OFTEN_MISSING and column.name_text in roles.steps
    if "token" not in roles.steps.values():
        facts.channels = len(roles.steps)
        facts.family = Family("series" if facts.channels == 1 else "channels")


def quantiles(lengths: npt.NDArray[Any]) -> tuple[int, ...]:
    """Return the median, the 95 % quantile and the maximum of lengths."""
    if not len(lengths):
        return (0, 0, 0)
    return tuple(map(int, np.quantile(lengths, (0.5, 0.95, 1), method="nearest")))


def symbol_mark(roles: Roles) -> str | None:
    """Return the mark between the symbols of a cell, or None for blanks."""
    if roles.kind != "tokens":
        return None
    if len(roles.sequence) == 1:  # its cells may repeat, for it isn't the label
        return roles.sequence[0].joined_by
    marks = [column.mark for column in roles.sequence if column.kind in LIST_KINDS]
    return next(iter(marks), None)


def _add_content(facts: Facts, roles: Roles, rows: RowNumbers, options: InitOptions) -> None:
    """Set the lengths, the family, the symbols and the channels from rows, as `fit` reads them."""
    cells: dict[Name, Cells] = {}
    for column in roles.sequence:
        if roles.kind == "features" and column.kind == "number":
            cells[column.name] = column.numbers[rows]
        else:
            cells[column.name] = [column.values[code] for code in column.codes[rows].tolist()]
    if any(column.has_decimal_commas for column in roles.sequence):
        decimal = ","
    else:
        decimal = "."
    problems = dict[int, str]()
    separator = options.get("symbol_separator") or symbol_mark(roles)
    content = read_content(cells, problems, kind=roles.kind, decimal=decimal, separator=separator)
    content = [each for row, each in enumerate(content) if row not in problems] or content
    if roles.kind == "features":
        facts.channels = max((each.shape[1] for each in content), default=0)
        facts.is_missing = any(np.isnan(each).any() for each in content)
        facts.family = Family("series" if facts.channels <= 1 else "channels")
    elif roles.kind == "tokens":
        facts.family = Family("symbols")
    else:
        # The first texts of a file that is sorted by label are of one class.
        mixed = np.random.default_rng(0).permutation(len(content)).tolist()
        texts = [content[at] for at in mixed]
        chosen = CHOSEN_FAMILIES.get(options.get("tokenizer", ""))
        facts.family = Family(chosen) if chosen else family_of(texts)
        are_turns = any(column.kind == "turns" for column in roles.sequence)
        are_texts = are_turns or options.kind == "text" or len(roles.sequence) > 1
        if are_texts and facts.family.name == "symbols":
            facts.family = Family("words", keeps_case=True)
        facts.texts = texts[:TIMED_TEXTS]
        tokenizer = FAMILY_TOKENIZERS.get(facts.family.name, "char")
        content = list(map(make_tokenizer(tokenizer, lowercase=not facts.family.keeps_case), texts))
    if not facts.channels:
        facts.symbols = len(set(chain.from_iterable(content)))
    facts.lengths = quantiles(np.array(list(map(len, content))))
