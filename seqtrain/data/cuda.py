"""Computation on CUDA: precision of float32 products, and copies of tensors to the device.

A copy to CUDA is queued, and the host doesn't wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

ALIGNMENT = 16
"""Bytes: the address of each tensor in a shared buffer is a multiple of it."""


@contextmanager
def float32_products(device: torch.device, *, tf32: bool = False) -> Iterator[None]:
    """Compute float32 products and recurrences on CUDA with full precision, or in TF32.

    TF32 keeps 10 of the 23 bits of a float32's mantissa. torch allows it by default for cuDNN's
    recurrences, so that results would depend on the device and on the batch. The setting belongs
    to the process and also counts for the backward pass: enter this block around both.

    Args:
        device: Device that computes. Only CUDA has TF32.
        tf32: Allow TF32.
    """
    if device.type != "cuda":
        yield
        return
    before = _allowed()
    _allow(tf32, tf32)
    try:
        yield
    finally:
        _allow(*before)


def _allowed() -> tuple[bool, bool]:
    """Return True for cuDNN and for cuBLAS if TF32 is allowed now."""
    backends: tuple[Any, Any] = torch.backends.cudnn.rnn, torch.backends.cuda.matmul
    if all(hasattr(backend, "fp32_precision") for backend in backends):  # torch 2.9 or newer
        # The older attributes can't be read if the newer ones were set.
        cudnn, matmul = (backend.fp32_precision == "tf32" for backend in backends)
        return cudnn, matmul
    return torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32


def _allow(cudnn: bool, matmul: bool) -> None:
    torch.backends.cudnn.allow_tf32 = cudnn
    torch.backends.cuda.matmul.allow_tf32 = matmul


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a tensor on a device."""
    if device.type == "cuda" and tensor.is_cpu:
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def move_together(tensors: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """Return tensors of the CPU on a device. To CUDA they travel in one pinned buffer.

    There the results share memory: don't change them in place.
    """
    if device.type != "cuda":
        return [tensor.to(device) for tensor in tensors]
    ends, size = [], 0
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
    """Return the bytes of a buffer up to `end` as a tensor of the shape and type of `like`."""
    return buffer[end - like.nbytes : end].view(like.dtype).view(like.shape)
