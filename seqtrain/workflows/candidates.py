"""What `compare` measures: seqtrain's engines, and today's recipes, on the config's own model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from seqtrain.config.rules import model_faults
from seqtrain.config.schema import Config
from seqtrain.data.batching import plan_epoch
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.errors import ConfigError
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.encoder import choose_engine
from seqtrain.model.recipes import recipe_logits
from seqtrain.training.inference import predict_logits
from seqtrain.training.loop import Trainer
from seqtrain.training.memory import memory_errors

ENGINES = ("native", "fused", "torch")
RECIPES = ("padded-sorted", "padded", "packed-sorted", "packed")
"""Run over the padding, or packed; in batches of like length, or random ones."""
REFERENCE = "torch"
"""Whose logits the others are compared with."""
LOWER_MEMORY = "batching.batch_size, data.max_length or model.hidden_size"


@dataclass(frozen=True)
class Task:
    """What every candidate is given.

    Attributes:
        config: resolved.
        train: the sequences to learn from and to classify.
        input_size: of the vocabulary, or width of the feature vectors.
        labels: of each class index.
        device: where to compute.
        threads: of torch, on the CPU.
        probe: rows whose logits are compared, before any training.
    """

    config: Config
    train: SequenceStore
    input_size: int
    labels: tuple[str, ...]
    device: torch.device
    threads: int
    probe: Ints

    @property
    def features(self) -> bool:
        """Whether steps are feature vectors instead of ids."""
        return self.train.values.ndim == 2


class Candidate(Protocol):
    """A way to train and to classify, with batches in its own order."""

    batches: list[Ints]

    def learn(self, rows: Ints) -> None:
        """Make one update on a batch."""

    def logits(self, batches: Sequence[Ints]) -> Tensor:
        """Classify the rows of some batches; return logits (B, C), on the CPU, row by row."""


def make_candidate(name: str, task: Task) -> Candidate:
    """Build a candidate by its name; all begin with the same weights."""
    return EngineCandidate(name, task) if name in ENGINES else RecipeCandidate(name, task)


def why_left_out(name: str, config: Config, device: torch.device) -> str:
    """Return in one line why a candidate can't run this config here; empty where it can."""
    if name not in ENGINES:
        return ""
    model = config.model.model_copy(update={"engine": name})
    for _, problem in model_faults(model.model_dump()):
        return problem
    try:
        choose_engine(model, device)
    except ConfigError as error:
        return str(error)
    return ""


class EngineCandidate:
    """The config's training step and prediction, with one engine.

    Args:
        name: of the engine.
        task: what to run it on.
    """

    def __init__(self, name: str, task: Task) -> None:
        model = task.config.model.model_copy(update={"engine": name})
        self.task = task
        self.batches = spread_batches(task, bucketing=task.config.batching.bucketing)
        self.trainer = Trainer(
            _new_model(replace(task, config=task.config.model_copy(update={"model": model}))),
            task.train,
            None,
            task.labels,
            task.config,
            task.device,
        )

    def learn(self, rows: Ints) -> None:
        """Make one update, as `fit` does."""
        self.trainer.update(rows, self.task.config.training.lr)

    def logits(self, batches: Sequence[Ints]) -> Tensor:
        """Classify, as `predict` and `eval` do."""
        rows = self.task.train.__getitems__(np.concatenate(batches))
        return predict_logits(self.trainer.model, rows, self.task.device)


class RecipeCandidate:
    """A recipe of today: padded batches, cross-entropy, torch's plain Adam.

    Args:
        name: of the recipe.
        task: what to run it on.
    """

    def __init__(self, name: str, task: Task) -> None:
        self.device = task.device
        self.packed = name.startswith("packed")
        self.batches = spread_batches(task, bucketing=name.endswith("sorted"))
        self.lengths = task.train.lengths
        values = torch.tensor(task.train.values)
        values = values if task.features else values.long()
        self.sequences = torch.split(values, self.lengths.tolist())
        self.labels = torch.tensor(task.train.labels)
        self.model = _new_model(task)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=task.config.training.lr)

    def learn(self, rows: Ints) -> None:
        """Make one update."""
        with memory_errors(self.lengths[rows], LOWER_MEMORY):
            self.model.train()
            labels = self.labels[rows].to(self.device)
            loss = functional.cross_entropy(self._forward(rows), labels)
            self.optimizer.zero_grad()
            torch.autograd.backward(loss)
            self.optimizer.step()

    @torch.no_grad()
    def logits(self, batches: Sequence[Ints]) -> Tensor:
        """Classify batch by batch."""
        self.model.eval()
        with memory_errors(self.lengths[np.concatenate(batches)], LOWER_MEMORY):
            return torch.cat([self._forward(rows).cpu() for rows in batches])

    def _forward(self, rows: Ints) -> Tensor:
        steps = pad_sequence([self.sequences[row] for row in rows], batch_first=True)
        lengths = torch.from_numpy(self.lengths[rows])
        return recipe_logits(self.model, steps.to(self.device), lengths, packed=self.packed)


def _new_model(task: Task) -> SequenceClassifier:
    """Draw the config's model: the same weights for every candidate, in training mode."""
    torch.manual_seed(task.config.seed)
    model = SequenceClassifier(
        task.config.model,
        input_size=task.input_size,
        num_classes=len(task.labels),
        features=task.features,
    )
    model.initialize()
    return model.to(task.device).train()


def spread_batches(task: Task, *, bucketing: bool) -> list[Ints]:
    """Return the batches of an epoch in such an order that the first few are like all of them.

    The median by length comes first, then the quartiles, the eighths and so on: a slow candidate,
    measured on few batches, is measured on typical ones.

    Args:
        task: sequences, seed and batching.
        bucketing: put sequences of like length together, whatever the config says.
    """
    batching = task.config.batching.model_copy(update={"bucketing": bucketing})
    lengths = task.train.lengths
    plan = plan_epoch(lengths, batching, seed=task.config.seed, epoch=0)
    plan.sort(key=lambda rows: int(lengths[rows].max()))
    return [plan[place] for place in dict.fromkeys(_halving_places(len(plan)))]


def _halving_places(count: int) -> Iterator[int]:
    """Yield places below a count, the middle first (van der Corput's sequence); some twice."""
    bits = count.bit_length()
    for number in range(1, 1 << bits):
        yield int(f"{number:0{bits}b}"[::-1], 2) * count >> bits
