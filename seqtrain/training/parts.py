"""A batch cut into parts: what one process learns from, or one after the other."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from seqtrain.data.batch import Batch, Spellings
from seqtrain.model.packing import rows_and_steps


def rows_of_parts(lengths: Tensor, parts: int) -> list[Tensor]:
    """Deal the rows of a batch, longest first, to its parts in turn.

    Every row is in one part. In time steps, two parts differ by at most the longest row; a part of
    a batch with fewer rows than parts may be empty.

    Args:
        lengths: time steps of each row, on the CPU.
        parts: how many.

    Shape:
        lengths: (B,) int64. Returns: ascending rows of each part.
    """
    order = lengths.argsort(descending=True, stable=True)
    return [order[part::parts].sort().values for part in range(parts)]


def part_of(batch: Batch, rows: Tensor) -> Batch:
    """Return some rows of a batch as a batch: packed as it is, its examples row by row.

    Args:
        batch: of any device.
        rows: ascending, at least one, on the CPU.

    Shape:
        rows: (R,) int64.
    """
    chosen = rows.numpy()
    inputs, spelled = batch.inputs, batch.spellings
    numbers = None if spelled is None else spelled.numbers
    if isinstance(inputs, PackedSequence):
        is_chosen = torch.zeros(len(batch.lengths), dtype=torch.bool, device="cpu")
        is_chosen[rows] = True
        row, step = rows_and_steps(inputs.batch_sizes)
        place = is_chosen[row].nonzero().squeeze(1)
        sizes = step[place].bincount()
        place = place.to(inputs.data.device)
        numbers = None if numbers is None else numbers[place]
        inputs = PackedSequence(inputs.data[place], sizes)
    else:
        longest = int(batch.lengths[rows].max())
        inputs = inputs[rows, :longest]
        numbers = None if numbers is None else numbers[rows, :longest]
    order = torch.arange(len(rows), dtype=torch.int64, device="cpu")
    return replace(
        batch,
        inputs=inputs,
        lengths=batch.lengths[rows],
        labels=batch.labels[rows],
        groups=None if batch.groups is None else batch.groups[chosen],
        sorted_indices=order,
        unsorted_indices=order,
        examples=batch.examples[batch.sorted_indices[rows].numpy()],
        spellings=None if spelled is None or numbers is None else Spellings(numbers, spelled.grams),
    )
