"""Growing one tree of gradient boosting: in C++, or by the reference implementation in torch.

B examples, A binned columns, F columns that a tree may use, S splits of a tree.
"""

import torch
from torch import Tensor

from seqtrain.engines.native.library import (
    TreeCall,
    address,
    load_library,
    new,
    why_unavailable,
)

DEPTH = 3
"""Levels of a tree."""
BINS = 64
"""Number of bins of a column, including bin 0 for missing values."""
LEAST_ROWS = 5
"""Smallest number of examples on each side of a split."""
RIDGE = 1.0
"""Penalty of the squared value of a leaf."""
SMALLEST_GAIN = 1e-6
"""Gain that a split must exceed to be used."""
BYTES_PER_THREAD = 256
"""Bytes of scratch memory that the native function needs per thread."""


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
        key = (torch.arange(len(columns)).unsqueeze(1) * nodes + node) * BINS + chosen
        size = len(columns) * nodes * BINS
        parts = []
        for weight in (gradient, hessian, torch.ones_like(gradient)):
            weights = weight.expand(key.shape).flatten()
            counts = torch.bincount(key.flatten(), weights, size)
            parts.append(counts.view(len(columns), nodes, BINS).cumsum(2))
        g, h, n = parts
        gains = (
            g.square() / (h + RIDGE)
            + (g[..., -1:] - g).square() / (h[..., -1:] - h + RIDGE)
            - g[..., -1:].square() / (h[..., -1:] + RIDGE)
        )
        gains[(n < LEAST_ROWS) | (n[..., -1:] - n < LEAST_ROWS)] = -1.0
        best = gains.transpose(0, 1).flatten(1).max(1)
        gains_enough = best.values > SMALLEST_GAIN
        column = torch.where(gains_enough, columns[best.indices // BINS], columns[0])
        last = torch.where(gains_enough, best.indices % BINS, BINS)
        splits.append((column, last))
        node = 2 * node + (bins[column[node], torch.arange(len(node))].long() > last[node]).long()
    return torch.cat([c for c, _ in splits]), torch.cat([x for _, x in splits]), node
