"""Memory for the native engine: made in one way, and lent and given back where it is large."""

from __future__ import annotations

import threading

import torch
from torch import Tensor


def new(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return memory that the library may write, of any content.

    Type and device are named: torch's own defaults, which a program may change, must not decide
    how large it is or where it lies.
    """
    return torch.empty(shape, dtype=dtype, device="cpu")


def address(tensor: Tensor | None, offset: int = 0, *, dtype: torch.dtype = torch.float32) -> int:
    """Return where number `offset` of a tensor lies; 0 (null) for no tensor.

    Every address that the library gets comes from here.

    Raises:
        TypeError: not contiguous memory on the CPU, or of another type than the library reads.
    """
    if tensor is None:
        return 0
    if tensor.dtype != dtype or not tensor.is_cpu or not tensor.is_contiguous():
        contiguous = "" if tensor.is_contiguous() else ", not contiguous"
        raise TypeError(
            f"{tensor.dtype} on {tensor.device}{contiguous}: the native engine takes contiguous "
            f"{dtype} on cpu"
        )
    return tensor.data_ptr() + offset * dtype.itemsize


class Buffers:
    """Float buffers that are used again: fresh megabytes cost page faults.

    A buffer too small is dropped for the larger one that replaces it, so that no more is kept than
    was lent at one time.
    """

    def __init__(self) -> None:
        self._free: list[Tensor] = []
        self._lock = threading.Lock()

    def lend(self, count: int) -> Loan:
        """Return a buffer of at least this many float32 numbers, of any content."""
        with self._lock:
            fitting = [i for i, buffer in enumerate(self._free) if buffer.numel() >= count]
            if fitting:
                best = min(fitting, key=lambda i: self._free[i].numel())
                return Loan(self, self._free.pop(best))
            if self._free:
                self._free.pop(max(range(len(self._free)), key=lambda i: self._free[i].numel()))
        return Loan(self, new(count + count // 4))

    def take_back(self, buffer: Tensor) -> None:
        """Take a buffer that nobody uses any more."""
        with self._lock:
            self._free.append(buffer)


class Loan:
    """A buffer on loan, given back when the loan is no longer referred to."""

    def __init__(self, owner: Buffers, tensor: Tensor) -> None:
        self._owner = owner
        self.tensor = tensor

    def __del__(self) -> None:
        self._owner.take_back(self.tensor)
