"""Input layers: from ids or numbers to the vectors that the recurrent encoder reads.

Ids become word vectors, with subwords if model.subwords is set. Numbers are mapped linearly, after
a standardization per series if data.standardize asks for this. With model.convolutions,
convolutions follow. For series, convolutions replace the linear map.

B sequences, T longest length, N packed time steps, E size of an embedded step, U distinct tokens of
a batch, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqtrain.config.schema import ModelConfig
from seqtrain.engines.interface import DistinctInputs, SparseRows
from seqtrain.engines.layout import Layout, Packed, Padded
from seqtrain.model.column_embedding import ColumnEmbedding
from seqtrain.model.convolutions import Convolutions
from seqtrain.model.initialization import token_embedding
from seqtrain.model.input_spec import InputSpec
from seqtrain.model.randomness import Purpose, RandomNumbers
from seqtrain.model.subwords import Subwords, number_unknown_words, spelling_keys
from seqtrain.sequences.batch import Batch, Spellings
from seqtrain.sequences.transfer import move_together
from seqtrain.sequences.vocabulary import PAD, UNK


@dataclass(frozen=True, eq=False)
class SideInputs:
    """Inputs of a batch besides its time steps, in the order of its rows.

    Attributes:
        static: row features, (B, K) float32, or None without data.static.
        spellings: character n-grams of unknown words, or None without any. Its `numbers` have the
            shape of the time steps.
        ngrams: values of the n-grams of each row, or None to find them in the time steps. An
            exported model has them as inputs of the graph.
        vectors: vector of each text by model.pretrained, (B, E), or None without it.
        batch: the packed batch, or None in an exported model. It has a copy of the ids on the CPU,
            and the rows of the store.
    """

    static: Tensor | None = None
    spellings: Spellings | None = None
    ngrams: SparseRows | None = None
    batch: Batch | None = None
    vectors: Tensor | None = None

    @classmethod
    def of(cls, batch: Batch) -> SideInputs:
        """Return the side inputs of a packed batch."""
        return cls(batch.static, batch.spellings, None, batch, batch.vectors)


class Inputs:
    """The modules before the encoder.

    This class isn't an nn.Module. The recurrent branch registers the modules in it as submodules.

    Args:
        config: the section model of a config.
        spec: description of inputs and classes.

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
        if self.series is None:
            channels = spec.input_size
        else:
            channels = self.series.width
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

    def read_whole(
        self, steps: Tensor, layout: Layout, side: SideInputs, random: RandomNumbers | None
    ) -> tuple[Tensor, Layout]:
        """Apply the layers that need whole sequences: standardization of series, and convolutions.

        Pass the result, or segments of it, to `read`.

        Args:
            steps: ids or numbers of all time steps.
            layout: positions of the steps.
            side: inputs besides the time steps.
            random: random numbers for dropout, or None for prediction.

        Returns:
            The time steps, and their layout:

            - without convolutions: ids, or numbers that aren't embedded yet. With subwords, each
              unknown word has an id above the ids of the vocabulary.
            - with convolutions: the output of the last convolution.
        """
        if self.subwords is not None:
            steps = number_unknown_words(steps, side.spellings, len(self.subwords))
        if self.series is not None:
            steps = self.series(steps, layout)
        if self.convolutions is None:
            return steps, layout
        if not isinstance(self.embedding, nn.Identity):
            embedded = self._embed(steps, layout, side, random, None)
            if isinstance(embedded, DistinctInputs):
                steps = embedded.vectors()
            else:
                steps = embedded
        convolved: tuple[Tensor, Layout] = self.convolutions(steps, layout)
        return convolved

    def read(
        self,
        steps: Tensor,
        layout: Layout,
        side: SideInputs,
        random: RandomNumbers | None,
        begin: Tensor | None = None,
    ) -> Tensor | DistinctInputs:
        """Return the vectors that the encoder reads at some time steps.

        Steps that `read_whole` has embedded and convolved are returned unchanged.

        Args:
            steps: result of `read_whole`, or a segment of it.
            layout: positions of these steps.
            side: inputs of the whole batch besides the time steps.
            random: random numbers for dropout, or None for prediction.
            begin: time step at which each row begins in its sequence, (B,), or None for 0.

        Returns:
            One vector for each step: `DistinctInputs` for tokens without convolutions, else a
            tensor.
        """
        if self.convolutions is None or isinstance(self.embedding, nn.Identity):
            return self._embed(steps, layout, side, random, begin)
        return steps

    def _embed(
        self,
        steps: Tensor,
        layout: Layout,
        side: SideInputs,
        random: RandomNumbers | None,
        begin: Tensor | None,
    ) -> Tensor | DistinctInputs:
        """Return the embedding of tokens, columns or numbers after dropout; see `read`."""
        if isinstance(self.embedding, nn.Embedding):
            return self.embed_tokens(steps, layout, side, random)
        vectors: Tensor = self.embedding(steps)
        if random is None:
            return vectors
        assert isinstance(layout, Packed)
        return random.drop_steps(vectors, self.rate, Purpose.EMBEDDING, layout, begin)

    def embed_tokens(
        self,
        steps: Tensor,
        layout: Layout,
        side: SideInputs,
        random: RandomNumbers | None,
        rate: float | None = None,
    ) -> DistinctInputs:
        """Return the vectors of the distinct tokens, and the index of each step's vector.

        Dropout sets the same units to 0 wherever a token occurs in the batch (Gal & Ghahramani
        2016, arXiv:1512.05287). So each distinct token needs only one vector.

        Args:
            steps: ids of the whole batch, or of a segment of it.
            layout: positions of these steps. For padded steps, the table has all tokens.
            side: inputs of the whole batch besides the time steps.
            random: random numbers for dropout, or None for prediction.
            rate: probability that a unit is dropped, or None for model.embedding_dropout.
        """
        assert isinstance(self.embedding, nn.Embedding)
        if isinstance(layout, Padded):
            return DistinctInputs(self._whole_table(side), steps)
        weight, size, ids = self.embedding.weight, self.embedding.num_embeddings, steps
        spellings = None if self.subwords is None else side.spellings
        on_host = None if side.batch is None else side.batch.on_host
        # A whole batch has a copy of its ids on the CPU, which saves a wait for the device.
        if on_host is not None and len(on_host.inputs.data) == len(ids):
            ids = on_host.inputs.data
            if self.subwords is not None:
                spellings = on_host.spellings
                ids = number_unknown_words(ids, spellings, size)
        words = 0 if spellings is None else len(spellings.offsets) - 1
        distinct, index = distinct_ids(ids, size + words, with_unk=words > 0)
        if words:
            known = distinct[: int(torch.searchsorted(distinct, size))]
        else:
            known = distinct
        unknown = distinct[len(known) :] - size
        rows, index = move_together([known, index], steps.device)
        # No padding_idx: ids are never padding, and zeroing its gradient would take a copy.
        table = functional.embedding(rows, weight, sparse=self.embedding.sparse)
        if len(unknown):  # <unk> is the first row: its gradient names it only once
            table = torch.cat((table, table[:1].expand(len(unknown), -1)))
        if self.subwords is not None:
            table = table + self.subwords(known, unknown, spellings)
        if random is not None:
            keys = known  # the same in every batch
            if spellings is not None:
                keys = torch.cat((known, spelling_keys(unknown, spellings)))
            rate = self.rate if rate is None else rate
            table = random.drop(table, rate, Purpose.EMBEDDING, keys)
        return DistinctInputs(table, index)

    def _whole_table(self, side: SideInputs) -> Tensor:
        """Return the vectors of all known words, and then of the unknown words of a batch.

        An exported model selects from them, because ONNX can't find the distinct tokens.
        """
        assert isinstance(self.embedding, nn.Embedding)
        weight = self.embedding.weight
        if self.subwords is None:
            return weight
        known = weight + self.subwords.known_words()
        if side.spellings is None:
            return known
        return torch.cat((known, weight[UNK] + self.subwords.unknown_words(side.spellings)))


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
