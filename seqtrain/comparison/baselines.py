"""How nn.GRU and its kin are run on sequences of unequal length elsewhere, as yardsticks.

The plain scripts of today's tutorials, over the modules and weights of a SequenceClassifier: padded
batches, cross-entropy, torch's Adam. Only the way through the encoder differs, so the logits are
the same.

- packed: pad, `pack_padded_sequence(enforce_sorted=False)`, run; the last states come as h_n.
- padded: pad, run over the padding too, and take the states at length - 1, by gathering or by a
  mask. A backward direction reads each sequence reversed, layer by layer, for it must not begin in
  the padding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import (
    PackedSequence,
    pack_padded_sequence,
    pad_packed_sequence,
    pad_sequence,
)

from seqtrain.comparison.task import Task
from seqtrain.data.batch import memory_errors, sort_and_pack
from seqtrain.data.store import Ints
from seqtrain.model.cells import as_one_tensor
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.engines.torch_engine import TorchEngine
from seqtrain.model.pooling import last_by_gather, last_by_mask, last_valid_state

LOWER_MEMORY = "batching.batch_size, data.max_length or model.hidden_size"


class Baseline:
    """Training and prediction as such a script does them.

    Args:
        task: what to run it on.
        packed: pack the padded time steps, or else run over the padding.
        by_mask: over the padding, find the last states with a mask instead of by gathering.
    """

    def __init__(self, task: Task, *, packed: bool, by_mask: bool) -> None:
        self.task = task
        self.packed, self.by_mask = packed, by_mask
        values = torch.tensor(task.train.values)
        values = values if values.is_floating_point() else values.long()
        self.sequences = torch.split(values, task.train.lengths.tolist())
        self.labels = torch.tensor(task.train.labels)
        self.model = task.new_model(task.config)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=task.config.training.lr)

    def learn(self, rows: Ints) -> None:
        """Make one update."""
        self.model.train()
        with memory_errors(self.task.train.lengths[rows], LOWER_MEMORY):
            labels = self.labels[rows].to(self.task.device)
            loss = functional.cross_entropy(self._forward(rows), labels)
            self.optimizer.zero_grad()
            torch.autograd.backward(loss)
            self.optimizer.step()

    @torch.no_grad()
    def logits(self, batches: Sequence[Ints]) -> Tensor:
        """Classify batch by batch."""
        self.model.eval()
        with memory_errors(self.task.train.lengths[np.concatenate(batches)], LOWER_MEMORY):
            return torch.cat([self._forward(rows).cpu() for rows in batches])

    def _forward(self, rows: Ints) -> Tensor:
        steps = pad_sequence([self.sequences[row] for row in rows], batch_first=True)
        lengths = torch.from_numpy(self.task.train.lengths[rows])
        on_device = steps.to(self.task.device)
        return plain_logits(
            self.model, on_device, lengths, packed=self.packed, by_mask=self.by_mask
        )


def plain_logits(
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
        lengths: time steps of each sequence, on the CPU.
        packed: as for `Baseline`.
        by_mask: as for `Baseline`.

    Shape:
        steps: (B, T), or (B, T, F). lengths: (B,). Returns: logits (B, C), row by row.
    """
    config, training = model.config, model.training
    how, bidirectional = config.pooling, config.bidirectional
    vectors = functional.dropout(model.embedding(steps), config.embedding_dropout, training)
    last: Tensor | None = None
    if packed:
        inputs = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        outputs, state = model.encoder(inputs)
        if how == "last":
            h_n = as_one_tensor(state)[0]
            last = last_valid_state(h_n, bidirectional=bidirectional)
    else:
        if bidirectional:
            states = _both_directions(model.encoder, vectors, lengths)
        else:
            states = model.encoder(vectors)[0]
        if how == "last":
            find = last_by_mask if by_mask else last_by_gather
            last = find(states, lengths, bidirectional=bidirectional)
        else:
            outputs = pack_padded_sequence(states, lengths, batch_first=True, enforce_sorted=False)
    if last is not None:
        pooled = model.join(last)
    else:
        assert model.pooling is not None, "it isn't last"
        in_order = model.pooling(model.join(outputs.data), outputs.batch_sizes)
        pooled = in_order[outputs.unsorted_indices]
    logits: Tensor = model.head(functional.dropout(pooled, config.dropout, training))
    return logits


def _both_directions(encoder: nn.RNNBase, vectors: Tensor, lengths: Tensor) -> Tensor:
    """Run both directions over padding; dropout between layers is that of torch's module."""

    def dropped(states: Tensor, layer: int) -> Tensor:
        return functional.dropout(states, encoder.dropout, encoder.training)

    packed, _, rows = sort_and_pack(vectors, lengths)
    states, _ = TorchEngine("", "padded").run(encoder, packed, between=dropped)
    assert states is not None, "they were asked for"
    in_order = PackedSequence(states, packed.batch_sizes)
    return pad_packed_sequence(in_order, batch_first=True)[0][rows]
