"""Layouts of the time steps of a batch: packed, or padded. Branches and engines compute on either.

A packed tensor has the steps of all sequences without padding, time by time, longest sequence
first: (N, …). A padded tensor is time first, (T, B, …), and its values at padding are arbitrary.
Both layouts have the same methods, so that a pooling, a branch, or a standardization is written
once. The padded methods only use operations that ONNX has.

B sequences, T longest length, N packed time steps, H width of a step, K window positions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from seqtrain.sequences.transfer import to_device


class Layout(ABC):
    """Positions of the time steps of a batch in a tensor of steps.

    Attributes:
        lengths: number of time steps of each sequence, (B, 1) int64, on the device of the steps.
        rows: number B of sequences.
        every_step: True if a result is asked for after each step, in place of each sequence.
    """

    every_step = False
    rows: int

    @property
    @abstractmethod
    def lengths(self) -> Tensor:
        """Number of time steps of each sequence, (B, 1) int64, on the device of the steps."""

    @property
    @abstractmethod
    def valid(self) -> Tensor:
        """Mask of valid steps after `pad`, (T, B, 1): False at padding."""

    @abstractmethod
    def sum(self, values: Tensor) -> Tensor:
        """Return the sum of the steps of each sequence, (steps, H) -> (B, H)."""

    @abstractmethod
    def max(self, values: Tensor) -> Tensor:
        """Return the largest value of the steps of each sequence, (steps, H) -> (B, H)."""

    @abstractmethod
    def spread(self, values: Tensor) -> Tensor:
        """Return the values of each sequence in a form that broadcasts over its steps.

        Shape:
            values: (B, H). Returns: (N, H) if packed, (1, B, H) if padded.
        """

    @abstractmethod
    def pad(self, steps: Tensor) -> Tensor:
        """Return steps as a padded tensor, (T, B, …), with zeros at padding."""

    @abstractmethod
    def windows(self, steps: Tensor, kernel: int, stride: int) -> tuple[Tensor, Layout]:
        """Return the steps around every stride-th step of each sequence, and their layout.

        A window is centered on a step. Beyond the ends of a sequence its values are 0.

        Args:
            steps: the steps, (steps, H).
            kernel: number K of steps of a window, odd.
            stride: distance between the centers of windows. L steps give ceil(L / stride) windows.

        Returns:
            The windows, (windows, K * H), and the layout of the windows.
        """


class Packed(Layout):
    """Layout of packed steps, in the order of a PackedSequence.

    Args:
        batch_sizes: number of sequences at each time step, (T,) int64, on the CPU.
        device: device of the steps.
        every_step: True if a result is asked for after each step: for each prefix of a sequence.

    Attributes:
        rows: number B of sequences.
        longest: number T of time steps of the longest sequence.
    """

    def __init__(
        self, batch_sizes: Tensor, device: torch.device, *, every_step: bool = False
    ) -> None:
        self.batch_sizes = batch_sizes
        self.device = device
        self.every_step = every_step
        self.rows = int(batch_sizes[0])
        self.longest = len(batch_sizes)

    @classmethod
    def of(cls, packed: PackedSequence, *, every_step: bool = False) -> Packed:
        """Return the layout of a PackedSequence."""
        return cls(packed.batch_sizes, packed.data.device, every_step=every_step)

    @cached_property
    def places(self) -> tuple[Tensor, Tensor]:
        """Sequence and time step of each packed step, (N,) int64 each, on the CPU."""
        return rows_and_steps(self.batch_sizes)

    @cached_property
    def row(self) -> Tensor:
        """Sequence of each packed step, (N,) int64, on the device of the steps."""
        return to_device(self.places[0], self.device)

    @cached_property
    def lengths_on_cpu(self) -> Tensor:
        """Number of time steps of each sequence, (B,) int64, on the CPU."""
        return self.places[0].bincount()

    @cached_property
    def lengths(self) -> Tensor:
        """Number of time steps of each sequence, (B, 1) int64, on the device of the steps."""
        return to_device(self.lengths_on_cpu.unsqueeze(1), self.device)

    @property
    def valid(self) -> Tensor:
        """Mask of valid steps after `pad`, (T, B, 1): False at padding."""
        return valid_steps(len(self.batch_sizes), self.lengths.squeeze(1)).to(self.device)

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum of the steps of each sequence, (N, H) -> (B, H)."""
        zeros = values.new_zeros(self.rows, values.shape[1])
        return zeros.index_add(0, self.row, values)

    def max(self, values: Tensor) -> Tensor:
        """Return the largest value of the steps of each sequence, (N, H) -> (B, H)."""
        lowest = values.new_full((self.rows, values.shape[1]), -torch.inf)
        index = self.row.unsqueeze(1).expand_as(values)
        return lowest.scatter_reduce(0, index, values, "amax")

    def spread(self, values: Tensor) -> Tensor:
        """Repeat the values of each sequence for all of its steps, (B, H) -> (N, H)."""
        return values[self.row]

    def pad(self, steps: Tensor) -> Tensor:
        """Return packed steps as a padded tensor, (N, …) -> (T, B, …), with zeros at padding."""
        return pad_packed_sequence(PackedSequence(steps, self.batch_sizes))[0]

    def pack(self, padded: Tensor) -> Tensor:
        """Return the valid steps of a padded tensor, (T, B, …) -> (N, …)."""
        return pack_padded_sequence(padded, self.lengths_on_cpu).data

    def padded(self) -> Padded:
        """Return the layout of the same sequences after `pad`."""
        return Padded(self.valid, self.lengths.squeeze(1))

    def windows(self, steps: Tensor, kernel: int, stride: int) -> tuple[Tensor, Packed]:
        """Return windows of packed steps and their layout; see `Layout.windows`."""
        lengths = self.lengths_on_cpu
        first = self.batch_sizes.cumsum(0) - self.batch_sizes
        shorter = (lengths + stride - 1) // stride
        layout = Packed(len(lengths) - shorter.bincount()[:-1].cumsum(0), self.device)
        row, center = (index.unsqueeze(1) for index in layout.places)
        step = center * stride + torch.arange(kernel, device="cpu") - kernel // 2
        inside = (step >= 0) & (step < lengths[row])
        index = torch.where(inside, first[step.clamp(0, len(first) - 1)] + row, len(steps))
        with_zeros = torch.cat((steps, steps.new_zeros(1, steps.shape[1])))
        found = with_zeros.index_select(0, to_device(index.flatten(), self.device))
        return found.view(len(index), -1), layout


