"""Matrix products of the fused GRU: float32 on the CPU through oneDNN where that is faster.

torch's own float32 products on the CPU go through MKL, which leaves AVX-512 unused on AMD: oneDNN
takes half the time there. On Intel's processors it takes up to three times as long. It compiles
code for every new shape, which takes longer than the product, so long inputs are cut into parts of
few different lengths.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

PART = 512
"""Rows of a part of a long product."""

GRAIN = 64
"""A part shorter than PART has a multiple of GRAIN rows, or fewer than GRAIN."""

MIN_WORK = 1 << 20
"""Multiplications below which oneDNN's start-up costs more than its speed gains."""


FLOAT32: Any = {"dtype": torch.float32, "device": "cpu"}
"""Of a new tensor, whatever torch's defaults are."""


@cache
def _onednn() -> Callable[..., Tensor] | None:
    """Return oneDNN's linear product, or None where it isn't faster, or this torch has none.

    Tried at the first product, not at import: some processors start threads for it, and a process
    that has them can't fork workers.
    """
    if _is_intels():
        return None
    x, bias = torch.ones(2, 3, **FLOAT32), torch.ones(4, **FLOAT32)
    weight = torch.arange(12, **FLOAT32).view(4, 3)
    try:
        linear: Callable[..., Tensor] = torch.ops.mkldnn._linear_pointwise.default
        works = torch.equal(linear(x, weight, bias, "none", [], ""), x @ weight.T + bias)
    except (AttributeError, RuntimeError):
        return None
    return linear if works else None


def _is_intels() -> bool:
    """Whether this processor is one that MKL makes full use of."""
    try:
        about = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        about = platform.processor()
    return "GenuineIntel" in about


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Multiply rows by a transposed weight, for numbers of rows that come again and again.

    Args:
        x: the rows.
        weight: as in torch.nn.Linear; where its type is lower than x's, the product is of that
            type, and the result again of x's.
        bias: added to every row of the product.

    Shape:
        x (M, K), weight (L, K), bias (L,) -> (M, L).

    Returns:
        x @ weight.T + bias.
    """
    if x.dtype != weight.dtype:
        rows = functional.linear(x.to(weight.dtype), weight).to(x.dtype)
        return rows if bias is None else rows.add_(bias)
    large = x.device.type == "cpu" and len(x) * weight.numel() >= MIN_WORK
    onednn = _onednn() if large and x.dtype == torch.float32 else None
    if onednn is None:
        return functional.linear(x, weight, bias)
    return onednn(x, weight, bias, "none", [], "")


def long_product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Multiply any number of rows by a transposed weight; arguments as for `product`."""
    if x.device.type != "cpu":
        return functional.linear(x, weight, bias)
    return torch.cat([product(part, weight, bias) for part in x.split_with_sizes(_parts(len(x)))])


def outer_product(x: Tensor, y: Tensor, dtype: torch.dtype) -> Tensor:
    """Sum the outer products of the rows of two matrices.

    Args:
        x: one matrix.
        y: the other.
        dtype: type of the products; they are summed in x's own.

    Shape:
        x (M, K), y (M, L) -> (K, L).

    Returns:
        x.T @ y.
    """
    if x.device.type != "cpu":
        return (x.T.to(dtype) @ y.to(dtype)).to(x.dtype)
    parts = _parts(len(x))
    total = x.new_zeros(y.shape[1], x.shape[1])
    for left, right in zip(y.split_with_sizes(parts), x.split_with_sizes(parts), strict=True):
        total += product(left.T, right.T.to(dtype))
    return total.T


def _parts(rows: int) -> list[int]:
    """Cut a number of rows into few different lengths."""
    whole, rest = divmod(rows, PART)
    parts = [PART] * whole + [rest - rest % GRAIN, rest % GRAIN]
    return [part for part in parts if part]
