"""Windows: the rows of an id, cut into sequences of a few time steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqtrain.tables.blocks import Codes, Ints


@dataclass(frozen=True)
class Windows:
    """Sequences that are parts of other sequences. W windows.

    Attributes:
        owners: Index of the sequence of each window, (W,).
        starts: Index of the first step of each window among all steps, (W,).
        ends: Index after the last step of each window, (W,).
    """

    owners: Ints
    starts: Ints
    ends: Ints

    def at(self, rows: Ints) -> Windows:
        """Return some of the windows, by their indices."""
        return Windows(self.owners[rows], self.starts[rows], self.ends[rows])

    def labels(self, codes: Codes, rule: str) -> Codes:
        """Return the label of each window, (W,).

        Args:
            codes: Code of the label of each step, -1 for a step without one.
            rule: "majority" for the most frequent label, of several the last one. Otherwise the
                last label counts.
        """
        if rule != "majority":
            return codes[self.ends - 1]
        found = np.empty(len(self.owners), np.int32)
        for window, (start, end) in enumerate(zip(self.starts, self.ends, strict=True)):
            own = codes[start:end][::-1]
            distinct, first, counts = np.unique(own, return_index=True, return_counts=True)
            most = np.lexsort((first, -counts))[0]
            found[window] = distinct[most]
        return found


def cut(offsets: Ints, codes: Codes | None, window: Mapping[str, Any]) -> Windows:
    """Return the windows of sequences.

    A window begins every `stride` steps, until one reaches the end of its sequence. This last one
    may be shorter. With the rule "constant", a window also ends where the label changes, if labels
    are known.

    Args:
        offsets: Index of the first step of each sequence, then the number of steps, (B + 1,).
        codes: Code of the label of each step, or None if labels aren't known.
        window: Value of data.window.
    """
    starts = offsets[:-1]
    ends = offsets[1:]
    if window.get("label") == "constant" and codes is not None and len(codes):
        changes = np.flatnonzero(codes[1:] != codes[:-1]) + 1
        borders = np.union1d(offsets, changes)
        starts = borders[:-1]
        ends = borders[1:]
    size = window.get("steps")
    if size is not None:
        stride = window.get("stride", size)
        counts = 1 + -(-np.maximum(0, ends - starts - size) // stride)
        first = np.repeat(np.cumsum(counts) - counts, counts)
        starts = np.repeat(starts, counts) + stride * (np.arange(len(first)) - first)
        ends = np.repeat(ends, counts)
        is_within = starts < ends  # with gaps between windows, the last one may begin after the end
        starts, ends = starts[is_within], np.minimum(starts + size, ends)[is_within]
    return Windows(np.searchsorted(offsets, starts, side="right") - 1, starts, ends)
