"""Convolutions before the recurrent encoder, over packed sequences: padding is never seen.

A layer is a convolution without bias, zeros beyond both true ends of a sequence, then batch
normalisation over the valid time steps of all sequences, then ReLU. Its window stands on every
stride-th step from the first, so that a sequence of L steps gets ceil(L / stride), never none.

B batch, T longest length, N steps of all sequences, F channels in, W channels out, K kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
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
        std = math.sqrt(2.0) / math.sqrt(self.weight[0].numel())
        nn.init.normal_(self.weight, std=std, generator=generator)
        self.norm.reset_parameters()

    def lengths(self, lengths: Tensor) -> Tensor:
        """Return ceil(L / stride) of each length, (B,)."""
        return (lengths + self.stride - 1) // self.stride

    def forward(self, packed: PackedSequence) -> PackedSequence:
        """Return the layer's packed output.

        Shape:
            packed.data: (N, F). Returns: (M, W), where M sums up ceil(L / stride).
        """
        steps: Tensor = packed.data
        weight: Tensor = self.weight
        if torch.is_autocast_enabled(steps.device.type):
            lower = torch.get_autocast_dtype(steps.device.type)
            steps, weight = steps.to(lower), weight.to(lower)
        beyond = -self.kernel % self.stride
        parts = functional.pad(weight, (0, beyond)).permute(2, 1, 0)
        parts = parts.reshape(-1, self.stride * weight.shape[1], len(weight))
        layout, batch_sizes = self._lay_out(packed.batch_sizes, steps.device)
        convolve: Callable[..., Tensor] = _Convolution.apply
        convolved = self._normalized(convolve(steps, parts, *layout))
        return PackedSequence(functional.relu(convolved, inplace=True), batch_sizes)

    def _lay_out(
        self, sizes: Tensor, device: torch.device
    ) -> tuple[tuple[Tensor, Tensor, int], Tensor]:
        """Return the last three arguments of `_Convolution`, and the batch sizes of the output.

        A sequence begins with the half kernel of zeros that its first window sees, and its windows
        stand on a multiple of the stride; the next one's zeros keep it apart.
        """
        lengths, half = lengths_of(sizes), self.kernel // 2
        batch_sizes = len(lengths) - self.lengths(lengths).bincount()[:-1].cumsum(0)
        windows = (lengths + half + self.stride - 1) // self.stride
        first = windows.cumsum(0) - windows
        row, step = rows_and_steps(sizes)
        place = first[row] * self.stride + half + step
        row, step = rows_and_steps(batch_sizes)
        seen = first[row] + step
        return (place.to(device), seen.to(device), int(windows.sum())), batch_sizes

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


class _Convolution(torch.autograd.Function):
    """One convolution over all sequences, which stand one after another with zeros between them.

    The kernel is cut into J parts of one stride each. Seen as rows of one stride, the sequences
    times a part are one matrix product, and no window is copied.

    V windows on all sequences and the zeros between them, S stride.
    """

    @staticmethod
    def forward(
        ctx: Any, steps: Tensor, parts: Tensor, place: Tensor, seen: Tensor, windows: int
    ) -> Tensor:
        """Convolve.

        Args:
            ctx: what `backward` takes.
            steps: packed, (N, F).
            parts: of the kernel, (J, S * F, W).
            place: where each step stands, (N,).
            seen: which window is which packed output, (M,).
            windows: V.

        Returns:
            (M, W).
        """
        ctx.channels, width = steps.shape[1], parts.shape[1]
        laid = steps.new_zeros(windows + len(parts) - 1, width)
        laid.view(-1, ctx.channels).index_copy_(0, place, steps)
        convolved = laid[:windows] @ parts[0]
        for number, part in enumerate(parts[1:], 1):
            convolved.addmm_(laid[number : number + windows], part)
        ctx.save_for_backward(laid, parts, place, seen)
        return convolved.index_select(0, seen)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, None, None, None]:
        """Return the gradients of steps, where they are wanted, and parts."""
        laid, parts, place, seen = ctx.saved_tensors
        windows = len(laid) - len(parts) + 1
        outer = gradient.new_zeros(windows, gradient.shape[1]).index_copy_(0, seen, gradient)
        inner = torch.zeros_like(laid) if ctx.needs_input_grad[0] else None
        of_parts = torch.empty_like(parts)
        for number, part in enumerate(parts):
            here = slice(number, number + windows)
            torch.mm(laid[here].t(), outer, out=of_parts[number])
            if inner is not None:
                inner[here].addmm_(outer, part.t())
        of_steps = None if inner is None else inner.view(-1, ctx.channels).index_select(0, place)
        return of_steps, of_parts, None, None, None
