"""Pooling: from the encoder's states of all time steps to one vector per sequence.

A pooling is one class in this module, entered in `POOLINGS` under its name in model.pooling. It
has three methods: `summarize` summarizes the states of some time steps, `merge` merges the
summaries of two consecutive parts of a sequence, and `finalize` turns a summary into a vector. They
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

LAST_STATE = "last"
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

    def finalize(self, summary: Tensor) -> Tensor:
        """Return the pooled vectors (B, H) for summaries (B, S)."""
        return summary


class SumPooling(Pooling):
    """Sum of the states, which isn't divided by the number of steps."""

    def summarize(self, states: Tensor, sequences: Layout) -> Tensor:
        """Return the sum of the states of each sequence, (B, H)."""
        return sequences.sum(states)

    def merge(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the sum of the summaries of both parts."""
        return first + second


class MeanPooling(SumPooling):
    """Mean of the states. A summary is the sum and the number of steps."""

    extra_columns = 1

    def summarize(self, states: Tensor, sequences: Layout) -> Tensor:
        """Return the sum of the states of each sequence, and its number of steps, (B, H + 1)."""
        return torch.cat((sequences.sum(states), sequences.lengths.to(states.dtype)), dim=1)

    def finalize(self, summary: Tensor) -> Tensor:
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

    def finalize(self, summary: Tensor) -> Tensor:
        """Return the weighted sums divided by the sums of the weights, (B, H)."""
        return summary[:, : self.width] / summary[:, self.width : self.width + 1]


POOLINGS: Mapping[str, type[Pooling]] = {
    "mean": MeanPooling,
    "max": MaxPooling,
    "sum": SumPooling,
    "attention": AttentionPooling,
}
"""Maps each value of model.pooling except `LAST_STATE` to its class."""


class PoolingList(nn.ModuleDict):
    """Poolings of the same states, whose vectors are concatenated.

    Args:
        names: names of the poolings, distinct keys of `POOLINGS`, at least one.
        width: width H of a state.
        attention_size: number of hidden units of attention, or None for H.
    """

    def __init__(self, names: Sequence[str], width: int, attention_size: int | None = None) -> None:
        super().__init__({name: POOLINGS[name](width, attention_size) for name in names})

    @property
    def parts(self) -> list[Pooling]:
        """The poolings in order."""
        return [part for part in self.values() if isinstance(part, Pooling)]

    def forward(self, states: Tensor, layout: Layout) -> Tensor:
        """Return the pooled states of whole sequences, or after every step; in at least float32.

        Args:
            states: states of the time steps.
            layout: positions of the time steps.

        Shape:
            states: packed (N, H) or padded (T, B, H). Returns: (B, K * H); with `layout.every_step`
            (N, K * H), where row n pools the states of its sequence up to and including step n.
        """
        if layout.every_step:
            assert isinstance(layout, Packed)
            return self._after_each_step(states, layout)
        ops = ops_for(states, layout)
        pooled = [ops.pool(part, states, layout) for part in self.parts]
        if len(pooled) > 1:
            return torch.cat(pooled, dim=1)
        return pooled[0]

    def add_segment(self, summary: Tensor | None, states: Tensor, layout: Packed) -> Tensor:
        """Return the summary of sequences up to the end of a segment.

        Row i of `summary` and row i of the segment belong to the same sequence. Further rows of the
        summary are copied to the result.

        Args:
            summary: summary of the states before the segment, or None if there are none.
            states: packed states of the segment.
            layout: positions of the segment's time steps.

        Shape:
            summary: (up to B, S). states: (N, H). Returns: (B, S), in at least float32.
        """
        states = states.to(torch.promote_types(states.dtype, torch.float32))
        own = torch.cat([part.summarize(states, layout) for part in self.parts], dim=1)
        if summary is None:
            return own
        rows = min(len(summary), len(own))
        pairs = zip(self.parts, self._split(summary[:rows]), self._split(own[:rows]), strict=True)
        merged = torch.cat([part.merge(first, second) for part, first, second in pairs], dim=1)
        return torch.cat((merged, summary[rows:], own[rows:]))

    def finalize(self, summary: Tensor) -> Tensor:
        """Return the pooled vectors, (B, K * H), of the result of `add_segment`."""
        pairs = zip(self.parts, self._split(summary), strict=True)
        return torch.cat([part.finalize(own) for part, own in pairs], dim=1)

    def _after_each_step(self, states: Tensor, layout: Packed) -> Tensor:
        """Return the pooled states after every time step, in packed order, (N, K * H)."""
        summary: Tensor | None = None
        pooled = []
        for state in states.split_with_sizes(layout.batch_sizes.tolist()):
            one_step = torch.tensor([len(state)], dtype=torch.int64, device="cpu")
            before = None if summary is None else summary[: len(state)]
            summary = self.add_segment(before, state, Packed(one_step, states.device))
            pooled.append(self.finalize(summary))
        return torch.cat(pooled)

    def _split(self, summary: Tensor) -> tuple[Tensor, ...]:
        return summary.split_with_sizes([x.width + x.extra_columns for x in self.parts], dim=1)


def pooling_names(pooling: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names in model.pooling in the order in which their vectors are concatenated.

    The order is the order in the config, except that "last" comes first.

    Args:
        pooling: value of model.pooling: a name, or several.
    """
    names = (pooling,) if isinstance(pooling, str) else tuple(pooling)
    return tuple(sorted(names, key=lambda name: name != LAST_STATE))
