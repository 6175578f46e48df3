"""What a data set looks like before training: sizes, lengths, padding, repeats; and warnings."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from seqtrain.config.schema import BatchingConfig, DataConfig
from seqtrain.data.dataset import PreparedData
from seqtrain.data.plan import padding_fraction, plan_epoch
from seqtrain.data.readers.npz import FEW_SYMBOLS
from seqtrain.data.splits import BLANK
from seqtrain.data.store import SequenceStore, blocks, counts_of, equal_keys
from seqtrain.data.vocabulary import SPECIAL, UNK
from seqtrain.text import counted, listed, quote

QUANTILES = (0.0, 0.05, 0.5, 0.95, 1.0)
MOSTLY = 0.9
"""Share of train's sequences from which on they are taken to be of one sort."""
FEWEST = 20
"""Rows of train from which on they show of what sort they are."""
SHOWN = 3
WORDS = ("word", "whitespace")
"""Tokenizers whose tokens are words, numbers and marks."""
MARKS = "|;,"
"""What may stand between several labels."""
MANY_NUMBERS = 20
"""Labels that are numbers, above which they may be a quantity."""
UNEVEN = 20
"""Rows of the largest class for one of the smallest, above which classes are very uneven."""
ROUNDING = 0.01
"""How far a whole number may be off once it was scaled and scaled back."""


@dataclass(frozen=True)
class SplitSummary:
    """Figures of one split.

    Attributes:
        rows: sequences.
        steps: steps of all sequences.
        length_quantiles: steps at least, at 5 %, at the median, at 95 %, and at most.
        unknown: share of steps that are <unk>, in [0, 1].
        repeats: sequences that stand in train too, but for case and outer blanks (0 for train).
        majority: share of rows that the class most frequent in train has here: the accuracy of
            always predicting it.
    """

    rows: int
    steps: int
    length_quantiles: tuple[int, ...]
    unknown: float
    repeats: int
    majority: float


def summarize(data: PreparedData) -> dict[str, SplitSummary]:
    """Return the figures of every split, by name."""
    train = data.splits["train"]
    majority = int(np.bincount(train.labels).argmax())
    return {
        name: SplitSummary(
            rows=len(store),
            steps=len(store.values),
            length_quantiles=tuple(
                int(q) for q in np.quantile(store.lengths, QUANTILES, method="nearest")
            ),
            unknown=unknown_share(store),
            repeats=0 if name == "train" else _repeats(store, train),
            majority=float(np.mean(store.labels == majority)),
        )
        for name, store in data.splits.items()
    }


def unknown_share(store: SequenceStore) -> float:
    """Return the share of a store's tokens that are <unk>, in [0, 1]; 0 of feature vectors."""
    if store.values.ndim > 1:
        return 0.0
    return sum(int((block == UNK).sum()) for block in blocks(store.values)) / len(store.values)


def padding_shares(data: PreparedData, batching: BatchingConfig, seed: int) -> tuple[float, float]:
    """Return the share of padding of train in random batches and in buckets, each in [0, 1)."""
    lengths = data.splits["train"].lengths
    shares = [
        padding_fraction(
            plan_epoch(lengths, batching.model_copy(update={"bucketing": on}), seed=seed, epoch=0),
            lengths,
        )
        for on in (False, True)
    ]
    return shares[0], shares[1]


def warnings(
    data: PreparedData, summaries: dict[str, SplitSummary], settings: DataConfig
) -> list[str]:
    """Return what a user should know before trusting a score, a line each."""
    lines = []
    if "validation" not in data.splits:
        lines.append(
            "no validation split: the epoch that fits train best is kept; data.validation: 0.1 "
            "holds out a part of train to choose by, fit --folds 5 five parts in turn"
        )
    for name, report in data.reports.items():
        lines += report.notices(name)
        repeats = summaries[name].repeats if name in summaries else 0
        if repeats:
            lines.append(_repeats_line(name, repeats, summaries[name].rows))
    lines += _conflict_doubts(data.splits["train"])
    lines += _unsplit_doubts(data) or _unknown_doubts(data)
    lines += _symbol_doubts(data, settings) + number_doubts(data)
    if data.vectors is not None:
        lines += data.vectors.coverage.doubts()
    lines += _vocabulary_warnings(data) + _header_doubts(data)
    return lines + _label_warnings(data, settings)


def _repeats(store: SequenceStore, train: SequenceStore) -> int:
    """Return how many sequences of a store stand in train too; blank ones aside."""
    assert store.keys is not None
    assert train.keys is not None
    found = np.zeros(len(store), dtype=bool)
    for block in blocks(train.keys):
        found |= np.isin(store.keys, block)
    return int((found & (store.keys != BLANK)).sum())


