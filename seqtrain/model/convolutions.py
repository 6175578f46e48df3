"""Convolutions before the recurrent encoder, over packed sequences: padding is never seen.

A layer is a convolution without bias, zeros beyond both true ends of a sequence, then batch
normalisation over the valid time steps of all sequences, then ReLU. Its window stands on every
stride-th step from the first, so that a sequence of L steps gets ceil(L / stride), never none.

B batch, T longest length, N steps of all sequences, F channels in, W channels out, K kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.packing import lengths_of, rows_and_steps


class Convolutions(nn.Sequential):
    """Layers one above the other.

    Args:
        channels: of a step of the input.
        layers: width, kernel (odd) and stride of each.
    """

    def __init__(self, channels: int, layers: Sequence[Sequence[int]]) -> None:
        widths = [channels, *(width for width, _, _ in layers)]
        super().__init__(
            *(
                ConvolutionLayer(below, width, kernel, stride)
                for below, (width, kernel, stride) in zip(widths, layers, strict=False)
            )
        )
        self.width = widths[-1]

    def initialize(self, generator: torch.Generator | None = None) -> None:
        """Draw the initial weights of all layers."""
        for layer in self.children():
            assert isinstance(layer, ConvolutionLayer)
            layer.initialize(generator)

    def lengths(self, lengths: Tensor) -> Tensor:
        """Return the steps that sequences of these lengths have above all layers, (B,)."""
        for layer in self.children():
            assert isinstance(layer, ConvolutionLayer)
            lengths = layer.lengths(lengths)
        return lengths


class ConvolutionLayer(nn.Module):
    """Convolution, batch normalisation over valid steps, ReLU.

    Args:
        channels: F.
        width: W.
        kernel: K, odd.
        stride: steps from a window to the next.

    Reference:
        Ioffe & Szegedy 2015, arXiv:1502.03167; its statistics here leave out padding.
    """

    def __init__(self, channels: int, width: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.kernel = kernel
        self.stride = stride
        self.weight = nn.Parameter(torch.empty(width, channels, kernel))
        self.norm = nn.BatchNorm1d(width)
        self.initialize()

    def initialize(self, generator: torch.Generator | None = None) -> None:
        """Draw the weight as for ReLU (He et al. 2015, arXiv:1502.01852); reset the statistics."""
        nn.init.kaiming_normal_(self.weight, nonlinearity="relu", generator=generator)
        self.norm.reset_parameters()

    def lengths(self, lengths: Tensor) -> Tensor:
        """Return ceil(L / stride) of each length, (B,)."""
        return (lengths + self.stride - 1) // self.stride

    def forward(self, packed: PackedSequence) -> PackedSequence:
        """Return the layer's packed output.

        Shape:
            packed.data: (N, F). Returns: (M, W), where M sums up ceil(L / stride).
        """
        windows, batch_sizes = self._windows(packed)
        weight = self.weight.transpose(1, 2).flatten(1)
        convolved = functional.linear(windows, weight)
        return PackedSequence(functional.relu(self._normalized(convolved)), batch_sizes)

    def _windows(self, packed: PackedSequence) -> tuple[Tensor, Tensor]:
        """Lay out what each window sees, (M, K * F); and the batch sizes of the output."""
        sizes, steps = packed.batch_sizes, packed.data
        lengths = lengths_of(sizes)
        batch_sizes = len(lengths) - self.lengths(lengths).bincount()[:-1].cumsum(0)
        row, place = rows_and_steps(batch_sizes)
        around = torch.arange(self.kernel, device="cpu") - self.kernel // 2
        seen = (place * self.stride).unsqueeze(1) + around
        valid = (seen >= 0) & (seen < lengths[row].unsqueeze(1))
        starts = (sizes.cumsum(0) - sizes)[seen.clamp(0, len(sizes) - 1)]
        index = torch.where(valid, starts + row.unsqueeze(1), len(steps)).flatten()
        padded = torch.cat((steps, steps.new_zeros(1, steps.shape[1])))
        windows = padded.index_select(0, index.to(steps.device))
        return windows.view(len(row), -1), batch_sizes

    def _normalized(self, steps: Tensor) -> Tensor:
        """Normalise by the batch's statistics, or the running ones: one step alone has none."""
        norm = self.norm
        learning = self.training and len(steps) > 1
        if learning and norm.num_batches_tracked is not None:
            norm.num_batches_tracked.add_(1)
        return functional.batch_norm(
            steps,
            norm.running_mean,
            norm.running_var,
            norm.weight,
            norm.bias,
            training=learning,
            momentum=norm.momentum or 0.0,
            eps=norm.eps,
        )
