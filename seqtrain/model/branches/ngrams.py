"""The n-gram branch: logistic regression on the n-grams of a sequence.

The value of an n-gram is (1 + ln(number of occurrences)) times its idf. The values of a sequence
are scaled to a vector of length 1.

B sequences, N packed time steps, K n-grams of the vocabulary, C classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from seqtrain.config.schema import ModelConfig
from seqtrain.engines.choice import ops_for
from seqtrain.engines.interface import SparseRows
from seqtrain.engines.layout import Layout, rows_and_steps
from seqtrain.model.branches.branch import ForwardContext
from seqtrain.model.branches.by_updates import solve_by_updates
from seqtrain.model.branches.solved import LinearBranch, SolverInput
from seqtrain.model.input_spec import InputSpec
from seqtrain.model.inputs import SideInputs
from seqtrain.sequences.batch import Batch
from seqtrain.sequences.ngram_vocabulary import NgramVocabulary, ngram_values
from seqtrain.sequences.store import SequenceStore
from seqtrain.sequences.vocabulary import WordGrams

_STEPS_AT_ONCE = 2**18
"""Approximate number of time steps whose n-grams `features` computes at once."""
MOST_PENALIZED_ROWS = 6000
"""Number of rows up to which a penalized logistic regression is fitted, and above it Adam's."""


class NgramBranch(LinearBranch):
    """Branch whose logits are linear in the values of a sequence's n-grams.

    Args:
        vocabulary: the known n-grams.
        num_classes: number of classes.
        words: character n-grams of the word of each token id, or None without subwords. Only a
            vocabulary of character n-grams needs them.
    """

    name = "ngrams"
    title = "n-grams"

    def __init__(
        self, vocabulary: NgramVocabulary, num_classes: int, words: WordGrams | None = None
    ) -> None:
        super().__init__(len(vocabulary), num_classes)
        self.vocabulary = vocabulary
        self.words = words

    @classmethod
    def build(cls, config: ModelConfig, spec: InputSpec) -> NgramBranch | None:
        """Return the branch, or None without model.ngrams."""
        if spec.ngrams is None:
            return None
        return cls(spec.ngrams, spec.num_classes, spec.words)

    @torch.no_grad()
    def forward(
        self, steps: Tensor, layout: Layout, side: SideInputs, context: ForwardContext
    ) -> Tensor:
        """Return the logits, (B, C), without gradients; see `Branch.forward`.

        Without a batch, the n-grams of the side inputs are used.
        """
        if side.batch is None:
            ngrams = side.ngrams
        else:
            ngrams = self.find(side.batch)
        assert ngrams is not None
        rows = torch.arange(layout.rows)
        sums = ops_for(self.weight, layout).sum_rows(self.weight, ngrams, rows, sparse=False)
        return sums + self.intercept

    def solve(self, given: SolverInput) -> None:
        """Fit the weights to the n-grams of labelled rows."""
        if given.num_train <= MOST_PENALIZED_ROWS:
            super().solve(given)
            return
        weight, intercept = self.weight.cpu(), self.intercept.cpu()  # themselves on the CPU
        features, labels = self.features(given.store), given.store.labels
        solve_by_updates(weight, intercept, features, labels, given.weights, given.seed)
        self.weight.copy_(weight)
        self.intercept.copy_(intercept)

    def features(self, store: SequenceStore) -> Any:
        """Return the n-gram values of each row of a store, a CSR matrix (B, K) of float32."""
        from scipy.sparse import csr_matrix, vstack

        parts = []
        for rows in np.array_split(
            np.arange(len(store)), max(1, len(store.values) // _STEPS_AT_ONCE)
        ):
            some = store.__getitems__(rows)
            arrays = some.values, some.offsets, self.vocabulary, self.words
            found = ngram_values(*arrays, some.spellings, some.words)
            entries = found.values, (found.rows, found.ngrams)
            parts.append(csr_matrix(entries, (len(rows), len(self.vocabulary))))
        return vstack(parts, format="csr")

    def find(self, batch: Batch) -> SparseRows:
        """Return the n-gram values of a packed batch, on the CPU.

        The result is a sparse matrix with a row for each row of the batch. N-grams that the
        vocabulary lacks are left out.
        """
        packed, spellings = batch.host.packed, batch.host.spellings
        row, step = rows_and_steps(packed.batch_sizes)
        offsets = functional.pad(row.bincount().cumsum(0), (1, 0))
        # Packed steps are ordered by time; n-grams are read sequence by sequence.
        order = (offsets[row] + step).argsort()
        numbers = unknown = None
        if spellings is not None:
            numbers = spellings.numbers[order].numpy()
            unknown = WordGrams(spellings.buckets.numpy(), spellings.offsets.numpy())
        ids = packed.data[order].numpy()
        arrays = ids, offsets.numpy(), self.vocabulary, self.words, numbers, unknown
        found = ngram_values(*arrays)
        counts = torch.from_numpy(np.bincount(found.rows, minlength=len(offsets) - 1))
        which = torch.from_numpy(found.ngrams.astype(np.int32))
        return SparseRows.of(which, torch.from_numpy(found.values), counts)
