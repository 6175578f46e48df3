"""Parting train and validation, and finding rows that stand in both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seqtrain.data.growing import blocks, joined
from seqtrain.data.store import Ints, SequenceStore

Part: TypeAlias = float | Mapping[Any, int]
"""A fraction; or {fold: I, of: N}."""
HASHED = 2**20
"""Numbers of sequences that are hashed at once, also of a single long one."""
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIXING = [
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
]


def stratified_split(
    labels: Ints, fraction: float, seed: int, alike: Ints | None = None
) -> tuple[Ints, Ints]:
    """Hold out a fraction of every class; each class keeps at least one row in train.

    Rows that are alike stay on one side, and count as of the class that the first of them has. What
    rounding leaves over goes to the next class, so that small classes add up to the fraction too;
    each class's count is within one row (or the rows that are alike) of its exact share, or short
    of it to keep a row.

    Args:
        labels: class of each row, (B,).
        fraction: share to hold out, between 0 and 1.
        seed: decides which rows.
        alike: number of the set that each row belongs to, (B,); None: no two rows are alike.

    Returns:
        Rows of train and rows held out, each ascending.
    """
    generator = np.random.default_rng(seed)
    if alike is None:
        alike = np.arange(len(labels))
    _, first, size = np.unique(alike, return_index=True, return_counts=True)
    order = np.argsort(first)
    first, size = first[order], size[order]
    held_out = np.zeros(len(labels), dtype=bool)
    carry = 0.0
    for label in np.unique(labels[first]):
        sets = generator.permutation(np.flatnonzero(labels[first] == label))
        exact = size[sets].sum() * fraction + carry
        chosen = _up_to(round(exact), size[sets[:-1]])
        carry = min(exact - size[sets[chosen]].sum(), 0.5)
        held_out[first[sets[chosen]]] = True
    held_out = np.isin(alike, alike[held_out])
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def stratified_fold(
    labels: Ints, fold: int, folds: int, seed: int, alike: Ints | None = None
) -> tuple[Ints, Ints]:
    """Hold out one of several parts, which share out the rows of every class evenly.

    Args:
        labels: class of each row, (B,).
        fold: which part, from 1.
        folds: how many there are.
        seed: decides which rows are in which part.
        alike: as for `stratified_split`.

    Returns:
        Rows of train and rows held out, each ascending.
    """
    generator = np.random.default_rng(seed)
    sets = np.arange(len(labels)) if alike is None else alike
    first = np.sort(np.unique(sets, return_index=True)[1])
    order = generator.permutation(len(first))
    by_label = first[order[np.argsort(labels[first[order]], kind="stable")]]
    held_out = np.isin(sets, sets[by_label[fold - 1 :: folds]])
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def hold_out(
    labels: Ints, fractions: Mapping[str, Part], seed: int, alike: Ints | None = None
) -> dict[str, Ints]:
    """Hold out several parts, stratified; a later one changes no earlier one.

    Args:
        labels: class of each row, (B,).
        fractions: of all rows, by the name of the part, less than 1 together; or which of how
            many equal parts of what the others leave.
        seed: decides which rows.
        alike: as for `stratified_split`.

    Returns:
        The rows of each part, ascending.
    """
    rest, parts = np.arange(len(labels)), {}
    for name, fraction in fractions.items():
        sets = None if alike is None else alike[rest]
        if isinstance(fraction, float):
            share = fraction * len(labels) / max(1, len(rest))
            kept, chosen = stratified_split(labels[rest], min(share, 1.0), seed, sets)
        else:
            kept, chosen = stratified_fold(
                labels[rest], fraction["fold"], fraction["of"], seed, sets
            )
        parts[name], rest = rest[chosen], rest[kept]
    return parts


def _up_to(wanted: int, sizes: Ints) -> Ints:
    """Choose sets in their order that hold as many rows as wanted together, or nearly so."""
    chosen, total = [], 0
    for place, size in enumerate(sizes.tolist()):
        if size < 2 * (wanted - total):  # nearer with it than without
            chosen.append(place)
            total += size
        if total >= wanted:
            break
    return np.array(chosen, dtype=np.int64)


def equal_rows(store: SequenceStore) -> Ints:
    """Return for each sequence the number of the first one that is equal to it, (B,)."""
    _, first, place = np.unique(fingerprints(store), return_index=True, return_inverse=True)
    return first[place]


def fingerprints(store: SequenceStore) -> Ints:
    """Return a 64-bit hash of each sequence as encoded, (B,); memory-mapped where they are many."""
    width = math.prod(store.values.shape[1:])
    hashes = (_hashes(values, offsets * width) for values, offsets in store.parts())
    return joined(chain([np.zeros(0, dtype=np.int64)], hashes))


def _hashes(values: npt.NDArray[Any], offsets: Ints) -> Ints:
    """Hash sequences: the sum of their numbers, each mixed with its place.

    Args:
        values: of all, of 32 bits each.
        offsets: where each sequence begins among all numbers; the last entry is how many there are.
    """
    numbers, sums = values.reshape(-1).view(np.uint32), np.zeros(len(offsets) - 1, dtype=np.uint64)
    for begin in range(0, len(numbers), HASHED):
        end = min(begin + HASHED, len(numbers))
        rows = slice(offsets.searchsorted(begin, "right") - 1, offsets.searchsorted(end))
        bounds = np.append(offsets[rows].clip(begin), end)
        places = np.arange(begin, end) - offsets[rows].repeat(np.diff(bounds))
        bits = numbers[begin:end] | places.view(np.uint64) << np.uint64(32)
        bits += GOLDEN
        for shift, factor in MIXING:  # splitmix64
            bits ^= bits >> shift
            bits *= factor
        sums[rows] += np.add.reduceat(bits ^ bits >> np.uint64(31), bounds[:-1] - begin)
    return sums.view(np.int64)


def count_repeats(store: SequenceStore, known: Ints) -> int:
    """Return how many sequences of a store have a fingerprint among the known ones."""
    own = fingerprints(store)
    found = np.zeros(len(own), dtype=bool)
    for block in blocks(known):
        found |= np.isin(own, block)
    return int(found.sum())
