"""From the encoder's states to one vector a sequence, over valid steps only.

B batch, N steps of all sequences, H width of a state (both directions joined).
"""

from __future__ import annotations

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
        scores = self.score(torch.tanh(self.project(states))).float()
        weights = (scores - _reduce(scores.detach(), row, rows, "amax")[row]).exp()
        total = weights.new_zeros(rows, 1).index_add(0, row, weights)
        weighted = (weights / total[row]) * states
        pooled: Tensor = weighted.new_zeros(rows, states.shape[1]).index_add(0, row, weighted)
        return pooled


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
