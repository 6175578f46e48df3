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
        middle = self.kernel // 2
        half = min(middle, len(packed.batch_sizes) - 1)  # beyond the longest row are only zeros
        weight = self.weight[:, :, middle - half : middle + half + 1]
        index, window, size, batch_sizes = self._lay_out(packed.batch_sizes, half)
        steps, device = packed.data, packed.data.device
        laid = steps.new_zeros(size, steps.shape[1]).index_copy(0, index.to(device), steps)
        everywhere = functional.conv1d(laid.t().unsqueeze(0), weight, stride=self.stride)[0]
        convolved = self._normalized(everywhere.t().index_select(0, window.to(device)))
        return PackedSequence(functional.relu(convolved, inplace=True), batch_sizes)

    def _lay_out(self, sizes: Tensor, half: int) -> tuple[Tensor, Tensor, int, Tensor]:
        """Lay all sequences out in one row, with zeros between them; windows stand at each stride.

        Returns the position of each packed step, (N,), the window of each packed output, (M,), the
        length of the row, and the batch sizes of the output.
        """
        lengths = lengths_of(sizes)
        shorter = (lengths + self.stride - 1) // self.stride
        batch_sizes = len(lengths) - shorter.bincount()[:-1].cumsum(0)
        windows = (lengths + half + self.stride - 1) // self.stride
        first = windows.cumsum(0) - windows
        row, step = rows_and_steps(sizes)
        index = first[row] * self.stride + half + step
        row, step = rows_and_steps(batch_sizes)
        size = int(windows.sum()) * self.stride + 2 * half + 1
        return index, first[row] + step, size, batch_sizes

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
