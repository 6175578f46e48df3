"""Input layers: from packed ids or numbers to the vectors that the recurrent encoder reads.

Ids become word vectors, with subwords if model.subwords is set. Numbers are mapped linearly, after
a standardization per series if data.standardize asks for this. With model.convolutions,
convolutions follow. For series, convolutions replace the linear map.

N packed time steps, E size of an embedded step, U distinct tokens of a batch, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from seqtrain.config.schema import ModelConfig
from seqtrain.model.column_embedding import ColumnEmbedding
from seqtrain.model.convolutions import Convolutions
from seqtrain.model.engines.interface import DistinctInputs
from seqtrain.model.engines.native.native_ops import ops_for
from seqtrain.model.initialization import token_embedding
from seqtrain.model.input_spec import InputSpec
from seqtrain.model.packing import PackedSequences
from seqtrain.model.randomness import Purpose, RandomNumbers
from seqtrain.model.subwords import Subwords, number_unknown_words, spelling_keys
from seqtrain.sequences.batch import Batch, Grams
from seqtrain.sequences.transfer import move_together
from seqtrain.sequences.vocabulary import PAD, UNK


@dataclass(frozen=True, eq=False)
class DistinctTokens:
    """The distinct tokens of a batch or segment. All tensors are on the same device.

    Attributes:
        known: distinct ids of the vocabulary, ascending. The first is <unk> if there are unknown
            words.
        unknown: distinct numbers of the unknown words, ascending.
        index: position of each step's token in the concatenation of `known` and `unknown`.
        spellings: character n-grams of all unknown words of the whole batch, or None without any.

    Shape:
        known and unknown together have U entries. index: (N,). All are int64.
    """

    known: Tensor
    unknown: Tensor
    index: Tensor
    spellings: Grams | None


class Inputs:
    """The modules before the encoder.

    This class isn't an nn.Module. The recurrent branch registers the modules in it as submodules.

    Args:
        config: the section model of a config.
        spec: facts about inputs and classes.

    Attributes:
        embedding: embedding of ids, columns or numbers; or nn.Identity if convolutions replace it.
        subwords: table of character n-grams, or None without model.subwords.
        convolutions: layers after the embedding, or None without model.convolutions.
        series: standardization of each series by itself, or None.
        width: size of the vectors that the encoder reads.
        rate: model.embedding_dropout.
    """

    def __init__(self, config: ModelConfig, spec: InputSpec) -> None:
        self.rate = config.embedding_dropout
        self.series = spec.series
        channels = spec.input_size if self.series is None else self.series.width
        self.embedding: nn.Embedding | nn.Linear | nn.Identity | ColumnEmbedding
        self.width = config.width
        if spec.steps is not None:
            self.embedding = ColumnEmbedding(spec.steps, channels, self.width)
        elif not spec.features:
            self.embedding = token_embedding(spec.input_size, self.width, padding_idx=PAD)
        elif config.convolutions is None:
            self.embedding = nn.Linear(channels, self.width)
        else:
            self.embedding, self.width = nn.Identity(), channels
        self.subwords = None
        if spec.words is not None:
            self.subwords = Subwords(spec.words, self.width, spec.subword_rows)
        self.convolutions = None
        if config.convolutions is not None:
            self.convolutions = Convolutions(self.width, config.convolutions)
            self.width = self.convolutions.width

    def read_whole(self, batch: Batch, random: RandomNumbers | None) -> PackedSequence:
        """Apply the layers that need whole sequences: standardization of series, and convolutions.

        Pass the result, or segments of it, to `read`.

        Args:
            batch: packed or padded.
            random: random numbers for dropout, or None for prediction.

        Returns:
            The packed time steps:

            - without convolutions: ids, or numbers that aren't embedded yet. With subwords, each
              unknown word has an id above the ids of the vocabulary.
            - with convolutions: the output of the last convolution.
        """
        packed = batch.packed
        if self.subwords is not None:
            packed = number_unknown_words(batch, len(self.subwords))
        if self.series is not None:
            sequences = PackedSequences(packed.batch_sizes, packed.data.device)
            packed = PackedSequence(self.series(packed.data, sequences), packed.batch_sizes)
        if self.convolutions is None:
            return packed
        if isinstance(self.embedding, nn.Embedding):
            vectors = self.embed_tokens(packed, batch, random)
            steps = vectors.table.index_select(0, vectors.index)
            packed = PackedSequence(steps, packed.batch_sizes)
        elif isinstance(self.embedding, ColumnEmbedding):
            packed = PackedSequence(self._embedded(packed, random, None), packed.batch_sizes)
        convolved: PackedSequence = self.convolutions(packed)
        return convolved

    def read(
        self,
        packed: PackedSequence,
        batch: Batch,
        random: RandomNumbers | None,
        begin: Tensor | None,
    ) -> PackedSequence | DistinctInputs:
        """Return the vectors that the encoder reads at some time steps.

        Steps that `read_whole` has embedded and convolved are returned unchanged.

        Args:
            packed: result of `read_whole`, or a segment of it.
            batch: the batch of the time steps.
            random: random numbers for dropout, or None for prediction.
            begin: time step at which each row begins in its sequence, (B,), or None for 0.

        Returns:
            One vector for each packed step: `DistinctInputs` for tokens without convolutions, else
            a PackedSequence.
        """
        if self.convolutions is not None and not isinstance(self.embedding, nn.Identity):
            return packed  # `read_whole` embedded the steps before the convolutions
        if isinstance(self.embedding, nn.Embedding):
            return self.embed_tokens(packed, batch, random)
        return PackedSequence(self._embedded(packed, random, begin), packed.batch_sizes)

    def embed_tokens(
        self,
        packed: PackedSequence,
        batch: Batch | None,
        random: RandomNumbers | None,
        rate: float | None = None,
    ) -> DistinctInputs:
        """Return the vectors of the distinct tokens, and the index of each step's vector.

        Dropout sets the same units to 0 wherever a token occurs in the batch (Gal & Ghahramani
        2016, arXiv:1512.05287). So each distinct token needs only one vector.

        Args:
            packed: ids of the whole batch, or of a segment of it.
            batch: the batch, which has the spelling of unknown words, or None without such words.
            random: random numbers for dropout, or None for prediction.
            rate: probability that a unit is dropped, or None for model.embedding_dropout.
        """
        assert isinstance(self.embedding, nn.Embedding)
        weight, device = self.embedding.weight, packed.data.device
        tokens = self._distinct_tokens(packed, batch)
        known, index = move_together([tokens.known, tokens.index], device)
        # No padding_idx: ids are never padding, and zeroing its gradient would take a copy.
        table = ops_for(weight).distinct_rows(weight, known, sparse=self.embedding.sparse)
        if len(tokens.unknown):  # <unk> is the first row: its gradient names it only once
            table = torch.cat((table, table[:1].expand(len(tokens.unknown), -1)))
        if self.subwords is not None:
            table = table + self.subwords(tokens.known, tokens.unknown, tokens.spellings)
        if random is not None:
            rate = self.rate if rate is None else rate
            keys = tokens.known  # the same in every batch
            if tokens.spellings is not None:
                keys = torch.cat((keys, spelling_keys(tokens.unknown, tokens.spellings)))
            table = random.drop(table, rate, Purpose.EMBEDDING, keys)
        return DistinctInputs(table, index, packed.batch_sizes)

    def _distinct_tokens(self, packed: PackedSequence, batch: Batch | None) -> DistinctTokens:
        """Return the distinct tokens of a batch or a segment.

        They are on the device of `packed`. An exception is a whole batch that has a copy of its ids
        on the CPU: its distinct tokens are on the CPU, which saves a wait for the device.

        Args:
            packed: ids of the whole batch, or of a segment of it.
            batch: the batch, or None without one.
        """
        assert isinstance(self.embedding, nn.Embedding)
        ids, size, spellings = packed.data, self.embedding.num_embeddings, None
        if batch is not None and self.subwords is not None:
            spellings = batch.spellings
        on_host = None if batch is None else batch.on_host
        if on_host is not None and len(on_host.inputs.data) == len(ids):  # not a segment
            ids = on_host.packed.data
            if self.subwords is not None:
                ids, spellings = number_unknown_words(on_host, size).data, on_host.spellings
        count = 0 if spellings is None else len(spellings.offsets) - 1
        distinct, index = distinct_ids(ids, size + count, with_unk=count > 0)
        known = distinct[: int(torch.searchsorted(distinct, size))] if count else distinct
        return DistinctTokens(known, distinct[len(known) :] - size, index, spellings)

    def _embedded(
        self, packed: PackedSequence, random: RandomNumbers | None, begin: Tensor | None
    ) -> Tensor:
        """Return the vectors of columns or numbers, (N, E), after dropout.

        Args:
            packed: time steps.
            random: random numbers for dropout, or None for prediction.
            begin: time step at which each row begins in its sequence, or None for 0.
        """
        vectors: Tensor = self.embedding(packed.data)
        if random is None:
            return vectors
        return random.drop_steps(vectors, self.rate, Purpose.EMBEDDING, packed.batch_sizes, begin)


def distinct_ids(ids: Tensor, vocab_size: int, *, with_unk: bool = False) -> tuple[Tensor, Tensor]:
    """Return the distinct ids in ascending order, (U,), and the index of each id in them, (N,).

    Unlike `torch.unique`, the function doesn't sort.

    Args:
        ids: ids below `vocab_size`, (N,).
        vocab_size: number of possible ids.
        with_unk: True to include the id of <unk> even if it doesn't occur.
    """
    found = ids.new_zeros(vocab_size).index_fill_(0, ids, 1)
    if with_unk:
        found[UNK] = 1
    return found.nonzero().squeeze(1), (found.cumsum(0) - 1)[ids]
