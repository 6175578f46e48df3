"""A variant at work: it trains and classifies on the task, with batches in its own order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count

import numpy as np
from torch import Tensor

from seqtrain.comparison.baselines import Baseline
from seqtrain.comparison.task import Task
from seqtrain.comparison.variants import VARIANTS
from seqtrain.config.schema import Config
from seqtrain.data.batch import Batch, collate, map_batches
from seqtrain.data.plan import plan_epoch
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.evaluation.carried import CarriedStates
from seqtrain.evaluation.logits import EVALUATION_BATCHING, logits_of_batches, predict_logits
from seqtrain.training.objectives import Classification
from seqtrain.training.schedule import lr_at
from seqtrain.training.trainer import Trainer


def make_learner(name: str, task: Task) -> SeqtrainLearner | Baseline:
    """Build what runs the variant of this name; all begin with the same weights."""
    variant = VARIANTS[name]
    if variant.kind == "recipe":
        return Baseline(task, packed=not variant.pads, by_mask=name.endswith("mask"))
    return SeqtrainLearner(task, variant.config(task.config), padding=variant.kind == "wrong")


class SeqtrainLearner:
    """Training and prediction as `fit` and `predict` do them.

    Args:
        task: what to run it on.
        config: the task's with a variant's changes.
        padding: the mistake of handing over no lengths: every row of a batch is as long as the
            longest, and padding is a time step like any other (<pad> a token that learns). So an
            answer depends on the batch.
    """

    def __init__(self, task: Task, config: Config, *, padding: bool = False) -> None:
        self.task = task
        self.config = config
        self.padding = padding
        self._begin(config)

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
        config = self.config.model_copy(update={"seed": self.config.seed + seed})
        self._begin(config)
        done, lr = 0, 0.0
        for rows in self._endless_rows():
            if done >= examples:
                break
            lr = lr_at(done, examples, config.training)
            self._update(rows, lr)
            done += len(rows)
        self.trainer.optimizer.settle(lr=lr)
        held_out = self.task.held_out
        batches = [np.arange(len(held_out))]
        if self.objective.groups is None:  # else rows are carried on in their order
            batches = plan_epoch(held_out.lengths, config.batching, seed=config.seed, epoch=1)
        found = self._classify(held_out, batches).argmax(1).numpy()
        return float((found == held_out.labels[np.concatenate(batches)]).mean())

    def _begin(self, config: Config) -> None:
        task = self.task
        self.model = task.new_model(config).train()
        self.objective = Classification(
            self.model, task.train, None, task.labels, config, task.device
        )
        self.trainer = Trainer(self.objective)

    def _endless_rows(self) -> Iterator[Ints]:
        for epoch in count():
            self.objective.begin_epoch()
            yield from self.trainer.plan(epoch)

    def _update(self, rows: Ints, lr: float) -> None:
        update = partial(self.trainer.update, lr=lr)
        store, objective = self.task.train, self.objective
        device, lower = objective.device, objective.lower
        next(map_batches(update, store, [rows], device, collate=self._collate, lower=lower))

    def _collate(self, rows: SequenceStore) -> Batch:
        return collate(padded(rows) if self.padding else rows, self.config.batching.sort)

    def _classify(self, store: SequenceStore, batches: Sequence[Ints]) -> Tensor:
        rows, device = store.__getitems__(np.concatenate(batches)), self.task.device
        if self.padding:  # in these batches: an answer depends on its batch
            plan = np.split(np.arange(len(rows)), np.cumsum([len(each) for each in batches])[:-1])
            return logits_of_batches(self.model, rows, plan, device, collate=self._collate)
        batching = EVALUATION_BATCHING.model_copy(update={"sort": self.config.batching.sort})
        return predict_logits(self.model, rows, device, batching)


def padded(rows: SequenceStore) -> SequenceStore:
    """Return rows as long as the longest, zeros (of ids <pad>) as time steps like any other."""
    longest = int(rows.lengths.max())
    values = np.zeros((len(rows), longest, *rows.values.shape[1:]), dtype=rows.values.dtype)
    values[np.arange(longest) < rows.lengths[:, None]] = rows.values
    return replace(
        rows,
        values=values.reshape(-1, *rows.values.shape[1:]),
        offsets=np.arange(len(rows) + 1) * longest,
    )


def one_by_one(task: Task, pooling: str) -> Tensor:
    """Return the probe's logits, one sequence at a time in torch's own module: (B, C).

    Args:
        task: what all are given.
        pooling: in place of the config's.
    """
    changes = {"engine": "torch", "unroll": "packed", "pooling": pooling}
    config = task.config.model_copy(update={"model": task.config.model.model_copy(update=changes)})
    rows = task.train.__getitems__(task.probe)
    carried = CarriedStates() if task.config.model.initial_state == "carried" else None
    alone = np.split(np.arange(len(rows)), len(rows))
    return logits_of_batches(task.new_model(config), rows, alone, task.device, carried=carried)


def typical_first(lengths: Ints, config: Config) -> list[Ints]:
    """Return the batches of an epoch in such an order that the first few are like all of them.

    The median by length comes first, then the quartiles, the eighths and so on (van der Corput's
    sequence): a slow variant, measured on few batches, is measured on typical ones.

    Args:
        lengths: of the sequences, (B,).
        config: seed and batching.
    """
    plan = plan_epoch(lengths, config.batching, seed=config.seed, epoch=0)
    plan.sort(key=lambda rows: int(lengths[rows].max()))
    bits = len(plan).bit_length()
    places = (int(f"{n:0{bits}b}"[::-1], 2) * len(plan) >> bits for n in range(1, 1 << bits))
    return [plan[place] for place in dict.fromkeys(places)]
