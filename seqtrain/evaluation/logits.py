"""Logits and scores of a whole store, batched by length, in the order of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, TypeAlias

import torch
from torch import Tensor

from seqtrain.config.schema import BatchingConfig
from seqtrain.data.batch import Batch, collate
from seqtrain.data.batches import map_batches
from seqtrain.data.plan import plan_in_order_of_length
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.errors import RunError
from seqtrain.evaluation.calibration import (
    LEVELS,
    Calibration,
    coverage_points,
    double_blocks,
    fit_temperature,
)
from seqtrain.evaluation.carried import CarriedStates
from seqtrain.evaluation.metrics import Scores, score
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.engines.interface import ProjectedTable
from seqtrain.model.ngrams import joint
from seqtrain.model.randomness import Noise
from seqtrain.processes.group import ALONE, Group

Answer: TypeAlias = Callable[[Sequence[Tensor]], Tensor]
"""From the logits of each part, (B, C), to those of one answer."""
EVALUATION_BATCHING = BatchingConfig(max_tokens=16384)
PARTS = ("recurrent", "ngrams")
"""Names of a model's parts, in the order of their logits."""
TOKENS_A_ROW = 4
"""Tokens to classify for each token of the vocabulary, from which on it pays to project them all
beforehand: the distinct tokens of a batch are about a quarter of it."""


def classify(
    model: SequenceClassifier,
    batch: Batch,
    carried: CarriedStates | None = None,
    *,
    vocabulary: ProjectedTable | None = None,
    bptt: int | None = None,
    noise: Noise | None = None,
) -> list[Tensor]:
    """Return the logits of a batch, each sequence from the state that its group ended in.

    Args:
        model: on the batch's device.
        batch: no two sequences of one group.
        carried: where groups begin, and then where they end; None: every sequence stands alone.
        vocabulary: `model.project_vocabulary()`, or None.
        bptt: time steps that gradients reach back at most; None: all.
        noise: of the update; None: evaluation.

    Shape:
        Returns: (B, C) of each part of the model, row by row of the batch; `model.answer`
        makes one answer of them.
    """
    start = None if carried is None else carried.starts(batch.groups, model)
    parts, states = model.carry_parts(
        batch.inputs,
        batch.lengths,
        start,
        vocabulary=vocabulary,
        bptt=bptt,
        spellings=batch.spellings,
        noise=noise,
    )
    if carried is not None and start is not None:  # autocast may have lowered the states
        carried.keep(batch.groups, states.to(start.dtype))
    return parts


