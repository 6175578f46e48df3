"""Predictions before a sequence ends: after every step, and after shares of each sequence.

A model with one direction reads each sequence once, and its states give the predictions after all
steps. A model that looks ahead reads every prefix again, T (T + 1) / 2 steps for T. It has a
backward direction, convolutions, n-grams, or scaling by a series' own mean.

T steps of one sequence, C classes.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from seqtrain.data.batch import Batch
from seqtrain.data.decisions import best_class
from seqtrain.data.plan import plan_in_order_of_length
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.evaluation.logits import (
    EVALUATION_BATCHING,
    CarriedStates,
    check_finite,
    predict_logits,
    run_batches,
)
from seqtrain.model.branches.branch import ForwardContext
from seqtrain.model.classifier import ClassifierNetwork

SHARES = 10
"""Shares of each sequence after which `score_prefixes` scores: tenths."""
STEPS_AT_ONCE = 2**20
"""Steps of the prefixes that are laid out together; a longer prefix is alone."""


def predict_step_logits(
    model: ClassifierNetwork,
    store: SequenceStore,
    device: torch.device,
    carried: CarriedStates | None = None,
) -> list[Tensor]:
    """Return the logits after every step of every sequence, (T, C) float32 each, on the CPU.

    Args:
        model: The network, in evaluation mode.
        store: The sequences.
        device: Device that computes.
        carried: States at which groups start, or None for zeros.
    """
    if not len(store):
        return []
    carried = carried or CarriedStates()
    if model.whole_sequence_key is None:
        logits = _by_one_run(model, store, device, carried)
    else:
        starts = _starts(model, store, device, carried)
        rows = np.arange(len(store)).repeat(store.lengths)
        ends = np.arange(len(rows)) - store.offsets[rows] + 1
        cuts = np.flatnonzero(np.diff(ends.cumsum() // STEPS_AT_ONCE)) + 1
        parts = zip(np.split(rows, cuts), np.split(ends, cuts), strict=True)
        found = [_after(model, store, *part, device, starts) for part in parts]
        logits = list(torch.cat(found).split_with_sizes(store.lengths.tolist()))
    check_finite(torch.stack([steps.abs().amax(dim=0) for steps in logits]), store)
    return logits


def score_prefixes(
    model: ClassifierNetwork,
    store: SequenceStore,
    device: torch.device,
    thresholds: Sequence[float] = (),
) -> list[dict[str, float]]:
    """Score a model after 10 %, 20 % … 100 % of each sequence.

    Shares are rounded up to whole steps. If states are carried, each row starts from the end of the
    whole row before it in its group.

    Args:
        model: The network, in evaluation mode.
        store: The sequences.
        device: Device that computes.
        thresholds: Threshold of each class, or nothing.

    Returns:
        For each share: the share, the median number of steps, accuracy, and agreement with the
        prediction at the end, as fractions.
    """
    rows, starts = np.arange(len(store)), _starts(model, store, device, CarriedStates())
    ends = [-(-store.lengths * part // SHARES) for part in range(1, SHARES + 1)]
    logits = [_after(model, store, rows, end, device, starts).double() for end in ends]
    found = [best_class(each.softmax(1), thresholds) for each in logits]
    return [
        {
            "share": part / SHARES,
            "median_steps": float(np.median(end)),
            "accuracy": float((predicted == store.labels).mean()),
            "agreement": float((predicted == found[-1]).mean()),
        }
        for part, (end, predicted) in enumerate(zip(ends, found, strict=True), start=1)
    ]


def _by_one_run(
    model: ClassifierNetwork, store: SequenceStore, device: torch.device, carried: CarriedStates
) -> list[Tensor]:
    """Return the logits after every step of each sequence, (T, C), by reading each one once."""

    def compute(batch: Batch, context: ForwardContext) -> list[Tensor]:
        packed, sizes = model.step_logits(batch, context).float().cpu(), batch.packed.batch_sizes
        first = sizes.cumsum(0) - sizes
        return [packed[first[:length] + row] for row, length in enumerate(batch.lengths.tolist())]

    logits = [torch.empty(0, device="cpu")] * len(store)
    for batch, found in run_batches(compute, model, store, device, carried):
        for example, of_steps in zip(batch.examples, batch.restore(found), strict=True):
            logits[example] = of_steps
    return logits


def _starts(
    model: ClassifierNetwork, store: SequenceStore, device: torch.device, carried: CarriedStates
) -> CarriedStates:
    """Return the state from which each row starts, by its index in the store."""
    starts = CarriedStates()

    def compute(batch: Batch, context: ForwardContext) -> list[Tensor]:
        if context.start is not None:
            starts.keep(batch.examples[batch.sorted_indices.numpy()], context.start)
        return model.branch_logits(batch, context)

    if model.config.initial_state == "carried":
        for _ in run_batches(compute, model, store, device, carried):
            pass
    starts.frozen = True
    return starts


def _after(
    model: ClassifierNetwork,
    store: SequenceStore,
    rows: Ints,
    ends: Ints,
    device: torch.device,
    starts: CarriedStates,
) -> Tensor:
    """Return the logits after the first `ends[i]` steps of row `rows[i]`, (P, C), for P prefixes.

    Each prefix starts from its row's state in `starts`, if the model carries states.
    """
    cut = replace(store.windows(rows, store.offsets[rows], ends), groups=rows)
    plan = plan_in_order_of_length(cut.lengths, EVALUATION_BATCHING)
    return predict_logits(model, cut, device, starts, plan=plan)
