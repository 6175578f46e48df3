"""The sum of gradients over processes: dense, or of tables the rows that a process touched.

U touched rows of a table, E size of a row.
"""

from collections.abc import Collection

import torch
from torch import Tensor

from seqtrain.training.distributed import Processes


def sum_gradients(
    processes: Processes,
    weights: Collection[Tensor],
    tables: Collection[Tensor],
    count: Tensor,
    *figures: Tensor,
) -> list[Tensor]:
    """Let weights have the gradient of the mean over the losses of all processes.

    A weight without a gradient counts as zeros, or stays without one where no process has one. Of
    `tables`, with sparse gradients, the rows that any process touched are summed. `count` is the
    number of this process's losses, a scalar. Returns the sums of count and figures.

    Raises:
        RunError: a process is lost.
    """
    learning = [weight for weight in weights if weight.requires_grad]
    given = count.new_tensor([float(weight.grad is not None) for weight in learning])
    sparse = [weight for weight in learning if any(weight is table for table in tables)]
    given, *marked = processes.sum(given, *map(_marked, sparse))
    rows = dict(zip(sparse, (marks.nonzero().squeeze(1) for marks in marked), strict=True))
    pieces = [_dense(weight, rows.get(weight)) for weight in learning]
    sums = processes.sum(*pieces, count, *figures)
    summed, figures_summed = sums[: len(learning)], sums[len(learning) :]
    for weight, is_given, total in zip(learning, given.tolist(), summed, strict=True):
        mean = total / figures_summed[0]
        weight.grad = _gradient(weight, mean, rows.get(weight)) if is_given else None
    return figures_summed


def _marked(table: Tensor) -> Tensor:
    """Return 1 for each row of a table that its gradient has, else 0."""
    marks = table.new_zeros(len(table))
    return marks if table.grad is None else marks.index_fill_(0, table.grad._indices()[0], 1)


def _dense(weight: Tensor, rows: Tensor | None) -> Tensor:
    """Return a weight's gradient, of a table these rows alone: (U, E)."""
    gradient = weight.grad
    if rows is None:
        return torch.zeros_like(weight) if gradient is None else gradient
    values = weight.new_zeros(len(rows), weight.shape[1])
    if gradient is not None:
        gradient = gradient.coalesce()
        values[torch.searchsorted(rows, gradient.indices()[0])] = gradient.values()
    return values


def _gradient(weight: Tensor, values: Tensor, rows: Tensor | None) -> Tensor:
    if rows is None:
        return values
    return torch.sparse_coo_tensor(
        rows[None], values, weight.shape,
        is_coalesced=True, check_invariants=False, device=weight.device,
    )  # fmt: skip
