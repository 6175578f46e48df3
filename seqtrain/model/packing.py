"""Sequences of different lengths in one tensor: packed or padded, with sums over each sequence.

B sequences, T longest length, N packed time steps, H width of a step.
"""

from dataclasses import replace
from typing import TypeAlias

import torch
from torch import Tensor

from seqtrain.sequences.batch import Batch, sort_and_pack
from seqtrain.sequences.transfer import to_device


def rows_and_steps(batch_sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Return the row index and the time step of each packed step, (N,) int64 each, on the CPU.

    Args:
        batch_sizes: number of sequences at each time step, (T,), on the CPU.
    """
    starts = torch.cumsum(batch_sizes, 0) - batch_sizes
    index = torch.arange(int(batch_sizes.sum()), dtype=torch.int64, device="cpu")
    row = index - starts.repeat_interleave(batch_sizes)
    step = torch.arange(len(batch_sizes), dtype=torch.int64, device="cpu")
    return row, step.repeat_interleave(batch_sizes)


def lengths_of(batch_sizes: Tensor) -> Tensor:
    """Return the number of time steps of each packed sequence, (B,) int64, on the CPU.

    Args:
        batch_sizes: number of sequences at each time step, (T,), on the CPU.
    """
    return rows_and_steps(batch_sizes)[0].bincount()


def pack_batch(batch: Batch) -> Batch:
    """Return a copy of a padded batch, with its rows sorted by length and packed.

    `sorted_indices` and `unsorted_indices` are adapted, so that `Batch.restore` still works.

    Raises:
        ValueError: If the lengths don't fit the padded inputs.
    """
    packed, order, _ = sort_and_pack(batch.inputs.data, batch.lengths)
    cpu_order = order.cpu()
    sorted_indices = batch.sorted_indices[cpu_order]
    spellings, static = batch.spellings, batch.static
    return replace(
        batch,
        inputs=packed,
        lengths=batch.lengths[cpu_order],
        labels=batch.labels[order],
        groups=None if batch.groups is None else batch.groups[cpu_order.numpy()],
        sorted_indices=sorted_indices,
        unsorted_indices=sorted_indices.argsort(),
        spellings=None if spellings is None else spellings.packed(batch.lengths),
        static=None if static is None else static[order],
        on_host=None if batch.on_host is None else pack_batch(batch.on_host),
    )


class PackedSequences:
    """Layout of packed steps: tensors (N, H) in the order of a PackedSequence.

    `PaddedSequences` has the same methods, so that pooling and standardization take either layout.

    Args:
        batch_sizes: number of sequences at each time step, (T,), on the CPU.
        device: device of the steps.

    Attributes:
        rows: number B of sequences.
        row: sequence of each step, (N,) int64, on the device of the steps.
        lengths: number of time steps of each sequence, (B, 1) int64, on the same device.
    """

    def __init__(self, batch_sizes: Tensor, device: torch.device) -> None:
        self.rows = int(batch_sizes[0])
        row, _ = rows_and_steps(batch_sizes)
        self.row = to_device(row, device)
        lengths = row.bincount(minlength=self.rows).unsqueeze(1)
        self.lengths = to_device(lengths, device)

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


class PaddedSequences:
    """Layout of padded steps, time first: tensors (T, B, H), for ONNX, which has no packing.

    Args:
        valid: True where a step isn't padding, (T, B, 1).
        lengths: number of time steps of each sequence, (B,). The attribute has shape (B, 1).
    """

    def __init__(self, valid: Tensor, lengths: Tensor) -> None:
        self.valid = valid
        self.lengths = lengths.unsqueeze(1)

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum of the valid steps of each sequence, (T, B, H) -> (B, H)."""
        return torch.where(self.valid, values, 0).sum(0)

    def max(self, values: Tensor) -> Tensor:
        """Return the largest value of the valid steps of each sequence, (T, B, H) -> (B, H)."""
        return torch.where(self.valid, values, -torch.inf).amax(0)

    def spread(self, values: Tensor) -> Tensor:
        """Return the values in a shape that broadcasts over time steps, (B, H) -> (1, B, H)."""
        return values.unsqueeze(0)


Sequences: TypeAlias = PackedSequences | PaddedSequences
