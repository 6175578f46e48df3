"""A linear classifier on the n-grams of a sequence, which stands beside the recurrent one.

Both learn from their own answers (the loss is the sum of both cross-entropies) and answer together,
by the mean of their log-probabilities. What an n-gram weighs is 1 + ln(how often it occurs) times
its idf; a sequence's values have length 1 together.

B batch, T longest length, N steps of all sequences, K n-grams of the vocabulary, C classes,
P distinct n-grams of each sequence, over all sequences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from seqtrain.data.ngram_vocabulary import BOUNDARY, NO_KEY, NgramVocabulary, folded
from seqtrain.model.packing import lengths_of, rows_and_steps

GAIN = 20.0
"""Factor of the weighted sum: values of length 1 are small, and weights start at zero."""


@dataclass(frozen=True)
class Ngrams:
    """The known n-grams of each sequence of a batch.

    Attributes:
        index: number of each n-gram, ascending within a row.
        values: its value there.
        offsets: where each row begins.

    Shape:
        index: (P,) int64. values: (P,) float32. offsets: (B,) int64.
    """

    index: Tensor
    values: Tensor
    offsets: Tensor


class NgramClassifier(nn.Module):
    """Logits that are linear in the values of a sequence's n-grams.

    Args:
        vocabulary: of n-grams.
        num_classes: C.

    Attributes:
        sparse: whether gradients of the weight hold the rows of a batch's n-grams alone.
    """

    def __init__(self, vocabulary: NgramVocabulary, num_classes: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.sparse = False
        self.weight = nn.Parameter(torch.zeros(len(vocabulary), num_classes))
        self.bias = nn.Parameter(torch.zeros(num_classes))
        # No buffers: they belong to the preprocessing, and are saved with it.
        self._tables: tuple[Tensor, Tensor] | None = None

    @property
    def keys(self) -> Tensor:
        """The vocabulary's keys, (K,), on the device of the weight."""
        return self._on_device()[0]

    @property
    def idf(self) -> Tensor:
        """The vocabulary's idf, (K,), on the device of the weight."""
        return self._on_device()[1]

    def _on_device(self) -> tuple[Tensor, Tensor]:
        device = self.weight.device
        if self._tables is None or self._tables[0].device != device:
            keys, idf = np.array(self.vocabulary.keys), np.array(self.vocabulary.idf)
            self._tables = torch.from_numpy(keys).to(device), torch.from_numpy(idf).to(device)
        return self._tables

    @torch.no_grad()
    def initialize(self) -> None:
        """Set weight and bias to zero."""
        self.weight.zero_()
        self.bias.zero_()

    def forward(self, ngrams: Ngrams) -> Tensor:
        """Return the logits (B, C) of sequences whose n-grams `find` returned."""
        rows, index = torch.unique(ngrams.index, return_inverse=True)
        table = functional.embedding(rows, self.weight, sparse=self.sparse)
        total = functional.embedding_bag(
            index, table, ngrams.offsets, mode="sum", per_sample_weights=ngrams.values
        )
        return GAIN * total + self.bias

    @torch.no_grad()
    def find(self, packed: PackedSequence) -> Ngrams:
        """Return the known n-grams of packed sequences of ids, longest first."""
        rows = int(packed.batch_sizes[0])
        walk = _Walk(self.vocabulary, packed.data, packed.batch_sizes)
        parts = [*walk.within(self.keys), *walk.at_ends(self.keys)]
        index, place = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
        size = len(self.vocabulary)
        pairs, times = _counted(walk.row[place] * size + index, rows * size)
        row, index = pairs // size, pairs % size
        values = (1 + times.log()) * self.idf[index]
        squares = values.new_zeros(rows).index_add(0, row, values.square())
        counts = row.bincount(minlength=rows)
        return Ngrams(index, values / squares.sqrt()[row], counts.cumsum(0) - counts)

    @torch.no_grad()
    def step_logits(self, packed: PackedSequence) -> Tensor:
        """Return the logits after every step: those of the prefix that ends there.

        A prefix holds the n-grams that end in it, and those that end at the boundary behind it.
        Sums of weights and of squares grow step by step.

        Shape:
            packed.data: (N,) int64. Returns: (N, C), packed.
        """
        walk = _Walk(self.vocabulary, packed.data, packed.batch_sizes)
        index, place = (torch.cat(tensors) for tensors in zip(*walk.within(self.keys), strict=True))
        before = _times_before(walk.row[place] * len(self.vocabulary) + index)
        weight_before = torch.where(before > 0, 1 + before.clamp(min=1).log(), 0.0)
        weight_after = 1 + (before + 1).log()
        sums = self._sums(place, index, weight_after - weight_before, walk.steps)
        squares = self._squares(
            place, index, weight_after.square() - weight_before.square(), walk.steps
        )
        sums, squares = (_running(each, packed.batch_sizes) for each in (sums, squares))
        for index, place in walk.at_every_end(self.keys):
            once = torch.ones_like(place, dtype=torch.float64)
            sums += self._sums(place, index, once, walk.steps)
            squares += self._squares(place, index, once, walk.steps)
        norm = torch.where(squares > 0, squares.sqrt(), 1.0)
        return (GAIN * sums / norm + self.bias).to(self.weight.dtype)

    def _sums(self, place: Tensor, index: Tensor, factor: Tensor, steps: int) -> Tensor:
        """Add weights of n-grams to the steps where they end, (N, C) float64."""
        terms = (factor * self.idf[index]).unsqueeze(1) * self.weight[index]
        return terms.new_zeros(steps, terms.shape[1]).index_add(0, place, terms)

    def _squares(self, place: Tensor, index: Tensor, factor: Tensor, steps: int) -> Tensor:
        """Add squares of idf to the steps where n-grams end, (N, 1) float64."""
        terms = (factor * self.idf[index].square()).unsqueeze(1)
        return terms.new_zeros(steps, 1).index_add(0, place, terms)


