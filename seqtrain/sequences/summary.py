"""Summaries of the splits of a data set, and warnings about it, before training."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from seqtrain.config.document import set_options
from seqtrain.config.rules import without_effect
from seqtrain.config.schema import BatchingConfig, Config
from seqtrain.sequences.dataset import PreparedData
from seqtrain.sequences.labels import FEWEST_OF_A_CLASS, class_counts, rare_class
from seqtrain.sequences.lengths import doubts_about_time
from seqtrain.sequences.plan import padding_fraction, plan_epoch
from seqtrain.sequences.sentinels import NINES
from seqtrain.sequences.splits import BLANK, equal_rows, usual_share
from seqtrain.sequences.store import SequenceStore, counts_of
from seqtrain.sequences.vocabulary import UNK
from seqtrain.tables.blocks import LABEL, Ints
from seqtrain.tables.cells import WHOLE, is_multi_hot, is_number, names_missing
from seqtrain.text import counted, listed, quote

QUANTILES = (0.0, 0.05, 0.5, 0.95, 1.0)
SHOWN = 3
WORDS = ("word", "whitespace")
"""Tokenizers whose tokens are words, numbers and marks."""
JOINING_MARKS = "|\n;,"
"""Characters that may separate the labels of a list."""
MANY_NUMBERS = 20
"""Number of different numeric labels above which they may be a quantity."""
WHOLE_WITH_COMMA = re.compile(r"[-+]?[0-9]+(?:,0{1,2})?")
ZERO_WITH_COMMA = re.compile(r"0,0{1,2}")
"""A whole number that may have decimals after a comma, and such a zero."""
DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+")
FEWEST_NUMBERED = 3
"""Fewest classes 0, 1 … beside which -1 or 99 may stand for a missing label."""
UNEVEN = 20
"""Ratio of the largest to the smallest class above which classes can be very uneven."""


@dataclass(frozen=True)
class SplitSummary:
    """Summary of one split.

    Attributes:
        rows: Number of sequences.
        steps: Number of steps of all sequences.
        length_quantiles: Number of steps of a sequence: minimum, 5 %, median, 95 %, maximum.
        unknown: Share of steps that are <unk>, in [0, 1].
        repeats: Number of sequences that also occur in train; 0 for train itself. Case and outer
            whitespace are ignored.
        majority: Accuracy of a baseline on the split. The baseline always predicts the labels that
            are most frequent in train.
    """

    rows: int
    steps: int
    length_quantiles: tuple[int, ...]
    unknown: float
    repeats: int
    majority: float


def summarize(data: PreparedData) -> dict[str, SplitSummary]:
    """Return the summary of each split, by its name."""
    train = data.splits["train"]
    found = {}
    sets, times = np.unique(train.combinations, return_counts=True)
    majority = sets[times.argmax()]
    for name, store in data.splits.items():
        repeats = 0
        if name != "train" and store.keys is not None and train.keys is not None:
            repeats = int((np.isin(store.keys, train.keys) & (store.keys != BLANK)).sum())
        quantiles = np.quantile(store.lengths, QUANTILES, method="nearest")
        found[name] = SplitSummary(
            rows=len(store),
            steps=len(store.values),
            length_quantiles=tuple(quantiles.astype(int).tolist()),
            unknown=unknown_share(store),
            repeats=repeats,
            majority=float(np.mean(store.combinations == majority)),
        )
    return found


def unknown_share(store: SequenceStore) -> float:
    """Return the share of a store's tokens that are <unk>, in [0, 1].

    It is 0 if steps are vectors.
    """
    if store.values.ndim > 1:
        return 0.0
    return float(np.mean(store.values == UNK))


def padding_shares(data: PreparedData, batching: BatchingConfig, seed: int) -> tuple[float, float]:
    """Return the share of padding in train's batches without and with bucketing, each in [0, 1).

    Args:
        data: Prepared splits.
        batching: Section batching of the config. Its `bucketing` is ignored.
        seed: Seed of the batches.
    """
    lengths = data.splits["train"].lengths
    shares = []
    for on in (False, True):
        own = batching.model_copy(update={"bucketing": on})
        batches = plan_epoch(lengths, own, seed=seed, epoch=0)
        shares.append(padding_fraction(batches, lengths))
    return shares[0], shares[1]


def warnings(
    data: PreparedData,
    summaries: dict[str, SplitSummary],
    config: Config,
) -> list[str]:
    """Return warnings about a data set, one line each.

    They are about wrong columns, repeated and contradicting rows, groups in several splits, classes
    without held-out rows, and rows that were skipped or have unknown labels.

    Args:
        data: Prepared splits.
        summaries: Summary of each split, by its name.
        config: Config of the data.
    """
    said = []
    train = data.splits["train"]
    if "validation" not in data.splits:
        idle = without_effect(config)
        unused = f"; without effect: {listed(idle)}" if idle else ""
        said.append(
            "no validation split: the epoch that fits train best is kept, and probabilities aren't "
            f"calibrated{unused}; to choose the epoch on rows that aren't trained on, set "
            f"data.validation: {usual_share(len(train))}, or use fit --folds 5"
        )
    for name, report in data.reports.items():
        said += report.notices(name)
        if name in summaries and summaries[name].repeats:
            said.append(_repeated(name, summaries[name].repeats, summaries[name].rows))
    said += [*_conflicts(train), *_divided_groups(data), *number_doubts(data)]
    lengths = train.lengths
    most = int(np.quantile(lengths, 0.95, method="nearest"))
    said += doubts_about_time(int(lengths.sum()), most, int(lengths.max()), config)
    if data.vectors is not None:
        said += data.vectors.coverage.doubts()
    names = data.preprocessing.labels
    counts = class_counts(train.labels, len(names))
    by_name = {x: int(n) for x, n in zip(names, counts, strict=True) if n}
    unit = "rows" if config.data.window is None else "windows"
    label = config.data.label
    if isinstance(label, list):
        column = None
    elif label is None:
        column = LABEL
    else:
        column = str(label)
    multi_label = data.preprocessing.multi_label
    report = data.reports["train"]
    said += lost_classes(report.left_out, names, are_empty=report.dropped > 0)
    said += label_doubts(by_name, multi_label=multi_label, unit=unit, column=column)
    first = train.labels[train.lines == 1]
    if type(config.data.label) is int and first.ndim == 1 and (counts[first] == 1).any():
        said.append(
            f"train: {quote(names[first[0]])} on line 1 is a label that no other row has; if this "
            "line names the columns, set data.header: true"
        )
    return [*said, *_absent_classes(data, counts)]


def lost_classes(
    left_out: Mapping[str, int], classes: Collection[str], *, are_empty: bool
) -> Iterator[str]:
    """Yield a warning if all rows of a label are left out, so that it is no class.

    Args:
        left_out: Number of rows of each label that are left out.
        classes: The classes of the rows that stay.
        are_empty: True if rows are left out because their sequences are empty.
    """
    lost = [f"{quote(name)} ({n:,})" for name, n in left_out.items() if name not in classes]
    if not lost:
        return
    noun, reason, advice = "label", "can't be read", "correct them"
    if len(lost) > 1:
        noun = "labels"
    if are_empty:
        reason = "are empty"
        advice += f", or read an empty sequence as one <unk>: {set_options({'empty': 'unk'})}"
    yield (
        f"train: all rows of the {noun} {listed(lost, SHOWN)} {reason} and are left out, so the "
        f"model never predicts the {noun}; {advice}"
    )


def _absent_classes(data: PreparedData, counts: Ints) -> Iterator[str]:
    """Yield a warning for each held-out split that has no row of a class of train."""
    names = data.preprocessing.labels
    for name, store in data.splits.items():
        held = class_counts(store.labels, len(names))
        absent = [quote(names[i]) for i in np.flatnonzero((held == 0) & (counts > 0))]
        if absent:
            classes = "the class" if len(absent) == 1 else "the classes"
            yield (
                f"{name}: no row of {classes} {listed(absent)}, so macro F1 is the mean of the "
                "other classes and says nothing about it; hold out more, or see fit --folds 5"
            )


def _repeated(name: str, repeats: int, rows: int) -> str:
    if repeats < rows:
        verb = "is" if repeats == 1 else "are"
        return f"{name}: {counted(repeats, 'sequence')} ({repeats / rows:.1%}) {verb} in train too"
    key = f"name another file in data.{name}"
    if name == "validation":
        key += ", or hold out a part of train with data.validation: 0.1"
    return (
        f"{name}: every sequence is in train too, so its score says nothing about new data; {key}"
    )


def _conflicts(train: SequenceStore) -> Iterator[str]:
    """Yield a warning if equal sequences of train have different labels."""
    assert train.keys is not None
    labels = train.combinations
    place = train.place
    if len(train.files) == 1:
        place = replace(train, files=()).place
    total, groups, pairs = 0, 0, []
    for rows in equal_rows(train.keys):
        others = np.array(rows)[labels[rows] != labels[rows[0]]]
        if len(others):
            total = total + len(rows)
            groups = groups + 1
            pairs.append(f"{place(rows[0])} and {place(others[0])}")
    if not groups:
        return
    yield (
        f"train: {counted(total, 'row')} hold {counted(groups, 'sequence')} under several "
        f"labels (lines {', '.join(pairs[:SHOWN])}{', …' if groups > SHOWN else ''}); correct "
        "data.train, or see whether data.sequence and data.label are the right columns"
    )


def _divided_groups(data: PreparedData) -> Iterator[str]:
    """Yield a warning for each split that shares groups with train."""
    train = data.splits["train"].groups
    for name, store in data.splits.items():
        if name == "train" or train is None or store.groups is None:
            continue
        shared = np.isin(store.groups, train[train >= 0])
        if shared.any():
            yield (
                f"{name}: {counted(int(shared.sum()), 'sequence')} of groups that are in train, "
                "too: their scores may promise too much"
            )


def number_doubts(data: PreparedData) -> Iterator[str]:
    """Yield a warning if most words of train are numbers."""
    column = data.preprocessing.sequence
    train = data.splits["train"]
    if column.tokenizer_name not in WORDS or column.vocabulary is None:
        return
    tokens = column.vocabulary.tokens
    counts = counts_of(train.values, len(tokens))
    words = np.array([any(map(str.isalnum, token)) for token in tokens])
    numbers = np.array([token.lstrip("+-").replace(".", "", 1).isdecimal() for token in tokens])
    share = counts[numbers].sum() / max(1, counts[words].sum())
    if share > 0.5:
        yield (
            f"train: {share:.0%} of the words are numbers, each a symbol of its own; "
            "measurements are read with data.kind: features, from cells such as [0.1, 0.2]"
        )


def are_uneven(counts: Mapping[str, int]) -> bool:
    """Return True if the smallest class is so rare that accuracy says little about it.

    Args:
        counts: Number of rows of each class.
    """
    most = max(counts.values())
    return most > UNEVEN * min(counts.values()) and most > 0.8 * sum(counts.values())


def separator_of(counts: Mapping[str, int]) -> str | None:
    """Return the separator of labels that look like lists of labels, or None.

    Labels look like lists if most of their parts occur more than once, or are labels by themselves.
    If the separator is a bar, one part that is a label suffices. Numbers with a decimal comma
    aren't lists, unless each part is a label. Marks of 0 and 1 for all classes are lists, also with
    blanks between them.

    Args:
        counts: Number of rows of each label.
    """
    if are_whole_with_commas(counts):
        return None
    for mark in JOINING_MARKS + " ":
        if is_multi_hot([label.split(mark) for label in counts]):
            return mark
    for mark in JOINING_MARKS:
        lists = [label for label in counts if mark in label.strip(mark)]
        parts = Counter(
            part.strip() for label in lists for part in label.strip("[]{}()").split(mark)
        )
        are_decimals = all(DECIMAL_COMMA.fullmatch(label) for label in lists)
        if are_decimals and not (lists and parts.keys() <= counts.keys()):
            continue
        is_bar = mark == JOINING_MARKS[0] and not parts.keys().isdisjoint(counts)
        if is_bar or sum(n > 1 or part in counts for part, n in parts.items()) > len(parts) / 2:
            return mark
    return None


def are_whole_with_commas(labels: Collection[str]) -> bool:
    """Return True if labels are whole numbers with decimals after a comma, such as 0,0 and 1,0.

    Lists such as 1,0 beside the labels 0 and 1 are none, unless 0,0 occurs: no list has a label
    twice.
    """
    are_numbers = all(map(WHOLE_WITH_COMMA.fullmatch, labels))
    return are_numbers and ("0" not in labels or any(map(ZERO_WITH_COMMA.fullmatch, labels)))


def _shared_mark(counts: Mapping[str, int]) -> str | None:
    """Return the mark that seems to join several labels, such as `/` or a blank, or None.

    The labels must be combinations: each part is in several of them, and there are fewer parts.
    """
    for mark in "/&+ ":
        parts = Counter[str]()
        for label in counts:
            parts.update({part.strip() for part in label.split(mark)} - {""})
        has_single = any(part in counts for part in parts)
        lists = sum(mark in label for label in counts)
        are_shared = len(parts) < len(counts) and all(count > 1 for count in parts.values())
        if lists > 1 and has_single and are_shared:
            return mark
    return None


def _missing_labels(counts: Mapping[str, int], unit: str, column: str | None) -> Iterator[str]:
    """Yield a warning if labels such as NA, or -1 beside 0, 1 and 2, may stand for a missing label.

    They stay classes until the config says otherwise, because a class may be called none.
    """
    names = [name for name in counts if names_missing(name)] or _odd_numbers(counts)
    if not names or column is None:
        return
    number = sum(counts[name] for name in names)
    if len(names) == 1:
        are = "is a class; if it means that the label is missing"
    else:
        are = "are classes; if they mean that the label is missing"
    yield (
        f"{listed(list(map(quote, names)))}, the label of {number:,} {unit} "
        f"({number / sum(counts.values()):.1%}), {are}: "
        f"{set_options({'na_values': {column: names}, 'bad_rows': 'drop'})}"
    )


def _odd_numbers(labels: Collection[str]) -> list[str]:
    """Return the label -1 or one of nines, such as 99, if the others count from 0 or 1 on."""
    numbers = {int(label): label for label in labels if WHOLE.fullmatch(label)}
    odd = [number for number in numbers if number == -1 or NINES.fullmatch(str(number))]
    others = sorted(numbers.keys() - odd)
    if len(numbers) < len(labels) or len(odd) != 1 or len(others) < FEWEST_NUMBERED:
        return []
    first = others[0]
    last = others[-1]
    do_count = first in (0, 1) and last - first == len(others) - 1
    if do_count and not first <= odd[0] <= last + 1:
        return [numbers[odd[0]]]
    return []


def label_doubts(
    counts: Mapping[str, int],
    *,
    multi_label: bool,
    unit: str = "rows",
    column: str | None = None,
) -> Iterator[str]:
    """Yield warnings about labels that look like lists, like a quantity or like missing ones.

    There is a warning, too, if one of two labels is rare.

    Args:
        counts: Number of rows of each label.
        multi_label: True if a row may have any number of the labels.
        unit: Name of what is counted: rows or windows.
        column: Column of the labels, or None if each has a column of its own.
    """
    yield from _missing_labels(counts, unit, column)
    mark = separator_of(counts)
    if mark is None and not multi_label:
        mark = _shared_mark(counts)
    if mark is not None:
        example = quote(next(label for label in counts if mark in label.strip(mark)), 40)
        yield (
            f"labels look like lists separated by {quote(mark)}, such as {example}. If each row "
            f"has several labels, set data.label_separator: {quote(mark)}; now each list is a class"
        )
    numbers = [label.replace(",", ".") for label in counts]
    if len(counts) > MANY_NUMBERS and not multi_label and all(map(is_number, numbers)):
        low = min(map(float, numbers))
        high = max(map(float, numbers))
        yield (
            f"labels are {len(counts)} numbers from {low:g} to {high:g}, each a class of its own. "
            "If they are a quantity, such as an age or a price, group them into a few classes"
        )
    if not multi_label and rare_class(list(counts.values())) is not None:
        least = min(counts, key=lambda label: counts[label])
        advice = "accuracy says little about it; compare F1, average precision and AUC"
        if counts[least] >= FEWEST_OF_A_CLASS:
            advice += "; training.thresholds chooses from which probability on it is predicted, if "
            advice += f"validation has {FEWEST_OF_A_CLASS} of them"
        found = f"{counts[least]:,} of {sum(counts.values()):,} {unit}"
        yield f"{quote(least)} is the label of {found}: {advice}"
