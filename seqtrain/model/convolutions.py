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
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.packing import lengths_of, rows_and_steps
from seqtrain.sequences.transfer import to_device


class Convolutions(nn.Sequential):
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
            *(
                ConvolutionLayer(below, width, kernel, stride)
                for below, (width, kernel, stride) in zip(inputs, layers, strict=False)
            )
        )
        self.width = inputs[-1]

    @property
    def layers(self) -> list["ConvolutionLayer"]:
        """The layers in order."""
        return [layer for layer in self.children() if isinstance(layer, ConvolutionLayer)]

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

    def forward(self, packed: PackedSequence) -> PackedSequence:
        """Return the packed output of the layer, (N, F) -> (M, W).

        A sequence of L steps has ceil(L / stride) steps in the output. M is the number of output
        steps of all sequences. Training updates the running statistics of the normalization.
        """
        windows, batch_sizes = self._windows(packed)
        kernel = self.weight.permute(2, 1, 0).flatten(0, 1)
        convolved = self._normalize(windows @ kernel)
        return PackedSequence(functional.relu(convolved, inplace=True), batch_sizes)

    def export(self, steps: Tensor, valid: Tensor) -> Tensor:
        """Return the output for padded steps in prediction, by operations that ONNX has.

        Args:
            steps: padded time steps, (T, B, F).
            valid: True where a step isn't padding, (T, B, 1).

        Returns:
            The output, (ceil(T / stride), B, W). At padding it is arbitrary.
        """
        steps = torch.where(valid, steps, 0).permute(1, 2, 0)
        padding = self.kernel // 2
        convolved = functional.conv1d(steps, self.weight, stride=self.stride, padding=padding)
        normalized: Tensor = self.norm(convolved)
        return normalized.relu().permute(2, 0, 1)

    def _windows(self, packed: PackedSequence) -> tuple[Tensor, Tensor]:
        """Return the inputs of each window, (M, K * F), and the batch sizes of the output.

        Beyond the ends of a sequence, inputs are 0.
        """
        steps, sizes = packed.data, packed.batch_sizes
        lengths, first = lengths_of(sizes), sizes.cumsum(0) - sizes
        shorter = (lengths + self.stride - 1) // self.stride
        batch_sizes = len(lengths) - shorter.bincount()[:-1].cumsum(0)
        row, center = (index.unsqueeze(1) for index in rows_and_steps(batch_sizes))
        offsets = torch.arange(self.kernel, device="cpu") - self.kernel // 2
        step = center * self.stride + offsets
        inside = (step >= 0) & (step < lengths[row])
        index = torch.where(inside, first[step.clamp(0, len(first) - 1)] + row, len(steps))
        with_zeros = torch.cat((steps, steps.new_zeros(1, steps.shape[1])))
        windows = with_zeros.index_select(0, to_device(index.flatten(), steps.device))
        return windows.view(len(index), -1), batch_sizes

    def _normalize(self, steps: Tensor) -> Tensor:
        """Normalize steps by batch statistics in training, by running statistics in prediction.

        Training updates the running statistics. In training, a batch of a single time step is
        normalized by the running statistics, and doesn't update them.
        """
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
