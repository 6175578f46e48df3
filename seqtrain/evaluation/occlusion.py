"""How much each time step speaks for a prediction: its log-probability falls without the step."""

import numpy as np
import torch
from torch.nn import functional

from seqtrain.data.column_coding import ColumnCoding
from seqtrain.data.store import SequenceStore
from seqtrain.evaluation.logits import predict_logits
from seqtrain.model.classifier import ClassifierNetwork

PIECES = 256
"""Pieces of a sequence that are left out at most, one after another; a long one's hold several
steps, which share their weight."""


def step_weights(
    model: ClassifierNetwork, store: SequenceStore, row: int, device: torch.device
) -> list[float]:
    """Return how much each time step of a row's sequence speaks for the model's prediction.

    It is the log-probability of the predicted label, less that of the sequence without the step, in
    nats; a sequence of one step is compared with equal probabilities. Of several labels it is that
    of all decisions, label by label. Costs as many runs as there are steps; no state is carried.

    Reference:
        Li et al. 2016, "Understanding Neural Networks through Representation Erasure",
        arXiv:1612.08220.
    """
    start, length = int(store.offsets[row]), int(store.lengths[row])
    pieces = np.array_split(np.arange(length), min(length, PIECES))
    kept = [np.arange(length)]
    if len(pieces) > 1:
        kept += [np.delete(kept[0], piece) for piece in pieces]
    steps = start + np.concatenate(kept)
    nothing = np.zeros(len(kept), dtype=np.int64)
    without = SequenceStore(
        store.values[steps],
        np.cumsum([0, *map(len, kept)]),
        labels=nothing,
        lines=nothing,
        spellings=None if store.spellings is None else store.spellings[steps],
        words=store.words,
        static=None if store.static is None else store.static[[row]].repeat(len(kept), axis=0),
    )
    logits = predict_logits(model, without, device).double()
    found, nothing_known = logits.log_softmax(dim=1), np.log(logits.shape[1])
    of_label = found[:, int(found[0].argmax())]
    if model.several:
        of_label = functional.logsigmoid(torch.where(logits[0] >= 0, logits, -logits)).sum(1)
        nothing_known = np.log(2) * logits.shape[1]
    if len(pieces) == 1:
        return [float(of_label[0]) + float(nothing_known)]
    falls = (of_label[0] - of_label[1:]).tolist()
    return [fall / len(piece) for fall, piece in zip(falls, pieces, strict=True) for _ in piece]


def cell_weights(
    model: ClassifierNetwork, store: SequenceStore, row: int, device: torch.device,
    steps: ColumnCoding | None, static: ColumnCoding | None,
) -> tuple[list[list[float]], list[float]]:  # fmt: skip
    """Return how much each cell of a row's steps, and each fact beside it, speaks as above.

    A cell counts by what the prediction loses where it is <unk> or missing.
    """
    one = store.__getitems__(np.array([row]))
    length = len(one.values)
    pieces = np.array_split(np.arange(length), min(length, PIECES)) if steps is not None else []
    columns = [] if steps is None else range(len(steps.names))
    facts = [] if static is None else range(len(static.names))
    changes = [(piece, column) for piece in pieces for column in columns]
    count = 1 + len(changes) + len(facts)
    many = one.__getitems__(np.zeros(count, dtype=np.int64))
    for number, (piece, column) in enumerate(changes, start=1):
        assert steps is not None
        first = number * length
        steps.erase(many.values[first + piece[0] : first + piece[-1] + 1], column)
    for number, fact in enumerate(facts, start=1 + len(changes)):
        assert static is not None
        assert many.static is not None
        static.erase(many.static[number : number + 1], fact)
    found = predict_logits(model, many, device).double().log_softmax(dim=1)
    of_label = found[:, int(found[0].argmax())]
    falls = (of_label[0] - of_label[1:]).tolist()
    of_pieces = [falls[i * len(columns) : (i + 1) * len(columns)] for i in range(len(pieces))]
    of_steps = [
        [fall / len(piece) for fall in own]
        for own, piece in zip(of_pieces, pieces, strict=True)
        for _ in piece
    ]
    return of_steps, falls[len(changes) :]
