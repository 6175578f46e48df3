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

from seqtrain.engines.native.library import (
    TreeCall,
    address,
    load_library,
    new,
    why_unavailable,
)

DEPTH = 3
"""Levels of a tree."""
MOST_BINS = 64
"""Number of bins of a column, including bin 0 for missing values."""
LEAST_ROWS = 5
"""Smallest number of examples on each side of a split."""
RIDGE = 1.0
"""Penalty of the squared value of a leaf."""
SMALLEST_GAIN = 1e-6
"""Gain that a split must exceed to be used."""
BYTES_PER_THREAD = 256
"""Bytes of scratch memory that the native function needs per thread."""
TREE_SPLITS = 2**DEPTH - 1
_LEARNING_RATE = 0.08
_ROUNDS = 200
"""Largest number of boosting rounds."""
_PATIENCE = 30
"""Number of rounds without a smaller loss on held-out examples after which boosting ends."""
TREES = 4000
"""Largest number of trees of all classes together."""
_FOLDS = 4
"""Number of folds of train that are held out in turn to choose the number of rounds."""
ONE_FOLD_ABOVE = 20_000
"""Number of examples above which `fit_trees` holds out only one fold."""
COLUMN_SHARE = 0.5
"""Share of the columns that a tree may use, at least one column, drawn for each tree."""
_EDGE_ROWS = 20_000
"""Largest number of examples from which the edges of bins are computed."""
_LARGEST = torch.finfo(torch.float32).max
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
    """Return the edges between the bins of each column, ascending, (A, MOST_BINS - 2).

    A column with fewer than `MOST_BINS` distinct values has an edge between each two neighbors. The
    edges of other columns are between quantiles of their present values. Unused edges are +inf.

    Args:
        values: columns of the examples, (B, A). Values that aren't finite count as missing. If
            there are more than `_EDGE_ROWS` examples, only every n-th one is read.
    """
    values = values[:: -(-len(values) // _EDGE_ROWS)]
    edges = torch.full(
        (values.shape[1], MOST_BINS - 2), torch.inf, dtype=values.dtype, device="cpu"
    )
    for number, column in enumerate(values.T):
        present = column[column.isfinite()].sort().values
        distinct = present.unique_consecutive()
        if len(distinct) > MOST_BINS - 1:
            ranks = torch.linspace(0, len(present) - 1, MOST_BINS, device="cpu")[1:-1].long()
            distinct = present[ranks].unique_consecutive()
        middle = ((distinct[1:].double() + distinct[:-1].double()) / 2).to(values.dtype)
        edges[number, : len(middle)] = torch.where(middle < distinct[1:], middle, distinct[:-1])
    return edges


def binned(values: Tensor, edges: Tensor) -> Tensor:
    """Return the bin of each value, from 1, or 0 for a missing value, (A, B) uint8.

    Args:
        values: columns of the examples, (B, A). Values that aren't finite count as missing.
        edges: result of `bin_edges`, (A, MOST_BINS - 2).
    """
    columns = values.T.contiguous()
    found = torch.searchsorted(edges, columns.nan_to_num(0.0)) + 1
    return torch.where(columns.isfinite(), found, 0).to(torch.uint8)


def fit_trees(
    values: Tensor, targets: Tensor, weights: Tensor, *, multi_label: bool, seed: int
) -> Trees:
    """Fit boosted trees on all examples.

    The number of rounds minimizes the loss on `_FOLDS` held-out folds of the examples. To save
    time, a single fold is held out in two cases:

    - There are more than `ONE_FOLD_ABOVE` examples.
    - There are many classes, so that `most_rounds` is below `_ROUNDS`.

    Args:
        values: columns of the examples, (B, A) float32, NaN where missing.
        targets: 1 for each class that an example has, else 0, (B, K).
        weights: weight of each example, (B,) float64. An example with a weight of 2 counts like two
            examples, except for the least number of examples of a leaf.
        multi_label: True if an example may have several classes or none.
        seed: seed of the folds and of the columns of each tree.
    """
    generator = torch.Generator("cpu").manual_seed(seed)
    fold = torch.randperm(len(values), generator=generator) % _FOLDS
    targets = targets.double()
    curves = []
    # Many classes have few rounds, and nearly always use all of them.
    is_costly = len(values) > ONE_FOLD_ABOVE or most_rounds(targets.shape[1]) < _ROUNDS
    for held in range(1 if is_costly else _FOLDS):
        is_held = fold == held
        if not bool(is_held.any()):
            continue
        fold_rows = values[~is_held], targets[~is_held], weights[~is_held]
        boosting = Boosting(*fold_rows, multi_label, generator)
        held_rows = values[is_held], targets[is_held], weights[is_held]
        curves.append(boosting.held_out_losses(*held_rows))
    longest = max(map(len, curves))
    summed = torch.zeros(longest, dtype=torch.float64, device="cpu")
    for curve in curves:
        padded = curve + curve[-1:] * (longest - len(curve))
        summed += torch.tensor(padded, dtype=torch.float64, device="cpu")
    boosting = Boosting(values, targets, weights, multi_label, generator)
    for _ in range(int(summed.argmin()) + 1):
        boosting.add_round()
    return boosting.trees()


def most_rounds(classes: int) -> int:
    """Return the largest number of rounds for a number of classes, from 1 to `_ROUNDS`.

    Rounds times classes is at most `TREES`, unless there are more classes than `TREES`.
    """
    return max(1, min(_ROUNDS, TREES // classes))


class Boosting:
    """State of boosting: the trees grown so far, and their logits for the training examples.

    Args:
        values: columns of the training examples, (B, A), NaN where missing.
        targets: 1 for each class that an example has, else 0, (B, K) float64.
        weights: weight of each example, (B,) float64.
        multi_label: True if an example may have several classes or none.
        generator: generator that draws the columns of each tree.
    """

    def __init__(
        self,
        values: Tensor,
        targets: Tensor,
        weights: Tensor,
        multi_label: bool,
        generator: torch.Generator,
    ) -> None:
        self.targets, self.multi_label, self.generator = targets, multi_label, generator
        self.weights = weights.unsqueeze(1)
        edges = bin_edges(values)
        self.bins = binned(values, edges)
        # The largest value of each bin. Bin 0 has the missing values.
        limits = functional.pad(edges, (1, 0), value=-_LARGEST).clamp(max=_LARGEST)
        self.limits = functional.pad(limits, (0, 2), value=_LARGEST)
        share = (weights @ targets / weights.sum()).clamp(1e-6, 1 - 1e-6)
        self.start = share.logit() if multi_label else share.log()
        self.logits = self.start.expand(targets.shape).clone()
        self.rounds: list[Trees] = []

    def add_round(self) -> Trees:
        """Grow a tree for each class, add the values of its leaves to the logits, and return them.

        In a single-label task with two classes, only the second class gets a tree. The tree of the
        first class adds 0.
        """
        if self.multi_label:
            found = self.logits.sigmoid()
        else:
            found = self.logits.softmax(1)
        first = self.weights * (found - self.targets)
        second = self.weights * (found * (1 - found)).clamp(min=SMALLEST_HESSIAN)
        classes = len(self.start)
        columns = torch.zeros(classes, TREE_SPLITS, dtype=torch.long, device="cpu")
        cuts = torch.full((classes, TREE_SPLITS), _LARGEST, dtype=torch.float32, device="cpu")
        leaves = torch.zeros(classes, 2**DEPTH, dtype=torch.float32, device="cpu")
        number = max(1, round(COLUMN_SHARE * len(self.bins)))
        for k in range(1 if classes == 2 and not self.multi_label else 0, classes):
            drawn = torch.randperm(len(self.bins), generator=self.generator)[:number]
            g, h = first[:, k].contiguous(), second[:, k].contiguous()
            column, last, place = grow_tree(self.bins, drawn.sort().values, g, h)
            sums = [torch.bincount(place, each, 2**DEPTH) for each in (g, h)]
            value = -_LEARNING_RATE * sums[0] / (sums[1] + RIDGE)
            self.logits[:, k] += value[place]
            columns[k], cuts[k], leaves[k] = column, self.limits[column, last], value.float()
        grown = Trees(columns[None], cuts[None], leaves[None], torch.zeros(classes, device="cpu"))
        self.rounds.append(grown)
        return grown

    def held_out_losses(self, values: Tensor, targets: Tensor, weights: Tensor) -> list[float]:
        """Add rounds, and return the summed loss of held-out examples after each of them.

        Stop after `_PATIENCE` rounds without a new smallest loss, or after `most_rounds` rounds.

        Args:
            values: columns of the held-out examples, (B', A), NaN where missing.
            targets: 1 for each class that a held-out example has, else 0, (B', K) float64.
            weights: weight of each held-out example, (B',) float64.
        """
        logits = self.start.expand(targets.shape)
        curve: list[float] = []
        while len(curve) < most_rounds(targets.shape[1]):
            logits = logits + self.add_round().logits(values)
            if self.multi_label:
                losses = functional.binary_cross_entropy_with_logits(
                    logits, targets, reduction="none"
                ).mean(1)
            else:
                losses = functional.cross_entropy(logits, targets, reduction="none")
            curve.append(float(losses @ weights))
            if len(curve) - curve.index(min(curve)) > _PATIENCE:
                break
        return curve

    def trees(self) -> Trees:
        """Return the trees of all rounds so far."""
        column = torch.cat([one.column for one in self.rounds])
        cut = torch.cat([one.cut for one in self.rounds])
        leaf = torch.cat([one.leaf for one in self.rounds])
        return Trees(column, cut, leaf, self.start.float())


def grow_tree(
    bins: Tensor, columns: Tensor, gradient: Tensor, hessian: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Grow a tree of gradient boosting, in C++ if the library is available, else in torch.

    Arguments and results are as in `grow_tree_in_torch`.
    """
    if why_unavailable():
        return grow_tree_in_torch(bins, columns, gradient, hessian)
    whole, real = torch.int64, torch.float64
    column, last = (new(2**DEPTH - 1, dtype=whole) for _ in range(2))
    place = new(len(gradient), dtype=whole)
    threads = torch.get_num_threads()
    scratch = new(threads * BYTES_PER_THREAD, dtype=torch.uint8)
    call = TreeCall(
        threads=threads,
        rows=bins.shape[1],
        used=len(columns),
        depth=DEPTH,
        bins=address(bins, dtype=torch.uint8),
        columns=address(columns, dtype=whole),
        gradient=address(gradient, dtype=real),
        hessian=address(hessian, dtype=real),
        column=address(column, dtype=whole),
        last=address(last, dtype=whole),
        place=address(place, dtype=whole),
        scratch=address(scratch, dtype=torch.uint8),
        least_rows=LEAST_ROWS,
        ridge=RIDGE,
        least_gain=SMALLEST_GAIN,
    )
    load_library().grow_tree(call)
    return column, last, place


def grow_tree_in_torch(
    bins: Tensor, columns: Tensor, gradient: Tensor, hessian: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Grow a tree that fits the negative gradient, level by level.

    Each node takes the split with the greatest gain, or the first of equal splits. Each side of a
    split must have at least `LEAST_ROWS` examples. If no split of a node gains more than
    `SMALLEST_GAIN`, all examples of the node go left.

    Args:
        bins: bin of each value, (A, B) uint8.
        columns: indices of the columns that the tree may use, ascending, (F,) int64.
        gradient: first derivative of the loss by the logit of each example, (B,) float64.
        hessian: second derivative of the loss, (B,) float64.

    Returns:
        Three int64 tensors: the column of each split, (S,); the last bin that goes left at each
        split, (S,); and the leaf of each example, (B,). Splits are in the order of levels, from
        left to right.
    """
    node = torch.zeros(len(gradient), dtype=torch.long)
    chosen = bins[columns].long()
    splits: list[tuple[Tensor, Tensor]] = []
    for level in range(DEPTH):
        nodes = 2**level
        key = (torch.arange(len(columns)).unsqueeze(1) * nodes + node) * MOST_BINS + chosen
        size = len(columns) * nodes * MOST_BINS
        parts = []
        for weight in (gradient, hessian, torch.ones_like(gradient)):
            weights = weight.expand(key.shape).flatten()
            counts = torch.bincount(key.flatten(), weights, size)
            parts.append(counts.view(len(columns), nodes, MOST_BINS).cumsum(2))
        g, h, n = parts
        gains = (
            g.square() / (h + RIDGE)
            + (g[..., -1:] - g).square() / (h[..., -1:] - h + RIDGE)
            - g[..., -1:].square() / (h[..., -1:] + RIDGE)
        )
        gains[(n < LEAST_ROWS) | (n[..., -1:] - n < LEAST_ROWS)] = -1.0
        best = gains.transpose(0, 1).flatten(1).max(1)
        gains_enough = best.values > SMALLEST_GAIN
        column = torch.where(gains_enough, columns[best.indices // MOST_BINS], columns[0])
        last = torch.where(gains_enough, best.indices % MOST_BINS, MOST_BINS)
        splits.append((column, last))
        node = 2 * node + (bins[column[node], torch.arange(len(node))].long() > last[node]).long()
    return torch.cat([c for c, _ in splits]), torch.cat([x for _, x in splits]), node
