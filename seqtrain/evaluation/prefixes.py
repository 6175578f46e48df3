"""Answers before a sequence ends: after every step, and after shares of each sequence.

The answer after a step is the one that the model would give had the sequence ended there. In one
direction the states of one run hold all of them. A backward direction starts at the last step,
convolutions see steps to come, and a series' own mean changes with each, so that such models take a
run for each prefix: T (T + 1) / 2 steps for T.

T steps of one sequence, N of all of them, C classes.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from seqtrain.data.batch import Batch, map_batches
from seqtrain.data.plan import plan_in_order_of_length
from seqtrain.data.store import SequenceStore
from seqtrain.evaluation.carried import CarriedStates
from seqtrain.evaluation.logits import (
    EVALUATION_BATCHING,
    carried_groups,
    check_finite,
    predict_logits,
)
from seqtrain.model.classifier import SequenceClassifier

SHARES = 10
"""Shares of each sequence after which `score_prefixes` scores: tenths."""
STEPS_AT_ONCE = 2**20
"""Steps of the prefixes that are laid out together; a longer prefix is alone."""


def predict_step_logits(
    model: SequenceClassifier,
    store: SequenceStore,
    device: torch.device,
    carried: CarriedStates | None = None,
) -> list[Tensor]:
    """Return the logits after every step of every sequence.

    Args:
        model: on the device, in evaluation mode.
        store: the sequences.
        device: where to compute.
        carried: as for `predict_logits`.

    Shape:
        Returns: (T, C) float32 for each sequence, in their order, on the CPU.

    Raises:
        RunError: memory ran out, or an answer isn't finite.
    """
    if model.looks_ahead:
        return _by_prefixes(model, store, device)
    logits = _by_one_run(model, store, device, carried or CarriedStates())
    if logits:
        check_finite(torch.stack([steps.abs().amax(dim=0) for steps in logits]), store)
    return logits


def score_prefixes(
    model: SequenceClassifier, store: SequenceStore, device: torch.device
) -> list[dict[str, float]]:
    """Score a model after 10 %, 20 % … 100 % of each sequence: how early can one decide?

    Shares are rounded up to whole steps. Costs 5.5 times what scoring whole sequences does; where
    states are carried, each row goes on from the whole row before it, and all are read once.

    Args:
        model: on the device.
        store: labelled sequences; a label that train lacks counts as wrong.
        device: where to compute.

    Returns:
        For each share: the share, the median number of steps read, accuracy, and agreement with
        the answer at the end; all but the steps are fractions in [0, 1].
    """
    rows, lengths = np.arange(len(store)), store.lengths
    ends = [-(-lengths * part // SHARES) for part in range(1, SHARES + 1)]
    if model.config.initial_state == "carried":
        last = store.offsets[:-1] - 1
        of_steps = torch.cat(predict_step_logits(model, store, device)).argmax(1).numpy()
        answers = [of_steps[last + end] for end in ends]
    else:
        prefixes = (store.prefixes(rows, end) for end in ends)
        answers = [predict_logits(model, part, device).argmax(1).numpy() for part in prefixes]
    return [
        {
            "share": part / SHARES,
            "median_steps": float(np.median(end)),
            "accuracy": float((answer == store.labels).mean()),
            "agreement": float((answer == answers[-1]).mean()),
        }
        for part, (end, answer) in enumerate(zip(ends, answers, strict=True), start=1)
    ]


@torch.inference_mode()
def _by_one_run(
    model: SequenceClassifier, store: SequenceStore, device: torch.device, carried: CarriedStates
) -> list[Tensor]:
    """Read each sequence once; return its time steps' logits, in the store's order."""
    groups = carried_groups(model, store)

    def compute(batch: Batch) -> list[Tensor]:
        start = None if groups is None else carried.starts(batch.groups, model)
        of_steps, states = model.step_logits(batch.packed, start, batch.spellings)
        if groups is not None:
            carried.keep(batch.groups, states)
        return unpacked(of_steps.float().cpu(), batch.packed.batch_sizes, batch.lengths)

    logits = [torch.empty(0, device="cpu")] * len(store)
    plan = plan_in_order_of_length(store.lengths, EVALUATION_BATCHING, groups)
    for batch, found in map_batches(compute, store, plan, device):
        for example, of_steps in zip(batch.examples, batch.restore(found), strict=True):
            logits[example] = of_steps
    return logits


def unpacked(packed: Tensor, batch_sizes: Tensor, lengths: Tensor) -> list[Tensor]:
    """Return the packed values of each sequence, (N, …) -> B times (T, …), longest first."""
    starts = batch_sizes.cumsum(0) - batch_sizes
    return [packed[starts[:length] + row] for row, length in enumerate(lengths.tolist())]


def _by_prefixes(
    model: SequenceClassifier, store: SequenceStore, device: torch.device
) -> list[Tensor]:
    """Read every prefix of every sequence; those of like length share batches."""
    rows = np.arange(len(store)).repeat(store.lengths)
    ends = np.arange(len(rows)) - store.offsets[rows] + 1
    cuts = np.flatnonzero(np.diff(ends.cumsum() // STEPS_AT_ONCE)) + 1
    parts = zip(np.split(rows, cuts), np.split(ends, cuts), strict=True)
    logits = [predict_logits(model, store.prefixes(*part), device) for part in parts]
    return list(torch.cat(logits).split_with_sizes(store.lengths.tolist()))
