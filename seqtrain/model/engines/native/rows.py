"""The distinct ids of a batch, natively."""

from __future__ import annotations

import torch
from torch import Tensor

from seqtrain.model.engines.native.buffers import address, new
from seqtrain.model.engines.native.checks import check_type
from seqtrain.model.engines.native.library import load_library


def distinct(ids: Tensor, vocab_size: int) -> tuple[Tensor, Tensor]:
    """Sort out repeated ids: what `torch.unique(ids, return_inverse=True)` does, by counting.

    Args:
        ids: int64, on the CPU.
        vocab_size: ids are below it.

    Shape:
        ids (N,) -> distinct ids, ascending (U,), and where each id stands among them (N,).

    Raises:
        RuntimeError: the native library isn't there.
        TypeError: not int64 on the CPU.
        ValueError: not one-dimensional, or an id outside the vocabulary.
    """
    library = load_library()
    check_type("ids", ids, torch.int64)
    if ids.dim() != 1:
        raise ValueError(f"ids: shape {tuple(ids.shape)}, must be (tokens,)")
    place = new(vocab_size, dtype=torch.int32)
    unique = new(min(len(ids), vocab_size), dtype=torch.int64)
    inverse = new(len(ids), dtype=torch.int64)
    count = library.distinct(
        address(ids.contiguous(), dtype=torch.int64),
        len(ids),
        vocab_size,
        address(place, dtype=torch.int32),
        *(address(tensor, dtype=torch.int64) for tensor in (unique, inverse)),
    )
    if count < 0:
        raise ValueError(
            f"ids: {int(ids.min())} to {int(ids.max())}, must be 0 to {vocab_size - 1}"
        )
    return unique[:count], inverse
