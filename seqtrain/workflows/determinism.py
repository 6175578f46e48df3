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
    before = torch.are_deterministic_algorithms_enabled()
    if wanted:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
