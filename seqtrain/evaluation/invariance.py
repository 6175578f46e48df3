"""Invariance of predictions: comparison of logits in different batches and by different engines.

Each result is compared with logits that torch's own module computes for one sequence at a time,
without padding.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

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
FOREIGN_FEATURE = 1e4
"""Value of padded steps of feature vectors in one comparison. Real values are standardized."""


@dataclass(frozen=True)
class LogitDifference:
    """Largest difference between predictions in batches and predictions for single sequences.

    Attributes:
        way: Name of the kind of batches, such as "batches of 8".
        variant: Name of the engine or unroll that computes the batches.
        logits: Largest absolute difference of a logit.
        probabilities: Largest absolute difference of a probability.
        labels: Number of sequences whose predicted labels differ. The most probable class is
            predicted, or if multi-label each class from 0.5 on, without calibrated thresholds.
    """

    way: str
    variant: str
    logits: float
    probabilities: float
    labels: int


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
    ways = _batchings(store, model.input_size, groups)
    variants = engines_by_name(model.config, device)

    def logits(variant: str, batches: list[Ints], collate: Callable[..., Batch]) -> Tensor:
        return predict_logits(
            model, store, device, plan=batches, collate=collate, engine=variants[variant]
        )

    listener("alone, torch", 0.0)
    alone = logits("torch", *ways["alone"])
    found = []
    pairs = [(way, variant) for way in ways for variant in variants]
    for number, (way, variant) in enumerate(pairs):
        listener(f"{way}, {variant}", number / len(pairs))
        one, other = logits(variant, *ways[way]).double(), alone.double()
        probabilities = model.probabilities(one) - model.probabilities(other)
        others = (one > 0) != (other > 0) if model.multi_label else one.argmax(1) != other.argmax(1)
        found.append(
            LogitDifference(
                way,
                variant,
                logits=float((one - other).abs().max()),
                probabilities=float(probabilities.abs().max()),
                labels=int(others.reshape(len(one), -1).any(1).sum()),
            )
        )
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


def _batchings(
    store: SequenceStore, input_size: int, groups: Ints | None
) -> dict[str, tuple[list[Ints], Callable[..., Batch]]]:
    """Return the kinds of batches to compare.

    Args:
        store: The sequences.
        input_size: Number of different token ids, or of features of a time step.
        groups: Group of each row, or None. No batch holds two rows of one group.

    Returns:
        Maps the name of each kind to the row numbers of its batches and a collate function.
    """
    ranks = np.zeros(len(store)) if groups is None else rows_in_groups(groups)[0]
    rounds = [np.flatnonzero(ranks == rank) for rank in np.unique(ranks)]
    sizes = [size for size in BATCH_SIZES if size < max(map(len, rounds))]
    draw = np.random.default_rng(1)
    shuffled = [draw.permutation(rows) for rows in rounds]
    ways = {"alone": _cut(rounds, 1)} | {f"batches of {size}": _cut(rounds, size) for size in sizes}
    ways["all in one batch"] = rounds
    ways[f"batches of {SHUFFLED_SIZE}, shuffled"] = _cut(shuffled, SHUFFLED_SIZE)
    ways["by length, as predict"] = plan_in_order_of_length(
        store.lengths, EVALUATION_BATCHING, groups
    )
    is_ids = store.values.ndim == 1
    foreign = input_size - 1 if is_ids else FOREIGN_FEATURE
    name = f"padded with {'another token' if is_ids else f'{foreign:g}'}"
    padded: Callable[..., Batch] = partial(collate_padded, value=foreign)
    return {way: (batches, collate) for way, batches in ways.items()} | {
        name: (_cut(rounds, SHUFFLED_SIZE), padded)
    }


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
