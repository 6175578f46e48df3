"""What is known of files of labelled sequences: labels, lengths, and what sequences are made of."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from seqtrain.data.examples import (
    BLANK_LABEL,
    Example,
    RowProblems,
    Steps,
)
from seqtrain.data.labels import Labels
from seqtrain.data.read_options import FileFormat, Schema, token_columns
from seqtrain.data.readers import Source, read_rows
from seqtrain.data.sources import source_of
from seqtrain.data.tokenizers import make_tokenizer
from seqtrain.errors import DataError
from seqtrain.proposal.naive_bayes import character_ngrams, naive_bayes_error, word_ngrams

SAMPLE = 4096
"""Rows that texts are judged from, at most, evenly spread over the files."""
SMALL_ALPHABET = 30
"""Characters of an alphabet such as DNA's or a protein's, letters of one case."""
PROBED_CHARACTERS = 200_000
"""Characters of the sample that the two guesses of a class are compared on, at most."""
UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
"""First words of the Unicode names of letters that are written without blanks between words."""
CHARACTERS_BETTER = 0.6
"""Characters are taken where their error is below this share of the words' error."""
TOKENIZERS = {"words": "word", "symbols": "whitespace"}
"""What splits texts, by family; else into characters."""


@dataclass
class Facts:
    """What is known of data: counted while its rows are read, then judged from a sample of them.

    Attributes:
        format: how train's file is written.
        schema: which of its columns mean what; texts of symbols are of kind tokens.
        ignored: the columns that are left out, and why; doubts: what isn't sure.
        rows: rows that have a sequence.
        empty, unlabelled: rows without a sequence, and with a blank label.
        missing: whether a value of a series is missing.
        multi_label: True if a row can have any number of labels.
        classes: rows per label.
        sample: some rows, evenly spread, with their labels.
        lengths: median, 95 % and longest, in time steps of the sample.
        channels: for features and steps of numbers alone, numbers per time step.
        symbols: distinct tokens of the sample.
        family: what the rules distinguish: words, characters, alphabet (few characters, long),
            symbols, series (one channel), channels (several) or steps (a row per time step).
        why: of texts, the reason for that; lowercase: whether upper and lower case mean the same.
    """

    format: FileFormat
    schema: Schema
    ignored: Sequence[str] = ()
    doubts: Sequence[str] = ()
    rows: int = 0
    empty: int = 0
    unlabelled: int = 0
    missing: bool = False
    multi_label: bool = False
    classes: Counter[str] = field(default_factory=Counter)
    sample: list[tuple[Any, Hashable]] = field(default_factory=list)
    lengths: tuple[int, ...] = (0, 0, 0)
    channels: int = 0
    symbols: int = 0
    family: str = "steps"
    why: str = ""
    lowercase: bool = True
    _stride: int = 1

    @property
    def tokens(self) -> list[str]:
        """Columns of tokens of a time step."""
        return token_columns(self.schema.steps)

    def of(self, files: Sequence[str], **changes: Any) -> Facts:
        """Count the rows of files, read so, with changes; a DataError where they can't be."""
        schema = replace(self.schema, **changes)
        facts = Facts(self.format, schema, self.ignored, self.doubts)
        for path in files:
            for row in good_rows(source_of(path, self.format, schema)):
                if row.problem is None:
                    facts.add(row.sequence, row.labels or ())
                else:
                    facts.unlabelled += 1
        return facts

    def add(self, sequence: Any, labels: Labels) -> None:
        """Count a row."""
        if not (sequence.strip() if isinstance(sequence, str) else len(sequence)):
            self.empty += 1
            return
        numbers = sequence.numbers if isinstance(sequence, Steps) else sequence
        if isinstance(numbers, np.ndarray) and not self.missing:
            self.missing = bool(np.isnan(numbers).any())
        self.classes.update(labels)
        is_list = self.schema.label_separator is not None or len(labels) != 1
        self.multi_label = self.multi_label or is_list
        if self.rows % self._stride == 0:
            self.sample.append((sequence, labels))
            if len(self.sample) > SAMPLE:
                self.sample, self._stride = self.sample[::2], 2 * self._stride
        self.rows += 1

    def judge(self) -> None:
        """Look at the sample: its lengths, and what its sequences are made of."""
        sequences, labels = zip(*self.sample, strict=True)
        steps, kind = self.schema.steps, self.schema.kind
        if kind == "features" or (steps is not None and not self.tokens):
            self.channels = max(x.shape[1] for x in sequences) if steps is None else len(steps)
            self.family = "series" if self.channels == 1 else "channels"
        elif steps is None:
            self.family = "symbols"
            if kind == "text":
                self.family, self.why, self.lowercase = family_of(sequences, labels)
                tokenizer = TOKENIZERS.get(self.family, "char")
                split = make_tokenizer(tokenizer, lowercase=self.lowercase)
                sequences = tuple(split(each) for each in sequences)
            if self.family == "symbols":
                self.schema = replace(self.schema, kind="tokens")
            self.symbols = len({token for sequence in sequences for token in sequence})
        lengths = np.quantile([len(each) for each in sequences], (0.5, 0.95, 1), method="nearest")
        self.lengths = (*map(int, lengths),)


