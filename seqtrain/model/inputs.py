"""From packed ids or feature vectors to the vectors that the recurrent encoder reads.

ids → word vectors, with subwords → convolutions; or feature vectors → by their own mean and
deviation → a linear map, or convolutions. All but the first are there only if they are asked for.

N packed time steps, E size of an embedded step, U distinct tokens of a batch, V of the vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from seqtrain.config.schema import ModelConfig
from seqtrain.data.batch import Grams, Spellings
from seqtrain.data.column_coding import ColumnCoding
from seqtrain.data.ngram_vocabulary import NgramVocabulary
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.vocabulary import BUCKETS, PAD, UNK, WordGrams
from seqtrain.model.column_embedding import ColumnEmbedding
from seqtrain.model.convolutions import Convolutions
from seqtrain.model.engines.interface import DistinctInputs
from seqtrain.model.kernels import KernelSizes
from seqtrain.model.randomness import Purpose, RandomNumbers
from seqtrain.model.standardization import SeriesStandardization
from seqtrain.model.subwords import Subwords, spelling_keys


@dataclass(frozen=True, eq=False)
class FittedLayers:
    """What a model takes from the preprocessing; None: it has no such branch or layer.

    Words are the character n-grams of the vocabulary's words; n-grams are those of tokens; steps
    and static are the columns of a time step, and beside a sequence.
    """

    words: WordGrams | None = None
    ngrams: NgramVocabulary | None = None
    series: SeriesStandardization | None = None
    kernels: KernelSizes | None = None
    steps: ColumnCoding | None = None
    static: ColumnCoding | None = None
    subword_rows: int = BUCKETS

    @classmethod
    def of(cls, preprocessing: Preprocessing) -> FittedLayers:
        """Return what a model takes from a preprocessing."""
        words = series = kernels = None
        coded = preprocessing if preprocessing.steps is None else preprocessing.steps
        channels, indicators = len(coded.mean), preprocessing.missing == "mask"
        if preprocessing.subwords is not None and preprocessing.vocabulary is not None:
            words = preprocessing.vocabulary.grams(*preprocessing.subwords)
        if preprocessing.standardize != "train":
            both = preprocessing.standardize == "both"
            series = SeriesStandardization(
                channels, both=both, indicators=indicators, ids=preprocessing.token_columns
            )
        if preprocessing.kernels is not None:
            kernels = KernelSizes(channels, indicators, preprocessing.kernels)
        columns = preprocessing.steps, preprocessing.static
        rows = preprocessing.subword_rows
        return cls(words, preprocessing.ngrams, series, kernels, *columns, rows)


class Inputs:
    """The modules before the encoder; the classifier holds them under their own names.

    Attributes:
        embedding: from ids, columns or feature vectors, or nothing where convolutions take these.
        subwords, convolutions, series: None: not asked for.
        width: of the vectors that the encoder reads.
    """

    def __init__(
        self, config: ModelConfig, input_size: int, *, features: bool, fitted: FittedLayers
    ) -> None:
        self.rate = config.embedding_dropout
        self.series = fitted.series
        channels = input_size if self.series is None else self.series.width
        self.embedding: nn.Embedding | nn.Linear | nn.Identity | ColumnEmbedding
        self.width = config.width
        if fitted.steps is not None:
            self.embedding = ColumnEmbedding(fitted.steps, channels, self.width)
        elif not features:
            self.embedding = nn.Embedding(input_size, self.width, padding_idx=PAD)
        elif config.convolutions is None:
            self.embedding = nn.Linear(channels, self.width)
        else:
            self.embedding, self.width = nn.Identity(), channels
        self.subwords = None
        if fitted.words is not None:
            self.subwords = Subwords(fitted.words, self.width, fitted.subword_rows)
        self.convolutions = None
        if config.convolutions is not None:
            self.convolutions = Convolutions(self.width, config.convolutions)
            self.width = self.convolutions.width

    def numbered(self, packed: PackedSequence, spellings: Spellings | None) -> PackedSequence:
        """Number unknown words beyond the vocabulary, where their spelling counts."""
        if spellings is None or self.subwords is None:
            return packed
        beyond = spellings.numbers + len(self.subwords)
        ids = torch.where(spellings.numbers < 0, packed.data, beyond)
        return PackedSequence(ids, packed.batch_sizes)

    def read_whole(
        self, packed: PackedSequence, grams: Grams | None, random: RandomNumbers | None
    ) -> PackedSequence:
        """Return packed sequences after the layers that must see whole ones."""
        if self.series is not None:
            packed = self.series(packed)
        if self.convolutions is None:
            return packed
        if isinstance(self.embedding, nn.Embedding):
            vectors = embed(self.embedding, packed, self.rate, random, self.subwords, grams)
            steps = vectors.table.index_select(0, vectors.index)
            packed = PackedSequence(steps, packed.batch_sizes)
        elif isinstance(self.embedding, ColumnEmbedding):
            packed = PackedSequence(self._embedded(packed, random, None), packed.batch_sizes)
        convolved: PackedSequence = self.convolutions(packed)
        return convolved

    def read(
        self,
        packed: PackedSequence,
        grams: Grams | None,
        random: RandomNumbers | None,
        begin: Tensor | None,
    ) -> PackedSequence | DistinctInputs:
        """Return what an engine reads of steps that `read_whole` packed, or of a segment.

        `grams` are of words with ids beyond the vocabulary's; `begin` is each row's first time step
        in its sequence (None: 0).
        """
        if self.convolutions is not None and not isinstance(self.embedding, nn.Identity):
            return packed  # embedded before the convolutions
        if isinstance(self.embedding, nn.Embedding):
            return embed(self.embedding, packed, self.rate, random, self.subwords, grams)
        return PackedSequence(self._embedded(packed, random, begin), packed.batch_sizes)

    def _embedded(
        self, packed: PackedSequence, random: RandomNumbers | None, begin: Tensor | None
    ) -> Tensor:
        """Return the vectors of steps of columns or features, (N, E), some units dropped."""
        vectors: Tensor = self.embedding(packed.data)
        if random is None:
            return vectors
        return random.drop_steps(vectors, self.rate, Purpose.EMBEDDING, packed.batch_sizes, begin)


def embed(
    embedding: nn.Embedding,
    packed: PackedSequence,
    rate: float,
    random: RandomNumbers | None,
    subwords: Subwords | None = None,
    grams: Grams | None = None,
) -> DistinctInputs:
    """Look up the vector of each distinct token: (N,) ids -> U vectors of size E, N indices.

    A token's vector loses the same units wherever it stands in the batch (rate; Gal & Ghahramani
    2016, arXiv:1512.05287), so that it is embedded, dropped and projected once. `grams` are those
    of the words with ids beyond the vocabulary's.
    """
    grams = None if subwords is None else grams
    size, unknown = embedding.num_embeddings, 0 if grams is None else len(grams.offsets) - 1
    ids, index = distinct_ids(packed.data, size + unknown, with_unk=unknown > 0)
    known = ids[: int(torch.searchsorted(ids, size))] if unknown else ids
    # No padding_idx: it is never packed, and to look for it in a gradient takes a copy.
    table = functional.embedding(known, embedding.weight, sparse=embedding.sparse)
    others = ids[len(known) :] - size
    if len(others):  # <unk> is the first: so its row stands once in the gradient
        table = torch.cat((table, table[:1].expand(len(others), -1)))
    if subwords is not None:
        table = table + subwords(known, others, grams)
    if random is not None:
        keys = ids if grams is None else torch.cat((known, spelling_keys(others, grams)))
        table = random.drop(table, rate, Purpose.EMBEDDING, keys)
    return DistinctInputs(table, index, packed.batch_sizes)


def distinct_ids(ids: Tensor, vocab_size: int, *, with_unk: bool = False) -> tuple[Tensor, Tensor]:
    """Return distinct ids below vocab_size, ascending (U,), and the index of each of (N,) there.

    As `torch.unique` does, but without sorting; <unk>'s may be asked for where no step has it.
    """
    found = ids.new_zeros(vocab_size).index_fill_(0, ids, 1)
    if with_unk:
        found[UNK] = 1
    return found.nonzero().squeeze(1), (found.cumsum(0) - 1)[ids]
