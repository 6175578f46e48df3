"""From rows to a batch: sort by length, pad, pack. The only place where sequences are sorted.

B batch, T longest length, N steps of all sequences, C channels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from seqtrain.data.store import SequenceStore


@dataclass(frozen=True)
class Batch:
    """Sequences sorted by length, longest first, padded and packed.

    Attributes:
        input_ids: ids, 0 in the padding; or feature vectors, zeros in the padding.
        lengths: steps of each sequence, on the CPU.
        packed: the same steps without padding, time by time.
        labels: class index of each sequence, -1 where unknown.
        sorted_indices: for each sorted row, its place in the order it came in.
        unsorted_indices: for each row as it came in, its place in the batch.

    Shape:
        input_ids: (B, T) int64, or (B, T, C) float32. packed.data: (N,) or (N, C).
        lengths, labels, sorted_indices, unsorted_indices: (B,) int64.
    """

    input_ids: Tensor
    lengths: Tensor
    packed: PackedSequence
    labels: Tensor
    sorted_indices: Tensor
    unsorted_indices: Tensor

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device; lengths stay on the CPU. Copies to CUDA overlap."""
        if device.type == "cpu":
            return self
        pin = device.type == "cuda"

        def move(tensor: Tensor) -> Tensor:
            return (tensor.pin_memory() if pin else tensor).to(device, non_blocking=pin)

        packed = PackedSequence(move(self.packed.data), self.packed.batch_sizes)
        return Batch(
            move(self.input_ids),
            self.lengths,
            packed,
            move(self.labels),
            move(self.sorted_indices),
            move(self.unsorted_indices),
        )


def collate(rows: SequenceStore) -> Batch:
    """Sort rows by length (stable, longest first), pad them, and pack them.

    Args:
        rows: the sequences of one batch, at least one, as `store.__getitems__(rows)` returns
            them; so `DataLoader(store, batch_sampler=plan, collate_fn=collate)` works as it is.

    Returns:
        The batch, on the CPU.
    """
    order = np.argsort(-rows.lengths, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    ordered = rows.__getitems__(order)
    lengths = ordered.lengths
    longest = int(lengths[0])
    padded = np.zeros(
        (len(rows), longest, *rows.values.shape[1:]),
        dtype=np.int64 if rows.values.ndim == 1 else np.float32,
    )
    padded[np.arange(longest) < lengths[:, None]] = ordered.values
    input_ids, cpu_lengths = torch.from_numpy(padded), torch.from_numpy(lengths)
    return Batch(
        input_ids=input_ids,
        lengths=cpu_lengths,
        packed=pack_padded_sequence(input_ids, cpu_lengths, batch_first=True),
        labels=torch.from_numpy(ordered.labels),
        sorted_indices=torch.from_numpy(order),
        unsorted_indices=torch.from_numpy(place),
    )
