"""Word vectors with subwords: x_w = E_w + n^(-1/2) Σ G_g over the n character n-grams g of w.

A word that the vocabulary lacks has <unk>'s row and its own n-grams, so that it isn't lost. Such
words have ids beyond the vocabulary's: V + i is the i-th of the words that come with a batch.

V words of the vocabulary, U distinct words of a batch, E size of a vector.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqtrain.data.batch import Grams, entries_of
from seqtrain.data.vocabulary import BUCKETS, UNK, WordGrams
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

    def rows(self, ids: Tensor) -> Tensor:
        """Return the rows of the word embedding that ids have: <unk>'s beyond the vocabulary."""
        return torch.where(ids < len(self), ids, UNK)

    def forward(self, ids: Tensor, unknown: Grams | None = None) -> Tensor:
        """Return the sums of n-grams' vectors, (U, E), each divided by the root of their number.

        The ids are ascending; `unknown` has the words that the vocabulary lacks.
        """
        return sum_rows(self.weight, *self._looked_up(ids, unknown), sparse=self.sparse)

    def _looked_up(self, ids: Tensor, unknown: Grams | None) -> tuple[SparseRows, Tensor]:
        """Return a matrix whose columns are buckets, and which of its rows the words are."""
        if self._known is None or self._known.which.device != ids.device:
            grams = Grams.of(self.vocabulary).to(ids.device)
            self._known = _shares(grams.buckets % len(self.weight), grams.offsets.diff())
        known = int((ids < len(self)).sum())
        if known == len(ids):
            return self._known, ids
        if unknown is None:
            raise ValueError(f"ids: found {int(ids[-1])}; the vocabulary has {len(self)} words")
        entries, counts = entries_of(self._known.offsets, ids[:known])
        buckets, others = unknown.gather(ids[known:] - len(self))
        found = (self._known.which[entries], counts), (buckets % len(self.weight), others)
        which, counts = (torch.cat(each) for each in zip(*found, strict=True))
        return _shares(which, counts), torch.arange(len(ids), device=ids.device)

    def keys(self, ids: Tensor, unknown: Grams | None) -> Tensor:
        """Return what words (U,) are known by in any batch: ids, or numbers made of n-grams."""
        known = int(torch.searchsorted(ids, len(self)))
        if unknown is None or known == len(ids):
            return ids
        buckets, counts = unknown.gather(ids[known:] - len(self))
        word = torch.arange(len(counts), device=ids.device).repeat_interleave(counts)
        sums = torch.zeros_like(ids[known:]).index_add(0, word, numbers(BUCKETS, buckets))
        return torch.cat((ids[:known], sums))


def _shares(buckets: Tensor, counts: Tensor) -> SparseRows:
    """Return the matrix that takes words to the sums of their n-grams."""
    shares = counts.clamp(min=1).rsqrt().repeat_interleave(counts)
    return SparseRows(buckets.int(), shares, functional.pad(counts.cumsum(0), (1, 0)))
