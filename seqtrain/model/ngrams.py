"""A linear classifier on the n-grams of a sequence, a branch beside the recurrent one.

Each branch learns from its own predictions: the loss is the sum of both cross-entropies. A
prediction is the weighted mean of their log-probabilities. The value of an n-gram is
(1 + ln(how often it occurs)) times its idf; the values of a sequence are a vector of length 1.

B batch, N steps of all sequences, K n-grams of the vocabulary, C classes, P distinct n-grams of
each sequence, over all sequences.

With model.ngrams_spelling, the n-grams of characters within words are features, too. They have a
third of the squared length: half of it cost accuracy on questions, where function words decide.
"""

from collections.abc import Callable, Sequence

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
from seqtrain.data.store import SequenceStore
from seqtrain.data.vocabulary import WordGrams
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
        found = [
            _known(self.keys, packed.batch_sizes, *stream)
            for stream in streams(packed.data, self.vocabulary.columns, self._num_words)
        ]
        if self._words is not None:
            row = rows_and_steps(packed.batch_sizes)[0].to(packed.data.device)
            index, step = self._spelled(packed.data, unknown)
            found.append((index, row[step]))
        index, row = _both(found)
        pairs, times = torch.unique(row * size + index, return_counts=True)
        row, index = pairs // size, pairs % size
        values = (1 + times.log()) * self.idf[index]
        kind = 2 * row + (index >= len(self.keys))
        squares = values.new_zeros(2 * rows).index_add(0, kind, values.square())
        norms = torch.where(squares > 0, squares, 1.0).sqrt() / self._lengths.repeat(rows)
        counts = row.bincount(minlength=rows)
        return SparseRows(index.int(), values / norms[kind], _offsets(counts))

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


def _known(
    keys: Tensor, sizes: Tensor, ids: Tensor, shortest: int, longest: int
) -> tuple[Tensor, Tensor]:
    """Return the number of each n-gram among ascending keys that packed ids have, and its row.

    Each sequence goes on with a boundary, and may have one before its first step.
    """
    starts, lengths = sizes.cumsum(0) - sizes, lengths_of(sizes)
    row, step = rows_and_steps(sizes)
    every = torch.arange(len(lengths), device="cpu")
    before = torch.cat((starts[step - 1] + row, starts[lengths - 1] + every))
    before[: len(every)] = len(before)  # where the boundary before all stands
    row, step = torch.cat((row, every)).to(ids.device), torch.cat((step, lengths)).to(ids.device)
    before, boundary = before.to(ids.device), ids.new_full((1,), BOUNDARY)
    ids = torch.cat((ids, boundary.expand(len(every))))
    ending = folded(torch.full_like(ids, NO_KEY), ids)
    alone, found = folded(torch.full_like(boundary, NO_KEY), boundary), []
    for size in range(1, longest + 1):
        if size > 1:
            ending = folded(torch.cat((ending, alone))[before], ids)
        if size >= shortest:
            distinct, place = torch.unique(ending, return_inverse=True)  # sorted: searched faster
            index = torch.searchsorted(keys, distinct).clamp(max=len(keys) - 1)
            index = torch.where(keys[index] == distinct, index, -1)[place]
            which = torch.nonzero((index >= 0) & (step >= size - 2)).squeeze(1)
            found.append((index[which], row[which]))
    return _both(found)


def _offsets(counts: Tensor) -> Tensor:
    return functional.pad(counts.cumsum(0), (1, 0))


def _both(found: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    index, step = (torch.cat(tensors) for tensors in zip(*found, strict=True))
    return index, step
