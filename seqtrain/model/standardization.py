"""Standardization of a series by the mean and standard deviation of its own valid steps.

A prefix is standardized by its own steps, as if the series ended there.

B sequences, N packed time steps, C channels, I token columns before the channels.
"""

import torch
from torch import Tensor, nn

from seqtrain.model.packing import Sequences

RELATIVE_ROUNDING = 1e-6
"""A channel whose deviation is at most this fraction of its mean counts as constant."""


class SeriesStandardization(nn.Module):
    """Standardize each channel of each sequence by its mean and deviation. Constant channels are 0.

    Args:
        channels: number C of channels.
        both: also keep the values as they are, before the standardized ones.
        indicators: C more columns mark missing values with 1; missing values don't count.
        ids: number I of leading columns with token ids, which stay as they are.
    """

    def __init__(self, channels: int, *, both: bool, indicators: bool, ids: int = 0) -> None:
        super().__init__()
        self.channels = channels
        self.ids = ids
        self.both = both
        self.indicators = indicators

    @property
    def width(self) -> int:
        """Number of columns of the output."""
        return self.ids + self.channels * (1 + self.both + self.indicators)

    def forward(self, steps: Tensor, sequences: Sequences) -> Tensor:
        """Standardize time steps, packed or padded.

        Shape:
            steps: (…, I + C), or (…, I + 2 C) with indicators. Returns: (…, width).
        """
        ids, numbers = steps[..., : self.ids], steps[..., self.ids :]
        values, missing = numbers[..., : self.channels], numbers[..., self.channels :]
        exact = values.double()
        present = 1 - missing.double() if self.indicators else torch.ones_like(exact)
        counts = sequences.sum(present).clamp(min=1)
        mean = sequences.sum(exact * present) / counts
        centered = (exact - sequences.spread(mean)) * present
        deviation = (sequences.sum(centered.square()) / counts).sqrt()
        constant = deviation <= RELATIVE_ROUNDING * mean.abs()
        scaled = centered / sequences.spread(torch.where(constant, 1.0, deviation))
        standardized = torch.where(sequences.spread(constant), 0.0, scaled).to(values.dtype)
        columns = [ids, values, standardized] if self.both else [ids, standardized]
        return torch.cat([*columns, missing], dim=-1)
