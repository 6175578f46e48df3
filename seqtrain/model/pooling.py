"""From the encoder's states to one vector a sequence, over valid steps only.

B batch, N steps of all sequences, H width of a state (both directions joined).
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn


def last_valid_state(h_n: Tensor, *, bidirectional: bool) -> Tensor:
    """Return the top layer's last valid state of each sequence, directions joined.

    The backward direction ends at step 0, so its last state is its state there.

    Args:
        h_n: final states as nn.GRU returns them for packed input.
        bidirectional: whether the last two entries are the two directions.

    Shape:
        h_n: (layers * directions, B, hidden). Returns: (B, H).
    """
    return torch.cat((h_n[-2], h_n[-1]), dim=1) if bidirectional else h_n[-1]


class StepPooling(nn.Module):
    """Mean, max or attention over the valid steps of each sequence; nothing is padded.

    Attention scores each step with one learned vector and averages by their softmax.

    Args:
        how: mean, max or attention.
        width: H.

    Reference:
        Attention: Yang et al. 2016, "Hierarchical Attention Networks", section 2.2.
    """

    def __init__(self, how: str, width: int) -> None:
        super().__init__()
        self.how = how
        if how == "attention":
            self.project = nn.Linear(width, width)
            self.score = nn.Linear(width, 1, bias=False)

    def forward(self, states: Tensor, batch_sizes: Tensor) -> Tensor:
        """Pool the states of all steps.

        Shape:
            states: (N, H), packed. batch_sizes: (T,), on the CPU. Returns: (B, H) float32, row
            by row: sums over steps are too long for a lower precision.
        """
        states = states.float()
        row = rows_of_steps(batch_sizes).to(states.device)
        rows = int(batch_sizes[0])
        if self.how == "max":
            return _reduce(states, row, rows, "amax")
        if self.how == "mean":
            total = states.new_zeros(rows, states.shape[1]).index_add(0, row, states)
            return total / torch.bincount(row, minlength=rows).unsqueeze(1)
        scores = self._scores(states)
        weights = (scores - _reduce(scores.detach(), row, rows, "amax")[row]).exp()
        total = weights.new_zeros(rows, 1).index_add(0, row, weights)
        weighted = (weights / total[row]) * states
        pooled: Tensor = weighted.new_zeros(rows, states.shape[1]).index_add(0, row, weighted)
        return pooled

    def running(self, states: Tensor, batch_sizes: Tensor) -> Tensor:
        """Pool after every step: row n pools its sequence's states up to step n.

        Shape:
            states: (N, H), packed. batch_sizes: (T,), on the CPU. Returns: (N, H) float32, packed.

        Reference:
            Softmax of a growing list: Milakov & Gimelshein 2018, arXiv:1805.02867.
        """
        states, sizes = states.float(), batch_sizes.tolist()
        if self.how == "max":
            pooled = states.clone()
            for before, now in pairwise(pooled.split_with_sizes(sizes)):
                torch.maximum(before[: len(now)], now, out=now)
            return pooled
        # The mean is attention whose scores are all equal.
        scores = states.new_zeros(len(states), 1) if self.how == "mean" else self._scores(states)
        average = states.new_zeros(sizes[0], states.shape[1])
        highest, total = states.new_full((sizes[0], 1), -torch.inf), states.new_zeros(sizes[0], 1)
        averages = []
        for state, score in zip(
            states.split_with_sizes(sizes), scores.split_with_sizes(sizes), strict=True
        ):
            before, average = highest[: len(state)], average[: len(state)]
            highest = torch.maximum(before, score)
            weight = (score - highest).exp()
            total = total[: len(state)] * (before - highest).exp() + weight
            average = average + (state - average) * (weight / total)
            averages.append(average)
        return torch.cat(averages)

    def _scores(self, states: Tensor) -> Tensor:
        scores: Tensor = self.score(torch.tanh(self.project(states))).float()
        return scores


def rows_of_steps(batch_sizes: Tensor) -> Tensor:
    """Return the row that each packed step belongs to.

    Shape:
        batch_sizes: (T,), on the CPU. Returns: (N,) int64.
    """
    starts = torch.cumsum(batch_sizes, 0) - batch_sizes
    return torch.arange(int(batch_sizes.sum())) - torch.repeat_interleave(starts, batch_sizes)


def _reduce(values: Tensor, row: Tensor, rows: int, how: str) -> Tensor:
    index = row.unsqueeze(1).expand_as(values)
    empty = values.new_zeros(rows, values.shape[1])
    return empty.scatter_reduce(0, index, values, how, include_self=False)
