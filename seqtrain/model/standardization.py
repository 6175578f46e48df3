"""Series standardised by themselves: by the mean and the deviation of their own valid steps.

A prefix is standardised by its own steps, as if the series ended there.

B batch, N steps of all sequences, C channels, I ids of tokens beside them.
"""

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.packing import row_sums, rows_and_steps

ALIKE = 1e-6
"""A channel whose deviation is below this share of its mean is constant but for rounding."""


class SeriesStandardization(nn.Module):
    """Standardises each channel of each sequence; constant ones become 0.

    The first I columns are ids, which stay. With `both`, the values as they come stand before the
    standardised ones. With indicators, C more columns say which values are missing (1); these
    don't count.
    """

    def __init__(self, channels: int, *, both: bool, indicators: bool, ids: int = 0) -> None:
        super().__init__()
        self.channels = channels
        self.ids = ids
        self.both = both
        self.indicators = indicators

    @property
    def width(self) -> int:
        """Return how many columns the output has."""
        return self.ids + self.channels * (1 + self.both + self.indicators)

    def forward(self, packed: PackedSequence) -> PackedSequence:
        """Standardise packed sequences: (N, I + C), I + 2 C with indicators -> (N, width)."""
        ids, numbers = packed.data[:, : self.ids], packed.data[:, self.ids :]
        values, absent = numbers[:, : self.channels], numbers[:, self.channels :]
        row = rows_and_steps(packed.batch_sizes)[0].to(values.device)
        rows = int(packed.batch_sizes[0])
        present = 1 - absent.double() if self.indicators else values.new_ones(()).double()
        exact = values.double() * present
        counts = row_sums(present.expand_as(exact), row, rows).clamp(min=1)
        mean = row_sums(exact, row, rows) / counts
        away = (exact - mean[row]) * present
        deviation = (row_sums(away.square(), row, rows) / counts).sqrt()
        constant = deviation <= ALIKE * mean.abs()
        scaled = away / torch.where(constant, 1.0, deviation)[row]
        own = torch.where(constant[row], 0.0, scaled).to(values.dtype)
        columns = [ids, values, own, absent] if self.both else [ids, own, absent]
        return PackedSequence(torch.cat(columns, dim=1), packed.batch_sizes)
