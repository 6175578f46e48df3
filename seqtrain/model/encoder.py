"""The recurrent encoder: the module that holds its weights, and the vectors that it reads."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from seqtrain.config.schema import ModelConfig
from seqtrain.data.spelling import Grams
from seqtrain.model.cells import CELLS
from seqtrain.model.engines import native
from seqtrain.model.engines.interface import DistinctInputs, Engine, ProjectedTable
from seqtrain.model.randomness import PackedNoise, Site
from seqtrain.model.subwords import Subwords


class TokenEmbedding(nn.Embedding):
    """A vector for each token.

    Attributes:
        before_read: is called with the rows that a batch is about to read, ascending, each once;
            None: nobody asks.
    """

    before_read: Callable[[Tensor], None] | None = None


def make_encoder(config: ModelConfig, width: int) -> nn.RNNBase:
    """Return torch's recurrent module of this shape; it holds the weights for every engine.

    Args:
        config: the config's model section.
        width: of the vectors that it reads.
    """
    return CELLS[config.rnn].module(
        width,
        config.hidden_size,
        num_layers=config.num_layers,
        bidirectional=config.bidirectional,
        dropout=config.dropout if config.num_layers > 1 else 0.0,
        batch_first=True,
    )


def embed(
    embedding: nn.Module,
    packed: PackedSequence,
    *,
    engine: Engine,
    rate: float = 0.0,
    noise: PackedNoise | None = None,
    vocabulary: ProjectedTable | None = None,
    subwords: Subwords | None = None,
    grams: Grams | None = None,
) -> PackedSequence | DistinctInputs:
    """Turn packed time steps into what an engine reads.

    Args:
        embedding: from ids, or from feature vectors.
        packed: ids or feature vectors, longest sequence first.
        engine: that reads them.
        rate: share of their units that are dropped; a token's vector loses the same units wherever
            it stands in the batch (Gal & Ghahramani 2016, arXiv:1512.05287), so that each distinct
            token is embedded, dropped and projected once.
        noise: says which units; None: nothing is dropped.
        vocabulary: the embedding as this engine has projected it; then nothing is embedded.
        subwords: what is added to the vectors of words.
        grams: n-grams of the words with ids beyond the vocabulary's.

    Shape:
        packed.data: (N,) or (N, F). Returns: N vectors of size E.
    """
    if vocabulary is not None:
        return DistinctInputs(vocabulary, packed.data, packed.batch_sizes)
    if not isinstance(embedding, TokenEmbedding):
        vectors = embedding(packed.data)
        if noise is not None:
            vectors = noise.drop(vectors, rate, Site.EMBEDDING)
        return PackedSequence(vectors, packed.batch_sizes)
    known = embedding.num_embeddings
    unknown = 0 if grams is None else len(grams.offsets) - 1
    ids, index = distinct_ids(packed.data, known + unknown)
    rows = ids if subwords is None else subwords.rows(ids)
    if embedding.before_read is not None:
        embedding.before_read(rows if subwords is None else torch.unique(rows))
    # No padding_idx: it is never packed, and to look for it in a gradient takes a copy.
    table = functional.embedding(rows, embedding.weight, sparse=embedding.sparse)
    if subwords is not None:
        table = table + subwords(ids, grams)
    if noise is not None:
        table = noise.noise.drop(table, rate, Site.EMBEDDING, ids)
    return DistinctInputs(table, index, packed.batch_sizes)


def distinct_ids(ids: Tensor, vocab_size: int) -> tuple[Tensor, Tensor]:
    """Sort out repeated ids.

    Args:
        ids: int64, each below vocab_size.
        vocab_size: V.

    Shape:
        ids: (N,). Returns: distinct ids, ascending (U,), and where each id stands among them (N,).
    """
    if ids.device.type == "cpu" and not native.why_not():
        return native.distinct(ids, vocab_size)
    distinct, index = torch.unique(ids, return_inverse=True)
    return distinct, index
