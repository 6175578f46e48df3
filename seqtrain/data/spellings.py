"""The unknown words of a batch, as the model takes them: numbered, with their character n-grams.

N packed steps, U distinct unknown words, G n-grams of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqtrain.data.subwords import WordGrams


@dataclass(frozen=True)
class Grams:
    """The buckets of words' character n-grams, side by side, as tensors.

    Attributes:
        buckets: of all words.
        offsets: where each word's begin; the last entry is their number.

    Shape:
        buckets: (G,) int64. offsets: (U + 1,) int64.
    """

    buckets: Tensor
    offsets: Tensor

    @classmethod
    def of(cls, words: WordGrams) -> Grams:
        """Return the n-grams of words, on the CPU."""
        buckets, offsets = words.buckets.astype(np.int64), np.array(words.offsets)
        return cls(torch.from_numpy(buckets), torch.from_numpy(offsets))

    def to(self, device: torch.device) -> Grams:
        """Return the same on a device."""
        return Grams(self.buckets.to(device), self.offsets.to(device))

    def gather(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """Return the buckets of some words one after another, and how many each has."""
        starts = self.offsets[words]
        counts = self.offsets[words + 1] - starts
        total = counts.cumsum(0)
        index = torch.arange(int(total[-1]) if len(total) else 0, device=words.device)
        return self.buckets[index + (starts - total + counts).repeat_interleave(counts)], counts


@dataclass(frozen=True)
class Spellings:
    """Which steps of a batch are unknown words, and these words' n-grams.

    Attributes:
        numbers: of the unknown word at each step, -1 where the step is none; laid out as the ids.
        grams: of the words by number.
    """

    numbers: Tensor
    grams: Grams

    def to(self, device: torch.device) -> Spellings:
        """Return the same on a device."""
        return Spellings(self.numbers.to(device), self.grams.to(device))


def spellings(numbers: npt.NDArray[np.int32], words: WordGrams) -> Spellings:
    """Return what a batch needs of a store's words: those that it holds, numbered anew.

    Args:
        numbers: of words, as the store has them, laid out as the batch's ids.
        words: of the store.
    """
    distinct, place = np.unique(numbers, return_inverse=True)
    none = int(len(distinct) > 0 and distinct[0] < 0)
    held = distinct[none:]
    counts = words.offsets[held + 1] - words.offsets[held]
    offsets = np.concatenate(([0], counts.cumsum()))
    index = np.arange(offsets[-1]) + (words.offsets[held] - offsets[:-1]).repeat(counts)
    buckets = words.buckets[index].astype(np.int64)
    own = Grams(torch.from_numpy(buckets), torch.from_numpy(offsets))
    return Spellings(torch.from_numpy(place.reshape(numbers.shape) - none), own)
