"""Stores of sequences, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.data.store import SequenceStore


class StoreBuilder:
    """Grows a store row by row.

    Args:
        channels: width of a feature vector; 0 for ids.
    """

    def __init__(self, channels: int = 0) -> None:
        self._steps = [np.empty((0, channels), np.float32) if channels else np.empty(0, np.int32)]
        self._labels: list[int] = []
        self._lines: list[int] = []

    def add_ids(self, ids: npt.ArrayLike, label: int, line: int) -> None:
        """Append a sequence of ids (T,)."""
        self._add(np.asarray(ids, dtype=np.int32), label, line)

    def add_features(self, features: npt.NDArray[Any], label: int, line: int) -> None:
        """Append a sequence of feature vectors (T, C)."""
        self._add(np.asarray(features, dtype=np.float32), label, line)

    def _add(self, steps: npt.NDArray[Any], label: int, line: int) -> None:
        self._steps.append(steps)
        self._labels.append(label)
        self._lines.append(line)

    def build(self) -> SequenceStore:
        """Return what was added."""
        offsets = np.cumsum([len(steps) for steps in self._steps])
        labels, lines = np.array(self._labels, np.int64), np.array(self._lines, np.int64)
        return SequenceStore(np.concatenate(self._steps), offsets, labels, lines)
