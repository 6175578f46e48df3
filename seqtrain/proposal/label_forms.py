"""Forms of labels: marks of several columns, lists, multi-hot lists, and joined names."""

import re
from collections import Counter
from collections.abc import Mapping

import numpy as np

from seqtrain.proposal.profile import Column

MARKS = {"1", "0", "1.0", "0.0", "true", "false", "yes", "no", ""}
"""Cells that mark or deny the label of their column, in lower case."""
TAGS = re.compile(r"(?:<[^<>]+>)+")


def is_multi_hot(column: Column) -> bool:
    """Return True if a column holds lists of one length with only 0 and 1, two or more."""
    if column.cell_kind != "numbers" or not column.lists or column.distinct < 2:
        return False
    sizes = {len(numbers) for numbers in column.lists}
    if len(sizes) != 1 or min(sizes) < 2:
        return False
    return all(np.isin(numbers, (0, 1)).all() for numbers in column.lists)


def repeats_multi_hot(column: Column) -> bool:
    """Return True if a column holds multi-hot lists that repeat, as those of labels do."""
    if not is_multi_hot(column):
        return False
    if any(isinstance(value, np.ndarray) for value in column.values):  # equal arrays are apart
        distinct = len({tuple(numbers) for numbers in column.lists})
        return 2 <= distinct <= len(column.lists) / 2
    return column.distinct <= column.rows / 2


def joined_mark(counts: Mapping[str, int]) -> str | None:
    """Return the mark that seems to join several labels, `/`, a blank, or `><`, or None.

    The labels must be combinations: each part is in several of them, and there are fewer parts.
    """
    if len(counts) > 2 and all(TAGS.fullmatch(label) for label in counts):
        return "><"
    for mark in ("/", " "):
        parts = Counter(part for label in counts for part in {*label.split(mark)} if part)
        has_single = any(part in counts for part in parts)
        lists = sum(mark in label for label in counts)
        are_shared = len(parts) < len(counts) and all(count > 1 for count in parts.values())
        if lists > 1 and has_single and are_shared:
            return mark
    return None
