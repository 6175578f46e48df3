"""Predictions before a sequence ends: after every step, and after shares of each sequence.

A model that reads forward only reads each sequence once. Its state after a step gives the
prediction after this step. A model that needs the whole sequence reads every prefix again:
T (T + 1) / 2 steps in place of T. Such a model has a backward direction, convolutions, n-grams, or
scales a series by its own mean.

T steps of one sequence, C classes.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from seqtrain.evaluation.logits import (
    EVALUATION_BATCHING,
    check_finite,
    predict_logits,
    run_batches,
)
from seqtrain.model.branches.branch import ForwardContext
from seqtrain.model.carried import CarriedStates
from seqtrain.model.network import ClassifierNetwork
from seqtrain.sequences.batch import Batch
from seqtrain.sequences.decisions import best_class
from seqtrain.sequences.plan import plan_in_order_of_length
from seqtrain.sequences.store import SequenceStore
from seqtrain.tables.blocks import Ints

SHARES = 10
"""Number of shares in `score_prefixes`: it scores after each tenth of a sequence."""
PREFIX_STEPS_AT_ONCE = 2**20
"""Approximate number of steps of all prefixes that are in memory at one time."""


def predict_step_logits(
    model: ClassifierNetwork,
    store: SequenceStore,
    device: torch.device,
    carried: CarriedStates | None = None,
) -> list[Tensor]:
    """Return the calibrated logits after every step of each sequence.

    Args:
        model: The network.
        store: The sequences.
        device: Device that computes.
        carried: States from which groups start, if the model carries states. They are updated.
            None to start each group from zeros.

    Returns:
        One tensor per sequence, (T, C) float32 on the CPU.

    Raises:
        RunError: If a logit isn't finite.
    """
    carried = carried or CarriedStates()
    if model.whole_sequence_key is None:
        logits = _logits_by_one_run(model, store, device, carried)
    else:
        starts = _start_states(model, store, device, carried)
        rows = np.arange(len(store)).repeat(store.lengths)
        ends = np.arange(len(rows)) - store.offsets[rows] + 1
        cuts = np.flatnonzero(np.diff(ends.cumsum() // PREFIX_STEPS_AT_ONCE)) + 1
        parts = zip(np.split(rows, cuts), np.split(ends, cuts), strict=True)
        found = [_logits_of_prefixes(model, store, *part, device, starts) for part in parts]
        logits = list(torch.cat(found).split_with_sizes(store.lengths.tolist()))
    check_finite(torch.stack([steps.abs().amax(dim=0) for steps in logits]), store)
    return logits


def score_prefixes(
    model: ClassifierNetwork,
    store: SequenceStore,
    device: torch.device,
    thresholds: Sequence[float] = (),
) -> list[dict[str, float]]:
    """Score a model with one label per sequence after 10 %, 20 % … 100 % of each sequence.

    Shares are rounded up to whole steps. If the model carries states, a row starts from the final
    state of the previous row of its group. A prediction for an unknown label counts as wrong.

    Args:
        model: The network.
        store: The sequences and their labels.
        device: Device that computes.
        thresholds: Threshold of each class, (C,), or empty to predict the most probable class.

    Returns:
        One dict for each share, with "share" in (0, 1], "median_steps" (steps read), "accuracy",
        and "agreement". Agreement is the fraction of rows with the same prediction as at the end.
    """
    rows = np.arange(len(store))
    starts = _start_states(model, store, device, CarriedStates())
    ends = [-(-store.lengths * part // SHARES) for part in range(1, SHARES + 1)]
    logits = [_logits_of_prefixes(model, store, rows, end, device, starts) for end in ends]
    found = [best_class(each.double().softmax(1), thresholds) for each in logits]
    return [
        {
            "share": part / SHARES,
            "median_steps": float(np.median(end)),
            "accuracy": float((predicted == store.labels).mean()),
            "agreement": float((predicted == found[-1]).mean()),
        }
        for part, (end, predicted) in enumerate(zip(ends, found, strict=True), start=1)
    ]


def _logits_by_one_run(
    model: ClassifierNetwork, store: SequenceStore, device: torch.device, carried: CarriedStates
) -> list[Tensor]:
    """Return the logits after every step of each sequence, (T, C), by reading each one once.

    The arguments are described at `predict_step_logits`. The model must read forward only.
    """

    def compute(batch: Batch, context: ForwardContext) -> list[Tensor]:
        packed = model.step_logits(batch, context).float().cpu()
        sizes = batch.packed.batch_sizes
        first = sizes.cumsum(0) - sizes
        return [packed[first[:length] + row] for row, length in enumerate(batch.lengths.tolist())]

    logits = [torch.empty(0, device="cpu")] * len(store)
    for batch, found in run_batches(compute, model, store, device, carried):
        for example, of_steps in zip(batch.examples, batch.restore(found), strict=True):
            logits[example] = of_steps
    return logits


def _start_states(
    model: ClassifierNetwork, store: SequenceStore, device: torch.device, carried: CarriedStates
) -> CarriedStates:
    """Return the state from which each row starts.

    The arguments are described at `predict_step_logits`. If the model carries states, all sequences
    are read once for this, and `carried` is updated.

    Returns:
        The frozen states by row index. They are empty if the model carries no states.
    """
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


def _logits_of_prefixes(
    model: ClassifierNetwork,
    store: SequenceStore,
    rows: Ints,
    ends: Ints,
    device: torch.device,
    starts: CarriedStates,
) -> Tensor:
    """Return the calibrated logits of P prefixes of sequences, (P, C).

    Args:
        model: The network.
        store: The sequences.
        rows: Row of each prefix in the store, (P,).
        ends: Number of steps of each prefix, (P,).
        device: Device that computes.
        starts: State from which each row starts, as `_start_states` returns them.
    """
    cut = replace(store.windows(rows, store.offsets[rows], ends), groups=rows)
    plan = plan_in_order_of_length(cut.lengths, EVALUATION_BATCHING)
    return predict_logits(model, cut, device, starts, plan=plan)
