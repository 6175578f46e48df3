"""Lengths are data: computed from the sequences, and checked wherever they are handed over."""

from __future__ import annotations

import torch
from torch import Tensor


def check_lengths(lengths: Tensor, rows: int, longest: int) -> None:
    """Refuse lengths that don't fit padded sequences, before torch's kernels see them.

    Args:
        lengths: steps of each row.
        rows: B.
        longest: T, steps of the padded form.

    Raises:
        ValueError: lengths aren't (B,) int64 on the CPU, or one isn't from 1 to T; it is named.
    """
    if lengths.dtype != torch.int64 or lengths.device.type != "cpu":
        raise ValueError(
            f"lengths: found {lengths.dtype} on {lengths.device}; expected torch.int64 on cpu"
        )
    if lengths.shape != (rows,):
        raise ValueError(
            f"lengths: found shape {tuple(lengths.shape)}; expected ({rows},), one for each row"
        )
    wrong = (lengths < 1) | (lengths > longest)
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise ValueError(f"row {row}: found length {int(lengths[row])}; expected 1 to {longest}")
