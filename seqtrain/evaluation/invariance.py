"""Invariance of predictions: comparison of logits in different batches and by different engines.

Each result is compared with logits that torch's own module computes for one sequence at a time,
without padding.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import torch
from torch import Tensor

from seqtrain.config.schema import BatchingConfig
from seqtrain.engines.choice import engines_by_name
from seqtrain.evaluation.logits import EVALUATION_BATCHING, predict_logits
from seqtrain.model.carried import carried_groups
from seqtrain.model.network import ClassifierNetwork
from seqtrain.sequences.batch import Batch, collate
from seqtrain.sequences.plan import plan_epoch_of_groups, plan_in_order_of_length
from seqtrain.sequences.store import SequenceStore
from seqtrain.tables.blocks import Ints

SAMPLE_ROWS, SAMPLE_STEPS, SAMPLE_LENGTH = 200, 20_000, 10_000
"""Limits of a sample: number of sequences, steps of all sequences, and steps of one sequence."""
BATCHES = {
    "alone": 1,
    "batches of 2": 2,
    "batches of 3": 3,
    "batches of 16": 16,
    "batches of 64": 64,
    "all in one batch": SAMPLE_ROWS,
    "padded with other values": 16,
}
"""Number of sequences of a random batch, by the name of the kind of batches."""
FOREIGN_NUMBER = 1e4
"""Value of padded steps of numbers in the last kind of batches. Real values are standardized."""


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
    plans = _plans(store, carried_groups(model, store))
    engines = engines_by_name(model.config, device)

    def logits(way: str, engine: str) -> Tensor:
        if way.startswith("padded"):
            pad = _collate_with_foreign_values
        else:
            pad = collate
        found = predict_logits(
            model, store, device, plan=plans[way], collate=pad, engine=engines[engine]
        )
        return found.double()

    alone = logits("alone", "torch")
    found = []
    pairs = list(product(plans, engines))
    for number, (way, engine) in enumerate(pairs):
        listener(f"{way}, {engine}", number / len(pairs))
        batched = logits(way, engine)
        probabilities = model.probabilities(batched) - model.probabilities(alone)
        largest = [float(each.abs().max()) for each in (batched - alone, probabilities)]
        found.append(LogitDifference(way, engine, *largest))
    return alone, found


def _plans(store: SequenceStore, groups: Ints | None) -> dict[str, list[Ints]]:
    """Return the row numbers of the batches of each kind, by its name.

    No batch holds two rows of one group. `groups` is the group of each row, or None.
    """
    without = np.full(len(store), -1)
    plans = {}
    for way, size in BATCHES.items():
        batching = BatchingConfig(batch_size=size, bucketing=False)
        plans[way] = plan_epoch_of_groups(
            store.lengths, without if groups is None else groups, batching, seed=size, epoch=0
        )
    by_length = plan_in_order_of_length(store.lengths, EVALUATION_BATCHING, groups)
    return {**plans, "by length, as predict": by_length}


def _collate_with_foreign_values(rows: SequenceStore) -> Batch:
    """Return a batch for the model to sort and pack, whose padding holds what no row may read.

    Ids are padded with the largest id of the rows, and numbers with `FOREIGN_NUMBER`.
    """
    batch = collate(rows, "module")
    padded = batch.input_ids.clone()
    is_padding = torch.arange(padded.shape[1], device="cpu") >= batch.lengths[:, None]
    if padded.is_floating_point():
        padded[is_padding] = FOREIGN_NUMBER
    else:
        padded[is_padding] = padded.max()
    return replace(batch, inputs=padded)


def sampled(store: SequenceStore, *, carried: bool) -> tuple[SequenceStore, int]:
    """Return a sample of the sequences, and the number of them that were cut at SAMPLE_LENGTH.

    The sample has at most SAMPLE_ROWS sequences and SAMPLE_STEPS steps, but at least one sequence.

    Args:
        store: The sequences.
        carried: True if the model carries states over. The sample is then the first rows. If False,
            the sample is evenly spaced by length: the shortest, the longest, and then others in
            random order.
    """
    lengths = np.minimum(store.lengths, SAMPLE_LENGTH)
    count = min(len(store), SAMPLE_ROWS)
    rows = np.arange(count)
    if not carried:
        spaced = np.linspace(len(store) - 1, 0, count).round().astype(np.int64)
        rows = np.argsort(store.lengths, kind="stable")[spaced]
        rows = np.roll(rows, 1)  # the shortest, the longest, and then all others
        rows[2:] = np.random.default_rng(0).permutation(rows[2:])
    rows = rows[: max(1, int((lengths[rows].cumsum() <= SAMPLE_STEPS).sum()))]
    num_cut = int((store.lengths[rows] > SAMPLE_LENGTH).sum())
    return store.windows(rows, store.offsets[rows], lengths[rows]), num_cut
