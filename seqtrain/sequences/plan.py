"""Batch plans: the rows of each batch, determined by lengths, seed and epoch."""

import numpy as np

from seqtrain.config.schema import BatchingConfig
from seqtrain.sequences.store import row_numbers
from seqtrain.tables.blocks import Ints

POOL_BATCHES = 50
"""Number of batches of a pool: the rows that `plan_epoch` sorts by length together."""
GROUP_BATCHES = 8
"""Number of batches that determines how many groups advance in parallel: their rows fill it."""


def plan_epoch(lengths: Ints, batching: BatchingConfig, *, seed: int, epoch: int) -> list[Ints]:
    """Return the batches of one epoch of training. Each row is in exactly one batch.

    1. Rows are shuffled. If `bucketing` is on, they are then sorted by length within pools.
    2. The rows are cut into batches.
    3. The batches are shuffled.

    In epoch 0 the batch with the most padded steps comes first. If memory is too small, training
    fails at once.

    Args:
        lengths: Number of steps of each row, (B,).
        batching: Section batching of the config.
        seed: Seed of the run.
        epoch: Number of the epoch, from 0. Each epoch has other batches.

    Returns:
        The row numbers of each batch.
    """
    generator = np.random.default_rng([seed, epoch])
    order = row_numbers(len(lengths))
    generator.shuffle(order)
    if batching.bucketing:
        order = _sort_within_pools(order, lengths, _pool_size(lengths, batching))
    batches = _cut(order, lengths, batching)
    generator.shuffle(batches)
    if epoch == 0 and batches:
        longest = [int(lengths[rows].max()) for rows in batches]
        largest = max(range(len(batches)), key=lambda i: (len(batches[i]) * longest[i], longest[i]))
        batches.insert(0, batches.pop(largest))
    return batches


def plan_epoch_of_groups(
    lengths: Ints, groups: Ints, batching: BatchingConfig, *, seed: int, epoch: int
) -> list[Ints]:
    """Return the batches of one epoch of training that keeps the order of rows within groups.

    The next row of a group is always in a later batch, so that a model can carry its state to it.

    1. Groups are shuffled, and divided into sets of groups that are read together.
    2. The first rows of a set's groups are shuffled and cut into batches as in `plan_epoch`.
    3. The second rows of these groups follow, and so on, until the set has no more rows.

    Args:
        lengths: Number of steps of each row, (B,).
        groups: Number of the group of each row, (B,). A row with -1 is a group by itself.
        batching: Section batching of the config.
        seed: Seed of the run.
        epoch: Number of the epoch, from 0.

    Returns:
        The row numbers of each batch.
    """
    generator = np.random.default_rng([seed, epoch])
    rank, group = rows_in_groups(groups)
    at_once = max(1, _pool_size(lengths, batching) * GROUP_BATCHES // POOL_BATCHES)
    company = generator.permutation(int(group.max()) + 1)[group] // at_once
    batches = []
    for rows in _rounds(company, rank):
        rows = generator.permutation(rows)
        if batching.bucketing:
            rows = rows[np.argsort(-lengths[rows], kind="stable")]
        of_round = _cut(rows, lengths, batching)
        generator.shuffle(of_round)
        batches += of_round
    return batches


def plan_in_order_of_length(
    lengths: Ints, batching: BatchingConfig, groups: Ints | None = None
) -> list[Ints]:
    """Return batches of all rows in descending order of length, for evaluation and prediction.

    Args:
        lengths: Number of steps of each row, (B,).
        batching: Section batching of the config.
        groups: Number of the group of each row, (B,), or -1 without a group. If given, the first
            rows of all groups come first, sorted by length. Then the second rows follow, and so on.
            None to sort all rows together.

    Returns:
        The row numbers of each batch.
    """
    order = np.argsort(-lengths, kind="stable")
    if groups is None:
        return _cut(order, lengths, batching)
    rank, _ = rows_in_groups(groups)
    rounds = _rounds(rank[order])
    return [batch for index in rounds for batch in _cut(order[index], lengths, batching)]


def rows_in_groups(groups: Ints) -> tuple[Ints, Ints]:
    """Number the rows within their groups.

    Args:
        groups: Number of the group of each row, (B,). A row with -1 is a group by itself.

    Returns:
        For each row, the number of earlier rows of its group, (B,). Then the index of each row's
        group, (B,). Groups are counted from 0 without gaps.
    """
    alone = groups < 0
    distinct = np.where(alone, groups.max(initial=0) + 1 + np.arange(len(groups)), groups)
    _, group, count = np.unique(distinct, return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order)) - (count.cumsum() - count).repeat(count)
    return rank, group


def padding_fraction(batches: list[Ints], lengths: Ints) -> float:
    """Return the share of steps that are padding if each batch is padded, in [0, 1).

    Args:
        batches: Row numbers of each batch. Together they must hold every row once.
        lengths: Number of steps of each row, (B,).
    """
    padded = sum(len(rows) * int(lengths[rows].max()) for rows in batches)
    if padded:
        return 1.0 - int(lengths.sum()) / padded
    return 0.0


def _rounds(*keys: Ints) -> list[Ints]:
    """Return one array of row numbers per combination of keys, in ascending order of the keys.

    Args:
        *keys: Keys of each row, (B,). The first key counts most.
    """
    order = np.lexsort(keys[::-1])
    changes = [np.diff(key[order]) != 0 for key in keys]
    if len(order):
        return np.split(order, np.flatnonzero(np.logical_or.reduce(changes)) + 1)
    return []


def _pool_size(lengths: Ints, batching: BatchingConfig) -> int:
    if batching.max_tokens is None:
        return POOL_BATCHES * batching.batch_size
    return max(1, round(POOL_BATCHES * batching.max_tokens / max(1.0, float(lengths.mean()))))


def _sort_within_pools(order: Ints, lengths: Ints, pool_size: int) -> Ints:
    """Sort each pool of consecutive rows by length, in place, and return the order.

    The first pool is sorted in descending order, the second in ascending order, and so on by turns.
    Rows of equal length keep their order.

    Args:
        order: Row numbers, (B,). The function changes them.
        lengths: Number of steps of each row.
        pool_size: Number of rows of a pool.
    """
    for number, start in enumerate(range(0, len(order), pool_size)):
        pool = order[start : start + pool_size]
        sign = 1 if number % 2 else -1
        order[start : start + pool_size] = pool[np.argsort(sign * lengths[pool], kind="stable")]
    return order


def _cut(order: Ints, lengths: Ints, batching: BatchingConfig) -> list[Ints]:
    """Cut consecutive rows into batches of `batch_size` rows, or of at most `max_tokens` steps.

    Steps of padding count. A row longer than `max_tokens` is a batch by itself.

    Args:
        order: Row numbers in the order in which they are cut, (B,).
        lengths: Number of steps of each row.
        batching: Section batching of the config, which sets one of the two sizes.
    """
    if batching.max_tokens is None:
        return np.split(order, range(batching.batch_size, len(order), batching.batch_size))
    batches = []
    start = 0
    while start < len(order):
        most = max(1, batching.max_tokens // int(lengths[order[start]]))
        window = lengths[order[start : start + most]]
        padded_steps = np.maximum.accumulate(window) * np.arange(1, len(window) + 1)
        size = max(1, int(np.searchsorted(padded_steps, batching.max_tokens, side="right")))
        batches.append(order[start : start + size])
        start += size
    return batches
