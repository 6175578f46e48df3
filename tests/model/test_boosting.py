"""Boosted trees and their aggregates, against independent computations."""

import numpy as np
import pytest
import torch

from seqtrain.model.aggregates import AggregateLayout
from seqtrain.model.boosting import (
    DEPTH,
    bin_edges,
    binned,
    fit_trees,
    grow_tree,
    grow_tree_in_torch,
)

ONES = torch.ones(300, dtype=torch.float64)


def random_table(rows: int, columns: int, seed: int) -> torch.Tensor:
    """Return a table with missing values, (rows, columns)."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(rows, columns, generator=generator)
    values[torch.rand(rows, columns, generator=generator) < 0.1] = torch.nan
    return values


def statistics_of(values: np.ndarray) -> list[float]:
    """Return count, first, last, mean, std, min, max and slope of the present values."""
    present = values[~np.isnan(values)]
    if not len(present):
        return [0.0] + [np.nan] * 7
    slope = np.polyfit(np.arange(len(present)), present, 1)[0] if len(present) > 1 else 0.0
    ends = [present[0], present[-1]]
    moments = [present.mean(), present.std(), present.min(), present.max()]
    return [len(present), *ends, *moments, slope]


@pytest.mark.parametrize("seed", range(6))
def test_aggregates_equal_a_loop_over_sequences_whatever_the_padding(seed):
    draw = np.random.default_rng(seed)
    lengths = draw.integers(1, 9, draw.integers(1, 8))
    longest, batch = lengths.max() + draw.integers(0, 3), len(lengths)
    numbers, tokens = draw.integers(1, 4), draw.integers(2, 5)
    ids = draw.integers(0, tokens + 2, (longest, batch))
    exact = draw.normal(size=(longest, batch, numbers)).round(2).astype(np.float32)
    absent = draw.random(exact.shape) < 0.3
    steps = np.concatenate([ids[..., None], np.where(absent, 0, exact), absent], axis=2)
    valid = np.arange(longest)[:, None] < lengths
    facts = np.column_stack([draw.integers(1, 4, batch), draw.normal(size=batch)])
    within = range(numbers) if seed % 2 else range(numbers - 1, numbers)
    by = tuple(0 if number in within else None for number in range(numbers))
    layout = AggregateLayout((int(tokens),), int(numbers), True, (2,), 1, by)
    found = layout.aggregate(
        torch.from_numpy(steps.astype(np.float32)),
        torch.from_numpy(valid)[..., None],
        torch.from_numpy(facts.astype(np.float32)),
    )
    assert found.shape == (batch, layout.width)
    missing = np.where(absent, np.nan, exact.astype(np.float64))
    for row, length in enumerate(lengths):
        own, own_ids = missing[:length, row], ids[:length, row]
        by_token = [
            [statistics_of(own[own_ids == token, f])[:-1] for f in within]
            for token in range(1, tokens + 1)
        ]
        expected = [
            *(length, *(np.sum(own_ids == token) for token in range(1, tokens + 1))),
            *np.array([statistics_of(own[:, f]) for f in range(numbers)]).T.ravel(),
            *np.array(by_token).transpose(0, 2, 1).ravel(),
            *(facts[row, 0] == 1, facts[row, 0] == 2, facts[row, 1]),
        ]
        np.testing.assert_allclose(found[row], np.array(expected, float), 1e-4, 1e-4)


@pytest.mark.parametrize(("rows", "columns"), [(40, 3), (600, 20), (5000, 50)])
def test_the_native_tree_is_that_of_torch(rows, columns):
    values = random_table(rows, columns, seed=rows)
    bins = binned(values, bin_edges(values))
    generator = torch.Generator().manual_seed(1)
    gradient = torch.randn(rows, dtype=torch.float64, generator=generator) + bins[1] / 20
    hessian = torch.rand(rows, dtype=torch.float64, generator=generator) / 4
    used = torch.arange(0, columns, 2)
    for native, plain in zip(
        grow_tree(bins, used, gradient, hessian),
        grow_tree_in_torch(bins, used, gradient, hessian),
        strict=True,
    ):
        assert torch.equal(native, plain)


def test_a_threshold_on_one_column_is_found():
    values = random_table(400, 10, seed=5).nan_to_num(0.0)
    labels = (values[:, 7] > 0.3).long()
    targets = torch.nn.functional.one_hot(labels, 2)
    trees = fit_trees(values[:300], targets[:300], ONES, multi_label=False, seed=0)
    assert trees.column.shape[2] == 2**DEPTH - 1
    assert float((trees.logits(values[300:]).argmax(1) == labels[300:]).double().mean()) >= 0.97


def test_trees_of_several_labels_learn_each_label():
    values = random_table(400, 5, seed=6).nan_to_num(0.0)
    targets = torch.stack([values[:, 1] > 0, values[:, 3] > 0.5, values[:, 4] < 0], dim=1).long()
    trees = fit_trees(values[:300], targets[:300], ONES, multi_label=True, seed=0)
    decided = trees.logits(values[300:]) > 0
    assert float((decided == targets[300:].bool()).double().mean()) >= 0.95
