"""The n-gram branch: a linear classifier on the n-grams of a sequence.

The value of an n-gram is (1 + ln(number of occurrences)) times its idf. The values of a sequence
are scaled to a vector of length 1.

With model.ngrams_spelling, character n-grams within words are additional features. The vocabulary's
`spelling_share` is the share of the character n-grams in the squared length.

B sequences, N packed time steps, K n-grams of the vocabulary, C classes.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from seqtrain.config.schema import ModelConfig
from seqtrain.engines.choice import ops_for
from seqtrain.engines.interface import SparseRows
from seqtrain.engines.layout import Layout, rows_and_steps
from seqtrain.model.branches.branch import (
    Branch,
    ForwardContext,
    Table,
)
from seqtrain.model.input_spec import InputSpec
from seqtrain.model.inputs import SideInputs
from seqtrain.sequences.batch import Batch
from seqtrain.sequences.ngram_vocabulary import NgramValues, NgramVocabulary, ngram_values
from seqtrain.sequences.store import SequenceStore
from seqtrain.sequences.vocabulary import WordGrams

PREPARED_STEPS = 2**18
"""Approximate number of time steps whose n-grams `prepare` computes at once."""
MAX_PREPARED_STEPS = 2**23
"""Largest number of time steps of a store whose n-grams are kept in memory."""
GAIN = 20.0
"""Factor of the weighted sum. It speeds up learning, because the values are small."""


class NgramBranch(Branch):
    """Branch whose logits are linear in the values of a sequence's n-grams.

    Args:
        vocabulary: the known n-grams.
        num_classes: number of classes.
        words: character n-grams of the word of each token id, or None without subwords. Only a
            vocabulary of character n-grams needs them.

    Attributes:
        weight: weight of each n-gram for each class, (K, C).
        bias: (C,).
        sparse: True if the gradient of `weight` is a sparse tensor.
    """

    name = "ngrams"

    def __init__(
        self, vocabulary: NgramVocabulary, num_classes: int, words: WordGrams | None = None
    ) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.sparse = False
        self.words = words
        self.weight = nn.Parameter(torch.zeros(len(vocabulary), num_classes))
        self.bias = nn.Parameter(torch.zeros(num_classes))

    @classmethod
    def build(cls, config: ModelConfig, spec: InputSpec) -> NgramBranch | None:
        """Return the branch, or None without model.ngrams."""
        return None if spec.ngrams is None else cls(spec.ngrams, spec.num_classes, spec.words)

    @torch.no_grad()
    def initialize(self, generator: torch.Generator) -> None:
        """Set weight and bias to zero."""
        self.weight.zero_()
        self.bias.zero_()

    def forward(
        self, steps: Tensor, layout: Layout, side: SideInputs, context: ForwardContext
    ) -> Tensor:
        """Return the logits, (B, C); see `Branch.forward`.

        The n-gram values of the side inputs or of the context are used. Without any, `find`
        computes them.
        """
        prepared: SparseRows | None = context.prepared.get(self.name)
        if side.batch is None:
            assert side.ngrams is not None
            return self.score(side.ngrams, torch.arange(layout.lengths.shape[0]), layout)
        if prepared is None:
            return self.score(self.find(side.batch))
        batch = side.batch
        return self.score(prepared, torch.from_numpy(batch.examples)[batch.sorted_indices])

    def score(
        self, ngrams: SparseRows, rows: Tensor | None = None, layout: Layout | None = None
    ) -> Tensor:
        """Return the logits of sequences from their n-gram values, (B, C).

        Args:
            ngrams: values of n-grams, a sparse matrix with a row for each sequence.
            rows: indices of the rows to compute, (B,), or None for all rows.
            layout: layout of the time steps, which decides about the operations.
        """
        if rows is None:
            rows = torch.arange(len(ngrams.offsets) - 1, device="cpu")
        sums = ops_for(self.weight, layout).sum_rows(self.weight, ngrams, rows, sparse=self.sparse)
        return GAIN * sums + self.bias

    def prepare(self, store: SequenceStore) -> SparseRows | None:
        """Return the n-gram values of all rows of a store, on the CPU.

        The result is a sparse matrix with a row for each row of the store. It is None if the store
        has more than `MAX_PREPARED_STEPS` time steps.
        """
        if len(store.values) > MAX_PREPARED_STEPS:
            return None
        chunks = max(1, len(store.values) // PREPARED_STEPS)
        found = []
        for rows in np.array_split(np.arange(len(store)), chunks):
            some = store.__getitems__(rows)
            arrays = some.values, some.offsets, self.vocabulary, self.words
            found.append(_matrix(ngram_values(*arrays, some.spellings, some.words), len(rows)))
        counts = torch.cat([part.offsets.diff() for part in found])
        which = torch.cat([part.which for part in found])
        weights = torch.cat([part.weights for part in found])
        return SparseRows(which, weights, _offsets(counts))

    def find(self, batch: Batch) -> SparseRows:
        """Return the n-gram values of a packed batch, on the CPU.

        The result is a sparse matrix with a row for each row of the batch. N-grams that the
        vocabulary lacks are left out.
        """
        packed, spellings = batch.host.packed, batch.host.spellings
        row, step = rows_and_steps(packed.batch_sizes)
        offsets = _offsets(row.bincount())
        # Packed steps are ordered by time; n-grams are read sequence by sequence.
        order = (offsets[row] + step).argsort()
        numbers = unknown = None
        if spellings is not None:
            numbers = spellings.numbers[order].numpy()
            unknown = WordGrams(spellings.buckets.numpy(), spellings.offsets.numpy())
        ids = packed.data[order].numpy()
        arrays = ids, offsets.numpy(), self.vocabulary, self.words, numbers, unknown
        return _matrix(ngram_values(*arrays), len(offsets) - 1)

    def tables(self) -> list[Table]:
        """Return the branch itself, because `weight` is such a table."""
        return [self]


def _matrix(found: NgramValues, rows: int) -> SparseRows:
    counts = np.bincount(found.rows, minlength=rows)
    which = torch.from_numpy(found.ngrams.astype(np.int32))
    return SparseRows(which, torch.from_numpy(found.values), _offsets(torch.from_numpy(counts)))


def _offsets(counts: Tensor) -> Tensor:
    return functional.pad(counts.cumsum(0), (1, 0))
