"""From packed ids or feature vectors to the vectors that the recurrent encoder reads.

ids → word vectors, with subwords → convolutions; or feature vectors → by their own mean and
deviation → a linear map, or convolutions. Each part but the first is there only if it is asked for.

N packed time steps, E size of an embedded step.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from seqtrain.config.schema import ModelConfig
from seqtrain.data.ngram_vocabulary import NgramVocabulary
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.spelling import Grams, Spellings, WordGrams, word_grams
from seqtrain.data.vocabulary import PAD, SPECIAL
from seqtrain.model.convolutions import Convolutions
from seqtrain.model.encoder import TokenEmbedding, embed
from seqtrain.model.engines.interface import DistinctInputs, Engine, ProjectedTable
from seqtrain.model.randomness import PackedNoise, Site
from seqtrain.model.standardization import SeriesStandardization
from seqtrain.model.subwords import Subwords


@dataclass(frozen=True, eq=False)
class Fitted:
    """What parts of a model take from the preprocessing; None: the model has no such part.

    Attributes:
        words: character n-grams of the vocabulary's words.
        ngrams: the n-grams of tokens that train chose.
        series: how series are standardised by themselves.
    """

    words: WordGrams | None = None
    ngrams: NgramVocabulary | None = None
    series: SeriesStandardization | None = None


NOTHING = Fitted()


def fitted(preprocessing: Preprocessing) -> Fitted:
    """Return what parts of a model take from a preprocessing."""
    words = series = None
    if preprocessing.subwords is not None and preprocessing.vocabulary is not None:
        spelled = [""] * len(SPECIAL) + list(preprocessing.vocabulary.tokens[len(SPECIAL) :])
        words = word_grams(spelled, *preprocessing.subwords)
    if preprocessing.standardize != "train":
        series = SeriesStandardization(
            len(preprocessing.mean),
            both=preprocessing.standardize == "both",
            indicators=preprocessing.missing == "mask",
        )
    return Fitted(words, preprocessing.ngrams, series)


class Inputs:
    """The modules before the encoder; the classifier holds them under their own names.

    Args:
        config: the config's model section.
        input_size: size of the vocabulary, or width of a feature vector.
        features: whether time steps are feature vectors.
        fitted: what parts take from the preprocessing.

    Attributes:
        embedding: from ids, from feature vectors, or nothing where convolutions take these.
        subwords, convolutions, series: the parts; None: not asked for.
        width: of the vectors that the encoder reads.
    """

    def __init__(
        self, config: ModelConfig, input_size: int, *, features: bool, fitted: Fitted
    ) -> None:
        self.rate = config.embedding_dropout
        self.series = fitted.series
        channels = input_size if self.series is None else self.series.width
        self.embedding: TokenEmbedding | nn.Linear | nn.Identity
        self.width = config.width
        if not features:
            self.embedding = TokenEmbedding(input_size, self.width, padding_idx=PAD)
        elif config.convolutions is None:
            self.embedding = nn.Linear(channels, self.width)
        else:
            self.embedding, self.width = nn.Identity(), channels
        self.subwords = None if fitted.words is None else Subwords(fitted.words, self.width)
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
        self, packed: PackedSequence, grams: Grams | None, engine: Engine, noise: PackedNoise | None
    ) -> PackedSequence:
        """Return packed sequences after the parts that must see whole ones."""
        if self.series is not None:
            packed = self.series(packed)
        if self.convolutions is None:
            return packed
        vectors = self._embed(packed, grams, engine, noise)
        if isinstance(vectors, DistinctInputs):
            table = vectors.table
            assert isinstance(table, Tensor), "no vocabulary is projected before convolutions"
            steps = table.index_select(0, vectors.index)
            vectors = PackedSequence(steps, packed.batch_sizes)
        convolved: PackedSequence = self.convolutions(vectors)
        return convolved

    def read(
        self,
        packed: PackedSequence,
        grams: Grams | None,
        engine: Engine,
        noise: PackedNoise | None,
        vocabulary: ProjectedTable | None,
    ) -> PackedSequence | DistinctInputs:
        """Return what the engine reads of packed time steps that `read_whole` returned."""
        if self.convolutions is None:
            return self._embed(packed, grams, engine, noise, vocabulary)
        if noise is None or not isinstance(self.embedding, nn.Identity):
            return packed
        return PackedSequence(
            noise.drop(packed.data, self.rate, Site.EMBEDDING), packed.batch_sizes
        )

    def table(self) -> Tensor | None:
        """Return the vector of each id, for many batches without gradients; None: there is none."""
        if self.subwords is not None or self.convolutions is not None:
            return None
        return self.embedding.weight if isinstance(self.embedding, TokenEmbedding) else None

    def _embed(
        self,
        packed: PackedSequence,
        grams: Grams | None,
        engine: Engine,
        noise: PackedNoise | None,
        vocabulary: ProjectedTable | None = None,
    ) -> PackedSequence | DistinctInputs:
        if isinstance(self.embedding, nn.Identity):
            return packed
        return embed(
            self.embedding,
            packed,
            engine=engine,
            rate=self.rate,
            noise=noise,
            vocabulary=vocabulary,
            subwords=self.subwords,
            grams=grams,
        )
