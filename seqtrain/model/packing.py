"""Which sequence and which step each row of a PackedSequence's data is, and sums over them."""

import torch
from torch import Tensor


def rows_and_steps(batch_sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Return the row and the step of each packed step: (T,), on the CPU -> (N,) int64 each."""
    starts = torch.cumsum(batch_sizes, 0) - batch_sizes
    index = torch.arange(int(batch_sizes.sum()), dtype=torch.int64, device="cpu")
    row = index - starts.repeat_interleave(batch_sizes)
    step = torch.arange(len(batch_sizes), dtype=torch.int64, device="cpu")
    return row, step.repeat_interleave(batch_sizes)


def lengths_of(batch_sizes: Tensor) -> Tensor:
    """Return the steps of each packed row, (T,), on the CPU -> (B,) int64."""
    return rows_and_steps(batch_sizes)[0].bincount()


def row_sums(values: Tensor, row: Tensor, rows: int) -> Tensor:
    """Return the sum of each row's packed steps, (B, H), from their values (N, H) and rows (N,)."""
    return values.new_zeros(rows, values.shape[1]).index_add(0, row, values)
