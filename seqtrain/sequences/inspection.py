"""Inspection of data for `seqtrain data`: rows that fit refuses, equal rows, labels and lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from seqtrain.config.schema import Config
from seqtrain.sequences.dataset import PreparedData, prepare
from seqtrain.sequences.labels import class_counts
from seqtrain.sequences.splits import equal_rows
from seqtrain.sequences.store import SequenceStore
from seqtrain.sequences.summary import SplitSummary, padding_shares, summarize, warnings
from seqtrain.sequences.word_vectors import with_width

RARE = 5
"""Number of rows in train below which a label is rare."""
LENGTH_QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)

RowPlace = tuple[str, str | None, int]
"""Split, file (or None if the split is one file), and line."""


class Inspection:
    """Counts and places of all rows of a config's data.

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
        duplicates: One list of places for each sequence that occurs more than once.
        conflicts: The places and the labels of each sequence that occurs with different labels.
        doubts: Doubts about the columns of train.

    Args:
        config: The config.
        doubts: Doubts about the columns of train.
    """

    def __init__(self, config: Config, doubts: Sequence[str] = ()) -> None:
        self.doubts = list(doubts)
        self.config = config = with_width(config)
        self.data = prepare(config, lenient=True)
        self.summaries: dict[str, SplitSummary] = summarize(self.data)
        self.padding = padding_shares(self.data, config.batching, config.seed)
        self.warnings = warnings(self.data, self.summaries, config)
        self.refused = []
        self.num_refused = {}
        for name, report in self.data.reports.items():
            if name in self.data.splits and self._has_files(name):
                self.refused += report.refused
                self.num_refused[name] = report.num_refused
        classes = self.data.preprocessing.labels
        self.labels = {name: _counts(x, classes) for name, x in self.data.splits.items()}
        self._measure_lengths()
        self.duplicates, self.conflicts = _equal_rows(self.data)

    @property
    def rare_labels(self) -> dict[str, int]:
        """Number of rows in train of each label that has fewer than `RARE` rows."""
        return {name: n for name, n in self.labels["train"].items() if n < RARE}

    @property
    def unseen_labels(self) -> dict[str, list[str]]:
        """Labels that train lacks, sorted, for each split except train."""
        reports = self.data.reports
        return {x: sorted(reports[x].unknown_names) for x in self.data.splits if x != "train"}

    def _has_files(self, split: str) -> bool:
        return split == "train" or not isinstance(getattr(self.config.data, split), float | dict)

    def _measure_lengths(self) -> None:
        """Set `lengths` and `cut`."""
        self.lengths = {}
        self.cut = {}
        for name, store in self.data.splits.items():
            lengths = store.lengths
            cut = 0
            if store.left_out is not None:
                lengths = lengths + store.left_out
                cut = int((store.left_out > 0).sum())
            quantiles = np.quantile(lengths, LENGTH_QUANTILES, method="nearest")
            self.lengths[name] = quantiles.astype(int).tolist()
            self.cut[name] = cut, cut / max(1, len(store))


def _counts(store: SequenceStore, classes: tuple[str, ...]) -> dict[str, int]:
    counts = class_counts(store.labels, len(classes)).tolist()
    return {name: n for name, n in sorted(zip(classes, counts, strict=True)) if n}


def _equal_rows(
    data: PreparedData,
) -> tuple[list[list[RowPlace]], list[tuple[list[RowPlace], list[str]]]]:
    """Return the places of equal sequences, and those with different labels with the labels."""
    stores = data.splits
    keys = [store.keys for store in stores.values() if store.keys is not None]
    rows = [(name, row) for name, store in stores.items() for row in range(len(store))]
    duplicates = []
    conflicts = []
    for equal in equal_rows(np.concatenate(keys)):
        places = []
        labels = set()
        for name, row in map(rows.__getitem__, equal):
            store = stores[name]
            file, _, line = store.place(row).rpartition(":")
            places.append((name, file if len(store.files) > 1 else None, int(line)))
            labels.add(_label_text(store.labels[row], data.preprocessing.labels))
        duplicates.append(places)
        if len(labels) > 1:
            conflicts.append((places, sorted(labels)))
    return duplicates, conflicts


def _label_text(label: Any, classes: Sequence[str]) -> str:
    """Return the encoded labels of a row as one text."""
    if label.ndim:
        return " + ".join(classes[index] for index in np.flatnonzero(label > 0).tolist())
    return classes[label] if label >= 0 else ""
