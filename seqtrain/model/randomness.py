"""Random numbers of training as a pure function of seed, update, purpose, and key.

The key of a number is an example and a time step, or a token. A number doesn't depend on the batch,
the device, the process, or the numbers drawn before. A resumed run therefore gets the same numbers
as a run without a stop, although no state of a generator is saved.

Streams of SplitMix64 form levels: update, purpose, and keys. A number of one level is the seed of a
stream of the next level. Each number of the last level decides about four units.

B sequences, N rows, W width of a row. A unit is one number of a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import IntEnum

import torch
from torch import Tensor

from seqtrain.engines.choice import ops_for
from seqtrain.engines.interface import DROP_BITS, DropRule
from seqtrain.engines.layout import Packed
from seqtrain.engines.splitmix64 import number, numbers


class Purpose(IntEnum):
    """Purposes of random numbers in a network. Each purpose has its own stream."""

    PRETRAINING = 0
    """Dropout of pretraining, which draws other numbers than training."""
    INITIAL_STATE = 1
    EMBEDDING = 2
    HEAD = 3
    """Dropout before the head, or in pretraining before the softmax over tokens."""
    FIRST_TOKEN = 4
    """Dropout of the state from which an autoencoder predicts the first token."""
    ABOVE_LAYER = 16
    """Dropout between the first and the second layer; ABOVE_LAYER + 1 is the next one."""


@dataclass(frozen=True, eq=False)
class RandomNumbers:
    """Random numbers of one update, for dropout and random initial states.

    Create them by `of`.

    Attributes:
        key: seed of all numbers of the update.
        examples: row number in the store of each row of the batch, (B,) int64, on the CPU.
    """

    key: int
    examples: Tensor

    @classmethod
    def of(cls, seed: int, update: int, examples: Tensor) -> RandomNumbers:
        """Return the random numbers of one update.

        Args:
            seed: seed of the run.
            update: number of the update, from 0.
            examples: row number in the store of each row of the batch, (B,) int64, on the CPU.
        """
        return cls(number(seed, update), examples)

    def at(self, purpose: Purpose) -> RandomNumbers:
        """Return random numbers of the same update for another purpose, independent of these."""
        return replace(self, key=number(self.key, purpose))

    def rows(self, order: Tensor) -> RandomNumbers:
        """Return the random numbers of some rows of the batch.

        Args:
            order: indices of the rows, (B',). They become rows 0, 1, … of the result.
        """
        return replace(self, examples=self.examples[order.cpu()])

    def drop(self, values: Tensor, rate: float, purpose: int, *keys: Tensor) -> Tensor:
        """Apply dropout: set each unit to 0 with the probability `rate`, and scale other units.

        The scale preserves the expected value. If `rate` rounds to 0, no unit is changed.

        Args:
            values: rows of units.
            rate: probability, rounded to a multiple of 2**-16, and at most 1 - 2**-16.
            purpose: a `Purpose`, or ABOVE_LAYER plus the number of a layer.
            *keys: numbers that identify each row, at least one, such as example and time step. For
                values on CUDA, all keys may be on the CPU.

        Shape:
            values: (N, W). keys: (N,) int64 each. Returns: (N, W).
        """
        levels = 2**DROP_BITS
        dropped = min(round(rate * levels), levels - 1)
        if not dropped:
            return values
        seeds: Tensor | int = number(self.key, purpose)
        if not values.is_cuda:
            keys = tuple(key.to(values.device) for key in keys)
        *outer, last = keys
        for key in outer:
            seeds = numbers(seeds, key)
        rule = DropRule(seeds, last, dropped - levels // 2, levels / (levels - dropped))
        return ops_for(values).drop(values, rule)

    def drop_steps(
        self,
        values: Tensor,
        rate: float,
        purpose: int,
        layout: Packed,
        begin: Tensor | None = None,
    ) -> Tensor:
        """Return packed time steps after dropout, (N, W); see `drop`.

        The keys of a row are its example and its time step.

        Args:
            values: packed time steps, (N, W).
            rate: probability that a unit becomes 0.
            purpose: a `Purpose`, or ABOVE_LAYER plus the number of a layer.
            layout: positions of the time steps.
            begin: time step at which each row begins in its sequence, (B,), or None for 0.
        """
        if not rate:
            return values
        row, step = layout.places
        if begin is not None:
            step = step + begin[row]
        return self.drop(values, rate, purpose, self.examples[row], step)

    def normals(self, purpose: Purpose, width: int) -> Tensor:
        """Return standard normal numbers for each example, (B, W) float32, on the CPU.

        Args:
            purpose: purpose of the numbers.
            width: number W of numbers for each example.

        Reference:
            Box & Muller 1958, "A note on the generation of random normal deviates".
        """
        seeds = numbers(number(self.key, purpose), self.examples)
        columns = torch.arange(2 * width, dtype=torch.int64, device="cpu")
        bits = numbers(seeds.unsqueeze(1), columns)
        uniform = ((bits >> 11) & (2**53 - 1)).double().add_(0.5) * 2.0**-53
        first, second = uniform.chunk(2, dim=1)
        return ((-2 * first.log()).sqrt() * (2 * math.pi * second).cos()).float()
