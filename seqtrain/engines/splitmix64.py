"""SplitMix64, a generator of pseudorandom numbers with random access.

Number i of the stream with seed s is mix(s + (i + 1) * _GOLDEN). The numbers of a stream can serve
as seeds of further streams. ``engines/native/rows.h`` computes the same numbers in C++.

Reference:
    Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators"; the output function
    is that of Vigna's public-domain splitmix64.c.
"""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

_GOLDEN = 0x9E3779B97F4A7C15
_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
"""Shift and factor of each round of the output function."""

Number = TypeVar("Number", int, Tensor)


def number(seed: int, index: int) -> int:
    """Return number `index` of the stream with this seed, from 0 to 2**64 - 1."""
    return _mix(to_signed(seed + (index + 1) * _GOLDEN), to_signed) % 2**64


@torch.no_grad()
def numbers(seeds: Tensor | int, indices: Tensor) -> Tensor:
    """Return the numbers at these indices of the streams with these seeds.

    Shape:
        seeds, indices: int64 tensors whose shapes broadcast, or one seed as a Python int. Returns:
        int64 with the 64 bits of the unsigned number, in the broadcast shape.
    """
    step = to_signed(_GOLDEN)
    if isinstance(seeds, int):
        values = indices * step + to_signed(seeds + _GOLDEN)
    else:
        values = indices * step + (seeds + step)
    return _mix(values, lambda product: product)  # int64 tensors wrap around


def to_signed(value: int) -> int:
    """Return the signed 64-bit integer whose bits are the lowest 64 bits of `value`."""
    return (value + 2**63) % 2**64 - 2**63


def _mix(value: Number, wrap: Callable[[Number], Number]) -> Number:
    """Apply the output function of SplitMix64.

    Args:
        value: a number of 64 bits, signed.
        wrap: function that reduces a product to 64 signed bits.
    """
    for shift, factor in _ROUNDS:
        # A right shift of a signed number copies the sign bit, which the mask removes.
        shifted = (value >> shift) & ((1 << (64 - shift)) - 1)
        value = wrap((value ^ shifted) * to_signed(factor))
    return value
