"""From rows to a batch: sort by length and pack. The only place where sequences are sorted.

B batch, T longest length, N steps of all sequences, C channels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from seqtrain.data.store import Ints, SequenceStore


@dataclass(frozen=True)
class Batch:
    """Sequences sorted by length, longest first, and packed; padded where somebody asks.

    Attributes:
        packed: the steps of all sequences without padding, time by time.
        lengths: steps of each sequence, on the CPU.
        labels: class index of each sequence, -1 where unknown.
        sorted_indices: for each sorted row, its place in the order it came in.
        unsorted_indices: for each row as it came in, its place in the batch.

    Shape:
        packed.data: (N,) int64, or (N, C) float32.
        lengths, labels, sorted_indices, unsorted_indices: (B,) int64.
    """

    packed: PackedSequence
    lengths: Tensor
    labels: Tensor
    sorted_indices: Tensor
    unsorted_indices: Tensor

    @property
    def input_ids(self) -> Tensor:
        """The same steps padded with 0: (B, T) int64, or (B, T, C) float32."""
        return pad_packed_sequence(self.packed, batch_first=True)[0]

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device; lengths stay on the CPU. Copies to CUDA overlap."""
        if device.type == "cpu":
            return self
        pin = device.type == "cuda"

        def move(tensor: Tensor) -> Tensor:
            return (tensor.pin_memory() if pin else tensor).to(device, non_blocking=pin)

        packed = PackedSequence(move(self.packed.data), self.packed.batch_sizes)
        moved = (move(t) for t in (self.labels, self.sorted_indices, self.unsorted_indices))
        return Batch(packed, self.lengths, *moved)


def collate(rows: SequenceStore) -> Batch:
    """Sort rows by length (stable, longest first) and pack them, straight from their flat store.

    Args:
        rows: the sequences of one batch, at least one, as `store.__getitems__(rows)` returns
            them; so `DataLoader(store, batch_sampler=plan, collate_fn=collate)` works as it is.

    Returns:
        The batch, on the CPU.
    """
    order = np.argsort(-rows.lengths, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    lengths = rows.lengths[order]
    return Batch(
        packed=_pack(rows.values, rows.offsets[:-1][order], lengths),
        lengths=torch.from_numpy(lengths),
        labels=torch.from_numpy(rows.labels[order]),
        sorted_indices=torch.from_numpy(order),
        unsorted_indices=torch.from_numpy(place),
    )


def _pack(values: npt.NDArray[Any], starts: Ints, lengths: Ints) -> PackedSequence:
    """Gather sequences, longest first, time by time."""
    longest = int(lengths[0])
    # As many sequences have a step number t as are longer than t.
    batch_sizes = len(lengths) - np.bincount(lengths)[:longest].cumsum()
    step = np.arange(longest).repeat(batch_sizes)
    sequence = np.arange(len(step)) - (batch_sizes.cumsum() - batch_sizes).repeat(batch_sizes)
    steps = values[starts[sequence] + step]
    data = torch.from_numpy(steps if values.ndim > 1 else steps.astype(np.int64))
    return PackedSequence(data, torch.from_numpy(batch_sizes))
