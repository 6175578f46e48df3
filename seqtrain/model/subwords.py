"""Word vectors with subwords: x_w = E_w + n^(-1/2) Σ G_g over the n character n-grams g of w.

A word that the vocabulary lacks has <unk>'s row and its own n-grams, so that it isn't lost. Such
words have ids beyond the vocabulary's: V + i is the i-th of the words that come with a batch.

V words of the vocabulary, U distinct words of a batch, E size of a vector.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqtrain.data.batch import Grams, entries_of
from seqtrain.data.vocabulary import BUCKETS, WordGrams
from seqtrain.model.engines.operations import SparseRows, sum_rows
from seqtrain.model.randomness import numbers


class Subwords(nn.Module):
    """What is added to the vectors of words: the sum of their n-grams' vectors, of size E."""

    def __init__(self, vocabulary: WordGrams, embedding_dim: int, rows: int = BUCKETS) -> None:
        super().__init__()
        self.sparse = False
        self.vocabulary = vocabulary
        self.weight = nn.Parameter(torch.empty(rows, embedding_dim))
        self._known: SparseRows | None = None

    def __len__(self) -> int:
        return len(self.vocabulary)

    def initialize(self, std: float, generator: torch.Generator) -> None:
        """Draw the weight from a normal distribution of this standard deviation."""
        nn.init.normal_(self.weight, std=std, generator=generator)

    def forward(
        self, ids: Tensor, others: Tensor | None = None, unknown: Grams | None = None
    ) -> Tensor:
        """Return the sums of n-grams' vectors, (U, E), each divided by the root of their number.

        First those of the vocabulary's words with these ids, then some of the `unknown` words.
        """
        if self._known is None or self._known.which.device != ids.device:
            grams = Grams.of(self.vocabulary).to(ids.device)
            self._known = _shares(grams.buckets % len(self.weight), grams.offsets.diff())
        matrix = self._known
        if others is not None and unknown is not None and len(others):
            entries, counts = entries_of(matrix.offsets, ids)
            buckets, more = unknown.gather(others)
            which = torch.cat((matrix.which[entries], buckets % len(self.weight)))
            matrix = _shares(which, torch.cat((counts, more)))
            ids = torch.arange(len(ids) + len(others), device=ids.device)
        return sum_rows(self.weight, matrix, ids, sparse=self.sparse)


def _shares(buckets: Tensor, counts: Tensor) -> SparseRows:
    """Return the matrix that takes words to the sums of their n-grams."""
    shares = counts.clamp(min=1).rsqrt().repeat_interleave(counts)
    return SparseRows(buckets.int(), shares, functional.pad(counts.cumsum(0), (1, 0)))


def spelling_keys(words: Tensor, unknown: Grams) -> Tensor:
    """Return what some of the unknown words (U,) are known by in any batch, made of n-grams."""
    buckets, counts = unknown.gather(words)
    word = torch.arange(len(counts), device=words.device).repeat_interleave(counts)
    return torch.zeros_like(words).index_add(0, word, numbers(BUCKETS, buckets))
