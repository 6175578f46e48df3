"""Equal bits on CUDA: what torch and cuBLAS must be told before they compute."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def deterministic_algorithms(wanted: bool) -> Iterator[None]:
    """Let torch choose, while entered, what gives equal bits on CUDA too; on a CPU all does.

    cuBLAS reads its setting when its first product is computed: enter before. An operation that has
    no such algorithm raises RuntimeError.
    """
    if not wanted:
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("error")  # unlike use_deterministic_algorithms, no compiler
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)
