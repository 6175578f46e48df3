"""Copies of tensors to a device. A copy to CUDA is queued, and the host doesn't wait for it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

ALIGNMENT = 16
"""Number of bytes of which the address of each tensor in the shared buffer is a multiple."""


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Return the tensor on a device. A copy from the CPU to CUDA is queued."""
    if device.type == "cuda" and tensor.is_cpu:
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def move_together(tensors: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """Move tensors to a device together, and return the results.

    For CUDA they are copied as one pinned buffer. The results share the memory of this buffer, so
    don't change them in place.

    Args:
        tensors: Tensors on the CPU.
        device: The target device.
    """
    if device.type != "cuda":
        return [tensor.to(device) for tensor in tensors]
    ends = []
    size = 0
    for tensor in tensors:
        size += tensor.nbytes
        ends.append(size)
        size += -size % ALIGNMENT
    buffer = torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=True)
    for tensor, end in zip(tensors, ends, strict=True):
        _part(buffer, tensor, end).copy_(tensor)
    moved = buffer.to(device, non_blocking=True)
    return [_part(moved, tensor, end) for tensor, end in zip(tensors, ends, strict=True)]


def _part(buffer: Tensor, like: Tensor, end: int) -> Tensor:
    """Return a view of the bytes of a buffer that end at `end`, with shape and type of `like`."""
    return buffer[end - like.nbytes : end].view(like.dtype).view(like.shape)
