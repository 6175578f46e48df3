"""From the encoder's states to one vector a sequence, over valid steps only.

The last valid state is had in three equal ways: from h_n, where packed kernels leave it; gathered
at length - 1 of the padded states; or by a mask of last steps. The first needs no states but the
last, so the classifier takes it; `unroll: padded` has to gather.

B batch, T longest length, N steps of all sequences, H width of a state (both directions joined).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqtrain.data.lengths import check_lengths


def last_valid_state(h_n: Tensor, *, bidirectional: bool) -> Tensor:
    """Return the top layer's last valid state of each sequence, directions side by side.

    The backward direction ends at step 0, so its last state is its state there.

    Args:
        h_n: final states as nn.GRU returns them for packed input.
        bidirectional: whether the last two entries are the two directions.

    Shape:
        h_n: (layers * directions, B, hidden). Returns: (B, directions * hidden).
    """
    return torch.cat((h_n[-2], h_n[-1]), dim=1) if bidirectional else h_n[-1]


def last_by_gather(states: Tensor, lengths: Tensor, *, bidirectional: bool = False) -> Tensor:
    """Return the same from padded states of the top layer: those at length - 1.

    Args:
        states: of all steps; what stands in the padding counts for nothing.
        lengths: steps of each sequence, on the CPU.
        bidirectional: whether the second half of a state is the backward direction's.

    Shape:
        states: (B, T, H). lengths: (B,) int64. Returns: (B, H).

    Raises:
        ValueError: lengths don't fit.
    """
    check_lengths(lengths, *states.shape[:2])
    row = torch.arange(len(states), device=states.device)
    last = states[row, lengths.to(states.device) - 1]
    return _with_first_of_backward(last, states) if bidirectional else last


def last_by_mask(states: Tensor, lengths: Tensor, *, bidirectional: bool = False) -> Tensor:
    """Return the same from padded states by a mask that is true at each last valid step alone.

    Arguments, shapes and errors are those of `last_by_gather`.
    """
    check_lengths(lengths, *states.shape[:2])
    step = torch.arange(states.shape[1], device=states.device)
    last = states[step == lengths.to(states.device).unsqueeze(1) - 1]
    return _with_first_of_backward(last, states) if bidirectional else last


def _with_first_of_backward(last: Tensor, states: Tensor) -> Tensor:
    half = states.shape[2] // 2
    return torch.cat((last[:, :half], states[:, 0, half:]), dim=1)


def join_directions(states: Tensor, how: str) -> Tensor:
    """Join the states of two directions.

    Args:
        states: the two side by side.
        how: concat (as they are), sum or mean.

    Shape:
        states: (…, 2 * hidden). Returns: the same, or (…, hidden).
    """
    if how == "concat":
        return states
    forward, backward = states.chunk(2, dim=-1)
    joined = forward + backward
    return joined / 2 if how == "mean" else joined


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
            states: (N, H), packed. batch_sizes: (T,), on the CPU. Returns: (B, H), row by row, at
            least float32: sums over steps are too long for a lower precision.
        """
        dtype = torch.promote_types(states.dtype, torch.float32)
        states = states.to(dtype)
        row = rows_and_steps(batch_sizes)[0].to(states.device)
        rows = int(batch_sizes[0])
        if self.how == "max":
            return _reduce(states, row, rows, "amax")
        if self.how == "mean":
            total = states.new_zeros(rows, states.shape[1]).index_add(0, row, states)
            return total / torch.bincount(row, minlength=rows).unsqueeze(1)
        scores = self.score(torch.tanh(self.project(states))).to(dtype)
        weights = (scores - _reduce(scores.detach(), row, rows, "amax")[row]).exp()
        total = weights.new_zeros(rows, 1).index_add(0, row, weights)
        weighted = (weights / total[row]) * states
        pooled: Tensor = weighted.new_zeros(rows, states.shape[1]).index_add(0, row, weighted)
        return pooled


def rows_and_steps(batch_sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Return the row and the step of each packed step.

    Shape:
        batch_sizes: (T,), on the CPU. Returns: (N,) int64 each.
    """
    starts = torch.cumsum(batch_sizes, 0) - batch_sizes
    row = torch.arange(int(batch_sizes.sum())) - starts.repeat_interleave(batch_sizes)
    return row, torch.arange(len(batch_sizes)).repeat_interleave(batch_sizes)


def _reduce(values: Tensor, row: Tensor, rows: int, how: str) -> Tensor:
    index = row.unsqueeze(1).expand_as(values)
    empty = values.new_zeros(rows, values.shape[1])
    return empty.scatter_reduce(0, index, values, how, include_self=False)
