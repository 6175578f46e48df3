"""The n-gram branch: a linear classifier on the n-grams of a sequence.

Each branch learns from its own predictions: the loss is the sum of their cross-entropies. The value
of an n-gram is (1 + ln(number of occurrences)) times its idf. The values of a sequence are scaled
to a vector of length 1.

With model.ngrams_spelling, character n-grams within words are features, too. They have a third of
the squared length. Half of it cost accuracy on questions, where function words decide.

B sequences, N packed time steps, K n-grams of the vocabulary, C classes, P distinct n-grams of each
sequence, over all sequences.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from seqtrain.config.schema import BatchingConfig, ModelConfig
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
from seqtrain.model.branches.branch import (
    Branch,
    ExampleInputs,
    ForwardContext,
    PaddedBatch,
    Table,
)
from seqtrain.model.engines.native.native_ops import ops_for
from seqtrain.model.engines.ops import SparseRows
from seqtrain.model.input_spec import InputSpec
from seqtrain.model.packing import lengths_of, rows_and_steps
from seqtrain.model.subwords import number_unknown_words

PREPARED_BATCH_STEPS = 2**16
"""Time steps whose n-grams `prepare` finds together."""
MAX_PREPARED_STEPS = 2**23
"""Largest number of time steps of a store whose n-grams are kept in memory."""
GAIN = 20.0
"""Factor of the weighted sum: values of length 1 are small, and weights start at zero."""
NGRAMS, NGRAM_ROWS, NGRAM_VALUES = "ngrams", "ngram_rows", "ngram_values"
"""Inputs of an exported model: n-gram ids, their rows of the batch, and their values."""


class NgramBranch(Branch):
    """Logits that are linear in the values of a sequence's n-grams.

    Args:
        vocabulary: the n-grams that train has.
        num_classes: number of classes.
        words: character n-grams of each word of the vocabulary, or None without subwords.
    """

    name = "ngrams"

    def __init__(
        self, vocabulary: NgramVocabulary, num_classes: int, words: WordGrams | None = None
    ) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.sparse = False
        self._spelling = Grams.of(words) if words is not None and vocabulary.has_spelling else None
        self.weight = nn.Parameter(torch.zeros(len(vocabulary), num_classes))
        self.bias = nn.Parameter(torch.zeros(num_classes))
        # Both belong to the preprocessing and are saved with it. They stay on the CPU.
        self.keys = torch.from_numpy(np.array(vocabulary.keys))
        self.idf = torch.from_numpy(np.array(vocabulary.idf))

    @classmethod
    def build(cls, config: ModelConfig, spec: InputSpec) -> NgramBranch | None:
        """Return the branch if model.ngrams is set."""
        return None if spec.ngrams is None else cls(spec.ngrams, spec.num_classes, spec.words)

    @torch.no_grad()
    def initialize(self, generator: torch.Generator) -> None:
        """Set weight and bias to zero."""
        self.weight.zero_()
        self.bias.zero_()

    def forward(self, batch: Batch, context: ForwardContext) -> Tensor:
        """Return the logits, (B, C)."""
        prepared: SparseRows | None = context.prepared.get(self.name)
        if prepared is None:
            return self.score(self.find(batch))
        return self.score(prepared, torch.from_numpy(batch.examples)[batch.sorted_indices])

    def score(self, ngrams: SparseRows, rows: Tensor | None = None) -> Tensor:
        """Return the logits, (B, C), of rows of what `find` returned, or of all rows if None."""
        if rows is None:
            rows = torch.arange(len(ngrams.offsets) - 1, device="cpu")
        sums = ops_for(self.weight).sum_rows(self.weight, ngrams, rows, sparse=self.sparse)
        return GAIN * sums + self.bias

    def prepare(self, store: SequenceStore) -> SparseRows | None:
        """Return the n-grams of all rows of a store, or None if they take too much memory."""
        if len(store.values) > MAX_PREPARED_STEPS:
            return None
        rows, found = list[Tensor](), list[SparseRows]()
        batching = BatchingConfig(max_tokens=PREPARED_BATCH_STEPS)
        for some in plan_in_order_of_length(store.lengths, batching):
            batch = collate(store.__getitems__(some))
            rows.append(torch.from_numpy(some)[batch.sorted_indices])
            found.append(self.find(batch))
        offsets = _offsets(torch.cat([part.offsets.diff() for part in found]))
        order, counts = entries_of(offsets, torch.cat(rows).argsort())
        which = torch.cat([part.which for part in found])[order]
        weights = torch.cat([part.weights for part in found])[order]
        return SparseRows(which, weights, _offsets(counts))

    @torch.no_grad()
    def find(self, batch: Batch) -> SparseRows:
        """Return the known n-grams of each sequence of a packed batch, and their values.

        The result is on the CPU, whichever device has the batch.
        """
        batch = batch.host
        packed = batch.packed
        rows, size = int(packed.batch_sizes[0]), len(self.vocabulary)
        found = [
            _known(self.keys, packed.batch_sizes, *stream)
            for stream in streams(packed.data, self.vocabulary.columns)
        ]
        spelling_share = 0.0
        if self._spelling is not None:
            spelling_share = SPELLING_SHARE
            row, _ = rows_and_steps(packed.batch_sizes)
            index, step = self._spelled(batch)
            found.append((index, row[step]))
        index, row = _concatenate(found)
        pairs, times = torch.unique(row * size + index, return_counts=True)
        row, index = pairs // size, pairs % size
        values = (1 + times.log()) * self.idf[index]
        # Two vectors for each row: n-grams of tokens, and of characters.
        vector = 2 * row + (index >= len(self.keys))
        squares = values.new_zeros(2 * rows).index_add(0, vector, values.square())
        lengths = values.new_tensor([1 - spelling_share, spelling_share]).sqrt().repeat(rows)
        norms = torch.where(squares > 0, squares, 1.0).sqrt() / lengths
        counts = row.bincount(minlength=rows)
        return SparseRows(index.int(), values / norms[vector], _offsets(counts))

    def tables(self) -> list[Table]:
        """Return the table of weights, which is the branch itself."""
        return [self]

    def begin_export(self) -> ExampleInputs:
        """Return n-grams, their rows, and their values, as `find` finds them."""
        numbers = torch.tensor([0, 1])
        inputs = {NGRAMS: numbers, NGRAM_ROWS: numbers, NGRAM_VALUES: torch.ones(2)}
        return {name: (example, ["n-grams"]) for name, example in inputs.items()}

    def export(self, batch: PaddedBatch) -> Tensor:
        """Return the logits of the n-grams that are inputs of the graph, (B, C)."""
        ngrams, rows, values = (batch.inputs[x] for x in (NGRAMS, NGRAM_ROWS, NGRAM_VALUES))
        terms = self.weight[ngrams] * GAIN * values[:, None]
        start = self.bias.expand(batch.lengths.shape[0], -1)
        return start.scatter_add(0, rows[:, None].expand_as(terms), terms)

    def _spelled(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the id of each character n-gram of the words at steps, and its step."""
        assert self._spelling is not None
        ids = number_unknown_words(batch, len(self._spelling.offsets) - 1).data
        found = []
        for grams, first in (
            (self._spelling, 0),
            (batch.spellings, len(self._spelling.offsets) - 1),
        ):
            if grams is not None:
                mine = (ids >= first) & (ids < first + len(grams.offsets) - 1)
                step = torch.nonzero(mine).squeeze(1)
                buckets, counts = grams.gather(ids[step] - first)
                found.append((len(self.keys) + buckets, step.repeat_interleave(counts)))
        return _concatenate(found)


