"""Stores of given sequences."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from seqtrain.sequences.store import SequenceStore


def store_of(
    sequences: Iterable[Any], labels: Sequence[int] = (), lines: Sequence[int] = ()
) -> SequenceStore:
    """Return ids (T,) or feature vectors (T, C) as a store; its labels are 0, its lines 1, 2, …"""
    rows = [np.asarray(row) for row in sequences]
    labels = np.array(labels or [0] * len(rows), np.int64)
    lines = np.array(lines or range(1, len(rows) + 1), np.int64)
    values = np.concatenate(rows).astype(np.int32 if rows[0].ndim == 1 else np.float32)
    return SequenceStore(values, np.cumsum([0, *map(len, rows)]), labels, lines)