class Padded(Layout):
    """Layout of padded steps, time first.

    Args:
        valid: True where a step isn't padding, (T, B, 1).
        lengths: number of time steps of each sequence, (B,). The attribute has shape (B, 1).
    """

    def __init__(self, valid: Tensor, lengths: Tensor) -> None:
        self._valid = valid
        self._lengths = lengths
        self.rows = lengths.shape[0]

    @property
    def lengths(self) -> Tensor:
        """Number of time steps of each sequence, (B, 1) int64, on the device of the steps."""
        return self._lengths.unsqueeze(1)

    @property
    def valid(self) -> Tensor:
        """Mask of valid steps, (T, B, 1): False at padding."""
        return self._valid

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum of the valid steps of each sequence, (T, B, H) -> (B, H)."""
        return torch.where(self._valid, values, 0).sum(0)

    def max(self, values: Tensor) -> Tensor:
        """Return the largest value of the valid steps of each sequence, (T, B, H) -> (B, H)."""
        return torch.where(self._valid, values, -torch.inf).amax(0)

    def spread(self, values: Tensor) -> Tensor:
        """Return the values in a shape that broadcasts over time steps, (B, H) -> (1, B, H)."""
        return values.unsqueeze(0)

    def pad(self, steps: Tensor) -> Tensor:
        """Return the steps with zeros at padding, (T, B, …)."""
        valid = self._valid if steps.ndim == 3 else self._valid[:, :, 0]
        return torch.where(valid, steps, 0)

    def windows(self, steps: Tensor, kernel: int, stride: int) -> tuple[Tensor, Padded]:
        """Return windows of padded steps and their layout; see `Layout.windows`."""
        half = kernel // 2
        around = functional.pad(self.pad(steps), (0, 0, 0, 0, half, half))
        centers = torch.arange(0, steps.shape[0], stride, device=steps.device)
        offsets = torch.arange(kernel, device=steps.device)
        found = around[centers[:, None] + offsets].transpose(1, 2).flatten(2)
        lengths = torch.div(self._lengths + stride - 1, stride, rounding_mode="floor")
        return found, Padded(valid_steps(found.shape[0], lengths), lengths)

    def reverse(self, steps: Tensor) -> Tensor:
        """Return each sequence from its last valid step to its first, (T, B, H)."""
        order = self._lengths - 1 - torch.arange(steps.shape[0], device=steps.device)[:, None]
        return select_steps(steps, order.clamp(min=0))

    def last(self, steps: Tensor) -> Tensor:
        """Return the last valid step of each sequence, (T, B, H) -> (B, H)."""
        return select_steps(steps, self._lengths - 1)


def select_steps(values: Tensor, steps: Tensor) -> Tensor:
    """Return the values of selected time steps of each row, (…, B, H).

    Args:
        values: values of all time steps, (T, B, H).
        steps: indices of time steps, (…, B). Column b selects steps of row b.
    """
    rows = values.shape[1]
    index = steps * rows + torch.arange(rows, device=values.device)
    return values.flatten(0, 1)[index]


def valid_steps(longest: int, lengths: Tensor) -> Tensor:
    """Return a mask of valid steps, (T, B, 1): False at padding.

    Args:
        longest: number T of time steps of the padded tensor.
        lengths: number of valid steps of each row, (B,).
    """
    return (torch.arange(longest, device=lengths.device)[:, None] < lengths)[:, :, None]


def rows_and_steps(batch_sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Return the row index and the time step of each packed step, (N,) int64 each, on the CPU.

    Args:
        batch_sizes: number of sequences at each time step, (T,), on the CPU.
    """
    # NumPy, because torch's repeat_interleave wakes all threads however small the batch is.
    sizes = batch_sizes.numpy()
    first = np.repeat(sizes.cumsum() - sizes, sizes)
    row = np.arange(len(first)) - first
    step = np.repeat(np.arange(len(sizes)), sizes)
    return torch.from_numpy(row), torch.from_numpy(step)
