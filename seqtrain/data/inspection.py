"""A closer look at data than `fit` takes: every row is read once more, as it is written."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seqtrain.config.schema import Config, DataConfig
from seqtrain.data.configured import read_options
from seqtrain.data.digests import check_unchanged
from seqtrain.data.examples import SHOWN_ROWS, Example, RowProblems
from seqtrain.data.preparation import held_out_fractions, prepare
from seqtrain.data.prepared import PreparedData
from seqtrain.data.sources import files_of, numbered_examples
from seqtrain.data.summary import SplitSummary, padding_shares, summarize, warnings
from seqtrain.data.word_vectors import with_width
from seqtrain.text import display_name

RARE = 5
"""Rows of train below which a label is rare."""
LENGTH_QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
LENIENT = {"bad_rows": "drop", "empty": "drop", "overlong": "head"}
"""What each policy is set to so that a row that fit would refuse can be counted."""

RowPlace = tuple[str, int]
"""Split, and line counted through its files."""


@dataclass(frozen=True)
class Inspection:
    """What was found; rows are named by split and line.

    Attributes:
        data: the splits, encoded, without rows that fit would refuse.
        summaries: the figures that fit shows, by split.
        padding: as in `padding_shares`.
        warnings: what fit warns of.
        labels: rows of each label, by split.
        lengths: steps before any cut at `LENGTH_QUANTILES`, by split.
        cut: rows, and their share, that data.max_length cuts, by split.
        rare_labels: labels of train with fewer than `RARE` rows.
        unseen_labels: labels that train lacks, by split.
        refused: rows that fit refuses, as `FILE:LINE: …` lines; of each split the first few.
        num_refused: how many there are, by split.
        duplicates: places of each sequence that is written more than once alike.
        near_duplicates: places of sequences that differ in case, marks, blanks or digits alone.
        conflicts: places of each sequence that has several labels, with these.
        alike: quotes, hyphens, blanks and wide forms that look alike, each with its count.
        mixed_words: words that mix Latin letters with letters that look like them, with counts.
    """

    data: PreparedData
    summaries: dict[str, SplitSummary]
    padding: tuple[float, float]
    warnings: list[str]
    labels: dict[str, dict[str, int]]
    lengths: dict[str, list[int]]
    cut: dict[str, tuple[int, float]]
    rare_labels: dict[str, int]
    unseen_labels: dict[str, list[str]]
    refused: list[str]
    num_refused: dict[str, int]
    duplicates: list[list[RowPlace]]
    near_duplicates: list[list[RowPlace]]
    conflicts: list[tuple[list[RowPlace], list[str]]]
    alike: list[dict[str, int]]
    mixed_words: dict[str, int]

    def file_line(self, place: RowPlace) -> tuple[str | None, int]:
        """Return where a row stands: its file, where the split has several, and its line there."""
        split, line = place
        files = self.data.splits[split].files
        if files is None or len(files.names) == 1:
            return None, line
        return files.locate(line)


def inspect(config: Config, *, cache_folder: Path | None) -> Inspection:
    """Read all splits of a config and look at their rows.

    Args:
        config: data paths are relative to the current directory.
        cache_folder: where encoded data is kept between runs; None: nowhere.

    Raises:
        DataError: a file is missing, was changed while it was read, or hasn't the rows that
            training needs.
    """
    config = with_width(config)
    lenient = config.model_copy(update={"data": config.data.model_copy(update=LENIENT)})
    data = prepare(lenient, cache_folder=cache_folder)
    rows = _Rows(config.data, data)
    for name in data.splits:
        rows.read(name)
    check_unchanged(data.digests)
    summaries = summarize(data)
    train = rows.labels["train"]
    return Inspection(
        data=data,
        summaries=summaries,
        padding=padding_shares(data, config.batching, config.seed),
        warnings=warnings(data, summaries, config.data),
        labels={name: dict(sorted(counts.items())) for name, counts in rows.labels.items()},
        lengths={
            name: np.quantile(found, LENGTH_QUANTILES, method="nearest").astype(int).tolist()
            for name, found in rows.lengths.items()
        },
        cut=rows.cut(),
        rare_labels={name: n for name, n in sorted(train.items()) if n < RARE},
        unseen_labels={
            name: sorted(counts.keys() - train.keys())
            for name, counts in rows.labels.items()
            if name != "train"
        },
        refused=rows.refused,
        num_refused=dict(rows.num_refused),
        duplicates=_repeated(rows.exact),
        near_duplicates=_near(rows),
        conflicts=[
            (rows.exact[key], sorted(labels))
            for key, labels in rows.labels_of.items()
            if len(labels) > 1
        ],
        alike=_alike(rows.characters),
        mixed_words=dict(rows.mixed.most_common()),
    )


class _Rows:
    """Gathers what is looked at, row by row; of a sequence only its hashes are kept."""

    def __init__(self, config: DataConfig, data: PreparedData) -> None:
        self.config, self.data = config, data
        self.labels: dict[str, Counter[str]] = {}
        self.lengths: dict[str, list[int]] = {}
        self.refused: list[str] = []
        self.num_refused: Counter[str] = Counter()
        self.exact: dict[int, list[RowPlace]] = defaultdict(list)
        self.plain: dict[int, set[int]] = defaultdict(set)
        self.labels_of: dict[int, set[str]] = defaultdict(set)
        self.characters: Counter[str] = Counter()
        self.mixed: Counter[str] = Counter()

    def read(self, split: str) -> None:
        """Look at all rows of a split."""
        held_out = held_out_fractions(self.config)
        from_train = split in held_out or (split == "train" and bool(held_out))
        key = "train" if from_train else split
        files = files_of(f"data.{key}", getattr(self.config, key))
        lines = self.data.splits[split].files
        starts = [0] * len(files) if lines is None else lines.starts
        own = set(self.data.splits[split].lines.tolist()) if from_train else None
        other = {line for name in held_out for line in self.data.splits[name].lines.tolist()}
        self.labels[split], self.lengths[split] = Counter(), []
        counts_refused = split == "train" or not from_train
        lenient, shown = self.config.model_copy(update=LENIENT), list[str]()
        for path, start in zip(files, starts, strict=True):
            problems = RowProblems(display_name(path))
            options = read_options(lenient, path)
            for line, example in numbered_examples(path, options, start, problems=problems):
                if own is None or line in own:
                    self._add(split, line, example, problems)
                elif split == "train" and line not in other:
                    self._add_refused(example, problems)
            if counts_refused:
                self.num_refused[split] += problems.count
                shown += problems.shown
        self.refused += shown[:SHOWN_ROWS]

    def cut(self) -> dict[str, tuple[int, float]]:
        """Return how many rows of each split data.max_length cuts, and their share."""
        limit = self.config.max_length
        found = {
            name: sum(length > limit for length in lengths) if limit else 0
            for name, lengths in self.lengths.items()
        }
        return {name: (n, n / max(1, len(self.lengths[name]))) for name, n in found.items()}

    def _add(self, split: str, line: int, example: Example, problems: RowProblems) -> None:
        length = self._length(example.sequence)
        if self._is_refused(length):
            self._note_refused(length, example, problems)
        if not length and self.config.empty != "unk":
            return
        self.lengths[split].append(length)
        self.labels[split][str(example.label)] += 1
        exact, plain = _keys(example.sequence)
        self.exact[exact].append((split, line))
        self.labels_of[exact].add(str(example.label))
        if plain is not None:
            self.plain[plain].add(exact)
            self.characters.update(str(example.sequence))
            self.mixed.update(mixed_words(str(example.sequence)))

    def _add_refused(self, example: Example, problems: RowProblems) -> None:
        """Look at a row of train's file that is in no split: it is empty."""
        length = self._length(example.sequence)
        if self._is_refused(length):
            self._note_refused(length, example, problems)

    def _is_refused(self, length: int) -> bool:
        over = self.config.max_length is not None and length > self.config.max_length
        return (not length and self.config.empty == "error") or (
            over and self.config.overlong == "error"
        )

    def _note_refused(self, length: int, example: Example, problems: RowProblems) -> None:
        words = f"{length:,} steps; data.max_length allows {self.config.max_length}"
        problems.add(example.line, words if length else "the sequence is empty")

    def _length(self, sequence: Any) -> int:
        """Return the steps of a sequence before any cut."""
        return self.data.preprocessing.length(sequence)


