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
from seqtrain.proposal.columns import Wishes
from seqtrain.proposal.tables import Table, find_columns
from seqtrain.proposal.texts import TextFacts, inspect_texts
from seqtrain.text import display_name, quote

BAR = "|"
"""Seldom stands in names, so that it parts labels wherever it stands between known ones."""
SAMPLE = 4096
"""Rows that texts are judged from, at most, evenly spread over the files."""


@dataclass
class RowFacts:
    """What is counted while rows are read; `sample` has some, evenly spread, with their labels."""

    rows: int = 0
    empty: int = 0
    unlabelled: int = 0
    missing: bool = False
    several: bool = False
    classes: Counter[str] = field(default_factory=Counter)
    sample: list[tuple[Any, str]] = field(default_factory=list)
    _stride: int = 1

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


@dataclass(frozen=True)
class Facts:
    """What is known of the data.

    Attributes:
        table: how train's rows are read; texts of symbols as kind tokens.
        rows: of train that have a sequence.
        classes: rows per label.
        lengths: median, 95 % and longest, in time steps of the sample.
        channels: for features and steps of numbers alone, numbers per time step.
        symbols: distinct tokens of the sample.
        empty, unlabelled: rows without a sequence, and with a blank label, of all files.
        missing: whether a value of a series is missing, in any file.
        several: whether a row may have several labels, or none.
    """

    table: Table
    rows: int
    classes: Counter[str]
    lengths: tuple[int, int, int]
    text: TextFacts | None = None
    channels: int = 0
    symbols: int = 0
    empty: int = 0
    unlabelled: int = 0
    missing: bool = False
    several: bool = False

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


def read_facts(files: Sequence[str], reading: ReadOptions) -> RowFacts:
    """Read the rows of files; raises DataError where they can't be read so."""
    facts = RowFacts()
    for path in files:
        problems = RowProblems(display_name(path))
        for row in read_rows(path, reading.for_file(path)):
            if row.problem is None:
                facts.add(row.sequence, str(row.label))
            elif row.problem == BLANK_LABEL:
                facts.unlabelled += 1
            else:
                problems.add(row.line, row.problem, row.file)
        problems.raise_if_any()
    return facts


def _bar_of(classes: Counter[str]) -> str | None:
    """Return the bar of few label sets such as `a|b`, of which one part is a label alone, too."""
    parts = {
        part.strip() for label in classes if BAR in label.strip(BAR) for part in label.split(BAR)
    }
    return None if parts.isdisjoint(classes) else BAR


def inspect(files: Sequence[str], wishes: Wishes) -> Facts:
    """Read data files with the same columns; the first once more, for its columns."""
    table, name = find_columns(files[0], wishes), display_name(files[0])
    reading = table.reading
    rows = read_facts(files, reading)
    separator = separator_of(rows.classes) or _bar_of(rows.classes)
    if separator is not None and reading.label is not None:
        reading = replace(reading, label_separator=separator)
        rows = read_facts(files, reading)
    if not rows.classes:
        raise DataError(f"{name}: all {rows.empty + rows.unlabelled} rows are empty")
    if len(rows.classes) < 2:
        label = quote(next(iter(rows.classes)))
        raise DataError(f"{name}: one label, {label}; expected two or more")
    sequences, labels = zip(*rows.sample, strict=True)
    text, channels, symbols = None, 0, 0
    if reading.kind == "features":
        channels = max(series.shape[1] for series in sequences)
    elif reading.steps is not None:
        channels = 0 if token_columns(reading.steps) else len(reading.steps)
    else:
        if reading.kind == "text":
            text = inspect_texts(sequences, labels)
            split = make_tokenizer(text.tokenizer, lowercase=text.lowercase)
            sequences = tuple(split(each) for each in sequences)
            reading = replace(reading, kind="tokens" if text.split == "symbols" else "text")
        symbols = len({token for sequence in sequences for token in sequence})
    lengths = np.quantile([len(each) for each in sequences], (0.5, 0.95, 1), method="nearest")
    median, most, longest = map(int, lengths)
    return Facts(
        table=replace(table, reading=reading),
        rows=rows.rows,
        classes=rows.classes,
        lengths=(median, most, longest),
        text=text,
        channels=channels,
        symbols=symbols,
        empty=rows.empty,
        unlabelled=rows.unlabelled,
        missing=rows.missing,
        several=rows.several,
    )
