"""Profile of a data set: its labels, its lengths, and the content of its sequences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from seqtrain.errors import DataError, either
from seqtrain.proposal.columns import ColumnProfile
from seqtrain.proposal.options import INIT_COMMAND
from seqtrain.proposal.reading_progress import ReadingProgress
from seqtrain.proposal.sampling import row_sample
from seqtrain.proposal.text_family import Family, family_of
from seqtrain.sequences.examples import BLANK_LABEL, Example, RowProblems, Steps
from seqtrain.sequences.labels import Labels
from seqtrain.sequences.read_options import FileFormat, Schema, token_columns
from seqtrain.sequences.readers import RowSample, Source, read_rows
from seqtrain.sequences.readers.row_source import NUM_BLOCKS, name_of
from seqtrain.sequences.sources import source_of
from seqtrain.sequences.tokenizers import make_tokenizer

OFTEN_MISSING = 0.2
"""Share of missing numbers in a step column from which on the column is often missing."""
SAMPLE = 4096
"""Largest number of rows that are kept as a sample, spread evenly over the files."""
TOKENIZERS = {"words": "word", "symbols": "whitespace"}
"""Maps a family of texts to its tokenizer. Texts of other families are split into characters."""
STEPS = Family("steps")
CHOSEN_FAMILIES = {
    "word": "words",
    "whitespace": "words",
    "bpe": "words",
    "char": "characters",
    "byte": "characters",
}
"""Maps a tokenizer that the user chose to the family of the texts."""


@dataclass
class DataProfile:
    """Counts over all rows of some files, and conclusions from a sample of the rows.

    `count_columns` and `count_files` return profiles with the counts and the sample. `conclude`
    then sets `lengths`, `channels`, `symbols` and `family`.

    Attributes:
        format: Format of the first file.
        schema: Roles of the columns.
        ignored: Descriptions of the columns that are not used.
        warnings: Doubts about the columns, one line each.
        rows: Number of labelled rows with a sequence that isn't empty.
        empty: Number of labelled rows with an empty sequence.
        unlabelled: Number of rows with a blank label.
        unreadable: Number of rows that can't be read.
        missing: True if a number of a sequence or a row feature is missing.
        multi_label: True if rows can have several labels or none.
        classes: Maps each label to its number of rows.
        sample: Pairs of a sequence and its labels, at most `SAMPLE`, spread evenly over the rows.
        lengths: Median, 95 % quantile and maximum of the lengths in time steps, in the sample.
        channels: Numbers per time step if time steps hold only numbers, else 0.
        symbols: Number of distinct tokens in the sample, or 0 for numbers and step tables.
        family: Kind of data that the rules distinguish: words, characters, alphabet, symbols,
            series (numbers of one channel), channels (numbers of several), or steps (a step table
            with a column of tokens).
        scale: Rows of the files per row that was read. It is above 1 if a file was only sampled.
        note: Description of the sample of a file, or None if all rows were read.
        owner: Unused column that names the owner of each row, such as a customer, or None.
        columns: Profiles of the label column and then of the columns of the sequence. Empty for
            step tables and formats without columns.
        read: Number of rows from which `columns` were profiled, and number of all rows. Both are 0
            if the number of all rows wasn't known beforehand.
    """

    format: FileFormat
    schema: Schema
    ignored: Sequence[str] = ()
    warnings: Sequence[str] = ()
    rows: int = 0
    empty: int = 0
    unlabelled: int = 0
    unreadable: int = 0
    missing: bool = False
    multi_label: bool = False
    classes: Counter[str] = field(default_factory=Counter)
    sample: list[tuple[Any, Hashable]] = field(default_factory=list)
    lengths: tuple[int, ...] = (0, 0, 0)
    channels: int = 0
    symbols: int = 0
    family: Family = STEPS
    scale: float = 1.0
    note: str | None = None
    owner: str | None = None
    columns: Sequence[ColumnProfile] = ()
    read: tuple[int, int] = (0, 0)
    _stride: int = 1

    @property
    def token_columns(self) -> list[str]:
        """Names of the step columns that hold tokens, or an empty list without step columns."""
        return token_columns(self.schema.steps)

    @property
    def is_often_missing(self) -> bool:
        """True if a step column of numbers lacks at least the share `OFTEN_MISSING` of its cells.

        Only cells of the sample are counted. It is False if the data isn't a step table.
        """
        steps = [sequence.numbers for sequence, _ in self.sample if isinstance(sequence, Steps)]
        if not steps:
            return False
        shares = np.isnan(np.concatenate(steps)).mean(axis=0)
        return bool((shares >= OFTEN_MISSING).any())

    @property
    def total_rows(self) -> int:
        """Number of labelled rows with a sequence, estimated if only a sample was read."""
        return round(self.rows * self.scale)

    def count_columns(self) -> DataProfile | None:
        """Return a new profile with the counts of `columns`, without reading the file again.

        The result is None if the profiles of the columns aren't enough, and the file must be read:

        - There are no `columns`, or several one-hot label columns.
        - Sequences aren't texts, or a cell of `columns` isn't a text in the file.
        - The profiles of the columns didn't keep all cells.
        - A label begins with "[", as lists do.
        """
        schema, (label, *sequence) = self.schema, self.columns or (None,)
        if label is None or schema.kind != "text" or label.one_hot is not None:
            return None
        is_text = all(column.is_text_only for column in self.columns)
        has_lists = any(value.startswith("[") for value in {*label.texts})
        if not is_text or has_lists or len(label.texts) < label.rows:
            return None
        profile = DataProfile(self.format, schema, self.ignored, self.warnings)
        texts = map(" ".join, zip(*(column.texts for column in sequence), strict=True))
        for text, name in zip(texts, label.texts, strict=True):
            if name_of(name, "the label") is None:
                profile.unlabelled += 1
            else:
                profile.add(text, (name,))
        profile.note_sample(*self.read)
        return profile

    def count_files(
        self,
        files: Sequence[str],
        progress: ReadingProgress,
        *,
        drop_bad_rows: bool = False,
        **changes: Any,
    ) -> DataProfile:
        """Return a new profile with the counts of files, read with this format and schema.

        Large files are sampled, if their number of rows is known beforehand.

        Args:
            files: The files.
            progress: Reports the number of rows.
            drop_bad_rows: True to count rows that can't be read in `unreadable`, without an error.
            changes: Fields of the schema that have other values for these files.

        Raises:
            DataError: If a file can't be read. Also if rows can't be read, and `drop_bad_rows` is
                False.
        """
        schema = replace(self.schema, **changes)
        profile = DataProfile(self.format, schema, self.ignored, self.warnings)
        total = read = 0
        for path in files:
            source = source_of(path, self.format, schema, "drop" if drop_bad_rows else "error")
            sample = row_sample()
            rows = good_rows(source, drop_bad_rows=drop_bad_rows, sample=sample)
            for row in progress.rows(rows):
                if row.problem is None:
                    profile.add(row.sequence, row.labels or ())
                    if row.static is not None and np.isnan(row.static.numbers).any():
                        profile.missing = True
                elif row.problem == BLANK_LABEL:
                    profile.unlabelled += 1
                else:
                    profile.unreadable += 1
            total, read = total + sample.total, read + sample.read
        profile.note_sample(read, total)
        return profile

    def note_sample(self, read: int, total: int) -> None:
        """Set the scale and the note of the profile if fewer rows were read than there are.

        Args:
            read: Number of rows that were read.
            total: Number of all rows.
        """
        if read < total:
            self.scale = total / read
            self.note = f"looked at {read:,} of {total:,} rows, in {NUM_BLOCKS} blocks"

    def add(self, sequence: Any, labels: Labels) -> None:
        """Count a labelled row, and append some of the rows to the sample.

        - A row with an empty or blank sequence is only counted in `empty`.
        - `missing` becomes True if a number of the row is missing.
        - `multi_label` becomes True if the row hasn't exactly one label, or if the schema has a
          separator of labels.
        - Every k-th row is appended to the sample. If the sample exceeds `SAMPLE`, every second
          pair is removed, and k doubles.
        """
        if not (sequence.strip() if isinstance(sequence, str) else len(sequence)):
            self.empty += 1
            return
        numbers = sequence.numbers if isinstance(sequence, Steps) else sequence
        if isinstance(numbers, np.ndarray) and not self.missing:
            self.missing = bool(np.isnan(numbers).any())
        for label in labels:
            self.classes[label] += 1
        if len(labels) != 1 or self.schema.label_separator is not None:
            self.multi_label = True
        if self.rows % self._stride == 0:
            self.sample.append((sequence, labels))
            if len(self.sample) > SAMPLE:
                self.sample, self._stride = self.sample[::2], 2 * self._stride
        self.rows += 1

    def conclude(self, tokenizer: str | None = None) -> None:
        """Set the family, the lengths, the channels and the symbols from the sample.

        The sample must not be empty. If texts turn out to be symbols, the kind of the schema is set
        to "tokens".

        Args:
            tokenizer: Tokenizer that the user chose, which decides the family of texts; or None.
        """
        sequences, labels = zip(*self.sample, strict=True)
        steps, kind = self.schema.steps, self.schema.kind
        if kind == "features" or (steps is not None and not self.token_columns):
            self.channels = max(x.shape[1] for x in sequences) if steps is None else len(steps)
            self.family = Family("series" if self.channels == 1 else "channels")
        elif steps is None:
            self.family = Family("symbols")
            if kind == "text":
                name = CHOSEN_FAMILIES.get(tokenizer or "")
                self.family = Family(name) if name else family_of(sequences, labels)
                split_by = TOKENIZERS.get(self.family.name, "char")
                split = make_tokenizer(split_by, lowercase=self.family.lowercase)
                sequences = tuple(split(each) for each in sequences)
            if self.family.name == "symbols":
                self.schema = replace(self.schema, kind="tokens")
            self.symbols = len({token for sequence in sequences for token in sequence})
        lengths = np.quantile([len(each) for each in sequences], (0.5, 0.95, 1), method="nearest")
        self.lengths = (*map(int, lengths),)


def good_rows(
    source: Source, *, drop_bad_rows: bool = False, sample: RowSample | None = None
) -> Iterator[Example]:
    """Yield the readable rows of a file, including rows with a blank label.

    Args:
        source: The file.
        drop_bad_rows: True to also yield the rows that can't be read. Their field `problem` is set.
        sample: Blocks of rows to read, or None to read all. Its numbers of rows are set.

    Raises:
        DataError: If reading can't continue. Also after the last row, if rows can't be read and
            `drop_bad_rows` is False.
    """
    problems, good = RowProblems(source.name), 0
    for row in read_rows(source, problems, sample=sample):
        if row.problem in (None, BLANK_LABEL):
            good += 1
            yield row
        elif drop_bad_rows:
            yield row
        else:
            problems.add(row.line, str(row.problem), row.file)
    refuse_problems(problems, source, any_good=good > 0)


def refuse_problems(problems: RowProblems, source: Source, *, any_good: bool) -> None:
    """Raise a DataError with the problems of rows that can't be read, if there are any.

    Args:
        problems: The problems.
        source: The file.
        any_good: True if a row of the file can be read.
    """
    if problems.count and not any_good and source.format.name == "txt":
        raise DataError(
            f"{problems.name}: no labels: no line has a tab; expected label<TAB>text, csv or jsonl "
            "with a column of labels, or a folder of texts for each class"
        )
    if problems.count:
        try:
            problems.raise_if_any()
        except DataError as error:
            drop = "data.bad_rows=drop"
            chosen = either(f"{INIT_COMMAND} --set {drop}", f"settings=[{drop!r}]")
            advice = f"to leave such rows out: {chosen}"
            raise DataError(*error.problems, f"{problems.name}: {advice}") from None
