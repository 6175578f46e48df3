"""What is known of files of labelled sequences: labels, lengths, and the kind of sequences."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from seqtrain.data.examples import (
    BLANK_LABEL,
    SET,
    RowProblems,
    Steps,
    single_labels,
    token_columns,
)
from seqtrain.data.readers import ReadOptions, read_rows
from seqtrain.data.summary import separator_of
from seqtrain.data.tokenizers import make_tokenizer
from seqtrain.errors import DataError
from seqtrain.proposal.columns import Table, Wishes
from seqtrain.proposal.tables import find_columns
from seqtrain.proposal.texts import TextFacts, inspect_texts
from seqtrain.text import display_name, quote

SAMPLE = 4096
"""Rows that texts are judged from, at most, evenly spread over the files."""


@dataclass
class Facts:
    """What is known of data: counted while its rows are read, then judged from a sample of them.

    Attributes:
        table: how rows are read; texts of symbols as kind tokens.
        rows: rows that have a sequence.
        empty, unlabelled: rows without a sequence, and with a blank label.
        missing: whether a value of a series is missing.
        several: whether a row may have several labels, or none.
        classes: rows per label.
        sample: some rows, evenly spread, with their labels.
        lengths: median, 95 % and longest, in time steps of the sample.
        channels: for features and steps of numbers alone, numbers per time step.
        symbols: distinct tokens of the sample.
    """

    table: Table
    rows: int = 0
    empty: int = 0
    unlabelled: int = 0
    missing: bool = False
    several: bool = False
    classes: Counter[str] = field(default_factory=Counter)
    sample: list[tuple[Any, str]] = field(default_factory=list)
    lengths: tuple[int, int, int] = (0, 0, 0)
    text: TextFacts | None = None
    channels: int = 0
    symbols: int = 0
    _stride: int = 1

    @property
    def reading(self) -> ReadOptions:
        """How train's rows are read."""
        return self.table.reading

    @property
    def tokens(self) -> list[str]:
        """Columns of tokens of a time step."""
        return token_columns(self.reading.steps)

    @property
    def family(self) -> str:
        """What the rules distinguish: words, characters, alphabet (few characters, long), symbols,
        series (one channel), channels (several) or steps (a row per time step).
        """
        if self.tokens:
            return "steps"
        if self.channels:
            return "series" if self.channels == 1 else "channels"
        return "symbols" if self.reading.kind == "tokens" or self.text is None else self.text.split

    def add(self, sequence: Any, label: str) -> None:
        """Count a row."""
        if not (sequence.strip() if isinstance(sequence, str) else len(sequence)):
            self.empty += 1
            return
        numbers = sequence.numbers if isinstance(sequence, Steps) else sequence
        if isinstance(numbers, np.ndarray) and not self.missing:
            self.missing = bool(np.isnan(numbers).any())
        self.classes.update(single_labels(label))
        self.several = self.several or label.startswith(SET)
        if self.rows % self._stride == 0:
            self.sample.append((sequence, label))
            if len(self.sample) > SAMPLE:
                self.sample, self._stride = self.sample[::2], 2 * self._stride
        self.rows += 1

    def judge(self) -> None:
        """Look at the sample: its lengths, and what its sequences are made of."""
        sequences, labels = zip(*self.sample, strict=True)
        if self.reading.kind == "features":
            self.channels = max(series.shape[1] for series in sequences)
        elif self.reading.steps is not None:
            self.channels = 0 if self.tokens else len(self.reading.steps)
        else:
            if self.reading.kind == "text":
                self.text = text = inspect_texts(sequences, labels)
                split = make_tokenizer(text.tokenizer, lowercase=text.lowercase)
                sequences = tuple(split(each) for each in sequences)
                kind = "tokens" if text.split == "symbols" else "text"
                self.table = replace(self.table, reading=replace(self.reading, kind=kind))
            self.symbols = len({token for sequence in sequences for token in sequence})
        lengths = np.quantile([len(each) for each in sequences], (0.5, 0.95, 1), method="nearest")
        median, most, longest = map(int, lengths)
        self.lengths = median, most, longest


def read_facts(files: Sequence[str], table: Table) -> Facts:
    """Read the rows of files; raises DataError where they can't be read so."""
    facts = Facts(table)
    for path in files:
        problems = RowProblems(display_name(path))
        for row in read_rows(path, table.reading.for_file(path)):
            if row.problem is None:
                facts.add(row.sequence, str(row.label))
            elif row.problem == BLANK_LABEL:
                facts.unlabelled += 1
            else:
                problems.add(row.line, row.problem, row.file)
        problems.raise_if_any()
    return facts


def inspect(files: Sequence[str], wishes: Wishes) -> Facts:
    """Read data files with the same columns; the first once more, for its columns."""
    facts, name = read_facts(files, find_columns(files[0], wishes)), display_name(files[0])
    separator = separator_of(facts.classes)
    if separator is not None and facts.reading.label is not None:
        reading = replace(facts.reading, label_separator=separator)
        facts = read_facts(files, replace(facts.table, reading=reading))
    if not facts.classes:
        raise DataError(f"{name}: all {facts.empty + facts.unlabelled} rows are empty")
    if len(facts.classes) < 2:
        label = quote(next(iter(facts.classes)))
        raise DataError(f"{name}: one label, {label}; expected two or more")
    facts.judge()
    return facts
