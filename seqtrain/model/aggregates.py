"""Aggregates of a sequence for boosted trees: counts of tokens, and statistics of numbers.

A sequence with K columns per step becomes one row of A columns:

- its number of steps,
- the number of occurrences of each frequent token of each token column,
- eight statistics of the present values of each number column: count, first, last, mean, standard
  deviation, minimum, maximum and slope,
- for each frequent token, the same statistics, except the slope, over the steps with this token.
  Only number columns that depend on the token's column (`by` in data.steps) have them,
- its row features, with tokens as counts.

Sums run in float64, and padding is left out. So the aggregates of a sequence don't depend on the
batch. An exported model computes the same function.

B sequences, T longest length, K columns of a step, A aggregates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

STATISTICS = ("count", "first", "last", "mean", "std", "min", "max", "slope")


@dataclass(frozen=True)
class AggregateLayout:
    """Layout of the steps that `aggregate` reads, and the tokens that it counts.

    Attributes:
        tokens: for each token column, the number of ids that are counted, from id 1 (<unk>) on.
        numbers: number of number columns. They follow the token columns.
        indicators: True if indicators of missing values follow, one for each number column.
        row_tokens: for each token column of the row features, the number of ids that are counted.
        row_numbers: number of other columns of the row features, which are copied.
        by: for each number column, the index of a token column, or None. The number column is also
            aggregated for each token of that column. Empty if it would be None for all.
    """

    tokens: tuple[int, ...]
    numbers: int = 0
    indicators: bool = False
    row_tokens: tuple[int, ...] = ()
    row_numbers: int = 0
    by: tuple[int | None, ...] = ()

    @property
    def width(self) -> int:
        """Number of aggregates, A."""
        width = 1 + sum(self.tokens) + self.numbers * len(STATISTICS)
        width += sum(self.tokens[token] for token in self.by if token is not None) * (
            len(STATISTICS) - 1
        )
        return width + sum(self.row_tokens) + self.row_numbers

    @torch.no_grad()
    def aggregate(self, steps: Tensor, valid: Tensor, row_features: Tensor | None = None) -> Tensor:
        """Return the aggregates of each sequence, (B, A) float32.

        The module's docstring lists the aggregates in their order. The result has a statistic for
        all number columns, then the next statistic for all number columns. Without present values,
        the count of a column is 0, and its other statistics are NaN.

        Shape:
            steps: padded, (T, B) int64 ids or (T, B, K) float32. valid: (T, B, 1), True where a
            step isn't padding. row_features: (B, F) float32, or None if the layout has none.
        """
        count = len(self.tokens)
        columns = steps.unsqueeze(2) if steps.ndim == 2 else steps
        ids = columns[:, :, :count].long()
        parts = [valid.double().sum(0), *_token_counts(ids, valid, self.tokens)]
        if self.numbers:
            after = count + self.numbers
            numbers = columns[:, :, count:after].double()
            present = valid.expand_as(numbers)
            if self.indicators:
                present = present & (columns[:, :, after : after + self.numbers] <= 0)
            parts += statistics(numbers, present)
            for column in sorted({token for token in self.by if token is not None}):
                chosen = [number for number, token in enumerate(self.by) if token == column]
                own, some = ids[:, :, column : column + 1], numbers[:, :, chosen]
                for token in range(1, self.tokens[column] + 1):
                    parts += statistics(some, present[:, :, chosen] & (own == token))[:-1]
        if row_features is not None:
            row_ids = row_features[None, :, : len(self.row_tokens)].long()
            parts += _token_counts(row_ids, valid[:1], self.row_tokens)
            parts.append(row_features[:, len(self.row_tokens) :].double())
        return torch.cat(parts, dim=1).float()


def _token_counts(ids: Tensor, valid: Tensor, limits: Sequence[int]) -> list[Tensor]:
    """Return the number of steps of each sequence that have each counted id.

    Args:
        ids: ids of C token columns, (T, B, C).
        valid: True where a step isn't padding, (T, B, 1).
        limits: largest id of each column that is counted.

    Returns:
        One tensor (B, limit) for each column: the counts of the ids from 1 to its limit.
    """
    counts = []
    for number, limit in enumerate(limits):
        column = ids[:, :, number : number + 1].masked_fill(~valid, 0)
        counts.append(
            torch.cat([(column == token).double().sum(0) for token in range(1, limit + 1)], dim=1)
        )
    return counts


def statistics(numbers: Tensor, present: Tensor) -> list[Tensor]:
    """Return `STATISTICS` of the present values of each sequence, (B, F) float64 each.

    The slope belongs to the least-squares line through the present values, numbered from 0. It is 0
    for a single value. Without a present value, the count is 0 and the other statistics are NaN.

    Shape:
        numbers: (T, B, F) float64. present: (T, B, F), True where a value counts.
    """
    number = present.double()
    count = number.sum(0)
    place = number.cumsum(0) - 1

    def mean_of(values: Tensor) -> Tensor:
        return torch.where(present, values, 0.0).sum(0) / count

    mean = mean_of(numbers)
    deviation, time = numbers - mean, place - (count - 1) / 2
    spread = mean_of(time.square())
    found = (
        torch.where(present & (place == 0), numbers, 0.0).sum(0),
        torch.where(present & (place == count - 1), numbers, 0.0).sum(0),
        mean,
        mean_of(deviation.square()).sqrt(),
        torch.where(present, numbers, torch.inf).amin(0),
        torch.where(present, numbers, -torch.inf).amax(0),
        torch.where(count > 1, mean_of(time * deviation) / spread, 0.0),
    )
    return [count, *(torch.where(count > 0, each, torch.nan) for each in found)]
