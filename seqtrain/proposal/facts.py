"""What is known of files of labelled sequences: labels, lengths, and the kind of sequences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from seqtrain.data.readers import ReadOptions, read_examples
from seqtrain.data.tokenizers import make_tokenizer
from seqtrain.errors import DataError
from seqtrain.proposal.tables import Table, Wishes, find_table
from seqtrain.proposal.texts import TextFacts, inspect_texts
from seqtrain.text import display_name, quote

SAMPLE = 4096
"""Rows that texts are judged from, at most, evenly spread over the files."""


@dataclass(frozen=True)
class Facts:
    """What is known of the data.

    Attributes:
        table: how train's rows are read; texts of symbols as kind tokens.
        rows: of train that have a sequence.
        classes: rows per label.
        lengths: median, 95 % and longest, in time steps of the sample.
        text: for texts, what they are made of.
        channels: for features, numbers per time step.
        symbols: distinct tokens of the sample.
        empty: rows without a sequence, of all files.
        missing: whether a value of a series is missing, in any file.
    """

    table: Table
    rows: int
    classes: Counter[str]
    lengths: tuple[int, int, int]
    text: TextFacts | None = None
    channels: int = 0
    symbols: int = 0
    empty: int = 0
    missing: bool = False

    @property
    def family(self) -> str:
        """The family of data that the rules distinguish.

        words, characters, alphabet (few characters, long), symbols, series (one channel) or
        channels (several).
        """
        kind = self.table.reading.kind
        if kind == "features":
            return "series" if self.channels == 1 else "channels"
        return "symbols" if kind == "tokens" or self.text is None else self.text.split


@dataclass
class RowCounts:
    """Rows of some files, counted as they are read.

    Attributes:
        rows: that have a sequence, or, of files beside train, all of them.
        empty: rows without a sequence.
        missing: whether a value of a series is missing.
    """

    rows: int = 0
    empty: int = 0
    missing: bool = False

    def add(self, sequence: Any) -> bool:
        """Count a row; return whether it has a sequence."""
        has_sequence = bool(sequence.strip()) if isinstance(sequence, str) else len(sequence) > 0
        self.empty += not has_sequence
        if isinstance(sequence, np.ndarray) and not self.missing:
            self.missing = bool(np.isnan(sequence).any())
        return has_sequence


def inspect(files: Sequence[str], wishes: Wishes) -> Facts:
    """Read data files, the first once more than the others: for its columns.

    Args:
        files: with the same columns, rows one after another; or a folder of text files.
        wishes: what the user says of them.

    Raises:
        DataError: they can't be read, or something that is needed isn't clear.
    """
    table, name = find_table(files[0], wishes), display_name(files[0])
    classes: Counter[str] = Counter()
    sample, counts = _Sample(), RowCounts()
    for example in chain.from_iterable(read_examples(file, table.reading) for file in files):
        if counts.add(example.sequence):
            classes[str(example.label)] += 1
            sample.add(example.sequence, str(example.label))
    if not classes:
        raise DataError(f"{name}: all {counts.empty} rows are empty")
    if len(classes) < 2:
        raise DataError(f"{name}: one label, {quote(next(iter(classes)))}; expected two or more")
    sequences, labels = zip(*sample.rows, strict=True)
    facts = Facts(
        table, sample.seen, classes, (0, 0, 0), empty=counts.empty, missing=counts.missing
    )
    if table.reading.kind == "features":
        facts = replace(facts, channels=max(series.shape[1] for series in sequences))
    else:
        if table.reading.kind == "text":
            text = inspect_texts(sequences, labels)
            split = make_tokenizer(text.tokenizer, lowercase=text.lowercase)
            sequences = tuple(split(each) for each in sequences)
            kind = "tokens" if text.split == "symbols" else "text"
            reading = replace(table.reading, kind=kind)
            facts = replace(facts, text=text, table=replace(table, reading=reading))
        facts = replace(facts, symbols=len({token for each in sequences for token in each}))
    lengths = np.quantile([len(each) for each in sequences], (0.5, 0.95, 1), method="nearest")
    median, most, longest = map(int, lengths)
    return replace(facts, lengths=(median, most, longest))


def look_through(files: Sequence[str], reading: ReadOptions, labels: Iterable[str]) -> RowCounts:
    """Count the rows of further files, read as train is.

    Raises:
        DataError: they can't be read so, or have a label that train lacks.
    """
    known, counts = set(labels), RowCounts()
    for path in files:
        for example in read_examples(path, reading.for_file(path)):
            counts.rows += 1
            counts.add(example.sequence)
            if example.label not in known:
                raise DataError(
                    f"{display_name(example.file or path)}:{example.line}: label "
                    f"{quote(str(example.label))} isn't among those of train"
                )
    return counts


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
