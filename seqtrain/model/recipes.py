"""How nn.GRU and its kin are run on sequences of unequal length elsewhere, as yardsticks.

The recipes of today's tutorials, over the modules and weights of a SequenceClassifier: only the way
through the encoder differs, so the logits are the same.

- packed: pad, `pack_padded_sequence(enforce_sorted=False)`, run; the last states come as h_n.
- padded: pad, run over the padding too, and take the states at length - 1, by gathering or by a
  mask. A backward direction reads each sequence reversed, layer by layer, for it must not begin in
  the padding.

B batch, T longest length, E embedding, H state (both directions), C classes, F features.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from seqtrain.model.cells import as_one_tensor
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.engines.unrolls import over_padded
from seqtrain.model.pooling import last_by_gather, last_by_mask, last_valid_state


def recipe_logits(
    model: SequenceClassifier,
    steps: Tensor,
    lengths: Tensor,
    *,
    packed: bool,
    by_mask: bool = False,
) -> Tensor:
    """Classify padded sequences, in any order, by torch's own module.

    Args:
        model: whose modules to use; its engine plays no part.
        steps: ids or feature vectors, anything in the padding.
        lengths: steps of each sequence, on the CPU.
        packed: pack the steps, or else run over the padding.
        by_mask: over the padding, find the last states with a mask instead of by gathering.

    Shape:
        steps: (B, T), or (B, T, F). lengths: (B,). Returns: logits (B, C), row by row.
    """
    vectors = functional.dropout(
        model.embedding(steps), model.config.embedding_dropout, model.training
    )
    if packed:
        pooled = _packed(model, vectors, lengths)
    else:
        pooled = _padded(model, vectors, lengths, last_by_mask if by_mask else last_by_gather)
    logits: Tensor = model.head(functional.dropout(pooled, model.config.dropout, model.training))
    return logits


def _packed(model: SequenceClassifier, vectors: Tensor, lengths: Tensor) -> Tensor:
    inputs = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
    outputs, state = model.encoder(inputs)
    if model.config.pooling == "last":
        h_n = as_one_tensor(state)[0]
        return model.join(last_valid_state(h_n, bidirectional=model.config.bidirectional))
    return _pool(model, outputs)


def _padded(
    model: SequenceClassifier, vectors: Tensor, lengths: Tensor, last: Callable[..., Tensor]
) -> Tensor:
    bidirectional = model.config.bidirectional
    if bidirectional:
        own = lengths.to(vectors.device)
        states = over_padded(
            vectors, own, model.encoder, how="padded", between=partial(_dropped, model.encoder)
        )[0]
    else:
        states = model.encoder(vectors)[0]
    if model.config.pooling == "last":
        return model.join(last(states, lengths, bidirectional=bidirectional))
    return _pool(
        model, pack_padded_sequence(states, lengths, batch_first=True, enforce_sorted=False)
    )


def _dropped(encoder: nn.RNNBase, states: Tensor, layer: int) -> Tensor:
    """Drop units between two layers, as torch's module does."""
    return functional.dropout(states, encoder.dropout, encoder.training)


def _pool(model: SequenceClassifier, states: PackedSequence) -> Tensor:
    pooled: Tensor = model.pooling(model.join(states.data), states.batch_sizes)
    return pooled[states.unsorted_indices]
