"""How far from the machine's limit: the products a token needs, and the most it can do a second."""

from __future__ import annotations

import time

import torch

from seqtrain.config.schema import ModelConfig
from seqtrain.model.cells import CELLS
from seqtrain.model.engines.fused.matmul import product

SIDES = (512, 1024)
"""Sizes of the square products tried: one of them suits the machine's caches best."""


def flops_a_token(model: ModelConfig) -> dict[str, int]:
    """Return the floating-point operations that a step of a sequence needs, as plain products.

    Forward, a layer and direction of G gates takes 2·G·H·E for the input and 2·G·H·H for the
    state, multiplication and addition counted as two; layers above the first read D·H in place of
    E, where D is the number of directions. Backward takes each product twice: for the gradient of
    its input and of its weight. So training is three times prediction. Every token counts in full,
    also where an engine projects equal ones once; embedding, gates, pooling, head and optimizer
    count as nothing.

    Args:
        model: of the config.

    Returns:
        Operations of "training" and "prediction".
    """
    directions = 2 if model.bidirectional else 1
    size = model.hidden_size
    inputs = model.embedding_dim + (model.num_layers - 1) * directions * size
    states = model.num_layers * size
    forward = 2 * CELLS[model.rnn].gates * size * directions * (inputs + states)
    return {"training": 3 * forward, "prediction": forward}


class Peak:
    """The fastest float32 matrix product seen, for noise only ever slows one down.

    Square products by torch.mm and by oneDNN (faster on some processors), on all of torch's
    threads. One call takes hundredths of a second, so it can take its turn among candidates.

    Args:
        device: where to compute.

    Attributes:
        flops: of the fastest product, in operations a second.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.flops = 0.0
        self._pairs = [torch.rand(2, side, side, device=device) for side in SIDES]

    def measure(self) -> None:
        """Try each product once more."""
        for left, right in self._pairs:
            for multiply in (torch.mm, product):
                synchronize(self.device)
                began = time.perf_counter()
                multiply(left, right)
                synchronize(self.device)
                seconds = time.perf_counter() - began
                self.flops = max(self.flops, 2 * len(left) ** 3 / seconds)


def synchronize(device: torch.device) -> None:
    """Wait until a device has done what it was given; the CPU always has."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
