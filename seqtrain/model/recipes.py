"""How nn.GRU and its kin are run on sequences of unequal length elsewhere, as yardsticks.

The recipes of today's tutorials, over the modules and weights of a SequenceClassifier: only the way
through the encoder differs, so the logits are the same.

- packed: pad, `pack_padded_sequence(enforce_sorted=False)`, run; the last states come as h_n.
- padded: pad, run over the padding too, and take the states at length - 1. A backward direction
  reads each sequence reversed, layer by layer, for it must not begin in the padding.

B batch, T longest length, E embedding, H state (both directions), C classes, F features.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence

from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.pooling import last_valid_state

LAYERS: dict[str, Callable[..., tuple[Tensor, ...]]] = {
    "GRU": torch.gru,
    "LSTM": torch.lstm,
    "RNN_TANH": torch.rnn_tanh,
}
"""What runs one layer in one direction, by the mode of torch's module."""
PARAMETERS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def recipe_logits(
    model: SequenceClassifier, steps: Tensor, lengths: Tensor, *, packed: bool
) -> Tensor:
    """Classify padded sequences, in any order, by torch's own module.

    Args:
        model: whose modules to use; its engine plays no part.
        steps: ids or feature vectors, anything in the padding.
        lengths: steps of each sequence, on the CPU.
        packed: pack the steps, or else run over the padding.

    Shape:
        steps: (B, T), or (B, T, F). lengths: (B,). Returns: logits (B, C), row by row.
    """
    vectors = model.embedding_dropout(model.embedding(steps))
    pooled = (_packed if packed else _padded)(model, vectors, lengths)
    logits: Tensor = model.head(model.dropout(pooled))
    return logits


def _packed(model: SequenceClassifier, vectors: Tensor, lengths: Tensor) -> Tensor:
    inputs = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
    outputs, state = model.encoder(inputs)
    if model.config.pooling == "last":
        h_n = state[0] if model.config.rnn == "lstm" else state
        return last_valid_state(h_n, bidirectional=model.config.bidirectional)
    pooled: Tensor = model.pooling(outputs.data, outputs.batch_sizes)[outputs.unsorted_indices]
    return pooled


def _padded(model: SequenceClassifier, vectors: Tensor, lengths: Tensor) -> Tensor:
    if model.config.bidirectional:
        states = _both_directions(model.encoder, vectors, lengths)
    else:
        states = model.encoder(vectors)[0]
    if model.config.pooling != "last":
        valid = pack_padded_sequence(states, lengths, batch_first=True, enforce_sorted=False)
        pooled: Tensor = model.pooling(valid.data, valid.batch_sizes)[valid.unsorted_indices]
        return pooled
    last = states[torch.arange(len(states)), lengths - 1]
    if not model.config.bidirectional:
        return last
    size = model.config.hidden_size
    return torch.cat((last[:, :size], states[:, 0, size:]), dim=1)


def _both_directions(encoder: nn.RNNBase, vectors: Tensor, lengths: Tensor) -> Tensor:
    """Run a bidirectional module over padding, layer by layer; return all states (B, T, H)."""
    step = torch.arange(vectors.shape[1])
    ends = lengths.unsqueeze(1)
    mirror = torch.where(step < ends, ends - 1 - step, step).to(vectors.device).unsqueeze(2)

    def reversed_in_place(steps: Tensor) -> Tensor:
        return steps.gather(1, mirror.expand_as(steps))

    for layer in range(encoder.num_layers):
        if layer:
            vectors = functional.dropout(vectors, encoder.dropout, encoder.training)
        forward = _one_direction(encoder, f"l{layer}", vectors)
        backward = _one_direction(encoder, f"l{layer}_reverse", reversed_in_place(vectors))
        vectors = torch.cat((forward, reversed_in_place(backward)), dim=2)
    return vectors


def _one_direction(encoder: nn.RNNBase, suffix: str, vectors: Tensor) -> Tensor:
    """Run one layer in one direction over padding; return its states."""
    zeros = vectors.new_zeros(1, len(vectors), encoder.hidden_size)
    start = (zeros, zeros) if encoder.mode == "LSTM" else zeros
    weights = [getattr(encoder, f"{name}_{suffix}") for name in PARAMETERS]
    # bias, layers, dropout, training, bidirectional, batch first
    return LAYERS[encoder.mode](
        vectors, start, weights, True, 1, 0.0, encoder.training, False, True
    )[0]
