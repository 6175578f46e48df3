"""Invariance of predictions: comparison of logits in different batches and by different engines.

Each result is compared with logits that torch's own module computes for one sequence at a time,
without padding.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
import torch
from torch import Tensor

from seqtrain.engines.choice import engines_by_name
from seqtrain.evaluation.logits import EVALUATION_BATCHING, carried_groups, predict_logits
from seqtrain.model.network import ClassifierNetwork
from seqtrain.sequences.batch import Batch, collate
from seqtrain.sequences.plan import plan_in_order_of_length, rows_in_groups
from seqtrain.sequences.store import Ints, SequenceStore

SAMPLE_ROWS, SAMPLE_STEPS, SAMPLE_LENGTH = 200, 20_000, 10_000
"""Limits of a sample: number of sequences, steps of all sequences, and steps of one sequence."""
BATCH_SIZES = (2, 3, 8, 16, 64)
"""Sizes of the batches that are compared."""
SHUFFLED_SIZE = 16
"""Size of the shuffled batches, and of the batches with other padding."""
FOREIGN_NUMBER = 1e4
"""Value of padded steps of numbers in one comparison. Real values are standardized."""
OTHER_PADDING = "padded with other values"
"""Name of the batches whose padding holds another token, or `FOREIGN_NUMBER`."""


@dataclass(frozen=True)
class LogitDifference:
    """Largest difference between predictions in batches and predictions for single sequences.

    Attributes:
        way: Name of the kind of batches, such as "batches of 8".
        variant: Name of the engine or unroll that computes the batches.
        logits: Largest absolute difference of a logit.
        probabilities: Largest absolute difference of a probability.
    """

    way: str
    variant: str
    logits: float
    probabilities: float


def differences(
    model: ClassifierNetwork,
    store: SequenceStore,
    device: torch.device,
    listener: Callable[[str, float], None],
) -> tuple[Tensor, list[LogitDifference]]:
    """Compare logits from many kinds of batches, by each engine, with logits of single sequences.

    Args:
        model: The network.
        store: The sequences.
        device: Device that computes.
        listener: Function that is called before each comparison, with its name and the share of the
            comparisons that are done, in [0, 1).

    Returns:
        The logits of single sequences by torch's own module, (B, C), and a `LogitDifference` for
        each kind of batches and each engine.
    """
    groups = carried_groups(model, store)
    ways, engines = _plans(store, groups), engines_by_name(model.config, device)
    foreign = model.input_size - 1 if store.values.ndim == 1 else FOREIGN_NUMBER
    collates = {OTHER_PADDING: partial(collate_padded, value=foreign)}

    def logits(way: str, variant: str) -> Tensor:
        found = predict_logits(
            model,
            store,
            device,
            plan=ways[way],
            collate=collates.get(way, collate),
            engine=engines[variant],
        )
        return found.double()

    listener("alone, torch", 0.0)
    alone = logits("alone", "torch")
    found = []
    pairs = [*product(ways, engines)]
    for number, (way, variant) in enumerate(pairs):
        listener(f"{way}, {variant}", number / len(pairs))
        batched = logits(way, variant)
        probabilities = model.probabilities(batched) - model.probabilities(alone)
        of_logits, of_probabilities = (batched - alone).abs().max(), probabilities.abs().max()
        found.append(LogitDifference(way, variant, float(of_logits), float(of_probabilities)))
    return alone, found


def sampled(store: SequenceStore, *, carried: bool) -> tuple[SequenceStore, int]:
    """Return a sample of the sequences, and the number of them that were cut at SAMPLE_LENGTH.

    The sample has at most SAMPLE_ROWS sequences and SAMPLE_STEPS steps, but at least one sequence.

    Args:
        store: The sequences.
        carried: True if the model carries states over. The sample is then the first rows. If False,
            the sample is evenly spaced by length: the shortest, the longest, and then others in
            random order.
    """
    lengths, count = np.minimum(store.lengths, SAMPLE_LENGTH), min(len(store), SAMPLE_ROWS)
    rows = np.arange(count)
    if not carried:
        spaced = np.linspace(len(store) - 1, 0, count).round().astype(np.int64)
        rows = np.argsort(store.lengths, kind="stable")[spaced]
        rows = np.roll(rows, 1)  # the shortest, the longest, and then all others
        rows[2:] = np.random.default_rng(0).permutation(rows[2:])
    rows = rows[: max(1, int((lengths[rows].cumsum() <= SAMPLE_STEPS).sum()))]
    num_cut = int((store.lengths[rows] > SAMPLE_LENGTH).sum())
    return store.windows(rows, store.offsets[rows], lengths[rows]), num_cut


def _plans(store: SequenceStore, groups: Ints | None) -> dict[str, list[Ints]]:
    """Return the row numbers of the batches of each kind, by its name.

    No batch holds two rows of one group. `groups` is the group of each row, or None.
    """
    ranks = np.zeros(len(store)) if groups is None else rows_in_groups(groups)[0]
    rounds = [np.flatnonzero(ranks == rank) for rank in np.unique(ranks)]
    largest = max(map(len, rounds))
    draw = np.random.default_rng(1)
    plans = {"alone": _cut(rounds, 1)}
    for size in BATCH_SIZES:
        if size < largest:
            plans[f"batches of {size}"] = _cut(rounds, size)
    plans["all in one batch"] = rounds
    shuffled = [draw.permutation(rows) for rows in rounds]
    plans[f"batches of {SHUFFLED_SIZE}, shuffled"] = _cut(shuffled, SHUFFLED_SIZE)
    plans["by length, as predict"] = plan_in_order_of_length(
        store.lengths, EVALUATION_BATCHING, groups
    )
    plans[OTHER_PADDING] = _cut(rounds, SHUFFLED_SIZE)
    return plans


def collate_padded(rows: SequenceStore, *, value: float) -> Batch:
    """Return a padded batch of all rows of a store, in their order, for the model to sort and pack.

    Args:
        rows: The sequences.
        value: Token id or feature value with which sequences are padded.
    """
    batch = collate(rows, "module")
    padded = batch.input_ids.clone()
    padded[torch.arange(padded.shape[1], device="cpu") >= batch.lengths[:, None]] = value
    return replace(batch, inputs=padded)


def _cut(rounds: Sequence[Ints], size: int) -> list[Ints]:
    """Cut arrays of row numbers into batches, and return all batches.

    Args:
        rounds: Arrays of row numbers. Each batch has rows of one array only.
        size: Largest number of rows of a batch.
    """
    return [batch for rows in rounds for batch in np.split(rows, range(size, len(rows), size))]
