"""Standardization of each series by the mean and standard deviation of its valid steps.

B sequences, N packed time steps, C channels, I token columns before the channels.
"""

import torch
from torch import Tensor, nn

from seqtrain.engines.layout import Layout

RELATIVE_ROUNDING = 1e-6
"""A channel counts as constant if its standard deviation is at most this fraction of |mean|."""


class SeriesStandardization(nn.Module):
    """Standardize each channel of each sequence by its mean and standard deviation.

    A channel that is constant in a sequence becomes 0.

    Args:
        channels: number C of channels.
        both: True to also keep the original values, before the standardized ones.
        indicators: True if C indicators follow the channels. An indicator is 1 where a value is
            missing. Missing values aren't used for the statistics, and become 0.
        ids: number I of columns with token ids before the channels. They are copied.
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

    def forward(self, steps: Tensor, sequences: Layout) -> Tensor:
        """Return standardized time steps, packed or padded.

        Args:
            steps: the time steps: ids, channels, and then indicators if they are used. Other
                columns after the channels are copied to the end of the result.
            sequences: layout of the time steps.

        Returns:
            Ids, the original channels if `both` is True, the standardized channels, and indicators.

        Shape:
            steps: (…, I + C), or (…, I + 2 C) with indicators. Returns: (…, width).
        """
        ids, numbers = steps[..., : self.ids], steps[..., self.ids :]
        values, missing = numbers[..., : self.channels], numbers[..., self.channels :]
        exact = values.double()
        if self.indicators:
            present = 1 - missing.double()
        else:
            present = torch.ones_like(exact)
        counts = sequences.sum(present).clamp(min=1)
        mean = sequences.sum(exact * present) / counts
        centered = (exact - sequences.spread(mean)) * present
        deviation = (sequences.sum(centered.square()) / counts).sqrt()
        constant = deviation <= RELATIVE_ROUNDING * mean.abs()
        scaled = centered / sequences.spread(torch.where(constant, 1.0, deviation))
        standardized = torch.where(sequences.spread(constant), 0.0, scaled).to(values.dtype)
        if self.both:
            columns = [ids, values, standardized]
        else:
            columns = [ids, standardized]
        return torch.cat([*columns, missing], dim=-1)
