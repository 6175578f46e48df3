"""A closer look at data than `fit` takes: every row is read once more, as it is written."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from seqtrain.config.schema import Config
from seqtrain.data.dataset import PreparedData, held_out_fractions, prepare
from seqtrain.data.encoding import EMPTY
from seqtrain.data.examples import SHOWN_ROWS, Example, RowProblems
from seqtrain.data.sources import numbered_rows, split_files
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
    """Read all splits of a config and look at their rows; raises as `prepare`."""
    config = with_width(config)
    lenient = config.model_copy(update={"data": config.data.model_copy(update=LENIENT)})
    data = prepare(lenient, cache_folder=cache_folder)
    found = _Findings()
    for name in data.splits:
        found.read(name, config, data)
    summaries, limit = summarize(data), config.data.max_length
    train, lengths = found.labels["train"], found.lengths
    cut = {name: sum(x > (limit or x) for x in own) for name, own in lengths.items()}
    return Inspection(
        data=data,
        summaries=summaries,
        padding=padding_shares(data, config.batching, config.seed),
        warnings=warnings(data, summaries, config.data),
        labels={name: dict(sorted(counts.items())) for name, counts in found.labels.items()},
        lengths={
            name: np.quantile(own, LENGTH_QUANTILES, method="nearest").astype(int).tolist()
            for name, own in lengths.items()
        },
        cut={name: (count, count / max(1, len(lengths[name]))) for name, count in cut.items()},
        rare_labels={name: n for name, n in sorted(train.items()) if n < RARE},
        unseen_labels={
            name: sorted(own.keys() - train.keys())
            for name, own in found.labels.items()
            if name != "train"
        },
        refused=found.refused,
        num_refused=dict(found.num_refused),
        duplicates=[[*rows] for rows in found.exact.values() if len(rows) > 1],
        near_duplicates=[
            sorted(next(iter(found.exact[key])) for key in keys)
            for keys in found.plain.values()
            if len(keys) > 1
        ],
        conflicts=[
            ([*rows], sorted({*rows.values()}))
            for rows in found.exact.values()
            if len({*rows.values()}) > 1
        ],
        alike=_alike(found.characters),
        mixed_words=dict(found.mixed.most_common()),
    )


@dataclass
class _Findings:
    """What is gathered row by row; of a sequence only hashes are kept."""

    labels: dict[str, Counter[str]] = field(default_factory=dict)
    lengths: dict[str, list[int]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    num_refused: Counter[str] = field(default_factory=Counter)
    exact: dict[int, dict[RowPlace, str]] = field(default_factory=lambda: defaultdict(dict))
    plain: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    characters: Counter[str] = field(default_factory=Counter)
    mixed: Counter[str] = field(default_factory=Counter)

    def read(self, split: str, config: Config, data: PreparedData) -> None:
        """Look at all rows of a split, and at those of its files that are in none."""
        keys, tokens = config.data, data.preprocessing.split
        held_out, stores = held_out_fractions(keys), data.splits
        key = "train" if split in held_out else split
        own, files = set(stores[split].lines.tolist()), stores[split].files
        others = {line for name in held_out for line in stores[name].lines.tolist()}
        self.labels[split], self.lengths[split], shown = Counter(), [], list[str]()
        own_files = split_files(keys, key)
        for (path, options), start in zip(own_files, files.starts if files else (), strict=True):
            problems = RowProblems(display_name(path))
            for line, example in numbered_rows(path, options, start, digests=data.digests):
                steps = example.sequence if tokens is None else tokens(example.sequence)
                refused = example.problem or _refusal(len(steps), config)
                if refused and (example.problem or line not in others):
                    problems.add(example.line, refused, example.file)
                if line in own and not example.problem and (len(steps) or keys.empty == "unk"):
                    self.lengths[split].append(len(steps))
                    self._add(split, line, example)
            if split not in held_out:
                self.num_refused[split] += problems.count
                shown += problems.shown
        self.refused += shown[:SHOWN_ROWS]

    def _add(self, split: str, line: int, example: Example) -> None:
        sequence, label = example.sequence, str(example.label)
        if isinstance(sequence, list):
            exact = hash(tuple(sequence))
        else:
            exact = hash(sequence if isinstance(sequence, str) else sequence.tobytes())
        self.labels[split][label] += 1
        self.exact[exact][split, line] = label
        if isinstance(sequence, str):
            self.plain[hash(plain_form(sequence))].add(exact)
            self.characters.update(sequence)
            self.mixed.update(mixed_words(sequence))


def _refusal(length: int, config: Config) -> str | None:
    """Say why fit refuses a row of so many steps, if it does."""
    limit = config.data.max_length
    if not length and config.data.empty == "error":
        return EMPTY
    if limit is not None and length > limit and config.data.overlong == "error":
        return f"{length:,} steps; data.max_length allows {limit}"
    return None


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
    **dict.fromkeys(
        "\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))), " "
    ),
}
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
