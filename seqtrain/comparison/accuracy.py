"""What each variant is worth: all learn from as many examples, and are scored alike.

Variants with equal logits and equal batches are the same model, so the fastest of them learns for
all; each of the others learns for itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from seqtrain.comparison.task import Task
from seqtrain.comparison.turns import PATIENCE
from seqtrain.comparison.variants import VARIANTS
from seqtrain.comparison.worker_pool import Worker
from seqtrain.data.plan import plan_epoch
from seqtrain.training.budget import budget

REPEATS = 3
"""Seeds at most."""
MARGIN = 1.3
"""How much longer than expected learning may take."""


@dataclass(frozen=True)
class EqualTraining:
    """What was learned from, and what came out.

    Attributes:
        examples: of train that each learned from, each pass counted; 0: there was no time.
        seeds: how often each learned, anew.
        accuracies: on held-out sequences by variant, the mean over the seeds.
    """

    examples: int = 0
    seeds: int = 0
    accuracies: Mapping[str, float] = field(default_factory=dict)


def learn_equally(
    workers: Mapping[str, Worker],
    alike: Collection[str],
    task: Task,
    deadline: float,
    before: Callable[[Worker], None] = lambda worker: None,
) -> EqualTraining:
    """Let all variants learn in the time left, at most as long as `fit` would.

    Args:
        workers: by name of their variant, measured.
        alike: names of those whose logits are equal.
        task: what they were given.
        deadline: of time.monotonic().
        before: is called before each learns.
    """
    began = time.monotonic()
    groups = _groups(workers, alike, task)
    learners: dict[object, Worker] = {}
    for name in sorted(groups, key=lambda name: workers[name].rate("training")):
        worker = workers[name]
        if VARIANTS[name].kind != "recipe" and worker.rate("training") and not worker.failure:
            learners[groups[name]] = worker  # the fastest comes last
    held_out = task.held_out.lengths.sum()
    scoring, learning = 0.0, 0.0
    for worker in learners.values():
        scoring += held_out / (worker.rate("prediction") or worker.rate("training"))
        learning += task.train.lengths.mean() / worker.rate("training")  # per example
    time_left = (deadline - began) / MARGIN - scoring
    if not held_out or not learners or time_left < learning:
        return EqualTraining()
    plan = plan_epoch(task.train.lengths, task.config.batching, seed=task.config.seed, epoch=0)
    epochs = budget(task.config.training, len(plan)).epochs
    examples = min(epochs * len(task.train), int(time_left / learning))
    found: dict[object, list[float]] = {group: [] for group in learners}
    for repeat in range(REPEATS):
        for group, worker in learners.items():
            if not worker.failure:
                before(worker)
                limit = max(0.0, deadline - time.monotonic()) + PATIENCE
                accuracy = worker.ask("accuracy", examples, repeat, limit=limit)
                found[group] += [] if accuracy is None else [accuracy]
        if (time.monotonic() - began) * MARGIN * (repeat + 2) / (repeat + 1) > deadline - began:
            break
    means = {group: sum(each) / len(each) for group, each in found.items() if each}
    accuracies = {name: means[group] for name, group in groups.items() if group in means}
    return EqualTraining(examples, repeat + 1, accuracies)


def _groups(names: Collection[str], alike: Collection[str], task: Task) -> dict[str, object]:
    """Return what each has in common with those that learn the same: batches, or only its name."""
    groups: dict[str, object] = {}
    for name in names:
        variant = VARIANTS[name]
        if variant.kind in ("wrong", "pooling"):
            groups[name] = name
        elif name in alike:
            groups[name] = variant.config(task.config).batching.bucketing
    return groups
