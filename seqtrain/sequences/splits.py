"""Splits: the choice of the rows of train that are held out for validation and test.

Rows are chosen by class, so that each part has about the same share of each class. Rows with equal
sequences, or of one group, form a set. All rows of a set belong to the same split. A mask is an
array of B booleans, one for each of the B rows of train's file.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from seqtrain.sequences.store import row_numbers, true_rows
from seqtrain.tables.blocks import Ints, Mask

PartSize: TypeAlias = float | Mapping[str, Any]
"""Size of a held-out part: a fraction; or {"fold": I, "of": N}, the I-th of N parts, from 1."""
BLANK = 0
"""Key of empty sequences. They are never held out, because data.empty may drop them later."""
LEAST_OF_CLASS, ENOUGH_OF_CLASS = 10, 30
"""Smallest number of rows of a class in validation, and of the class for this to apply."""
MANY_ROWS = 100
"""Number of validation rows from which on predicting all correctly is hardly chance."""
USUAL_SHARES = {1000: 0.2, 100_000: 0.1}
"""Usual share of train that is held out, below each number of rows. Of more rows, it is 0.02."""


def usual_share(rows: int) -> float:
    """Return the usual share of train to hold out for validation."""
    return next((share for limit, share in USUAL_SHARES.items() if rows < limit), 0.02)


def hold_out(
    labels: Ints, parts: Mapping[str, PartSize], seed: int, keys: Ints | None = None
) -> dict[str, Ints]:
    """Choose the rows of each part that is held out of train.

    - The classes have about the same shares in each part as in all rows.
    - Rows with equal keys are in the same part, or all in train.
    - Each class keeps a row in train. A class with two sets of rows also has a row in a fraction,
      unless its sets hold other classes that would lose train by it.
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
    if keys is None:
        first = row_numbers(len(labels))
        left = np.ones(len(labels), dtype=bool)
    else:
        first = first_equal_rows(keys)
        left = np.asarray(keys != BLANK)
    rows = int(left.sum())
    found = {}
    for name, part in parts.items():
        if isinstance(part, float):
            share = min(part * rows / max(1, int(left.sum())), 1.0)
            least = LEAST_OF_CLASS if name == "validation" else 1
            held = _fraction(labels, first, left, share, seed, least=least)
        else:
            held = _fold(labels, first, left, part["fold"], part["of"], seed)
        left &= ~held
        found[name] = true_rows(held)
    return found


def first_equal_rows(keys: Ints) -> Ints:
    """Return for each row the number of the first row that has the same key, (B,)."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return first[inverse].astype(row_numbers(0).dtype)


def equal_rows(keys: Ints) -> list[list[int]]:
    """Return the row numbers of each sequence that occurs several times, by its first row."""
    first = first_equal_rows(keys)
    several = (np.bincount(first)[first] > 1) & (keys != BLANK)
    found = dict[int, list[int]]()
    for row in np.flatnonzero(several).tolist():
        found.setdefault(int(first[row]), []).append(row)
    return list(found.values())


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
    held = np.zeros(len(labels), dtype=bool)
    free = np.ones(len(labels), dtype=bool)
    carry = 0.0
    counts = np.bincount(labels[left])
    for label in sorted(np.flatnonzero(counts).tolist(), key=lambda label: int(counts[label])):
        rows = true_rows(left & (labels == label))
        sets, sizes = np.unique(first[rows], return_counts=True)
        known = int(sizes[held[sets]].sum())
        exact = len(rows) * share + carry - known
        count = max(round(exact), int(len(rows) * share) - known)
        if len(rows) >= ENOUGH_OF_CLASS:
            raised = least
        else:
            raised = min(1, len(sets) - 1)
        order = np.random.default_rng([seed, label]).permutation(np.flatnonzero(free[sets]))
        chosen = _choose_sets(max(count, raised - known), sizes, order)
        held[sets[chosen]] = True
        free[sets] = False
        # Rows beyond the share, for the sake of rare classes, aren't taken from other classes.
        carry = min(exact - int(sizes[chosen].sum()) + max(0, raised - known - count), 0.5)
    return _on_both_sides(labels, first, left, held[first] & left, hold=True)


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
    is_first = left & (first == row_numbers(len(first)))
    order = [row_numbers(0)]
    for label in range(int(labels.max(initial=-1)) + 1):
        sets = true_rows(is_first & (labels == label))
        order.append(np.random.default_rng([seed, label]).permutation(sets))
    by_label = np.concatenate(order)
    held = np.zeros(len(labels), dtype=bool)
    if len(by_label) >= folds:
        held[by_label[fold - 1 :: folds]] = True
    return _on_both_sides(labels, first, left, held[first] & left, hold=False)


def _on_both_sides(labels: Ints, first: Ints, left: Mask, held: Mask, *, hold: bool) -> Mask:
    """Return a mask of held-out rows by which each class keeps a row in train.

    Args:
        labels: Class of each row, (B,).
        first: For each row the number of the first row with the same key, (B,).
        left: Mask of the rows that can be held out.
        held: Mask of the rows that were chosen.
        hold: True to also hold out a set of each class of which none was chosen, as long as every
            class keeps a set in train. With sets of several classes, there may be no such set.
    """
    rows = true_rows(left)
    names, sets, sizes = np.unique(first[rows], return_inverse=True, return_counts=True)
    is_held = held[names]
    classes = int(labels.max(initial=-1)) + 1
    set_of, class_of = np.divmod(np.unique(sets * classes + labels[rows]), max(1, classes))
    total = np.bincount(class_of, minlength=classes)
    out = np.bincount(class_of[is_held[set_of]], minlength=classes)

    def move(label: int, *, to_train: bool) -> None:
        own = set_of[class_of == label]
        own = own[is_held[own] == to_train]
        if not to_train:
            own = own[[bool((total - out)[class_of[set_of == x]].min() > 1) for x in own.tolist()]]
            own = own[np.argsort(sizes[own], kind="stable")]
        if len(own):
            is_held[own[0]] = not to_train
            out[class_of[set_of == own[0]]] += -1 if to_train else 1

    for label in np.flatnonzero((total > 0) & (out == total)).tolist():
        if out[label] == total[label]:
            move(label, to_train=True)
    if hold:
        for label in np.flatnonzero((total > 1) & (out == 0)).tolist():
            if not out[label]:
                move(label, to_train=False)
    found = np.zeros(len(labels), bool)
    found[rows] = is_held[sets]
    return found


def _choose_sets(rows: int, sizes: Ints, order: Ints) -> Ints:
    """Return the indices of sets that together have about `rows` rows.

    A set is all rows with the same key.

    Args:
        rows: Wanted number of rows.
        sizes: Number of rows of each set.
        order: Indices of the sets in the order in which they are tried.
    """
    chosen = []
    total = 0
    for one, size in zip(order.tolist(), sizes[order].tolist(), strict=True):
        if total >= rows:
            break
        if size < 2 * (rows - total):  # the total is nearer to `rows` with this set
            chosen.append(one)
            total += size
    return np.array(chosen, dtype=np.int64)