def joint(parts: Sequence[Tensor]) -> Tensor:
    """Return the logits of one answer: the mean of the parts' log-probabilities.

    Shape:
        parts: (…, C) each. Returns: (…, C); of one part as they are.
    """
    if len(parts) == 1:
        return parts[0]
    return torch.stack([part.float().log_softmax(-1) for part in parts]).mean(0)


class _Walk:
    """Finds the n-grams of packed sequences, by the step that each ends with.

    Args:
        vocabulary: of n-grams.
        ids: packed, (N,) int64.
        batch_sizes: (T,), on the CPU.

    Attributes:
        row: of each step, (N,).
        steps: N.
    """

    def __init__(self, vocabulary: NgramVocabulary, ids: Tensor, batch_sizes: Tensor) -> None:
        row, step = rows_and_steps(batch_sizes)
        before = (
            torch.arange(len(row), device="cpu") - torch.cat((batch_sizes[:1], batch_sizes))[step]
        )
        before[step == 0] = len(row)  # where the boundary is kept
        self.row, self.step = row.to(ids.device), step.to(ids.device)
        self.steps = len(row)
        last = lengths_of(batch_sizes) - 1
        rows = torch.arange(len(last), device="cpu")
        self._last = (batch_sizes.cumsum(0) - batch_sizes)[last] + rows
        self._last = self._last.to(ids.device)
        self._sizes = vocabulary.shortest, vocabulary.longest
        self._keys = [folded(torch.full_like(ids, NO_KEY), ids)]
        alone = folded(torch.full_like(ids[:1], NO_KEY), torch.full_like(ids[:1], BOUNDARY))
        before = before.to(ids.device)
        for _ in range(vocabulary.longest - 1):
            self._keys.append(folded(torch.cat((self._keys[-1], alone))[before], ids))

    def within(self, keys: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield, for each size, the number of the known n-grams and the step they end with."""
        shortest, longest = self._sizes
        for size in range(shortest, longest + 1):
            index, known = _look_up(keys, self._keys[size - 1])
            place = torch.nonzero(known & (self.step >= size - 2)).squeeze(1)
            yield index[place], place

    def at_ends(self, keys: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the same of those that end behind the last step of a row."""
        return self._behind(keys, self._last)

    def at_every_end(self, keys: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the same of those that would end behind each step."""
        return self._behind(keys, torch.arange(self.steps, device=self.row.device))

    def _behind(self, keys: Tensor, steps: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        for size in range(max(2, self._sizes[0]), self._sizes[1] + 1):
            before = self._keys[size - 2][steps]
            index, known = _look_up(keys, folded(before, torch.full_like(before, BOUNDARY)))
            found = torch.nonzero(known & (self.step[steps] >= size - 3)).squeeze(1)
            yield index[found], steps[found]


def _look_up(keys: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Return where each wanted key stands among ascending ones, and whether it does."""
    index = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
    return index, keys[index] == wanted


def _counted(values: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return distinct values, ascending, and how often each occurs; all are below a size."""
    if size > len(values):
        distinct, times = torch.unique(values, return_counts=True)
        return distinct, times
    times = values.bincount(minlength=size)
    distinct = times.nonzero().squeeze(1)
    return distinct, times[distinct]


def _times_before(pairs: Tensor) -> Tensor:
    """Return how often each value occurs before it in a tensor."""
    ordered, order = pairs.sort(stable=True)
    first = torch.searchsorted(ordered, ordered)
    times = torch.empty_like(order)
    times[order] = torch.arange(len(order), device=order.device) - first
    return times.double()


def _running(values: Tensor, batch_sizes: Tensor) -> Tensor:
    """Sum up over the steps of each sequence, (N, C) packed."""
    total = values.clone()
    for before, now in pairwise(total.split_with_sizes(batch_sizes.tolist())):
        now += before[: len(now)]
    return total
