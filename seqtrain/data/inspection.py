"""A closer look at data than `fit` takes: every row is read once more, as it is written."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seqtrain.config.schema import Config, DataConfig
from seqtrain.data.dataset import PreparedData, held_out_fractions, prepare
from seqtrain.data.encoding import EMPTY
from seqtrain.data.examples import SHOWN_ROWS, Example, RowProblems
from seqtrain.data.readers.opening import changed
from seqtrain.data.sources import files_of, numbered_rows, read_options
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
        duplicates=[found for found in rows.exact.values() if len(found) > 1],
        near_duplicates=[
            sorted(rows.exact[key][0] for key in keys)
            for keys in rows.plain.values()
            if len(keys) > 1
        ],
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
        """Look at all rows of a split, and at those of its files that are in none."""
        held_out, stores = held_out_fractions(self.config), self.data.splits
        key = "train" if split in held_out else split
        own = set(stores[split].lines.tolist())
        others = {line for name in held_out for line in stores[name].lines.tolist()}
        self.labels[split], self.lengths[split] = Counter(), []
        files, shown = stores[split].files, list[str]()
        paths = files_of(f"data.{key}", getattr(self.config, key))
        for path, start in zip(paths, files.starts if files else (), strict=True):
            problems, digests = RowProblems(display_name(path)), dict[str, str]()
            rows = numbered_rows(path, read_options(self.config, path), start, digests=digests)
            for line, example in rows:
                length = 0 if example.problem else self._length(example.sequence)
                problem = example.problem or self._problem(length)
                if problem and (example.problem or line not in others):
                    problems.add(example.line, problem, example.file)
                if line in own and not example.problem:
                    self._add(split, line, example, length)
            if digests[path] != self.data.digests[path]:
                raise changed(path)
            if split not in held_out:
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

    def _add(self, split: str, line: int, example: Example, length: int) -> None:
        if not length and self.config.empty != "unk":
            return
        self.lengths[split].append(length)
        self.labels[split][str(example.label)] += 1
        sequence = example.sequence
        if isinstance(sequence, list):
            exact = hash(tuple(sequence))
        else:
            exact = hash(sequence if isinstance(sequence, str) else sequence.tobytes())
        self.exact[exact].append((split, line))
        self.labels_of[exact].add(str(example.label))
        if isinstance(sequence, str):
            self.plain[hash(plain_form(sequence))].add(exact)
            self.characters.update(sequence)
            self.mixed.update(mixed_words(sequence))

    def _problem(self, length: int) -> str | None:
        """Say why fit refuses a row of so many steps, if it does."""
        limit = self.config.max_length
        if not length and self.config.empty == "error":
            return EMPTY
        if limit is not None and length > limit and self.config.overlong == "error":
            return f"{length:,} steps; data.max_length allows {limit}"
        return None

    def _length(self, sequence: Any) -> int:
        """Return the steps of a sequence before any cut."""
        split = self.data.preprocessing.split
        return len(sequence if split is None else split(sequence))


def plain_form(text: str) -> str:
    """Return a text without case, marks, accents' ways of writing, and with each number as 0."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(c if c.isalnum() else " " for c in folded).split()
    plain = " ".join("0" if word.isdigit() else word for word in words)
    return plain or folded.strip()


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
