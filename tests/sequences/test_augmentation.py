"""Augmented series: windows and shifts, new in each epoch and equal after a resume."""

import numpy as np

from seqtrain.sequences.batch import augmented
from seqtrain.sequences.store import SequenceStore


def series(rows: int = 400, channels: int = 2, seed: int = 0) -> SequenceStore:
    """Each value tells its row and step, so that what was cut is seen."""
    lengths = np.random.default_rng(seed).integers(1, 40, rows)
    offsets = np.concatenate(([0], lengths.cumsum()))
    values = np.tile(np.arange(offsets[-1], dtype=np.float32)[:, None], (1, channels))
    return SequenceStore(values, offsets, np.arange(rows), np.arange(rows))


def changed(rows: SequenceStore, **how: float) -> SequenceStore:
    settings = {"shift": 0.0, "slice": 0.0, "channels": 2, "seed": 1, "epoch": 2, "batch": 3}
    return augmented(rows, **{**settings, **how})  # type: ignore[arg-type]


def test_a_window_is_a_run_of_the_sequence_anywhere_in_it():
    rows = series()
    cut = changed(rows, slice=0.4)
    assert (cut.lengths >= np.maximum(1, np.rint(0.6 * rows.lengths) - 1e-9)).all()
    starts = cut.values[cut.offsets[:-1], 0]
    for row in range(len(rows)):
        window = cut[row][0][:, 0]
        assert (np.diff(window) == 1).all()
    before = starts - rows.offsets[:-1]
    behind = rows.lengths - cut.lengths - before
    assert before.min() == 0
    assert behind.min() == 0
    long = rows.lengths > 20
    shares = cut.lengths[long] / rows.lengths[long]
    assert abs(shares.mean() - 0.8) < 0.03
    assert abs((before[long] - behind[long]).mean()) < 1
    assert np.array_equal(cut.labels, rows.labels)


def test_a_shift_is_one_number_for_each_channel_of_each_sequence():
    rows = series(channels=3)
    moved = changed(rows, shift=0.3, channels=3)
    away = np.round((moved.values.astype(np.float64) - rows.values), 2)
    for row in range(len(rows)):
        own = away[rows.offsets[row] : rows.offsets[row + 1]]
        assert np.abs(own - own[0]).max() < 0.02
    firsts = away[rows.offsets[:-1]]
    assert abs(firsts.std() - 0.3) < 0.03
    assert abs(firsts.mean()) < 0.03
    assert abs(np.corrcoef(firsts.T)[0, 1]) < 0.15


def test_indicators_and_missing_values_stay():
    rows = series(channels=4)
    rows.values[:, 2:] = 0
    rows.values[::3, 2] = 1
    rows.values[::3, 0] = 0
    moved = changed(rows, shift=5.0, channels=2)
    assert np.array_equal(moved.values[:, 2:], rows.values[:, 2:])
    assert not moved.values[::3, 0].any()
    assert (moved.values[1::3, 0] != rows.values[1::3, 0]).all()
