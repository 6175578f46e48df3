"""Random numbers that are a pure function of what they are for; nothing is drawn one by one.

A number depends on the seed, the update, its purpose in the network and its key there (an example
and a time step, or a token), not on the batch, the device, the process, or what was drawn before. A
run goes on after a stop with the numbers that it would have had, with no generator to save.

Each level is a stream of SplitMix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number
generators", with the output function of Vigna's public-domain splitmix64.c): number i of the stream
with seed s is mix(s + (i + 1) * GOLDEN), and is the seed of the next level, such as that of a
purpose in an update, down to four units at once. B batch, N rows, W width of a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import IntEnum

import torch
from torch import Tensor

from seqtrain.model.engines.operations import drop_rows, native_takes
from seqtrain.model.packing import rows_and_steps

GOLDEN = 0x9E3779B97F4A7C15
ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
"""Shift and factor of each round of the output function."""
BITS = 16
"""Bits of a number that decide about one unit: probabilities are multiples of 2**-16."""


class Purpose(IntEnum):
    """What random numbers are for."""

    PRETRAINING = 0
    """Pretraining: its dropout has other numbers than training's."""
    INITIAL_STATE = 1
    EMBEDDING = 2
    HEAD = 3
    """Dropout before the head; in pretraining before the softmax over tokens."""
    FIRST_TOKEN = 4
    """Dropout of an autoencoder's state that predicts the first token."""
    ABOVE_LAYER = 16
    """Dropout between the first layer and the second; ABOVE_LAYER + 1 follows the second."""


def number(seed: int, index: int) -> int:
    """Return number `index` of the stream with this seed; all are from 0 to 2**64 - 1."""
    value = (seed + (index + 1) * GOLDEN) % 2**64
    for shift, factor in ROUNDS:
        value = (value ^ (value >> shift)) * factor % 2**64
    return value


@torch.no_grad()
def numbers(seeds: Tensor | int, indices: Tensor) -> Tensor:
    """Return number `index` of each seed's stream, as int64 of the same bits; shapes broadcast."""
    step = _signed(GOLDEN)
    if isinstance(seeds, int):
        values = indices * step + _signed((seeds + GOLDEN) % 2**64)
    else:
        values = indices * step + (seeds + step)
    for shift, factor in ROUNDS:
        # Shifts of signed numbers bring in the sign, which has to be cut off.
        values ^= (values >> shift) & ((1 << (64 - shift)) - 1)
        values *= _signed(factor)
    return values


@dataclass(frozen=True, eq=False)
class RandomNumbers:
    """The random numbers of one update, for dropout and random initial states.

    `key` seeds all of them; `examples` are the numbers of the batch's examples in their data set,
    (B,) int64, on the CPU. `RandomNumbers.of` makes it.
    """

    key: int
    examples: Tensor

    @classmethod
    def of(cls, seed: int, update: int, examples: Tensor) -> RandomNumbers:
        """Return the random numbers of an update, from 0, of a run of this seed."""
        return cls(number(seed, update), examples)

    def at(self, purpose: Purpose) -> RandomNumbers:
        """Return other numbers, for a stage whose purposes are its own."""
        return replace(self, key=number(self.key, purpose))

    def rows(self, order: Tensor) -> RandomNumbers:
        """Return the numbers of some rows of the batch, in this order."""
        return replace(self, examples=self.examples[order.cpu()])

    def drop(self, values: Tensor, rate: float, purpose: int, *keys: Tensor) -> Tensor:
        """Set units to 0 with a probability, near a multiple of 2**-16, and keep the mean.

        The keys are what each vector belongs to, such as an example and a time step.

        Shape:
            values: (N, W). keys: (N,) int64 each. Returns: (N, W).
        """
        dropped = min(round(rate * 2**BITS), 2**BITS - 1)
        if not dropped:
            return values
        seeds: Tensor | int = number(self.key, purpose)
        *outer, last = (key.to(values.device) for key in keys)
        for key in outer:
            seeds = numbers(seeds, key)
        least, scale = dropped - 2 ** (BITS - 1), 2**BITS / (2**BITS - dropped)
        if native_takes(values):
            return drop_rows(values, seeds, last, least, scale)
        seeds = numbers(seeds, last)
        width = values.shape[1]
        columns = torch.arange(-(-width * BITS // 64), dtype=torch.int64, device=values.device)
        units = numbers(seeds.unsqueeze(1), columns).view(torch.int16)[:, :width]
        kept: Tensor = (units >= least).to(values.dtype)
        return values * kept.mul_(scale)

    def drop_steps(
        self,
        values: Tensor,
        rate: float,
        purpose: int,
        batch_sizes: Tensor,
        begin: Tensor | None = None,
    ) -> Tensor:
        """Drop units of packed time steps (N, W) by example and time step; as `drop`.

        `begin` (B,) is the number of each row's first time step in its sequence; None: 0.
        """
        if not rate:
            return values
        row, step = rows_and_steps(batch_sizes)
        step = step if begin is None else step + begin[row]
        return self.drop(values, rate, purpose, self.examples[row], step)

    def normals(self, purpose: Purpose, width: int) -> Tensor:
        """Return numbers of mean 0 and deviation 1 of each example: (B, W) float32, on the CPU.

        Reference:
            Box & Muller 1958, "A note on the generation of random normal deviates".
        """
        seeds = numbers(number(self.key, purpose), self.examples)
        columns = torch.arange(2 * width, dtype=torch.int64, device="cpu")
        bits = numbers(seeds.unsqueeze(1), columns)
        uniform = ((bits >> 11) & (2**53 - 1)).double().add_(0.5) * 2.0**-53
        first, second = uniform.chunk(2, dim=1)
        return ((-2 * first.log()).sqrt() * (2 * math.pi * second).cos()).float()


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value
