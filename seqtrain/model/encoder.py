"""The recurrent encoder over packed input: which engine computes it, and in which way."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from seqtrain.config.schema import ModelConfig
from seqtrain.errors import ConfigError
from seqtrain.model.engines.fused.engine import DistinctInputs, fused_gru
from seqtrain.model.engines.native import Projected, native_gru, serves, vector_path, why_not
from seqtrain.model.engines.native import distinct as native_distinct
from seqtrain.model.engines.unrolls import unroll

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


def state_shape(config: ModelConfig) -> tuple[int, int, int]:
    """Return the shape of one sequence's state: parts (h, and c of an LSTM), layers, hidden.

    Each direction of a layer counts as one of the layers, as in torch's h_n.
    """
    directions = 2 if config.bidirectional else 1
    return 2 if config.rnn == "lstm" else 1, config.num_layers * directions, config.hidden_size


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
    if config.unroll != "packed":
        return "torch", f"unroll {config.unroll}"
    if config.rnn != "gru":
        return "torch", f"native and fused have no {config.rnn}"
    if device.type != "cpu":
        return "torch", f"its own kernels on {device.type}"
    if absent:
        return "fused", f"cost linear in length; {absent}"
    return "native", f"cost linear in length, compiled for {vector_path()}"


def embed(
    embedding: nn.Module,
    packed: PackedSequence,
    *,
    dropout: nn.Dropout,
    engine: str,
    vocabulary: Projected | None = None,
) -> PackedSequence | DistinctInputs:
    """Turn packed steps into what an engine reads.

    Args:
        embedding: from ids, or from feature vectors.
        packed: ids or feature vectors, longest sequence first.
        dropout: of the embedded steps; a token's vector loses the same units wherever it stands in
            the batch (Gal & Ghahramani 2016, arXiv:1512.05287), so that each distinct token is
            embedded, dropped and projected once.
        engine: native, fused or torch.
        vocabulary: the embedding as `native.project` projected it; then nothing is embedded.

    Shape:
        packed.data: (N,) or (N, F). Returns: N vectors of size E.
    """
    if vocabulary is not None and engine == "native":
        return DistinctInputs(vocabulary, packed.data, packed.batch_sizes)
    distinct = engine != "torch" or (dropout.training and dropout.p > 0)
    if not (isinstance(embedding, nn.Embedding) and distinct):
        return PackedSequence(dropout(embedding(packed.data)), packed.batch_sizes)
    ids, index = distinct_ids(packed.data, embedding.num_embeddings)
    # No padding_idx: it is never packed, and to look for it in a gradient takes a copy.
    table = dropout(functional.embedding(ids, embedding.weight, sparse=embedding.sparse))
    if engine == "torch":
        return PackedSequence(table[index], packed.batch_sizes)
    return DistinctInputs(table, index, packed.batch_sizes)


def encode(
    encoder: nn.RNNBase,
    inputs: PackedSequence | DistinctInputs,
    start: Tensor | None = None,
    *,
    engine: str,
    how: str,
    need_outputs: bool,
) -> tuple[Tensor | None, Tensor]:
    """Run the encoder over embedded steps.

    Args:
        encoder: torch's module with the weights.
        inputs: as `embed` returns them for the engine.
        start: initial states, row by packed row; None: zeros.
        engine: native, fused or torch.
        how: packed, padded or masked (these two with torch), as model.unroll has it.
        need_outputs: whether the states of all steps are wanted too.

    Shape:
        inputs: N vectors of size E. start: (P, L * D, B, hidden), where P counts the parts of a
        state (h, and c of an LSTM), L layers, D directions. Returns: outputs (N, D * hidden) of the
        top layer, packed (None where not wanted), and the last valid states (P, L * D, B, hidden).
    """
    if isinstance(encoder, nn.GRU) and engine != "torch":
        run_gru = native_gru if engine == "native" and serves(encoder) else fused_gru
        h0 = None if start is None else start[0]
        outputs, h_n = run_gru(inputs, encoder, h0, need_outputs=need_outputs)
        return outputs, h_n.unsqueeze(0)
    assert isinstance(inputs, PackedSequence), "torch's modules read packed vectors"
    outputs, states = _run_torch(encoder, inputs, start, how)
    return outputs if need_outputs else None, states


def _run_torch(
    encoder: nn.RNNBase, inputs: PackedSequence, start: Tensor | None, how: str
) -> tuple[Tensor, Tensor]:
    """Run torch's module, or its mathematics in another way."""
    if how != "packed":
        return unroll(inputs, encoder, start, how=how)
    parts = None if start is None else start.to(inputs.data.dtype).contiguous().unbind()
    is_lstm = encoder.mode == "LSTM"
    outputs, state = encoder(inputs, parts[0] if parts and not is_lstm else parts)
    states: Tensor = torch.stack(state) if is_lstm else state.unsqueeze(0)
    return outputs.data, states


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
