"""What is known of a file of labelled sequences: its labels, sizes and kinds of sequences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from seqtrain.data.readers import Column, ReadOptions, read_examples
from seqtrain.data.tokenizers import make_tokenizer
from seqtrain.errors import DataError
from seqtrain.proposal.tables import Table, Wishes, find_table
from seqtrain.proposal.texts import TextFacts, inspect_texts
from seqtrain.text import display_name, quote

SAMPLE = 4096
"""Rows that texts are judged from, at most, evenly spread over the file."""


@dataclass(frozen=True)
class Facts:
    """What is known of a data file.

    Attributes:
        reading: how its rows are read.
        header: what data.header has to say; None: auto is right.
        rows: how many.
        classes: rows per label.
        lengths: shortest, median, 95 % and longest, in time steps of the chosen split.
        text: of texts, how they are split.
        channels: of features.
        symbols: distinct tokens of the sample.
        delimiter: name of what separates columns, where it is not the format's own.
        group: a column that looks like a session's name.
        empty: rows without a sequence.
        missing: whether a value of a series is missing.
    """

    reading: ReadOptions
    header: bool | None
    rows: int
    classes: Counter[str]
    lengths: tuple[int, int, int, int]
    text: TextFacts | None = None
    channels: int = 0
    symbols: int = 0
    delimiter: str | None = None
    group: Column | None = None
    empty: int = 0
    missing: bool = False


@dataclass(frozen=True)
class Further:
    """What is known of a file beside train's; as in `Facts`."""

    rows: int
    empty: int
    missing: bool


def inspect(path: str, wishes: Wishes, more: Sequence[str] = ()) -> Facts:
    """Read a data file once for its columns and once for its rows.

    Args:
        path: a file, or a folder of text files.
        wishes: what the user says of it.
        more: further files with the same columns, whose rows follow.

    Raises:
        DataError: it can't be read, or what is needed can't be told from it.
    """
    return _facts([path, *more], find_table(path, wishes))


def look_through(files: Sequence[str], reading: ReadOptions, labels: Iterable[str]) -> Further:
    """Return what is known of further files, read as train is.

    Raises:
        DataError: it can't be read so, or has a label that train lacks.
    """
    known, rows, empty, missing = set(labels), 0, 0, False
    for path in files:
        for example in read_examples(path, reading.for_file(path)):
            rows += 1
            empty += _is_empty(example.sequence)
            missing = missing or _has_missing(example.sequence)
            if example.label not in known:
                raise DataError(
                    f"{display_name(example.file or path)}:{example.line}: label "
                    f"{quote(str(example.label))}; train has none such"
                )
    return Further(rows, empty, missing)


def _is_empty(sequence: Any) -> bool:
    return not (sequence.strip() if isinstance(sequence, str) else len(sequence))


def _has_missing(sequence: Any) -> bool:
    return isinstance(sequence, np.ndarray) and bool(np.isnan(sequence).any())


@dataclass
class _Sample:
    """Rows evenly spread over a file of unknown length."""

    stride: int = 1
    seen: int = 0
    rows: list[tuple[Any, str]] = field(default_factory=list)

    def add(self, sequence: Any, label: str) -> None:
        if self.seen % self.stride == 0:
            self.rows.append((sequence, label))
            if len(self.rows) > SAMPLE:
                self.rows, self.stride = self.rows[::2], 2 * self.stride
        self.seen += 1


def _facts(files: Sequence[str], table: Table) -> Facts:
    """Read all rows and judge a sample of them."""
    classes: Counter[str] = Counter()
    sample, empty, missing = _Sample(), 0, False
    path = files[0]
    for example in chain.from_iterable(read_examples(file, table.reading) for file in files):
        if _is_empty(example.sequence):
            empty += 1
            continue
        missing = missing or _has_missing(example.sequence)
        classes[str(example.label)] += 1
        sample.add(example.sequence, str(example.label))
    if not classes:
        raise DataError(f"{display_name(path)}: all {empty} rows are empty")
    if len(classes) < 2:
        raise DataError(
            f"{display_name(path)}: one label, {quote(next(iter(classes)))}; expected two or more"
        )
    facts = Facts(
        reading=table.reading,
        header=table.header,
        rows=sample.seen,
        classes=classes,
        lengths=(0, 0, 0, 0),
        delimiter=table.delimiter,
        group=table.group,
        empty=empty,
        missing=missing,
    )
    sequences, labels = zip(*sample.rows, strict=True)
    if table.reading.kind == "features":
        return _with_features(facts, sequences)
    return _with_tokens(facts, sequences, labels)


def _with_features(facts: Facts, sequences: tuple[Any, ...]) -> Facts:
    return replace(
        facts,
        lengths=_quantiles([len(s) for s in sequences]),
        channels=max(s.shape[1] for s in sequences),
    )


def _with_tokens(facts: Facts, sequences: tuple[Any, ...], labels: tuple[str, ...]) -> Facts:
    text = None
    if facts.reading.kind == "text":
        text = inspect_texts(sequences, labels)
        if text.split == "symbols":
            facts = replace(facts, reading=replace(facts.reading, kind="tokens"))
            sequences = tuple(s.split() for s in sequences)
        else:
            name = "word" if text.split == "words" else "char"
            split = make_tokenizer(name, lowercase=text.lowercase)
            sequences = tuple(split(s) for s in sequences)
    distinct = len({token for sequence in sequences for token in sequence})
    lengths = _quantiles([len(sequence) for sequence in sequences])
    return replace(facts, text=text, symbols=distinct, lengths=lengths)


def _quantiles(lengths: list[int]) -> tuple[int, int, int, int]:
    shortest, median, most, longest = np.quantile(lengths, (0, 0.5, 0.95, 1), method="nearest")
    return int(shortest), int(median), int(most), int(longest)
