"""Aggregates of a sequence for boosted trees: counts of tokens, and statistics of numbers.

A sequence with K columns per step becomes one row of A columns:

- its number of steps,
- the count of each frequent token of each token column,
- of each number column the count, first, last, mean, standard deviation, minimum, maximum and slope
  of its present values,
- the same without the slope within the steps of each frequent token, if there is one token column,
- its row features.

Sums run in float64 over the steps in their order, so that the other sequences of a batch change
nothing.

B sequences, N steps of all of them, K columns, A aggregates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

STATISTICS = ("count", "first", "last", "mean", "std", "min", "max", "slope")


@dataclass(frozen=True)
class AggregateLayout:
    """Columns of a step, and the number of tokens that are counted.

    Attributes:
        tokens: number of ids of each token column that are counted, from id 1 (<unk>) on.
        numbers: number columns; they follow the token columns.
        indicators: True if an indicator of missing values follows for each number column.
        row_tokens: number of ids of each token column of the row features, as `tokens`.
        row_numbers: other columns of the row features, which are taken as they are.
    """

    tokens: tuple[int, ...]
    numbers: int = 0
    indicators: bool = False
    row_tokens: tuple[int, ...] = ()
    row_numbers: int = 0

    @property
    def by_token(self) -> bool:
        """True if numbers are also aggregated within the steps of each token."""
        return len(self.tokens) == 1 and self.numbers > 0

    @property
    def width(self) -> int:
        """Number of aggregates, A."""
        width = 1 + sum(self.tokens) + self.numbers * len(STATISTICS)
        if self.by_token:
            width += self.tokens[0] * self.numbers * (len(STATISTICS) - 1)
        return width + sum(self.row_tokens) + self.row_numbers

    @torch.no_grad()
    def aggregate(
        self, values: Tensor, row: Tensor, lengths: Tensor, row_features: Tensor | None = None
    ) -> Tensor:
        """Return the aggregates of each sequence, (B, A) float32; NaN if there is no value.

        Shape:
            values: (N,) int64 ids, or (N, K) float32. row: (N,), the sequence of each step; the
            steps of a sequence come in their order. lengths: (B,). row_features: (B, F).
        """
        steps = values.unsqueeze(1) if values.ndim == 1 else values
        count, parts = len(lengths), [lengths.double().unsqueeze(1)]
        ids = steps[:, : len(self.tokens)].long()
        for number, limit in enumerate(self.tokens):
            parts.append(_token_counts(ids[:, number], row, count, limit))
        if self.numbers:
            numbers = steps[:, len(self.tokens) :][:, : self.numbers].double()
            if self.indicators:
                absent = steps[:, len(self.tokens) + self.numbers :] > 0
                numbers = numbers.masked_fill(absent, torch.nan)
            parts += statistics(numbers, row, count)
        if self.by_token:
            limit = self.tokens[0]
            known = (ids[:, 0] >= 1) & (ids[:, 0] <= limit)
            group = row[known] * limit + ids[known, 0] - 1
            within = statistics(numbers[known], group, count * limit)[:-1]
            parts += [each.view(count, -1) for each in within]
        if row_features is not None:
            parts += self._row_aggregates(row_features)
        return torch.cat(parts, dim=1).float()

    def _row_aggregates(self, row_features: Tensor) -> list[Tensor]:
        row = torch.arange(len(row_features), device=row_features.device)
        ids = row_features[:, : len(self.row_tokens)].long()
        counts = [
            _token_counts(ids[:, number], row, len(row), limit)
            for number, limit in enumerate(self.row_tokens)
        ]
        return [*counts, row_features[:, len(self.row_tokens) :].double()]


def _token_counts(ids: Tensor, row: Tensor, count: int, limit: int) -> Tensor:
    """Return the number of steps of each sequence with each id from 1 to `limit`, (B, limit)."""
    known = (ids >= 1) & (ids <= limit)
    keys = row[known] * limit + ids[known] - 1
    return torch.bincount(keys, minlength=count * limit).view(count, limit).double()


def statistics(numbers: Tensor, group: Tensor, count: int) -> Sequence[Tensor]:
    """Return `STATISTICS` of the present values of each group, (G, F) float64 each.

    A statistic of no value is NaN; the count is 0. The slope is that of the least-squares line over
    the number of the value within its group.

    Shape:
        numbers: (N, F) float64, NaN if missing. group: (N,), below `count` (G).
    """
    present = ~numbers.isnan()
    filled = numbers.nan_to_num(0.0)
    shape = (count, numbers.shape[1])
    key = group.unsqueeze(1).expand_as(numbers)

    def summed(values: Tensor) -> Tensor:
        return values.new_zeros(shape).index_add(0, group, values)

    def extreme(values: Tensor, reduce: str, start: float) -> Tensor:
        return values.new_full(shape, start).scatter_reduce(0, key, values, reduce)

    found = summed(present.double())
    absent = found == 0
    mean = summed(filled) / found
    deviation = torch.where(present, numbers - mean[group], 0.0)
    order = torch.arange(len(numbers), device=numbers.device, dtype=torch.float64).unsqueeze(1)
    order = order.expand_as(numbers)
    first = extreme(torch.where(present, order, torch.inf), "amin", torch.inf)
    last = extreme(torch.where(present, order, -torch.inf), "amax", -torch.inf)
    columns = torch.arange(shape[1], device=numbers.device).expand(shape)

    def value_at(position: Tensor) -> Tensor:
        if not len(numbers):
            return position.new_full(shape, torch.nan)
        return filled[position.masked_fill(absent, 0.0).long(), columns]

    time = _place_within(group, present)
    time_deviation = torch.where(present, time - (summed(time * present) / found)[group], 0.0)
    spread = summed(time_deviation.square())
    slope = summed(time_deviation * deviation) / spread
    result = (
        value_at(first),
        value_at(last),
        mean,
        (summed(deviation.square()) / found).sqrt(),
        extreme(torch.where(present, numbers, torch.inf), "amin", torch.inf),
        extreme(torch.where(present, numbers, -torch.inf), "amax", -torch.inf),
        torch.where(spread > 0, slope, 0.0),
    )
    return [found, *(each.masked_fill(absent, torch.nan) for each in result)]


def _place_within(group: Tensor, present: Tensor) -> Tensor:
    """Return the number of present values before each one within its group, (N, F) float64."""
    order = group.argsort(stable=True)
    ordered = present[order].double()
    before = ordered.cumsum(0) - ordered
    begins = torch.ones_like(group, dtype=torch.bool)
    begins[1:] = group[order][1:] != group[order][:-1]
    start = begins.cumsum(0) - 1
    place = torch.empty_like(before)
    place[order] = before - before[begins][start]
    return place
