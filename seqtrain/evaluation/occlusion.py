"""How much each time step speaks for a prediction: its log-probability falls without the step."""

from dataclasses import replace

import numpy as np
import torch
from torch.nn import functional

from seqtrain.data.column_coding import ColumnCoding
from seqtrain.data.store import SequenceStore, stacked
from seqtrain.evaluation.logits import predict_logits
from seqtrain.model.classifier import ClassifierNetwork

PIECES = 256
"""Pieces of a sequence that are left out at most, one after another; a long one's hold several
steps, which share their weight."""


def occlusion_weights(
    model: ClassifierNetwork, store: SequenceStore, row: int, device: torch.device,
    steps: ColumnCoding | None, static: ColumnCoding | None,
) -> tuple[list[float], list[float]]:  # fmt: skip
    """Return how much a row's time steps, and the facts beside it, speak for its prediction.

    It is the log-probability of the predicted label, less that of the sequence without the step, in
    nats; a sequence of one step is compared with equal probabilities. Of several labels it is that
    of all decisions, label by label. Of steps with columns each cell has a weight, step by step: a
    cell is not left out, but <unk> or missing. Costs as many runs as there are weights; no state is
    carried.

    Reference:
        Li et al. 2016, "Understanding Neural Networks through Representation Erasure",
        arXiv:1612.08220.
    """
    one = store.__getitems__(np.array([row]))
    length, columns = len(one.values), 1 if steps is None else len(steps.names)
    pieces = np.array_split(np.arange(length), min(length, PIECES))
    rows = [one]
    for piece in pieces:
        for column in range(columns):
            changed = one.__getitems__(np.array([0]))
            if steps is not None:
                steps.erase(changed.values[piece[0] : piece[-1] + 1], column)
            elif length > 1:
                changed = _without(one, slice(piece[0], piece[-1] + 1))
            rows.append(changed)
    for fact in range(0 if static is None else len(static.names)):
        changed = one.__getitems__(np.array([0]))
        assert static is not None
        assert changed.static is not None
        static.erase(changed.static, fact)
        rows.append(changed)
    logits = predict_logits(model, stacked(rows, words=one.words), device).double()
    found, nothing_known = logits.log_softmax(dim=1), np.log(logits.shape[1])
    of_label = found[:, int(found[0].argmax())]
    if model.multi_label:
        of_label = functional.logsigmoid(torch.where(logits[0] >= 0, logits, -logits)).sum(1)
        nothing_known = np.log(2) * logits.shape[1]
    falls = (of_label[0] - of_label[1:]).tolist()
    if steps is None and length == 1:
        falls[0] = float(of_label[0]) + float(nothing_known)
    of_pieces = np.split(np.array(falls[: len(pieces) * columns]), len(pieces))
    of_steps = [
        weight
        for own, piece in zip(of_pieces, pieces, strict=True)
        for _ in piece
        for weight in (own / len(piece)).tolist()
    ]
    return of_steps, falls[len(pieces) * columns :]


def _without(one: SequenceStore, piece: slice) -> SequenceStore:
    values = np.delete(one.values, piece, axis=0)
    spelled = None if one.spellings is None else np.delete(one.spellings, piece, axis=0)
    return replace(one, values=values, offsets=np.array([0, len(values)]), spellings=spelled)
