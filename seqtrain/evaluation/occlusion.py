"""How much each time step speaks for a prediction: its log-probability falls without the step."""

import numpy as np
import torch

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
    nats; a sequence of one step is compared with equal probabilities. Costs as many runs as there
    are steps; no state is carried.

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
    found = predict_logits(model, without, device).double().log_softmax(dim=1)
    of_label = found[:, int(found[0].argmax())]
    if len(pieces) == 1:
        return [float(of_label[0]) + float(np.log(found.shape[1]))]
    falls = (of_label[0] - of_label[1:]).tolist()
    return [fall / len(piece) for fall, piece in zip(falls, pieces, strict=True) for _ in piece]
