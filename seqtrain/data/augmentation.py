"""Random shifts and windows of series in training. They depend on seed, epoch and batch only."""

from dataclasses import replace

import numpy as np

from seqtrain.data.store import SequenceStore

DRAWS = 0x617567
"""Part of the seed that makes these draws differ from those of the batch plan."""


def augmented(
    rows: SequenceStore,
    *,
    shift: float,
    slice: float,
    channels: int,
    seed: int,
    epoch: int,
    batch: int,
) -> SequenceStore:
    """Return the sequences of a batch, changed.

    A window is cut first: of U(1 - slice, 1) of a sequence's steps, rounded, at least one, anywhere
    within it. Then each channel of each sequence is shifted by one number from N(0, shift²), in
    standard deviations of the channel in train. Only the first `channels` of a vector are shifted:
    those behind are indicators of missing values.
    """
    generator = np.random.default_rng([seed, epoch, batch, DRAWS])
    share, left = generator.random((2, len(rows)))
    shifts = generator.standard_normal((len(rows), channels), dtype=np.float32)
    if slice:
        lengths = np.maximum(1, np.rint(rows.lengths * (1 - slice * share)).astype(np.int64))
        starts = rows.offsets[:-1] + (left * (rows.lengths - lengths + 1)).astype(np.int64)
        offsets = np.concatenate(([0], lengths.cumsum()))
        steps = np.arange(offsets[-1]) + (starts - offsets[:-1]).repeat(lengths)
        rows = replace(rows, values=rows.values[steps], offsets=offsets)
    if shift:
        values = rows.values.copy()
        values[:, :channels] += (shift * shifts).repeat(rows.lengths, axis=0)
        absent = values[:, channels:] > 0
        if absent.shape[1]:
            values[:, :channels][absent] = 0
        rows = replace(rows, values=values)
    return rows
