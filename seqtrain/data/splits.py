"""Parting train and validation, and finding rows that stand in both."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from seqtrain.data.store import Ints, SequenceStore


def stratified_split(labels: Ints, fraction: float, seed: int) -> tuple[Ints, Ints]:
    """Hold out a fraction of every class; each class keeps at least one row in train.

    What rounding leaves over goes to the next class, so that small classes add up to the fraction
    too; each class's count is within one row of its exact share, or short of it to keep a row.

    Args:
        labels: class of each row, (B,).
        fraction: share to hold out, between 0 and 1.
        seed: decides which rows.

    Returns:
        Rows of train and rows held out, each ascending.
    """
    generator = np.random.default_rng(seed)
    held_out = np.zeros(len(labels), dtype=bool)
    carry = 0.0
    for label in np.unique(labels):
        rows = generator.permutation(np.flatnonzero(labels == label))
        exact = len(rows) * fraction + carry
        count = min(round(exact), len(rows) - 1)
        carry = min(exact - count, 0.5)
        held_out[rows[:count]] = True
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def fingerprints(store: SequenceStore) -> Ints:
    """Return a 64-bit hash of each sequence as encoded, (B,); equal ones agree in this process."""
    values = np.asarray(store.values)
    hashes = (hash(values[start:stop].tobytes()) for start, stop in pairwise(store.offsets))
    return np.fromiter(hashes, dtype=np.int64, count=len(store))


def count_repeats(store: SequenceStore, known: Ints) -> int:
    """Return how many sequences of a store have a fingerprint among the known ones."""
    return int(np.isin(fingerprints(store), known).sum())
