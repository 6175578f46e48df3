"""Gradient-boosted trees on the columns of a matrix: fitting, and prediction of logits.

Trees are complete binary trees of `DEPTH` levels. The values of a column are put into bins by their
quantiles in train. A split is at an edge of a bin. A missing value (NaN) goes left. In a
single-label task with two classes, only the second class has trees.

B examples, A columns, K classes, R rounds, S = 2**DEPTH - 1 splits, L = 2**DEPTH leaves.

References:
    Friedman 2001, "Greedy function approximation: a gradient boosting machine".
    Ke et al. 2017, "LightGBM: a highly efficient gradient boosting decision tree" (histograms).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from seqtrain.engines.growing import BINS, DEPTH, RIDGE, grow_tree

SPLITS = 2**DEPTH - 1
LEARNING_RATE = 0.08
ROUNDS = 200
"""Largest number of boosting rounds."""
PATIENCE = 30
"""Number of rounds without a smaller loss on held-out examples after which boosting ends."""
TREES = 4000
"""Largest number of trees of all classes together."""
FOLDS = 4
"""Number of folds of train that are held out in turn to choose the number of rounds."""
ONE_FOLD_ABOVE = 20_000
"""Number of examples above which `fit_trees` holds out only one fold."""
COLUMN_SHARE = 0.5
"""Share of the columns that a tree may use, at least one column, drawn for each tree."""
EDGE_ROWS = 20_000
"""Largest number of examples from which the edges of bins are computed."""
LARGEST = torch.finfo(torch.float32).max
SMALLEST_HESSIAN = 1e-6


@dataclass(frozen=True)
class Trees:
    """Boosted trees: one tree for each round and class.

    Attributes:
        column: column that each split reads, (R, K, S).
        cut: largest value that goes left at each split, (R, K, S).
        leaf: number that each leaf adds to the logit, (R, K, L).
        start: logits before the first tree, (K,).
    """

    column: Tensor
    cut: Tensor
    leaf: Tensor
    start: Tensor

    def logits(self, values: Tensor) -> Tensor:
        """Return the logits of examples, (B, K).

        Args:
            values: columns of the examples, (B, A), finite, or NaN where missing.
        """
        rounds, classes, splits = self.column.shape
        leaves, trees = splits + 1, rounds * classes
        column, cut, leaf = self.column.flatten(), self.cut.flatten(), self.leaf.flatten()
        tree = torch.arange(trees, device=values.device)
        node = torch.zeros(values.shape[0], trees, dtype=torch.long, device=values.device)
        for _ in range(DEPTH):
            split = tree * splits + node
            is_right = values.gather(1, column[split]) > cut[split]
            node = 2 * node + 1 + is_right.long()
        found = leaf[tree * leaves + node - splits].view(-1, rounds, classes)
        return self.start + found.sum(1)


def bin_edges(values: Tensor) -> Tensor:
    """Return the edges between the bins of each column, ascending, (A, BINS - 2).

    A column with fewer than `BINS` distinct values has an edge between each two neighboring values.
    The edges of other columns are between quantiles of their present values. Unused edges are +inf.

    Args:
        values: columns of the examples, (B, A). Values that aren't finite count as missing. If
            there are more than `EDGE_ROWS` examples, only every n-th one is read.
    """
    values = values[:: -(-len(values) // EDGE_ROWS)]
    edges = torch.full((values.shape[1], BINS - 2), torch.inf, dtype=values.dtype, device="cpu")
    for number, column in enumerate(values.T):
        present = column[column.isfinite()].sort().values
        distinct = present.unique_consecutive()
        if len(distinct) > BINS - 1:
            ranks = torch.linspace(0, len(present) - 1, BINS, device="cpu")[1:-1].long()
            distinct = present[ranks].unique_consecutive()
        middle = ((distinct[1:].double() + distinct[:-1].double()) / 2).to(values.dtype)
        edges[number, : len(middle)] = torch.where(middle < distinct[1:], middle, distinct[:-1])
    return edges


def binned(values: Tensor, edges: Tensor) -> Tensor:
    """Return the bin of each value, from 1, or 0 for a missing value, (A, B) uint8.

    Args:
        values: columns of the examples, (B, A). Values that aren't finite count as missing.
        edges: result of `bin_edges`, (A, BINS - 2).
    """
    columns = values.T.contiguous()
    found = torch.searchsorted(edges, columns.nan_to_num(0.0)) + 1
    return torch.where(columns.isfinite(), found, 0).to(torch.uint8)


def fit_trees(values: Tensor, targets: Tensor, *, multi_label: bool, seed: int) -> Trees:
    """Fit boosted trees on all examples.

    The number of rounds minimizes the loss on `FOLDS` held-out folds of the examples. To save time,
    a single fold is held out in two cases:

    - There are more than `ONE_FOLD_ABOVE` examples.
    - There are many classes, so that `most_rounds` is below `ROUNDS`.

    Args:
        values: columns of the examples, (B, A) float32, NaN where missing.
        targets: 1 for each class that an example has, else 0, (B, K).
        multi_label: True if an example may have several classes or none.
        seed: seed of the folds and of the columns of each tree.
    """
    generator = torch.Generator("cpu").manual_seed(seed)
    fold = torch.randperm(len(values), generator=generator) % FOLDS
    targets = targets.double()
    curves = []
    # Many classes have few rounds, and nearly always use all of them.
    is_costly = len(values) > ONE_FOLD_ABOVE or most_rounds(targets.shape[1]) < ROUNDS
    for held in range(1 if is_costly else FOLDS):
        is_held = fold == held
        if not bool(is_held.any()):
            continue
        boosting = Boosting(values[~is_held], targets[~is_held], multi_label, generator)
        curves.append(boosting.held_out_losses(values[is_held], targets[is_held]))
    longest = max(map(len, curves), default=0)
    summed = torch.zeros(longest, dtype=torch.float64, device="cpu")
    for curve in curves:
        padded = curve + curve[-1:] * (longest - len(curve))
        summed += torch.tensor(padded, dtype=torch.float64, device="cpu")
    boosting = Boosting(values, targets, multi_label, generator)
    for _ in range(int(summed.argmin()) + 1 if longest else 0):
        boosting.add_round()
    return boosting.trees()


def most_rounds(classes: int) -> int:
    """Return the largest number of rounds for a number of classes, from 1 to `ROUNDS`.

    Rounds times classes is at most `TREES`, unless there are more classes than `TREES`.
    """
    return max(1, min(ROUNDS, TREES // classes))


class Boosting:
    """State of boosting: the trees grown so far, and their logits for the training examples.

    Args:
        values: columns of the training examples, (B, A), NaN where missing.
        targets: 1 for each class that an example has, else 0, (B, K) float64.
        multi_label: True if an example may have several classes or none.
        generator: generator that draws the columns of each tree.
    """

    def __init__(
        self, values: Tensor, targets: Tensor, multi_label: bool, generator: torch.Generator
    ) -> None:
        self.targets, self.multi_label, self.generator = targets, multi_label, generator
        self.edges = bin_edges(values)
        self.bins = binned(values, self.edges)
        classes = targets.shape[1]
        share = targets.mean(0).clamp(1e-6, 1 - 1e-6)
        self.start = share.logit() if multi_label else share.log()
        self.logits = self.start.expand(targets.shape).clone()
        self.grown = range(1, 2) if classes == 2 and not multi_label else range(classes)
        self.rounds: list[list[tuple[Tensor, Tensor, Tensor]]] = []

    def add_round(self) -> None:
        """Grow a tree for each class, and add the values of its leaves to the logits.

        In a single-label task with two classes, only the second class gets a tree.
        """
        first, second = self._derivatives()
        number = max(1, round(COLUMN_SHARE * len(self.bins)))
        grown = []
        for k in self.grown:
            drawn = torch.randperm(len(self.bins), generator=self.generator)[:number]
            g, h = first[:, k].contiguous(), second[:, k].contiguous()
            column, last, place = grow_tree(self.bins, drawn.sort().values, g, h)
            sums = [torch.bincount(place, each, 2**DEPTH) for each in (g, h)]
            value = -LEARNING_RATE * sums[0] / (sums[1] + RIDGE)
            self.logits[:, k] += value[place]
            grown.append((column, last, value))
        self.rounds.append(grown)

    def held_out_losses(self, values: Tensor, targets: Tensor) -> list[float]:
        """Add rounds, and return the mean loss of held-out examples after each of them.

        Stop after `PATIENCE` rounds without a new smallest loss, or after `most_rounds` rounds.

        Args:
            values: columns of the held-out examples, (B', A), NaN where missing.
            targets: 1 for each class that a held-out example has, else 0, (B', K) float64.
        """
        bins, logits = binned(values, self.edges), self.start.expand(targets.shape).clone()
        curve: list[float] = []
        while len(curve) < most_rounds(targets.shape[1]):
            self.add_round()
            for k, (column, last, value) in zip(self.grown, self.rounds[-1], strict=True):
                logits[:, k] += value[_leaves(bins, column, last)]
            curve.append(self._loss(logits, targets))
            if len(curve) - curve.index(min(curve)) > PATIENCE:
                break
        return curve

    def trees(self) -> Trees:
        """Return the trees grown so far, with numbers in float32.

        A class without trees gets trees that add 0.
        """
        shape = (len(self.rounds), len(self.start))
        column = torch.zeros(*shape, SPLITS, dtype=torch.long, device="cpu")
        cut = torch.full((*shape, SPLITS), LARGEST, dtype=torch.float32, device="cpu")
        leaf = torch.zeros(*shape, 2**DEPTH, dtype=torch.float32, device="cpu")
        for number, grown in enumerate(self.rounds):
            for k, (own, last, value) in zip(self.grown, grown, strict=True):
                column[number, k], leaf[number, k] = own, value.float()
                cut[number, k] = _cuts(self.edges, own, last)
        return Trees(column, cut, leaf, self.start.float())

    def _derivatives(self) -> tuple[Tensor, Tensor]:
        """Return the first and the second derivative of the loss by each logit, (B, K) each.

        The second derivative is at least `SMALLEST_HESSIAN`.
        """
        found = self.logits.sigmoid() if self.multi_label else self.logits.softmax(1)
        return found - self.targets, (found * (1 - found)).clamp(min=SMALLEST_HESSIAN)

    def _loss(self, logits: Tensor, targets: Tensor) -> float:
        if self.multi_label:
            return float(functional.binary_cross_entropy_with_logits(logits, targets))
        return float(functional.cross_entropy(logits, targets))


def _leaves(bins: Tensor, column: Tensor, last: Tensor) -> Tensor:
    """Return the index of the leaf of each example in a tree, (B,).

    Args:
        bins: bin of each value, (A, B).
        column: column of each split, (S,).
        last: last bin that goes left at each split, (S,).
    """
    node = torch.zeros(bins.shape[1], dtype=torch.long, device=bins.device)
    rows = torch.arange(len(node), device=bins.device)
    for _ in range(DEPTH):
        node = 2 * node + 1 + (bins[column[node], rows].long() > last[node]).long()
    return node - len(column)


def _cuts(edges: Tensor, column: Tensor, last: Tensor) -> Tensor:
    """Return the largest value that goes left at each split, (S,), always finite.

    Args:
        edges: result of `bin_edges`, (A, BINS - 2).
        column: column of each split, (S,).
        last: last bin that goes left at each split, (S,).
    """
    limits = functional.pad(edges, (1, 0), value=-LARGEST)  # bin 0 has the missing values
    limits = functional.pad(limits.clamp(max=LARGEST), (0, 2), value=LARGEST)
    return limits[column, last]
