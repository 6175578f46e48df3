"""Word vectors with subwords: x_w = E_w + n^(-1/2) Σ G_g over the n character n-grams g of w.

For a word that the vocabulary lacks, E_w is the vector of <unk>. The distinct unknown words of a
batch are numbered from 0. Unknown word i has the id V + i.

V words of the vocabulary, U distinct words of a batch, E size of a vector.
"""

import torch
from torch import Tensor, nn

from seqtrain.engines.choice import PADDED, ops_for
from seqtrain.engines.interface import SparseRows
from seqtrain.engines.splitmix64 import numbers
from seqtrain.sequences.batch import Grams, Spellings, entries_of
from seqtrain.sequences.vocabulary import BUCKETS, WordGrams


class Subwords(nn.Module):
    """Sum of the vectors of a word's character n-grams, which is added to the word's vector.

    Args:
        vocabulary: character n-grams of each word of the vocabulary.
        embedding_dim: size E of a vector.
        rows: number of rows of the table. N-grams whose hashes select the same row share a vector.

    Attributes:
        weight: the table, (rows, E).
        sparse: True if the gradient of `weight` is a sparse tensor.
    """

    def __init__(self, vocabulary: WordGrams, embedding_dim: int, rows: int = BUCKETS) -> None:
        super().__init__()
        self.sparse = False
        self.vocabulary = vocabulary
        self.weight = nn.Parameter(torch.empty(rows, embedding_dim))
        self._known: SparseRows | None = None
        self._of_all: Tensor | None = None

    def __len__(self) -> int:
        return len(self.vocabulary)

    def initialize(self, std: float, generator: torch.Generator) -> None:
        """Draw the table from a normal distribution with this standard deviation."""
        nn.init.normal_(self.weight, std=std, generator=generator)

    def forward(
        self, ids: Tensor, unknown_words: Tensor | None = None, unknown: Grams | None = None
    ) -> Tensor:
        """Return the subword part of each word's vector.

        It is the sum of the vectors of the word's n character n-grams, times n^(-1/2).

        Args:
            ids: ids of known words.
            unknown_words: numbers of unknown words, or None without any.
            unknown: n-grams of all unknown words of the batch, or None to ignore `unknown_words`.

        Shape:
            ids and unknown_words together have U entries. Returns: (U, E), known words first. A
            word without n-grams has a row of zeros.
        """
        if self.weight.is_cuda:  # the CPU knows the number of n-grams without waiting
            ids = ids.cpu()
            if unknown_words is None:
                unknown_words = None
            else:
                unknown_words = unknown_words.cpu()
            if unknown is None:
                unknown = None
            else:
                unknown = unknown.to(torch.device("cpu"))
        if self._known is None or self._known.which.device != ids.device:
            grams = Grams.of(self.vocabulary).to(ids.device)
            self._known = _sum_matrix(grams.buckets % len(self.weight), grams.offsets.diff())
        matrix = self._known
        if unknown_words is not None and unknown is not None and len(unknown_words):
            entries, counts = entries_of(matrix.offsets, ids)
            buckets, more = unknown.gather(unknown_words)
            which = torch.cat((matrix.which[entries], buckets % len(self.weight)))
            matrix = _sum_matrix(which, torch.cat((counts, more)))
            ids = torch.arange(len(ids) + len(unknown_words), device=ids.device)
        return ops_for(self.weight).sum_rows(self.weight, matrix, ids, sparse=self.sparse)

    @torch.no_grad()
    def known_words(self) -> Tensor:
        """Return the subword part of all words of the vocabulary, (V, E), as a constant.

        It is computed once, so that an exported model contains the result.
        """
        if self._of_all is None:
            self._of_all = self(torch.arange(len(self.vocabulary)))
        return self._of_all

    def unknown_words(self, words: Grams) -> Tensor:
        """Return the subword part of each unknown word, (U, E), by operations that ONNX has."""
        counts = words.offsets[1:] - words.offsets[:-1]
        buckets = words.buckets % len(self.weight)
        matrix = SparseRows(buckets, torch.ones_like(buckets, dtype=torch.float32), words.offsets)
        sums = PADDED.sum_rows(
            self.weight, matrix, torch.arange(counts.shape[0]), sparse=self.sparse
        )
        return sums * counts.clamp(min=1).float().rsqrt()[:, None]


def _sum_matrix(buckets: Tensor, counts: Tensor) -> SparseRows:
    """Return a sparse matrix whose product with the table is the subword part of words' vectors.

    Args:
        buckets: row of the table for each n-gram, word after word, (P,).
        counts: number of n-grams of each word, (U,).

    Returns:
        A matrix with a row for each word. Its entries are n^(-1/2) for a word of n n-grams.
    """
    shares = counts.clamp(min=1).rsqrt().repeat_interleave(counts)
    return SparseRows.of(buckets.int(), shares, counts)


def number_unknown_words(ids: Tensor, spellings: Spellings | None, vocab_size: int) -> Tensor:
    """Return ids with an id beyond the vocabulary for each unknown word.

    Unknown word i of the batch has the id `vocab_size` + i in place of <unk>.

    Args:
        ids: ids of all time steps, packed or padded.
        spellings: spellings of the unknown words, or None to return the ids unchanged.
        vocab_size: size of the vocabulary.
    """
    if spellings is None:
        return ids
    return torch.where(spellings.numbers < 0, ids, spellings.numbers + vocab_size)


def spelling_keys(words: Tensor, unknown: Grams) -> Tensor:
    """Return the key of each unknown word for dropout, (U,).

    The key is a 64-bit hash of the word's n-grams. A word has the same key in every batch.

    Args:
        words: numbers of the unknown words in the batch, (U,).
        unknown: n-grams of all unknown words of the batch.
    """
    buckets, counts = unknown.gather(words)
    word = torch.arange(len(counts), device=words.device).repeat_interleave(counts)
    return torch.zeros_like(words).index_add(0, word, numbers(BUCKETS, buckets))
