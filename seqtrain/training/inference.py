"""Logits and scores of a whole store, batched by length, in the order of its rows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seqtrain.config.schema import BatchingConfig
from seqtrain.data.batching import plan_in_order_of_length
from seqtrain.data.collate import collate
from seqtrain.data.store import SequenceStore
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.training.carried import CarriedStates
from seqtrain.training.memory import memory_errors
from seqtrain.training.metrics import Scores, score

EVALUATION_BATCHING = BatchingConfig(max_tokens=16384)
TOKENS_A_ROW = 4
"""Tokens to classify for each token of the vocabulary, from which on it pays to project them all
beforehand: the distinct tokens of a batch are about a quarter of it."""


@torch.inference_mode()
def predict_logits(
    model: SequenceClassifier,
    store: SequenceStore,
    device: torch.device,
    batching: BatchingConfig = EVALUATION_BATCHING,
    carried: CarriedStates | None = None,
) -> Tensor:
    """Return the logits of every sequence; the one place where rows return to input order.

    Args:
        model: on the device; switched to evaluation meanwhile.
        store: the sequences.
        device: where to compute.
        batching: how many go together.
        carried: where groups begin, and then where they ended (initial_state carried); None: all
            begin anew.

    Raises:
        RunError: memory ran out.

    Shape:
        Returns: (B, C) float32, on the CPU.
    """
    was_training = model.training
    model.eval()
    logits = torch.empty(len(store), model.head.out_features)
    pays = len(store.values) >= TOKENS_A_ROW * len(model.embedding.weight)
    vocabulary = model.project_vocabulary() if pays else None
    groups = store.groups if model.config.initial_state == "carried" else None
    carried = carried or CarriedStates()
    try:
        for rows in plan_in_order_of_length(store.lengths, batching, groups):
            with memory_errors(store.lengths[rows], "data.max_length, or cut the sequences"):
                batch = collate(store.__getitems__(rows), batching.sort).to(device)
                own = None
                if groups is not None:
                    own = groups[rows[batch.sorted_indices.cpu().numpy()]]
                start = carried.starts(own, model)
                logits_of_batch, states = model.carry(
                    batch.inputs, batch.lengths, start, vocabulary=vocabulary
                )
                carried.keep(own, states)
                restored = logits_of_batch[batch.unsorted_indices]
                logits[torch.from_numpy(rows)] = restored.float().cpu()
    finally:
        model.train(was_training)
    return logits


def score_store(
    model: SequenceClassifier, store: SequenceStore, names: Sequence[str], device: torch.device
) -> Scores:
    """Score a model on labelled sequences.

    Args:
        model: on the device.
        store: the sequences.
        names: label of each class index.
        device: where to compute.

    Raises:
        RunError: memory ran out.
    """
    logits = predict_logits(model, store, device)
    return score(logits, torch.tensor(store.labels), torch.tensor(store.lengths), names)
