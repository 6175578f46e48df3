"""Inspection of data for `seqtrain data`: rows that fit refuses, equal rows, and labels.

The files are read a second time, because the encoded data doesn't have the texts.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from seqtrain.config.schema import Config
from seqtrain.sequences.dataset import held_out_fractions, prepare
from seqtrain.sequences.encoding import LengthPolicy, row_keys
from seqtrain.sequences.examples import SHOWN_ROWS, Example, RowProblems
from seqtrain.sequences.sources import numbered_rows, split_sources
from seqtrain.sequences.summary import padding_shares, summarize, warnings
from seqtrain.sequences.word_vectors import with_width

RARE = 5
"""Number of rows in train below which a label is rare."""
LENGTH_QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
LENIENT = {"bad_rows": "drop", "empty": "drop", "overlong": "head"}
"""Policies that leave out rows that fit refuses, so that the others can be inspected."""

RowPlace = tuple[str, str | None, int]
"""Split, file (or None if the split is one file), and line."""


class Inspection:
    """Counts and places of all rows of a config's data. Only hashes of sequences are stored.

    Args:
        config: The config.
        cache_folder: Folder of the cache, or None for no cache.

    Attributes:
        config: The config, with the size of its word vectors.
        data: The encoded splits, without rows that fit refuses.
        summaries: Summary of each split, as fit shows it.
        padding: Result of `padding_shares`.
        warnings: Warnings that fit gives.
        labels: Maps each split to a dict of the number of rows of each label.
        lengths: Maps each split to LENGTH_QUANTILES of the number of steps, before any cut.
        cut: Maps each split to the number and the share of rows that data.max_length cuts.
        refused: Messages about the first rows of each split that fit refuses, as ``FILE:LINE: …``.
        num_refused: Maps each split that has files to the number of rows that fit refuses.
    """

    def __init__(self, config: Config, *, cache_folder: Path | None) -> None:
        self.config = config = with_width(config)
        lenient = config.with_keys(data=LENIENT)
        self.data = prepare(lenient, cache_folder=cache_folder)
        self.summaries = summarize(self.data)
        self.padding = padding_shares(self.data, config.batching, config.seed)
        self.warnings = warnings(self.data, self.summaries, config)
        self.refused: list[str] = []
        self.num_refused: dict[str, int] = {}
        self._places: dict[int, dict[RowPlace, str]] = defaultdict(dict)  # and the labels there
        self._plain: dict[int, set[int]] = defaultdict(set)
        counts: dict[str, Counter[str]] = {name: Counter() for name in self.data.splits}
        sizes: dict[str, list[int]] = {name: [] for name in self.data.splits}
        held_out = held_out_fractions(config.data)
        for name in self.data.splits:
            if name not in held_out:
                for split, row, size in self._rows(name, held_out if name == "train" else ()):
                    counts[split].update(row.labels or ())
                    sizes[split].append(size)
        self.labels = {name: dict(sorted(own.items())) for name, own in counts.items()}
        self.lengths, self.cut = dict[str, list[int]](), dict[str, tuple[int, float]]()
        for name, own in sizes.items():
            quantiles = np.quantile(own, LENGTH_QUANTILES, method="nearest")
            self.lengths[name] = quantiles.astype(int).tolist()
            cut = sum(size > (config.data.max_length or size) for size in own)
            self.cut[name] = cut, cut / max(1, len(own))

    @property
    def rare_labels(self) -> dict[str, int]:
        """Number of rows in train of each label that has fewer than `RARE` rows."""
        return {name: n for name, n in self.labels["train"].items() if n < RARE}

    @property
    def unseen_labels(self) -> dict[str, list[str]]:
        """Labels that train lacks, sorted, for each split except train."""
        train = self.labels["train"].keys()
        others = {name: own for name, own in self.labels.items() if name != "train"}
        return {name: sorted(own.keys() - train) for name, own in others.items()}

    @property
    def duplicates(self) -> list[list[RowPlace]]:
        """One list of places for each sequence that occurs more than once."""
        return [[*places] for places in self._places.values() if len(places) > 1]

    @property
    def near_duplicates(self) -> list[list[RowPlace]]:
        """One list of places for each group of different texts with the same `plain_form`.

        Each text is represented by its first place.
        """
        firsts = {key: next(iter(places)) for key, places in self._places.items()}
        several = (keys for keys in self._plain.values() if len(keys) > 1)
        return [sorted(firsts[key] for key in keys) for keys in several]

    @property
    def conflicts(self) -> list[tuple[list[RowPlace], list[str]]]:
        """The places and the labels of each sequence that occurs with different labels."""
        found = (([*places], sorted({*places.values()})) for places in self._places.values())
        return [(places, labels) for places, labels in found if len(labels) > 1]

    def _rows(self, named: str, held_out: Iterable[str]) -> Iterator[tuple[str, Example, int]]:
        """Yield the rows of the files of a split, and add their places.

        Rows that fit refuses are counted in `refused` and `num_refused`.

        Args:
            named: Split that has files.
            held_out: Splits that are held out of these files.

        Yields:
            The split of a row, the row, and its number of steps.
        """
        keys, pieces = self.config.data, self.data.preprocessing.sequence.pieces
        policy = LengthPolicy(keys.max_length, keys.overlong, keys.empty)
        stores, files = self.data.splits, self.data.splits[named].files
        split_of = {line: x for x in (named, *held_out) for line in stores[x].lines.tolist()}
        sources, shown, count = split_sources(keys, named), list[str](), 0
        for source, (_, start) in zip(sources, files, strict=True):
            problems = RowProblems(source.name)
            name = problems.name if len(sources) > 1 else None
            source = source.with_schema(self.data.preprocessing.schema)
            for line, row in numbered_rows(source, start, self.data.digests):
                size = len(row.sequence if row.problem else pieces(row.sequence) or row.sequence)
                refused = row.problem or policy.refusal(size)
                if refused:
                    problems.add(row.line, refused, row.file)
                if line in split_of and not row.problem:
                    self._add((split_of[line], row.file or name, row.line), row)
                    yield split_of[line], row, size
            shown, count = shown + problems.shown, count + problems.count
        self.refused += shown[:SHOWN_ROWS]
        self.num_refused[named] = count

    def _add(self, place: RowPlace, row: Example) -> None:
        content = row.sequence
        key = int(row_keys([row])[0])
        exact = hash((content, key)) if isinstance(content, str) else key
        self._places[exact][place] = " + ".join(row.labels or ())
        if isinstance(content, str):
            self._plain[hash(plain_form(content))].add(exact)


def plain_form(text: str) -> str:
    """Return a simplified form of a text. Texts that are nearly equal have the same form.

    The text is NFKC-normalized and case-folded. Punctuation becomes blanks, and each word of digits
    becomes 0.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(c if c.isalnum() else " " for c in folded).split()
    plain = " ".join("0" if word.isdigit() else word for word in words)
    return plain or folded.strip()
