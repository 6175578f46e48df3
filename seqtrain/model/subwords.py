"""Word vectors with subwords: x_w = E_w + n^(-1/2) Σ G_g over the n character n-grams g of w.

A word that the vocabulary lacks has <unk>'s row and its own n-grams, so that it isn't lost. Such
words have ids beyond the vocabulary's: V + i is the i-th of the words that come with a batch.

V words of the vocabulary, U distinct words of a batch, E size of a vector.
"""

import torch
from torch import Tensor, nn

from seqtrain.data.batch import Grams
from seqtrain.data.spelling import BUCKETS, WordGrams
from seqtrain.data.vocabulary import UNK
from seqtrain.model.engines.operations import sum_rows
from seqtrain.model.randomness import numbers


class Subwords(nn.Module):
    """What is added to the vectors of words: the sum of their n-grams' vectors, of size E."""

    def __init__(self, vocabulary: WordGrams, embedding_dim: int) -> None:
        super().__init__()
        self.sparse = False
        self.vocabulary = vocabulary
        self.weight = nn.Parameter(torch.empty(BUCKETS, embedding_dim))
        self._known: Grams | None = None

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
        buckets, counts = self.buckets(ids, unknown)
        share = counts.clamp(min=1).rsqrt().to(self.weight.dtype).repeat_interleave(counts)
        starts = counts.cumsum(0) - counts
        return sum_rows(self.weight, buckets, starts, share, sparse=self.sparse)

    def buckets(self, ids: Tensor, unknown: Grams | None) -> tuple[Tensor, Tensor]:
        """Return the buckets of words one after another, and how many each has."""
        if self._known is None or self._known.buckets.device != ids.device:
            self._known = Grams.of(self.vocabulary).to(ids.device)
        known = int(torch.searchsorted(ids, len(self)))
        found = [self._known.gather(ids[:known])]
        if known < len(ids):
            if unknown is None:
                raise ValueError(f"ids: found {int(ids[-1])}; the vocabulary has {len(self)} words")
            found.append(unknown.gather(ids[known:] - len(self)))
        buckets, counts = (torch.cat(tensors) for tensors in zip(*found, strict=True))
        return buckets, counts

    def keys(self, ids: Tensor, unknown: Grams | None) -> Tensor:
        """Return what words (U,) are known by in any batch: ids, or numbers made of n-grams."""
        known = int(torch.searchsorted(ids, len(self)))
        if unknown is None or known == len(ids):
            return ids
        buckets, counts = unknown.gather(ids[known:] - len(self))
        word = torch.arange(len(counts), device=ids.device).repeat_interleave(counts)
        sums = torch.zeros_like(ids[known:]).index_add(0, word, numbers(BUCKETS, buckets))
        return torch.cat((ids[:known], sums))
