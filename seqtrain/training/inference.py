"""Logits and scores of a whole store, batched by length, in the order of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from seqtrain.config.schema import BatchingConfig
from seqtrain.data.batching import plan_in_order_of_length
from seqtrain.data.collate import Batch, collate
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.engines.interface import ProjectedTable
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
    before_batch: Callable[[], None] = lambda: None,
) -> Tensor:
    """Return the logits of every sequence, those of like length computed together.

    Args:
        model: on the device; switched to evaluation meanwhile.
        store: the sequences.
        device: where to compute.
        batching: how many go together.
        carried: where groups begin, and then where they ended (initial_state carried); None: all
            begin anew.
        before_batch: is called before each batch; what it raises ends the work.

    Raises:
        RunError: memory ran out.

    Shape:
        Returns: (B, C) float32, on the CPU.
    """
    groups = store.groups if model.config.initial_state == "carried" else None
    carried = None if groups is None else carried or CarriedStates()
    plan = plan_in_order_of_length(store.lengths, batching, groups)
    pays = len(store.values) >= TOKENS_A_ROW * len(model.embedding.weight)
    vocabulary = model.project_vocabulary() if pays else None
    put_together = partial(collate, sort=batching.sort)
    batches = _announced(plan, before_batch)
    return logits_of_batches(model, store, batches, device, vocabulary, put_together, carried)


def _announced(plan: list[Ints], before_batch: Callable[[], None]) -> Iterator[Ints]:
    for rows in plan:
        before_batch()
        yield rows


@torch.inference_mode()
def logits_of_batches(
    model: SequenceClassifier,
    store: SequenceStore,
    batches: Iterable[Ints],
    device: torch.device,
    vocabulary: ProjectedTable | None = None,
    collate: Callable[[SequenceStore], Batch] = collate,
    carried: CarriedStates | None = None,
) -> Tensor:
    """Return the logits of every sequence; the one place where rows return to input order.

    Args:
        model: on the device; switched to evaluation meanwhile.
        store: the sequences.
        batches: row numbers, each row once.
        device: where to compute.
        vocabulary: `model.project_vocabulary()`, or None.
        collate: makes a batch of rows.
        carried: as for `predict_logits`, each row in a later batch than the row before it in its
            group; None: every row stands alone.

    Raises:
        RunError: memory ran out.

    Shape:
        Returns: (B, C) float32, on the CPU.
    """
    was_training = model.training
    model.eval()
    logits = torch.empty(len(store), model.head.out_features)
    groups = None if carried is None else store.groups
    carried = carried or CarriedStates()
    try:
        for rows in batches:
            with memory_errors(store.lengths[rows], "data.max_length, or cut the sequences"):
                batch = collate(store.__getitems__(rows)).to(device)
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
    model: SequenceClassifier,
    store: SequenceStore,
    names: Sequence[str],
    device: torch.device,
    before_batch: Callable[[], None] = lambda: None,
) -> Scores:
    """Score a model on labelled sequences.

    Args:
        model: on the device.
        store: the sequences.
        names: label of each class index.
        device: where to compute.
        before_batch: is called before each batch; what it raises ends the work.

    Raises:
        RunError: memory ran out.
    """
    logits = predict_logits(model, store, device, before_batch=before_batch)
    return score(logits, torch.tensor(store.labels), torch.tensor(store.lengths), names)