def _repeats_line(name: str, repeats: int, rows: int) -> str:
    """Say how many sequences of a split are in train too."""
    if repeats < rows:
        return f"{name}: {repeats} sequences ({repeats / rows:.1%}) are in train too"
    key = f"name another file in data.{name}"
    if name == "validation":
        key += ", or hold out a part of train with data.validation: 0.1"
    return (
        f"{name}: every sequence is in train too, so its score says nothing about new data; {key}"
    )


def _unsplit_doubts(data: PreparedData) -> list[str]:
    """Say where sequences look as if the tokenizer didn't split them."""
    preprocessing, train = data.preprocessing, data.splits["train"]
    if preprocessing.vocabulary is None or len(train) < FEWEST:
        return []
    if np.mean(train.lengths == 1) < MOSTLY:
        return []
    unknown = {name: unknown_share(x) for name, x in data.splits.items() if name != "train"}
    worst = max(unknown, key=lambda name: unknown[name]) if unknown else None
    if worst is None:
        distinct = len(np.unique(train.values)) / len(train)
        if distinct < 0.5:
            return []
        found = f"{distinct:.0%} of them occur once or twice"
    elif unknown[worst] < 0.5:
        return []
    else:
        found = f"{unknown[worst]:.0%} of {worst}'s are unknown"
    if preprocessing.kind == "tokens":
        key = "data.kind: text with data.tokenizer: char splits each into characters"
    elif preprocessing.tokenizer in ("word", "whitespace"):
        key = (
            f"data.tokenizer: {preprocessing.tokenizer} doesn't split them (text without blanks, "
            "such as DNA or Chinese?); try data.tokenizer: char"
        )
    else:
        key = "is data.sequence the right column?"
    return [f"nearly all sequences are one token, and {found}: {key}"]


def _unknown_doubts(data: PreparedData) -> list[str]:
    """Say where most tokens of another split are unknown."""
    key = "is it a set of another sort, or another language?"
    if data.preprocessing.kind == "tokens":
        key = "where they are sentences, data.kind: text splits them into words"
    return [
        f"{name}: {unknown_share(store):.0%} of its tokens don't occur in train; {key}"
        for name, store in data.splits.items()
        if name != "train" and len(store) >= FEWEST and unknown_share(store) > 0.5
    ]


def _symbol_doubts(data: PreparedData, settings: DataConfig) -> list[str]:
    """Say where features, by the file's format alone, look like symbols: few whole numbers."""
    rules, train = data.preprocessing, data.splits["train"]
    if "kind" in settings.model_fields_set or rules.reading.format != "npz" or len(rules.mean) > 1:
        return []
    scaled = np.unique(train.values[:, 0])
    values = scaled.astype(np.float64) * rules.std[0] + rules.mean[0]
    if len(values) > FEW_SYMBOLS or np.abs(values - np.rint(values)).max() > ROUNDING:
        return []
    return [
        f"train: its values are {counted(len(values), 'whole number')} in one channel, read as "
        "features; if they are symbols, such as ids of tokens or events, set data.kind: tokens"
    ]


def _header_doubts(data: PreparedData) -> list[str]:
    """Say where the first row looks like a header: its label, and no other's, is a class."""
    train, reading = data.splits["train"], data.preprocessing.reading
    columns = reading.sequence if isinstance(reading.sequence, list) else [reading.sequence]
    named = any(isinstance(column, str) for column in (*columns, reading.label, reading.group))
    if reading.format not in ("csv", "tsv") or named or reading.header is True:
        return []
    first = train.labels[train.lines == 1]
    if len(first) != 1 or np.count_nonzero(train.labels == first[0]) > 1 or len(train) < FEWEST:
        return []
    label = quote(data.preprocessing.labels[int(first[0])])
    return [
        f"train: no other row has the label of line 1, {label}; if that line is a header, set "
        "data.header: true"
    ]


def _conflict_doubts(train: SequenceStore) -> list[str]:
    """Say where equal sequences of train have several labels: no model can tell these apart."""
    assert train.keys is not None
    total, shown = 0, list[tuple[int, int]]()
    number = 0
    for rows, starts in equal_keys(train.keys):
        labels = train.labels[rows]
        ends = np.append(starts[1:], len(rows))
        lowest, highest = (f.reduceat(labels, starts) for f in (np.minimum, np.maximum))
        several = np.flatnonzero((lowest < highest) & (train.keys[rows[starts]] != BLANK))
        total += int((ends - starts)[several].sum())
        number += len(several)
        for i in several[np.argsort(rows[starts[several]])[:SHOWN]]:
            own = labels[starts[i] : ends[i]]
            other = starts[i] + int(np.argmax(own != own[0]))
            shown.append((int(rows[starts[i]]), int(rows[other])))
    if not number:
        return []
    several_files = train.files is not None and len(train.files.names) > 1
    lines = ", ".join(
        " and ".join(train.place(row) if several_files else str(train.lines[row]) for row in pair)
        for pair in sorted(shown)[:SHOWN]
    )
    return [
        f"train: {counted(total, 'row')} hold {counted(number, 'sequence')} under several "
        f"labels (lines {lines}{', …' if number > SHOWN else ''}); correct data.train, or "
        "see whether data.sequence and data.label are the right columns"
    ]


