"""A linear classifier on the n-grams of a sequence, a branch beside the recurrent one.

Each branch learns from its own predictions: the loss is the sum of both cross-entropies. A
prediction is the weighted mean of their log-probabilities. The value of an n-gram is
(1 + ln(how often it occurs)) times its idf; the values of a sequence are a vector of length 1.

B batch, N steps of all sequences, K n-grams of the vocabulary, C classes, P distinct n-grams of
each sequence, over all sequences.

With model.ngrams_spelling, the n-grams of characters within words are features, too. They have a
third of the squared length: half of it cost accuracy on questions, where function words decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from seqtrain.config.schema import BatchingConfig
from seqtrain.data.batch import Batch, Grams, collate, entries_of
from seqtrain.data.ngram_vocabulary import (
    BOUNDARY,
    NO_KEY,
    SPELLING_SHARE,
    NgramVocabulary,
    folded,
    streams,
)
from seqtrain.data.plan import plan_in_order_of_length
from seqtrain.data.spelling import WordGrams
from seqtrain.data.store import SequenceStore
from seqtrain.model.engines.operations import SparseRows, sum_rows
from seqtrain.model.packing import lengths_of, rows_and_steps

AT_ONCE = 2**16
"""Time steps whose n-grams are found together."""
MOST_STEPS = 2**23
"""Time steps of train from which on n-grams are found batch by batch: what is kept takes memory."""
GAIN = 20.0
"""Factor of the weighted sum: values of length 1 are small, and weights start at zero."""


def ngrams_of_store(store: SequenceStore, find: Callable[[Batch], SparseRows]) -> SparseRows:
    """Collect what `find` returns for batches of all rows, row by row of the batch."""
    rows, found = list[Tensor](), list[SparseRows]()
    for some in plan_in_order_of_length(store.lengths, BatchingConfig(max_tokens=AT_ONCE)):
        batch = collate(store.__getitems__(some))
        rows.append(torch.from_numpy(some)[batch.sorted_indices])
        found.append(find(batch))
    offsets = _offsets(torch.cat([each.offsets.diff() for each in found]))
    order, counts = entries_of(offsets, torch.cat(rows).argsort().to(offsets.device))
    which = torch.cat([each.which for each in found])[order]
    weights = torch.cat([each.weights for each in found])[order]
    return SparseRows(which, weights, _offsets(counts))


class NgramClassifier(nn.Module):
    """Logits that are linear in the values of a sequence's n-grams.

    `words` are the n-grams of characters of each known word, where the vocabulary knows such.

    Attributes:
        rows: the n-grams of each row that it learns from; None: they are found batch by batch.
    """

    keys: Tensor
    idf: Tensor

    def __init__(
        self, vocabulary: NgramVocabulary, num_classes: int, words: WordGrams | None = None
    ) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self._words = None if words is None or not vocabulary.has_spelling else Grams.of(words)
        self._num_words = None if words is None else len(words)
        self.sparse = False
        self.rows: SparseRows | None = None
        self.weight = nn.Parameter(torch.zeros(len(vocabulary), num_classes))
        self.bias = nn.Parameter(torch.zeros(num_classes))
        # They belong to the preprocessing, and are saved with it.
        self.register_buffer("keys", torch.from_numpy(np.array(vocabulary.keys)), persistent=False)
        self.register_buffer("idf", torch.from_numpy(np.array(vocabulary.idf)), persistent=False)

    @torch.no_grad()
    def initialize(self) -> None:
        """Set weight and bias to zero."""
        self.weight.zero_()
        self.bias.zero_()

    def forward(self, ngrams: SparseRows, rows: Tensor | None = None) -> Tensor:
        """Return the logits (B, C) of sequences whose n-grams `find` returned; None: of all."""
        if rows is None:
            rows = torch.arange(len(ngrams.offsets) - 1, device=self.weight.device)
        return GAIN * sum_rows(self.weight, ngrams, rows, sparse=self.sparse) + self.bias

    @torch.no_grad()
    def find(self, packed: PackedSequence, unknown: Grams | None = None) -> SparseRows:
        """Return the known n-grams of packed sequences of ids, longest first, and their values.

        Where spelling counts, ids of unknown words are beyond the vocabulary's.
        """
        rows, size = int(packed.batch_sizes[0]), len(self.vocabulary)
        walks = self._walks(packed)
        walk = walks[0]
        found = [each.within(self.keys) for each in walks]
        found += [each.behind(self.keys, each.last) for each in walks]
        if self._words is not None:
            found.append(self._spelled(packed.data, unknown))
        index, step = _both(found)
        pairs, times = _counted(walk.row[step] * size + index, rows * size)
        row, index = pairs // size, pairs % size
        values = (1 + times.log()) * self.idf[index]
        kind = 2 * row + (index >= len(self.keys))
        squares = values.new_zeros(2 * rows).index_add(0, kind, values.square())
        norms = torch.where(squares > 0, squares, 1.0).sqrt() / self._lengths.repeat(rows)
        counts = row.bincount(minlength=rows)
        return SparseRows(index.int(), values / norms[kind], _offsets(counts))

    def _walks(self, packed: PackedSequence) -> list[_Walk]:
        ids = streams(packed.data, self.vocabulary, self._num_words)
        return [_Walk(packed.batch_sizes, *each) for each in ids]

    @property
    def _lengths(self) -> Tensor:
        shares = (1.0, 0.0) if self._words is None else (1 - SPELLING_SHARE, SPELLING_SHARE)
        return self.idf.new_tensor(shares).sqrt()

    def _spelled(self, ids: Tensor, unknown: Grams | None) -> tuple[Tensor, Tensor]:
        """Return the number of each n-gram of characters of the words at steps, and its step."""
        assert self._words is not None
        assert self._num_words is not None
        self._words = self._words.to(ids.device)
        found = []
        for grams, first in ((self._words, 0), (unknown, self._num_words)):
            if grams is not None:
                mine = (ids >= first) & (ids < first + len(grams.offsets) - 1)
                step = torch.nonzero(mine).squeeze(1)
                buckets, counts = grams.gather(ids[step] - first)
                found.append((len(self.keys) + buckets, step.repeat_interleave(counts)))
        return _both(found)

    @torch.no_grad()
    def step_logits(self, packed: PackedSequence, unknown: Grams | None = None) -> Tensor:
        """Return the logits after every step, (N, C), packed: those of the prefix that ends there.

        A prefix holds the n-grams that end in it, and those that end at the boundary behind it.
        """
        walks = self._walks(packed)
        walk = walks[0]
        every = torch.arange(len(walk.row), device=walk.row.device)
        within = _both([each.within(self.keys) for each in walks])
        ends = _both([each.behind(self.keys, every) for each in walks])
        total = self._after_steps(packed, walk, within, ends) * self._lengths[0]
        if self._words is not None:
            index, step = self._spelled(packed.data, unknown)
            in_time = step.argsort(stable=True)
            spelled, none = (index[in_time], step[in_time]), (every[:0], every[:0])
            total = total + self._after_steps(packed, walk, spelled, none) * self._lengths[1]
        return (GAIN * total + self.bias).to(self.weight.dtype)

    def _after_steps(
        self,
        packed: PackedSequence,
        walk: _Walk,
        within: tuple[Tensor, Tensor],
        ends: tuple[Tensor, Tensor],
    ) -> Tensor:
        index, step = within
        before = _times_before(walk.row[step] * len(self.vocabulary) + index)
        weight_before = torch.where(before > 0, 1 + before.clamp(min=1).log(), 0.0)
        weight_after = 1 + (before + 1).log()
        sums, squares = self._sums(step, index, len(walk.row), weight_before, weight_after)
        for grown in (sums, squares):
            for earlier, now in pairwise(grown.split_with_sizes(packed.batch_sizes.tolist())):
                now += earlier[: len(now)]
        index, step = ends
        once = torch.ones_like(step, dtype=torch.float64)
        own_sums, own_squares = self._sums(step, index, len(walk.row), torch.zeros_like(once), once)
        squares = squares + own_squares
        norm = torch.where(squares > 0, squares.sqrt(), 1.0)
        total: Tensor = (sums + own_sums) / norm
        return total

    def _sums(
        self, step: Tensor, index: Tensor, steps: int, before: Tensor, after: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Add up, where n-grams end, the changes of weights (N, C) and of squares (N, 1)."""
        idf = self.idf[index].unsqueeze(1)
        terms = (after - before).unsqueeze(1) * idf * self.weight[index]
        squares = (after.square() - before.square()).unsqueeze(1) * idf.square()
        return (
            terms.new_zeros(steps, terms.shape[1]).index_add(0, step, terms),
            squares.new_zeros(steps, 1).index_add(0, step, squares),
        )


