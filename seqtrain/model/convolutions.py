"""Convolutions before the recurrent encoder, over packed sequences: padding is never seen.

A layer is a convolution without bias, zeros beyond both true ends of a sequence, then batch
normalisation over the valid time steps of all sequences, then ReLU. Its window stands on every
stride-th step from the first, so that a sequence of L steps gets ceil(L / stride), never none.

B batch, T longest length, N steps of all sequences, F channels in, W channels out, K kernel.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.packing import lengths_of, rows_and_steps


class Convolutions(nn.Sequential):
    """Layers one above the other, of these widths, kernels (odd) and strides."""

    def __init__(self, channels: int, layers: Sequence[Sequence[int]]) -> None:
        widths = [channels, *(width for width, _, _ in layers)]
        super().__init__(
            *(
                ConvolutionLayer(below, width, kernel, stride)
                for below, (width, kernel, stride) in zip(widths, layers, strict=False)
            )
        )
        self.width = widths[-1]

    def initialize(self, generator: torch.Generator) -> None:
        """Draw the initial weights of all layers."""
        for layer in self.children():
            assert isinstance(layer, ConvolutionLayer)
            layer.initialize(generator)


class ConvolutionLayer(nn.Module):
    """Convolution, batch normalisation over valid steps, ReLU; the kernel is odd.

    Reference:
        Ioffe & Szegedy 2015, arXiv:1502.03167; its statistics here leave out padding.
    """

    def __init__(self, channels: int, width: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.kernel = kernel
        self.stride = stride
        self.weight = nn.Parameter(torch.empty(width, channels, kernel))
        self.norm = nn.BatchNorm1d(width)

    def initialize(self, generator: torch.Generator) -> None:
        """Draw the weight as for ReLU (He et al. 2015, arXiv:1502.01852); reset the statistics."""
        std = math.sqrt(2.0) / math.sqrt(self.weight[0].numel())
        nn.init.normal_(self.weight, std=std, generator=generator)
        self.norm.reset_parameters()

    def forward(self, packed: PackedSequence) -> PackedSequence:
        """Return the layer's packed output: (N, F) -> (M, W), where M sums up ceil(L / stride)."""
        windows, batch_sizes = self._windows(packed)
        kernel = self.weight.permute(2, 1, 0).flatten(0, 1)
        convolved = self._normalized(windows @ kernel)
        return PackedSequence(functional.relu(convolved, inplace=True), batch_sizes)

    def _windows(self, packed: PackedSequence) -> tuple[Tensor, Tensor]:
        """Return the steps under each window, (M, K * F), and the batch sizes of the output."""
        steps, sizes = packed.data, packed.batch_sizes
        lengths, first = lengths_of(sizes), sizes.cumsum(0) - sizes
        shorter = (lengths + self.stride - 1) // self.stride
        batch_sizes = len(lengths) - shorter.bincount()[:-1].cumsum(0)
        row, middle = (each.unsqueeze(1) for each in rows_and_steps(batch_sizes))
        offsets = torch.arange(self.kernel, device="cpu") - self.kernel // 2
        step = middle * self.stride + offsets
        inside = (step >= 0) & (step < lengths[row])
        index = torch.where(inside, first[step.clamp(0, len(first) - 1)] + row, len(steps))
        padded = torch.cat((steps, steps.new_zeros(1, steps.shape[1])))
        windows = padded.index_select(0, index.flatten().to(steps.device))
        return windows.view(len(index), -1), batch_sizes

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
