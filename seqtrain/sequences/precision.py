"""Precision of float32 matrix products on a GPU: full float32, or TF32 if a run allows it."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def float32_products(device: torch.device, *, tf32: bool = False) -> Iterator[None]:
    """Compute float32 products and recurrences on CUDA with full precision, or in TF32.

    The setting applies to the whole process while the body of the `with` runs. Then the earlier
    setting is restored. Run the forward and the backward pass in such a body.

    TF32 keeps 10 of the 23 bits of a float32's mantissa. By default, torch allows TF32 for cuDNN's
    recurrences. This would make results depend on the device and on the batch.

    Args:
        device: Device that computes. On devices other than CUDA nothing changes.
        tf32: True to allow TF32.
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
    """Return the pair (TF32 is allowed for cuDNN, TF32 is allowed for cuBLAS)."""
    backends = torch.backends.cudnn.rnn, torch.backends.cuda.matmul
    if all(hasattr(backend, "fp32_precision") for backend in backends):  # torch 2.9 or newer
        # The older attributes can't be read if the newer ones were set.
        cudnn, matmul = (backend.fp32_precision == "tf32" for backend in backends)
        return cudnn, matmul
    return torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32


def _allow(cudnn: bool, matmul: bool) -> None:
    torch.backends.cudnn.allow_tf32 = cudnn
    torch.backends.cuda.matmul.allow_tf32 = matmul