def _known(
    keys: Tensor, sizes: Tensor, ids: Tensor, shortest: int, longest: int
) -> tuple[Tensor, Tensor]:
    """Return the id of each known n-gram in packed ids, and the row that has it.

    The id of an n-gram is its place among the ascending keys. A boundary follows each sequence, and
    n-grams may also begin with a boundary before the first step.

    Args:
        keys: keys of the known n-grams.
        sizes: sequences at every time step, on the CPU.
        ids: packed ids.
        shortest: least number of ids in an n-gram.
        longest: largest number of ids in an n-gram.
    """
    starts, lengths = sizes.cumsum(0) - sizes, lengths_of(sizes)
    row, step = rows_and_steps(sizes)
    every = torch.arange(len(lengths), device="cpu")
    before = torch.cat((starts[step - 1] + row, starts[lengths - 1] + every))
    before[: len(every)] = len(before)  # index of the boundary before all steps
    row, step = torch.cat((row, every)), torch.cat((step, lengths))
    boundary = ids.new_full((1,), BOUNDARY)
    ids = torch.cat((ids, boundary.expand(len(every))))
    ending = folded(torch.full_like(ids, NO_KEY), ids)
    boundary_key, found = folded(torch.full_like(boundary, NO_KEY), boundary), []
    for size in range(1, longest + 1):
        if size > 1:
            ending = folded(torch.cat((ending, boundary_key))[before], ids)
        if size >= shortest:
            distinct, place = torch.unique(
                ending, return_inverse=True
            )  # searching is faster sorted
            index = torch.searchsorted(keys, distinct).clamp(max=len(keys) - 1)
            index = torch.where(keys[index] == distinct, index, -1)[place]
            which = torch.nonzero((index >= 0) & (step >= size - 2)).squeeze(1)
            found.append((index[which], row[which]))
    return _concatenate(found)


def _offsets(counts: Tensor) -> Tensor:
    return functional.pad(counts.cumsum(0), (1, 0))


def _concatenate(found: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    index, step = (torch.cat(tensors) for tensors in zip(*found, strict=True))
    return index, step