def _vocabulary_warnings(data: PreparedData) -> list[str]:
    """Say that data.max_vocab_size left tokens out, and how many there were."""
    vocabulary, vectors = data.preprocessing.vocabulary, data.vectors
    if vocabulary is None:
        return []
    own = len(vocabulary) - len(SPECIAL) - (vectors.coverage.more if vectors else 0)
    if data.eligible_tokens <= own:
        return []
    return [
        f"data.max_vocab_size: the vocabulary holds {own:,} of "
        f"{data.eligible_tokens:,} distinct tokens, the rest are <unk>; raise it, or raise "
        "data.min_count to leave out rare tokens"
    ]


def number_doubts(data: PreparedData) -> list[str]:
    """Say where most words of train are numbers."""
    rules, train = data.preprocessing, data.splits["train"]
    if rules.vocabulary is None or rules.kind != "text" or rules.tokenizer not in WORDS:
        return []
    tokens = rules.vocabulary.tokens
    counts = counts_of(train.values, len(tokens))
    words = np.array([any(map(str.isalnum, token)) for token in tokens])
    numbers = np.array([token.lstrip("+-").replace(".", "", 1).isdecimal() for token in tokens])
    share = counts[numbers].sum() / max(1, counts[words].sum())
    if share <= 0.5:
        return []
    return [
        f"train: {share:.0%} of the words are numbers, each a symbol of its own; measurements are "
        "read with data.kind: features, from cells such as [0.1, 0.2]"
    ]


def are_uneven(counts: Mapping[str, int]) -> bool:
    """Whether accuracy hardly sees the smallest of classes, given with their rows."""
    most = max(counts.values())
    return most > UNEVEN * min(counts.values()) and most > 0.8 * sum(counts.values())


def label_doubts(counts: Mapping[str, int]) -> list[str]:
    """Say where labels, given with their rows, look like several, a quantity, or very uneven."""
    doubts, rows = list[str](), sum(counts.values())
    for mark in MARKS:
        parted = [label for label in counts if mark in label.strip(mark)]
        parts = Counter(part.strip() for label in parted for part in label.split(mark))
        again = sum(n > 1 or part in counts for part, n in parts.items())
        if again > len(parts) / 2:
            doubts.append(
                f"labels look like several each, parted by {quote(mark)}, such as "
                f"{quote(parted[0])}; each combination is a class of its own here; keep one label "
                "per row, or train a model for each of them"
            )
    if len(counts) > MANY_NUMBERS and all(label.lstrip("-").isdecimal() for label in counts):
        low, high = min(map(int, counts)), max(map(int, counts))
        doubts.append(
            f"labels are {len(counts)} whole numbers from {low} to {high}; if they are a quantity, "
            "such as an age, group them into a few classes: each is a class of its own here"
        )
    most, least = max(counts, key=lambda x: counts[x]), min(counts, key=lambda x: counts[x])
    if are_uneven(counts):
        doubts.append(
            f"classes are very uneven: {counts[most] / rows:.1%} are {quote(most)}, "
            f"{counts[least]:,} of {rows:,} rows {quote(least)}; accuracy says little of "
            "rare classes; training.monitor: macro_f1 chooses the epoch by the F1 of all classes"
        )
    return doubts


def _label_warnings(data: PreparedData, settings: DataConfig) -> list[str]:
    """Look-alike labels, classes of one row, and more classes than rows to choose epochs by."""
    warnings = []
    names = data.preprocessing.labels
    by_form: dict[str, list[str]] = {}
    for name in names:
        by_form.setdefault(_plain_form(name), []).append(name)
    for alike in by_form.values():
        if len(alike) > 1:
            warnings.append(
                "labels that look alike are different classes: "
                + listed([ascii(name) for name in alike])
            )
    counts = np.bincount(data.splits["train"].labels, minlength=len(names))
    warnings += label_doubts({name: int(n) for name, n in zip(names, counts, strict=True) if n})
    single = [quote(names[label]) for label in np.flatnonzero(counts == 1)]
    if single:
        warnings.append(f"classes with one row in train: {listed(single)}")
    held_out = data.splits.get("validation")
    if held_out is not None and len(held_out) < len(names):
        advice = "hold out more (data.validation), or see fit --folds 5"
        if isinstance(settings.validation, dict):
            advice = "fewer folds hold out more"
        warnings.append(
            f"validation: {counted(len(held_out), 'row')} for {len(names)} classes, too few to "
            f"tell epochs apart; {advice}"
        )
    return warnings


def _plain_form(label: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", label).casefold().split())
