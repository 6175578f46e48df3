"""From the encoder's states to one vector a sequence, over valid time steps only.

The last valid state is had in three equal ways: from h_n, where packed kernels leave it, as the
classifier does; gathered at length - 1 of padded states; or from these by a mask of last steps.

B batch, T longest length, N steps of all sequences, H width of a state (both directions), K
poolings.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor, nn

from seqtrain.data.batch import check_lengths
from seqtrain.model.engines.operations import native_takes, pool
from seqtrain.model.packing import row_sums, rows_and_steps

COLUMNS = {"max": 0, "mean": 1, "attention": 2}
"""Columns that pooling keeps beside the vector while it adds up steps."""


def last_valid_state(h_n: Tensor, *, bidirectional: bool) -> Tensor:
    """Return the top layer's last valid state of each sequence, directions side by side.

    Shape:
        h_n: (layers * directions, B, hidden), as nn.GRU returns it for packed input. Returns: (B,
        directions * hidden).
    """
    if bidirectional:
        return torch.cat((h_n[-2], h_n[-1]), dim=1)
    return only(h_n, -1)


def only(states: Tensor, index: int) -> Tensor:
    """Return one of some states; of a single one a view, whose gradient takes no copy."""
    return states.squeeze(0) if len(states) == 1 else states[index]


def last_of_padded(states: Tensor, lengths: Tensor, *, by_mask: bool = False) -> Tensor:
    """Return the same from padded states, by an index or by a mask; the padding counts for nothing.

    Shape:
        states: (B, T, H). lengths: (B,) int64, on the CPU. Returns: (B, H).

    Raises:
        ValueError: lengths don't fit.
    """
    check_lengths(lengths, *states.shape[:2])
    end = lengths.to(states.device) - 1
    if by_mask:
        return states[torch.arange(states.shape[1], device=states.device) == end.unsqueeze(1)]
    return states[torch.arange(len(states), device=states.device), end]


def join_directions(states: Tensor, how: str) -> Tensor:
    """Join two directions, (…, 2 * hidden): concat (as they are), sum or mean (…, hidden)."""
    if how == "concat":
        return states
    forward, backward = states.chunk(2, dim=-1)
    total = forward + backward
    return total / 2 if how == "mean" else total


class StepPooling(nn.Module):
    """Mean, max or attention over the valid steps of each sequence; nothing is padded.

    Time steps are added up segment by segment (`begin`, `add`, `finish`). Attention scores each
    step with one learned vector of attention_size (None: H) and averages by their softmax.

    Reference:
        Attention: Yang et al. 2016, "Hierarchical Attention Networks", section 2.2; its softmax in
        segments: Milakov & Gimelshein 2018, arXiv:1805.02867.
    """

    def __init__(self, how: str, width: int, attention_size: int | None = None) -> None:
        super().__init__()
        self.how = how
        self.width = width
        self.project: nn.Linear | None = None
        self.score: nn.Linear | None = None
        if how == "attention":
            size = attention_size or width
            self.project = nn.Linear(width, size)
            self.score = nn.Linear(size, 1, bias=False)

    def begin(self, rows: int, *, like: Tensor) -> Tensor:
        """Return the pool of no steps, (B, S), on the device of `like` and at least float32.

        For the mean it is a sum and a count; for attention a weighted sum, the sum of weights, and
        the largest score.
        """
        dtype = torch.promote_types(like.dtype, torch.float32)
        pool = like.new_zeros(rows, self.width + COLUMNS[self.how], dtype=dtype)
        if self.how == "max":
            pool.fill_(-torch.inf)
        elif self.how == "attention":
            pool[:, -1] = -torch.inf
        return pool

    def add(self, pool: Tensor, states: Tensor, batch_sizes: Tensor) -> Tensor:
        """Return the pool (B, S) with packed steps (N, H) of its first rows added."""
        row = rows_and_steps(batch_sizes)[0].to(states.device)
        rows = int(batch_sizes[0])
        now, others = pool[:rows], pool[rows:]
        states = states.to(pool.dtype)
        if self.how == "max":
            now = now.scatter_reduce(0, row.unsqueeze(1).expand_as(states), states, "amax")
        elif self.how == "mean":
            counts = torch.bincount(row, minlength=rows).unsqueeze(1)
            now = now + torch.cat((row_sums(states, row, rows), counts), dim=1)
        else:
            now = self._attend(now, states, row)
        return torch.cat((now, others)) if len(others) else now

    def finish(self, pool: Tensor) -> Tensor:
        """Return the pooled vectors, (B, H)."""
        total, width = pool[:, : self.width], self.width
        return total if self.how == "max" else total / pool[:, width : width + 1]

    def _attend(self, now: Tensor, states: Tensor, row: Tensor) -> Tensor:
        assert self.project is not None
        assert self.score is not None
        scores = self.score(torch.tanh(self.project(states))).to(now.dtype)
        before = now[:, -1:].detach()
        peak = before.scatter_reduce(0, row.unsqueeze(1), scores.detach(), "amax")
        weights = (scores - peak[row]).exp()
        terms = torch.cat((weights * states, weights), dim=1)
        sums = now[:, :-1] * (before - peak).exp() + row_sums(terms, row, len(now))
        return torch.cat((sums, peak), dim=1)


class PoolingList(nn.ModuleDict):
    """Poolings of the same states, each once, their vectors side by side; as `StepPooling`."""

    def __init__(self, hows: Sequence[str], width: int, attention_size: int | None = None) -> None:
        super().__init__({how: StepPooling(how, width, attention_size) for how in hows})

    def begin(self, rows: int, *, like: Tensor) -> Tensor:
        """Return what `add` adds to: the pools of no steps."""
        return torch.cat([each.begin(rows, like=like) for each in self.each], dim=1)

    def add(self, pool: Tensor, states: Tensor, batch_sizes: Tensor) -> Tensor:
        """Return the pools with these steps added."""
        return self._of_each(pool, lambda each, own: each.add(own, states, batch_sizes))

    def finish(self, pool: Tensor) -> Tensor:
        """Return the pooled vectors, (B, K * H)."""
        return self._of_each(pool, StepPooling.finish)

    @property
    def each(self) -> list[StepPooling]:
        """The poolings, in their order."""
        return [each for each in self.values() if isinstance(each, StepPooling)]

    def _of_each(self, pool: Tensor, run: Callable[[StepPooling, Tensor], Tensor]) -> Tensor:
        widths = [each.width + COLUMNS[each.how] for each in self.each]
        pools = pool.split_with_sizes(widths, dim=1)
        return torch.cat([run(*both) for both in zip(self.each, pools, strict=True)], dim=1)


Pooling: TypeAlias = StepPooling | PoolingList


def pool_at_once(pooling: Pooling, states: Tensor, batch_sizes: Tensor) -> Tensor:
    """Pool the states of all steps, (N, H) packed: return (B, K * H), at least float32."""
    if isinstance(pooling, PoolingList):
        return torch.cat([pool_at_once(each, states, batch_sizes) for each in pooling.each], dim=1)
    if pooling.how in ("max", "attention") and native_takes(states):
        return pool(states, batch_sizes, pooling.project, pooling.score)
    begun = pooling.begin(int(batch_sizes[0]), like=states)
    return pooling.finish(pooling.add(begun, states, batch_sizes))


def pool_after_each_step(pooling: Pooling, states: Tensor, batch_sizes: Tensor) -> Tensor:
    """Pool after every step: row n of (N, K * H) pools its sequence's states (N, H) up to it."""
    pool, pooled = pooling.begin(int(batch_sizes[0]), like=states), []
    for state in states.split_with_sizes(batch_sizes.tolist()):
        one = torch.tensor([len(state)], dtype=torch.int64, device="cpu")
        pool = pooling.add(pool[: len(state)], state, one)
        pooled.append(pooling.finish(pool))
    return torch.cat(pooled)


def pooling_names(pooling: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names in model.pooling, in the order in which their vectors stand: last first."""
    names = (pooling,) if isinstance(pooling, str) else tuple(pooling)
    return tuple(sorted(names, key=lambda name: name != "last"))


def make_pooling(
    pooling: str | Sequence[str], width: int, attention_size: int | None = None
) -> Pooling | None:
    """Return what pools the states of all steps, as model.pooling has it; None: nothing does."""
    names = [name for name in pooling_names(pooling) if name != "last"]
    if not names:
        return None
    if isinstance(pooling, str):
        return StepPooling(pooling, width, attention_size)
    return PoolingList(names, width, attention_size)