def good_rows(source: Source, *, labelled: bool = True) -> Iterator[Example]:
    """Yield the rows of a file, also those with a blank label; then refuse all others together."""
    problems, good = RowProblems(source.name, source.schema.rows_are), 0
    for row in read_rows(source, problems, labelled=labelled):
        if row.problem in (None, BLANK_LABEL):
            good += 1
            yield row
        else:
            problems.add(row.line, str(row.problem), row.file)
    if problems.count and not good and source.format.name == "txt":
        raise DataError(
            f"{problems.name}: no labels: no line has a tab; expected label<TAB>text, csv or jsonl "
            "with a column of labels, or a folder of texts for each class"
        )
    problems.raise_if_any()


def family_of(texts: Sequence[str], labels: Sequence[Hashable]) -> tuple[str, str, bool]:
    """Return the family of a sample of texts, the reason, and whether case says nothing."""
    characters = Counter("".join(texts[:2000]))
    letters = sum(count for c, count in characters.items() if not c.isspace())
    median = sorted(len(text) for text in texts)[len(texts) // 2]
    words = float(np.median([len(text.split()) for text in texts]))
    names = {c: unicodedata.name(c, "") for c in characters if c > "\u0dff"}
    unspaced = sum(characters[c] for c in names if names[c].startswith(UNSPACED)) / max(1, letters)
    if unspaced > 0.3:
        return "characters", f"{unspaced:.0%} of the letters need no blanks", True
    if words <= 1.5:
        alphabet = {c.lower() for c in characters if not c.isspace()}
        if len(alphabet) <= SMALL_ALPHABET and median >= 25:
            return "alphabet", f"an alphabet of {len(alphabet)} characters", True
        return "characters", f"words per row, median: {words:g}", False
    if _are_symbols(texts):
        return "symbols", "", False
    few = max(8, int((np.cumsum([len(text) for text in texts]) <= PROBED_CHARACTERS).sum()))
    probed = [text.lower() for text in texts[:few]]
    by_words = naive_bayes_error(word_ngrams(probed), labels[:few])
    by_characters = naive_bayes_error(character_ngrams(probed, 3), labels[:few])
    if by_characters < CHARACTERS_BETTER * by_words:
        why = (
            f"on a sample, a guess by characters has {by_characters:.0%} errors, a guess by words "
            f"{by_words:.0%}"
        )
        return "characters", why, True
    return "words", "", True


def _are_symbols(texts: Sequence[str]) -> bool:
    """Whether blanks separate symbols of a small set that the word tokenizer would break up."""
    tokens = Counter(token for text in texts for token in text.split())
    total = sum(tokens.values())
    split = make_tokenizer("word", lowercase=False)
    broken = sum(n for token, n in tokens.items() if len(split(token.strip('.,"()?!-<>:;'))) > 1)
    return broken > 0.2 * total and len(tokens) < total / 10