class _Walk:
    """Finds the n-grams of packed sequences, by the step that each ends with.

    `row` is of each packed step, (N,), `last` the packed index of each row's last step, (B,).
    """

    def __init__(self, sizes: Tensor, ids: Tensor, shortest: int, longest: int) -> None:
        starts = sizes.cumsum(0) - sizes
        row, step = rows_and_steps(sizes)
        before = starts[step - 1] + row
        before[step == 0] = len(row)  # where the boundary stands
        last = starts[lengths_of(sizes) - 1] + torch.arange(int(sizes[0]), device="cpu")
        self.row, self.last, before = (t.to(ids.device) for t in (row, last, before))
        self._step = step.to(ids.device)
        self._sizes = shortest, longest
        self._keys = [folded(torch.full_like(ids, NO_KEY), ids)]
        alone = folded(torch.full_like(ids[:1], NO_KEY), torch.full_like(ids[:1], BOUNDARY))
        for _ in range(longest - 1):
            self._keys.append(folded(torch.cat((self._keys[-1], alone))[before], ids))

    def within(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Return the number of each known n-gram among ascending keys, and its last step."""
        found = []
        for size in range(self._sizes[0], self._sizes[1] + 1):
            index, known = _look_up(keys, self._keys[size - 1])
            step = torch.nonzero(known & (self._step >= size - 2)).squeeze(1)
            found.append((index[step], step))
        return _both(found)

    def behind(self, keys: Tensor, steps: Tensor) -> tuple[Tensor, Tensor]:
        """Return the same of those that would end at a boundary behind these steps."""
        found = [(steps[:0], steps[:0])]
        for size in range(max(2, self._sizes[0]), self._sizes[1] + 1):
            before = self._keys[size - 2][steps]
            index, known = _look_up(keys, folded(before, torch.full_like(before, BOUNDARY)))
            ends = torch.nonzero(known & (self._step[steps] >= size - 3)).squeeze(1)
            found.append((index[ends], steps[ends]))
        return _both(found)


def _offsets(counts: Tensor) -> Tensor:
    return functional.pad(counts.cumsum(0), (1, 0))


def _both(found: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    index, step = (torch.cat(tensors) for tensors in zip(*found, strict=True))
    return index, step


def _look_up(keys: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    index = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
    return index, keys[index] == wanted


def _counted(values: Tensor, size: int) -> tuple[Tensor, Tensor]:
    if size > len(values):
        distinct, times = torch.unique(values, return_counts=True)
        return distinct, times
    times = values.bincount(minlength=size)
    distinct = times.nonzero().squeeze(1)
    return distinct, times[distinct]


def _times_before(pairs: Tensor) -> Tensor:
    ordered, order = pairs.sort(stable=True)
    first = torch.searchsorted(ordered, ordered)
    times = torch.empty_like(order)
    times[order] = torch.arange(len(order), device=order.device) - first
    return times.double()
