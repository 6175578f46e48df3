"""Memory for the native engine, lent and given back: fresh megabytes cost page faults."""

from __future__ import annotations

import threading

import torch
from torch import Tensor


class Buffers:
    """Float buffers that are used again.

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
        return Loan(self, torch.empty(count + count // 4, dtype=torch.float32))

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
