"""Signs that data is read in a way nobody meant; each a line with the key to change."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seqtrain.config.schema import DataConfig
from seqtrain.data.growing import joined
from seqtrain.data.prepared import PreparedData
from seqtrain.data.readers.npz import FEW_SYMBOLS
from seqtrain.data.row_numbers import places_of_part
from seqtrain.data.splits import fingerprints
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.data.vocabulary import UNK
from seqtrain.text import counted, quote

MOSTLY = 0.9
"""Share of a split's sequences that is taken for its manner."""
FEWEST = 20
"""Rows of train from which on their manner tells something."""
SHOWN = 3
COMPARED = 2**23
"""Rows of train that are compared with one another at a time, in about 40 bytes each.

More than `row_numbers.COMPARED`: the number of parts has no bound here, and each reads all keys.
"""
ROUNDING = 0.01
"""How far a whole number may be off once it was scaled and scaled back."""


def reading_doubts(data: PreparedData) -> list[str]:
    """Say where sequences look as if the tokenizer didn't split them."""
    preprocessing = data.preprocessing
    train = data.splits["train"]
    if preprocessing.vocabulary is None or len(train) < FEWEST:
        return []
    if np.mean(train.lengths == 1) < MOSTLY:
        return []
    others = [name for name in data.splits if name != "train"]
    unknown = {name: float(np.mean(data.splits[name].values == UNK)) for name in others}
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


def symbol_doubts(data: PreparedData, settings: DataConfig) -> list[str]:
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


def header_doubts(data: PreparedData) -> list[str]:
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


def label_doubts(data: PreparedData) -> list[str]:
    """Say where equal sequences of train have several labels: no model can tell these apart."""
    train = data.splits["train"]
    keys, known = fingerprints(train), _known_rows(train)
    total, number, shown = 0, 0, list[Ints]()
    parts = 1 + len(keys) // COMPARED
    for part in range(parts):  # equal keys are of one part
        whole = places_of_part(keys, part, parts, known)
        conflicts = [whole[rows] for rows in conflicting_rows(keys[whole], train.labels[whole])]
        total, number = total + sum(map(len, conflicts)), number + len(conflicts)
        shown = sorted([*shown, *conflicts], key=lambda rows: int(rows[0]))[:SHOWN]
    if not number:
        return []
    several = train.files is not None and len(train.files.names) > 1
    lines = ", ".join(
        " and ".join(
            train.place(int(row)) if several else str(train.lines[row]) for row in rows[:2]
        )
        for rows in shown
    )
    return [
        f"train: {counted(total, 'row')} hold {counted(number, 'sequence')} under several "
        f"labels (lines {lines}{', …' if number > SHOWN else ''}); correct data.train, or "
        "see whether data.sequence and data.label are the right columns"
    ]


def _known_rows(train: SequenceStore) -> npt.NDArray[np.bool_]:
    """Tell which rows hold no unknown token, (B,): these may differ."""
    if train.values.ndim > 1:
        return np.ones(len(train), dtype=bool)
    return joined(np.minimum.reduceat(ids != UNK, at[:-1]) for ids, at in train.parts())


def conflicting_rows(keys: Ints, labels: Ints) -> list[Ints]:
    """Return the rows of each sequence that has several labels, in the order of their first rows.

    Args:
        keys: equal where sequences are equal.
        labels: class of each.

    Returns:
        Rows of each such sequence; the first two have different labels.
    """
    if not len(keys):
        return []
    order = np.argsort(keys, kind="stable")
    ordered = labels[order]
    starts = np.concatenate(([0], np.flatnonzero(np.diff(keys[order])) + 1))
    several = np.minimum.reduceat(ordered, starts) < np.maximum.reduceat(ordered, starts)
    ends = np.append(starts[1:], len(order))
    conflicts = []
    for start, end in zip(starts[several], ends[several], strict=True):
        rows = order[start:end]
        other = start + 1 + np.argmax(ordered[start + 1 : end] != ordered[start])
        second = order[other]
        conflicts.append(np.concatenate((rows[:1], [second], rows[1:][rows[1:] != second])))
    return sorted(conflicts, key=lambda rows: int(rows[0]))


def repeats_line(name: str, repeats: int, rows: int, *, held_out: bool) -> str:
    """Say how many sequences of a split are in train too.

    Args:
        name: of the split.
        repeats: how many.
        rows: of the split.
        held_out: whether it is a part of train's file.
    """
    if repeats == rows:
        key = f"name another file in data.{name}"
        if name == "validation":
            key += ", or hold out a part of train with data.validation: 0.1"
        return (
            f"{name}: every sequence is in train too (equal once encoded), so its score says "
            f"nothing about new data; {'remove repeated rows from data.train' if held_out else key}"
        )
    share = repeats / rows
    return f"{name}: {repeats} sequences ({share:.1%}) are in train too (equal once encoded)"