@torch.inference_mode()
def predict_logits(
    model: SequenceClassifier,
    store: SequenceStore,
    device: torch.device,
    batching: BatchingConfig = EVALUATION_BATCHING,
    carried: CarriedStates | None = None,
    before_batch: Callable[[], None] = lambda: None,
    answer: Answer | None = None,
    group: Group = ALONE,
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
        answer: makes one answer of the model's parts; None: the model's own, calibrated.
        group: processes that share the batches; all get all logits, and hear of signals.

    Raises:
        RunError: memory ran out, or a process is lost.

    Shape:
        Returns: (B, C) float32, on the CPU.
    """
    groups = carried_groups(model, store)
    carried = None if groups is None else carried or CarriedStates()
    plan = plan_in_order_of_length(store.lengths, batching, groups)
    if groups is None:
        plan = plan[group.rank :: group.size]
    elif not group.is_first:
        plan = []  # a batch begins where earlier ones ended
    pays = bool(plan) and len(store.values) >= TOKENS_A_ROW * model.input_size
    vocabulary = model.project_vocabulary() if pays else None
    put_together = partial(collate, sort=batching.sort)
    logits = logits_of_batches(
        model, store, plan, device, vocabulary, put_together, carried, before_batch, answer
    )
    if group.size == 1:
        return logits
    if groups is not None:
        group.tell(None, patiently=True)  # while the first computes alone
    return _gathered(logits, device, group)


def finite_logits(
    model: SequenceClassifier, store: SequenceStore, device: torch.device, **options: Any
) -> Tensor:
    """Return the logits of every sequence for people, who are told where they are no numbers.

    Arguments, shape and errors are those of `predict_logits`; or an answer isn't finite.
    """
    logits = predict_logits(model, store, device, **options)
    check_finite(logits, store)
    return logits


def check_finite(logits: Tensor, store: SequenceStore) -> None:
    """Refuse answers that are no numbers: finite weights may be so large that sums aren't.

    Shape:
        logits: (B, C).

    Raises:
        RunError: names the line of the first such row.
    """
    finite = logits.isfinite().all(dim=1)
    if not bool(finite.all()):
        line = store.lines[int(finite.byte().argmin())]
        raise RunError(
            f"line {line}: the model's answer isn't finite; its weights are too large; train anew, "
            "with a lower training.lr"
        )


def _gathered(logits: Tensor, device: torch.device, group: Group) -> Tensor:
    """Return what all processes computed: the rows of the others are zero, so their sum."""
    asked = logits.new_tensor(group.asked_to_stop())
    both = group.sum(torch.cat((logits.flatten(), asked)).to(device)).cpu()
    flat, came = both.split_with_sizes([logits.numel(), len(asked)])
    group.heed(came.tolist())
    return flat.view_as(logits)


def carried_groups(model: SequenceClassifier, store: SequenceStore) -> Ints | None:
    """Return the group of each sequence where the model carries states between them, else None."""
    return store.groups if model.config.initial_state == "carried" else None


@torch.inference_mode()
def logits_of_batches(
    model: SequenceClassifier,
    store: SequenceStore,
    plan: Iterable[Ints],
    device: torch.device,
    vocabulary: ProjectedTable | None = None,
    collate: Callable[[SequenceStore], Batch] = collate,
    carried: CarriedStates | None = None,
    before_batch: Callable[[], None] = lambda: None,
    answer: Answer | None = None,
) -> Tensor:
    """Return the logits of every sequence, batched as a plan says.

    Args:
        model: on the device; switched to evaluation meanwhile.
        store: the sequences.
        plan: rows of the store for each batch, each row once; rows in no batch get zeros.
        device: where to compute.
        vocabulary: `model.project_vocabulary()`, or None.
        collate: puts sequences together.
        carried: as for `predict_logits`, each row in a later batch than the row before it in its
            group; None: every row stands alone.
        before_batch: as for `predict_logits`.
        answer: as for `predict_logits`.

    Raises:
        RunError: memory ran out.

    Shape:
        Returns: (B, C) float32, on the CPU.
    """
    join = answer or model.answer

    def compute(batch: Batch) -> Tensor:
        return join(classify(model, batch, carried, vocabulary=vocabulary)).float().cpu()

    was_training = model.training
    model.eval()
    logits = torch.zeros(len(store), model.head.out_features, dtype=torch.float32, device="cpu")
    try:
        for batch, found in map_batches(
            compute, store, plan, device, collate=collate, before_batch=before_batch
        ):
            logits[torch.from_numpy(batch.examples)] = batch.restore(found)
    finally:
        model.train(was_training)
    return logits


def calibrate(
    model: SequenceClassifier,
    store: SequenceStore,
    device: torch.device,
    before_batch: Callable[[], None] = lambda: None,
    group: Group = ALONE,
) -> Calibration:
    """Fit a model's temperature on sequences that it hasn't learned, and tell what comes of it.

    Args:
        model: on the device; its own temperature plays no part.
        store: labelled sequences.
        device: where to compute.
        before_batch: as for `predict_logits`.
        group: processes that share the work.

    Raises:
        RunError: memory ran out, or a process is lost.
    """
    logits = predict_logits(
        model, store, device, before_batch=before_batch, answer=joint, group=group
    )
    labels = torch.tensor(store.labels, device="cpu")
    temperature = fit_temperature(logits, labels)
    confidence = [
        some.softmax(dim=1).amax(dim=1) for some, _ in double_blocks(logits / temperature, labels)
    ]
    points = coverage_points(torch.cat(confidence), logits.argmax(dim=1) == labels, LEVELS)
    return Calibration(temperature=temperature, coverage=points, rows=len(labels))


def score_store(
    model: SequenceClassifier,
    store: SequenceStore,
    names: Sequence[str],
    device: torch.device,
    before_batch: Callable[[], None] = lambda: None,
    group: Group = ALONE,
) -> Scores:
    """Score a model on labelled sequences.

    Args:
        model: on the device.
        store: the sequences.
        names: label of each class index.
        device: where to compute.
        before_batch: is called before each batch; what it raises ends the work.
        group: processes that share the work.

    Raises:
        RunError: memory ran out, or a process is lost.
    """
    logits = predict_logits(model, store, device, before_batch=before_batch, group=group)
    return score_logits(logits, store, names)


def score_logits(logits: Tensor, store: SequenceStore, names: Sequence[str]) -> Scores:
    """Score the logits of labelled sequences.

    Shape:
        logits: (B, C).
    """
    labels = torch.tensor(store.labels, device="cpu")
    lengths = torch.tensor(store.lengths, device="cpu")
    return score(logits, labels, lengths, names)


def score_parts(
    model: SequenceClassifier, store: SequenceStore, names: Sequence[str], device: torch.device
) -> dict[str, Scores]:
    """Score each part of a model alone, by name; nothing where it has but one.

    Arguments and errors are those of `score_store`.
    """
    if model.ngrams is None:
        return {}
    answers = {name: itemgetter(place) for place, name in enumerate(PARTS)}
    return {
        name: score_logits(predict_logits(model, store, device, answer=answer), store, names)
        for name, answer in answers.items()
    }
