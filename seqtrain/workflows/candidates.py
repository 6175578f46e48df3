"""What `compare` measures: each way at work on the config's own model and data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from seqtrain.config.schema import Config
from seqtrain.data.batches import map_batches, memory_errors
from seqtrain.data.plan import plan_epoch
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.inference.carried import CarriedStates
from seqtrain.inference.logits import EVALUATION_BATCHING, logits_of_batches, predict_logits
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.recipes import recipe_logits
from seqtrain.training.objectives import Classification
from seqtrain.training.schedule import lr_at
from seqtrain.training.trainer import Trainer
from seqtrain.workflows.task import Task
from seqtrain.workflows.ways import WAYS

LOWER_MEMORY = "batching.batch_size, data.max_length or model.hidden_size"


class Candidate(Protocol):
    """A way to train and to classify, with batches in its own order."""

    batches: list[Ints]

    def learn(self, rows: Ints) -> None:
        """Make one update on a batch."""

    def logits(self, batches: Sequence[Ints]) -> Tensor:
        """Classify the rows of some batches; return logits (B, C), on the CPU, row by row."""


def make_candidate(name: str, task: Task) -> Candidate:
    """Build a candidate by the name of its way; all begin with the same weights."""
    kind = WAYS[name].kind
    if kind == "recipe":
        return RecipeCandidate(name, task)
    return PaddingAsData(name, task) if kind == "wrong" else PackedCandidate(name, task)


def alone(task: Task, pooling: str) -> Tensor:
    """Return the probe's logits, one sequence at a time in torch's own module: (B, C).

    Args:
        task: what all are given.
        pooling: in place of the config's.
    """
    changes = {"engine": "torch", "unroll": "packed", "pooling": pooling}
    model = _new_model(
        task, task.config.model_copy(update={"model": task.config.model.model_copy(update=changes)})
    )
    rows = task.train.__getitems__(task.probe)
    carried = CarriedStates() if task.config.model.initial_state == "carried" else None
    batches = np.split(np.arange(len(rows)), len(rows))
    return logits_of_batches(model, rows, batches, task.device, carried=carried)


class PackedCandidate:
    """Training and prediction as `fit` and `predict` do them, with some keys changed.

    Args:
        name: of the way.
        task: what to run it on.
    """

    def __init__(self, name: str, task: Task) -> None:
        self.task = task
        self.config = WAYS[name].config(task.config)
        self.batches = spread_batches(task.train.lengths, self.config)
        self.trainer = self._new_trainer(self.config)

    def learn(self, rows: Ints) -> None:
        """Make one update."""
        self._update(rows, self.config.training.lr)

    def logits(self, batches: Sequence[Ints]) -> Tensor:
        """Classify, batched anew by length."""
        return self._classify(self.task.train, batches)

    def accuracy(self, examples: int, seed: int) -> float:
        """Learn anew from so many examples, as `fit` would; return the share of right answers.

        Args:
            examples: of train, counted again in each pass.
            seed: added to the config's, of weights, batches and dropout.
        """
        seed += self.config.seed
        config = self.config.model_copy(update={"seed": seed})
        self.trainer = self._new_trainer(config)
        done, lr = 0, 0.0
        for epoch in count():
            self.trainer.objective.begin_epoch()
            for rows in self.trainer.plan(epoch):
                if done >= examples:
                    return self._score(lr)
                lr = lr_at(done, examples, config.training)
                self._update(rows, lr)
                done += len(rows)
        raise AssertionError("epochs have no end")

    def _score(self, lr: float) -> float:
        """Return the share of held-out sequences that are classified rightly."""
        held_out, config = self.task.held_out, self.config
        self.trainer.optimizer.settle(lr=lr)
        batches = [np.arange(len(held_out))]
        if self.trainer.objective.groups is None:  # else rows are carried on in their order
            batches = plan_epoch(held_out.lengths, config.batching, seed=config.seed, epoch=1)
        found = self._classify(held_out, batches).argmax(1).numpy()
        return float((found == held_out.labels[np.concatenate(batches)]).mean())

    def _update(self, rows: Ints, lr: float) -> None:
        self._learn(self.task.train, rows, lr)

    def _learn(self, store: SequenceStore, rows: Ints, lr: float) -> None:
        objective = self.trainer.objective
        update = map_batches(
            lambda batch: self.trainer.update(batch, lr),
            store,
            [rows],
            self.task.device,
            collate=objective.collate,
            lower=objective.lower,
        )
        next(update)

    def _classify(self, store: SequenceStore, batches: Sequence[Ints]) -> Tensor:
        rows = store.__getitems__(np.concatenate(batches))
        batching = EVALUATION_BATCHING.model_copy(update={"sort": self.config.batching.sort})
        return predict_logits(self.model, rows, self.task.device, batching)

    def _new_trainer(self, config: Config) -> Trainer:
        task = self.task
        self.model = _new_model(task, config).train()
        objective = Classification(self.model, task.train, None, task.labels, config, task.device)
        return Trainer(objective)


class PaddingAsData(PackedCandidate):
    """Every row of a batch is as long as the longest, and padding a step like any other.

    What becomes of "take the last output" and "take the mean" where lengths aren't handed over; an
    answer depends on the batch. <pad> is a token with a vector that learns.
    """

    def _update(self, rows: Ints, lr: float) -> None:
        self._learn(padded(self.task.train.__getitems__(rows)), np.arange(len(rows)), lr)

    def _classify(self, store: SequenceStore, batches: Sequence[Ints]) -> Tensor:
        found = []
        for rows in batches:
            batch = padded(store.__getitems__(rows))
            together = [np.arange(len(rows))]
            found.append(logits_of_batches(self.model, batch, together, self.task.device))
        return torch.cat(found)


def padded(rows: SequenceStore) -> SequenceStore:
    """Return rows as long as the longest, zeros (of ids <pad>) as steps like any other."""
    longest = int(rows.lengths.max())
    values = np.zeros((len(rows), longest, *rows.values.shape[1:]), dtype=rows.values.dtype)
    values[np.arange(longest) < rows.lengths[:, None]] = rows.values
    return replace(
        rows,
        values=values.reshape(-1, *rows.values.shape[1:]),
        offsets=np.arange(len(rows) + 1) * longest,
    )


class RecipeCandidate:
    """A recipe of today: padded batches, cross-entropy, torch's plain Adam.

    Args:
        name: of the recipe.
        task: what to run it on.
    """

    def __init__(self, name: str, task: Task) -> None:
        self.task = task
        self.packed = name.startswith("packed")
        self.by_mask = name.endswith("mask")
        self.batches = spread_batches(task.train.lengths, WAYS[name].config(task.config))
        values = torch.tensor(task.train.values)
        values = values if task.features else values.long()
        self.sequences = torch.split(values, task.train.lengths.tolist())
        self.labels = torch.tensor(task.train.labels)
        self.model = _new_model(task, task.config)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=task.config.training.lr)

    def learn(self, rows: Ints) -> None:
        """Make one update."""
        with memory_errors(self.task.train.lengths[rows], LOWER_MEMORY):
            self.model.train()
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
        return recipe_logits(
            self.model,
            steps.to(self.task.device),
            lengths,
            packed=self.packed,
            by_mask=self.by_mask,
        )


def _new_model(task: Task, config: Config) -> SequenceClassifier:
    """Draw a config's model: the same weights for the same seed, whatever the way."""
    model = SequenceClassifier(
        config.model,
        input_size=task.input_size,
        num_classes=len(task.labels),
        features=task.features,
    )
    model.initialize(config.seed)
    return model.to(task.device)


def spread_batches(lengths: Ints, config: Config) -> list[Ints]:
    """Return the batches of an epoch in such an order that the first few are like all of them.

    The median by length comes first, then the quartiles, the eighths and so on: a slow candidate,
    measured on few batches, is measured on typical ones.

    Args:
        lengths: of the sequences, (B,).
        config: seed and batching.
    """
    plan = plan_epoch(lengths, config.batching, seed=config.seed, epoch=0)
    plan.sort(key=lambda rows: int(lengths[rows].max()))
    return [plan[place] for place in dict.fromkeys(_halving_places(len(plan)))]


def _halving_places(count: int) -> Iterator[int]:
    """Yield places below a count, the middle first (van der Corput's sequence); some twice."""
    bits = count.bit_length()
    for number in range(1, 1 << bits):
        yield int(f"{number:0{bits}b}"[::-1], 2) * count >> bits
