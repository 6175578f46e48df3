"""Learners that compute a variant: seqtrain's classifier, or a plain torch script.

The scripts follow today's tutorials and have the classifier's weights. They run the encoder over
packed or over padded sequences. From padded sequences they take the state at time step length - 1,
by an index or by a mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import count

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

from seqtrain.comparison.task import VARIANTS, Task
from seqtrain.config.schema import Config
from seqtrain.evaluation.logits import predict_logits
from seqtrain.model.branches.recurrent import recurrent_branch
from seqtrain.model.cells import as_one_tensor
from seqtrain.model.classifier import ClassifierNetwork
from seqtrain.model.engines.native.native_ops import ops_for
from seqtrain.model.pooling import last_valid_state
from seqtrain.sequences.batch import Batch, collate, map_batches, memory_errors
from seqtrain.sequences.dataset import PreparedData
from seqtrain.sequences.plan import plan_epoch
from seqtrain.sequences.precision import float32_products
from seqtrain.sequences.store import Ints, SequenceStore
from seqtrain.training.loop import keys_to_lower, update
from seqtrain.training.optimizer import learning_rate
from seqtrain.training.trainer import Trainer

LOWER_MEMORY = "batching.batch_size, data.max_length or model.hidden_size"


def make_learner(name: str, task: Task) -> SeqtrainLearner | ScriptLearner:
    """Return a new learner of a variant. All learners start from the same weights.

    Args:
        name: Name of the variant, a key of VARIANTS.
        task: Data and settings.
    """
    variant = VARIANTS[name]
    if variant.kind == "recipe":
        return ScriptLearner(task, packed=not variant.pads, by_mask=name.endswith("mask"))
    return SeqtrainLearner(task, variant.config(task.config), padding=variant.kind == "wrong")


class SeqtrainLearner:
    """Training and prediction as `fit` and `predict` do them, with a variant's config.

    Args:
        task: Data and settings.
        config: Config of the variant.
        padding: True to read padding as data, as wrong programs do. Predictions then depend on the
            length of the longest row of the batch.
    """

    def __init__(self, task: Task, config: Config, *, padding: bool = False) -> None:
        self.task, self.config, self.padding = task, config, padding
        self.model = task.new_model(config).train()
        data = PreparedData({"train": task.train}, task.preprocessing, {}, 0, {}, False)
        self.trainer = Trainer(config, data, task.device, network=self.model)

    def learn(self, rows: Ints, lr: float | None = None) -> None:
        """Update the model once on a batch.

        Args:
            rows: Indices in train of the sequences of the batch, (B,).
            lr: Learning rate, or None for training.lr of the config. The schedule isn't followed.

        Raises:
            RunError: If memory runs out, or if the loss or a gradient isn't finite.
        """
        store, device, lower = self.task.train, self.task.device, keys_to_lower(self.trainer)
        step = partial(update, self.trainer, lr=lr or self.config.training.lr)
        next(map_batches(step, store, [rows], device, collate=self._collate, lower=lower))

    def logits(self, batches: Sequence[Ints]) -> Tensor:
        """Return the logits of the rows of all batches, (B, C), in the order of the batches.

        They are computed in larger batches of similar length, or in exactly `batches` if padding is
        read as data.

        Args:
            batches: Indices in train of the sequences of each batch.
        """
        return self._classify(self.task.train, batches)

    def accuracy(self, examples: int) -> float:
        """Train a new model as `fit` does, and return its accuracy on the held-out sequences.

        Unlike in `fit`, the number of examples is fixed, and the model after the last update is
        measured. The learner's `model` doesn't change.

        Args:
            examples: Number of examples to train on, where every epoch counts the examples again.

        Returns:
            The accuracy, in [0, 1].
        """
        new = SeqtrainLearner(self.task, self.config, padding=self.padding)
        done = 0
        for epoch in count():
            if done >= examples:
                break
            new.trainer.carried.forget()
            for rows in new.trainer.plan(epoch):
                if done < examples:
                    new.learn(rows, learning_rate(self.config.training, done, examples))
                    done += len(rows)
        held_out, config = self.task.held_out, self.config
        batches = [np.arange(len(held_out))]
        if new.trainer.groups is None:  # carried states need the order of the rows
            batches = plan_epoch(held_out.lengths, config.batching, seed=config.seed, epoch=1)
        found = new._classify(held_out, batches).argmax(1).numpy()
        return float((found == held_out.labels[np.concatenate(batches)]).mean())

    def _collate(self, rows: SequenceStore) -> Batch:
        return collate(padded(rows) if self.padding else rows, self.config.batching.sort)

    def _classify(self, store: SequenceStore, batches: Sequence[Ints]) -> Tensor:
        rows, device = store.__getitems__(np.concatenate(batches)), self.task.device
        if self.padding:  # predictions depend on these batches
            plan = np.split(np.arange(len(rows)), np.cumsum([len(batch) for batch in batches])[:-1])
            return predict_logits(self.model, rows, device, plan=plan, collate=self._collate)
        return predict_logits(self.model, rows, device, collate=self._collate)


def padded(rows: SequenceStore) -> SequenceStore:
    """Return a copy of the rows in which every row is as long as the longest row.

    Zeros, the id of <pad>, are appended as time steps.
    """
    longest, width = int(rows.lengths.max()), rows.values.shape[1:]
    values = np.zeros((len(rows), longest, *width), dtype=rows.values.dtype)
    values[np.arange(longest) < rows.lengths[:, None]] = rows.values
    offsets = np.arange(len(rows) + 1) * longest
    return replace(rows, values=values.reshape(-1, *width), offsets=offsets)


def one_by_one(task: Task, pooling: str) -> Tensor:
    """Return reference logits of the task's probe, (B, C).

    They are computed one sequence at a time by torch's module, with the biases that
    `randomize_biases` sets.

    Args:
        task: Data and settings.
        pooling: Value of model.pooling, in place of the config's value.
    """
    changes = {"engine": "torch", "unroll": "packed", "pooling": pooling}
    rows = task.train.__getitems__(task.probe)
    batches = np.split(np.arange(len(rows)), len(rows))
    network = task.new_model(task.config.with_keys(model=changes))
    randomize_biases(network)
    return predict_logits(network, rows, task.device, plan=batches)


@torch.no_grad()
def randomize_biases(network: ClassifierNetwork) -> None:
    """Replace the biases of a network by random numbers, which are the same in every call.

    Initial biases and the vector of <pad> are zero. With these zeros, an encoder that reads padding
    by mistake would still compute the right states.
    """
    generator = torch.Generator("cpu").manual_seed(0)
    for name, weight in network.named_parameters():
        if "bias" in name:
            weight.copy_(torch.rand(weight.shape, generator=generator, device="cpu") - 0.5)


class ScriptLearner:
    """Training and prediction as a plain torch script does them.

    Args:
        task: Data and settings.
        packed: True to run the encoder over packed sequences, False for padded sequences.
        by_mask: True to find the last valid state of padded sequences by a mask, False for an
            index.
    """

    def __init__(self, task: Task, *, packed: bool, by_mask: bool) -> None:
        self.task, self.packed, self.by_mask = task, packed, by_mask
        self.model = task.new_model(task.config)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=task.config.training.lr)

    def learn(self, rows: Ints) -> None:
        """Update the model once on a batch.

        Args:
            rows: Indices in train of the sequences of the batch, (B,).

        Raises:
            RunError: If memory runs out.
        """
        self.model.train()
        device, lengths = self.task.device, self.task.train.lengths[rows]
        with memory_errors(lengths, LOWER_MEMORY), float32_products(device):
            labels = torch.from_numpy(self.task.train.labels[rows]).to(self.task.device)
            loss = functional.cross_entropy(self._forward(rows), labels)
            self.optimizer.zero_grad()
            torch.autograd.backward(loss)
            self.optimizer.step()

    @torch.no_grad()
    def logits(self, batches: Sequence[Ints]) -> Tensor:
        """Return the logits of the rows of all batches, (B, C), computed batch by batch.

        Args:
            batches: Indices in train of the sequences of each batch.
        """
        self.model.eval()
        device, lengths = self.task.device, self.task.train.lengths[np.concatenate(batches)]
        with memory_errors(lengths, LOWER_MEMORY), float32_products(device):
            return torch.cat([self._forward(rows).cpu() for rows in batches])

    def _forward(self, rows: Ints) -> Tensor:
        store = self.task.train
        sequences = [torch.from_numpy(np.array(store[row][0])) for row in rows]
        steps = pad_sequence(sequences, batch_first=True).to(self.task.device)
        steps = steps if steps.is_floating_point() else steps.long()
        lengths = torch.from_numpy(store.lengths[rows])
        return plain_logits(self.model, steps, lengths, packed=self.packed, by_mask=self.by_mask)


def plain_logits(
    network: ClassifierNetwork,
    steps: Tensor,
    lengths: Tensor,
    *,
    packed: bool,
    by_mask: bool = False,
) -> Tensor:
    """Return the logits of padded sequences, (B, C), computed by torch's module.

    The sequences may have any order. Without packing, the backward direction of a bidirectional
    encoder reads the padding first, which is a common mistake of such scripts.

    Args:
        network: The model.
        steps: Padded token ids, (B, T), or feature vectors, (B, T, F).
        lengths: Number of time steps of each sequence, (B,), on the CPU.
        packed: True to pack the sequences, False to run the encoder over the padding.
        by_mask: True to find the last valid states of padded sequences by a mask, False for an
            index.
    """
    config, training, model = network.config, network.training, recurrent_branch(network)
    vectors = functional.dropout(model.embedding(steps), config.embedding_dropout, training)
    if packed:
        inputs = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        outputs, state = model.encoder(inputs)
    else:
        states = model.encoder(vectors)[0]
    if model.pooling is None:  # the last states
        if packed:
            last = last_valid_state(as_one_tensor(state)[0], bidirectional=config.bidirectional)
        else:
            end = lengths.to(states.device) - 1
            size = states.shape[1 if by_mask else 0]
            numbers = torch.arange(size, device=states.device)
            last = states[numbers == end.unsqueeze(1)] if by_mask else states[numbers, end]
        pooled = model.join(last)
    else:
        if not packed:
            outputs = pack_padded_sequence(states, lengths, batch_first=True, enforce_sorted=False)
        states = model.join(outputs.data)
        in_order = ops_for(states).pool(model.pooling, states, outputs.batch_sizes)
        pooled = in_order[outputs.unsorted_indices]
    logits: Tensor = model.head(functional.dropout(pooled, config.dropout, training))
    return logits
