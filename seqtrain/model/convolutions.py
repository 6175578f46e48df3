"""Convolutions before the recurrent encoder, over packed sequences: padding is never seen.

A layer is a convolution without bias, zeros beyond both true ends of a sequence, then batch
normalisation over the valid time steps of all sequences, then ReLU. Its window stands on every
stride-th step from the first, so that a sequence of L steps gets ceil(L / stride), never none.

B batch, T longest length, N steps of all sequences, F channels in, W channels out, K kernel.
"""

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
        steps: Tensor = packed.data
        weight: Tensor = self.weight
        if torch.is_autocast_enabled(steps.device.type):
            lower = torch.get_autocast_dtype(steps.device.type)
            steps, weight = steps.to(lower), weight.to(lower)
        middle = self.kernel // 2
        half = min(middle, len(packed.batch_sizes) - 1)  # beyond the longest row are only zeros
        weight = weight[:, :, middle - half : middle + half + 1]
        kernel = weight.permute(2, 1, 0).reshape(-1, len(weight))
        layout, batch_sizes = self._lay_out(packed.batch_sizes, half, steps.device)
        convolve: Callable[..., Tensor] = _Convolution.apply
        convolved = self._normalized(convolve(steps, kernel, *layout, self.stride))
        return PackedSequence(functional.relu(convolved, inplace=True), batch_sizes)

    def _lay_out(
        self, sizes: Tensor, half: int, device: torch.device
    ) -> tuple[tuple[Tensor, Tensor, int], Tensor]:
        """Return `_Convolution`'s layout, and the batch sizes of the output.

        Zeros keep sequences apart, and the windows of each stand on a multiple of the stride.
        """
        lengths = lengths_of(sizes)
        shorter = (lengths + self.stride - 1) // self.stride
        batch_sizes = len(lengths) - shorter.bincount()[:-1].cumsum(0)
        windows = (lengths + half + self.stride - 1) // self.stride
        first = windows.cumsum(0) - windows
        row, step = rows_and_steps(sizes)
        index = first[row] * self.stride + half + step
        row, step = rows_and_steps(batch_sizes)
        window = first[row] + step
        return (index.to(device), window.to(device), int(windows.sum())), batch_sizes

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

    The kernel is cut into slices of one stride each: the sequences as rows of one stride times a
    slice are one matrix product, and no window is copied, but for very narrow slices, merged.
    V windows on all sequences and the zeros between them, S stride.
    """

    @staticmethod
    def forward(
        ctx: Any,
        steps: Tensor,
        kernel: Tensor,
        index: Tensor,
        window: Tensor,
        windows: int,
        stride: int,
    ) -> Tensor:
        """Convolve steps (N, F) by a kernel (K * F, W), laid out as `_lay_out` says: (M, W)."""
        channels = steps.shape[1]
        ctx.windows, ctx.width = windows, stride * channels
        rows = windows - 1 + math.ceil(len(kernel) / ctx.width)
        laid = steps.new_zeros(rows * stride, channels).index_copy_(0, index, steps)
        first, *others = _slices(len(kernel), _merged(ctx.width))
        convolved = (_columns(laid, ctx, first) @ kernel[first]).to(_summed(steps.dtype))
        for each in others:
            _add_product(convolved, _columns(laid, ctx, each), kernel[each])
        ctx.save_for_backward(laid, kernel, index, window)
        return convolved.index_select(0, window).to(steps.dtype)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, gradient: Tensor
    ) -> tuple[Tensor | None, Tensor, None, None, None, None]:
        """Return the gradients of steps, where they are wanted, and kernel."""
        laid, kernel, index, window = ctx.saved_tensors
        outer = gradient.new_zeros(ctx.windows, gradient.shape[1]).index_copy_(0, window, gradient)
        of_kernel, of_steps = torch.empty_like(kernel), None
        for each in _slices(len(kernel), _merged(ctx.width)):
            torch.mm(_columns(laid, ctx, each).t(), outer, out=of_kernel[each])
        if ctx.needs_input_grad[0]:
            inner = torch.zeros_like(laid, dtype=_summed(laid.dtype))
            for each in _slices(len(kernel), ctx.width):
                _add_product(_columns(inner, ctx, each), outer, kernel[each].t())
            of_steps = inner.index_select(0, index).to(laid.dtype)
        return of_steps, of_kernel, None, None, None, None


def _slices(size: int, width: int) -> list[slice]:
    return [slice(start, min(start + width, size)) for start in range(0, size, width)]


def _merged(width: int) -> int:
    """Return the width of merged slices: very narrow products cost more than a copy."""
    return width * (32 // width) if width < 8 else width


def _columns(laid: Tensor, ctx: Any, each: slice) -> Tensor:
    return laid.as_strided((ctx.windows, each.stop - each.start), (ctx.width, 1), each.start)


def _summed(dtype: torch.dtype) -> torch.dtype:
    """Return the type to sum products in: a lower one would round the sum after each."""
    return torch.promote_types(dtype, torch.float32)


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    if total.dtype == left.dtype:
        total.addmm_(left, right)
    else:
        total.add_(left @ right)
