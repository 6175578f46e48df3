"""Occlusion: the weight of each time step for a prediction, measured by leaving the step out."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch.nn import functional

from seqtrain.evaluation.logits import predict_logits
from seqtrain.model.network import ClassifierNetwork
from seqtrain.sequences.columns.tables import ColumnTable
from seqtrain.sequences.decisions import best_class, reached
from seqtrain.sequences.store import SequenceStore, stacked
from seqtrain.tables.blocks import Ints

MOST_SEGMENTS = 256
"""Largest number of segments that are left out of a sequence, one at a time. In a longer sequence a
segment has several steps, which share its weight equally."""


def occlusion_weights(
    model: ClassifierNetwork,
    store: SequenceStore,
    row: int,
    device: torch.device,
    thresholds: Sequence[float],
    steps: ColumnTable | None,
    row_features: ColumnTable | None,
) -> tuple[list[float], list[float]]:
    """Return the weight of each time step and of each row feature for the prediction of a row.

    The weight of a step is the log-probability of the prediction, minus the log-probability of the
    same prediction without the step, in nats.

    - In a table of steps each cell has a weight. The cell is replaced by <unk> or a missing value.
    - Row features are measured in the same way as cells.
    - In a multi-label task the prediction is the decision on each class at its threshold.
    - A sequence of one step is compared with equal probabilities.
    - If there are more than `MOST_SEGMENTS` steps, neighbouring steps are left out together and
      share their weight.
    - States aren't carried over from other rows.

    Args:
        model: The model, on the device.
        store: Encoded sequences.
        row: Index of the row in the store.
        device: Device of the model.
        thresholds: Threshold of each class, (C,). In a single-label task it may be empty, to
            predict the most probable class.
        steps: Encoding of the step columns, or None if a step is one token or vector.
        row_features: Encoding of the row features, or None if there are none.

    Returns:
        The weights of the time steps, and the weights of the row features. In a table of steps, the
        cells of the first step come first, then the cells of the second step, and so on.

    Reference:
        Li et al. 2016, "Understanding Neural Networks through Representation Erasure",
        arXiv:1612.08220.
    """
    original = store.__getitems__(np.array([row]))
    length, columns = len(original.values), 1 if steps is None else len(steps.names)
    segments = np.array_split(np.arange(length), min(length, MOST_SEGMENTS))
    variants = [original, *_variants(original, segments, steps, row_features)]
    logits = predict_logits(model, stacked(variants, words=original.words), device).double()
    if model.multi_label:
        decided = torch.from_numpy(reached(logits[0].sigmoid(), thresholds))
        found = functional.logsigmoid(torch.where(decided, logits, -logits)).sum(1)
        of_equal = -np.log(2) * logits.shape[1]
    else:
        chosen = int(best_class(logits[0].softmax(0), thresholds))
        found = logits.log_softmax(dim=1)[:, chosen]
        of_equal = -np.log(logits.shape[1])
    falls = (found[0] - found[1:]).tolist()
    if steps is None and length == 1:
        falls[0] = float(found[0]) - float(of_equal)
    by_segment = np.split(np.array(falls[: len(segments) * columns]), len(segments))
    weights = []
    for segment, own in zip(segments, by_segment, strict=True):
        weights += (own / len(segment)).tolist() * len(segment)
    return weights, falls[len(segments) * columns :]


def _variants(
    original: SequenceStore,
    segments: Sequence[Ints],
    steps: ColumnTable | None,
    row_features: ColumnTable | None,
) -> Iterator[SequenceStore]:
    """Yield copies of a sequence that lack one segment each, and then ones without a row feature.

    A segment is a range of time steps. In a table of steps, a copy lacks the cells of one column in
    a segment. A sequence of one token or vector is yielded unchanged.

    Args:
        original: Store of one sequence.
        segments: Time steps of each segment.
        steps: Encoding of the step columns, or None if a step is one token or vector.
        row_features: Encoding of the row features, or None if there are none.
    """
    row = np.array([0])  # indexing by an array copies
    for segment in segments:
        whole = slice(segment[0], segment[-1] + 1)
        if steps is None:
            is_only_step = len(original.values) == 1
            yield original if is_only_step else _without(original, whole)
            continue
        for column in range(len(steps.names)):
            changed = original.__getitems__(row)
            steps.erase(changed.values[whole], column)
            yield changed
    if row_features is not None and original.static is not None:
        for feature in range(len(row_features.names)):
            changed = original.__getitems__(row)
            assert changed.static is not None
            row_features.erase(changed.static, feature)
            yield changed


def _without(sequence: SequenceStore, segment: slice) -> SequenceStore:
    """Return a copy of a store of one sequence without the steps in `segment`."""
    values = np.delete(sequence.values, segment, axis=0)
    spelled = sequence.spellings
    if spelled is not None:
        spelled = np.delete(spelled, segment, axis=0)
    offsets = np.array([0, len(values)])
    return replace(sequence, values=values, offsets=offsets, spellings=spelled)
