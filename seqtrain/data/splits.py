"""Which rows are held out of train: by their labels and by which rows are alike, as they are read.

B rows. A set is a number of rows that are alike, or of one group; a set stays on one side.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seqtrain.data.store import Ints, blocks, equal_keys, row_numbers, true_rows

Part: TypeAlias = float | Mapping[Any, int]
"""A fraction; or {fold: I, of: N}."""
Mask: TypeAlias = npt.NDArray[np.bool_]
BLANK = 0
"""Key of blank rows, which are never held out: whether they are rows at all is the encoding's."""
LEAST_OF_CLASS, ENOUGH_OF_CLASS = 10, 30
"""Rows of a class that validation holds at least, if the class has enough rows."""
MANY_ROWS = 100
"""Rows of validation from which on all of them are hardly right by chance."""


def hold_out(
    labels: Ints, parts: Mapping[str, Part], seed: int, keys: Ints | None = None
) -> dict[str, Ints]:
    """Hold out several parts, stratified; a later one changes no earlier one.

    A part is a fraction of all rows, or which of how many equal parts of what the others leave.
    Of a class the seed decides the same rows, whatever other classes there are.

    Shape:
        labels: class of each row, from 0, (B,). keys: equal for rows of one set, (B,); BLANK: the
        row is learned. None: no two are alike.
    """
    first = row_numbers(len(labels)) if keys is None else first_alike(keys)
    left = np.ones(len(labels), dtype=bool) if keys is None else np.asarray(keys != BLANK)
    rows, found = int(left.sum()), dict[str, Ints]()
    for name, part in parts.items():
        if isinstance(part, float):
            share = min(part * rows / max(1, int(left.sum())), 1.0)
            least = LEAST_OF_CLASS if name == "validation" else 0
            held = _fraction(labels, first, left, share, seed, least=least)
        else:
            held = _fold(labels, first, left, part["fold"], part["of"], seed)
        left &= ~held
        found[name] = true_rows(held)
    return found


def first_alike(keys: Ints) -> Ints:
    """Return for each row the first one that has the same key."""
    first = row_numbers(len(keys))
    for rows, starts in equal_keys(keys):
        sizes = np.diff(np.append(starts, len(rows)))
        first[rows] = rows[starts].repeat(sizes)
    return first


def _fraction(
    labels: Ints, first: Ints, left: Mask, share: float, seed: int, *, least: int
) -> Mask:
    """Hold out a share of the remaining rows of each class.

    It starts with the rarest class. The rounding error is carried to the next class, so that small
    classes add up to the share. Every class keeps a row in train. Equal rows stay together.
    """
    held, free = np.zeros(len(labels), dtype=bool), np.ones(len(labels), dtype=bool)
    carry = 0.0
    counts = np.bincount(labels[left])
    for label in sorted(np.flatnonzero(counts).tolist(), key=lambda label: int(counts[label])):
        rows = true_rows(left & (labels == label))
        sets, sizes = np.unique(first[rows], return_counts=True)
        known = int(sizes[held[sets]].sum())
        exact = len(rows) * share + carry - known
        count = max(round(exact), int(len(rows) * share) - known)
        raised = least - known if len(rows) >= ENOUGH_OF_CLASS else 0
        order = np.random.default_rng([seed, label]).permutation(np.flatnonzero(free[sets]))
        chosen = _up_to(max(count, raised), sizes, order)
        held[sets[chosen]] = True
        free[sets] = False
        # Rows beyond the share, for the sake of rare classes, aren't taken from other classes.
        carry = min(exact - int(sizes[chosen].sum()) + max(0, raised - count), 0.5)
    return _learnable(labels, first, left, held[first] & left)


def _fold(labels: Ints, first: Ints, left: Mask, fold: int, folds: int, seed: int) -> Mask:
    """Hold out one of several parts, which share out the sets of every class evenly."""
    is_first, order = left & (first == row_numbers(len(first))), [row_numbers(0)]
    for label in range(int(labels.max(initial=-1)) + 1):
        sets = true_rows(is_first & (labels == label))
        order.append(np.random.default_rng([seed, label]).permutation(sets))
    by_label = np.concatenate(order)
    held = np.zeros(len(labels), dtype=bool)
    if len(by_label) >= folds:
        held[by_label[fold - 1 :: folds]] = True
    return _learnable(labels, first, left, held[first] & left)


def _learnable(labels: Ints, first: Ints, left: Mask, held: Mask) -> Mask:
    """Give the first set of each class that was held out altogether back to train."""
    lost = np.setdiff1d(labels[held], labels[left & ~held])
    rows = true_rows(held & np.isin(labels, lost))
    _, index = np.unique(labels[rows], return_index=True)
    return held & ~np.isin(first, first[rows[index]])


def _up_to(wanted: int, sizes: Ints, order: Ints) -> Ints:
    """Choose sets in this order that hold as many rows as wanted together, or nearly so."""
    chosen: list[int] = []
    total = 0
    for block in blocks(order):
        for one, size in zip(block.tolist(), sizes[block].tolist(), strict=True):
            if total >= wanted:
                return np.array(chosen, dtype=np.int64)
            if size < 2 * (wanted - total):  # nearer with it than without
                chosen.append(one)
                total += size
    return np.array(chosen, dtype=np.int64)