def _keys(sequence: Any) -> tuple[int, int | None]:
    """Return hashes of a sequence as written, and of its plain form; None for vectors."""
    if isinstance(sequence, list):
        return hash(tuple(sequence)), None
    if not isinstance(sequence, str):
        return hash((sequence.shape, sequence.tobytes())), None
    return hash(sequence), hash(plain_form(sequence))


def plain_form(text: str) -> str:
    """Return a text without case, marks, accents' ways of writing, and with each number as 0."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(c if c.isalnum() else " " for c in folded).split()
    plain = " ".join("0" if word.isdigit() else word for word in words)
    return plain or folded.strip()


def _repeated(places: Mapping[int, list[RowPlace]]) -> list[list[RowPlace]]:
    return [found for found in places.values() if len(found) > 1]


def _near(rows: _Rows) -> list[list[RowPlace]]:
    """Return one place of each of the sequences that are the same once they are plain."""
    return [
        sorted(rows.exact[key][0] for key in keys) for keys in rows.plain.values() if len(keys) > 1
    ]


LOOKALIKES = frozenset("аеорсухіјѕԁһАВЕКМНОРСТХІЈЅοναρΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")
"""Cyrillic and Greek letters that look like Latin ones."""
LATIN = re.compile("[A-Za-z]")
MARKS = {
    **dict.fromkeys("‘’‚‛´`ʼ＇", "'"),
    **dict.fromkeys("“”„‟«»＂", '"'),
    **dict.fromkeys("‐‑‒–—−﹣－", "-"),
    **dict.fromkeys("\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
                    "\u200a\u202f\u205f\u3000", " "),
}  # fmt: skip
"""Quotes, hyphens and blanks of other kinds."""


def _alike(characters: Counter[str]) -> list[dict[str, int]]:
    """Return groups of marks that look alike and all occur, each with its count."""
    groups: dict[str, dict[str, int]] = defaultdict(dict)
    for character, count in sorted(characters.items()):
        form = character
        if unicodedata.east_asian_width(character) in "FH":
            form = unicodedata.normalize("NFKC", character)
        groups[MARKS.get(character, form)][character] = count
    return [group for group in groups.values() if len(group) > 1]


def mixed_words(text: str) -> list[str]:
    """Return the words that mix Latin letters with others that look like Latin ones."""
    if text.isascii():
        return []
    return [word for word in text.split() if LOOKALIKES & set(word) and LATIN.search(word)]
