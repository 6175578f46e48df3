"""Splits: the choice of the rows of train that are held out for validation and test.

Rows are chosen by class, so that each part has about the same share of each class. Rows with equal
sequences, or of one group, form a set. All rows of a set belong to the same split. A mask is an
array of B booleans, one for each of the B rows of train's file.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seqtrain.sequences.store import Ints, row_numbers, true_rows

Part: TypeAlias = float | Mapping[str, Any]
"""Size of a held-out part: a fraction; or {"fold": I, "of": N}, the I-th of N parts, from 1."""
Mask: TypeAlias = npt.NDArray[np.bool_]
BLANK = 0
"""Key of empty sequences. They are never held out, because data.empty may drop them later."""
LEAST_OF_CLASS, ENOUGH_OF_CLASS = 10, 30
"""Smallest number of rows of a class in validation, and of the class for this to apply."""
MANY_ROWS = 100
"""Number of validation rows from which on predicting all correctly is hardly chance."""


def hold_out(
    labels: Ints, parts: Mapping[str, Part], seed: int, keys: Ints | None = None
) -> dict[str, Ints]:
    """Choose the rows of each part that is held out of train.

    - The classes have about the same shares in each part as in all rows.
    - Rows with equal keys are in the same part, or all in train.
    - Each class keeps a row in train.
    - Parts are chosen in their order. A later part doesn't change an earlier one.

    Args:
        labels: Class of each row, from 0, (B,).
        parts: Size of each part, by its name. A fraction is a share of all rows. Folds divide the
            rows that aren't in earlier parts.
        seed: Seed of the choice.
        keys: Key of each row, (B,), or None if all rows have different keys. Rows with the key
            `BLANK` aren't held out, and fractions don't count them.

    Returns:
        The row numbers of each part, ascending, by its name.
    """
    first = row_numbers(len(labels)) if keys is None else first_equal_rows(keys)
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


def first_equal_rows(keys: Ints) -> Ints:
    """Return for each row the number of the first row that has the same key, (B,)."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    rows: Ints = first[inverse].astype(row_numbers(0).dtype)
    return rows


def _fraction(
    labels: Ints, first: Ints, left: Mask, share: float, seed: int, *, least: int
) -> Mask:
    """Return a mask of rows that are held out: a share of the remaining rows of each class.

    Every class keeps a row in train. Classes are processed from the rarest to the most frequent.
    The rounding error of a class is added to the next one, so that small classes add up to the
    share.

    Args:
        labels: Class of each row, from 0, (B,).
        first: For each row the number of the first row with the same key, (B,).
        left: Mask of the remaining rows: rows that can be held out.
        share: Share of the remaining rows, in [0, 1].
        seed: Seed of the choice.
        least: Smallest number of rows to hold out of a class that has at least ENOUGH_OF_CLASS
            rows.
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
        chosen = _choose_sets(max(count, raised), sizes, order)
        held[sets[chosen]] = True
        free[sets] = False
        # Rows beyond the share, for the sake of rare classes, aren't taken from other classes.
        carry = min(exact - int(sizes[chosen].sum()) + max(0, raised - count), 0.5)
    return _leave_each_class(labels, first, left, held[first] & left)


def _fold(labels: Ints, first: Ints, left: Mask, fold: int, folds: int, seed: int) -> Mask:
    """Return a mask of the rows of one fold. Each fold has about the same share of each class.

    Args:
        labels: Class of each row, from 0, (B,).
        first: For each row the number of the first row with the same key, (B,).
        left: Mask of the rows that are divided into folds.
        fold: Number of the fold, from 1.
        folds: Number of folds.
        seed: Seed of the division.
    """
    is_first, order = left & (first == row_numbers(len(first))), [row_numbers(0)]
    for label in range(int(labels.max(initial=-1)) + 1):
        sets = true_rows(is_first & (labels == label))
        order.append(np.random.default_rng([seed, label]).permutation(sets))
    by_label = np.concatenate(order)
    held = np.zeros(len(labels), dtype=bool)
    if len(by_label) >= folds:
        held[by_label[fold - 1 :: folds]] = True
    return _leave_each_class(labels, first, left, held[first] & left)


def _leave_each_class(labels: Ints, first: Ints, left: Mask, held: Mask) -> Mask:
    """Return a mask of held-out rows that leaves each class in train.

    If all rows of a class are held out, its first row goes back to train. All rows with the same
    key go back, too.

    Args:
        labels: Class of each row, (B,).
        first: For each row the number of the first row with the same key, (B,).
        left: Mask of the rows that can be held out.
        held: Mask of the rows that were chosen.
    """
    lost = np.setdiff1d(labels[held], labels[left & ~held])
    rows = true_rows(held & np.isin(labels, lost))
    _, index = np.unique(labels[rows], return_index=True)
    return held & ~np.isin(first, first[rows[index]])


def _choose_sets(rows: int, sizes: Ints, order: Ints) -> Ints:
    """Return the indices of sets that together have about `rows` rows.

    A set is all rows with the same key.

    Args:
        rows: Wanted number of rows.
        sizes: Number of rows of each set.
        order: Indices of the sets in the order in which they are tried.
    """
    chosen: list[int] = []
    total = 0
    for one, size in zip(order.tolist(), sizes[order].tolist(), strict=True):
        if total >= rows:
            break
        if size < 2 * (rows - total):  # the total is nearer to `rows` with this set
            chosen.append(one)
            total += size
    return np.array(chosen, dtype=np.int64)
