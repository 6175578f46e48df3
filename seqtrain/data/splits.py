"""Parting train and validation, and finding rows that stand in both."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seqtrain.data.growing import blocks, joined
from seqtrain.data.row_numbers import first_alike, places, row_numbers
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
        alike: key of the set that each row belongs to, (B,); None: no two rows are alike.

    Returns:
        Rows of train and rows held out, each ascending.
    """
    generator = np.random.default_rng(seed)
    first, is_first = _sets(len(labels), alike)
    sizes = np.zeros(len(first), dtype=first.dtype)
    for block in blocks(first):
        np.add.at(sizes, block, 1)
    held_out = np.zeros(len(labels), dtype=bool)
    carry = 0.0
    for label in sorted({*chain.from_iterable(np.unique(x).tolist() for x in blocks(labels))}):
        sets = places(is_first & (labels == label))
        generator.shuffle(sets)
        exact = _total(sizes, sets) * fraction + carry
        chosen = _up_to(round(exact), sizes, sets[:-1])
        carry = min(exact - _total(sizes, chosen), 0.5)
        held_out[chosen] = True
    held_out = held_out[first]
    del sizes, first
    return places(~held_out), places(held_out)


def stratified_fold(
    labels: Ints, fold: int, folds: int, seed: int, alike: Ints | None = None
) -> tuple[Ints, Ints]:
    """Hold out one of several parts, which share out the rows of every class evenly.

    Rows that are alike stay on one side, and count as of the class that the first of them has.
    Every class keeps a row in train: all of its rows where they are alike; else, where the part
    would hold out all of them, the first and those alike. Fewer rows than parts: none is held out.

    Args:
        labels: class of each row, from 0, (B,).
        fold: which part, from 1.
        folds: how many there are.
        seed: decides which rows are in which part.
        alike: as for `stratified_split`.

    Returns:
        Rows of train and rows held out, each ascending.
    """
    first, is_first = _sets(len(labels), alike)
    classes = int(labels.max(initial=-1)) + 1
    lowest, highest = np.full(classes, len(labels)), np.zeros(classes, dtype=np.int64)
    np.minimum.at(lowest, labels, first)
    np.maximum.at(highest, labels, first)
    is_first[lowest[lowest == highest]] = False
    order = places(is_first)
    np.random.default_rng(seed).shuffle(order)
    by_label = order[np.argsort(labels[order], kind="stable")]
    held_out = np.zeros(len(labels), dtype=bool)
    if len(order) >= folds:
        held_out[by_label[fold - 1 :: folds]] = True
    learned = np.bincount(labels[~held_out[first]], minlength=classes) > 0
    held_out[lowest[~learned & (lowest < highest)]] = False  # never all: the highest set stays
    held_out = held_out[first]
    return places(~held_out), places(held_out)


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
    parts: dict[str, Ints] = {}
    rest: Ints | None = None
    for name, fraction in fractions.items():
        left = labels if rest is None else labels[rest]
        sets = alike if alike is None or rest is None else alike[rest]
        if isinstance(fraction, float):
            share = fraction * len(labels) / max(1, len(left))
            kept, chosen = stratified_split(left, min(share, 1.0), seed, sets)
        else:
            kept, chosen = stratified_fold(left, fraction["fold"], fraction["of"], seed, sets)
        parts[name] = chosen if rest is None else rest[chosen]
        rest = kept if rest is None else rest[kept]
    return parts


def _sets(rows: int, alike: Ints | None) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return for each row the first one that is alike, and whether it is that one itself."""
    if alike is None:
        return row_numbers(rows), np.ones(rows, dtype=bool)
    first = first_alike(alike)
    return first, first == row_numbers(rows)


def _total(sizes: Ints, sets: Ints) -> int:
    return sum(int(sizes[block].sum()) for block in blocks(sets))


def _up_to(wanted: int, sizes: Ints, sets: Ints) -> Ints:
    """Choose sets in their order that hold as many rows as wanted together, or nearly so."""
    chosen, total = array("q"), 0
    for block in blocks(sets):
        for one, size in zip(block.tolist(), sizes[block].tolist(), strict=True):
            if size < 2 * (wanted - total):  # nearer with it than without
                chosen.append(one)
                total += size
            if total >= wanted:
                break
        if total >= wanted:
            break
    return np.array(chosen, dtype=np.int64)


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
