"""Convolutions before the recurrent encoder, over packed sequences.

A layer is a convolution without bias, batch normalization over the valid time steps of all
sequences, and ReLU. Zeros continue a sequence beyond its true ends, and padding is never read.
Windows are centered on the first step and every stride-th step after it. So L steps become
ceil(L / stride) steps.

B sequences, T longest length, N packed time steps, F input channels, W output channels, K kernel.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqtrain.engines.layout import Layout


class Convolutions(nn.ModuleList):
    """Stack of convolution layers.

    Args:
        channels: number F of input channels of the first layer.
        layers: width, kernel and stride of each layer; see `ConvolutionLayer`.

    Attributes:
        width: number of output channels of the last layer.
    """

    def __init__(self, channels: int, layers: Sequence[Sequence[int]]) -> None:
        inputs = [channels, *(width for width, _, _ in layers)]
        super().__init__(
            ConvolutionLayer(below, width, kernel, stride)
            for below, (width, kernel, stride) in zip(inputs, layers, strict=False)
        )
        self.width = inputs[-1]

    @property
    def layers(self) -> list["ConvolutionLayer"]:
        """The layers in order."""
        return [layer for layer in self.children() if isinstance(layer, ConvolutionLayer)]

    def forward(self, steps: Tensor, layout: Layout) -> tuple[Tensor, Layout]:
        """Return the output of all layers and its layout."""
        for layer in self.layers:
            steps, layout = layer(steps, layout)
        return steps, layout

    def initialize(self, generator: torch.Generator) -> None:
        """Draw the initial weights of all layers."""
        for layer in self.layers:
            layer.initialize(generator)


class ConvolutionLayer(nn.Module):
    """Convolution, batch normalization over valid steps, ReLU.

    Args:
        channels: number F of input channels.
        width: number W of output channels.
        kernel: number K of time steps of a window, odd.
        stride: number of time steps between the centers of windows.

    Reference:
        Ioffe & Szegedy 2015, arXiv:1502.03167. Here the statistics leave out padding.
    """

    def __init__(self, channels: int, width: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.kernel = kernel
        self.stride = stride
        self.weight = nn.Parameter(torch.empty(width, channels, kernel))
        self.norm = nn.BatchNorm1d(width)

    def initialize(self, generator: torch.Generator) -> None:
        """Draw the weight by He initialization (He et al. 2015), and reset the normalization."""
        std = math.sqrt(2.0) / math.sqrt(self.weight[0].numel())
        nn.init.normal_(self.weight, std=std, generator=generator)
        self.norm.reset_parameters()

    def forward(self, steps: Tensor, layout: Layout) -> tuple[Tensor, Layout]:
        """Return the output of the layer and its layout, (steps, F) -> (fewer steps, W).

        A sequence of L steps has ceil(L / stride) steps in the output. Training updates the running
        statistics of the normalization.
        """
        windows, layout = layout.windows(steps, self.kernel, self.stride)
        kernel = self.weight.permute(2, 1, 0).flatten(0, 1)
        return functional.relu(self._normalize(windows @ kernel), inplace=True), layout

    def _normalize(self, steps: Tensor) -> Tensor:
        """Normalize steps by batch statistics in training, by running statistics in prediction.

        Training updates the running statistics. In training, a batch of a single time step is
        normalized by the running statistics, and doesn't update them.
        """
        norm = self.norm
        if steps.ndim == 3:  # padded
            normalized: Tensor = norm(steps.transpose(1, 2)).transpose(1, 2)
            return normalized
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
