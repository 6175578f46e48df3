"""Speeds, and how far they are from the machine's limit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from seqtrain.config.schema import ModelConfig
from seqtrain.model.cells import CELLS

SIDES = (512, 1024)
"""Sizes of the square products tried: one of them suits the machine's caches best."""


class Turn(NamedTuple):
    """What was measured at once.

    Attributes:
        batches: done.
        tokens: of these, real ones.
        seconds: that took.
        memory: the most that the process held so far beyond Python and the data, in bytes; None
            where the system doesn't say.
    """

    batches: int
    tokens: int
    seconds: float
    memory: int | None = None


def measured(turns: Sequence[Turn]) -> Sequence[Turn]:
    """Return all turns but the first, which warms up (unless it is all there is)."""
    return turns[1:] or turns


def rate(turns: Sequence[Turn]) -> float:
    """Return the tokens per second of some turns; 0 where there are none."""
    return sum(t.tokens for t in turns) / sum(t.seconds for t in turns) if turns else 0.0


def flops_per_token(model: ModelConfig) -> dict[str, int]:
    """Return the floating-point operations that a time step needs, as plain matrix products.

    Forward, a layer and direction of G gates takes 2·G·H·E for the input and 2·G·H·H for the
    state, multiplication and addition counted as two; layers above the first read D·H in place of
    E. Backward takes each product twice: for the gradient of its input and of its weight. So
    training is three times prediction. Every token counts in full, also where an engine projects
    equal ones once; embedding, gates, pooling, head and optimizer count as nothing.
    """
    directions = 2 if model.bidirectional else 1
    size, cell = model.hidden_size, CELLS[model.rnn]
    above = (model.num_layers - 1) * cell.products(directions * size, size)
    forward = 2 * directions * (cell.products(model.width, size) + above)
    return {"training": 3 * forward, "prediction": forward}


def matrix_flops(device: torch.device) -> float:
    """Return the operations per second of the fastest of some float32 matrix products.

    Square products by torch.mm, and by oneDNN where that is faster, on all of torch's
    threads, in hundredths of a second. Noise only ever slows one down: the fastest is the limit.
    """
    fastest = 0.0
    for side in SIDES:
        left, right = torch.rand(2, side, side, device=device)
        for multiply in (torch.mm, _by_onednn):
            synchronize(device)
            began = time.perf_counter()
            multiply(left, right)
            synchronize(device)
            fastest = max(fastest, 2 * side**3 / (time.perf_counter() - began))
    return fastest


def _by_onednn(left: Tensor, right: Tensor) -> Tensor:
    """Multiply by oneDNN, which torch.mm leaves aside on AMD's processors; else by torch.mm."""
    try:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(left, right, None, "none", [], "")
    except (AttributeError, RuntimeError):  # private to torch
        product = torch.mm(left, right)
    return product


def synchronize(device: torch.device) -> None:
    """Wait until a device has done what it was given; the CPU always has."""
    if device.type != "cpu":
        getattr(torch, device.type).synchronize()
