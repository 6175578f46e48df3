"""The recurrent encoder over packed input, and which engine computes it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from seqtrain.config.schema import ModelConfig
from seqtrain.errors import ConfigError
from seqtrain.model.fused import DistinctInputs, fused_gru
from seqtrain.model.native import Projected, native_gru, vector_path, why_not
from seqtrain.model.native import distinct as native_distinct

CELLS: dict[str, Callable[..., nn.RNNBase]] = {"gru": nn.GRU, "lstm": nn.LSTM, "rnn": nn.RNN}


def make_encoder(config: ModelConfig) -> nn.RNNBase:
    """Return torch's recurrent module of this shape; it holds the weights for every engine."""
    return CELLS[config.rnn](
        config.embedding_dim,
        config.hidden_size,
        num_layers=config.num_layers,
        bidirectional=config.bidirectional,
        dropout=config.dropout if config.num_layers > 1 else 0.0,
        batch_first=True,
    )


def choose_engine(config: ModelConfig, device: torch.device) -> tuple[str, str]:
    """Return which engine computes the recurrence on a device, and why.

    Raises:
        ConfigError: the native engine is asked for and can't run.
    """
    absent = why_not() if device.type == "cpu" else f"it has no kernels for {device.type}"
    if config.engine == "native" and absent:
        raise ConfigError(f"model.engine: found native; {absent}; or set auto, fused or torch")
    if config.engine != "auto":
        return config.engine, "model.engine"
    if config.rnn != "gru":
        return "torch", f"native and fused have no {config.rnn}"
    if device.type != "cpu":
        return "torch", f"its own kernels on {device.type}"
    if absent:
        return "fused", f"cost linear in length; {absent}"
    return "native", f"cost linear in length, compiled for {vector_path()}"


def encode(
    encoder: nn.RNNBase,
    embedding: nn.Module,
    packed: PackedSequence,
    *,
    dropout: nn.Dropout,
    engine: str,
    need_outputs: bool,
    vocabulary: Projected | None = None,
) -> tuple[Tensor | None, Tensor]:
    """Embed packed steps and run the encoder over them.

    Args:
        encoder: torch's module with the weights.
        embedding: from ids, or from feature vectors.
        packed: ids or feature vectors, longest sequence first.
        dropout: of the embedded steps; a token's vector loses the same units wherever it stands in
            the batch (Gal & Ghahramani 2016, arXiv:1512.05287), so that each distinct token is
            embedded, dropped and projected once.
        engine: native, fused or torch.
        need_outputs: whether the states of all steps are wanted too.
        vocabulary: the embedding as `native.project` projected it; then nothing is embedded.

    Shape:
        packed.data: (N,) or (N, F). Returns: outputs (N, H) of the top layer, packed (None where
        not wanted), and h_n (layers * directions, B, hidden).
    """
    sizes = packed.batch_sizes
    gru = encoder if engine != "torch" and isinstance(encoder, nn.GRU) else None
    run_gru = native_gru if engine == "native" else fused_gru
    if gru is not None and vocabulary is not None:
        known = DistinctInputs(vocabulary, packed.data, sizes)
        return native_gru(known, gru, need_outputs=need_outputs)
    dropping = dropout.training and dropout.p > 0
    if isinstance(embedding, nn.Embedding) and (gru is not None or dropping):
        distinct, index = distinct_ids(packed.data, embedding.num_embeddings)
        # No padding_idx: it is never packed, and to look for it in a gradient takes a copy.
        table = functional.embedding(distinct, embedding.weight, sparse=embedding.sparse)
        table = dropout(table)
        if gru is not None:
            return run_gru(DistinctInputs(table, index, sizes), gru, need_outputs=need_outputs)
        vectors = table[index]
    else:
        vectors = dropout(embedding(packed.data))
    inputs = PackedSequence(vectors, sizes)
    if gru is not None:
        return run_gru(inputs, gru, need_outputs=need_outputs)
    outputs, state = encoder(inputs)
    return outputs.data if need_outputs else None, state[0] if encoder.mode == "LSTM" else state


def distinct_ids(ids: Tensor, vocab_size: int) -> tuple[Tensor, Tensor]:
    """Sort out repeated ids.

    Args:
        ids: int64, each below vocab_size.
        vocab_size: V.

    Shape:
        ids: (N,). Returns: distinct ids, ascending (U,), and where each id stands among them (N,).
    """
    if ids.device.type == "cpu" and not why_not():
        return native_distinct(ids, vocab_size)
    distinct, index = torch.unique(ids, return_inverse=True)
    return distinct, index
