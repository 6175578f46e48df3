"""Pooling: from the encoder's states of all time steps to one vector per sequence.

A pooling is one class in this module, entered in `POOLINGS` under its name in model.pooling. It
has three methods: `summarize` summarizes the states of some time steps, `merge` merges the
summaries of two consecutive parts of a sequence, and `finish` turns a summary into a vector. They
suffice to pool whole sequences, to pool segment by segment, and to export to ONNX.

B sequences, N packed time steps, H width of a state (both directions), S width of a summary, K
poolings.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from seqtrain.engines.choice import ops_for
from seqtrain.engines.layout import Layout, Packed

LAST = "last"
"""Value of model.pooling for the last valid state, which isn't a `Pooling`."""


class Pooling(nn.Module, ABC):
    """Base of poolings, which reduce the valid states of each sequence to one vector of width H.

    Args:
        width: width H of a state.
        attention_size: number of hidden units of attention, or None for H. Other poolings ignore
            it.
    """

    kind: ClassVar[str] = ""
    """Name of the pooling, by which a backend knows that it has it in native code."""
    extra_columns = 0
    """Number of columns of a summary beyond the H of a state: S = H + extra_columns."""

    def __init__(self, width: int, attention_size: int | None = None) -> None:
        super().__init__()
        self.width = width

    @property
    def summary_width(self) -> int:
        """Number of columns of a summary."""
        return self.width + self.extra_columns

    @abstractmethod
    def summarize(self, states: Tensor, sequences: Layout) -> Tensor:
        """Return a summary of the valid states of each sequence, (B, S).

        Args:
            states: states of the time steps, packed (N, H) or padded (T, B, H).
            sequences: layout of the time steps.
        """

    @abstractmethod
    def merge(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the summary of each sequence, (B, S).

        Args:
            first: summary of the first part of each sequence, (B, S).
            second: summary of the part that follows, (B, S).
        """

    @abstractmethod
    def finish(self, summary: Tensor) -> Tensor:
        """Return the pooled vectors (B, H) for summaries (B, S)."""


class SumPooling(Pooling):
    """Sum of the states, which isn't divided by the number of steps."""

    def summarize(self, states: Tensor, sequences: Layout) -> Tensor:
        """Return the sum of the states of each sequence, (B, H)."""
        return sequences.sum(states)

    def merge(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the sum of the summaries of both parts."""
        return first + second

    def finish(self, summary: Tensor) -> Tensor:
        """Return the summary, which is the pooled vector already."""
        return summary


class MeanPooling(SumPooling):
    """Mean of the states. A summary is the sum and the number of steps."""

    extra_columns = 1

    def summarize(self, states: Tensor, sequences: Layout) -> Tensor:
        """Return the sum of the states of each sequence, and its number of steps, (B, H + 1)."""
        return torch.cat((sequences.sum(states), sequences.lengths.to(states.dtype)), dim=1)

    def finish(self, summary: Tensor) -> Tensor:
        """Return the sums divided by the numbers of steps, (B, H)."""
        return summary[:, :-1] / summary[:, -1:]


class MaxPooling(Pooling):
    """Largest value of each unit over the steps."""

    kind = "max"

    def summarize(self, states: Tensor, sequences: Layout) -> Tensor:
        """Return the largest value of each unit in each sequence, (B, H)."""
        return sequences.max(states)

    def merge(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the larger value of both parts for each unit."""
        return torch.maximum(first, second)

    def finish(self, summary: Tensor) -> Tensor:
        """Return the summary, which is the pooled vector already."""
        return summary


class AttentionPooling(Pooling):
    """Weighted mean of the states. The softmax of a learned score gives the weights.

    A summary is the weighted sum, the sum of the weights, and the largest score. The weights of a
    summary are exp(score - largest score).

    Reference:
        Yang et al. 2016, "Hierarchical Attention Networks", section 2.2; the softmax over segments:
        Milakov & Gimelshein 2018, arXiv:1805.02867.
    """

    kind = "attention"
    extra_columns = 2

    def __init__(self, width: int, attention_size: int | None = None) -> None:
        super().__init__(width)
        size = attention_size or width
        self.project = nn.Linear(width, size)
        self.score = nn.Linear(size, 1, bias=False)

    def summarize(self, states: Tensor, sequences: Layout) -> Tensor:
        """Return the weighted sum, the sum of the weights, and the largest score, (B, H + 2)."""
        scores = self.score(torch.tanh(self.project(states))).to(states.dtype)
        largest = sequences.max(scores.detach())
        weights = (scores - sequences.spread(largest)).exp()
        sums = sequences.sum(torch.cat((weights * states, weights), dim=-1))
        return torch.cat((sums, largest), dim=1)

    def merge(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the joint summary, (B, H + 2).

        The sums of both summaries are scaled to the same largest score, and then added.
        """
        largest = torch.maximum(first[:, -1:], second[:, -1:]).detach()
        scaled = [
            part[:, :-1] * (part[:, -1:].detach() - largest).exp() for part in (first, second)
        ]
        return torch.cat((scaled[0] + scaled[1], largest), dim=1)

    def finish(self, summary: Tensor) -> Tensor:
        """Return the weighted sums divided by the sums of the weights, (B, H)."""
        return summary[:, : self.width] / summary[:, self.width : self.width + 1]


POOLINGS: Mapping[str, type[Pooling]] = {
    "mean": MeanPooling,
    "max": MaxPooling,
    "sum": SumPooling,
    "attention": AttentionPooling,
}
"""Maps each value of model.pooling except `LAST` to its class."""


class PoolingList(nn.ModuleDict):
    """Several poolings of the same states, whose vectors are concatenated.

    It has the methods `summarize`, `merge` and `finish` of a `Pooling`.

    Args:
        names: names of the poolings, distinct keys of `POOLINGS`.
        width: width H of a state.
        attention_size: number of hidden units of attention, or None for H.
    """

    def __init__(self, names: Sequence[str], width: int, attention_size: int | None = None) -> None:
        super().__init__({name: POOLINGS[name](width, attention_size) for name in names})

    @property
    def parts(self) -> list[Pooling]:
        """The poolings in order."""
        return [part for part in self.values() if isinstance(part, Pooling)]

    def summarize(self, states: Tensor, sequences: Layout) -> Tensor:
        """Return the summaries of all poolings, concatenated."""
        return torch.cat([part.summarize(states, sequences) for part in self.parts], dim=1)

    def merge(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the merged summaries of all poolings, concatenated."""
        pairs = zip(self.parts, self._split(first), self._split(second), strict=True)
        return torch.cat([part.merge(one, other) for part, one, other in pairs], dim=1)

    def finish(self, summary: Tensor) -> Tensor:
        """Return the pooled vectors of all poolings, concatenated, (B, K * H)."""
        pairs = zip(self.parts, self._split(summary), strict=True)
        return torch.cat([part.finish(own) for part, own in pairs], dim=1)

    def _split(self, summary: Tensor) -> tuple[Tensor, ...]:
        return summary.split_with_sizes([part.summary_width for part in self.parts], dim=1)


AnyPooling = Pooling | PoolingList


def pooling_names(pooling: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names in model.pooling in the order in which their vectors are concatenated.

    The order is the order in the config, except that "last" comes first.

    Args:
        pooling: value of model.pooling: a name, or several.
    """
    names = (pooling,) if isinstance(pooling, str) else tuple(pooling)
    return tuple(sorted(names, key=lambda name: name != LAST))


def make_pooling(
    pooling: str | Sequence[str], width: int, attention_size: int | None = None
) -> AnyPooling | None:
    """Return the module that pools the states, or None if model.pooling is only "last".

    The name "last" has no module, and is left out. The module is a `Pooling` for a single name, and
    a `PoolingList` for a list.

    Args:
        pooling: value of model.pooling: a name, or several.
        width: width H of a state.
        attention_size: number of hidden units of attention, or None for H.
    """
    names = [name for name in pooling_names(pooling) if name != LAST]
    if not names:
        return None
    if isinstance(pooling, str):
        return POOLINGS[pooling](width, attention_size)
    return PoolingList(names, width, attention_size)


def pool(pooling: AnyPooling, states: Tensor, layout: Layout) -> Tensor:
    """Return the pooled states of whole sequences, or after every step; in at least float32.

    Args:
        pooling: one pooling, or several, whose vectors are concatenated.
        states: states of the time steps.
        layout: positions of the time steps.

    Shape:
        states: packed (N, H) or padded (T, B, H). Returns: (B, K * H); with `layout.every_step`
        (N, K * H), where row n pools the states of its sequence up to and including step n.
    """
    if layout.every_step:
        assert isinstance(layout, Packed)
        return _pool_after_each_step(pooling, states, layout.batch_sizes)
    parts = pooling.parts if isinstance(pooling, PoolingList) else [pooling]
    ops = ops_for(states, layout)
    pooled = [ops.pool(part, states, layout) for part in parts]
    return torch.cat(pooled, dim=1) if len(pooled) > 1 else pooled[0]


def add_segment(
    pooling: AnyPooling, summary: Tensor | None, states: Tensor, layout: Packed
) -> Tensor:
    """Return the summary of sequences up to the end of a segment.

    Row i of `summary` and row i of the segment belong to the same sequence. If the numbers of rows
    differ, rows without a partner are copied to the result.

    Args:
        pooling: the pooling that made the summary.
        summary: summary of the states before the segment, or None if there are none.
        states: packed states of the segment.
        layout: positions of the segment's time steps.

    Shape:
        summary: (up to B, S). states: (N, H). Returns: (B, S), in at least float32.
    """
    states = states.to(torch.promote_types(states.dtype, torch.float32))
    own = pooling.summarize(states, layout)
    if summary is None:
        return own
    rows = min(len(summary), len(own))
    merged = pooling.merge(summary[:rows], own[:rows])
    if len(summary) == len(own):
        return merged
    return torch.cat((merged, summary[rows:], own[rows:]))


def _pool_after_each_step(pooling: AnyPooling, states: Tensor, batch_sizes: Tensor) -> Tensor:
    """Return the pooled states after every time step, in packed order, (N, K * H)."""
    summary: Tensor | None = None
    pooled = []
    for state in states.split_with_sizes(batch_sizes.tolist()):
        one_step = torch.tensor([len(state)], dtype=torch.int64, device="cpu")
        before = None if summary is None else summary[: len(state)]
        summary = add_segment(pooling, before, state, Packed(one_step, states.device))
        pooled.append(pooling.finish(summary))
    return torch.cat(pooled)


def last_valid_state(h_n: Tensor, *, bidirectional: bool) -> Tensor:
    """Return the top layer's last valid state of each sequence, directions concatenated.

    For the backward direction, it is the state after reading the first time step.

    Shape:
        h_n: (layers * directions, B, hidden), as nn.GRU returns it for packed input. Returns: (B,
        directions * hidden).
    """
    if bidirectional:
        return torch.cat((h_n[-2], h_n[-1]), dim=1)
    return select_state(h_n, -1)


def select_state(states: Tensor, index: int) -> Tensor:
    """Return states[index]. If `states` has one entry, `squeeze` avoids a copy of its gradient."""
    return states.squeeze(0) if len(states) == 1 else states[index]


def join_directions(states: Tensor, how: str) -> Tensor:
    """Join the states of two directions, which are concatenated.

    Args:
        states: (…, 2 * hidden).
        how: "concat" to return them unchanged; "sum" or "mean" to return (…, hidden).
    """
    if how == "concat":
        return states
    forward, backward = states.chunk(2, dim=-1)
    total = forward + backward
    return total / 2 if how == "mean" else total
